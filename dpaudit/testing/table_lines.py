"""What the pairs of a universe are tested against: their lines, for the guessing records of all pairs at once.

`OwnLines` are one line (epsilon, delta) for each pair: pure, approximate and metric claims. `FreeLines` are a claim of
which every pair promises the same, and whose lines stand at any anchor: Gaussian, trade-off and profile claims, and the
lines that a Renyi promise implies (`dpaudit.privacy.renyi_lines`).

Validity
--------
Of one record, of a rule and a number of draws that were fixed before, two statements are made: the probability r of a
correct guess, given a guess, is at least r_lower, and the probability s of a guess is at least s_lower
(Clopper-Pearson). They fail with at most their parts of the pair's level: `MASS_SHARE` of it for s, the rest for r. Let
both hold.

* A line (a, delta) of the claim says P(correct) <= e^a P(wrong) + k delta / 2 of a rule with k events, and so
  s (r (1 + e^a) - e^a) <= k delta / 2. The left side increases in r, and in s where it is positive. So a line that
  r_lower and s_lower break is broken by r and s, and the claim does not hold at that parameter value.
* This follows from the two statements alone, for every anchor and every parameter value. So all of `ANCHORS` are
  tested at the full level of the pair: nothing is split over them, and none has to be chosen beforehand.

The bound on the parameter is the largest value of a grid at which some line is broken. Larger values promise less, so
all below it are rejected too: P(bound > truth) is at most the level, and so is P(violated) of a pair within its budget.
The bound on epsilon at the reported delta follows from the same two statements.
"""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import ApproxDP, Claim, FloatArray, MetricDP
from dpaudit.privacy.renyi_lines import as_lines
from dpaudit.testing import guess_records
from dpaudit.testing.binomial import binomial_lower_each
from dpaudit.testing.fixed_game import MASS_SHARE
from dpaudit.testing.guess_records import DOWN
from dpaudit.testing.hockey_stick import ANCHORS, just_above

IntArray = NDArray[np.int64]

PILOT_DEVIATIONS = 2.0  # by which what a pilot record shows is lowered where the best of many is taken
# Parameter values that a bound with free lines may have: times the budget, and beyond all of these.
BELOW_BUDGET = np.geomspace(1e-3, 1.0, 300)
ABOVE_BUDGET = np.concatenate([np.geomspace(1.0, 4.0, 150)[1:], np.geomspace(4.4, 1e3, 60)])
ABOVE_NOTHING = np.geomspace(1e-3, 1e3, 400)
SMALLEST_DELTA = 1e-300  # in place of a delta of 0, which it exceeds by nothing that shows
LOSSES = 600  # budgets of a pair's own line at which the loss that is found is computed


@dataclasses.dataclass(frozen=True)
class PilotRecords:
    """What rules have shown on the draws that they are chosen by, as shares of these: `best` takes one for each pair.

    Attributes
    ----------
    correct, wrong : array of float, shape (pairs, ways, steps)
    sides : array of float, shape (1, ways, 1)
        How many of the two events of a rule are not empty.
    trained, labelled : float
        Draws that these shares are of, and those of the test.
    quantile : float
        Of a standard normal variable at about the level of a pair: negative.
    """

    correct: FloatArray
    wrong: FloatArray
    sides: FloatArray
    trained: float
    labelled: float
    quantile: float

    @property
    def variance(self) -> float:
        """By which the variance of one draw is multiplied: deviations, squared, that a rule is lowered by."""
        return self.quantile**2 / self.labelled + PILOT_DEVIATIONS**2 / self.trained


@dataclasses.dataclass(frozen=True)
class Record:
    """The one record of each pair on fresh draws, arrays of float of shape (pairs,).

    `sides` are the events of its rule that are not empty, `level` is that of its test; `draws` are the labelled ones.
    """

    correct: FloatArray
    guesses: FloatArray
    sides: FloatArray
    level: FloatArray
    draws: int

    def of(self, pair: int) -> Record:
        """That of one pair."""
        own = slice(pair, pair + 1)
        return Record(self.correct[own], self.guesses[own], self.sides[own], self.level[own], self.draws)


