"""One partition of the outputs into cells, shared by all pairs of a table.

Fitted once, on pilot draws of all inputs together. Values that occur often (atoms) get a cell each. Everything else
falls into the leaves of a tree that splits views of the output (`dpaudit.features.views`), half and half by the ranks
of the pooled draws, so that it is finest where the outputs of many inputs lie. The views are those that differ most
between inputs: numbers of the output, and views that are worked out of these where they tell much more.

Validity: the cell of an output is a function of that output alone, fixed before the draws that are counted.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.outcomes import Outcomes, join
from dpaudit.features.reader import Reader
from dpaudit.features.views import SIZES as VIEW_SIZES
from dpaudit.features.views import View, proposals
from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import Form

IntArray = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class PartitionSizes:
    """Numbers of cells, and of draws that they are fitted on."""

    max_cells: int = 512  # leaves of the tree, and as many atoms: a pair's test has a count of each
    # Draws of an atom, and of an input in a leaf on average: fewer tell little of a log ratio. At 4,000 samples bounds
    # are 17% larger than with 512 leaves, in the median of 14 laws; at 32 they are 22%, and a narrow interval is lost.
    min_draws: int = 16
    max_draws: int = 200_000  # pooled draws that the tree is fitted on
    max_numbers: int = 4_000_000  # numbers in these draws: a bound on time
    max_views: int = 6  # that the tree splits
    significant: float = 5.0  # standard deviations by which a view differs between inputs
    much_more: float = 2.0  # times what any number of the output tells, of a view that is worked out


SIZES = PartitionSizes()


@dataclasses.dataclass(frozen=True, eq=False)
class Partition(Form):
    """Cells 0, ..., size - 1: the atoms, then one for numbers with a NaN, then the leaves of the tree.

    Attributes
    ----------
    columns : int
        Numbers of an output; 0 where outputs are read as objects.
    reader : Reader, optional
        What views look at; without it, the numbers of an output.
    views : tuple of View
    atoms : tuple of str or of int
        Tokens of objects, or 64-bit keys of rows of numbers.
    column, threshold, child : arrays, shape (nodes,)
        Of the tree: a node that is no leaf sends an output to `child` if the view at position `column` is at most the
        threshold or NaN, else to `child + 1`. A leaf is its own child.
    """

    columns: int
    reader: Reader | None
    views: tuple[View, ...]
    atoms: tuple[Any, ...]
    column: IntArray
    threshold: FloatArray
    child: IntArray

    exact = True

    def __post_init__(self) -> None:
        nodes = np.arange(len(self.child))
        inner = self.child[self.child != nodes]
        if not len(self.column) == len(self.threshold) == len(nodes) > 0 or np.any(inner <= nodes[self.child != nodes]):
            raise ValueError("partition must be a tree whose children follow their parents.")
        if len(inner) and inner.max() + 1 >= len(nodes):
            raise ValueError("partition must be a tree with both children of every node.")

    @functools.cached_property
    def leaf(self) -> IntArray:
        """The number of each leaf, from 0; -1 for inner nodes."""
        is_leaf = self.child == np.arange(len(self.child))
        return np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.atoms) + 1 + int(self.leaf.max()) + 1

    def zeros(self) -> IntArray:
        """The counts of no draws."""
        return np.zeros(self.size, dtype=np.int64)

    def count(self, outcomes: Outcomes) -> IntArray:
        """Number of outcomes in each cell, shape (cells,)."""
        return np.bincount(self.cells(outcomes), minlength=self.size) if len(outcomes) else self.zeros()

    def cells(self, outcomes: Outcomes) -> IntArray:
        """The cell of each outcome, shape (draws,)."""
        read = outcomes.read_as(self.columns)
        cells = np.full(len(read), -1)
        if self.atoms:
            known, order = self._known
            keys = keys_of(read)
            at = order[np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)]
            cells = np.where(known[at] == keys, at, -1)
        rest = np.flatnonzero(cells < 0)
        if len(rest):
            values = self.values(read if len(rest) == len(read) else read.rows(rest))
            cells[rest] = len(self.atoms) + 1 + self._leaf_of(values)
            if self.columns:
                cells[rest[np.isnan(values).any(axis=1)]] = len(self.atoms)
        return cells

    def values(self, read: Outcomes) -> FloatArray:
        """The views of outcomes that were read as `columns` says, shape (draws, views)."""
        matrix = read.numbers if self.reader is None else self.reader(read)
        return np.stack([view(matrix) for view in self.views], axis=1)

    def _leaf_of(self, values: FloatArray) -> IntArray:
        node, rows = np.zeros(len(values), dtype=np.int64), np.arange(len(values))
        limit = np.where(self.leaf >= 0, np.inf, self.threshold)
        with np.errstate(invalid="ignore"):
            while np.any(self.leaf[node] < 0):
                node = self.child[node] + (values[rows, self.column[node]] > limit[node])
        return self.leaf[node]

    @functools.cached_property
    def _known(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        known = np.array(self.atoms, dtype=np.uint64 if self.columns else str)
        return known, np.argsort(known)

    def _to_saved(self, record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "atoms": [str(atom) for atom in self.atoms]}

    @classmethod
    def _of_saved(cls, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """The record, which may be older than views."""
        atoms = [int(atom) if record["columns"] else str(atom) for atom in record["atoms"]]
        if "views" in record:
            return {"reader": None, **record, "atoms": atoms}
        used, column = np.unique(np.array(record["column"], dtype=np.int64), return_inverse=True)
        views = [View("value", (k,)).to_dict() for k in used.tolist()]
        return {**record, "atoms": atoms, "views": views, "column": column.tolist(), "reader": None}


def keys_of(outcomes: Outcomes) -> NDArray[Any]:
    """A key of each outcome: its token, or 64 bits of its row of numbers. Equal outcomes have equal keys.

    Of numbers others hardly ever do: by the bits of the doubles, with one key for all NaNs. Two rows that share a key
    share a cell, which costs power at worst.
    """
    if outcomes.tokens is not None:
        return outcomes.tokens.astype(str)
    numbers = outcomes.numbers
    bits = np.ascontiguousarray(np.where(np.isnan(numbers), np.nan, numbers)).view(np.uint64)  # (draws, columns)
    keys = np.zeros(len(bits), dtype=np.uint64)
    for k in range(bits.shape[1]):  # a polynomial in an odd number, modulo 2**64, with the high bits mixed in
        keys = (keys ^ (keys >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + bits[:, k]
    return keys


def fit_partition(parts: Sequence[Outcomes], draws: int) -> Partition:
    """The partition for a pilot of so many `draws` of each input, by the first of these (one part an input)."""
    kinds = {(part.tokens is None, part.numbers.shape[1]) for part in parts}
    columns = parts[0].numbers.shape[1] if len(kinds) == 1 and parts[0].tokens is None else 0
    most = max(8, min(SIZES.max_draws, SIZES.max_numbers // max(columns, 1)) // len(parts))
    # An even choice of each input's draws; which ones does not depend on their values.
    pooled = join([part.rows(slice(0, most)) for part in parts]).read_as(columns)
    owner = np.repeat(np.arange(len(parts)), [min(len(part), most) for part in parts])
    found, place, counts = np.unique(keys_of(pooled), return_inverse=True, return_counts=True)
    often = np.argsort(-counts, kind="stable")[: SIZES.max_cells]
    often = often[counts[often] >= SIZES.min_draws]
    rest = np.flatnonzero(~np.isin(place, often))
    left, owner = pooled.rows(rest), owner[rest]
    reader, views = _views(left, owner)
    if columns and (reader is None or all(k < columns for view in views for k in view.columns)):
        reader = None  # nothing that is worked out is looked at
    no_tree = (np.zeros(1, dtype=kind) for kind in (np.int64, float, np.int64))
    bare = Partition(columns, reader, views, tuple(found[often].tolist()), *no_tree)
    return dataclasses.replace(bare, **_grown(bare.values(left), owner, draws)) if len(left) else bare


def _views(pooled: Outcomes, owner: NDArray[np.intp]) -> tuple[Reader | None, tuple[View, ...]]:
    """The views to split, those that differ most between inputs, and the reader of the numbers that they look at."""
    first = (View("value", (0,)),)
    if len(owner) < 2:
        return None, first
    order = np.random.default_rng(np.random.SeedSequence(20_261_129)).permutation(len(owner))
    some, own = pooled.rows(order[: VIEW_SIZES.scanned]), owner[order[: VIEW_SIZES.scanned]]
    reader = Reader.learn([some])
    matrix = reader(some)
    ranked: list[tuple[float, int, View]] = []
    for views in proposals(matrix, (own % 2).astype(np.intp), reader.layout):
        rows = slice(VIEW_SIZES.scanned if len(views) <= VIEW_SIZES.max_columns else VIEW_SIZES.screened)
        for view in views:
            if view.kind != "distance from the centre":  # every view is judged by its distance from the middle too
                ranked.append((-_spread(view(matrix[rows]), own[rows])[0], len(ranked), view))
    ranked.sort()
    limit = SIZES.significant + math.sqrt(2.0 * math.log(max(len(ranked), 1)))
    are_read = [one for one in ranked if one[2].kind == "value" and one[2].columns[0] < reader.n_read]
    most = max([limit, *(-SIZES.much_more * one[0] for one in are_read)])
    kept = [one for one in ranked if one not in are_read and -one[0] > most][: SIZES.max_views // 2]
    kept += [one for one in are_read if -one[0] > limit][: SIZES.max_views - len(kept)]
    split = tuple(view for *_, view in kept or are_read[: SIZES.max_views] or ranked[:1])
    return (reader, split) if split else (None, first)


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks from -1 to 1, of equal values in the middle; NaN first."""
    _, place, counts = np.unique(np.where(np.isnan(values), -np.inf, values), return_inverse=True, return_counts=True)
    return np.asarray((2.0 * np.cumsum(counts) - counts)[place] / len(values) - 1.0)


