"""Rank trees: the probability of label 1 along the order of one view, at all scales at once.

A dyadic tree over the ranks of a view: every cell splits where half of its draws are; equal values stay together, and
NaN is one value, the last. Two priors over the labels' probabilities on its cells:

* `pruned_trees`: each cell stops or splits, half and half; where it stops, its probability is Beta about 1/2, of one of
  four strengths. The average over all prunings has a closed form (context-tree weighting: Willems, Shtarkov and
  Tjalkens 1995). Best on smooth laws.
* `shift_trees`: the cells of a view shift the log odds of a base, which the first trees and all views gave together; a
  cell inherits its parent's shift or leaves it. They find rare values, narrow intervals and tails in whatever surrounds
  them.

The root is a fair coin, and shifts nothing: a view that tells nothing predicts 1/2.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import UNSAVED, Form, Matrix

LOG_2 = math.log(2.0)  # nats of a fair coin
Labels = NDArray[np.intp]
ShortFloats = NDArray[np.float32]  # log likelihood ratios, to a thousandth of a nat: in two thirds of the time


@dataclasses.dataclass(frozen=True)
class TreeSizes:
    """The priors of rank trees."""

    depth: int = 16  # levels: cells of 1 in 65,536 draws, more than fits see
    strengths: tuple[float, ...] = (1.0, 10.0, 100.0, 1_000.0)  # of Beta laws: decades up to what 1,000 draws can tell
    shares: tuple[float, ...] = (0.4, 0.25, 0.2, 0.15)  # of the strengths, the weakest first
    leaving: float = 0.5  # the most probability with which a cell leaves what its parent says
    leaving_at_ends: float = (
        0.05  # the same of the first and the last cell of a level: what is rare is mostly in a tail
    )
    min_split: int = 6  # draws of a cell that splits, at an end or with equal values: fewer teach nothing of its halves
    min_split_smooth: int = 16  # of any other cell: fewer are not told from chance in the middle of a view
    min_atom: int = 4  # draws of one value that is an atom
    shifts: tuple[float, ...] = (-6.0, -2.5, -1.0, -0.4, -0.15, 0.0, 0.15, 0.4, 1.0, 2.5, 6.0)  # of log odds
    differs: float = 0.02  # shifts of neighbouring cells that are told apart: less is worth no bet


SIZES = TreeSizes()


def _log_rising(strength: float, counts: NDArray[np.intp]) -> FloatArray:
    """Logarithms of Gamma(k + strength) / Gamma(strength) for counts k."""
    return np.asarray(scipy.special.gammaln(counts + strength) - scipy.special.gammaln(strength))


@dataclasses.dataclass(frozen=True)
class Level:
    """Cells of one level of all trees: tree, first and last value (exclusive), whether each splits, label 1, draws."""

    tree: NDArray[np.intp]
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    splits: NDArray[np.bool_]
    ones: NDArray[np.intp]
    draws: NDArray[np.intp]


@dataclasses.dataclass(frozen=True, eq=False)
class Ordered:
    """The distinct values of one view, increasing (NaN last), with their draws and those of label 1.

    Neighbours that no cell tells apart count as one, from `first` to `values`.
    """

    first: FloatArray
    values: FloatArray
    draws: NDArray[np.intp]
    ones: NDArray[np.intp]
    order: NDArray[np.intp] | None = None  # of the draws, by their values

    @classmethod
    def of(cls, values: FloatArray, labels: Labels) -> Ordered:
        """Of draws with these values and labels (1 for x, 0 for x_prime), shape (draws,) each."""
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        is_new = np.ones(len(ordered), dtype=bool)
        is_new[1:] = ordered[1:] != ordered[:-1]
        if len(ordered) and np.isnan(ordered[-1]):
            is_new[int(np.argmax(np.isnan(ordered))) + 1 :] = False
        # Of those that no cell tells apart one is enough: half of what a cell in the middle needs to split. What is
        # repeated, or near an end, stays by itself.
        alone = np.append(~is_new[1:], False) | ~is_new
        alone[1:] |= alone[:-1].copy()
        place, ends = np.arange(len(ordered)), SIZES.min_split_smooth
        alone |= (place < ends) | (place >= len(ordered) - ends) | (place % (ends // 2) == 0)
        starts = np.flatnonzero(is_new & alone)
        after = np.append(starts[1:], len(ordered))
        return cls(ordered[starts], ordered[after - 1], after - starts, np.add.reduceat(labels[order], starts), order)

    def summed(self, of_draws: FloatArray) -> FloatArray:
        """Sums over the draws of each value, shape (kinds, values), of numbers of shape (kinds, draws)."""
        assert self.order is not None
        ordered = of_draws[:, self.order]
        if len(self.values) == len(self.order):
            return ordered
        return np.add.reduceat(ordered, np.cumsum(self.draws) - self.draws, axis=1)

    @classmethod
    def of_counts(cls, counts: NDArray[np.int64]) -> Ordered:
        """Of counts of label 0 and 1 in a row of bins, shape (2, bins); values are the bins' numbers."""
        values = np.arange(counts.shape[1], dtype=float)
        return cls(values, values, counts.sum(axis=0), counts[1])


