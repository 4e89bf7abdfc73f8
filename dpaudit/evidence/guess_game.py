"""The game against a family of hockey-stick lines: guesses, their record, and the bound they support.

One `GuessGame` is one use of the error rate on one pair: pure, approximate, Gaussian and profile claims. It fits a rule
on earlier draws, is told how often the rule was right on new ones, and inverts the bet over the claim's parameter.

Validity rests on three facts, kept by `LabelGame`: the rule is fixed before the draws it is counted on; labels are fair
coins independent of everything before; the level is fixed before the first counted draw.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.evidence import binomial, wealth
from dpaudit.evidence.outcomes import Outcomes
from dpaudit.evidence.rules import FittedRule, Objective, Rule, RuleSet, best_rule, fit_rules
from dpaudit.evidence.scores import LogRatio
from dpaudit.privacy.claims import Claim, FloatArray

ANCHORS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # epsilons of lines a free family may bet at
IDLE_CASH = 0.25  # share of the wealth kept out of bets by rules that did not look worth one
MASS_SHARE = 0.05  # of a fixed test's level, spent on the probability of a guess where the line has a delta
FINALISTS = 3  # rules that stay in the contest after `LONG_CONTEST` draws
LONG_CONTEST = 50_000
LARGEST_PARAMETER = 1e6  # beyond which no bound is searched
GUESSES_QUANTILE = 0.005  # power is computed at this quantile of the number of guesses, and pays for it


@dataclasses.dataclass
class Contestant:
    """A rule with its counts (correct, wrong, abstained) on draws it was not fitted on, whether it bet or not."""

    fitted: FittedRule
    counts: NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.zeros(3, dtype=np.int64))

    def rates(self) -> tuple[float, float, float]:
        """Rates of correct and wrong guesses over all its draws, those of the fit at half weight; and the draws."""
        before = 0.5 * self.fitted.trained_on
        draws = before + float(self.counts.sum())
        correct = (before * self.fitted.correct + float(self.counts[0])) / draws
        return correct, (before * self.fitted.wrong + float(self.counts[1])) / draws, draws


class GuessGame:
    """One use of the error rate on one pair, against a claim that is a family of hockey-stick lines.

    Parameters
    ----------
    claim : Claim
        Of this pair; family "hockey-stick", value finite.
    sequential : bool
        Bet on every draw and look at any time, or run one exact test at the end.
    draws : int
        Labelled draws that may be bet on: 2 * samples less those kept for the first fit.

    Notes
    -----
    `level` is set by `start`, before the first counted draw. In sequential mode P(lower ever > truth) <= level; in
    fixed mode P(lower > truth) <= level for the one record at the end.
    """

    def __init__(self, claim: Claim, sequential: bool, draws: int) -> None:
        self.claim, self.sequential, self.draws = claim, sequential, draws
        self.level = math.nan
        self._contest: list[Contestant] = []
        self._bettor = 0
        self.merit: tuple[int, float] = (0, -math.inf)
        self.anchor = 0.0
        # Counts (correct, wrong, abstained) of the draws under rules that looked worth a bet at the budget (1) or not
        # (0), and by the number of guessing events of the rule less one, which is what the delta of a line costs (a
        # rule without any event abstains always and is counted as one-sided). Each draw falls into one of the records,
        # which one is known before it, so the product of the records' wealths is a supermartingale: early rules that
        # only served the bound cannot ruin the bets of later ones.
        self.records = np.zeros((2, 2, 3), dtype=np.int64)
        self._lower = 0.0
        self._prefix = 0  # how many points of the epsilon grid are rejected so far, where the bound uses one
        self._fraction = np.empty(0)
        self._fixed_anchor = False

    def start(self, level: float) -> None:
        """Fix the level: the error rate this use may spend."""
        self.level = level
        self._fraction = wealth.fractions(self.draws, -math.log(level))

    def fit(self, first: Outcomes, second: Outcomes, level: float, log_ratio: LogRatio | None) -> None:
        """Fit rules (the first time, choose the line too) on earlier draws of x (`first`) and x_prime (`second`).

        A sequential game keeps the rule that bets, with its record, and lets the new ones compete with it.
        """
        anchors = (self.anchor,) if self._fixed_anchor or not self.claim.anchored else ANCHORS
        best: tuple[int, float] | None = None
        fitted: list[FittedRule] = []
        chosen = 0
        for anchor in anchors:
            objective = self._objective(anchor, level)
            rules = fit_rules(first, second, objective, log_ratio)
            position, merit = best_rule(rules, objective)
            # Lines of a free family compare by how far the bound exceeds the line.
            merit = (merit[0], merit[1] if merit[0] or not self.claim.anchored else merit[1] - objective.epsilon)
            if best is None or merit > best:
                best, fitted, chosen, self.anchor = merit, rules, position, anchor
        assert best is not None
        # Validity: the line of a free family is chosen once, before the first counted draw.
        self._fixed_anchor = True
        if not self.sequential:
            fitted, chosen = [fitted[chosen]], 0
        kept = [self._contest[self._bettor]] if self._contest else []
        self._contest = kept + [Contestant(rule) for rule in fitted]
        self._bettor, self.merit = len(kept) + chosen, best
        if kept:
            self._choose(level)

    def _objective(self, anchor: float, level: float) -> Objective:
        epsilon, delta = self._line(np.array([self.claim.value]), anchor)
        remaining = max(self.draws - int(self.records.sum()), 1)
        return Objective(float(epsilon[0]), float(delta[0]), remaining, level, self.sequential)

    def _choose(self, level: float) -> None:
        """Let the best contestant bet from now on: by its draws since it was fitted and, at half weight, those before.

        Validity: the choice is made between rounds, so the bettor of a draw is fixed before the draw.
        """
        rates = [contestant.rates() for contestant in self._contest]
        correct, wrong, draws = (np.array(column) for column in zip(*rates, strict=True))
        sides = np.array([contestant.fitted.rule.sides for contestant in self._contest])
        merits = self._objective(self.anchor, level).merits(correct, wrong, sides, draws)
        self._bettor = max(range(len(merits)), key=lambda k: merits[k])
        self.merit = merits[self._bettor]
        if len(self._contest) > FINALISTS and min(int(c.counts.sum()) for c in self._contest) > LONG_CONTEST:
            ranked = sorted(range(len(merits)), key=lambda k: merits[k], reverse=True)[:FINALISTS]
            self._contest, self._bettor = [self._contest[k] for k in ranked], 0

    def set_rule(self, rule: Rule, anchor: float) -> None:
        """Bet with this rule and line, which were fixed elsewhere before any draw of this game."""
        self._contest, self._bettor = [Contestant(FittedRule(rule, 0.0, 0.0, 0.0))], 0
        self.anchor, self._fixed_anchor = anchor, True

    @property
    def rule(self) -> Rule:
        """The rule that bets."""
        assert self._contest, "fit comes before betting"
        return self._contest[self._bettor].fitted.rule

    @property
    def witness(self) -> Contestant:
        """The rule of the contest with the strongest record of its own against the budget, which is what is shown.

        It need not be the one that bet last. Its p-value is that of one rule out of several, chosen afterwards: it
        serves to pick the rule and is not reported; a replay tests the rule on fresh draws.
        """

        def evidence(contestant: Contestant) -> tuple[float, float]:
            correct, wrong, abstained = contestant.counts.tolist()
            scale = math.exp(-self.line["epsilon"])  # everything over e^epsilon, which may overflow
            cost = scale * self.line["delta"] * max(contestant.fitted.rule.sides, 1) / 2.0
            excess = scale * correct - wrong - cost * (correct + wrong + abstained)
            deviation = math.sqrt(scale**2 * (correct + 1.0) + wrong) or 1.0
            return excess / deviation, float(contestant is self._contest[self._bettor])

        return max(self._contest, key=evidence)

    @property
    def statistic(self) -> RuleSet:
        """What is counted on each side's draws: all rules of the contest."""
        return RuleSet(tuple(contestant.fitted.rule for contestant in self._contest))

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add the rules' counts (guessed 0, guessed 1, abstained; shape (rules, 3)) on new draws of x and x_prime."""
        correct = counts_x[:, 1] + counts_x_prime[:, 0]
        wrong = counts_x[:, 0] + counts_x_prime[:, 1]
        counts = np.stack([correct, wrong, counts_x[:, 2] + counts_x_prime[:, 2]], axis=1)
        self.records[self.merit[0], max(self.rule.sides, 1) - 1] += counts[self._bettor]
        for contestant, row in zip(self._contest, counts, strict=True):
            contestant.counts += row

    def update(self) -> None:
        """Look at the record: raise the lower bound as far as the evidence goes (it never falls)."""
        bound = self._sequential_bound() if self.sequential else self._fixed_bound()
        self._lower = max(self._lower, bound)
        if self.sequential:
            self._choose(self.level)

    @property
    def lower(self) -> float:
        """The lower confidence bound on the claim's parameter, at `level`."""
        return self._lower

    @property
    def log_wealth(self) -> float | None:
        """Log e-value against the budget (sequential mode, else None)."""
        return float(self._log_wealth(np.array([self.claim.value]))[0]) if self.sequential else None

    @property
    def p_value(self) -> float | None:
        """Of the exact test against the budget (fixed mode, else None)."""
        if self.sequential:
            return None
        (correct, wrong, _), draws, sides = self._totals()
        epsilon, delta = self._line(np.array([self.claim.value]), self.anchor)
        cost = float(delta[0]) * sides / 2.0
        return binomial.p_value(correct, correct + wrong, draws, float(epsilon[0]), cost, self.level, MASS_SHARE)

    @property
    def line(self) -> dict[str, float]:
        """The line it bets against, at the budget."""
        epsilon, delta = self._line(np.array([self.claim.value]), self.anchor)
        return {"epsilon": float(epsilon[0]), "delta": float(delta[0])}

    @property
    def counts(self) -> tuple[int, int, int]:
        """Correct and wrong guesses and abstentions of the witness, on draws it was not fitted on."""
        correct, wrong, abstained = self.witness.counts.tolist()
        return correct, wrong, abstained

    def describe(self, x: str, x_prime: str) -> str:
        """The witness in words."""
        return self.witness.fitted.rule.describe(x, x_prime)

    def rule_record(self) -> dict[str, Any]:
        """The witness as data, for `dpaudit.evidence.rules.rule_from_dict`."""
        return {"game": "guess", "anchor": self.anchor, **self.witness.fitted.rule.to_dict()}

    def power(self, event_mass: float, probability: float) -> tuple[float, float]:
        """The smallest loss of randomised-response type found with the given probability, and that at the budget.

        The number of guesses on such an alternative is binomial(draws, event_mass); it exceeds its 0.5% quantile G with
        probability at least 0.995, and given at least G guesses the test rejects with at least the probability it has
        at G (exact, up to the discreteness of the binomial), so the product is a lower bound of the power. A claim
        with free lines is bet at the best of `ANCHORS`.
        """
        guesses = int(special.bdtrik(GUESSES_QUANTILE, self.draws, event_mass))
        if guesses < 1:
            return math.inf, self._loss_at_budget(event_mass)
        detectable = math.inf
        for anchor in ANCHORS if self.claim.anchored else (self.anchor,):
            epsilon, delta = (float(value[0]) for value in self._line(np.array([self.claim.value]), anchor))
            critical = self._critical(guesses, epsilon, delta)
            if critical <= guesses:
                target = probability / (1.0 - GUESSES_QUANTILE)
                accuracy = float(special.betaincinv(critical, guesses - critical + 1.0, target))
                detectable = min(detectable, float(special.logit(accuracy)))
        return detectable, self._loss_at_budget(event_mass)

    def _critical(self, guesses: int, epsilon: float, delta: float) -> int:
        """The fewest correct guesses that reject the line, among `guesses` of a rule with both events."""
        if self.sequential:
            return wealth.critical_correct(guesses, self.draws, epsilon, delta, self._fraction, -math.log(self.level))
        low, high = -1, guesses + 1
        while high - low > 1:
            middle = (low + high) // 2
            p = binomial.p_value(middle, guesses, self.draws, epsilon, delta, self.level, MASS_SHARE)
            low, high = (low, middle) if p <= self.level else (middle, high)
        return high

    def _loss_at_budget(self, event_mass: float) -> float:
        losses = []
        for anchor in ANCHORS if self.claim.anchored else (self.anchor,):
            epsilon, delta = self._line(np.array([self.claim.value]), anchor)
            accuracy = float(binomial.largest_accuracy(epsilon, delta, event_mass)[0])
            losses.append(float(special.logit(accuracy)) if delta[0] > 0.0 else float(epsilon[0]))
        return min(losses)

    def _line(self, values: FloatArray, anchor: float) -> tuple[FloatArray, FloatArray]:
        return self.claim.lines(values, anchor)

    def _totals(self) -> tuple[list[int], int, int]:
        """Counts, draws and the number of guessing events of the one rule of a fixed test."""
        return list(self.counts), sum(self.counts), max(self.rule.sides, 1)

    def _log_wealth(self, values: FloatArray) -> FloatArray:
        epsilon, delta = self._line(values, self.anchor)
        idle = wealth.log_wealth(self.records[0], epsilon, delta, self._fraction, cash=IDLE_CASH)
        return idle + wealth.log_wealth(self.records[1], epsilon, delta, self._fraction)

    def _rejected(self, values: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(self._log_wealth(values) >= -math.log(self.level))

    def _sequential_bound(self) -> float:
        if self.claim.delta > 0.0:  # wealth need not be monotone in epsilon: a fixed grid, see `rejected_prefix`
            grid = epsilon_grid(self.claim.value)
            self._prefix = wealth.rejected_prefix(self._rejected, grid, self._prefix)
            return float(grid[self._prefix - 1]) if self._prefix else 0.0
        return largest_rejected(self._rejected, self._lower, self.claim.value)

    def _fixed_bound(self) -> float:
        (correct, wrong, _), draws, sides = self._totals()
        guesses = correct + wrong
        costs = self.claim.anchored or self.claim.delta > 0.0
        spent = self.level * MASS_SHARE if costs else 0.0
        accuracy = binomial.binomial_lower(correct, guesses, self.level - spent)
        mass = binomial.binomial_lower(guesses, draws, spent) if costs else 1.0

        def rejected(values: FloatArray) -> NDArray[np.bool_]:
            epsilon, delta = self._line(values, self.anchor)
            return np.asarray(binomial.largest_accuracy(epsilon, delta * sides / 2.0, mass) < accuracy)

        return largest_rejected(rejected, self._lower, self.claim.value)


@functools.lru_cache(maxsize=1024)
def epsilon_grid(budget: float) -> FloatArray:
    """A fixed increasing grid of epsilons, 0.0025 apart to 2, 0.01 to 10, 2% beyond; the budget, and just above."""
    above = budget * (1.0 + 1e-7) + 1e-9
    return np.unique(
        np.concatenate([np.linspace(0, 2, 801), np.linspace(2, 10, 801), np.geomspace(10, 700, 216), [budget, above]])
    )


def largest_rejected(
    rejected: Callable[[FloatArray], NDArray[np.bool_]], lowest: float, budget: float, points: int = 32
) -> float:
    """The upper end of an interval of rejected parameter values that starts at 0, to 1e-7 relative, rounded down.

    `rejected` takes increasing values and must be monotone: true up to some value, false above. The search cuts its
    interval into `points` parts at a time. The result is itself rejected (or `lowest`), and the budget is always tried,
    so a bound above the budget is reported when a value 1e-7 above the budget is rejected, and never when it is not.
    """
    low, high = max(lowest, 0.0), max(2.0 * budget, 2.0 * lowest, 1e-3)
    if lowest < budget:
        at_lowest, at_budget = rejected(np.array([low, budget])).tolist()
        if not at_lowest:
            return low
        low, high = (budget, high) if at_budget else (low, budget)
    elif not rejected(np.array([low]))[0]:
        return low
    while rejected(np.array([high]))[0]:
        low, high = high, 2.0 * high
        if high > LARGEST_PARAMETER:
            return low
    while high - low > 1e-7 * high + 1e-12:
        values = np.linspace(low, high, points + 1)
        last = int(np.count_nonzero(rejected(values[1:-1])))
        low, high = float(values[last]), float(values[last + 1])
    return low
