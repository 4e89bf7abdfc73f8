"""Fitted scores: every score that suits two sets of draws, and its rules with the best objective on them.

Between scores a fixed test compares what their rules show on draws that they were not fitted on, where there are enough
(`dpaudit.testing.fixed_game`). Validity never rests on a fit: it only sees draws that the rule is not tested on.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.candidates import by_kind, candidates, summaries
from dpaudit.learning.hints import NO_HINTS, Hints
from dpaudit.learning.objectives import Objective
from dpaudit.learning.rules import Rule, is_by_bins
from dpaudit.learning.scores import Score
from dpaudit.learning.thresholds import Tails, between_values, choices, cuts_between
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, Reading


@dataclasses.dataclass(frozen=True)
class FittedRule:
    """A rule, its rates of correct and wrong guesses on the draws it was fitted on, and how many these were."""

    rule: Rule
    correct: float
    wrong: float
    draws: float

    @property
    def sides(self) -> int:
        """How many of its guessing events can be non-empty."""
        return self.rule.sides


@dataclasses.dataclass(frozen=True)
class FittedScore:
    """A score, and its values on the draws that its thresholds are fitted on.

    Attributes
    ----------
    kind : str
        What finds it again among the scores that were fitted on other draws.
    score : Score
    reading : Reading
        How it reads outputs.
    first, second : ndarray of float
        Its values under x and x_prime, increasing, NaN last.
    """

    kind: str
    score: Score
    reading: Reading
    first: FloatArray
    second: FloatArray

    @property
    def draws(self) -> int:
        """How many draws its thresholds are fitted on."""
        return len(self.first) + len(self.second)

    def edges(self) -> FloatArray:
        """Where cells begin between which thresholds are chosen, increasing."""
        with np.errstate(over="ignore"):  # infinity follows the largest double
            return np.asarray(np.nextafter(self._tails.cuts[1:-1], math.inf))

    def counts(self, rules: Sequence[Rule], outcomes: Outcomes) -> list[NDArray[np.int64]]:
        """What rules of this score count on other outcomes; see `Rule.count`."""
        if is_by_bins(self.score):
            return [rule.count(outcomes) for rule in rules]
        values = self.score(self.reading(outcomes))  # computed once
        return [rule.count_scores(values) for rule in rules]

    @property
    def most_sure(self) -> int:
        """The most guesses of a rule of this score that is never wrong on these draws."""
        both = self.first, self.second
        known = [without_nan(side) for side in both]
        nan = [len(side) - len(part) for side, part in zip(both, known, strict=True)]
        beyond = np.zeros((2, 2), dtype=int)  # of each side, above and below all of the other one
        for own, other, row in zip(known, known[::-1], beyond, strict=True):
            row[:] = len(own), len(own)
            if len(other):
                row[:] = len(own) - np.searchsorted(own, other[-1], side="right"), np.searchsorted(own, other[0])
        return most_sure_of(beyond, nan)

    def rules(self, objective: Objective) -> list[FittedRule]:
        """The rules that are best in different ways, over a grid of tail masses on both sides."""
        return rules_of(self.score, self.reading, self._tails, objective)

    def rule_like(self, rule: Rule, masses: tuple[float, float]) -> Rule:
        """The rule of this score that is most like another one's.

        It guesses in the same way, on about these shares of the outcomes (`guessed_masses`) below and above.
        """
        both = np.concatenate([self.first, self.second])
        known = np.sort(both[~np.isnan(both)])
        edges = np.flatnonzero(known[1:] > known[:-1]) + 1  # a threshold may lie before these
        cuts = between_values(known[edges - 1], known[edges])
        below = edges / max(len(both), 1)
        low, high = -math.inf, math.inf
        if len(cuts) and masses[0] > 0.0:
            low = float(cuts[np.argmin(np.abs(below - masses[0]))])
        if len(cuts) and masses[1] > 0.0:
            high = float(cuts[np.argmin(np.abs(len(known) / len(both) - below - masses[1]))])
        return dataclasses.replace(rule, score=self.score, low=min(low, high), high=high)

    def guessed_masses(self, rule: Rule) -> tuple[float, float]:
        """The shares of all outcomes that a rule of this score guesses on below its `low` and above its `high`."""
        both = np.concatenate([self.first, self.second])
        return float(np.mean(both < rule.low)), float(np.mean(both > rule.high))

    @functools.cached_property
    def _tails(self) -> Tails:
        nan = [float(np.mean(np.isnan(values))) for values in (self.first, self.second)]
        s1, s0 = (values[~np.isnan(values)] for values in (self.first, self.second))
        cuts = cuts_between(s1, s0)  # increasing, from -inf to inf
        n1, n0 = max(len(self.first), 1), max(len(self.second), 1)
        left1, left0 = np.searchsorted(s1, cuts) / n1, np.searchsorted(s0, cuts) / n0  # mass below each cut
        right1, right0 = len(s1) / n1 - left1, len(s0) / n0 - left0
        return Tails(cuts, left1, left0, right1, right0, nan[0], nan[1], float(n1 + n0))


def fit_scores(first: Outcomes, second: Outcomes, hints: Hints = NO_HINTS, halves: bool = True) -> list[FittedScore]:
    """Every score that suits outcomes under x (`first`) and x_prime (`second`).

    With `halves` scores that are themselves fitted see one half of the draws, and are valued on the other; else they
    see all draws, and are valued on them.
    """
    first, second, hints, reading = hints.alike(first, second)
    return [
        FittedScore(kind, score, reading, _ordered(score, a), _ordered(score, b))
        for kind, (score, a, b) in by_kind(candidates(first, second, first.tokens is not None, hints, halves))
    ]


def fit_summaries(first: Outcomes, second: Outcomes) -> list[FittedScore]:
    """Every summary of outcomes that are vectors under x (`first`) and x_prime (`second`), which need no fit."""
    if first.tokens is not None or second.tokens is not None or first.numbers.shape[1] != second.numbers.shape[1]:
        return []
    if first.numbers.shape[1] < 2:
        return []
    reading = Reading(first.numbers.shape[1])
    return [
        FittedScore(name, score, reading, _ordered(score, first), _ordered(score, second))
        for name, score in summaries(first, second)
    ]


def rules_of(score: Score, reading: Reading, tails: Tails, objective: Objective) -> list[FittedRule]:
    """The rules of a score that are best in different ways, by the masses in its tails."""
    chosen: list[FittedRule] = []
    for choice in choices(tails, objective):
        low = float(tails.cuts[choice.low])
        high = float((tails.cuts if tails.highs is None else tails.highs)[choice.high])
        rule = Rule(score, low, high, choice.sign, reading, choice.nan_guess)
        if all(rule.thresholds != other.rule.thresholds for other in chosen):
            chosen.append(FittedRule(rule, choice.correct, choice.wrong, tails.trained_on))
    return chosen


def without_nan(ordered: FloatArray) -> FloatArray:
    """Increasing numbers without NaN, which are last."""
    return ordered[: len(ordered) - np.count_nonzero(np.isnan(ordered))]


def most_sure_of(beyond: NDArray[np.int_], nan: Sequence[int]) -> int:
    """The most guesses that are never wrong, of draws of x and of x_prime above and below all of the other side's.

    `beyond` has a row for each side; `nan` is how many scores of each are NaN.
    """
    by_sign = beyond[0, 0] + beyond[1, 1], beyond[1, 0] + beyond[0, 1]
    return int(max(by_sign)) + (max(nan) if min(nan) == 0 else 0)


def _ordered(score: Score, outcomes: Outcomes) -> FloatArray:
    """The scores of outcomes that were read already, increasing, NaN last."""
    if not is_by_bins(score):
        return np.sort(score(outcomes))
    values, order = score.values[0], np.argsort(score.values[0])
    return np.repeat(values[order], score.counts(outcomes)[order])


def fit_rules(first: Outcomes, second: Outcomes, objective: Objective, hints: Hints = NO_HINTS) -> list[FittedRule]:
    """Rules for outcomes under x (`first`) and x_prime (`second`): the best few of every score of `fit_scores`."""
    return [rule for score in fit_scores(first, second, hints) for rule in score.rules(objective)]


def best_rule(rules: Sequence[FittedRule], objective: Objective) -> tuple[int, tuple[int, float]]:
    """The position and the merit of the best rule, by the draws that the rules were fitted on."""
    columns = ([getattr(rule, name) for rule in rules] for name in ("correct", "wrong", "draws"))
    correct, wrong, trained_on = (np.array(column) for column in columns)
    merits = objective.merits(correct, wrong, np.array([fitted.rule.sides for fitted in rules]), trained_on)
    position = max(range(len(rules)), key=lambda k: merits[k])
    return position, merits[position]
