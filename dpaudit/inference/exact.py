"""Exact test: one guessing rule on a frozen predictor's bins, one binomial test, one bound at the end.

The predictor is fitted on a part of the pilot, the rule is chosen by counts on the rest of it. On fresh draws the
number of right guesses is binomial given that of guesses, with a success probability of at most

    (e^epsilon + delta_cost / s) / (1 + e^epsilon),        s = P(guess),

under the line (epsilon, delta) in both orders, where delta_cost is half a delta for each event that is guessed on
(`dpaudit.testing.binomial`). Rule and line are fixed before the draws, whose number is fixed too: P(lower > truth) <=
level for the one record at the end.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.inference.betting import Betting
from dpaudit.inference.learning_state import LearningState
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.inference.payoffs import Inequalities
from dpaudit.inference.tables import MIDDLES, N_BINS, BinCounter, Predicted
from dpaudit.inference.witness import describe, rule_record, thresholds
from dpaudit.learning.mixture import Mixture
from dpaudit.learning.partition import CellScore
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.reading.outcomes import Outcomes
from dpaudit.testing import binomial
from dpaudit.testing.hockey_stick import just_above, largest_rejected
from dpaudit.testing.protocols import Test, Training
from dpaudit.testing.tasks import Statistic


@dataclasses.dataclass(frozen=True)
class ExactSizes:
    """How a rule is chosen, and how the level is spent."""

    fitted_share: float = 0.5  # of the pilot, that the predictor sees; the rest chooses the rule: of 2 / 3 it was lucky
    told_draws: float = 2.0  # mean bound of an atom of mass .005: 2.86 without, 3.31 with 2 and with 4 (30 seeds)
    luck: float = 1.0  # standard errors by which the rates of candidates are lowered: of many the best were lucky
    mass_share: float = 0.05  # of the level, spent on the probability of a guess where a line has a delta
    sure_guesses: int = 30  # right ones, without a wrong one, of a rule that needs no longer pilot
    predicted_draws: float = 2_000.0  # that a prediction counts for at most, where it chooses the rule
    value_ratio: float = 1.03  # of neighbouring parameter values that rules are compared at
    value_range: float = 200.0  # they reach from the budget over it to the budget times it


SIZES = ExactSizes()


@dataclasses.dataclass(frozen=True)
class GuessRule:
    """Guess label 1 in bins from `first_up` on, label 0 in bins below `end_down`, at the line of an anchor."""

    first_up: int
    end_down: int
    anchor: int
    expected: float  # the bound on the parameter that it is expected to give

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> GuessRule:
        """The rule whose fields were saved; ValueError where it guesses a bin twice, or at no anchor."""
        first_up, end_down, anchor = (int(record[name]) for name in ("first_up", "end_down", "anchor"))
        rule = cls(first_up, end_down, anchor, float(record["expected"]))
        if not 0 <= rule.end_down <= rule.first_up <= N_BINS or not 0 <= rule.anchor < len(PAYOFF_SIZES.anchors):
            raise ValueError(f"rule must guess each bin at most once, at a known anchor, got {rule}.")
        return rule

    @property
    def sides(self) -> tuple[bool, bool]:
        """Whether there are bins in which label 1 is guessed, and label 0."""
        return self.first_up < N_BINS, self.end_down > 0

    def apart(self, mass: FloatArray) -> GuessRule:
        """The rule with its ends in the middle of the bins that nothing fell into, as by their predicted mass.

        A saved predictor is smaller than the one that was counted, and may move an atom to the next bin.
        """
        reached = np.flatnonzero(mass > 2.0 * mass.min())
        below, above = reached[reached < self.first_up], reached[reached >= self.end_down]
        up = (int(below.max(initial=-1)) + self.first_up + 1) // 2 if self.sides[0] else self.first_up
        down = (self.end_down + int(above.min(initial=N_BINS))) // 2 if self.sides[1] else 0
        return dataclasses.replace(self, first_up=max(up, down), end_down=down)

    def record(self, counts: NDArray[np.int64]) -> tuple[int, int, int]:
        """Right and wrong guesses and abstentions in counts of label 0 and 1, shape (2, bins)."""
        right = int(counts[1, self.first_up :].sum() + counts[0, : self.end_down].sum())
        wrong = int(counts[0, self.first_up :].sum() + counts[1, : self.end_down].sum())
        return right, wrong, int(counts.sum()) - right - wrong


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
        """The test of a rule that is known already, or of the best one by what is predicted of the mixture's bins."""
        test = cls(claim, draws)
        test.state = LearningState.frozen(mixture, predicted)
        if rule is None:
            # Bins that no draw fell into say nothing; of the others the rarest had about one draw.
            mass = np.where(predicted.mass > 2.0 * predicted.mass.min(), predicted.mass, 0.0)
            known = min(SIZES.predicted_draws, 1.0 / mass[mass > 0.0].min(initial=1.0))
            told = np.rint(known * mass * np.stack([1.0 - predicted.q, predicted.q])).astype(np.int64)
            rule = choose_rule(told, test._inequalities, level, draws).apart(predicted.mass)
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
        self.trial = BinCounter(self.state.counter.mixture) if is_tried else None

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
        return self._counter or BinCounter(self.state.counter.mixture)

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        self._counts += np.stack([counts_x_prime[:N_BINS], counts_x[:N_BINS]])

    def take(self, correct: int, wrong: int, lower: float) -> None:
        """Take the record of a rule of a table of pairs, and the bound that the table has worked out."""
        self._counts[1, 2], self._counts[0, 2], self._counts[0, 1] = correct, wrong, self.draws - correct - wrong
        self._lower = lower

    def update(self) -> None:
        self._lower = largest_rejected(self._rejected(), self._lower, self.claim.value)

    def _rejected(self) -> Any:
        right, wrong, idle = self.counts
        draws = right + wrong + idle
        has_delta = self._has_delta
        spent = SIZES.mass_share * self.level if has_delta else 0.0
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
        right, wrong, idle = self.counts
        epsilon, cost = (float(side[0]) for side in self._lines_at(np.array([self.claim.value])))
        level = self.level if self.level == self.level else 0.05
        return binomial.p_value(right, right + wrong, right + wrong + idle, epsilon, cost, level, SIZES.mass_share)

    def power(self, event_mass: float, probability: float) -> tuple[float, float]:
        """As of a bettor (`Betting.power`), of the exact test of a witness who knows the events."""
        at_budget = Betting(self.claim, self.draws)._loss_at_budget(event_mass)
        guesses = int(scipy.special.bdtrik(0.005, self.draws, event_mass)) if self.draws > 0 else 0
        if guesses < 1:
            return math.inf, at_budget
        level = self.level if self.level == self.level else 0.05
        epsilons, deltas = self._inequalities.lines(self.claim.value)
        best = math.inf
        for k in range(epsilons.shape[1]):
            epsilon, cost = float(epsilons[:, k].max()), 0.5 * float(deltas[:, k].sum())
            low, high = -1, guesses + 1
            while high - low > 1:
                middle = (low + high) // 2
                p = binomial.p_value(middle, guesses, self.draws, epsilon, cost, level, SIZES.mass_share)
                low, high = (low, middle) if p <= level else (middle, high)
            if high <= guesses:
                accuracy = float(scipy.special.betaincinv(high, guesses - high + 1.0, probability / 0.995))
                best = min(best, float(scipy.special.logit(accuracy)))
        return best, at_budget

    # --- the witness ---

    @property
    def line(self) -> dict[str, float]:
        anchor = PAYOFF_SIZES.anchors[self.rule.anchor] if self.claim.anchored else 0.0
        epsilon, delta = self.claim.lines(np.array([self.claim.value]), anchor)
        return {"epsilon": float(epsilon[0]), "delta": float(delta[0])}

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.rule.record(self._counts)

    def describe(self, x: str, x_prime: str) -> str:
        if isinstance(self._counter, GuessCounter):
            return self._counter.score.describe(x, x_prime)
        at = thresholds(self.rule.first_up, self.rule.end_down)
        return describe(self.state.counter.mixture, self.state.shown, *at, x, x_prime)

    def rule_record(self) -> dict[str, Any]:
        if isinstance(self._counter, GuessCounter):
            anchor = PAYOFF_SIZES.anchors[self.rule.anchor]
            return {"game": "guess", "score": self._counter.score.to_dict(), "anchor": anchor}
        predicted = self.state.rounds[-1].predicted
        rule = dataclasses.asdict(self.rule.apart(predicted.mass))
        return rule_record(self.state.counter.mixture, predicted, rule=rule)


