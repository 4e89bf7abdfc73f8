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
* This follows from the two statements alone, for every anchor and every parameter value. So all anchors are tested at
  the full level of the pair: nothing is split over them, and none has to be chosen beforehand.

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
from collections.abc import Iterable

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.inference.exact import SIZES as EXACT_SIZES
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.privacy.claims import LARGEST_EPSILON, Claim, FloatArray
from dpaudit.privacy.pair_budgets import PairBudgets, has_own_line
from dpaudit.privacy.renyi_lines import as_lines
from dpaudit.testing.binomial import binomial_lower_each
from dpaudit.testing.hockey_stick import just_above

IntArray = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class PairLineSizes:
    """The grids of parameter values, and how far luck is distrusted."""

    pilot_deviations: float = 2.0  # by which pilot records are lowered: of many rules the best were lucky
    step_between: float = 0.01  # relative distance of grid values between the least and the largest budget
    max_between: int = 1_000  # of these values
    max_own: int = 400  # budgets of a family that are grid values themselves: a bound on time
    max_losses: int = 600  # budgets at which a detectable loss is computed; in between that of the next one is taken
    rounding: float = 1e-6  # by which a line that was computed in doubles may fall as the value grows
    down: float = 1.0 - 1e-9  # bounds are rounded down by more than the error of the special functions
    smallest_delta: float = 1e-300  # in place of a delta of 0, which it exceeds by nothing that shows


SIZES = PairLineSizes()
BELOW_BUDGET = np.geomspace(1e-3, 1.0, 300)  # grid values below the least budget, 2.3% apart: its shares
ABOVE_BUDGET = np.concatenate([np.geomspace(1.0, 4.0, 150)[1:], np.geomspace(4.4, 1e3, 60)])  # 1%, then 10% apart
ABOVE_NOTHING = np.geomspace(1e-3, 1e3, 400)  # for budgets of 0
BOTH, ONLY_X, ONLY_X_PRIME = 0, 1, 2  # ways to guess
WAYS = np.array([[True, True], [True, False], [False, True]])  # whether a way guesses x, and x_prime


@dataclasses.dataclass(frozen=True)
class PilotRecords:
    """Right and wrong guesses of every rule on the draws that rules are chosen by, as shares of the draws.

    Attributes
    ----------
    correct, wrong : array of float, shape (pairs, ways, steps)
    trained, labelled : float
        Draws that the shares are of, and draws of the test.
    quantile : float
        Of a standard normal variable at about the level of a pair: negative.
    """

    correct: FloatArray
    wrong: FloatArray
    trained: float
    labelled: float
    quantile: float

    @property
    def variance(self) -> float:
        """By which the variance of one draw is multiplied: squared deviations that a rule is lowered by."""
        return self.quantile**2 / self.labelled + SIZES.pilot_deviations**2 / self.trained


@dataclasses.dataclass(frozen=True)
class Record:
    """The record of each pair on fresh draws: right guesses, guesses, way to guess and level, shape (pairs,)."""

    correct: FloatArray
    guesses: FloatArray
    way: IntArray
    level: FloatArray
    draws: int

    def of(self, pairs: IntArray | slice) -> Record:
        """The records of some pairs."""
        return Record(self.correct[pairs], self.guesses[pairs], self.way[pairs], self.level[pairs], self.draws)


