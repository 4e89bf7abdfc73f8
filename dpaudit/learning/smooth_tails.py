"""Thresholds of sums of many weak columns: from a slope that all draws tell, not from the few draws beyond them.

How right a guess far out in a tail is, few draws of a pilot tell: their noise is larger than what is to be found, and
whoever takes it into account stays in the middle. Where a score adds up many columns, its log-odds grow in proportion
to it, or nearly so, and one slope says what they are everywhere. The slope is taken from draws that the score was not
fitted on. Where the tails clearly show less than it says (log-odds that level off), nothing is said.

Validity: all of this happens on draws before the first counted one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.learning.fitted_scores import fit_scores
from dpaudit.learning.hints import NO_HINTS, Hints
from dpaudit.learning.histograms import Coordinate, Histogram
from dpaudit.learning.scores import Score, Viewed
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.vectors import Linear, Summary

MASSES = (0.0, *np.geomspace(0.004, 0.5, 15).tolist())  # of a tail that is guessed on
SLOPE_DEVIATIONS = 1.0  # by which the slope is lowered
SHORT_DEVIATIONS = 1.5  # by which a tail may show less than the slope says
LEAST_TERMS = 4.0  # columns, as equal ones, that a sum has
VARIANCE_DRAWS = 1_024  # that this is taken from
MISFIT_DEVIATIONS = 3.0  # by which tails of any size may show less or more
STEPS = 8  # of Newton's method


@dataclasses.dataclass(frozen=True)
class SmoothTails:
    """What rules of one kind of score are expected to show, by the masses of the tails that they guess on.

    Attributes
    ----------
    kind : str
        What finds the score again, see `dpaudit.learning.candidates.by_kind`.
    sign : int
        +1 where larger scores speak for x, -1 where smaller ones do.
    low, high : ndarray of float, shape (rules,)
        Shares of all outcomes that are guessed as x_prime at one end of the scores, and as x at the other.
    correct, wrong : ndarray of float, shape (rules,)
        Rates of guesses.
    seen_correct, seen_wrong : ndarray of float, shape (rules,)
        The same as they were on the draws themselves.
    draws : float
    """

    kind: str
    sign: int
    low: FloatArray
    high: FloatArray
    correct: FloatArray
    wrong: FloatArray
    seen_correct: FloatArray
    seen_wrong: FloatArray
    draws: float

    @property
    def surplus(self) -> FloatArray:
        """Standard errors by which guesses are right more often on the draws than the slope says, shape (rules,)."""
        guesses = np.maximum(self.seen_correct + self.seen_wrong, 1e-150)
        expected = self.correct / np.maximum(self.correct + self.wrong, 1e-150)
        error = np.sqrt(expected * (1.0 - expected) / (guesses * self.draws))
        return np.asarray((self.seen_correct / guesses - expected) / np.maximum(error, 1e-150))

    @property
    def is_borne_out(self) -> NDArray[np.bool_]:
        """Whether the draws in the tails do not clearly show less than the slope says, shape (rules,)."""
        return self.surplus >= -SHORT_DEVIATIONS

    @property
    def is_smooth(self) -> bool:
        """Whether the draws agree with one slope in tails of every size: log-odds that level off do not."""
        of_both = (self.low == self.high) & (self.low > 0.0)
        return bool(np.all(np.abs(self.surplus[of_both]) <= MISFIT_DEVIATIONS))


def effective_terms(score: Score, outcomes: Outcomes) -> float:
    """How many columns a score adds up, as equal ones, by the variances of the terms; 1 if it is no sum.

    Of a single column, or a few, the log-odds may level off anywhere; of a sum of many terms, none of which stands out,
    they are nearly straight.
    """
    if isinstance(score, Viewed):
        if isinstance(score.view, Summary) and isinstance(score.score, Coordinate):
            adds_up = set(score.view.names) <= {"sum", "number above their centres"}
            varies = score.view.standardised_variances(outcomes) > 0.0
            return float(np.count_nonzero(varies)) if adds_up else 1.0
        return effective_terms(score.score, score.view(outcomes))
    if isinstance(score, Linear):
        clipped = np.clip(outcomes.numbers, score.low, score.high)
        variances = np.where(np.isnan(clipped), score.fill, clipped).var(axis=0) * score.weights**2
    elif isinstance(score, Histogram) and len(score.columns) > 1:
        variances = np.array([np.var(score.only([k])(outcomes)) for k in range(len(score.columns))])
    else:
        return 1.0
    total = float(variances.sum())
    return total**2 / float(np.square(variances).sum()) if total > 0.0 else 1.0


def smooth_tails(first: Outcomes, second: Outcomes, hints: Hints = NO_HINTS) -> Iterator[SmoothTails]:
    """Of every kind of smooth score that adds up columns, from outcomes under x (`first`) and x_prime (`second`).

    Scores are fitted on one half of the draws and looked at on the other, and the other way round.
    """
    if first.tokens is None and second.tokens is None and first.numbers.shape[1] == second.numbers.shape[1] == 1:
        return
    halves = [[side.rows(slice(k, None, 2)) for side in (first, second)] for k in (0, 1)]
    seen: dict[str, list[tuple[FloatArray, FloatArray]]] = {}
    for known, held in (halves, halves[::-1]):
        for score in fit_scores(known[0], known[1], hints, halves=False):
            some = score.reading(known[0].rows(slice(0, VARIANCE_DRAWS)))
            if effective_terms(score.score, some) >= LEAST_TERMS:
                read = [score.reading(side) for side in held]
                seen.setdefault(score.kind, []).append((score.score(read[0]), score.score(read[1])))
    for kind, folds in seen.items():
        both = [np.concatenate(values) for values in folds]
        if len(folds) == 2 and all(np.all(np.isfinite(values)) and np.ptp(values) > 0.0 for values in both):
            tails = _tails_of(kind, folds)
            if tails.is_smooth:
                yield tails


def _tails_of(kind: str, folds: list[tuple[FloatArray, FloatArray]]) -> SmoothTails:
    standardised = [_standardised(*values) for values in folds]
    slopes, errors = zip(*(_slope(*values) for values in standardised), strict=True)
    mean, sign = abs(float(np.mean(slopes))), 1 if np.mean(slopes) >= 0.0 else -1
    slope = max(mean - SLOPE_DEVIATIONS * math.sqrt(float(np.sum(np.square(errors)))) / 2.0, 0.0)
    low, high = (part.ravel() for part in np.meshgrid(MASSES, MASSES, indexing="ij"))
    rates = np.zeros((4, len(low)))
    size = 0
    for values1, values0 in standardised:
        values = sign * np.concatenate([values1, values0])
        # By turns: where many scores are equal, a part of them is one of both labels.
        turns = np.concatenate([np.arange(len(side)) / len(side) for side in (values1, values0)])
        order = np.lexsort((turns, values))
        right = np.cumsum(scipy.special.expit(slope * values[order]))  # of guesses of x, from below
        is_x = np.cumsum(order < len(values1))
        n = len(values)
        size += n
        below, above = (np.minimum((part * n).astype(int), n // 2) for part in (low, high))
        for row, total in ((0, right), (2, is_x)):
            upper, lower = total[-1] - np.append(0.0, total)[n - above], np.append(0.0, total)[below]
            rates[row] += upper + below - lower
            rates[row + 1] += above - upper + lower
    correct, wrong, seen_correct, seen_wrong = rates / size
    return SmoothTails(kind, sign, low, high, correct, wrong, seen_correct, seen_wrong, float(size))


def _standardised(values1: FloatArray, values0: FloatArray) -> tuple[FloatArray, FloatArray]:
    both = np.concatenate([values1, values0])
    centre, spread = both.mean(), both.std()
    return (values1 - centre) / spread, (values0 - centre) / spread


def _slope(values1: FloatArray, values0: FloatArray) -> tuple[float, float]:
    """The slope of the log-odds of x, which are 0 at 0, and its standard error."""
    slope, information = 0.0, 1.0
    for _ in range(STEPS):
        p1, p0 = scipy.special.expit(slope * values1), scipy.special.expit(slope * values0)
        gradient = float(values1 @ (1.0 - p1) - values0 @ p0)
        information = float(np.square(values1) @ (p1 * (1.0 - p1)) + np.square(values0) @ (p0 * (1.0 - p0)))
        slope += gradient / max(information, 1e-12)
    return slope, 1.0 / math.sqrt(max(information, 1e-12))