_PROBED = tuple(10.0**k for k in range(-9, 4))  # parameter values at which a claim may have a delta


def choose_rule(held: NDArray[np.int64], claim: Inequalities, level: float, draws: int) -> GuessRule:
    """The rule of the largest expected bound, by counts of label 0 and 1 that chose nothing, shape (2, bins).

    Parameters
    ----------
    draws : int
        Labelled draws of the test.
    """
    total = int(held.sum())
    if total == 0:
        return GuessRule(N_BINS, 0, 0, 0.0)
    reached = np.flatnonzero(held.sum(axis=0))
    ends = np.concatenate([[0], reached + 1])
    told = held.astype(float)  # what is predicted of a bin counts as a few draws of it: few may have been lucky
    told[:, reached] += SIZES.told_draws * np.stack([1.0 - MIDDLES[reached], MIDDLES[reached]])
    below = np.concatenate([np.zeros((2, 1)), np.cumsum(told, axis=1)], axis=1)
    up, down = np.meshgrid(np.concatenate([reached, [N_BINS]]), ends, indexing="ij")
    fits = (down <= up) & ~((up == N_BINS) & (down == 0))
    up, down = up[fits], down[fits]
    right = (below[1, -1] - below[1, up]) + below[0, down]
    wrong = (below[0, -1] - below[0, up]) + below[1, down]
    guesses = right + wrong
    rate = (right + 0.5) / (guesses + 1.0)
    rate = rate - SIZES.luck * np.sqrt(rate * (1.0 - rate) / (guesses + 1.0))
    scale = draws / total
    expected = np.maximum(guesses * scale, 1e-9)
    has_delta = claim.claim.anchored or bool(claim.lines(just_above(claim.claim.value))[1].any())
    spent = SIZES.mass_share * level if has_delta else 0.0
    accuracy = binomial.binomial_lower_each(rate * expected, expected, np.full(len(rate), level - spent))
    counted = np.concatenate([[0], np.cumsum(held.sum(axis=0))])
    mass = ((counted[-1] - counted[up]) + counted[down]) / total
    mass = np.maximum(mass - 1.64 * np.sqrt(mass / draws), 1e-12)
    sides = np.stack([up < N_BINS, down > 0])
    best: tuple[float, float, int, int] | None = None
    values = _values(claim.claim.value)
    for anchor in range(len(PAYOFF_SIZES.anchors) if claim.claim.anchored else 1):
        bound, margin = _bounds(accuracy, mass, sides, claim.lines_at(values, anchor), values)
        at = int(np.lexsort((margin, bound))[-1])
        key = float(bound[at]), float(margin[at]), at, anchor
        if best is None or key[:2] > best[:2]:
            best = key
    assert best is not None
    return GuessRule(int(up[best[2]]), int(down[best[2]]), best[3], best[0])


