"""What the games against a family of hockey-stick lines share: the lines, the search for a bound, and the power."""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import abstractmethod
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.pair_budgets import has_own_line
from dpaudit.testing import binomial
from dpaudit.testing.protocols import Test

ANCHORS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # epsilons of lines a free family may bet at
PROBED = tuple(10.0**k for k in range(-9, 4))  # parameter values at which a family is asked whether it has a delta
LARGEST_PARAMETER = 1e6  # beyond which no bound is searched
ENDS_MARGIN = 0.45  # of the precision, that a search keeps from known ends: three of them cannot be longer than two
GUESSES_QUANTILE = 0.005  # power is computed at this quantile of the number of guesses, and pays for it


@dataclasses.dataclass(frozen=True)
class Line:
    """Hockey-stick lines at several parameter values: epsilon and delta, shape (values,)."""

    epsilon: FloatArray
    delta: FloatArray


class HockeyStickGame(Test):
    """One use of the error rate on one pair, against a claim that is a family of hockey-stick lines.

    Parameters
    ----------
    claim : Claim
        Of this pair; family "hockey-stick", value finite.
    draws : int
        Labelled draws that may be counted.
    """

    @functools.cached_property
    def _has_delta(self) -> bool:
        """Whether some line of the family has a delta, so that the probability of a guess counts."""
        if self.claim.anchored or has_own_line(self.claim):
            return self.claim.anchored or self.claim.delta > 0.0
        # Validity: the delta of a user's one-line family is that of `lines`, whatever the attribute `delta` says.
        return bool(np.any(self._line(np.array([*PROBED, self.claim.value]), 0.0).delta > 0.0))

    def _line(self, values: FloatArray, anchor: float) -> Line:
        """The family's lines at the parameter values."""
        return Line(*self.claim.lines(np.asarray(values, dtype=float), anchor))

    def _line_at_budget(self, anchor: float) -> dict[str, float]:
        return self._line_at(self.claim.value, anchor)

    def _line_at(self, value: float, anchor: float) -> dict[str, float]:
        line = self._line(np.array([value]), anchor)
        return {"epsilon": float(line.epsilon[0]), "delta": float(line.delta[0])}

    @abstractmethod
    def _critical(self, guesses: int, epsilon: float, delta: float) -> int:
        """The fewest correct guesses that reject the line, among `guesses` of a rule with both events."""

    @property
    def _power_anchors(self) -> tuple[float, ...]:
        return ANCHORS if self.claim.anchored else (0.0,)

    @property
    def _tested_anchors(self) -> tuple[float, ...]:
        """Of the lines that the test may be at."""
        return self._power_anchors

    def power(self, event_mass: float, probability: float) -> tuple[float, float]:
        """The smallest loss of randomised-response type found with the given probability, and that at the budget.

        The witness is taken to know the two events. The number of guesses on such an alternative is binomial(draws,
        event_mass); it exceeds its 0.5% quantile G with probability at least 0.995, and given at least G guesses the
        test rejects with at least the probability it has at G (exact, up to the discreteness of the binomial), so the
        product is a lower bound of the power. A claim with free lines is tested at the best of those that the game may
        test. It is that of the binomial test; that of the joint test of rare wrong guesses, which a fixed audit may
        choose, was measured to be about as large (`tests/testing/test_fixed_game.py`).
        """
        at_budget = self._loss_at_budget(event_mass)
        # A pair of an adaptive audit may have had no draw at all.
        guesses = int(scipy.special.bdtrik(GUESSES_QUANTILE, self.draws, event_mass)) if self.draws > 0 else 0
        if guesses < 1:
            return math.inf, at_budget
        detectable = math.inf
        for anchor in self._tested_anchors:
            line = self._line_at_budget(anchor)
            critical = self._critical(guesses, line["epsilon"], line["delta"])
            if critical <= guesses:
                target = probability / (1.0 - GUESSES_QUANTILE)
                accuracy = float(scipy.special.betaincinv(critical, guesses - critical + 1.0, target))
                detectable = min(detectable, float(scipy.special.logit(accuracy)))
        return detectable, at_budget

    def _loss_at_budget(self, event_mass: float) -> float:
        losses = []
        for anchor in self._power_anchors:
            line = self._line(np.array([self.claim.value]), anchor)
            accuracy = float(binomial.largest_accuracy(line.epsilon, line.delta, event_mass)[0])
            losses.append(float(scipy.special.logit(accuracy)) if line.delta[0] > 0.0 else float(line.epsilon[0]))
        return min(losses)


