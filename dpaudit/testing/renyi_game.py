"""The game against Renyi and zCDP claims: bets on their own variational inequality, never on a profile.

A Renyi claim of order r says E_P[r g^(r-1)] - E_Q[(r-1) g^r] <= exp((r-1) epsilon) for every bounded g >= 0. With a
fair coin for the label, the payoff

    1{label 1} (a(Y) - k) - 1{label 0} (b(Y) - k) - c/2,     a = r g^(r-1),  b = (r-1) g^r,  c = exp((r-1) epsilon)

has mean at most 0 for any number k, because the coin is known to be fair; k = (min a + max a + min b + max b) / 4 keeps
the coin itself from making noise (at g = 1 and k = 0 the payoff would be +-(r - 1/2) by the coin alone). The payoff is
at least -(m + c/2) with m = max(k - min a, max b - k), so 1 + stake * payoff with stake = f / (m + c/2), 0 <= f < 1, is
a non-negative factor of mean at most 1. The witness is a function g that is constant on cells of a score; cells, g and
r are fitted on earlier draws, so products over successive draws are supermartingales even when the fit is renewed (each
fit is an *epoch* with its own counts). The two directions, (P, Q) with g and (Q, P) with its own, are averaged.

For a fixed g each factor decreases in c, hence wealth decreases in the claim's parameter and bisection finds the end of
the rejected interval: a label-1 factor is 1 + f (a - k - c/2) / (m + c/2), whose derivative has the sign of
-(m + a - k), and m >= k - min a; a label-0 factor is 1 - f (b - k + c/2) / (m + c/2), of the sign of -(m - b + k), and
m >= max b - k. (Where g = 1 everywhere, m = -1/2 and m + c/2 is 0 at c = 1: it is held above a small positive number,
which only makes stakes smaller.)
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.learning.cells import Cells
from dpaudit.learning.fitted_scores import best_rule, fit_rules
from dpaudit.learning.hints import NO_HINTS, Hints
from dpaudit.learning.objectives import Objective
from dpaudit.learning.scores import LogDensity
from dpaudit.privacy.claims import Claim, FloatArray, RenyiInequality
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.testing import wealth
from dpaudit.testing.hockey_stick import just_above, largest_rejected
from dpaudit.testing.protocols import Test, Training
from dpaudit.testing.renyi_epochs import SMALLEST_LOSS, Epoch, payoffs

CELLS = 12  # of equal mass, about, that a score is cut into
LARGEST_EXPONENT = 600.0  # of g ** order, beyond which a bet overflows
LARGEST_LOSS = 12.0  # nats, beyond which no alternative is tried for the power
CAPS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0)  # on |log g|: a rare large g would shrink every stake
# Of the budget: values that bets may be meant for, where they are not expected to win enough against a larger one.
AIMS = (1.0, 0.97, 0.94, 0.9, 0.85, *(0.8**k for k in range(1, 25)))
# Times what a bet has to win on the draws that it was fitted on, which flatter it. Against the budget less is asked:
# the verdict comes first, and a noisy pilot may show less than there is.
AT_BUDGET, BELOW_BUDGET = 0.25, 1.5
SIMULATIONS = 400  # of the alternative, for the power; see `RenyiGame.power`
SIMULATIONS_FOUND = 0.945  # share of them that must be found: the true power is then above 0.9 (see the docstring)


@dataclasses.dataclass(frozen=True)
class _Bet:
    """An order and a g per cell, (cells,); `at_budget` nats a draw is what the best bet is expected to win there."""

    at_budget: float
    order: float
    g: FloatArray


class RenyiGame(Test):
    """One use of the error rate on one pair, against a claim that is a family of Renyi inequalities.

    The same methods as `FixedGame` has; there is no exact test for these claims, so both modes bet, and a fixed audit
    looks once, at the end.
    """

    def __init__(self, claim: Claim, sequential: bool, draws: int) -> None:
        super().__init__(claim, draws)
        self.sequential = sequential
        self._merit: tuple[int, float] = (0, -math.inf)
        self._epochs: list[Epoch] = []
        self._watched = just_above(claim.value)
        self._bound_is_current = True
        self._fraction = np.empty(0)
        # Against a value: log wealth of each direction and fraction, of so many epochs.
        self._known: dict[float, tuple[FloatArray, int]] = {}

    def start(self, level: float) -> None:
        """Fix the level: the error rate this use may spend."""
        self.level = level
        self._fraction, self._known = wealth.fractions(self.draws, -math.log(level)), {}

    def prepare(self, training: Training, level: float) -> None:
        """Open an epoch: see `fit`."""
        self.fit(training.first, training.second, level, training.hints)

    @property
    def merit(self) -> tuple[int, float]:
        """Nats that its bets are expected to win against the budget."""
        return self._merit

    @property
    def epochs(self) -> list[Epoch]:
        """All fits so far, with their counts."""
        return self._epochs

    def fit(self, first: Outcomes, second: Outcomes, level: float, hints: Hints = NO_HINTS) -> None:
        """Fit cells, g and the order of each direction on earlier draws, and open an epoch."""
        chase = Objective(0.0, 0.0, max(self.draws, 1), level, chase_wealth=True)
        rules = fit_rules(first, second, chase, hints)
        rule = rules[best_rule(rules, chase)[0]].rule  # the score that separates best
        scores = [rule.score(rule.reading(outcomes)) for outcomes in (first, second)]
        cells = Cells(rule.score, _cell_edges(np.concatenate(scores)), rule.reading)
        p, q = ((cells.count(side).astype(float) + 0.5) / (len(side) + 0.5 * cells.size) for side in (first, second))
        # Cells that few draws reached are drawn towards ratio 1, by the sampling variance of their log ratio.
        variance = 1.0 / (p * len(first)) + 1.0 / (q * len(second))
        log_ratio_of_cells = np.log(p / q) / (1.0 + variance)
        threshold = -math.log(level)
        parts = 2 * len(wealth.fractions(self.draws, threshold))  # that share the wealth
        enough = (max(threshold, 1.0) + math.log(parts)) / max(self.draws, 1)
        forward = self._best_bet(log_ratio_of_cells, p, q, enough)
        backward = self._best_bet(-log_ratio_of_cells, q, p, enough)
        self._merit = (1, max(forward.at_budget, backward.at_budget) * self.draws)
        counts = np.zeros((2, cells.size), dtype=np.int64)
        self._epochs.append(Epoch(cells, np.stack([forward.g, backward.g]), (forward.order, backward.order), counts))

    @property
    def fraction(self) -> FloatArray:
        """Shares of the largest legal stake over which wealth is averaged."""
        return self._fraction

    def go_on(self, fraction: FloatArray, lower: float, epochs: Sequence[Epoch]) -> None:
        """Go on from what was saved: the fractions, the bound, and the epochs with their counts."""
        self._fraction, self._lower, self._epochs, self._known = fraction, lower, list(epochs), {}
        self._bound_is_current = False

    @property
    def statistic(self) -> Cells:
        """What is counted on each side's draws: the cells of the current epoch."""
        return self.epochs[-1].cells

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add the counts per cell of new draws of x and of x_prime."""
        self.epochs[-1].counts += np.stack([counts_x_prime, counts_x])
        self._bound_is_current = False

    def update(self) -> None:
        """Look at the wealth. (The bound is computed when it is asked for.)"""
        if self._log_wealth(self._watched) >= -math.log(self.level):
            # Validity: the wealth of every smaller parameter was as large at this look. The bound keeps what it saw.
            self._lower = max(self._lower, self._watched)

    @property
    def lower(self) -> float:
        """The lower confidence bound on the claim's parameter, at `level`; it never falls."""
        if not self._bound_is_current:
            threshold = -math.log(self.level)

            def rejected(values: FloatArray) -> NDArray[np.bool_]:
                return np.array([self._log_wealth(float(value)) >= threshold for value in values])

            self._lower = max(self._lower, largest_rejected(rejected, self._lower, self.claim.value, points=4))
            self._bound_is_current = True
        return self._lower

    @property
    def log_wealth(self) -> float | None:
        """Log e-value against the budget."""
        return self._log_wealth(self.claim.value)

    @property
    def p_value(self) -> float | None:
        return None

    @property
    def line(self) -> dict[str, float]:
        """The order it bets at in the direction (P, Q), and the Renyi divergence promised there."""
        order = self.epochs[-1].orders[0]
        return {"order": order, "epsilon": self._epsilon(self.claim.value, order)}

    @property
    def counts(self) -> tuple[int, int, int]:
        """Of the current epoch: draws of x where g > 1 and of x_prime where g < 1, the other way round, where g = 1."""
        epoch = self.epochs[-1]
        up, down = epoch.g[0] > 1.0, epoch.g[0] < 1.0
        correct = int(epoch.counts[1, up].sum() + epoch.counts[0, down].sum())
        wrong = int(epoch.counts[0, up].sum() + epoch.counts[1, down].sum())
        return correct, wrong, int(epoch.counts[:, ~up & ~down].sum())

    def describe(self, x: str, x_prime: str) -> str:
        """The witness in words."""
        epoch = self.epochs[-1]
        return (
            f"Look at {epoch.cells.score.describe()} in {epoch.cells.size} cells: pay g, an estimate of the density "
            f"ratio between {float(epoch.g[0].min()):.4g} and {float(epoch.g[0].max()):.4g}, for draws of {x}, and "
            f"charge it for draws of {x_prime}, at Renyi order {epoch.orders[0]:g}; the other direction at "
            f"{epoch.orders[1]:g}."
        )

    def rule_record(self) -> dict[str, Any]:
        """The witness as data: the cells, g and the orders of the last epoch."""
        epoch = self.epochs[-1]
        g = [[float(value).hex() for value in row] for row in epoch.g]
        return {"game": "renyi", **epoch.cells.to_dict(), "g": g, "orders": list(epoch.orders)}

    def power(self, event_mass: float, probability: float) -> tuple[float, float]:
        """The smallest loss of randomised-response type found with the given probability, and that at the budget.

        By simulation of the alternative with a fixed generator: 400 audits whose witness knows the two events. At least
        94.5% must be found, which for a true power of 0.9 or less has probability below 0.002 (binomial), so the figure
        errs on the side of a larger loss. Simulated figures say what the bets could find, with the fit free of charge.
        """
        del probability  # the figures above are for 0.9, the one that reports use
        at_budget = self._loss_at_budget(event_mass)
        low, high = at_budget, max(2.0 * at_budget, 0.1)
        while not self._finds(high, event_mass):
            low, high = high, 2.0 * high
            if high > LARGEST_LOSS:
                return math.inf, at_budget
        while high - low > 0.01 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._finds(middle, event_mass) else (middle, high)
        return high, at_budget

    def _finds(self, loss: float, event_mass: float) -> bool:
        share = event_mass * np.array([scipy.special.expit(loss), scipy.special.expit(-loss)])
        p, q = np.array([*share, 1.0 - event_mass]), np.array([*share[::-1], 1.0 - event_mass])
        rng = np.random.default_rng(np.random.SeedSequence(20_261_121))
        bet = self._best_bet(np.array([loss, -loss, 0.0]), p, q)
        order, g = bet.order, np.stack([bet.g, bet.g[[1, 0, 2]]])
        cells = Cells(self.epochs[-1].cells.score, np.zeros(1), Reading(1))
        counts = rng.multinomial(self.draws, np.concatenate([p, q]) / 2.0, size=SIMULATIONS).reshape(-1, 2, 3)
        bound = self._bound(self.claim.value, order)
        if not math.isfinite(bound):
            return False
        epoch = Epoch(cells, g, (order, order), counts.transpose(1, 2, 0)[::-1])  # counts: (2, cells, simulations)
        logs = np.concatenate([epoch.log_factors(direction, bound, self._fraction) for direction in (0, 1)])
        total = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
        return bool(np.mean(total >= -math.log(self.level)) >= SIMULATIONS_FOUND)

    def _loss_at_budget(self, event_mass: float) -> float:
        """The loss at which the alternative's divergence reaches the claim at one of the orders, by bisection."""
        if self.claim.value == 0.0:
            return 0.0

        def exceeds(loss: float) -> bool:
            share = event_mass * np.array([scipy.special.expit(loss), scipy.special.expit(-loss)])
            for order in self.claim.orders:
                outside = math.log1p(-event_mass) if event_mass < 1.0 else -math.inf
                with np.errstate(over="ignore"):
                    logs = np.log(share) + (order - 1.0) * np.array([loss, -loss])
                    moment = float(np.logaddexp.reduce([*logs.tolist(), outside]))
                if moment / (order - 1.0) > self._epsilon(self.claim.value, order):
                    return True
            return False

        low, high = 0.0, 1.0
        while not exceeds(high):
            low, high = high, 2.0 * high
            if high > 40.0:
                return math.inf
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if exceeds(middle) else (middle, high)
        return low

    def _best_bet(self, log_ratio: FloatArray, p: FloatArray, q: FloatArray, enough: float = 0.0) -> _Bet:
        """The best bet on P against Q, over the claim's orders and the caps on log g.

        It is meant for the largest of `AIMS` against which it is expected to win `enough` nats a draw, times
        `AT_BUDGET` or `BELOW_BUDGET`. (Against a budget that holds none wins anything; the bound below it is wanted all
        the same, and needs another bet.)
        """
        bets = [
            (order, g) for cap in CAPS for g in [np.exp(np.clip(log_ratio, -cap, cap))] for order in self.claim.orders
        ]
        growth = np.stack([self._growth(g, order, p, q) for order, g in bets], axis=1)  # (aims, bets)
        at_budget = float(growth[0].max())
        needed = enough * np.array([AT_BUDGET, *(BELOW_BUDGET for _ in AIMS[1:])])
        for row in (*growth[growth.max(axis=1) >= np.maximum(needed, 1e-300)], growth[0]):
            best = int(np.argmax(row))
            if row[best] > 0.0:
                return _Bet(at_budget, *bets[best])
        # Nothing looks worth a bet: keep the smallest one that does not overflow, for the bound at smaller parameters.
        least = min(self.claim.orders)
        cap = min(CAPS[0], LARGEST_EXPONENT / least)
        return _Bet(at_budget, least, np.exp(np.clip(log_ratio, -cap, cap)))

    def _growth(self, g: FloatArray, order: float, p: FloatArray, q: FloatArray) -> FloatArray:
        """Expected log wealth per draw at the best fraction, if the laws on the cells were p, q; shape (aims,)."""
        half = 0.5 * self._aimed_bounds[order]
        growth = np.full(len(half), -math.inf)
        finite = np.isfinite(half)
        if not finite.any() or order * float(np.log(g.max())) > LARGEST_EXPONENT:
            return growth
        paid, charged, least = payoffs(g, order)
        half = half[finite, None, None]
        stakes = scipy.special.expit(np.arange(-6.0, 3.0, 1.0))[:, None] / np.maximum(least + half, SMALLEST_LOSS)
        won, lost = np.log1p(stakes * (paid - half)) @ p, np.log1p(-stakes * (charged + half)) @ q
        growth[finite] = (0.5 * (won + lost)).max(axis=1)
        return growth

    def _epsilon(self, value: float, order: float) -> float:
        return float(self.claim.renyi_epsilons(np.array([value]), order)[0])

    def _bound(self, value: float, order: float) -> float:
        return RenyiInequality(order, self._epsilon(value, order)).bound

    @functools.cached_property
    def _aimed_bounds(self) -> dict[float, FloatArray]:
        """The bounds of each order at the values that bets may be meant for, shape (aims,)."""
        values = (self.claim.value * np.array(AIMS)).tolist()
        return {order: np.array([self._bound(value, order) for value in values]) for order in self.claim.orders}

    def _log_wealth(self, value: float) -> float:
        known = self._known.get(value)  # of the first epochs, which count no more draws
        logs, first = (np.zeros((2, len(self._fraction))), 0) if known is None else (known[0].copy(), known[1])
        for place, epoch in enumerate(self.epochs[first:], start=first):
            if place == len(self.epochs) - 1 and value in (self._watched, self.claim.value):  # asked at every look
                self._known[value] = logs.copy(), place
            for direction in (0, 1):
                bound = self._bound(value, epoch.orders[direction])
                if not math.isfinite(bound):
                    return -math.inf
                logs[direction] += epoch.log_factors(direction, bound, self._fraction)
        return float(np.logaddexp.reduce(logs, axis=None) - math.log(logs.size))


def _cell_edges(scores: FloatArray) -> FloatArray:
    """Edges of about `CELLS` cells of equal mass; equal scores stay together."""
    known = np.sort(scores[~np.isnan(scores)])
    if len(known) == 0:
        return np.zeros(1)
    values = np.unique(known)
    if len(values) <= CELLS:
        edges = values[1:] if len(values) > 1 else values
    else:
        edges = np.unique(known[(np.linspace(0.0, 1.0, CELLS + 1)[1:-1] * len(known)).astype(int)])
    return edges[np.isfinite(edges)] if np.any(np.isfinite(edges)) else np.zeros(1)