class OwnLines:
    """Pairs whose claims are one line each, the parameter being its epsilon; `budget` and `delta` of shape (pairs,)."""

    is_free = False
    ways: tuple[int, ...] = (BOTH,)  # ways to guess of rules that know the event: the best ones, whatever the budget

    def __init__(self, budget: FloatArray, delta: FloatArray) -> None:
        self.budget, self._delta = budget, delta

    def at_budget(self, pairs: IntArray | slice, way: IntArray) -> tuple[FloatArray, FloatArray]:
        """Epsilon and cost of lines at the budgets, shape (pairs, anchors) each."""
        return self.budget[pairs, None], _share(way, self._delta[pairs])[:, None]

    def bound(self, r: FloatArray, s: FloatArray, way: IntArray) -> FloatArray:
        """The largest parameter value that the limits of r and s reject, shape (pairs,)."""
        return epsilon_lower(r, s, _share(way, self._delta))

    def clearest(self, r: FloatArray, s: FloatArray, way: IntArray, pairs: IntArray) -> int:
        """The position of the anchor whose lines one pair's limits of r and s speak against most."""
        return 0

    def best(self, pairs: IntArray, seen: PilotRecords) -> tuple[IntArray, IntArray, FloatArray]:
        """Way and step of the rule of the highest expected bound, and its distance from the budget in deviations."""
        of_ways = [self.at_budget(pairs, np.full(len(pairs), way)) for way in range(len(WAYS))]
        epsilon, cost = (np.stack([of_way[k][:, 0] for of_way in of_ways], axis=1)[:, :, None] for k in (0, 1))
        c, w = seen.correct - cost, seen.wrong + 1.0 / seen.trained  # one wrong guess is added to every record
        positive = np.maximum(c, 1e-150)
        odds = np.log(positive / w)
        variance = np.maximum(seen.correct, 1e-150) / positive**2 + 1.0 / w  # of the log odds, times the draws
        bound = np.where(c <= 0.0, -np.inf, odds - np.sqrt(variance * seen.variance))
        place = bound.reshape(len(pairs), -1).argmax(axis=1)
        way, step = np.divmod(place, bound.shape[2])
        at = np.arange(len(pairs)), way, step
        over = (odds[at] - epsilon[at[0], way, 0]) / np.sqrt(variance[at] / seen.trained)
        return way, step, np.where(c[at] <= 0.0, -np.inf, over)

    def tested(self, way: int) -> tuple[FloatArray, FloatArray, IntArray]:
        """Epsilon and cost of tests of one of `ways`, shape (anchors, tests), and the test of each pair."""
        steps = np.geomspace(1e-3, max(float(self.budget.max(initial=0.0)), 2e-3) * (1.0 + 1e-9), SIZES.max_losses)
        grid = np.concatenate([[0.0], steps])
        next_up = grid[np.searchsorted(grid, self.budget)]
        found, test = np.unique(np.stack([next_up, self._delta]), axis=1, return_inverse=True)
        return found[:1], found[1:], test.ravel()


