"""Thresholds: the two cuts of a score with the best objective on the training draws, and where cuts may lie."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.objectives import Objective
from dpaudit.learning.rules import ABSTAIN
from dpaudit.privacy.claims import FloatArray

LEVELS = 24  # thresholds tried in each tail, at geometrically spaced masses


@dataclasses.dataclass(frozen=True)
class Tails:
    """Masses below and above each cut under both labels, those of NaN, and the draws that they are of.

    `highs` are the thresholds of guesses above a cut, where they are other doubles than those of guesses below it.
    """

    cuts: FloatArray
    left1: FloatArray
    left0: FloatArray
    right1: FloatArray
    right0: FloatArray
    nan1: float
    nan0: float
    trained_on: float
    highs: FloatArray | None = None

    @functools.cached_property
    def rates(self) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """At each pair of cuts, rates of correct and of wrong guesses with the sign that is right more often.

        The third is where that sign is +1. Each of shape (places,).
        """
        low, high, _ = _legal_cuts(len(self.cuts))
        rising = 0.5 * (self.right1[high] + self.left0[low])
        falling = 0.5 * (self.right0[high] + self.left1[low])
        return np.maximum(rising, falling), np.minimum(rising, falling), rising >= falling


@dataclasses.dataclass(frozen=True)
class Choice:
    """Positions of two cuts, the sign and the guess at NaN, with their rates on the training draws."""

    low: int
    high: int
    sign: int
    nan_guess: int
    correct: float
    wrong: float


def choices(tails: Tails, objective: Objective) -> list[Choice]:
    """The cuts that are best in different ways, by the masses below and above each cut under both labels.

    The ways: the expected bound; if wealth is chased, also its growth taken hopefully and cautiously, and the largest
    difference of correct and wrong guesses, which uses all of the evidence where every bit of it is weak.
    """
    nan1, nan0, trained_on = tails.nan1, tails.nan0, tails.trained_on
    low, high, sides = _legal_cuts(len(tails.cuts))  # (places,): pairs of positions
    correct, wrong, is_rising = tails.rates
    bound, hopeful, cautious = objective.ways(correct, wrong, sides, np.full((), trained_on))
    chosen = []
    for table in [bound, hopeful, cautious, correct - wrong] if objective.chase_wealth else [bound]:
        place = int(np.argmax(table))
        c, w, nan_guess = float(correct[place]), float(wrong[place]), ABSTAIN
        if nan1 + nan0 > 0.0:
            gains = np.array([c, c + 0.5 * nan0, c + 0.5 * nan1]), np.array([w, w + 0.5 * nan1, w + 0.5 * nan0])
            merits = objective.merits(*gains, np.full(3, 2), np.full(3, trained_on))
            nan_guess = max((ABSTAIN, 0, 1), key=lambda guess: merits[guess + 1])
            c, w = float(gains[0][nan_guess + 1]), float(gains[1][nan_guess + 1])
        chosen.append(Choice(int(low[place]), int(high[place]), 1 if is_rising[place] else -1, nan_guess, c, w))
    return chosen


@functools.lru_cache(maxsize=64)
def _legal_cuts(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int_]]:
    """Positions of two cuts in order, of which one leaves something to guess, and how many sides are guessed on."""
    low, high = np.triu_indices(size)
    sides = (low > 0).astype(int) + (high < size - 1).astype(int)
    legal = (sides > 0) | (size == 1)
    return low[legal], high[legal], sides[legal]


def best_thresholds(
    counts1: FloatArray, counts0: FloatArray, objective: Objective
) -> tuple[tuple[int, float], int, int, int, int]:
    """Of all rules with two cuts between cells, the best: its merit, positions of the cuts, sign and guess at NaN.

    Parameters
    ----------
    counts1, counts0 : ndarray, shape (cells,)
        Training draws with label 1 and 0 in each cell; the last cell is NaN's.
    objective : Objective

    Returns
    -------
    (merit, low, high, sign, nan_guess)
        The cells before position `low` and those from position `high` on are guessed, except NaN's.
    """
    n1, n0 = max(float(counts1.sum()), 1.0), max(float(counts0.sum()), 1.0)
    left1, left0 = (np.concatenate([[0.0], np.cumsum(c[:-1])]) / n for c, n in ((counts1, n1), (counts0, n0)))
    right1, right0 = left1[-1] - left1, left0[-1] - left0
    nan1, nan0 = float(counts1[-1]) / n1, float(counts0[-1]) / n0
    tails = Tails(np.arange(float(len(left1))), left1, left0, right1, right0, nan1, nan0, n1 + n0)
    chosen = choices(tails, objective)
    correct, wrong = (np.array([getattr(choice, name) for choice in chosen]) for name in ("correct", "wrong"))
    cuts = len(left1)
    sides = np.array([max(int(c.low > 0) + int(c.high < cuts - 1), int(c.nan_guess != ABSTAIN)) for c in chosen])
    merits = objective.merits(correct, wrong, sides, np.full(len(chosen), n1 + n0))
    best = max(range(len(chosen)), key=lambda k: merits[k])
    choice = chosen[best]
    return merits[best], choice.low, choice.high, choice.sign, choice.nan_guess


def cuts_between(s1: FloatArray, s0: FloatArray) -> FloatArray:
    """Thresholds between distinct scores, at geometrically spaced masses in both tails, with -inf and inf."""
    both = np.sort(np.concatenate([s1, s0]), kind="stable")  # both are sorted: they are only merged
    size = len(both)
    if size < 2:
        middle = both if size else np.zeros(1)
        return np.array([-math.inf, *middle[np.isfinite(middle)], math.inf])
    positions = places_of_cuts(size)
    # Move each position to where the score changes, to either side, so that equal scores stay together.
    starts = np.searchsorted(both, both[positions], side="left")
    ends = np.searchsorted(both, both[positions], side="right")
    edges = np.unique(np.concatenate([starts, ends]))
    edges = edges[(edges > 0) & (edges < size)]
    cuts = between_values(both[edges - 1], both[edges])
    return np.unique(np.concatenate([[-math.inf], cuts[np.isfinite(cuts)], [math.inf]]))


@functools.lru_cache(maxsize=64)
def places_of_cuts(size: int) -> NDArray[np.intp]:
    """Before which of so many ordered draws thresholds may lie: at geometrically spaced masses in both tails."""
    masses = np.geomspace(min(1.5 / max(size, 1), 0.4), 0.5, LEVELS)
    positions = np.unique(np.concatenate([masses, 1.0 - masses]) * size).astype(int)
    positions = np.unique(np.clip(positions, 1, max(size - 1, 1)))
    positions.setflags(write=False)  # all callers get the same
    return positions


def between_values(low: FloatArray, high: FloatArray) -> FloatArray:
    """Thresholds between values: their middles where there is a double there."""
    with np.errstate(invalid="ignore", over="ignore"):
        cuts = 0.5 * (low + high)
    exact = (cuts <= low) | ~np.isfinite(cuts)  # neighbouring doubles, or an infinite end
    cuts[exact] = _between(low[exact], high[exact])
    return np.asarray(cuts)


def _between(low: FloatArray, high: FloatArray) -> FloatArray:
    """A finite threshold t with low <= t <= high, where no double lies between them or an end is infinite.

    Of two neighbouring doubles it is the lower one, which the event above it excludes and the one below it too.
    """
    largest = np.finfo(float).max
    with np.errstate(invalid="ignore"):  # infinite ends are replaced below
        above_low = np.minimum(low + np.abs(low) + 1.0, largest)
        below_high = np.maximum(high - np.abs(high) - 1.0, -largest)
    low_side = np.where(np.isfinite(high), low, above_low)
    return np.where(np.isfinite(low), low_side, np.where(np.isfinite(high), below_high, 0.0))
