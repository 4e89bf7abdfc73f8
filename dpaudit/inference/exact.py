"""Exact test: one guessing rule on a frozen predictor's bins, one binomial test, one bound at the end.

The predictor is fitted on a part of the pilot, the rule is chosen by counts on the rest of it. On fresh draws the
number of right guesses is binomial given that of guesses, with a success probability of at most

    (e^epsilon + delta_cost / s) / (1 + e^epsilon),        s = P(guess),

under the line (epsilon, delta) in both orders, where delta_cost is half a delta for each event that is guessed on
(`dpaudit.inference.binomial`). Rule and line are fixed before the draws, whose number is fixed too: P(lower > truth) <=
level for the one record at the end.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.outcomes import Outcomes
from dpaudit.inference import binomial
from dpaudit.inference.betting import Betting
from dpaudit.inference.bound_search import just_above, largest_rejected
from dpaudit.inference.guess_rules import SIZES as RULE_SIZES
from dpaudit.inference.guess_rules import GuessRule, choose_rule, told_by
from dpaudit.inference.learning_state import LearningState
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.inference.payoffs import Inequalities
from dpaudit.inference.protocols import Test, Training
from dpaudit.inference.tables import N_BINS, BinCounter, Predicted
from dpaudit.inference.tasks import Statistic
from dpaudit.inference.witness import describe, rule_record, sketch
from dpaudit.learning.mixture import Mixture
from dpaudit.learning.partition import CellScore
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.results.model import Sketch


@dataclasses.dataclass(frozen=True)
class ExactSizes:
    """Pilot draws that fit a predictor, and right guesses that make a rule sure."""

    fitted_share: float = 0.5  # of the pilot, that the predictor sees; the rest chooses the rule: of 2 / 3 it was lucky
    sure_guesses: int = 30  # right ones, without a wrong one, of a rule that needs no longer pilot


SIZES = ExactSizes()


@dataclasses.dataclass(frozen=True)
class GuessCounter:
    """Counts outputs in the first three bins: those that a score guesses label 0 for, none, and label 1."""

    score: CellScore

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """Counts, shape (bins,)."""
        return np.bincount(self.score(outcomes).astype(np.intp) + 1, minlength=N_BINS).astype(np.int64)

    def zeros(self) -> NDArray[np.int64]:
        return np.zeros(N_BINS, dtype=np.int64)


class ExactTest(Test):
    """One use of the error rate on one pair, tested once.

    Parameters
    ----------
    claim : Claim
        Of hockey-stick lines.
    draws : int
        Labelled draws that may be counted.
    table_of : ExactTest, optional
        Another test of the same draws, whose predictor this one shares.
    """

    can_be_sure = True

    def __init__(self, claim: Claim, draws: int, table_of: ExactTest | None = None) -> None:
        super().__init__(claim, draws)
        self.state: LearningState = LearningState() if table_of is None else table_of.state
        self._own_table = table_of is None
        self._inequalities = Inequalities(claim)
        self._level_of_fit = 0.05
        self._counts = np.zeros((2, N_BINS), dtype=np.int64)
        self.rule = GuessRule(N_BINS, 0, 0, 0.0)
        self._counter: Statistic | None = None  # in the place of the bins of a predictor

    @classmethod
    def frozen(
        cls,
        claim: Claim,
        draws: int,
        level: float,
        mixture: Mixture,
        predicted: Predicted,
        rule: GuessRule | None = None,
    ) -> ExactTest:
        """The test of a given rule, or of the best rule by the predicted counts of the mixture's bins."""
        test = cls(claim, draws)
        test.state = LearningState.frozen(mixture, predicted)
        if rule is None:
            rule = choose_rule(told_by(predicted), test._inequalities, level, draws).apart(predicted.mass)
        test.rule = rule if claim.anchored else dataclasses.replace(rule, anchor=0)
        return test

    @classmethod
    def on_cells(cls, claim: Claim, draws: int, cells: CellScore, anchor: float) -> ExactTest:
        """The test of a rule of a table of pairs, at the line of an anchor."""
        test = cls(claim, draws)
        at = int(np.argmin(np.abs(np.array(PAYOFF_SIZES.anchors) - anchor))) if claim.anchored else 0
        ends = 2 if cells.plus else N_BINS, 1 if cells.minus else 0
        test.rule, test._counter = GuessRule(*ends, at, 0.0), GuessCounter(cells)
        return test

    # --- before the draws that are counted ---

    def prepare(self, training: Training, level: float) -> None:
        self._level_of_fit = level
        if self._own_table:
            self.state.learn(training, SIZES.fitted_share)
        self._choose()
        is_tried = training.may_try and not self.is_sure  # what draws could still teach is worth more in the test
        self.trial = BinCounter(self.state.counter.mixture, is_last=True) if is_tried else None

    def try_out(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        if self._own_table:
            self.state.held = self.state.held + np.stack([counts_x_prime[:N_BINS], counts_x[:N_BINS]])
        self._choose()

    def _choose(self) -> None:
        """The rule and the line of the largest expected bound."""
        held = self.state.held
        self.rule = choose_rule(held, self._inequalities, self._level_of_fit, max(self.draws, 1))
        right, wrong, _ = self.rule.record(held)
        self.is_sure = wrong == 0 and right >= SIZES.sure_guesses

    def start(self, level: float) -> None:
        self.level, self.trial = level, None

    @property
    def merit(self) -> tuple[int, float]:
        return 1, self.rule.expected - self.claim.value

    # --- the draws that are counted ---

    @property
    def statistic(self) -> Statistic:
        return self._counter or BinCounter(self.state.counter.mixture, is_last=True)

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        self._counts += np.stack([counts_x_prime[:N_BINS], counts_x[:N_BINS]])

    def take(self, correct: int, wrong: int, lower: float) -> None:
        """Take the record of a rule of a table of pairs, and the bound that the table has worked out."""
        at, label = (2, 1) if self.rule.sides[0] else (0, 0)  # of a side that the rule guesses
        self._counts[label, at], self._counts[1 - label, at] = correct, wrong
        self._counts[0, 1] = self.draws - correct - wrong
        self._lower = lower

    def update(self) -> None:
        self._lower = largest_rejected(self._rejected(), self._lower, self.claim.value)

    def _rejected(self) -> Any:
        right, wrong, idle = self.counts
        draws = right + wrong + idle
        has_delta = self._has_delta
        spent = RULE_SIZES.mass_share * self.level if has_delta else 0.0
        accuracy = binomial.binomial_lower(right, right + wrong, self.level - spent)
        mass = binomial.binomial_lower(right + wrong, draws, spent) if has_delta else 1.0

        def rejected(values: FloatArray) -> NDArray[np.bool_]:
            epsilons, costs = self._lines_at(values)
            return np.asarray(binomial.largest_accuracy(epsilons, costs, mass) < accuracy)

        return rejected

    def _lines_at(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Epsilon of the line at each value, and what its deltas pay for of right guesses, a labelled draw."""
        epsilons, deltas = self._inequalities.lines_at(values, self.rule.anchor)
        sides = np.array(self.rule.sides)
        return epsilons[sides].max(axis=0, initial=0.0), 0.5 * deltas[sides].sum(axis=0)

    @property
    def _has_delta(self) -> bool:
        if self.claim.anchored:
            return True
        return any(self._inequalities.lines(value)[1].any() for value in (*_PROBED, just_above(self.claim.value)))

    @property
    def log_wealth(self) -> float | None:
        return None

    @property
    def p_value(self) -> float | None:
        if not self.has_started:
            return None
        right, wrong, idle = self.counts
        epsilon, cost = (float(side[0]) for side in self._lines_at(np.array([self.claim.value])))
        return binomial.p_value(
            right, right + wrong, right + wrong + idle, epsilon, cost, self.level, RULE_SIZES.mass_share
        )

    def power(self, event_mass: float, probability: float) -> tuple[float, float]:
        """As of a bettor (`Betting.power`), of the exact test of a witness who knows the events.

        It guesses on both events; where the orders of a pair differ, on one alone if that is better.
        """
        at_budget = Betting(self.claim, self.draws)._loss_at_budget(event_mass)
        ways = ([0, 1],) if self.claim.is_symmetric else ([0, 1], [0], [1])
        return min(self._power(0.5 * len(sides) * event_mass, sides, probability) for sides in ways), at_budget

    def _power(self, mass: float, sides: list[int], probability: float) -> float:
        """The same of guesses of this mass on these sides."""
        guesses = int(scipy.special.bdtrik(0.005, self.draws, mass)) if self.draws > 0 else 0
        if guesses < 1 or not self.has_started:
            return math.inf
        epsilons, deltas = (one[sides] for one in self._inequalities.lines(self.claim.value))
        best = math.inf
        for k in range(epsilons.shape[1]):
            epsilon, cost = float(epsilons[:, k].max()), 0.5 * float(deltas[:, k].sum())
            low, high = -1, guesses + 1
            while high - low > 1:
                middle = (low + high) // 2
                p = binomial.p_value(middle, guesses, self.draws, epsilon, cost, self.level, RULE_SIZES.mass_share)
                low, high = (low, middle) if p <= self.level else (middle, high)
            if high <= guesses:
                accuracy = float(scipy.special.betaincinv(high, guesses - high + 1.0, probability / 0.995))
                best = min(best, float(scipy.special.logit(accuracy)))
        return best

    # --- the witness ---

    @property
    def line(self) -> dict[str, float]:
        sides = [side for side, is_guessed in enumerate(self.rule.sides) if is_guessed] or [0, 1]
        return self._inequalities.said(self.claim.value, self.rule.anchor if self.claim.anchored else 0, sides)

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.rule.record(self._counts)

    def describe(self, x: str, x_prime: str) -> str:
        if isinstance(self._counter, GuessCounter):
            return self._counter.score.describe(x, x_prime)
        return describe(self.state.counter.mixture, self.state.shown, *self.rule.thresholds, x, x_prime)

    def sketch(self) -> Sketch | None:
        if isinstance(self._counter, GuessCounter):
            return None
        return sketch(self.state.counter.mixture, self.state.shown, *self.rule.thresholds)

    def rule_record(self) -> dict[str, Any]:
        if isinstance(self._counter, GuessCounter):
            anchor = PAYOFF_SIZES.anchors[self.rule.anchor]
            return {"game": "guess", "score": self._counter.score.to_dict(), "anchor": anchor}
        predicted = self.state.rounds[-1].predicted
        rule = dataclasses.asdict(self.rule.apart(predicted.mass))
        return rule_record(self.state.counter.mixture, predicted, rule=rule)


_PROBED = tuple(10.0**k for k in range(-9, 4))  # parameter values at which a claim may have a delta
