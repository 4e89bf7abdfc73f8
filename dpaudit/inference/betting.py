"""Betting: an e-process of a claim on tables of counts, and the lower bound on the claim's parameter.

Wealth against a parameter value is the product over rounds of what the bets on each table won. Under every law that
keeps the claim at that value it is a non-negative supermartingale with start 1, so it reaches 1 / level with
probability at most `level`, ever (Ville's inequality).

The bound. Parameter values are tested from below, on a grid that the budget alone fixes; claims are nested, so the true
value's claim implies that of the first grid value at or above it, which is rejected with probability at most `level`.
Between two grid values the bets are those that are made for the upper one. With these the wealth falls in the
parameter, so that the wealth of the upper value is at most that of any value between: each truth is still tested by one
e-process.

The verdict is the bound: the budget is a grid value, and is rejected where all below it are and it is itself.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.density import LogRatio
from dpaudit.inference.bound_search import just_above
from dpaudit.inference.guess_rules import GuessRule, choose_rule, told_by
from dpaudit.inference.learning_state import LearningState
from dpaudit.inference.payoffs import Bets, Inequalities, best_bets, growth, log_factors
from dpaudit.inference.protocols import Test, Training
from dpaudit.inference.tables import N_BINS, EmptyCounter, Predicted, Round, bins_of
from dpaudit.inference.tasks import Statistic
from dpaudit.inference.witness import describe, rule_record, sketch
from dpaudit.learning.mixture import Mixture
from dpaudit.privacy.claims import Claim, FloatArray, PureDP
from dpaudit.results.model import Sketch


@dataclasses.dataclass(frozen=True)
class BettingSizes:
    """The grid of parameter values, and how the power is simulated."""

    below: tuple[float, ...] = (
        0.01,
        0.02,
        0.04,
        0.07,
        0.12,
        0.18,
        0.25,
        0.33,
        0.42,
        0.52,
        0.62,
        0.72,
        0.82,
        0.91,
    )  # of the budget: steps of a tenth of it, and of a third of themselves further below
    ratio: float = 1.1  # of values above the budget
    least: float = 1e-3  # the first value above a budget of 0
    precision: float = 1e-3  # of the bound between two grid values, relative to the upper one
    same_wealth: float = 1e-6  # nats, or relative: log wealth that differs by more was won by other bets
    rounding: float = 1e-9  # a loss below it is none
    max_parameter: float = 1e6  # the grid ends: no table of counts rejects so much
    simulations: int = 400  # audits by which a power is told from .9 with the share below
    simulations_found: float = 0.945  # below it with probability .002 where the power is .9


SIZES = BettingSizes()


class Betting(Test):
    """One use of the error rate on one pair, bet on round by round.

    Parameters
    ----------
    claim : Claim
    draws : int
        Labelled draws that may be counted.
    table_of : Betting, optional
        Another test of the same draws, whose table this one reads: it counts nothing itself.
    """

    def __init__(self, claim: Claim, draws: int, table_of: Betting | None = None) -> None:
        super().__init__(claim, draws)
        self.state: LearningState = LearningState() if table_of is None else table_of.state
        self._own_table = table_of is None
        self._inequalities = Inequalities(claim)
        self._counted = -1  # draws at the last computation of the bound
        self._ruled: tuple[int, GuessRule] | None = None  # draws at the choice of the witness's rule, and the rule
        self._offsets: dict[float, float] = {}  # log wealth that another engine's bets won beyond what these would have

    @classmethod
    def frozen(cls, claim: Claim, draws: int, mixture: Mixture, predicted: Predicted) -> Betting:
        """The test of one round of bets on a predictor that is known already."""
        test = cls(claim, draws)
        test.state = LearningState.frozen(mixture, predicted)
        return test

    @property
    def rounds(self) -> list[Round]:
        """Tables of all rounds so far."""
        return self.state.rounds

    # --- before the draws that are counted ---

    def prepare(self, training: Training, level: float) -> None:
        del level
        if self._own_table:
            self.state.learn(training)

    def prepare_on_counts(self) -> None:
        if self._own_table:
            self.state.learn_from_counts()

    def start(self, level: float) -> None:
        self.level = level

    @property
    def merit(self) -> tuple[int, float]:
        """Nats that its bets are expected to win against the budget."""
        if not self.rounds:
            return 0, -math.inf
        table = self.rounds[-1].predicted
        value = just_above(self.claim.value)
        return 1, growth(table, *self._inequalities.bets(value, table).factors(value)) * self.draws

    # --- the draws that are counted ---

    @property
    def statistic(self) -> Statistic:
        return self.state.counter if self._own_table else EmptyCounter()

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        if self._own_table:
            self.state.add(np.stack([counts_x_prime, counts_x]))

    def update(self) -> None:
        value = just_above(self.claim.value)
        if self._lower < value and self._log_wealth(value, value) >= -math.log(self.level):
            self._raise_bound(with_precision=False)

    @property
    def lower(self) -> float:
        counted = self.state.draws
        if counted != self._counted and not math.isnan(self.level):
            self._counted = counted
            self._raise_bound(with_precision=True)
        return self._lower

    def _raise_bound(self, *, with_precision: bool) -> None:
        """Test grid values from below; the bound never falls."""
        need = -math.log(self.level)
        budget = just_above(self.claim.value)
        rejected, above = 0.0, math.nan
        for value in self._grid():
            if not self._log_wealth(value, value) >= need:  # a NaN rejects nothing
                above = value
                break
            rejected = value
            if not with_precision and value >= budget:
                break
        if with_precision and above == above:
            low, high = rejected, above
            if low < self._lower < high:
                low = self._lower
            while high - low > SIZES.precision * above:  # of `high` it would go on for ever where nothing is rejected
                middle = 0.5 * (low + high)
                low, high = (middle, high) if self._log_wealth(above, middle) >= need else (low, middle)
            rejected = low if low >= budget else min(low, self.claim.value)
        self._lower = max(self._lower, rejected)

    def _grid(self) -> list[float]:
        budget = self.claim.value
        values = [share * budget for share in SIZES.below] if budget > 0.0 else []
        values.append(just_above(budget))
        value = max(budget, SIZES.least / SIZES.ratio)
        while value < SIZES.max_parameter:
            value *= SIZES.ratio
            values.append(value)
        return values

    def _log_wealth(self, made_for: float, value: float) -> float:
        """Log wealth against a value, of bets that are made for this one or one above it."""
        # Validity: where nothing is known of what an earlier engine had won against a value, nothing was.
        total = self._offsets.get(made_for, -math.inf) if self._offsets else 0.0
        for one in self.rounds:
            if not one.counts.any():
                continue
            if made_for == value:
                first, second = self._inequalities.log_factors(value, one.predicted)
            else:
                first, second = log_factors(self._inequalities.bets(made_for, one.predicted), value)
            total += _paid(first, one.counts[1]) + _paid(second, one.counts[0])
        return total

    @property
    def log_wealth(self) -> float | None:
        value = just_above(self.claim.value)
        return self._log_wealth(value, value)

    @property
    def p_value(self) -> float | None:
        return None

    def power(self, event_mass: float, probability: float) -> tuple[float, float]:
        """The smallest loss of randomised-response type found with this probability, and that at the budget.

        The witness is taken to know the two events, and bets on all of its draws as is best for it. By simulation with
        a fixed generator: 94.5% of 400 audits must be found, which for a true power of .9 or less has probability below
        .002 (binomial).
        """
        del probability  # the shares above are for .9, the one that reports use
        at_budget = self._loss_at_budget(event_mass)
        if not self.has_started:
            return math.inf, at_budget
        low, high = min(at_budget, 20.0), max(2.0 * at_budget, 0.1)
        while not self._finds(high, event_mass):
            low, high = high, 2.0 * high
            if high > 40.0:
                return math.inf, at_budget
        while high - low > 0.01 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._finds(middle, event_mass) else (middle, high)
        return high, at_budget

    def _finds(self, loss: float, event_mass: float) -> bool:
        up, down = event_mass * scipy.special.expit(loss), event_mass * scipy.special.expit(-loss)
        q, mass = np.full(N_BINS, 0.5), np.full(N_BINS, 0.0)
        q[0], q[-1] = scipy.special.expit(-min(loss, 30.0)), scipy.special.expit(min(loss, 30.0))
        mass[[0, N_BINS // 2, N_BINS - 1]] = 0.5 * (up + down), 1.0 - event_mass, 0.5 * (up + down)
        first, second = log_factors(
            best_bets(self._inequalities, just_above(self.claim.value), Predicted(q, mass)),
            just_above(self.claim.value),
        )
        own = [0, N_BINS // 2, N_BINS - 1]
        rng = np.random.default_rng(np.random.SeedSequence(20_261_127))
        shares = np.concatenate([mass[own] * q[own], mass[own] * (1.0 - q[own])])
        counts = rng.multinomial(max(self.draws, 0), shares / shares.sum(), size=SIZES.simulations)
        logs = np.nan_to_num(np.concatenate([first[own], second[own]]), neginf=-1e6)
        return bool(np.mean(counts @ logs >= -math.log(self.level)) >= SIZES.simulations_found)

    def _loss_at_budget(self, event_mass: float) -> float:
        """The loss at which randomised response inside the event leaves the claim, by bisection."""

        def exceeds(loss: float) -> bool:
            up, down = event_mass * scipy.special.expit(loss), event_mass * scipy.special.expit(-loss)
            if self.claim.family == "renyi":
                exponents = self._inequalities.renyi_exponents(self.claim.value).min(axis=0)
                for order, exponent in zip(self.claim.orders, exponents.tolist(), strict=True):
                    powers = [
                        math.log(max(up, 1e-300)) + (order - 1.0) * loss,
                        math.log(max(down, 1e-300)) - (order - 1.0) * loss,
                    ]
                    outside = math.log1p(-event_mass) if event_mass < 1.0 else -math.inf
                    if float(np.logaddexp.reduce([*powers, outside])) > exponent:
                        return True
                return False
            epsilons, deltas = self._inequalities.lines(self.claim.value)  # of each order of the pair
            return bool(np.any(up - np.exp(epsilons) * down > deltas))

        low, high = 0.0, 1.0
        while not exceeds(high):
            low, high = high, 2.0 * high
            if high > 40.0:
                return math.inf
        while high - low > 1e-6 * high and high > SIZES.rounding:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if exceeds(middle) else (middle, high)
        return low if low > SIZES.rounding else 0.0

    # --- the witness ---

    def _budget_bets(self, one: Round) -> Bets:
        """The bets of a round against the budget."""
        return self._inequalities.bets(just_above(self.claim.value), one.predicted)

    @property
    def line(self) -> dict[str, float]:
        bets = self._budget_bets(self.rounds[-1])
        guessed = [side for side, is_guessed in enumerate(self.rule.sides) if is_guessed]
        sides = bets.sides if self.claim.family == "renyi" else guessed or bets.sides
        return self._inequalities.said(self.claim.value, bets.strongest, sides)

    def _rule(self, counts: NDArray[np.int64]) -> GuessRule:
        """The guessing rule by counts of bins; where these are none, by what was predicted before any draw counted.

        Later rounds may predict what they learned from the one round that the rule is then counted on.
        """
        first = next((one for one in self.rounds if one.counts.any()), self.rounds[-1])
        held = counts if counts.any() else told_by(first.predicted.by_bins())
        draws = max(self.state.draws, 1)
        if self.claim.family == "renyi":  # by the odds of its guesses alone: lines of a Renyi promise take seconds
            return choose_rule(held, Inequalities(PureDP(1.0)), self.level, draws)
        anchors = [self._budget_bets(self.rounds[-1]).strongest] if self.claim.anchored else None
        return choose_rule(held, self._inequalities, self.level, draws, anchors)

    @property
    def rule(self) -> GuessRule:
        """The guessing rule of the witness, by all rounds."""
        if self._ruled is None or self._ruled[0] != self.state.draws:
            self._ruled = self.state.draws, self._rule(np.sum(self._tables, axis=0))
        return self._ruled[1]

    @property
    def _tables(self) -> list[NDArray[np.int64]]:
        """The counts of the two halves of the rounds, every other one, by bins."""
        halves = [np.zeros((2, N_BINS), dtype=np.int64) for _ in range(2)]
        for k, one in enumerate(each for each in self.rounds if each.counts.any()):
            bins = bins_of(one.predicted.q)
            for own, counts in zip(halves[k % 2], one.counts, strict=True):
                np.add.at(own, bins, counts)
        return halves

    @property
    def counts(self) -> tuple[int, int, int]:
        """Correct and wrong guesses and abstentions: each half of the rounds by the rule that the other half chose."""
        first, second = self._tables
        of_halves = zip(self._rule(second).record(first), self._rule(first).record(second), strict=True)
        correct, wrong, idle = (sum(both) for both in of_halves)
        return correct, wrong, idle

    def describe(self, x: str, x_prime: str) -> str:
        tells = self.is_rejected or (self.claim.family != "renyi" and self.rule.expected > self.claim.value)
        thresholds = self.rule.thresholds if tells else (math.inf, 0.0)  # it never guesses
        return describe(self.state.counter.mixture, self.state.shown, *thresholds, x, x_prime)

    def sketch(self) -> Sketch | None:
        return sketch(self.state.counter.mixture, self.state.shown, *self.rule.thresholds)

    def rule_record(self) -> dict[str, Any]:
        predicted = self.rounds[-1].predicted.by_bins()
        rule = dataclasses.asdict(self.rule.apart(predicted.mass))
        return rule_record(self.state.counter.mixture, predicted, rule=rule)

    # --- evidence that goes on in a later session ---

    def saved(self, origin: str) -> dict[str, Any]:
        return {
            "lower": self._lower,
            "wealths": [[value, self._log_wealth(value, value)] for value in self._grid_to_budget()],
            "offsets": [[value, offset] for value, offset in self._offsets.items()],
            **({"table": self.state.saved(origin)} if self._own_table else {}),
        }

    def restore(self, state: dict[str, Any], origin: str, density: LogRatio | None = None) -> None:
        if self._own_table:
            self.state.restore(state["table"], origin, density)
        self._counted = -1
        self._lower = float(state["lower"])
        self._offsets = {float(value): float(offset) for value, offset in state["offsets"]}
        known = {float(value): float(wealth) for value, wealth in state["wealths"] or ()}
        if any(math.isnan(one) or one == math.inf for one in (self._lower, *known.values(), *self._offsets.values())):
            raise ValueError("bounds and wealth must be numbers")
        if state["wealths"] is None:  # of evidence that was put together: it is what its rounds say
            return
        own = {value: self._log_wealth(value, value) for value in known}
        if list(known) != self._grid_to_budget() or not all(
            math.isclose(own[value], known[value], rel_tol=SIZES.same_wealth, abs_tol=SIZES.same_wealth)
            for value in known
        ):
            # Validity: this engine bets otherwise than the one that counted. What was won until now was fixed by that
            # one, and goes on as a number; later draws multiply it.
            before = self._offsets
            self._offsets = {
                value: before.get(value, 0.0) + known[value] - own[value] if own[value] > -math.inf else -math.inf
                for value in known
            }

    def _grid_to_budget(self) -> list[float]:
        return [value for value in self._grid() if value <= just_above(self.claim.value)]


def _paid(logs: FloatArray, counts: NDArray[np.int64]) -> float:
    reached = counts > 0
    return float(logs[reached] @ counts[reached])