def largest_rejected(
    rejected: Callable[[FloatArray], NDArray[np.bool_]],
    lowest: float,
    budget: float,
    points: int = 32,
    precision: float = 1e-7,
) -> float:
    """The upper end of an interval of rejected parameter values that starts at 0, rounded down to a relative precision.

    `rejected` takes increasing values and must be monotone: true up to some value, false above. The search cuts its
    interval into `points` parts at a time. The result is itself rejected (or `lowest`), and a value 1e-7 above the
    budget is always tried, so a bound above the budget is reported when that is rejected, and never when it is not.
    """
    low, above = max(lowest, 0.0), just_above(budget)
    high = max(2.0 * above, 2.0 * lowest, 1e-3)
    if lowest < above:
        at_lowest, at_budget = rejected(np.array([low, above])).tolist()
        if not at_lowest:
            return low
        low, high = (above, high) if at_budget else (low, above)
    elif not rejected(np.array([low]))[0]:
        return low
    if low >= above:  # else `high` is known not to be rejected
        while rejected(np.array([high]))[0]:
            low, high = high, 2.0 * high
            if high > LARGEST_PARAMETER:
                return low
    while high - low > precision * high + 1e-12:
        values = np.linspace(low, high, points + 1)
        last = int(np.count_nonzero(rejected(values[1:-1])))
        low, high = float(values[last]), float(values[last + 1])
    return low if low >= above else min(low, budget)


def largest_in_excess(excess: Callable[[float], float], lowest: float, budget: float, precision: float) -> float:
    """`largest_rejected` where it is known how clearly a value is rejected: it takes fewer values.

    `excess` is 0 or more where a value is rejected, and falls in it.
    """
    low, above = max(lowest, 0.0), just_above(budget)
    at_low = at_high = math.nan  # not known
    high = max(2.0 * above, 2.0 * lowest, 1e-3)
    if low < above:
        at_above = excess(above)
        if at_above >= 0.0:
            low, at_low = above, at_above
        else:
            high, at_high = above, at_above
    if math.isnan(at_low):
        at_low = excess(low)
        if not at_low >= 0.0:
            return low
    if low >= above:
        while (at_high := excess(high)) >= 0.0:
            low, at_low, high = high, at_high, 2.0 * high
            if high > LARGEST_PARAMETER:
                return low
    low = _end_between(excess, (low, at_low), (high, at_high), precision)
    return low if low >= above else min(low, budget)


def _end_between(
    excess: Callable[[float], float], first: tuple[float, float], last: tuple[float, float], precision: float
) -> float:
    """A value where excess is 0 or more, and just above which it is not, between two values with theirs.

    Only its sign is relied on. Its size serves to guess where it is 0: what bets win falls with the square of the
    distance to the value that they win nothing against, so a line is drawn between square roots. An end that stays
    counts half the next time, and where two guesses have not cut the interval to a quarter of what it was, it is
    halved.
    """
    (low, at_low), (high, at_high) = first, last
    of_low, of_high = math.sqrt(at_low), math.sqrt(abs(at_high))
    widths: list[float] = []
    stayed = 0  # 1 where the last guess was rejected and the upper end stayed, -1 where the lower one did
    while (width := high - low) > precision * high + 1e-12:
        share = of_low / (of_low + of_high) if 0.0 < of_low + of_high < math.inf else 0.5
        widths.append(width)
        if len(widths) > 2 and width > 0.25 * widths[-3]:
            share, widths = 0.5, []
        margin = ENDS_MARGIN * precision * high  # from the ends: the end of the interval may lie close to one of them
        value = min(max(low + share * width, low + margin), high - margin)
        at_value = excess(value)
        if at_value >= 0.0:
            low, of_low, of_high = value, math.sqrt(at_value), of_high * (0.5 if stayed == 1 else 1.0)
            stayed = 1
        else:
            high, of_high, of_low = value, math.sqrt(abs(at_value)), of_low * (0.5 if stayed == -1 else 1.0)
            stayed = -1
    return low


def just_above(budget: float) -> float:
    """The least parameter value whose rejection counts as a violation of the budget."""
    return budget * (1.0 + 1e-7) + 1e-12