class TableLines(ABC):
    """The lines of all pairs; see the module.

    Attributes
    ----------
    budget : array of float, shape (pairs,)
        What is promised of the parameter.
    delta : float
        At which bounds on epsilon are reported.
    """

    budget: FloatArray
    delta: float

    @abstractmethod
    def best(self, pairs: IntArray, seen: PilotRecords) -> tuple[IntArray, FloatArray]:
        """The place (over ways and steps) of the rule that is expected to give the highest bound, and its merit.

        The merit is the distance from the budget in standard deviations. Both of shape (pairs,).
        """

    @abstractmethod
    def bounds(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """Lower confidence bounds on the parameter and on epsilon at `delta`, both of shape (pairs,)."""

    @abstractmethod
    def log_p(self, record: Record) -> FloatArray:
        """Natural logarithms of the p-values against the budgets, shape (pairs,)."""

    @abstractmethod
    def line(self, record: Record, pair: int) -> tuple[float, float, float]:
        """The anchor of the line that one record speaks against most, and its epsilon and delta at the budget."""

    @abstractmethod
    def losses(
        self, labelled: int, level: float, event_mass: float, probability: float, guesses_quantile: float
    ) -> FloatArray:
        """The smallest loss of randomised-response type that is found at this level, never understated, (pairs,)."""

    def _epsilon_lower(self, record: Record) -> FloatArray:
        cost = self.delta * record.sides / 2.0
        return guess_records.epsilon_lower(
            record.correct, record.guesses, record.draws, cost, record.level, MASS_SHARE
        )


class OwnLines(TableLines):
    """A line (epsilon, delta) for each pair: what is bounded is its epsilon.

    Parameters
    ----------
    budget : array of float, shape (pairs,)
        Epsilons in [0, inf), in nats.
    delta : float
        In [0, 1), of every pair.
    """

    def __init__(self, budget: FloatArray, delta: float) -> None:
        self.budget, self.delta = budget, delta

    def best(self, pairs: IntArray, seen: PilotRecords) -> tuple[IntArray, FloatArray]:
        # One wrong guess is added to every record: what was lucky does not win.
        c = seen.correct - self.delta * seen.sides / 2.0
        w = seen.wrong + 1.0 / seen.trained
        positive = np.maximum(c, 1e-150)
        odds = np.log(positive / w)
        variance = np.maximum(seen.correct, 1e-150) / positive**2 + 1.0 / w  # of the log-odds, times the draws
        nothing = c <= 0.0
        bound = np.where(nothing, -np.inf, odds - np.sqrt(variance * seen.variance))
        budget = self.budget[pairs][:, None, None]
        deviations = np.where(nothing, -np.inf, (odds - budget) / np.sqrt(variance / seen.trained))
        place = bound.reshape(len(pairs), -1).argmax(axis=1)
        return place, deviations.reshape(len(pairs), -1)[np.arange(len(pairs)), place]

    def bounds(self, record: Record) -> tuple[FloatArray, FloatArray]:
        found = self._epsilon_lower(record)
        return found, found

    def log_p(self, record: Record) -> FloatArray:
        cost = self.delta * record.sides / 2.0
        return guess_records.log_p_values(
            record.correct, record.guesses, record.draws, self.budget, cost, record.level, MASS_SHARE
        )

    def line(self, record: Record, pair: int) -> tuple[float, float, float]:
        return 0.0, float(self.budget[pair]), self.delta

    def losses(
        self, labelled: int, level: float, event_mass: float, probability: float, guesses_quantile: float
    ) -> FloatArray:
        # Each pair takes the value of the next larger point of a grid, and the loss does not fall as the budget grows.
        largest = float(self.budget.max(initial=0.0))
        grid = np.unique(np.concatenate([[0.0], np.geomspace(1e-3, max(largest, 2e-3) * (1.0 + 1e-9), LOSSES)]))
        losses = guess_records.detectable_losses(
            grid, self.delta, labelled, level, MASS_SHARE, event_mass, probability, guesses_quantile
        )
        losses = np.maximum.accumulate(losses)
        return np.asarray(losses[np.minimum(np.searchsorted(grid, self.budget, side="left"), len(grid) - 1)])


class FreeLines(TableLines):
    """One claim of all pairs whose lines stand at any anchor: what is bounded is its parameter.

    Parameters
    ----------
    claim : Claim
        With a finite value; `anchored`, or of family "renyi".
    pairs : int
    """

    def __init__(self, claim: Claim, pairs: int) -> None:
        value = claim.value
        self.budget, self.delta, self._lines = np.full(pairs, value), claim.report_delta, as_lines(claim)
        self._at_budget = [float(self._lines.lines(np.array([value]), anchor)[1][0]) for anchor in ANCHORS]
        near = value * np.concatenate([[0.0], BELOW_BUDGET, ABOVE_BUDGET])  # all of it 0 for a budget of 0
        far = ABOVE_NOTHING[near[-1] < ABOVE_NOTHING]
        self._values = np.unique(np.concatenate([near, [just_above(value)], far]))  # that a bound may have

    @functools.cached_property
    def _deltas(self) -> list[FloatArray]:
        """Those of the lines at each of `ANCHORS`, at all values above 0."""
        # A profile in doubles may fall by its rounding: what is not refuted at a value is not at a larger one.
        return [np.maximum.accumulate(self._lines.lines(self._values[1:], anchor)[1]) for anchor in ANCHORS]

    def best(self, pairs: IntArray, seen: PilotRecords) -> tuple[IntArray, FloatArray]:
        best, place, merit = np.full(len(pairs), -np.inf), np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs))
        each = np.arange(len(pairs))
        wrong = seen.wrong + 1.0 / seen.trained  # as for a line of its own
        for k, anchor in enumerate(ANCHORS):
            factor = np.exp(anchor)
            excess = seen.correct - factor * wrong
            variance = np.maximum(seen.correct + factor**2 * wrong - excess**2, 1.0 / seen.trained**2)
            lowered = (2.0 / seen.sides * (excess - np.sqrt(variance * seen.variance))).reshape(len(pairs), -1)
            own = lowered.argmax(axis=1)
            shown = lowered[each, own]
            bound = self._bound(k, shown)
            # Where no value is expected to be excluded, the rule that shows most of an excess.
            bound = np.where(bound > 0.0, bound, shown - 1.0)
            over = (excess - self._at_budget[k] * seen.sides / 2.0) / np.sqrt(variance / seen.trained)
            is_better = bound > best
            best, place = np.where(is_better, bound, best), np.where(is_better, own, place)
            merit = np.where(is_better, over.reshape(len(pairs), -1)[each, own], merit)
        return place, merit

    def bounds(self, record: Record) -> tuple[FloatArray, FloatArray]:
        found = [self._bound(k, excess) for k, excess in enumerate(self._excesses(record))]
        return np.asarray(np.max(found, axis=0)), self._epsilon_lower(record)

    def log_p(self, record: Record) -> FloatArray:
        _, s_lower, spent = self._limits(record)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = record.sides / 2.0 / s_lower
        limit = np.ones_like(share)
        for anchor, delta in zip(ANCHORS, self._at_budget, strict=True):
            extra = np.fmin(share * delta, 1.0) if delta > 0.0 else 0.0  # where nothing is guessed all is allowed
            limit = np.minimum(limit, scipy.special.expit(anchor) + extra * scipy.special.expit(-anchor))
        return guess_records.log_tails(record.correct, record.guesses, limit, spent)

    def line(self, record: Record, pair: int) -> tuple[float, float, float]:
        excesses = self._excesses(record.of(pair))
        shown = [(float(self._bound(k, one)[0]), float(one[0]) - self._at_budget[k]) for k, one in enumerate(excesses)]
        clearest = max(range(len(ANCHORS)), key=shown.__getitem__)
        return ANCHORS[clearest], ANCHORS[clearest], self._at_budget[clearest]

    def losses(
        self, labelled: int, level: float, event_mass: float, probability: float, guesses_quantile: float
    ) -> FloatArray:
        # A line without a delta is tested as the others are: a part of the level is for the probability of a guess.
        at = np.array(ANCHORS), np.maximum(self._at_budget, SMALLEST_DELTA)
        found = guess_records.detectable_losses(
            *at, labelled, level, MASS_SHARE, event_mass, probability, guesses_quantile
        )
        return np.full(len(self.budget), found.min())

    def _limits(self, record: Record) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The lower limits of r and s, and the part of the level that the second one takes."""
        spent = record.level * MASS_SHARE
        r_lower = DOWN * binomial_lower_each(record.correct, record.guesses, record.level - spent)
        s_lower = DOWN * binomial_lower_each(record.guesses, np.full_like(record.guesses, record.draws), spent)
        return r_lower, s_lower, spent

    def _excesses(self, record: Record) -> list[FloatArray]:
        """Lower bounds on P(S) - e^anchor Q(S), in the mean over the events of a rule, for each of `ANCHORS`."""
        r_lower, s_lower, _ = self._limits(record)
        sides = np.maximum(record.sides, 1.0)
        return [2.0 * s_lower * (r_lower * (1.0 + np.exp(a)) - np.exp(a)) / sides for a in ANCHORS]

    def _bound(self, k: int, excess: FloatArray) -> FloatArray:
        """The largest value whose line at this anchor is broken; 0 where none is."""
        return np.asarray(self._values[np.searchsorted(self._deltas[k], excess, side="left")])


def lines_of(promise: Claim, budget: FloatArray) -> TableLines:
    """The lines of pairs with these budgets."""
    return OwnLines(budget, promise.delta) if has_own_lines(promise) else FreeLines(promise, len(budget))


def has_own_lines(promise: Claim) -> bool:
    """Whether a claim is one line for each pair, whose epsilon is its parameter."""
    return isinstance(promise, ApproxDP | MetricDP)


def has_lines(promise: Claim) -> bool:
    """Whether `lines_of` serves a claim: one with budgets of its own for each pair has to be a metric one."""
    is_free = promise.anchored or promise.family == "renyi"
    return has_own_lines(promise) or (is_free and type(promise).for_pair is Claim.for_pair)