def _values(budget: float) -> FloatArray:
    if budget <= 0.0:
        return np.concatenate([[0.0], np.geomspace(1e-3, 20.0, 120)])
    steps = int(math.log(SIZES.value_range) / math.log(SIZES.value_ratio))
    return np.array([budget * SIZES.value_ratio**k for k in range(-steps, steps + 1)])


def _bounds(
    accuracy: FloatArray,
    mass: FloatArray,
    sides: NDArray[np.bool_],
    lines: tuple[FloatArray, FloatArray],
    values: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The largest value that each candidate is expected to reject at one anchor, and by how much the least one is."""
    epsilons, deltas = (one.T for one in lines)  # (values, orders)
    epsilon = np.where(sides[0], epsilons[:, :1], -np.inf)
    epsilon = np.maximum(epsilon, np.where(sides[1], epsilons[:, 1:], -np.inf))
    cost = 0.5 * (deltas[:, :1] * sides[0] + deltas[:, 1:] * sides[1]) / mass
    excess = accuracy - scipy.special.expit(epsilon) - cost * scipy.special.expit(-epsilon)
    rejected = np.minimum.accumulate(excess > 0.0, axis=0)
    count = rejected.sum(axis=0)
    return np.where(count > 0, values[np.maximum(count - 1, 0)], 0.0), excess[0]