class Forest:
    """The dyadic cells of several views, level by level, all views at once.

    Parameters
    ----------
    views : sequence of Ordered
    """

    def __init__(self, views: Sequence[Ordered]) -> None:
        self.views = views
        self.offsets = np.concatenate([[0], np.cumsum([len(view.values) for view in views])])
        none = np.zeros(0, dtype=np.intp)
        self.ends = np.concatenate([[0], np.cumsum(np.concatenate([none, *(view.draws for view in views)]))])
        self.ones = np.concatenate([[0], np.cumsum(np.concatenate([none, *(view.ones for view in views)]))])
        self.draws = np.array([int(view.draws.sum()) for view in views], dtype=np.intp)
        self.levels: list[Level] = []
        self.repeats = np.concatenate([none > 0, *((view.draws > 1) & ~(view.first < view.values) for view in views)])
        repeats = np.concatenate([[0], np.cumsum(self.repeats)])
        tree = np.arange(len(views))
        first, last = self.offsets[:-1], self.offsets[1:]
        most = len(self.ends) - 1
        while len(first):
            half = (self.ends[first] + self.ends[last]) / 2.0
            middle = np.searchsorted(self.ends, half)
            below = half - self.ends[np.maximum(middle - 1, 0)] < self.ends[np.minimum(middle, most)] - half
            middle = np.clip(np.where(below, middle - 1, middle), first + 1, np.maximum(last - 1, first + 1))
            ones, draws = self.ones[last] - self.ones[first], self.ends[last] - self.ends[first]
            is_end = (first == self.offsets[tree]) | (last == self.offsets[tree + 1])
            fewest = np.where(is_end | (repeats[last] > repeats[first]), SIZES.min_split, SIZES.min_split_smooth)
            splits = (last - first > 1) & (len(self.levels) < SIZES.depth) & (draws >= fewest)
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
        view = self.forest.views[tree]
        return Steps(between(view.values[begin[1:] - 1], view.first[begin[1:]]), p, float(self.evidence[tree]))


