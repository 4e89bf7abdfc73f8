"""What the pairs of a universe are tested against: their lines, for the guessing records of all pairs at once.

`OwnLines` are one line (epsilon, delta) for each pair: pure, approximate and metric claims. `FreeLines` are a family
of claims, with a value of the parameter for each pair, whose lines stand at any anchor: Gaussian, trade-off and profile
claims, and the lines that a Renyi promise implies (`dpaudit.privacy.renyi_lines`). `dpaudit.testing.lines_of_pairs`
chooses among them, and puts together those of several families.

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

A family has one grid, whichever values its pairs are promised. Where these are too many to be points of it, a pair is
tested at the next larger point. That promises less, so what is rejected there is rejected at its budget too.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import ABC, abstractmethod

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.privacy.renyi_lines import as_lines
from dpaudit.testing import guess_records
from dpaudit.testing.binomial import binomial_lower_each
from dpaudit.testing.fixed_game import MASS_SHARE
from dpaudit.testing.guess_records import DOWN
from dpaudit.testing.hockey_stick import ANCHORS, just_above

IntArray = NDArray[np.int64]

PILOT_DEVIATIONS = 2.0  # by which what a pilot record shows is lowered where the best of many is taken
# Parameter values that a bound may have: times the least budget and the largest one, and beyond all of these.
BELOW_BUDGET = np.geomspace(1e-3, 1.0, 300)
ABOVE_BUDGET = np.concatenate([np.geomspace(1.0, 4.0, 150)[1:], np.geomspace(4.4, 1e3, 60)])
ABOVE_NOTHING = np.geomspace(1e-3, 1e3, 400)
STEP_BETWEEN, MOST_BETWEEN = 0.01, 1_000  # between two budgets: relative distance, and points at most
OWN_POINTS = 400  # budgets of a family that are points of its grid themselves; of more, every pair takes the next point
ROUNDING = 1e-6  # by which a delta, or an epsilon, that was computed in doubles may fall as the value grows
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

    def of(self, pairs: IntArray) -> PilotRecords:
        """Those of some pairs."""
        return dataclasses.replace(self, correct=self.correct[pairs], wrong=self.wrong[pairs])

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

    def of(self, pairs: IntArray) -> Record:
        """That of some pairs."""
        return Record(self.correct[pairs], self.guesses[pairs], self.sides[pairs], self.level[pairs], self.draws)


class TableLines(ABC):
    """The lines of all pairs; see the module.

    Attributes
    ----------
    budget : array of float, shape (pairs,)
        What is promised of the parameter.
    delta : float
        At which bounds on epsilon are reported.
    is_free : bool
        Whether lines of a pair stand at several anchors: such a test needs more draws.
    is_epsilon : bool
        Whether the parameter of every pair is epsilon at `delta`, so that its two bounds are one.
    """

    budget: FloatArray
    delta: float
    is_free = False
    is_epsilon = False

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

    def _epsilon_lower(self, record: Record, delta: float | FloatArray) -> FloatArray:
        cost = delta * record.sides / 2.0
        return guess_records.epsilon_lower(record.correct, record.guesses, record.draws, cost, record.level, MASS_SHARE)

    def _limits(self, record: Record) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The lower limits of r and s, and the part of the level that the second one takes."""
        spent = record.level * MASS_SHARE
        r_lower = DOWN * binomial_lower_each(record.correct, record.guesses, record.level - spent)
        s_lower = DOWN * binomial_lower_each(record.guesses, np.full_like(record.guesses, record.draws), spent)
        return r_lower, s_lower, spent

    @staticmethod
    def _extra(share: FloatArray, delta: FloatArray) -> FloatArray:
        """What deltas add to the share of right guesses that lines allow; where nothing is guessed all is allowed."""
        with np.errstate(invalid="ignore"):
            return np.where(delta > 0.0, np.fmin(share * delta, 1.0), 0.0)


