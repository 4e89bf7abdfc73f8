"""Betting: an e-process of a claim on tables of counts, and the lower bound on the claim's parameter.

Wealth against a parameter value is the product over rounds of what the bets on each table won. Under every law that
keeps the claim at that value it is a non-negative supermartingale with start 1, so it reaches 1 / level with
probability at most `level`, ever (Ville's inequality).

The bound is that of `dpaudit.inference.bound_search`: values are tested from below on a grid, without a union bound.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.density import LogRatio
from dpaudit.inference.bound_search import bet_bound, bet_grid, bisected, just_above
from dpaudit.inference.guess_rules import GuessRule, choose_rule, predicted_counts
from dpaudit.inference.payoffs import Bets, Inequalities, growth, log_factors
from dpaudit.inference.protocols import Test
from dpaudit.inference.tables import N_BINS, Predicted, Round, bins_of
from dpaudit.privacy.claims import Claim, FloatArray, PureDP


@dataclasses.dataclass(frozen=True)
class BettingSizes:
    """The grid of parameter values, and how the power is simulated."""

    # Of the budget: steps of about a tenth of it; up to a third of it shorter ones, a quarter to a half of their end.
    below: tuple[float, ...] = (0.01, 0.02, 0.04, 0.07, 0.12, 0.18, 0.25, 0.33, 0.42, 0.52, 0.62, 0.72, 0.82, 0.91)
    same_wealth: float = 1e-6  # nats, or relative: log wealth that differs by more was won by other bets
    simulations: int = 400  # audits by which a power is told from .9 with the share below
    simulations_found: float = 0.945  # below it with probability .002 where the power is .9


SIZES = BettingSizes()


class Betting(Test):
    """One use of the error rate on one pair, bet on round by round."""

    def __init__(self, claim: Claim, draws: int, table_of: Test | None = None) -> None:
        super().__init__(claim, draws, table_of)
        self._counted = -1  # draws at the last computation of the bound
        self._ruled: tuple[int, GuessRule] | None = None  # draws at the choice of the witness's rule, and the rule
        self._closed: dict[float, tuple[int, float]] = {}  # all rounds but the last, and log wealth that these won
        self._offsets: dict[float, float] = {}  # log wealth that another engine's bets won beyond what these would have

    @property
    def rounds(self) -> list[Round]:
        """Tables of all rounds so far."""
        return self.table.rounds

    @property
    def merit(self) -> tuple[int, float]:
        """Nats that its bets are expected to win against the budget."""
        if not self.rounds:
            return 0, -math.inf
        table = self.rounds[-1].predicted
        value = just_above(self.claim.value)
        return 1, growth(table, *self._inequalities.bets(value, table).factors(value)) * self.draws

    def update(self) -> None:
        budget = just_above(self.claim.value)
        if self._lower < budget and self.log_wealth >= -math.log(self.level):  # a NaN rejects nothing
            self._lower = budget

    @property
    def lower(self) -> float:
        if self.table.draws != self._counted and self.has_started:
            self._counted = self.table.draws
            grid = bet_grid(self.claim.value, SIZES.below)
            wealth, enough = self._log_wealth, -math.log(self.level)  # a NaN rejects nothing
            found = bet_bound(lambda *values: wealth(*values) >= enough, grid, self.claim.value, self._lower)
            self._lower = max(self._lower, found)
        return self._lower

    def _log_wealth(self, made_for: float, value: float) -> float:
        """Log wealth against a value, of bets that are made for this one or one above it."""
        closed, total = self._closed.get(value, (0, 0.0)) if made_for == value else (0, 0.0)
        for k, one in enumerate(self.rounds[closed:], closed + 1):
            if made_for == value and k == len(self.rounds):
                self._closed[value] = k - 1, total
            if not one.counts.any():
                continue
            if made_for == value:
                first, second = self._inequalities.log_factors(value, one.predicted)
            else:
                first, second = log_factors(self._inequalities.bets(made_for, one.predicted), value)
            total += _paid(first, one.counts[1]) + _paid(second, one.counts[0])
        # Validity: where nothing is known of what an earlier engine had won against a value, nothing was.
        return total + self._offsets.get(made_for, -math.inf) if self._offsets else total

    @property
    def log_wealth(self) -> float:
        value = just_above(self.claim.value)
        wealth = self._log_wealth(value, value)
        if wealth < -math.log(self.level):
            return wealth
        # The verdict rejects all values below the budget too, each by bets of its own: the least of them decides.
        return float(np.min([self._log_wealth(below, below) for below in self._grid_to_budget()]))

    def _found_loss(self, event_mass: float, probability: float, at_budget: float) -> float:
        """By simulation of bets with a fixed generator, at the end of all draws.

        94.5% of 400 audits must be found, which for a true power of .9 or less has probability below .002 (binomial).
        """
        del probability  # the shares above are for .9, the one that reports use
        low, high = min(at_budget, 20.0), max(2.0 * at_budget, 0.1)
        while not self._finds(high, event_mass):
            low, high = high, 2.0 * high
            if high > 40.0:
                return math.inf
        return bisected(lambda loss: not self._finds(loss, event_mass), low, high, 0.01)[1]

    def _finds(self, loss: float, event_mass: float) -> bool:
        q, mass = np.full(N_BINS, 0.5), np.full(N_BINS, 0.0)
        q[0], q[-1] = scipy.special.expit(-min(loss, 30.0)), scipy.special.expit(min(loss, 30.0))
        mass[[0, N_BINS // 2, N_BINS - 1]] = 0.5 * event_mass, 1.0 - event_mass, 0.5 * event_mass
        first, second = self._inequalities.log_factors(just_above(self.claim.value), Predicted(q, mass))
        own = [0, N_BINS // 2, N_BINS - 1]
        rng = np.random.default_rng(np.random.SeedSequence(20_261_127))
        shares = np.concatenate([mass[own] * q[own], mass[own] * (1.0 - q[own])])
        counts = rng.multinomial(max(self.draws, 0), shares / shares.sum(), size=SIZES.simulations)
        logs = np.nan_to_num(np.concatenate([first[own], second[own]]), neginf=-1e6)
        return bool(np.mean(counts @ logs >= -math.log(self.level)) >= SIZES.simulations_found)

    def _budget_bets(self, one: Round) -> Bets:
        """The bets of a round against the budget."""
        return self._inequalities.bets(just_above(self.claim.value), one.predicted)

    @property
    def line(self) -> dict[str, float]:
        bets = self._budget_bets(self.rounds[-1])
        guessed = [way for way, is_guessed in enumerate(self.rule.directions) if is_guessed]
        directions = bets.directions if self.claim.family == "renyi" else guessed or bets.directions
        return self._inequalities.said(self.claim.value, bets.strongest, directions)

    def _rule(self, counts: NDArray[np.int64]) -> GuessRule:
        """The guessing rule by counts of bins; where these are none, by what was predicted before any draw counted.

        Later rounds may predict what they learned from the one round that the rule is then counted on.
        """
        first = next((one for one in self.rounds if one.counts.any()), self.rounds[-1])
        held = counts if counts.any() else predicted_counts(first.predicted.by_bins())
        draws = max(self.table.draws, 1)
        if self.claim.family == "renyi":  # by the odds of its guesses alone: lines of a Renyi promise take seconds
            return choose_rule(held, Inequalities(PureDP(1.0)), self.level, draws)
        anchors = [self._budget_bets(self.rounds[-1]).strongest] if self.claim.anchored else None
        return choose_rule(held, self._inequalities, self.level, draws, anchors)

    @property
    def rule(self) -> GuessRule:  # type: ignore[override]
        """The guessing rule of the witness, by all rounds."""
        if self._ruled is None or self._ruled[0] != self.table.draws:
            self._ruled = self.table.draws, self._rule(np.sum(self._tables, axis=0))
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

    @property
    def thresholds(self) -> tuple[float, float]:
        tells = self.is_rejected or (self.claim.family != "renyi" and self.rule.expected > self.claim.value)
        return self.rule.thresholds if tells else (math.inf, 0.0)  # it never guesses

    def saved(self, origin: str) -> dict[str, Any]:
        """The state as JSON values; `origin` names the streams of the draws that are counted now."""
        return {
            "lower": self._lower,
            "wealths": [[value, self._log_wealth(value, value)] for value in self._grid_to_budget()],
            "offsets": [[value, offset] for value, offset in self._offsets.items()],
            **({"table": self.table.saved(origin)} if self._own_table else {}),
        }

    def restore(self, state: dict[str, Any], density: LogRatio | None = None) -> None:
        """Go on from what `saved` gave; ValueError where it is damaged."""
        if self._own_table:
            self.table.restore(state["table"], density)
        self._counted, self._closed = -1, {}
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
        grid = bet_grid(self.claim.value, SIZES.below)
        return grid[: grid.index(just_above(self.claim.value)) + 1]


def _paid(logs: FloatArray, counts: NDArray[np.int64]) -> float:
    reached = counts > 0
    return float(logs[reached] @ counts[reached])