@dataclasses.dataclass(frozen=True, eq=False)
class Steps(Form):
    """A step function of a view: probability `probabilities[k]` above `edges[k-1]`, up to `edges[k]`; NaN comes last.

    `evidence` is how many nats the labels of the past speak for it, above a fair coin.
    """

    edges: FloatArray
    probabilities: FloatArray = dataclasses.field(metadata={"name": "p"})
    evidence: float = dataclasses.field(default=0.0, metadata=UNSAVED)

    exact = True

    def __call__(self, values: FloatArray) -> FloatArray:
        """Probabilities of label 1, shape (draws,)."""
        return self.probabilities[np.minimum(np.searchsorted(self.edges, values), len(self.probabilities) - 1)]

    def steepest(self, most: int) -> FloatArray:
        """The edges at which the log odds move most."""
        log_odds = scipy.special.logit(np.clip(self.probabilities, 1e-9, 1.0 - 1e-9))
        return self.edges[np.argsort(-np.abs(np.diff(log_odds)), kind="stable")[:most]]

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Steps:
        """The steps that `to_dict` wrote; ValueError where it is no step function of probabilities."""
        steps = super().from_dict(record)
        edges, p = steps.edges, steps.probabilities
        if len(p) != len(edges) + 1 or not np.all((p >= 0.0) & (p <= 1.0)) or not rise(edges):
            raise ValueError("steps must have rising edges and one more probability than edges.")
        return steps


def pruned_trees(forest: Forest, said: FloatArray | None = None) -> Grown:
    """The average over all prunings of each tree: see the module.

    Where log odds of all values are `said` beforehand, a cell that stops has its one probability or theirs, half and
    half: what a regression says is heard where labels are few, as in tails, and where it fits them.
    """
    shares, strengths = np.log(SIZES.shares), SIZES.strengths
    heard = None
    if said is not None:
        ones, draws = np.diff(forest.ones), np.diff(forest.ends)
        heard = np.append(0.0, np.cumsum(ones * said + draws * scipy.special.log_expit(-said)))
    heard_of: list[FloatArray] = []
    own_of: list[FloatArray] = []
    mean_of: list[FloatArray] = []
    mixed_of: list[FloatArray] = []
    mixed = np.zeros(0)
    for depth in range(len(forest.levels) - 1, -1, -1):
        level = forest.levels[depth]
        ones, zeros = level.ones, level.draws - level.ones
        if depth:
            logs = np.stack([
                share + _log_rising(s / 2.0, ones) + _log_rising(s / 2.0, zeros) - _log_rising(s, level.draws)
                for share, s in zip(shares, strengths, strict=True)
            ])  # fmt: skip
            top = logs.max(axis=0)
            parts = np.exp(logs - top)
            norm = parts.sum(axis=0)
            own = top + np.log(norm)
            mean = (
                sum((ones + s / 2.0) / (level.draws + s) * part for part, s in zip(parts, strengths, strict=True))
                / norm
            )
        else:
            own, mean = -LOG_2 * level.draws.astype(float), np.full(len(ones), 0.5)
        if heard is not None:
            other = heard[level.last] - heard[level.first]
            both = np.logaddexp(own, other) - LOG_2
            heard_of.append(np.exp(other - LOG_2 - both))
            own, mean = both, (1.0 - heard_of[-1]) * mean
        now = own.astype(float)
        at = np.flatnonzero(level.splits)
        if len(at):
            now[at] = np.logaddexp(own[at], mixed[0::2] + mixed[1::2]) - LOG_2
        mixed = now
        own_of.append(own)
        mean_of.append(np.asarray(mean))
        mixed_of.append(now)
    reach, p, listening = np.ones(len(forest.views)), np.zeros(len(forest.views)), np.zeros(len(forest.views))
    starts: list[NDArray[np.intp]] = []
    means: list[FloatArray] = []
    listened: list[FloatArray] = []  # how much of what was said a leaf hears
    heard_of = heard_of or [np.zeros(len(own)) for own in own_of]
    of_levels = zip(forest.levels, own_of[::-1], mixed_of[::-1], mean_of[::-1], heard_of[::-1], strict=True)
    for level, own, now, mean, share in of_levels:
        halt = np.where(level.splits, np.exp(np.minimum(0.0, own - LOG_2 - now)), 1.0)
        p, listening = p + reach * halt * mean, listening + reach * halt * share
        reach = reach * (1.0 - halt)
        starts.append(level.first[~level.splits])
        means.append(p[~level.splits])
        listened.append(listening[~level.splits])
        at = np.flatnonzero(level.splits)
        reach, p, listening = (np.repeat(one[at], 2) for one in (reach, p, listening))
    begin, q = np.concatenate(starts), np.concatenate(means)
    order = np.argsort(begin)
    begin, q = begin[order], q[order]
    if said is not None:
        places = np.arange(len(said))
        own = np.searchsorted(begin, places, side="right") - 1
        begin, q = places, q[own] + np.concatenate(listened)[order][own] * scipy.special.expit(said)
    return Grown(forest, begin, q, mixed + LOG_2 * forest.draws)