class OwnLines(TableLines):
    """A line (epsilon, delta) for each pair: what is bounded is its epsilon.

    Parameters
    ----------
    epsilon : array of float, shape (pairs,)
        In [0, inf), in nats.
    delta : array_like of float, shape (pairs,) or ()
        In [0, 1).
    report_delta : float, optional
        At which bounds on epsilon are reported: the largest of `delta` by default.
    is_split : bool
        Whether a part of the level is for the probability of a guess even if no delta needs it.
    """

    def __init__(
        self, epsilon: FloatArray, delta: ArrayLike, report_delta: float | None = None, is_split: bool = False
    ) -> None:
        self.budget = self._epsilon = epsilon
        own = np.broadcast_to(np.asarray(delta, dtype=float), epsilon.shape)
        self.delta = float(own.max(initial=0.0)) if report_delta is None else report_delta
        self.is_epsilon = not is_split and bool((own == self.delta).all())
        # Validity: bounds at other deltas, which may need the probability of a guess, are to follow from the same two
        # statements. So both are made of every pair.
        least = 0.0 if self.is_epsilon else SMALLEST_DELTA
        self._delta, self.delta = np.maximum(own, least), max(self.delta, least)

    def best(self, pairs: IntArray, seen: PilotRecords) -> tuple[IntArray, FloatArray]:
        # One wrong guess is added to every record: what was lucky does not win.
        c = seen.correct - self._delta[pairs][:, None, None] * seen.sides / 2.0
        w = seen.wrong + 1.0 / seen.trained
        positive = np.maximum(c, 1e-150)
        odds = np.log(positive / w)
        variance = np.maximum(seen.correct, 1e-150) / positive**2 + 1.0 / w  # of the log-odds, times the draws
        nothing = c <= 0.0
        bound = np.where(nothing, -np.inf, odds - np.sqrt(variance * seen.variance))
        allowed = self._epsilon[pairs][:, None, None]
        deviations = np.where(nothing, -np.inf, (odds - allowed) / np.sqrt(variance / seen.trained))
        place = bound.reshape(len(pairs), -1).argmax(axis=1)
        return place, deviations.reshape(len(pairs), -1)[np.arange(len(pairs)), place]

    def bounds(self, record: Record) -> tuple[FloatArray, FloatArray]:
        found = self._epsilon_lower(record, self._delta)
        return found, found if self.is_epsilon else self._epsilon_lower(record, self.delta)

    def log_p(self, record: Record) -> FloatArray:
        cost = self._delta * record.sides / 2.0
        return guess_records.log_p_values(
            record.correct, record.guesses, record.draws, self._epsilon, cost, record.level, MASS_SHARE
        )

    def line(self, record: Record, pair: int) -> tuple[float, float, float]:
        return 0.0, float(self._epsilon[pair]), float(self._delta[pair])

    def losses(
        self, labelled: int, level: float, event_mass: float, probability: float, guesses_quantile: float
    ) -> FloatArray:
        options = labelled, level, MASS_SHARE, event_mass, probability, guesses_quantile
        if np.ptp(self._delta) > 0.0:
            found, place = np.unique(np.stack([self._epsilon, self._delta]), axis=1, return_inverse=True)
            return guess_records.detectable_losses(found[0], found[1], *options)[place.ravel()]
        # Each pair takes the value of the next larger point of a grid, and the loss does not fall as the budget grows.
        largest = float(self._epsilon.max(initial=0.0))
        grid = np.unique(np.concatenate([[0.0], np.geomspace(1e-3, max(largest, 2e-3) * (1.0 + 1e-9), LOSSES)]))
        losses = np.maximum.accumulate(guess_records.detectable_losses(grid, self._delta[0], *options))
        return np.asarray(losses[np.minimum(np.searchsorted(grid, self._epsilon, side="left"), len(grid) - 1)])


class FreeLines(TableLines):
    """A family of claims whose lines stand at any anchor: what is bounded is its parameter.

    Parameters
    ----------
    family : Claim
        Of any value; `anchored`, or of family "renyi".
    budget : array of float, shape (pairs,)
        In [0, inf).
    report_delta : float, optional
        At which bounds on epsilon are reported: that of the claim by default.
    """

    is_free = True

    def __init__(self, family: Claim, budget: FloatArray, report_delta: float | None = None) -> None:
        self.budget, self._lines = budget, as_lines(family)
        # Validity: as of the lines, so that this bound follows from the same two statements as that of the parameter.
        self.delta = max(family.report_delta if report_delta is None else report_delta, SMALLEST_DELTA)
        budgets = np.unique(budget)
        self._values = value_grid(budgets)
        self._tested = np.unique(self._values[np.searchsorted(self._values, budgets)])
        self._at_tested = [lines_at(self._lines, self._tested, anchor)[1] for anchor in ANCHORS]

    def _deltas_at_budget(self, k: int, pairs: IntArray | slice = slice(None)) -> FloatArray:
        """Those of the lines at one of `ANCHORS` that pairs are tested at."""
        return self._at_tested[k][np.searchsorted(self._tested, self.budget[pairs])]

    @functools.cached_property
    def _deltas(self) -> list[FloatArray]:
        """Those of the lines at each of `ANCHORS`, at all values above 0."""
        return [lines_at(self._lines, self._values[1:], anchor)[1] for anchor in ANCHORS]

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
            allowed = self._deltas_at_budget(k, pairs)[:, None, None] * seen.sides / 2.0
            over = (excess - allowed) / np.sqrt(variance / seen.trained)
            is_better = bound > best
            best, place = np.where(is_better, bound, best), np.where(is_better, own, place)
            merit = np.where(is_better, over.reshape(len(pairs), -1)[each, own], merit)
        return place, merit

    def bounds(self, record: Record) -> tuple[FloatArray, FloatArray]:
        found = [self._bound(k, excess) for k, excess in enumerate(self._excesses(record))]
        return np.asarray(np.max(found, axis=0)), self._epsilon_lower(record, self.delta)

    def log_p(self, record: Record) -> FloatArray:
        _, s_lower, spent = self._limits(record)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = record.sides / 2.0 / s_lower
        limit = np.ones_like(share)
        for k, anchor in enumerate(ANCHORS):
            extra = self._extra(share, self._deltas_at_budget(k))
            limit = np.minimum(limit, scipy.special.expit(anchor) + extra * scipy.special.expit(-anchor))
        return guess_records.log_tails(record.correct, record.guesses, limit, spent)

    def line(self, record: Record, pair: int) -> tuple[float, float, float]:
        one = np.array([pair])
        excesses = [float(excess[0]) for excess in self._excesses(record.of(one))]
        at_budget = [float(self._deltas_at_budget(k, one)[0]) for k in range(len(ANCHORS))]
        shown = [(float(self._bound(k, excess)), excess - at_budget[k]) for k, excess in enumerate(excesses)]
        clearest = max(range(len(ANCHORS)), key=shown.__getitem__)
        return ANCHORS[clearest], ANCHORS[clearest], at_budget[clearest]

    def losses(
        self, labelled: int, level: float, event_mass: float, probability: float, guesses_quantile: float
    ) -> FloatArray:
        # A line without a delta is tested as the others are: a part of the level is for the probability of a guess.
        deltas = np.maximum(self._at_tested, SMALLEST_DELTA)  # (anchors, tested)
        anchors = np.broadcast_to(np.array(ANCHORS)[:, None], deltas.shape)
        found = guess_records.detectable_losses(
            anchors.ravel(), deltas.ravel(), labelled, level, MASS_SHARE, event_mass, probability, guesses_quantile
        )
        return np.asarray(found.reshape(deltas.shape).min(axis=0)[np.searchsorted(self._tested, self.budget)])

    def _excesses(self, record: Record) -> list[FloatArray]:
        """Lower bounds on P(S) - e^anchor Q(S), in the mean over the events of a rule, for each of `ANCHORS`."""
        r_lower, s_lower, _ = self._limits(record)
        sides = np.maximum(record.sides, 1.0)
        return [2.0 * s_lower * (r_lower * (1.0 + np.exp(a)) - np.exp(a)) / sides for a in ANCHORS]

    def _bound(self, k: int, excess: float | FloatArray) -> FloatArray:
        """The largest value whose line at this anchor is broken; 0 where none is."""
        return np.asarray(self._values[np.searchsorted(self._deltas[k], excess, side="left")])


