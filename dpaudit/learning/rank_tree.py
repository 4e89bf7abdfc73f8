"""Rank trees: the probability of label 1 along the order of one view, at all scales at once.

A dyadic tree over the ranks of a view: every cell splits where half of its draws are; equal values stay together, and
NaN is one value, the last. Two priors over the labels' probabilities on its cells:

* `PrunedTree`: each cell stops or splits, half and half; where it stops, its probability is Beta about 1/2, of one of
  four strengths. The average over all prunings has a closed form (context-tree weighting: Willems, Shtarkov and Tjalkens
  1995). Best on smooth laws.
* `InheritingTree`: a cell keeps its parent's probability, or leaves it by a Beta law about that. About one cell of a
  level, and one atom, leaves. It finds rare values and narrow intervals in a background whose own probability is not 1/2.

The root is a fair coin: a view that tells nothing predicts 1/2.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

LOG_2 = math.log(2.0)
Labels = NDArray[np.intp]


@dataclasses.dataclass(frozen=True)
class TreeSizes:
    """The priors of rank trees."""

    depth: int = 16  # levels: cells of 1 in 65,536 draws, more than fits see
    strengths: tuple[float, ...] = (1.0, 10.0, 100.0, 1_000.0)  # of Beta laws: decades up to what 1,000 draws can tell
    shares: tuple[float, ...] = (0.4, 0.25, 0.2, 0.15)  # of the strengths, the weakest first
    leaving: float = 0.5  # the most probability with which an inheriting cell leaves its parent's
    min_split: int = 6  # draws of a cell that splits: fewer teach nothing of its halves
    min_atom: int = 4  # draws of one value that is an atom
    differs: float = 0.003  # probabilities of neighbouring cells that are told apart: less is worth no bet


SIZES = TreeSizes()


@functools.lru_cache(maxsize=16)
def _log_rising(strength: float, size: int) -> FloatArray:
    """Logarithms of Gamma(k + strength) / Gamma(strength) for k below a size."""
    return np.asarray(scipy.special.gammaln(np.arange(size) + strength) - scipy.special.gammaln(strength))


def _table(strength: float, largest: int) -> FloatArray:
    return _log_rising(strength, 1 << int(largest + 1).bit_length())


@dataclasses.dataclass(frozen=True)
class Level:
    """Cells of one level of all trees: their tree, first and last value (exclusive), whether each splits, label 1, draws."""

    tree: NDArray[np.intp]
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    splits: NDArray[np.bool_]
    ones: NDArray[np.intp]
    draws: NDArray[np.intp]


@dataclasses.dataclass(frozen=True, eq=False)
class Ordered:
    """The distinct values of one view, increasing (NaN last), with their draws and those of label 1."""

    values: FloatArray
    draws: NDArray[np.intp]
    ones: NDArray[np.intp]

    @classmethod
    def of(cls, values: FloatArray, labels: Labels) -> Ordered:
        """Of draws with these values and labels (1 for x, 0 for x_prime), shape (draws,) each."""
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        is_new = np.ones(len(ordered), dtype=bool)
        is_new[1:] = ordered[1:] != ordered[:-1]
        if len(ordered) and np.isnan(ordered[-1]):
            is_new[int(np.argmax(np.isnan(ordered))) + 1 :] = False
        starts = np.flatnonzero(is_new)
        return cls(ordered[starts], np.diff(np.append(starts, len(ordered))), np.add.reduceat(labels[order], starts))

    @classmethod
    def of_counts(cls, counts: NDArray[np.int64]) -> Ordered:
        """Of counts of label 0 and 1 in a row of bins, shape (2, bins); values are the bins' numbers."""
        return cls(np.arange(counts.shape[1], dtype=float), counts.sum(axis=0), counts[1])


