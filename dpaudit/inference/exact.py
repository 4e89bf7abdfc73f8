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
from numpy.typing import NDArray

from dpaudit.features.outcomes import Outcomes
from dpaudit.inference import binomial
from dpaudit.inference.bound_search import MAX_PARAMETER, just_above, largest_rejected
from dpaudit.inference.guess_rules import SIZES as RULE_SIZES
from dpaudit.inference.guess_rules import GuessRule, choose_rule, predicted_counts
from dpaudit.inference.independence import Score
from dpaudit.inference.learning_state import Training
from dpaudit.inference.pair_lines import detectable_losses
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.inference.protocols import Test
from dpaudit.inference.tables import MIDDLES, N_BINS, Predicted
from dpaudit.learning.partition import CellScore
from dpaudit.privacy.claims import Claim, FloatArray


@dataclasses.dataclass(frozen=True)
class ExactSizes:
    """Pilot draws that fit a predictor, and right guesses that make a rule sure."""

    fitted_share: float = 0.5  # of the pilot, for the predictor; the rest chooses the rule: a third chose lucky rules
    sure_guesses: int = 30  # right ones, without a wrong one, of a rule that needs no longer pilot


SIZES = ExactSizes()


class ExactTest(Test):
    """One use of the error rate on one pair, of a claim of hockey-stick lines, tested once."""

    fitted_share = SIZES.fitted_share
    can_be_sure = True

    def __init__(self, claim: Claim, draws: int, table_of: Test | None = None) -> None:
        super().__init__(claim, draws, table_of)
        self.rule = GuessRule(N_BINS, 0, 0, 0.0)

    def guess(self, level: float, rule: GuessRule | None = None) -> None:
        """Take a given rule, or the best one by the predicted counts of a frozen predictor's bins."""
        predicted = self.table.rounds[-1].predicted
        if rule is None:
            rule = choose_rule(predicted_counts(predicted), self._inequalities, level, self.draws).apart(predicted.mass)
        self.rule = rule if self.claim.anchored else dataclasses.replace(rule, anchor=0)

    def prepare_on_counts(self) -> None:
        """Do nothing: an exact test has one round, whose record a new one would forget."""

    def prepare(self, training: Training, level: float) -> None:
        """Fit, and choose the rule and the line of the largest expected bound by the counts that the fit held out."""
        super().prepare(training, level)
        held = self.table.held
        self.rule = choose_rule(held, self._inequalities, level, max(self.draws, 1))
        right, wrong, _ = self.rule.record(held)
        self.is_sure = wrong == 0 and right >= SIZES.sure_guesses

    @property
    def merit(self) -> tuple[int, float]:
        return 1, self.rule.expected - self.claim.value

    # --- the draws that are counted ---

    def update(self) -> None:
        self._lower = largest_rejected(self._rejected(), self._lower, self.claim.value)

    def _rejected(self) -> Any:
        right, wrong, idle = self.counts
        draws = right + wrong + idle
        spent = RULE_SIZES.mass_share * self.level if self._has_delta else 0.0
        accuracy = binomial.binomial_lower(right, right + wrong, self.level - spent)
        # Validity: where nothing was spent on it, nothing is known of the probability of a guess.
        mass = binomial.binomial_lower(right + wrong, draws, spent)

        def rejected(values: FloatArray) -> NDArray[np.bool_]:
            epsilons, costs = self._lines_at(values)
            return np.asarray(binomial.largest_accuracy(epsilons, costs, mass) < accuracy)

        return rejected

    def _lines_at(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Epsilon of the line at each value, and what its deltas pay for of right guesses, a labelled draw."""
        epsilons, deltas = self._inequalities.lines_at(values, self.rule.anchor)
        directions = np.array(self.rule.directions)
        return epsilons[directions].max(axis=0, initial=0.0), 0.5 * deltas[directions].sum(axis=0)

    @property
    def _has_delta(self) -> bool:
        # Of nested claims deltas rise with the value: one that has any has one at the end. (Of others, whose delta
        # falls again, nothing is rejected where they have one.)
        at = np.array([just_above(self.claim.value), MAX_PARAMETER])
        return self.claim.anchored or bool(self._inequalities.lines_at(at, 0)[1].any())

    @property
    def p_value(self) -> float | None:
        if not self.has_started:
            return None
        right, wrong, idle = self.counts
        epsilon, cost = (float(side[0]) for side in self._lines_at(np.array([self.claim.value])))
        return binomial.p_value(
            right, right + wrong, right + wrong + idle, epsilon, cost, self.level, RULE_SIZES.mass_share
        )

    def _found_loss(self, event_mass: float, probability: float, at_budget: float) -> float:
        """By guesses on both events; where the orders of a pair differ, on one alone if that is better."""
        del at_budget
        epsilons, deltas = self._inequalities.lines(self.claim.value)
        best = math.inf
        for ways in ([0, 1],) if self.claim.is_symmetric else ([0, 1], [0], [1]):
            epsilon, cost, mass = epsilons[ways].max(axis=0), 0.5 * deltas[ways].sum(axis=0), 0.5 * len(ways)
            spent = np.where(cost > 0.0, RULE_SIZES.mass_share * self.level, 0.0)
            losses = detectable_losses(epsilon, cost, self.draws, self.level, mass * event_mass, probability, spent)
            best = min(best, float(losses.min()))
        return best

    # --- the witness ---

    @property
    def line(self) -> dict[str, float]:
        directions = [way for way, is_guessed in enumerate(self.rule.directions) if is_guessed] or [0, 1]
        return self._inequalities.said(self.claim.value, self.rule.anchor if self.claim.anchored else 0, directions)

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.rule.record(self.table.rounds[-1].counts)


@dataclasses.dataclass(frozen=True)
class GuessCounter:
    """Counts outputs in the first three bins: those that a score guesses label 0 for, none, and label 1."""

    score: CellScore

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """Counts, shape (bins,)."""
        return np.bincount(self.score(outcomes).astype(np.intp) + 1, minlength=N_BINS).astype(np.int64)

    def zeros(self) -> NDArray[np.int64]:
        return np.zeros(N_BINS, dtype=np.int64)

    def split(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[Any], list[Any]]:
        """The same counts: those of the table, which has nothing else."""
        return counts, [], []


class CellTest(ExactTest):
    """The test of a rule of a table of pairs, at the line of an anchor."""

    def __init__(self, claim: Claim, draws: int, cells: CellScore, anchor: float) -> None:
        super().__init__(claim, draws)
        at = int(np.argmin(np.abs(np.array(PAYOFF_SIZES.anchors) - anchor))) if claim.anchored else 0
        self.rule = GuessRule(2 if cells.plus else N_BINS, 1 if cells.minus else 0, at, 0.0)
        self.cells = cells
        self.table.open(GuessCounter(cells), Predicted(MIDDLES, np.full(N_BINS, 1.0 / N_BINS)))

    @property
    def score(self) -> Score:
        return self.cells

    def take(self, correct: int, wrong: int, lower: float) -> None:
        """Take the record of the table, and the bound that it has worked out."""
        at, label = (2, 1) if self.rule.directions[0] else (0, 0)  # of a label that the rule guesses
        counts = self.table.rounds[-1].counts
        counts[label, at], counts[1 - label, at] = correct, wrong
        counts[0, 1] = self.draws - correct - wrong
        self._lower = lower

    def describe(self, x: str, x_prime: str) -> str:
        return self.cells.describe(x, x_prime)

    def sketch(self) -> None:
        return None

    def rule_record(self) -> dict[str, Any]:
        return {"game": "guess", "score": self.cells.to_dict(), "anchor": PAYOFF_SIZES.anchors[self.rule.anchor]}