def value_grid(budgets: FloatArray) -> FloatArray:
    """Increasing parameter values that bounds of pairs with these distinct, increasing budgets may have, from 0 on.

    Every budget is a point, and so is the least value above it that is a violation, where these are few.
    """
    least, largest = float(budgets[budgets > 0.0].min(initial=budgets[-1])), float(budgets[-1])
    near = np.concatenate([[0.0], least * BELOW_BUDGET, largest * ABOVE_BUDGET])  # all of it 0 for a budget of 0
    if largest > least:
        points = math.ceil(math.log(largest / least) / STEP_BETWEEN) + 1
        near = np.concatenate([near, np.geomspace(least, largest, min(points, MOST_BETWEEN))])
    own = budgets if len(budgets) <= OWN_POINTS else budgets[[0, -1]]
    far = ABOVE_NOTHING[near.max() < ABOVE_NOTHING]
    above = [just_above(budget) for budget in own.tolist()]
    return np.unique(np.concatenate([near, own, above, far]))


def lines_at(family: Claim, values: FloatArray, anchor: float) -> tuple[FloatArray, FloatArray]:
    """Epsilons and deltas of a family's lines at increasing values, checked: a class of the user's own may be wrong.

    Raises
    ------
    UsageError
        If they are not one a value, are out of range, not at the anchor, or promise more at a larger value.
    """
    epsilon, delta = (np.asarray(side, dtype=float) for side in family.lines(values, anchor))
    name = f"lines of {type(family).__name__}"
    if epsilon.shape != values.shape or delta.shape != values.shape:
        raise UsageError(
            f"{name} must have an epsilon and a delta for each of {len(values)} values, got arrays of shape "
            f"{epsilon.shape} and {delta.shape}."
        )
    delta = np.minimum(delta, 1.0)  # beyond 1 a line promises as little; NaN stays
    falls = (epsilon < _before(epsilon) - ROUNDING) | (delta < _before(delta) - ROUNDING)
    refused = (
        ("have epsilons in [0, inf] and deltas of at least 0", ~((epsilon >= 0.0) & (delta >= 0.0))),
        ("stand at the anchor that is asked for", (epsilon != anchor) & family.anchored),
        # Validity: a bound is the largest value that is rejected, since those below promise more.
        ("not promise more at a larger value", falls),
    )
    for what, wrong in refused:
        for k in np.flatnonzero(wrong)[:1].tolist():
            raise UsageError(
                f"{name} must {what}, got epsilon {epsilon[k]:g} and delta {delta[k]:g} at the value {values[k]:g} and "
                f"anchor {anchor:g}."
            )
    # A profile in doubles may fall by its rounding: what is not refuted at a value is not at a larger one.
    return np.maximum.accumulate(epsilon), np.maximum.accumulate(delta)


def _before(values: FloatArray) -> FloatArray:
    return np.concatenate([[-np.inf], values[:-1]])
