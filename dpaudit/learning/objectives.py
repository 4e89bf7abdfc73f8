"""Objectives: what a rule is fitted for, and how good a record of guesses is for it.

The objective of a bet is the expected log wealth at the claim's line while that is worth betting on, else, as that of a
fixed test, the lower confidence bound that the planned draws would give. (An event of fixed mass would cap the bound at
the logarithm of its mass.)
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

# Standard deviations by which the log-odds of a record are lowered where the best of many records is taken: for the
# growth of wealth (a hopeful and a cautious rule enter the contest), and for the bound.
HOPEFUL, CAUTIOUS, BOUND_DEVIATIONS = 0.5, 2.0, 4.0
DEVIATIONS = (BOUND_DEVIATIONS, 2.5, 1.5)  # ways to choose thresholds, which are compared on draws held back


@dataclasses.dataclass(frozen=True)
class Objective:
    """What a rule is fitted for: a line, the labelled draws to come, and the level of the test.

    Attributes
    ----------
    epsilon, delta : float
        The line at the budget.
    draws : int
        Labelled draws the rule may be tested on.
    level : float
        The error rate of the test.
    chase_wealth : bool
        Whether to look for the fastest growth of wealth where there is any (sequential), rather than for the highest
        bound at the end (fixed).
    deviations : float
        Of the training draws, by which a record is lowered where a bound is expected of it: the more, the more records
        it is the best of.
    """

    epsilon: float
    delta: float
    draws: int
    level: float
    chase_wealth: bool
    deviations: float = BOUND_DEVIATIONS

    def ways(
        self, correct: FloatArray, wrong: FloatArray, sides: NDArray[np.int_], trained_on: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How good guessing records are, given as rates over `trained_on` draws, in three ways.

        The expected lower bound on epsilon after the draws to come (-inf where there is none), and the expected log
        wealth over them, taken hopefully and cautiously (0 where there is nothing to bet on; all 0 where wealth is not
        chased). One wrong guess is added to every record, and its log-odds are lowered by some of their standard
        deviations: what was lucky on the training draws does not win.
        """
        bound = self._bound(correct, wrong, sides, trained_on)
        if not self.chase_wealth:
            nothing = np.zeros_like(bound)
            return bound, nothing, nothing
        c = correct - self.delta * sides / 2.0
        w = wrong + 1.0 / trained_on
        positive = np.maximum(c, 1e-150)
        odds = np.where(c > 0.0, np.log(positive / w), -math.inf)
        variance = np.maximum(correct, 1e-150) / positive**2 + 1.0 / w  # of the log-odds, times the draws
        deviation = np.sqrt(variance / trained_on)
        guesses = np.maximum(c, 0.0) + w
        hopeful, cautious = (self._growth(odds - k * deviation, guesses) for k in (HOPEFUL, CAUTIOUS))
        return bound, hopeful, cautious

    def _bound(
        self, correct: FloatArray, wrong: FloatArray, sides: NDArray[np.int_], trained_on: FloatArray
    ) -> FloatArray:
        """The expected bound on epsilon, from the lower end of Wilson's interval for the accuracy of a guess.

        Its deviations are those of the test to come, and `deviations` of the training draws. (Lowering the
        log-odds instead would be far too much where hardly a guess was wrong.)
        """
        lowest, mass = self.lowest_accuracy(correct, wrong, trained_on)
        right = lowest - self.delta * sides / (2.0 * mass)
        return np.where(right > 0.0, np.log(np.maximum(right, 1e-150) / (1.0 - lowest)), -math.inf)

    def lowest_accuracy(
        self, correct: FloatArray, wrong: FloatArray, trained_on: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The accuracy of a guess that the test is expected to show, and the rate of guesses."""
        mass = np.maximum(correct + wrong, 1e-150)
        guesses = mass * trained_on
        square = self._quantile**2 * trained_on / self.draws + self.deviations**2
        accuracy = correct / mass
        spread = np.sqrt(square * (accuracy * (1.0 - accuracy) / guesses + square / (4.0 * guesses**2)))
        lowest = np.maximum(accuracy + square / (2.0 * guesses) - spread, 0.0) / (1.0 + square / guesses)
        # Without a right guess the interval ends at 0 up to rounding, which is no bound.
        return np.where(correct > 0.0, lowest, 0.0), mass

    def _growth(self, odds: FloatArray, guesses: FloatArray) -> FloatArray:
        """Expected log wealth of guesses at this rate, right with these log-odds, at the best stake."""
        # The relative entropy of the accuracy from the largest that the line allows, written in log-odds.
        growth = np.zeros(odds.shape)
        is_worth = odds > self.epsilon
        odds, guesses = odds[is_worth], guesses[is_worth]
        shares = scipy.special.expit(odds)
        gain = shares * (odds - self.epsilon) + np.logaddexp(0.0, self.epsilon) - np.logaddexp(0.0, odds)
        growth[is_worth] = guesses * gain * self.draws
        return growth

    def merits(
        self, correct: FloatArray, wrong: FloatArray, sides: NDArray[np.int_], trained_on: FloatArray
    ) -> list[tuple[int, float]]:
        """How good each record is, in an order: (1, expected log wealth) if worth a bet, else (0, expected bound)."""
        bounds, gains, _ = (way.tolist() for way in self.ways(correct, wrong, sides, trained_on))
        return [(1, gain) if gain >= 1.0 else (0, bound) for gain, bound in zip(gains, bounds, strict=True)]

    @property
    def _quantile(self) -> float:
        return float(scipy.special.ndtri(self.level)) if self.level > 0.0 else -40.0