def _spread(values: FloatArray, owner: NDArray[np.intp]) -> tuple[float, float]:
    """Difference of a view between inputs, in standard deviations, and its spread in ranks within an input.

    By the F statistic of its ranks and of their distances from the middle (for laws that differ in width), and by the
    input that differs most.
    """
    ranks, count, clearest, spreads = _ranks(values), np.bincount(owner).astype(float), -math.inf, []
    for u in (ranks, np.abs(ranks)):
        mean = np.bincount(owner, u) / np.maximum(count, 1.0)
        within = float(np.mean((u - mean[owner]) ** 2))
        spreads.append(math.sqrt(within))
        total, groups = float(u.var()), max(len(count) - 1, 1)
        if total > 0.0:
            squares = count * (mean - u.mean()) ** 2 / max(within, 1e-3 * total)
            odd = math.sqrt(float(squares.max())) - math.sqrt(2.0 * math.log(len(count) + 1.0))
            clearest = max(clearest, (float(squares.sum()) / groups - 1.0) * math.sqrt(groups / 2.0), odd)
    return clearest, spreads[0]


def _grown(values: FloatArray, owner: NDArray[np.intp], draws: int) -> dict[str, Any]:
    """Split the leaf with the most draws, along the view in which it is widest for its noise."""
    values = np.where(np.isnan(values), -np.inf, values)
    ranks = np.stack([_ranks(column) for column in values.T], axis=1)
    noise = np.maximum([_spread(column, owner)[1] for column in values.T], 1e-3)
    column, threshold, child = [0], [0.0], [0]
    leaves: list[tuple[int, int, NDArray[np.intp]]] = [(-len(values), 0, np.arange(len(values)))]
    most = min(SIZES.max_cells, max(2, draws // SIZES.min_draws))
    while leaves and len(child) < 2 * most - 1 and -leaves[0][0] >= 2 * SIZES.min_draws:
        _, node, rows = heapq.heappop(leaves)
        low, high = np.quantile(ranks[rows], [0.1, 0.9], axis=0)
        for position in np.argsort(-(high - low) / noise, kind="stable").tolist():
            distinct, counts = np.unique(values[rows, position], return_counts=True)
            if len(distinct) > 1:
                break
        else:
            continue
        cut = float(distinct[np.argmin(np.abs(2 * np.cumsum(counts[:-1]) - len(rows)))])
        column[node], threshold[node], child[node] = position, max(cut, -np.finfo(float).max), len(child)
        above = values[rows, position] > threshold[node]
        for part in (rows[~above], rows[above]):
            heapq.heappush(leaves, (-len(part), len(child), part))
            column.append(0)
            threshold.append(0.0)
            child.append(len(child))
    return {"column": np.array(column), "threshold": np.array(threshold), "child": np.array(child)}


@dataclasses.dataclass(frozen=True, eq=False)
class CellScore:
    """A guessing rule on cells: x (score 1) on some, x_prime (-1) on others, neither (0) on the rest."""

    partition: Partition
    plus: tuple[int, ...]
    minus: tuple[int, ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """The score of each outcome, shape (draws,)."""
        values = np.zeros(self.partition.size)
        values[list(self.plus)], values[list(self.minus)] = 1.0, -1.0
        return values[self.partition.cells(outcomes)]

    def to_dict(self) -> dict[str, Any]:
        """The rule as JSON values. The partition is not in it: a table saves it once, for all of its rules."""
        return {"kind": "cells", "plus": list(self.plus), "minus": list(self.minus)}

    def describe(self, x: str = "x", x_prime: str = "x_prime") -> str:
        """The rule in words."""
        guessed = ((x, self.plus), (x_prime, self.minus))
        guesses = [f"guess {name} in {len(cells)} of them" for name, cells in guessed if cells]
        rule = "; ".join(guesses) or "never guess"
        return f"Look at the cell of the output, of {self.partition.size} fitted on the pilot of all inputs: {rule}."


def cell_score_from_dict(record: Mapping[str, Any]) -> CellScore:
    """The rule of a record whose "partition" was put back; ValueError if it has none or the cells overlap."""
    if "partition" not in record:
        raise ValueError("a score on cells needs the partition of its table.")
    partition = Partition.from_dict(record["partition"])
    plus, minus = (tuple(int(cell) for cell in record[name]) for name in ("plus", "minus"))
    if set(plus) & set(minus) or not all(0 <= cell < partition.size for cell in (*plus, *minus)):
        raise ValueError("cells of a score must be different ones of its partition.")
    return CellScore(partition, plus, minus)
