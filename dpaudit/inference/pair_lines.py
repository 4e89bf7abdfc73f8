"""Pair lines: the exact binomial test of the guesses of many pairs at once, against what each pair is promised.

Every claim is a family of hockey-stick lines: of one line at each value of its parameter, or of lines at any anchor
(`Claim.anchored`; a Renyi promise by the lines that it implies, `dpaudit.privacy.renyi_lines`). A one-directional claim
has lines of its own for each order of a pair.

Validity
--------
Of one record, of a rule and a number of draws that were fixed before, two statements are made: the probability r of a
right guess, given a guess, is at least r_lower, and the probability s of a guess is at least s_lower
(Clopper-Pearson). They fail with at most their parts of the pair's level. Let both hold.

* Lines (a, delta) of the orders that a rule guesses on say P(right) <= e^a P(wrong) + cost, where a is the larger of
  their epsilons and cost is half of the sum of their deltas. So s (r - expit(a)) <= cost expit(-a). The left side
  increases in r, and in s where it is positive: a line that r_lower and s_lower break is broken by r and s.
* This follows from the two statements alone, for every line and every parameter value. So all epsilons of the lines
  are tested at the full level of the pair: no union bound is needed, and none has to be chosen beforehand.

The bound on the parameter is the largest value of a grid of which some line is broken; of claims whose parameter is the
epsilon of their line it is solved for. Larger values promise less, so all below are rejected too: P(bound > truth) is
at most the level, and so is P(violated) of a pair within its budget. The bound on epsilon at the reported delta follows
from the same two statements. Where the budgets of a family are too many to be points of its grid, a pair is tested at
the next larger point, which promises less.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.inference.binomial import binomial_lower_each, largest_accuracy
from dpaudit.inference.bound_search import just_above
from dpaudit.inference.guess_rules import SIZES as RULE_SIZES
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.privacy.claims import LARGEST_EPSILON, Claim, FloatArray
from dpaudit.privacy.pair_budgets import PairBudgets, has_own_line
from dpaudit.privacy.renyi_lines import as_lines

IntArray = NDArray[np.int64]
GUESSES_QUANTILE = 0.005  # power is computed at this quantile of the number of guesses, and pays for it


@dataclasses.dataclass(frozen=True)
class PairLineSizes:
    """The grid of parameter values, and how far luck and rounding are distrusted."""

    pilot_deviations: float = 2.0  # by which pilot records are lowered: of many rules the best were lucky
    value_ratio: float = 1.01  # of neighbouring grid values: a bound loses half of that on average
    value_range: float = 1e3  # the grid reaches from the least budget over it to the largest budget times it
    max_values: int = 1_500  # of the grid, and budgets of a family that are values themselves: a bound on time
    rounding: float = 1e-6  # by which a line that was computed in doubles may fall as the value grows
    down: float = 1.0 - 1e-9  # bounds are rounded down by more than the error of the special functions


SIZES = PairLineSizes()
WAYS = np.array([[True, True], [True, False], [False, True]])  # ways to guess: whether x is guessed, and x_prime


@dataclasses.dataclass(frozen=True)
class Record:
    """The record of each pair on fresh draws: right guesses, guesses, way to guess and level, shape (pairs,)."""

    correct: FloatArray
    guesses: FloatArray
    way: IntArray
    level: FloatArray
    draws: int

    def of(self, pairs: IntArray) -> Record:
        """The records of some pairs."""
        return Record(self.correct[pairs], self.guesses[pairs], self.way[pairs], self.level[pairs], self.draws)


class FamilyLines:
    """The lines of a family of claims on a grid of parameter values, for pairs with these distinct budgets."""

    def __init__(self, family: Claim, budgets: FloatArray) -> None:
        if family.family == "renyi" and not family.orders:
            raise UsageError(f"orders of {type(family).__name__} must be Renyi orders above 1, got none.")
        self.is_free = not family.is_one_line
        self.anchors = PAYOFF_SIZES.anchors if self.is_free else (0.0,)
        # Validity: the lines of a Renyi promise follow from both of its orders, and so from the weaker one alone.
        self._orders = as_lines(family).directions
        self.is_ordered = len(self._orders) > 1
        self.values = value_grid(budgets)
        if not self.is_free:
            self._at_all  # noqa: B018 (says what is wrong with the lines, before a draw)

    def lines(self, values: FloatArray) -> FloatArray:
        """Epsilons and costs at increasing parameter values, shape (2, ways, anchors, values)."""
        lines = np.array([[lines_at(one, values, a) for a in self.anchors] for one in self._orders])
        lines = np.broadcast_to(lines, (2, *lines.shape[1:]))  # (orders, anchors, epsilon and delta, values)
        epsilon, delta = (np.where(WAYS[:, :, None, None], lines[:, :, side], 0.0) for side in (0, 1))
        return np.stack([np.minimum(epsilon.max(axis=1), LARGEST_EPSILON), 0.5 * delta.sum(axis=1)])

    @functools.cached_property
    def _at_all(self) -> FloatArray:
        epsilon, cost = self.lines(self.values)[:, :, :, 1:]
        return np.stack([scipy.special.expit(epsilon), cost * scipy.special.expit(-epsilon)])

    def bound(self, r: FloatArray, s: FloatArray, way: IntArray) -> FloatArray:
        """The largest parameter value that the limits of r and s reject, shape (pairs,); of no value 0."""
        low, high = np.full(len(r), -1), np.full(len(r), len(self.values) - 1)  # the value at `low` is rejected
        while np.any(high - low > 1):
            middle = (low + high) // 2
            share, cost = self._at_all[:, way, :, middle].swapaxes(0, 1)  # (pairs, anchors)
            is_rejected = (s[:, None] * (r[:, None] - share) > cost).any(axis=1)
            open_ = high - low > 1
            low, high = np.where(open_ & is_rejected, middle, low), np.where(open_ & ~is_rejected, middle, high)
        return np.asarray(self.values[low + 1])


class PairLines:
    """The lines of many pairs, each with a finite budget; raises `UsageError` as `lines_at`.

    Attributes
    ----------
    budget : array of float, shape (pairs,)
        What is promised of the parameter.
    delta : float
        At which bounds on epsilon are reported.
    is_free : bool
        Whether lines of a pair stand at several anchors: such a test needs more draws.
    is_ordered : bool
        Whether some claim promises something else of the other order of a pair.
    is_epsilon : bool
        Whether the parameter of every pair is epsilon at `delta`, so that its two bounds are one.
    """

    def __init__(self, budgets: PairBudgets) -> None:
        self.budget, self.delta = budgets.values, budgets.report_delta
        is_own = np.array([has_own_line(family) for family in budgets.families])[budgets.family]
        self._own, self._deltas = np.flatnonzero(is_own), budgets.deltas[is_own]
        self._families: list[tuple[IntArray, FamilyLines]] = []
        tests = np.stack([self.budget[self._own], self._deltas])
        (epsilon, delta), test = np.unique(tests, axis=1, return_inverse=True)
        tables = [np.stack(np.broadcast_arrays(epsilon, 0.5 * WAYS.sum(axis=1)[:, None, None] * delta))]
        self._test = np.zeros(len(is_own), dtype=np.int64)  # of each pair, in tables of the lines at the budgets
        self._test[self._own] = test.ravel()
        for k in np.unique(budgets.family[~is_own]).tolist():
            rows = np.flatnonzero(budgets.family == k)
            family = FamilyLines(budgets.families[k], np.unique(self.budget[rows]))
            at_budget = family.values[np.searchsorted(family.values, self.budget[rows])]
            tested, test = np.unique(at_budget, return_inverse=True)
            self._test[rows] = test + sum(table.shape[3] for table in tables)
            tables.append(family.lines(tested))
            self._families.append((rows, family))
        self.is_free = any(family.is_free for _, family in self._families)
        self.is_ordered = any(family.is_ordered for _, family in self._families)
        self._anchors = PAYOFF_SIZES.anchors if self.is_free else (0.0,)
        # A line that allows everything stands at the anchors that a family does not have.
        wide = [((0, 0), (0, 0), (0, len(self._anchors) - table.shape[2]), (0, 0)) for table in tables]
        padded = [np.pad(table, pad, constant_values=1.0) for table, pad in zip(tables, wide, strict=True)]
        self._epsilon, self._cost = np.concatenate(padded, axis=3)  # (ways, anchors, tests) each
        self.is_epsilon = not self._families and bool((self._deltas == self.delta).all())
        # Validity: bounds at several deltas follow from the same two statements, so both are made wherever one delta
        # is not 0.
        self._spends = 0.0 if self.is_epsilon and self.delta == 0.0 else RULE_SIZES.mass_share

    def best(
        self, pairs: IntArray, correct: FloatArray, wrong: FloatArray, trained: float, labelled: float, level: float
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Way and step of the rule of each pair that is expected to break a line by most, and its merit, (pairs,) each.

        That is, by the most nats of the odds of a right guess; among anchors it is the clearest. The merit is the
        distance from the budget in standard deviations. `correct` and `wrong` are the shares of right and wrong guesses
        of every rule, shape (pairs, ways, steps), on `trained` draws that choose it; the test will have `labelled`
        draws, and about this `level`.
        """
        each, found = np.arange(len(pairs)), np.full((3, len(pairs)), -np.inf)  # merit, way and step
        spread = scipy.special.ndtri(level) ** 2 / labelled + SIZES.pilot_deviations**2 / trained
        w = wrong + 1.0 / trained  # one wrong guess is added to every record
        for k in range(len(self._anchors)):
            epsilon, cost = (side[:, k, self._test[pairs]].T for side in (self._epsilon, self._cost))  # (pairs, ways)
            c = correct - cost[:, :, None]
            right = np.maximum(c, 1e-150)
            odds = np.log(right / w)
            variance = np.maximum(correct, 1e-150) / right**2 + 1.0 / w  # of the log odds, times the draws
            bound = np.where(c <= 0.0, -np.inf, odds - epsilon[:, :, None] - np.sqrt(variance * spread))
            way, step = np.divmod(bound.reshape(len(pairs), -1).argmax(axis=1), bound.shape[2])
            at = each, way, step
            merit = (odds[at] - epsilon[each, way]) / np.sqrt(variance[at] / trained)
            merit = np.where(c[at] <= 0.0, -np.inf, merit)
            found = np.where((merit > found[0]) | (k == 0), [merit, way, step], found)
        return found[1].astype(np.int64), found[2].astype(np.int64), found[0]

    def bounds(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """Lower confidence bounds on the parameter and on epsilon at `delta`, both of shape (pairs,)."""
        r, s = self._limits(record)
        lower, own, share = np.zeros(len(self.budget)), self._own, 0.5 * WAYS.sum(axis=1)[record.way]
        lower[own] = epsilon_lower(r[own], s[own], share[own] * self._deltas)
        for rows, family in self._families:
            lower[rows] = family.bound(r[rows], s[rows], record.way[rows])
        return lower, lower if self.is_epsilon else epsilon_lower(r, s, share * self.delta)

    def log_p(self, record: Record) -> FloatArray:
        """Natural logarithms of the p-values against the budgets, shape (pairs,)."""
        _, s = self._limits(record)
        limit = np.ones(len(self.budget))
        for k in range(len(self._anchors)):
            epsilon, cost = (side[record.way, k, self._test] for side in (self._epsilon, self._cost))
            limit = np.minimum(limit, largest_accuracy(epsilon, cost, s))
        return log_tails(record.correct, record.guesses, limit, record.level * self._spends)

    def line(self, record: Record, pair: int) -> tuple[float, float, float]:
        """The anchor of the line that has the p-value of one pair, and its epsilon and delta at the budget."""
        one = record.of(np.array([pair]))
        epsilon, cost = (side[one.way[0], :, self._test[pair]] for side in (self._epsilon, self._cost))
        k = int(largest_accuracy(epsilon, cost, self._limits(one)[1]).argmin())
        return self._anchors[k], float(epsilon[k]), 2.0 * float(cost[k]) / int(WAYS[one.way[0]].sum())

    def losses(self, masses: FloatArray, draws: int, level: float, probability: float) -> FloatArray:
        """The smallest loss of randomised-response type that is found at this level, never understated, (pairs,).

        Of an event of this mass of each pair, by a rule that guesses both inputs; where the orders of a pair differ, or
        one alone. Of many tests each has the loss of the next larger epsilon of a grid.
        """
        losses = np.full(len(self.budget), np.inf)
        for way in range(len(WAYS) if self.is_ordered else 1):
            epsilon, cost = self._epsilon[way], self._cost[way]
            if epsilon.shape[1] > SIZES.max_values:
                grid = value_grid(np.array([0.0, epsilon.min(), epsilon.max()]))
                epsilon = np.where(cost < 1.0, grid[np.searchsorted(grid, epsilon)], epsilon)
            lines, test = np.unique(np.stack([epsilon, cost]).reshape(2, -1), axis=1, return_inverse=True)
            for mass in np.unique(masses).tolist():
                guessed = 0.5 * mass * int(WAYS[way].sum())
                found = detectable_losses(lines[0], lines[1], draws, level, guessed, probability, level * self._spends)
                of_mass = found[test.reshape(epsilon.shape)].min(axis=0)[self._test]
                losses = np.where(masses == mass, np.minimum(losses, of_mass), losses)
        return losses

    def _limits(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """The lower limits of r and of s; 1 for s where it does not matter."""
        spent = record.level * self._spends
        r = SIZES.down * binomial_lower_each(record.correct, record.guesses, record.level - spent)
        if not self._spends:
            return r, np.ones_like(r)
        return r, SIZES.down * binomial_lower_each(record.guesses, np.full_like(record.guesses, record.draws), spent)


def epsilon_lower(r: FloatArray, s: FloatArray, cost: FloatArray) -> FloatArray:
    """The largest epsilon whose lines of this cost the limits of r and s break; 0 where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        k = np.where(cost > 0.0, cost / s, 0.0)
        share = np.where(k < 1.0, (r - k) / (1.0 - k), 0.0)
        return np.asarray(np.maximum(SIZES.down * scipy.special.logit(np.clip(share, 0.5, 1.0)), 0.0))


def log_tails(correct: FloatArray, guesses: FloatArray, limit: FloatArray, spent: FloatArray | float) -> FloatArray:
    """Natural logarithms of P(Binomial(guesses, limit) >= correct) + spent; at most 0.

    A tail below the smallest double is bounded by exp(-n KL) (Chernoff), which it cannot exceed.
    """
    positive = correct > 0
    c, wrong = np.where(positive, correct, 1.0), np.maximum(guesses - correct, 0.0)
    tail = np.where(positive, scipy.special.betainc(c, wrong + 1.0, limit), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.maximum(guesses, 1.0)
        share = np.minimum(c / n, 1.0)
        chernoff = -n * (scipy.special.rel_entr(share, limit) + scipy.special.rel_entr(1.0 - share, 1.0 - limit))
        log_tail = np.where(tail > 1e-290, np.log(tail), np.minimum(chernoff, np.log(1e-290)))
        return np.minimum(np.logaddexp(log_tail, np.log(spent)), 0.0)


def detectable_losses(
    epsilon: FloatArray,
    cost: FloatArray,
    draws: int,
    level: float,
    mass: float,
    probability: float,
    spent: FloatArray | float,
) -> FloatArray:
    """The smallest loss of randomised-response type that is found with this probability, of each line; inf for none.

    Of an event of this `mass`, at a low quantile of the number of guesses, which it pays for; `spent` of the level are.
    """
    guesses = float(int(scipy.special.bdtrik(GUESSES_QUANTILE, draws, mass))) if draws > 0 else 0.0
    if not guesses >= 1.0:
        return np.full_like(epsilon, np.inf)
    n = np.full_like(epsilon, guesses)
    s = SIZES.down * binomial_lower_each(n, np.full_like(n, draws), np.broadcast_to(spent, n.shape))
    limit = largest_accuracy(epsilon, cost, s)
    low, high = np.full_like(epsilon, -1.0), n + 1.0
    while np.any(high - low > 1.0):
        middle = np.floor((low + high) / 2.0)
        rejects = log_tails(middle, n, limit, spent) <= np.log(level)
        low, high = np.where(rejects, low, middle), np.where(rejects, middle, high)
    critical = np.minimum(high, guesses)
    accuracy = scipy.special.betaincinv(critical, guesses - critical + 1.0, probability / (1.0 - GUESSES_QUANTILE))
    return np.where(high <= guesses, scipy.special.logit(accuracy), np.inf)


def value_grid(budgets: FloatArray) -> FloatArray:
    """Increasing parameter values that bounds of pairs with these distinct, increasing budgets may have, from 0 on.

    Every budget is a point, and so is the least value above it that is a violation, where these are few.
    """
    positive = budgets[budgets > 0.0]
    least, largest = (float(positive[0]), float(positive[-1])) if len(positive) else (1.0, 1.0)
    least, largest = least / SIZES.value_range, largest * SIZES.value_range
    points = min(SIZES.max_values, math.ceil(math.log(largest / least) / math.log(SIZES.value_ratio)))
    own = budgets.tolist() if len(budgets) <= SIZES.max_values else []
    above = [just_above(budget) for budget in own]
    return np.unique(np.concatenate([[0.0], np.geomspace(least, largest, points), own, above]))


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
    falls = np.zeros(len(values), dtype=bool)
    falls[1:] = (np.diff(epsilon) < -SIZES.rounding) | (np.diff(delta) < -SIZES.rounding)
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