class Forest:
    """The dyadic cells of several views, level by level, all views at once.

    Parameters
    ----------
    views : sequence of Ordered
    """

    def __init__(self, views: Sequence[Ordered]) -> None:
        self.views = views
        self.offsets = np.concatenate([[0], np.cumsum([len(view.values) for view in views])])
        self.ends = np.concatenate([[0], np.cumsum(np.concatenate([view.draws for view in views]))])
        self.ones = np.concatenate([[0], np.cumsum(np.concatenate([view.ones for view in views]))])
        self.draws = np.array([int(view.draws.sum()) for view in views])
        self.levels: list[Level] = []
        tree = np.arange(len(views))
        first, last = self.offsets[:-1], self.offsets[1:]
        most = len(self.ends) - 1
        while len(first):
            half = (self.ends[first] + self.ends[last]) / 2.0
            middle = np.searchsorted(self.ends, half)
            below = half - self.ends[np.maximum(middle - 1, 0)] < self.ends[np.minimum(middle, most)] - half
            middle = np.clip(np.where(below, middle - 1, middle), first + 1, np.maximum(last - 1, first + 1))
            ones, draws = self.ones[last] - self.ones[first], self.ends[last] - self.ends[first]
            splits = (last - first > 1) & (len(self.levels) < SIZES.depth) & (draws >= SIZES.min_split)
            self.levels.append(Level(tree, first, last, splits, ones, draws))
            at = np.flatnonzero(splits)
            tree = np.repeat(tree[at], 2)
            first, last = (
                np.stack([first[at], middle[at]], axis=1).ravel(),
                np.stack([middle[at], last[at]], axis=1).ravel(),
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Grown:
    """Trees that were grown on a forest: their leaves in the order of values, and the evidence of each tree."""

    forest: Forest
    starts: NDArray[np.intp]  # first value of each leaf
    probabilities: FloatArray
    evidence: FloatArray

    def steps(self, tree: int) -> Steps:
        """One of them as a step function; neighbours of one probability are joined."""
        low, high = np.searchsorted(self.starts, self.forest.offsets[[tree, tree + 1]])
        begin, p = self.starts[low:high] - self.forest.offsets[tree], self.probabilities[low:high]
        differs = np.concatenate([[0], np.flatnonzero(np.abs(np.diff(p)) > 1e-9) + 1])
        begin, p = begin[differs], p[differs]
        values = self.forest.views[tree].values
        below, above = values[begin[1:] - 1], values[begin[1:]]
        with np.errstate(all="ignore"):
            middle = below / 2.0 + above / 2.0
        edges = np.where(np.isfinite(middle) & (middle < above), np.maximum(middle, below), below)
        return Steps(edges, p, float(self.evidence[tree]))

    def of_values(self, tree: int) -> FloatArray:
        """The probability at each distinct value of one view, shape (values,)."""
        low, high = self.forest.offsets[[tree, tree + 1]]
        places = np.searchsorted(self.starts, np.arange(low, high), side="right") - 1
        return self.probabilities[places]


@dataclasses.dataclass(frozen=True, eq=False)
class Steps:
    """A step function of a view: probability `probabilities[k]` above `edges[k-1]`, up to `edges[k]`; NaN comes last.

    `evidence` is how many nats the labels of the past speak for it, above a fair coin.
    """

    edges: FloatArray
    probabilities: FloatArray
    evidence: float = 0.0

    def __call__(self, values: FloatArray) -> FloatArray:
        """Probabilities of label 1, shape (draws,)."""
        return self.probabilities[np.minimum(np.searchsorted(self.edges, values), len(self.probabilities) - 1)]

    def to_dict(self) -> dict[str, Any]:
        """The steps as JSON values."""
        return {"edges": [e.hex() for e in self.edges.tolist()], "p": [p.hex() for p in self.probabilities.tolist()]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Steps:
        """What `to_dict` wrote; ValueError where it is no step function of probabilities."""
        edges, p = (np.array([float.fromhex(one) for one in record[key]]) for key in ("edges", "p"))
        if len(p) != len(edges) + 1 or not np.all((p >= 0.0) & (p <= 1.0)) or np.any(np.diff(edges) < 0.0):
            raise ValueError("steps must have rising edges and one more probability than edges.")
        return cls(edges, p)


def pruned_trees(forest: Forest, strengths: tuple[float, ...] = SIZES.strengths) -> Grown:
    """The average over all prunings of each tree: see the module."""
    largest = int(forest.draws.max(initial=0))
    shares = np.log(np.array(SIZES.shares[: len(strengths)]) / sum(SIZES.shares[: len(strengths)]))
    sides = [_table(s / 2.0, largest) for s in strengths]
    both = [_table(s, largest) for s in strengths]
    own_of: list[FloatArray] = []
    mean_of: list[FloatArray] = []
    mixed_of: list[FloatArray] = []
    mixed = np.zeros(0)
    for depth in range(len(forest.levels) - 1, -1, -1):
        level = forest.levels[depth]
        ones, zeros = level.ones, level.draws - level.ones
        if depth:
            logs = np.stack([
                share + side[ones] + side[zeros] - two[level.draws]
                for share, side, two in zip(shares, sides, both, strict=True)
            ])  # fmt: skip
            top = logs.max(axis=0)
            parts = np.exp(logs - top)
            norm = parts.sum(axis=0)
            own = top + np.log(norm)
            mean = sum((ones + s / 2.0) / (level.draws + s) * part for part, s in zip(parts, strengths, strict=True)) / norm
        else:
            own, mean = -LOG_2 * level.draws.astype(float), np.full(len(ones), 0.5)
        now = own.astype(float)
        at = np.flatnonzero(level.splits)
        if len(at):
            now[at] = np.logaddexp(own[at], mixed[0::2] + mixed[1::2]) - LOG_2
        mixed = now
        own_of.append(own)
        mean_of.append(np.asarray(mean))
        mixed_of.append(now)
    reach, p = np.ones(len(forest.views)), np.zeros(len(forest.views))
    starts: list[NDArray[np.intp]] = []
    means: list[FloatArray] = []
    for level, own, now, mean in zip(forest.levels, own_of[::-1], mixed_of[::-1], mean_of[::-1], strict=True):
        halt = np.where(level.splits, np.exp(np.minimum(0.0, own - LOG_2 - now)), 1.0)
        p = p + reach * halt * mean
        reach = reach * (1.0 - halt)
        starts.append(level.first[~level.splits])
        means.append(p[~level.splits])
        at = np.flatnonzero(level.splits)
        reach, p = np.repeat(reach[at], 2), np.repeat(p[at], 2)
    begin, q = np.concatenate(starts), np.concatenate(means)
    order = np.argsort(begin)
    return Grown(forest, begin[order], q[order], mixed + LOG_2 * forest.draws)


def inheriting_trees(forest: Forest) -> Grown:
    """The trees whose cells inherit: see the module. Their evidence is that of the draws that they are grown on, less half
    a logarithm of these for each probability that they tell apart (Schwarz 1978)."""
    strengths = np.array(SIZES.strengths)[:, None]
    has_atoms = np.diff(forest.ends) >= SIZES.min_atom
    atoms = np.maximum(np.diff(np.concatenate([[0], np.cumsum(has_atoms)])[forest.offsets]), 1)
    q = np.full(len(forest.views), 0.5)
    starts: list[NDArray[np.intp]] = []
    means: list[FloatArray] = []
    for depth, level in enumerate(forest.levels):
        ones, draws = level.ones, level.draws
        if depth:
            cells = np.bincount(level.tree, minlength=len(forest.views))[level.tree]
            is_atom = (level.last - level.first == 1) & (draws >= SIZES.min_atom)
            leave = np.minimum(SIZES.leaving, np.where(is_atom, 1.0 / atoms[level.tree], 1.0 / cells))
            stay = ones * np.log(q) + (draws - ones) * np.log1p(-q) + np.log1p(-leave)
            a, b = strengths * q, strengths * (1.0 - q)
            go = scipy.special.betaln(a + ones, b + draws - ones) - scipy.special.betaln(a, b)
            logs = np.concatenate([stay[None], go + np.log(leave / len(strengths))])
            weights = np.exp(logs - logs.max(axis=0))
            weights /= weights.sum(axis=0)
            q = weights[0] * q + (weights[1:] * (ones + a) / (draws + strengths)).sum(axis=0)
        starts.append(level.first[~level.splits])
        means.append(q[~level.splits])
        q = np.repeat(q[level.splits], 2)
    begin, p = np.concatenate(starts), np.concatenate(means)
    order = np.argsort(begin)
    begin, p = begin[order], p[order]
    ends = np.append(begin[1:], len(forest.ends) - 1)
    ones, draws = forest.ones[ends] - forest.ones[begin], forest.ends[ends] - forest.ends[begin]
    safe = np.clip(p, 1e-9, 1.0 - 1e-9)
    told = ones * np.log(2.0 * safe) + (draws - ones) * np.log(2.0 * (1.0 - safe))
    tree = np.searchsorted(forest.offsets, begin, side="right") - 1
    moves = np.concatenate([[False], (np.abs(np.diff(p)) > SIZES.differs) & (np.diff(tree) == 0)])
    free = np.bincount(tree, moves, minlength=len(forest.views))
    evidence = np.bincount(tree, told, minlength=len(forest.views)) - 0.5 * free * np.log(np.maximum(forest.draws, 2))
    return Grown(forest, begin, p, evidence)


def log_likelihood(p: FloatArray, labels: Labels) -> float:
    """Nats by which probabilities foretell labels better than a fair coin."""
    safe = np.clip(p, 1e-9, 1.0 - 1e-9)
    return float(np.log(np.where(labels == 1, safe, 1.0 - safe)).sum()) + LOG_2 * len(labels)