class FamilyLines(OwnLines):
    """Pairs of a family of claims that are bounded on a grid of parameter values: see the module.

    Parameters
    ----------
    family : Claim
        Of any value.
    budget : array of float, shape (pairs,)
        In [0, inf).
    """

    def __init__(self, family: Claim, budget: FloatArray) -> None:
        self.budget = budget
        self.is_free = family.anchored or family.family == "renyi"
        self.anchors = PAYOFF_SIZES.anchors if self.is_free else (0.0,)
        # Validity: the lines of a Renyi promise follow from both of its orders, and so from the weaker one alone.
        self._orders = as_lines(family).directions
        self.ways = (BOTH,) if len(self._orders) == 1 else (BOTH, ONLY_X, ONLY_X_PRIME)
        budgets = np.unique(budget)
        self.values = value_grid(budgets)
        tested = np.unique(self.values[np.searchsorted(self.values, budgets)])
        self._test = np.searchsorted(tested, budget)
        if not self.is_free:
            self._at_all  # noqa: B018 (says what is wrong with the lines, before a draw)
        self._at_tested = self._lines(tested)

    def _lines(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Epsilons and costs at parameter values, shape (ways, anchors, values) each."""
        lines = np.array([[lines_at(one, values, a) for a in self.anchors] for one in self._orders])
        lines = np.broadcast_to(lines, (2, *lines.shape[1:]))  # (orders, anchors, epsilon and delta, values)
        guessed = WAYS[:, :, None, None]
        epsilon = np.where(guessed, lines[:, :, 0], 0.0).max(axis=1)
        return np.minimum(epsilon, LARGEST_EPSILON), 0.5 * np.where(guessed, lines[:, :, 1], 0.0).sum(axis=1)

    @functools.cached_property
    def _at_all(self) -> tuple[FloatArray, FloatArray]:
        epsilon, cost = self._lines(self.values)
        return epsilon[:, :, 1:], cost[:, :, 1:]

    def at_budget(self, pairs: IntArray | slice, way: IntArray) -> tuple[FloatArray, FloatArray]:
        epsilon, cost = self._at_tested
        return epsilon[way, :, self._test[pairs]], cost[way, :, self._test[pairs]]

    def clearest(self, r: FloatArray, s: FloatArray, way: IntArray, pairs: IntArray) -> int:
        epsilon, cost = (side[0] for side in self.at_budget(pairs, way))
        shown = s * (r * (1.0 + np.exp(epsilon)) - np.exp(epsilon)) - cost
        bounds = [float(self._bound(r, s, way, [k])[0]) for k in range(len(self.anchors))]
        return int(np.lexsort((shown, bounds))[-1])

    def bound(self, r: FloatArray, s: FloatArray, way: IntArray) -> FloatArray:
        return self._bound(r, s, way, range(len(self.anchors)))

    def _bound(self, r: FloatArray, s: FloatArray, way: IntArray, anchors: Iterable[int]) -> FloatArray:
        epsilon, cost = self._at_all
        count = np.zeros(len(r), dtype=np.int64)  # of the values that are rejected
        for k in anchors:

            def rejects(rows: IntArray, at: IntArray, k: int = k) -> NDArray[np.bool_]:
                e, c = epsilon[way[rows], k, at], cost[way[rows], k, at]
                return np.asarray(s[rows] * (r[rows] - scipy.special.expit(e)) > c * scipy.special.expit(-e))

            rows = np.flatnonzero(count < len(self.values) - 1)
            rows = rows[rejects(rows, count[rows])]
            low, high = count[rows], np.full(len(rows), len(self.values) - 1)  # the value at `low` is rejected
            while np.any(high - low > 1):
                middle = (low + high) // 2
                is_rejected = rejects(rows, middle)
                low, high = np.where(is_rejected, middle, low), np.where(is_rejected, high, middle)
            count[rows] = low + 1
        return self.values[count]

    def best(self, pairs: IntArray, seen: PilotRecords) -> tuple[IntArray, IntArray, FloatArray]:
        if not self.is_free:
            return super().best(pairs, seen)
        each, sides = np.arange(len(pairs)), WAYS.sum(axis=1)
        best, merit = np.full(len(pairs), -np.inf), np.zeros(len(pairs))
        chosen = np.zeros((2, len(pairs)), dtype=np.int64)
        wrong = seen.wrong + 1.0 / seen.trained
        costs, at_budget = self._at_all[1], self._at_tested[1]
        for k, factor in enumerate(np.exp(self.anchors)):
            excess = seen.correct - factor * wrong
            variance = np.maximum(seen.correct + factor**2 * wrong - excess**2, 1.0 / seen.trained**2)
            lowered = excess - np.sqrt(variance * seen.variance)
            steps = lowered.argmax(axis=2)  # (pairs, ways)
            shown = np.take_along_axis(lowered, steps[:, :, None], axis=2)[:, :, 0]
            bound = self.values[np.stack([np.searchsorted(costs[w, k], shown[:, w]) for w in range(len(WAYS))], axis=1)]
            # Where no value is expected to be excluded, the rule that shows most of an excess.
            bound = np.where(bound > 0.0, bound, 2.0 / sides * shown - 1.0)
            way = bound.argmax(axis=1)
            step = steps[each, way]
            at = each, way, step
            over = (excess[at] - at_budget[way, k, self._test[pairs]]) / np.sqrt(variance[at] / seen.trained)
            is_better = bound[each, way] > best
            best = np.where(is_better, bound[each, way], best)
            chosen, merit = np.where(is_better, [way, step], chosen), np.where(is_better, over, merit)
        return chosen[0], chosen[1], merit

    def tested(self, way: int) -> tuple[FloatArray, FloatArray, IntArray]:
        return self._at_tested[0][way], self._at_tested[1][way], self._test


class PairLines:
    """The lines of many pairs, by families.

    Parameters
    ----------
    budgets : PairBudgets
        All finite.

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

    Raises
    ------
    UsageError
        If a family has no lines, or they are none: see `lines_at`.
    """

    def __init__(self, budgets: PairBudgets) -> None:
        self.budget = budgets.values
        is_line = np.array([has_own_line(family) for family in budgets.families])
        group = np.where(is_line[budgets.family], -1, budgets.family)
        self._groups: list[tuple[IntArray | slice, OwnLines]] = []
        self._group, self._place = np.zeros(len(group), dtype=np.int64), np.arange(len(group))
        for k in np.unique(group).tolist():
            rows = np.flatnonzero(group == k)
            self._group[rows], self._place[rows] = len(self._groups), np.arange(len(rows))
            if k < 0:
                own = OwnLines(budgets.values[rows], budgets.deltas[rows])
            else:
                family = budgets.families[k]
                if family.family == "renyi" and not family.orders:
                    raise UsageError(f"orders of {type(family).__name__} must be Renyi orders above 1, got none.")
                own = FamilyLines(family, budgets.values[rows])
            self._groups.append((slice(None) if len(rows) == len(group) else rows, own))
        self.is_free = any(own.is_free for _, own in self._groups)
        are_lines = bool((group < 0).all())
        self.is_epsilon = are_lines and bool((budgets.deltas == budgets.report_delta).all())
        # Validity: bounds at several deltas follow from the same two statements, so both are made wherever one delta
        # is not 0.
        self._is_split = not (self.is_epsilon and budgets.report_delta == 0.0)
        self.delta = max(budgets.report_delta, SIZES.smallest_delta if self._is_split else 0.0)

    def best(self, pairs: IntArray, seen: PilotRecords) -> tuple[IntArray, IntArray, FloatArray]:
        """Way and step of the rule of each pair that is expected to give the highest bound, and its merit.

        The merit is the distance from the budget in standard deviations. All of shape (pairs,).
        """
        (way, step), merit = np.zeros((2, len(pairs)), dtype=np.int64), np.zeros(len(pairs))
        for k in np.unique(self._group[pairs]).tolist():
            rows = np.flatnonzero(self._group[pairs] == k)
            some = dataclasses.replace(seen, correct=seen.correct[rows], wrong=seen.wrong[rows])
            way[rows], step[rows], merit[rows] = self._groups[k][1].best(self._place[pairs[rows]], some)
        return way, step, merit

    def bounds(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """Lower confidence bounds on the parameter and on epsilon at `delta`, both of shape (pairs,)."""
        r, s = self._limits(record)
        lower = np.zeros(len(self.budget))
        for rows, own in self._groups:
            lower[rows] = own.bound(r[rows], s[rows], record.way[rows])
        return lower, lower if self.is_epsilon else epsilon_lower(r, s, _share(record.way, self.delta))

    def log_p(self, record: Record) -> FloatArray:
        """Natural logarithms of the p-values against the budgets, shape (pairs,)."""
        _, s = self._limits(record)
        limit = np.ones(len(self.budget))
        for rows, own in self._groups:
            epsilon, cost = own.at_budget(slice(None), record.way[rows])
            limit[rows] = largest_accuracy(epsilon, cost, s[rows, None]).min(axis=1)
        return log_tails(record.correct, record.guesses, limit, self._spent(record.level))

    def line(self, record: Record, pair: int) -> tuple[float, float, float]:
        """The anchor of the line that one record speaks against most, and its epsilon and delta at the budget."""
        one = np.array([pair])
        _, own = self._groups[self._group[pair]]
        way, place = record.way[one], self._place[one]
        k = own.clearest(*self._limits(record.of(one)), way, place)
        epsilon, cost = (float(side[0, k]) for side in own.at_budget(place, way))
        return epsilon if own.is_free else 0.0, epsilon, 2.0 * cost / int(WAYS[way[0]].sum())

    def losses(self, labelled: int, level: float, mass: float, probability: float, quantile: float) -> FloatArray:
        """The smallest loss of randomised-response type that is found at this level, never understated, (pairs,).

        Of an event of this `mass`, by a rule that guesses both inputs; where the orders of a pair differ, or one alone.
        """
        losses = np.full(len(self.budget), np.inf)
        for rows, own in self._groups:
            for way in own.ways:
                epsilon, cost, test = own.tested(way)
                cost = np.maximum(cost, SIZES.smallest_delta if self._is_split else 0.0)
                guessed = 0.5 * mass * int(WAYS[way].sum())
                found = detectable_losses(
                    epsilon.ravel(), cost.ravel(), labelled, level, guessed, probability, quantile
                ).reshape(epsilon.shape)
                losses[rows] = np.minimum(losses[rows], found.min(axis=0)[test])
        return losses

    def _spent(self, level: FloatArray) -> FloatArray:
        """The part of the level that pays for the probability of a guess."""
        return level * EXACT_SIZES.mass_share if self._is_split else np.zeros_like(level)

    def _limits(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """The lower limits of r and of s; 1 for s where it does not matter."""
        spent = self._spent(record.level)
        r = SIZES.down * binomial_lower_each(record.correct, record.guesses, record.level - spent)
        if not self._is_split:
            return r, np.ones_like(r)
        return r, SIZES.down * binomial_lower_each(record.guesses, np.full_like(record.guesses, record.draws), spent)


def _share(way: IntArray, delta: FloatArray | float) -> FloatArray:
    """What a delta of both orders pays for: half of it for each event that is guessed on."""
    return np.asarray(0.5 * delta * WAYS.sum(axis=1)[way])


def epsilon_lower(r: FloatArray, s: FloatArray, cost: FloatArray) -> FloatArray:
    """The largest epsilon whose lines of this cost the limits of r and s break; 0 where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        k = np.where(cost > 0.0, cost / s, 0.0)
        share = np.where(k < 1.0, (r - k) / (1.0 - k), 0.0)
        return np.asarray(np.maximum(SIZES.down * scipy.special.logit(np.clip(share, 0.5, 1.0)), 0.0))


def largest_accuracy(epsilon: FloatArray, cost: FloatArray, s: FloatArray | float) -> FloatArray:
    """The largest probability of a right guess, given a guess, that lines allow; 1 where nothing is guessed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        k = np.where(cost > 0.0, np.fmin(cost / s, 1.0), 0.0)
    return np.asarray(np.minimum(scipy.special.expit(epsilon) + k * scipy.special.expit(-epsilon), 1.0))


def log_tails(correct: FloatArray, guesses: FloatArray, limit: FloatArray, spent: FloatArray) -> FloatArray:
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
        both = np.where(spent > 0.0, np.logaddexp(log_tail, np.log(spent)), log_tail)
    return np.minimum(both, 0.0)


def detectable_losses(
    epsilon: FloatArray, cost: FloatArray, draws: int, level: float, mass: float, probability: float, quantile: float
) -> FloatArray:
    """The smallest loss of randomised-response type that is found with this probability, of each line; inf for none.

    Of an event of this `mass`, at this `quantile` of the number of guesses, which it pays for.
    """
    guesses = float(int(scipy.special.bdtrik(quantile, draws, mass)))
    if not guesses >= 1.0:
        return np.full_like(epsilon, np.inf)
    n = np.full_like(epsilon, guesses)
    spent = np.where(cost > 0.0, level * EXACT_SIZES.mass_share, 0.0)
    s = np.where(cost > 0.0, SIZES.down * binomial_lower_each(n, np.full_like(n, draws), spent), 1.0)
    limit = largest_accuracy(epsilon, cost, s)
    low, high = np.full_like(epsilon, -1.0), n + 1.0
    while np.any(high - low > 1.0):
        middle = np.floor((low + high) / 2.0)
        rejects = log_tails(middle, n, limit, spent) <= np.log(level)
        low, high = np.where(rejects, low, middle), np.where(rejects, middle, high)
    critical = np.minimum(high, guesses)
    accuracy = scipy.special.betaincinv(critical, guesses - critical + 1.0, probability / (1.0 - quantile))
    return np.where(high <= guesses, scipy.special.logit(accuracy), np.inf)


def value_grid(budgets: FloatArray) -> FloatArray:
    """Increasing parameter values that bounds of pairs with these distinct, increasing budgets may have, from 0 on.

    Every budget is a point, and so is the least value above it that is a violation, where these are few.
    """
    least, largest = float(budgets[budgets > 0.0].min(initial=budgets[-1])), float(budgets[-1])
    near = np.concatenate([[0.0], least * BELOW_BUDGET, largest * ABOVE_BUDGET])  # all of it 0 for a budget of 0
    if largest > least:
        points = math.ceil(math.log(largest / least) / SIZES.step_between) + 1
        near = np.concatenate([near, np.geomspace(least, largest, min(points, SIZES.max_between))])
    own = budgets if len(budgets) <= SIZES.max_own else budgets[[0, -1]]
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
