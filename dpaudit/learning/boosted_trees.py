"""A learned score: a sum of a few small trees, boosted on binned columns.

The trees are symmetric: all nodes of a level ask the same question, so that a tree of depth d is d comparisons and a
table of 2^d values. They are fitted here and not by an optional package: what a seed finds must not depend on what else
is installed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.vectors import floats

DEPTH, TREES = 3, 12  # questions of a tree, and trees: more learn noise, and take longer
RATE = 0.4  # share of a tree's values that is added
TAILS = 2.0 ** -np.arange(2.5, 9.1, 0.5)  # masses cut off in either tail, beside sixteenths
# Shares of a column at which it is cut.
LEVELS = np.unique(np.concatenate([np.arange(1.0, 16.0) / 16.0, TAILS, 1.0 - TAILS]))
BINS = len(LEVELS) + 1  # between these cuts
FEWEST = 4  # draws beyond a cut
LARGEST_ROWS = 8_000  # draws of one side that trees are fitted on
RIDGE = 4.0  # draws' worth of evidence towards 0 in each leaf


@dataclasses.dataclass(frozen=True)
class Trees:
    """A sum of symmetric trees over the columns of the numbers.

    Tree t asks for each level l whether column `columns[t, l]` is above `cuts[t, l]` (NaN is not), reads the answers as
    a binary number, the first level its highest digit, and adds `values[t, number]`. Shapes: (trees, depth) for the
    questions, (trees, 2^depth) for the values.
    """

    columns: NDArray[np.int_]
    cuts: FloatArray
    values: FloatArray
    width: int

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        numbers = outcomes.numbers
        total = np.zeros(len(numbers))
        used = {column: np.ascontiguousarray(numbers[:, column]) for column in np.unique(self.columns).tolist()}
        for columns, cuts, values in zip(self.columns.tolist(), self.cuts.tolist(), self.values, strict=True):
            leaf = np.zeros(len(numbers), dtype=np.intp)
            for column, cut in zip(columns, cuts, strict=True):
                leaf <<= 1
                leaf += used[column] > cut
            total += values[leaf]
        return total

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "trees",
            "columns": self.columns.tolist(),
            "cuts": [[float(cut).hex() for cut in row] for row in self.cuts],
            "values": [[float(value).hex() for value in row] for row in self.values],
            "width": self.width,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Trees:
        cuts, values = (np.array([floats(row) for row in record[name]]) for name in ("cuts", "values"))
        columns = np.array(record["columns"], dtype=int)
        if columns.shape != cuts.shape or values.shape != (len(columns), 2 ** columns.shape[1]):
            raise ValueError(f"trees must have a cut a level and a value a leaf, got {columns.shape}, {values.shape}.")
        return cls(columns, cuts, values, int(record["width"]))

    def describe(self) -> str:
        used = np.unique(self.columns)
        return f"{len(self.columns)} decision trees over {len(used)} coordinates of the output"


def fit_trees(first: Outcomes, second: Outcomes, columns: NDArray[np.int_]) -> Trees | None:
    """`Trees` over the given columns from outcomes under x (`first`) and x_prime (`second`); None if none helps.

    Logistic boosting. Of every column at most `BINS` bins of equal mass; NaN lies in the lowest.
    """
    sides = [part.numbers[:: -(-len(part) // LARGEST_ROWS)][:, columns] for part in (first, second)]
    numbers = np.concatenate(sides)
    label = np.repeat([1.0, 0.0], [len(side) for side in sides])
    weight = np.where(label == 1.0, 0.5 / len(sides[0]), 0.5 / len(sides[1])) * len(numbers)
    edges = [_edges(column) for column in numbers.T]
    binned = np.stack(
        [np.searchsorted(cut, np.where(np.isnan(x), -math.inf, x)) for cut, x in zip(edges, numbers.T, strict=True)]
    )  # (columns, draws): how many cuts are below
    questions = max(sum(len(cut) for cut in edges), 2)
    score = np.zeros(len(numbers))
    chosen: list[tuple[list[int], list[float], FloatArray]] = []
    for _ in range(TREES):
        probability = 1.0 / (1.0 + np.exp(-score))
        gradient, curvature = weight * (label - probability), weight * probability * (1.0 - probability)
        leaf = np.zeros(len(numbers), dtype=np.intp)
        asked: list[int] = []
        cuts: list[float] = []
        total = 0.0
        for _ in range(DEPTH):
            column, position, gain = _best_question(binned, edges, leaf, 2 ** len(asked), gradient, curvature)
            if column < 0:
                break
            leaf = 2 * leaf + (binned[column] > position)
            asked.append(column)
            cuts.append(float(edges[column][position]))
            total += gain
        # Where there is nothing to learn the gain is about a chi-square of as many degrees as leaves, the largest over
        # the questions that were tried: a usual bound of its tail. A tree below that would only add noise.
        tried = len(asked) * math.log(questions)
        if not asked or total < 2.0**DEPTH + 2.0 * math.sqrt(2.0**DEPTH * tried) + 2.0 * tried:
            break
        while len(asked) < DEPTH:  # a question that is never answered by yes keeps the shape
            leaf, asked, cuts = 2 * leaf, [*asked, asked[-1]], [*cuts, math.inf]
        size = 2**DEPTH
        sums = np.bincount(leaf, gradient, size) / (np.bincount(leaf, curvature, size) + 0.25 * RIDGE)
        values = RATE * sums
        score += values[leaf]
        chosen.append((asked, cuts, values))
    if not chosen:
        return None
    questions = columns[np.array([tree[0] for tree in chosen])]
    cut_array, value_array = (np.array([tree[k] for tree in chosen]) for k in (1, 2))
    return Trees(questions, cut_array, value_array, first.numbers.shape[1])


def _edges(column: FloatArray) -> FloatArray:
    """At most `BINS` cuts of a column, at quantiles that are dense in both tails; -inf first if some are NaN."""
    known = np.sort(column[~np.isnan(column)])
    if len(known) == 0:
        return np.empty(0)
    usable = LEVELS[np.minimum(LEVELS, 1.0 - LEVELS) * len(known) >= FEWEST]
    cuts = np.unique(known[(usable * len(known)).astype(int)])
    cuts = cuts[(cuts < known[-1]) & (cuts > -math.inf)]  # above the largest there is nothing
    if len(cuts) == 0 and known[0] < known[-1]:
        cuts = known[:1]
    return cuts if len(known) == len(column) else np.concatenate([[-math.inf], cuts])


def _best_question(
    binned: NDArray[np.intp],
    edges: list[FloatArray],
    leaf: NDArray[np.intp],
    leaves: int,
    gradient: FloatArray,
    curvature: FloatArray,
) -> tuple[int, int, float]:
    """The column and the position of its cut that raise the likelihood most, and by how much; (-1, -1, 0) if none.

    A cut at position p sends the bins above p to the right.
    """
    best, where = 1e-9, (-1, -1, 0.0)
    offset = leaf * (BINS + 2)
    ridge = 0.25 * RIDGE
    for column, (bins, cuts) in enumerate(zip(binned, edges, strict=True)):
        if len(cuts) == 0:
            continue
        index = offset + bins
        sums, curves = (
            np.bincount(index, weights, leaves * (BINS + 2)).reshape(leaves, BINS + 2)
            for weights in (gradient, curvature)
        )
        left, left_curve = np.cumsum(sums, axis=1)[:, : len(cuts)], np.cumsum(curves, axis=1)[:, : len(cuts)]
        total, total_curve = sums.sum(axis=1, keepdims=True), curves.sum(axis=1, keepdims=True)
        right, right_curve = total - left, total_curve - left_curve
        gains = left**2 / (left_curve + ridge) + right**2 / (right_curve + ridge) - total**2 / (total_curve + ridge)
        gain = gains.sum(axis=0)
        position = int(np.argmax(gain))
        if gain[position] > best:
            best = float(gain[position])
            where = column, position, best
    return where