@dataclasses.dataclass(frozen=True, eq=False)
class Shifts(Form):
    """Shifts of a base's log odds by a tree along one view: weights of `SIZES.shifts` in each cell.

    Cell k is above `edges[k-1]` and up to `edges[k]`; `weights` has shape (cells, shifts). `evidence` is how many nats
    the average over all trees of shifts tells more of the labels than the base.
    """

    edges: FloatArray
    weights: Matrix
    evidence: float = dataclasses.field(default=0.0, metadata=UNSAVED)

    exact = True

    def __call__(self, values: FloatArray, log_odds: FloatArray) -> FloatArray:
        """Probabilities of label 1 of draws with these values of the view and these log odds of the base."""
        own = np.minimum(np.searchsorted(self.edges, values), len(self.weights) - 1)
        found, odds_against = np.zeros(len(values)), np.exp(-log_odds)
        for weights, shift in zip(np.ascontiguousarray(self.weights.T), SIZES.shifts, strict=True):
            if weights.any():  # draw by draw, whatever the batch
                found += weights[own] / (1.0 + math.exp(-shift) * odds_against)
        return found

    def steepest(self, most: int) -> FloatArray:
        """The edges at which the log odds move most."""
        return self.edges[np.argsort(-np.abs(np.diff(self.weights @ np.array(SIZES.shifts))), kind="stable")[:most]]

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Shifts:
        """The shifts that `to_dict` wrote; ValueError where it is none."""
        shifts = super().from_dict(record)
        edges, weights = shifts.edges, shifts.weights
        is_mean = weights.shape == (len(edges) + 1, len(SIZES.shifts)) and np.all(weights >= 0.0)
        if not is_mean or not np.allclose(weights.sum(axis=1), 1.0, rtol=0.0, atol=1e-6) or not rise(edges):
            raise ValueError("shifts must have rising edges, and in each cell weights of every shift that sum to 1.")
        return shifts


def shift_likelihoods(log_odds: FloatArray, ones: FloatArray | Labels, draws: FloatArray | Labels) -> FloatArray:
    """Log likelihood of labels at each shift of the log odds, shape (shifts, values)."""
    moved = log_odds + np.array(SIZES.shifts)[:, None]
    return np.asarray(draws * scipy.special.log_expit(-moved) + ones * moved)  # log p: log(1 - p) plus the log odds


