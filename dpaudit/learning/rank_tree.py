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


SIZES = TreeSizes()


@functools.lru_cache(maxsize=16)
def _log_rising(strength: float, size: int) -> FloatArray:
    """Logarithms of Gamma(k + strength) / Gamma(strength) for k below a size."""
    return np.asarray(scipy.special.gammaln(np.arange(size) + strength) - scipy.special.gammaln(strength))


def _table(strength: float, largest: int) -> FloatArray:
    return _log_rising(strength, 1 << int(largest + 1).bit_length())


@dataclasses.dataclass(frozen=True)
class Level:
    """Cells of one level: first and last distinct value (exclusive), whether each splits, label 1 and draws in it."""

    first: NDArray[np.intp]
    last: NDArray[np.intp]
    splits: NDArray[np.bool_]
    ones: NDArray[np.intp]
    draws: NDArray[np.intp]


class Cells:
    """The dyadic cells of one view's values, with the labels in them.

    Parameters
    ----------
    values : ndarray of float, shape (draws,)
    labels : ndarray of int, shape (draws,)
        1 for x, 0 for x_prime.
    """

    def __init__(self, values: FloatArray, labels: Labels) -> None:
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        is_new = np.ones(len(ordered), dtype=bool)
        is_new[1:] = ordered[1:] != ordered[:-1]
        if np.isnan(ordered[-1]):
            is_new[int(np.argmax(np.isnan(ordered))) + 1 :] = False
        starts = np.flatnonzero(is_new)
        self.values = ordered[starts]
        self.ends = np.append(starts, len(ordered))
        self.ones = np.concatenate([[0], np.cumsum(labels[order])])[self.ends]
        self.levels: list[Level] = []
        first, last = np.array([0]), np.array([len(starts)])
        while len(first):
            half = (self.ends[first] + self.ends[last]) / 2.0
            middle = np.searchsorted(self.ends, half)
            below = half - self.ends[np.maximum(middle - 1, 0)] < self.ends[np.minimum(middle, len(starts))] - half
            middle = np.clip(np.where(below, middle - 1, middle), first + 1, np.maximum(last - 1, first + 1))
            ones, draws = self.ones[last] - self.ones[first], self.ends[last] - self.ends[first]
            splits = (last - first > 1) & (len(self.levels) < SIZES.depth) & (draws >= SIZES.min_split)
            self.levels.append(Level(first, last, splits, ones, draws))
            at = np.flatnonzero(splits)
            first, last = (
                np.stack([first[at], middle[at]], axis=1).ravel(),
                np.stack([middle[at], last[at]], axis=1).ravel(),
            )

    @property
    def draws(self) -> int:
        return int(self.ends[-1])


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
        # A saved result reads the text of an infinity back as a number.
        edges, p = (np.array([float.fromhex(str(one)) for one in record[key]]) for key in ("edges", "p"))
        if len(p) != len(edges) + 1 or not np.all((p >= 0.0) & (p <= 1.0)) or np.any(np.diff(edges) < 0.0):
            raise ValueError("steps must have rising edges and one more probability than edges.")
        return cls(edges, p)


def _steps(cells: Cells, starts: list[NDArray[np.intp]], means: list[FloatArray], evidence: float) -> Steps:
    """The step function of leaves, whose neighbours of one probability are joined."""
    begin, p = np.concatenate(starts), np.concatenate(means)
    order = np.argsort(begin)
    begin, p = begin[order], p[order]
    differs = np.flatnonzero(np.abs(np.diff(p)) > 1e-9) + 1
    begin, p = begin[np.concatenate([[0], differs])], p[np.concatenate([[0], differs])]
    low, high = cells.values[begin[1:] - 1], cells.values[begin[1:]]
    with np.errstate(all="ignore"):
        middle = low / 2.0 + high / 2.0
    return Steps(np.where(np.isfinite(middle) & (middle < high), np.maximum(middle, low), low), p, evidence)


def pruned_tree(cells: Cells, strengths: tuple[float, ...] = SIZES.strengths) -> Steps:
    """The average over all prunings of the tree: see the module."""
    total = cells.draws
    shares = np.log(np.array(SIZES.shares[: len(strengths)]) / sum(SIZES.shares[: len(strengths)]))
    sides = [_table(s / 2.0, total) for s in strengths]
    both = [_table(s, total) for s in strengths]
    own_of: list[FloatArray] = []
    mean_of: list[FloatArray] = []
    mixed_of: list[FloatArray] = []
    mixed = np.zeros(0)
    for depth in range(len(cells.levels) - 1, -1, -1):
        level = cells.levels[depth]
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
            mean = sum(
                part * (ones + s / 2.0) / (level.draws + s) for part, s in zip(parts, strengths, strict=True)
            ) / norm
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
    reach, p = np.ones(1), np.zeros(1)
    starts: list[NDArray[np.intp]] = []
    means: list[FloatArray] = []
    for level, own, now, mean in zip(cells.levels, own_of[::-1], mixed_of[::-1], mean_of[::-1], strict=True):
        halt = np.where(level.splits, np.exp(np.minimum(0.0, own - LOG_2 - now)), 1.0)
        p = p + reach * halt * mean
        reach = reach * (1.0 - halt)
        starts.append(level.first[~level.splits])
        means.append(p[~level.splits])
        at = np.flatnonzero(level.splits)
        reach, p = np.repeat(reach[at], 2), np.repeat(p[at], 2)
    return _steps(cells, starts, means, float(mixed[0]) + LOG_2 * total)


def _inherit(cells: Cells) -> Steps:
    strengths = np.array(SIZES.strengths)[:, None]
    atoms = max(1, int((np.diff(cells.ends) >= SIZES.min_atom).sum()))
    q = np.array([0.5])
    starts: list[NDArray[np.intp]] = []
    means: list[FloatArray] = []
    for depth, level in enumerate(cells.levels):
        ones, draws = level.ones, level.draws
        if depth:
            is_atom = (level.last - level.first == 1) & (draws >= SIZES.min_atom)
            leave = np.minimum(SIZES.leaving, np.where(is_atom, 1.0 / atoms, 1.0 / len(ones)))
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
    return _steps(cells, starts, means, 0.0)


def inheriting_tree(cells: Cells, values: FloatArray, labels: Labels) -> Steps:
    """The tree whose cells inherit: see the module. Its evidence is of draws that it was not grown on, half by half."""
    fold = np.arange(len(values)) % 2
    evidence = 0.0
    for k in (0, 1):
        held = fold != k
        p = _inherit(Cells(values[~held], labels[~held]))(values[held])
        evidence += log_likelihood(p, labels[held])
    steps = _inherit(cells)
    return dataclasses.replace(steps, evidence=evidence)


def log_likelihood(p: FloatArray, labels: Labels) -> float:
    """Nats by which probabilities foretell labels better than a fair coin."""
    safe = np.clip(p, 1e-9, 1.0 - 1e-9)
    return float(np.log(np.where(labels == 1, safe, 1.0 - safe)).sum()) + LOG_2 * len(labels)