def shift_trees(forest: Forest, likelihoods: FloatArray) -> list[Shifts]:
    """Trees whose cells shift a base's log odds: a cell inherits its parent's shift, unless its draws say otherwise.

    A priori 0.3 cells of a level and half an atom leave in the mean, and cells at both ends more easily: what is rare
    is mostly in a tail. So rare values, narrow intervals and tails are found anywhere. The sum over all such trees is
    exact: likelihoods are passed up the tree, and posterior probabilities down (belief propagation: Pearl 1982).

    Parameters
    ----------
    forest : Forest
    likelihoods : ndarray of float, shape (shifts, values)
        `shift_likelihoods` at every distinct value of every view.
    """
    count, none = len(SIZES.shifts), SIZES.shifts.index(0.0)
    sums = np.zeros((count, likelihoods.shape[1] + 1))
    np.cumsum(likelihoods - likelihoods[none], axis=1, out=sums[:, 1:])  # over no shift: small enough for short floats
    is_repeated = forest.repeats & (np.diff(forest.ends) >= SIZES.min_atom)
    atoms = np.maximum(np.diff(np.append(0, np.cumsum(is_repeated))[forest.offsets]), 1)
    of_state: list[ShortFloats] = []  # likelihood of all below a cell, by its shift, over that of its best one
    of_parent: list[ShortFloats] = []  # the same, by its parent's
    leaving: list[ShortFloats] = []
    logs = below = np.zeros((count, 0), dtype=np.float32)
    for level in forest.levels[::-1]:
        logs = (sums[:, level.last] - sums[:, level.first]).astype(np.float32)
        logs[:, level.splits] = below[:, 0::2] + below[:, 1::2]
        cells = np.bincount(level.tree, minlength=len(forest.views))[level.tree]
        is_atom = (level.last - level.first == 1) & is_repeated[level.first]
        is_end = (level.first == forest.offsets[level.tree]) | (level.last == forest.offsets[level.tree + 1])
        leave = np.where(is_atom, 0.5 / atoms[level.tree], np.where(is_end, SIZES.leaving_at_ends, 0.3 / cells))
        leaving.append(np.minimum(SIZES.leaving, leave).astype(np.float32))
        top = logs.max(axis=0)
        of_state.append(np.exp(logs - top))
        of_parent.append(_left(of_state[-1], leaving[-1]))
        below = np.log(of_parent[-1]) + top
    evidence = logs[none]
    weights = np.zeros((count, len(forest.views)), dtype=np.float32)
    weights[none] = 1.0
    starts: list[NDArray[np.intp]] = []
    kept: list[ShortFloats] = []
    for depth, level in enumerate(forest.levels):
        if depth:
            weights = _left(weights / of_parent[-1 - depth], leaving[-1 - depth]) * of_state[-1 - depth]
            weights /= weights.sum(axis=0)
        starts.append(level.first[~level.splits])
        kept.append(weights[:, ~level.splits])
        weights = np.repeat(weights[:, level.splits], 2, axis=1)
    begin = np.concatenate(starts)
    order = np.argsort(begin)
    begin, of_cells = begin[order], np.concatenate(kept, axis=1)[:, order].T.astype(float)
    of_cells /= of_cells.sum(axis=1, keepdims=True)
    shift = of_cells @ np.array(SIZES.shifts)
    found = []
    for k, view in enumerate(forest.views):
        low, high = np.searchsorted(begin, forest.offsets[[k, k + 1]])
        own, of_own = begin[low:high] - forest.offsets[k], of_cells[low:high]
        keep = np.concatenate([[0], np.flatnonzero(np.abs(np.diff(shift[low:high])) > SIZES.differs) + 1])
        own, of_own = own[keep], of_own[keep]
        found.append(Shifts(between(view.values[own[1:] - 1], view.first[own[1:]]), of_own, float(evidence[k])))
    return found


def _left(of_shifts: ShortFloats, leave: ShortFloats) -> ShortFloats:
    """The same after a step that keeps a shift, or leaves it for any; shape (shifts, cells)."""
    return np.asarray((np.float32(1.0) - leave) * of_shifts + leave * of_shifts.mean(axis=0))


def rise(edges: FloatArray) -> bool:
    """Tell whether edges are in order, and none is NaN."""
    return not np.isnan(edges).any() and bool(np.all(edges[1:] >= edges[:-1]))


def between(below: FloatArray, above: FloatArray) -> FloatArray:
    """Halfway from one cell's last value to the next one's first, where that is a number."""
    with np.errstate(all="ignore"):
        middle = below / 2.0 + above / 2.0
    return np.where(np.isfinite(middle) & (middle < above), np.maximum(middle, below), below)


def log_likelihood_gain(p: FloatArray, labels: Labels) -> float:
    """Nats by which probabilities foretell labels better than a fair coin."""
    safe = np.clip(p, 1e-9, 1.0 - 1e-9)
    return float(np.log(np.where(labels == 1, safe, 1.0 - safe)).sum()) + LOG_2 * len(labels)
