"""Guessing rules: where to guess x, where to guess x_prime, where to abstain, fitted on earlier draws only.

A rule is a score with two thresholds. Of one score the fit takes the thresholds with the best *objective* on the
training draws: the expected log wealth at the claim's line while that is worth betting on, else the lower confidence
bound that the planned draws would give. (An event of fixed mass would cap the bound at the logarithm of its mass.)
Between scores a fixed test compares what their rules show on draws that they were not fitted on, where there are enough
(`dpaudit.evidence.fixed_game`). Validity never rests on the fit: it only sees draws that the rule is not tested on.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.evidence.candidates import by_kind, candidates, summaries
from dpaudit.evidence.edge_counts import EdgeCounter
from dpaudit.evidence.hints import NO_HINTS, Hints
from dpaudit.evidence.histograms import Histogram
from dpaudit.evidence.outcomes import Outcomes, Reading
from dpaudit.evidence.scores import LogDensity, Score, score_from_dict
from dpaudit.privacy.claims import FloatArray

ABSTAIN = -1
LEVELS = 24  # thresholds tried in each tail, at geometrically spaced masses
# Standard deviations by which the log-odds of a record are lowered where the best of many records is taken: for the
# growth of wealth (a hopeful and a cautious rule enter the contest), and for the bound.
HOPEFUL, CAUTIOUS, BOUND_DEVIATIONS = 0.5, 2.0, 4.0
INSET = 6  # spacings by which thresholds of rules that are hardly ever wrong may move


@dataclasses.dataclass(frozen=True)
class Rule:
    """Guess one label above `high`, the other below `low`, abstain between.

    `sign` +1 guesses x (label 1) above and x_prime (label 0) below; -1 the other way round. `nan_guess` is the guess
    where the score is NaN. `reading` is how the score reads outputs.
    """

    score: Score
    low: float
    high: float
    sign: int
    reading: Reading
    nan_guess: int = ABSTAIN

    @property
    def sides(self) -> int:
        """How many of the two guessing events can be non-empty: 0, 1 or 2."""
        above, below = self.high < math.inf, self.low > -math.inf
        guesses = {1 if self.sign > 0 else 0} if above else set()
        guesses |= {0 if self.sign > 0 else 1} if below else set()
        return len(guesses | ({self.nan_guess} - {ABSTAIN}))

    @property
    def thresholds(self) -> tuple[float, float, int, int]:
        """What tells it from another rule of the same score."""
        return self.low, self.high, self.sign, self.nan_guess

    def zeros(self) -> NDArray[np.int64]:
        """The counts of no draws."""
        return np.zeros(3, dtype=np.int64)

    def guess(self, outcomes: Outcomes) -> NDArray[np.int8]:
        """1, 0 or `ABSTAIN` for each outcome, shape (draws,)."""
        return self.guess_scores(self.score(self.reading(outcomes)))

    def guess_scores(self, scores: FloatArray) -> NDArray[np.int8]:
        """The same for outcomes with these scores."""
        result = np.full(len(scores), ABSTAIN, dtype=np.int8)
        result[scores > self.high] = 1 if self.sign > 0 else 0
        result[scores < self.low] = 0 if self.sign > 0 else 1
        if self.nan_guess != ABSTAIN:
            result[np.isnan(scores)] = self.nan_guess
        return result

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """How many outcomes it guesses as label 0, as label 1, and abstains from; shape (3,)."""
        read = self.reading(outcomes)
        if self._by_bins is None:
            return self.count_scores(self.score(read))
        counter, column, guesses = self._by_bins
        return self.counts_of(guesses, counter.count(read.numbers[:, column]))

    @staticmethod
    def counts_of(guesses: NDArray[np.int8], draws: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of `count`, where so many draws are in cells on which these are the guesses."""
        return np.array([int(draws[guesses == guess].sum()) for guess in (0, 1, ABSTAIN)])

    @functools.cached_property
    def _by_bins(self) -> tuple[EdgeCounter, int, NDArray[np.int8]] | None:
        """Where the score is a histogram of one column: its edges at which the guess changes, the column, the guesses.

        Counting between a few edges is several times as fast as looking up the score of every outcome.
        """
        score = self.score
        if not is_by_bins(score):
            return None
        guesses = self.guess_scores(score.values[0])  # of each bin; NaN's is the last one
        changes = np.flatnonzero(guesses[1:-1] != guesses[:-2])
        counter = EdgeCounter(score.edges[0][changes])
        return counter, score.columns[0], np.concatenate([guesses[:1], guesses[changes + 1], guesses[-1:]])

    def count_scores(self, scores: FloatArray) -> NDArray[np.int64]:
        """The same for outcomes with these scores."""
        above, below = int(np.count_nonzero(scores > self.high)), int(np.count_nonzero(scores < self.low))
        counts = [below, above] if self.sign > 0 else [above, below]
        if self.nan_guess != ABSTAIN:
            counts[self.nan_guess] += int(np.count_nonzero(np.isnan(scores)))
        return np.array([*counts, len(scores) - sum(counts)])

    def describe(self, x: str, x_prime: str) -> str:
        """The rule as a sentence about the output."""
        above, below = (x, x_prime) if self.sign > 0 else (x_prime, x)
        parts = []
        if self.high < math.inf:
            parts.append(f"guess {above} where it is above {self.high:.6g}")
        if self.low > -math.inf:
            parts.append(f"guess {below} where it is below {self.low:.6g}")
        if self.nan_guess != ABSTAIN:
            parts.append(f"guess {x if self.nan_guess == 1 else x_prime} where it is NaN")
        return f"Look at {self.score.describe()}: " + ("; ".join(parts) if parts else "never guess") + "."

    def to_dict(self) -> dict[str, Any]:
        return {
            "score": self.score.to_dict(),
            "low": float(self.low).hex(),
            "high": float(self.high).hex(),
            "sign": self.sign,
            "nan_guess": self.nan_guess,
            "columns": self.reading.columns,
        }


def rule_from_dict(record: Mapping[str, Any], log_density: LogDensity | None, x: Any, x_prime: Any) -> Rule:
    """The rule that `Rule.to_dict` wrote.

    Raises
    ------
    ValueError
        If it is none: events that overlap, or a guess that is neither label.
    """
    low, high = float.fromhex(record["low"]), float.fromhex(record["high"])
    # Disjoint: no double lies strictly between `high` and `low`, in this order.
    are_disjoint = low <= math.nextafter(high, math.inf)
    if not are_disjoint or record["sign"] not in (1, -1) or record["nan_guess"] not in (ABSTAIN, 0, 1):
        raise ValueError(f"rule must guess on two disjoint events, got low {low}, high {high}, {dict(record)!r:.200}.")
    return Rule(
        score_from_dict(record["score"], log_density, x, x_prime),
        low,
        high,
        int(record["sign"]),
        Reading(int(record["columns"])),
        int(record["nan_guess"]),
    )


@dataclasses.dataclass(frozen=True)
class Objective:
    """What a rule is fitted for: a line, the labelled draws to come, and the level of the test.

    Attributes
    ----------
    epsilon, delta : float
        The line at the budget.
    draws : int
        Labelled draws the rule may be tested on.
    level : float
        The error rate of the test.
    chase_wealth : bool
        Whether to look for the fastest growth of wealth where there is any (sequential), rather than for the highest
        bound at the end (fixed).
    deviations : float
        Of the training draws, by which a record is lowered where a bound is expected of it: the more, the more records
        it is the best of.
    """

    epsilon: float
    delta: float
    draws: int
    level: float
    chase_wealth: bool
    deviations: float = BOUND_DEVIATIONS

    def ways(
        self, correct: FloatArray, wrong: FloatArray, sides: NDArray[np.int_], trained_on: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How good guessing records are, given as rates over `trained_on` draws, in three ways.

        The expected lower bound on epsilon after the draws to come (-inf where there is none), and the expected log
        wealth over them, taken hopefully and cautiously (0 where there is nothing to bet on; all 0 where wealth is not
        chased). One wrong guess is added to every record, and its log-odds are lowered by some of their standard
        deviations: what was lucky on the training draws does not win.
        """
        bound = self._bound(correct, wrong, sides, trained_on)
        if not self.chase_wealth:
            nothing = np.zeros_like(bound)
            return bound, nothing, nothing
        c = correct - self.delta * sides / 2.0
        w = wrong + 1.0 / trained_on
        positive = np.maximum(c, 1e-150)
        odds = np.where(c > 0.0, np.log(positive / w), -math.inf)
        variance = np.maximum(correct, 1e-150) / positive**2 + 1.0 / w  # of the log-odds, times the draws
        deviation = np.sqrt(variance / trained_on)
        guesses = np.maximum(c, 0.0) + w
        hopeful, cautious = (self._growth(odds - k * deviation, guesses) for k in (HOPEFUL, CAUTIOUS))
        return bound, hopeful, cautious

    def _bound(
        self, correct: FloatArray, wrong: FloatArray, sides: NDArray[np.int_], trained_on: FloatArray
    ) -> FloatArray:
        """The expected bound on epsilon, from the lower end of Wilson's interval for the accuracy of a guess.

        Its deviations are those of the test to come, and `deviations` of the training draws. (Lowering the
        log-odds instead would be far too much where hardly a guess was wrong.)
        """
        lowest, mass = self.lowest_accuracy(correct, wrong, trained_on)
        right = lowest - self.delta * sides / (2.0 * mass)
        return np.where(right > 0.0, np.log(np.maximum(right, 1e-150) / (1.0 - lowest)), -math.inf)

    def lowest_accuracy(
        self, correct: FloatArray, wrong: FloatArray, trained_on: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The accuracy of a guess that the test is expected to show, and the rate of guesses."""
        mass = np.maximum(correct + wrong, 1e-150)
        guesses = mass * trained_on
        square = self._quantile**2 * trained_on / self.draws + self.deviations**2
        accuracy = correct / mass
        spread = np.sqrt(square * (accuracy * (1.0 - accuracy) / guesses + square / (4.0 * guesses**2)))
        lowest = np.maximum(accuracy + square / (2.0 * guesses) - spread, 0.0) / (1.0 + square / guesses)
        # Without a right guess the interval ends at 0 up to rounding, which is no bound.
        return np.where(correct > 0.0, lowest, 0.0), mass

    def _growth(self, odds: FloatArray, guesses: FloatArray) -> FloatArray:
        """Expected log wealth of guesses at this rate, right with these log-odds, at the best stake."""
        # The relative entropy of the accuracy from the largest that the line allows, written in log-odds.
        growth = np.zeros(odds.shape)
        is_worth = odds > self.epsilon
        odds, guesses = odds[is_worth], guesses[is_worth]
        gain = special.expit(odds) * (odds - self.epsilon) + np.logaddexp(0.0, self.epsilon) - np.logaddexp(0.0, odds)
        growth[is_worth] = guesses * gain * self.draws
        return growth

    def merits(
        self, correct: FloatArray, wrong: FloatArray, sides: NDArray[np.int_], trained_on: FloatArray
    ) -> list[tuple[int, float]]:
        """How good each record is, in an order: (1, expected log wealth) if worth a bet, else (0, expected bound)."""
        bounds, gains, _ = (way.tolist() for way in self.ways(correct, wrong, sides, trained_on))
        return [(1, gain) if gain >= 1.0 else (0, bound) for gain, bound in zip(gains, bounds, strict=True)]

    @property
    def _quantile(self) -> float:
        return float(special.ndtri(self.level)) if self.level > 0.0 else -40.0


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
        cuts = _cuts(s1, s0)  # increasing, from -inf to inf
        n1, n0 = max(len(self.first), 1), max(len(self.second), 1)
        left1, left0 = np.searchsorted(s1, cuts) / n1, np.searchsorted(s0, cuts) / n0  # mass below each cut
        right1, right0 = len(s1) / n1 - left1, len(s0) / n0 - left0
        return Tails(cuts, left1, left0, right1, right0, nan[0], nan[1], float(n1 + n0))


def fit_scores(first: Outcomes, second: Outcomes, hints: Hints = NO_HINTS, halves: bool = True) -> list[FittedScore]:
    """Every score that suits outcomes under x (`first`) and x_prime (`second`).

    With `halves` scores that are themselves fitted see one half of the draws, and are valued on the other; else they
    see all draws, and are valued on them.
    """
    is_mixed = first.numbers.shape[1] != second.numbers.shape[1]  # numbers of different lengths: compared as objects
    objects = first.tokens is not None or second.tokens is not None or is_mixed
    if objects:
        first, second = first.as_objects(), second.as_objects()
    else:
        hints = hints.fitting(first, second)
    reading = Reading(0 if objects else first.numbers.shape[1])
    return [
        FittedScore(kind, score, reading, _ordered(score, a), _ordered(score, b))
        for kind, (score, a, b) in by_kind(candidates(first, second, objects, hints, halves))
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
    for choice in _choices(tails, objective):
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


def is_by_bins(score: Score) -> TypeGuard[Histogram]:
    """Whether the score is a histogram of one column: a function of the bin of one number."""
    return isinstance(score, Histogram) and len(score.columns) == 1


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


def inset(rule: Rule, first: Outcomes, second: Outcomes) -> tuple[Rule, float]:
    """A rule that is hardly ever wrong on these draws, with its thresholds moved away from the other label.

    A threshold next to the last score of the other label is wrong once in as many draws as it was fitted on; a few
    wrong guesses among very many draws to come can cost far more than a few correct ones. The end of the other label's
    scores lies beyond the last of them by about a spacing of theirs, and by more than `INSET` of them in one case of
    2^INSET.

    Returns
    -------
    Rule
        Its thresholds are not nearer to the other label than the given ones.
    float
        In [0, 1]: the largest share of a threshold's guesses that moving it loses.
    """
    scores = [rule.score(rule.reading(side)) for side in (first, second)]
    above, below = scores if rule.sign > 0 else scores[::-1]  # of the label that is guessed above `high`, below `low`
    high, lost_above = _moved(rule.high, above, below)
    low, lost_below = _moved(-rule.low, -below, -above)
    return dataclasses.replace(rule, low=-low, high=high), max(lost_above, lost_below)


def _moved(threshold: float, own: FloatArray, other: FloatArray) -> tuple[float, float]:
    """A threshold above which scores of one label are guessed, moved up from the last scores of the other one."""
    other = np.sort(other[np.isfinite(other)])
    if not math.isfinite(threshold) or len(other) <= INSET:
        return threshold, 0.0
    last, spaced = float(other[-1]), float(other[-1 - INSET])
    moved = max(threshold, min(2.0 * last - spaced, sys.float_info.max))
    before, after = (int(np.count_nonzero(own > place)) for place in (threshold, moved))
    return moved, 1.0 - after / max(before, 1)


@dataclasses.dataclass(frozen=True)
class Tails:
    """Masses below and above each cut under both labels, those of NaN, and the draws that they are of.

    `highs` are the thresholds of guesses above a cut, where they are other doubles than those of guesses below it.
    """

    cuts: FloatArray
    left1: FloatArray
    left0: FloatArray
    right1: FloatArray
    right0: FloatArray
    nan1: float
    nan0: float
    trained_on: float
    highs: FloatArray | None = None

    @functools.cached_property
    def rates(self) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """At each pair of cuts, rates of correct and of wrong guesses with the sign that is right more often.

        The third is where that sign is +1. Each of shape (places,).
        """
        low, high, _ = _legal_cuts(len(self.cuts))
        rising = 0.5 * (self.right1[high] + self.left0[low])
        falling = 0.5 * (self.right0[high] + self.left1[low])
        return np.maximum(rising, falling), np.minimum(rising, falling), rising >= falling


@dataclasses.dataclass(frozen=True)
class _Choice:
    """Positions of two cuts, the sign and the guess at NaN, with their rates on the training draws."""

    low: int
    high: int
    sign: int
    nan_guess: int
    correct: float
    wrong: float


def _choices(tails: Tails, objective: Objective) -> list[_Choice]:
    """The cuts that are best in different ways, by the masses below and above each cut under both labels.

    The ways: the expected bound; if wealth is chased, also its growth taken hopefully and cautiously, and the largest
    difference of correct and wrong guesses, which uses all of the evidence where every bit of it is weak.
    """
    nan1, nan0, trained_on = tails.nan1, tails.nan0, tails.trained_on
    low, high, sides = _legal_cuts(len(tails.cuts))  # (places,): pairs of positions
    correct, wrong, is_rising = tails.rates
    bound, hopeful, cautious = objective.ways(correct, wrong, sides, np.full((), trained_on))
    chosen = []
    for table in [bound, hopeful, cautious, correct - wrong] if objective.chase_wealth else [bound]:
        place = int(np.argmax(table))
        c, w, nan_guess = float(correct[place]), float(wrong[place]), ABSTAIN
        if nan1 + nan0 > 0.0:
            gains = np.array([c, c + 0.5 * nan0, c + 0.5 * nan1]), np.array([w, w + 0.5 * nan1, w + 0.5 * nan0])
            merits = objective.merits(*gains, np.full(3, 2), np.full(3, trained_on))
            nan_guess = max((ABSTAIN, 0, 1), key=lambda guess: merits[guess + 1])
            c, w = float(gains[0][nan_guess + 1]), float(gains[1][nan_guess + 1])
        chosen.append(_Choice(int(low[place]), int(high[place]), 1 if is_rising[place] else -1, nan_guess, c, w))
    return chosen


@functools.lru_cache(maxsize=64)
def _legal_cuts(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int_]]:
    """Positions of two cuts in order, of which one leaves something to guess, and how many sides are guessed on."""
    low, high = np.triu_indices(size)
    sides = (low > 0).astype(int) + (high < size - 1).astype(int)
    legal = (sides > 0) | (size == 1)
    return low[legal], high[legal], sides[legal]


def best_thresholds(
    counts1: FloatArray, counts0: FloatArray, objective: Objective
) -> tuple[tuple[int, float], int, int, int, int]:
    """Of all rules with two cuts between cells, the best: its merit, positions of the cuts, sign and guess at NaN.

    Parameters
    ----------
    counts1, counts0 : ndarray, shape (cells,)
        Training draws with label 1 and 0 in each cell; the last cell is NaN's.
    objective : Objective

    Returns
    -------
    (merit, low, high, sign, nan_guess)
        The cells before position `low` and those from position `high` on are guessed, except NaN's.
    """
    n1, n0 = max(float(counts1.sum()), 1.0), max(float(counts0.sum()), 1.0)
    left1, left0 = (np.concatenate([[0.0], np.cumsum(c[:-1])]) / n for c, n in ((counts1, n1), (counts0, n0)))
    right1, right0 = left1[-1] - left1, left0[-1] - left0
    nan1, nan0 = float(counts1[-1]) / n1, float(counts0[-1]) / n0
    tails = Tails(np.arange(float(len(left1))), left1, left0, right1, right0, nan1, nan0, n1 + n0)
    choices = _choices(tails, objective)
    correct, wrong = (np.array([getattr(choice, name) for choice in choices]) for name in ("correct", "wrong"))
    cuts = len(left1)
    sides = np.array([max(int(c.low > 0) + int(c.high < cuts - 1), int(c.nan_guess != ABSTAIN)) for c in choices])
    merits = objective.merits(correct, wrong, sides, np.full(len(choices), n1 + n0))
    best = max(range(len(choices)), key=lambda k: merits[k])
    choice = choices[best]
    return merits[best], choice.low, choice.high, choice.sign, choice.nan_guess


def _cuts(s1: FloatArray, s0: FloatArray) -> FloatArray:
    """Thresholds between distinct scores, at geometrically spaced masses in both tails, with -inf and inf."""
    both = np.sort(np.concatenate([s1, s0]), kind="stable")  # both are sorted: they are only merged
    size = len(both)
    if size < 2:
        middle = both if size else np.zeros(1)
        return np.array([-math.inf, *middle[np.isfinite(middle)], math.inf])
    positions = places_of_cuts(size)
    # Move each position to where the score changes, to either side, so that equal scores stay together.
    starts = np.searchsorted(both, both[positions], side="left")
    ends = np.searchsorted(both, both[positions], side="right")
    edges = np.unique(np.concatenate([starts, ends]))
    edges = edges[(edges > 0) & (edges < size)]
    cuts = between_values(both[edges - 1], both[edges])
    return np.unique(np.concatenate([[-math.inf], cuts[np.isfinite(cuts)], [math.inf]]))


@functools.lru_cache(maxsize=64)
def places_of_cuts(size: int) -> NDArray[np.intp]:
    """Before which of so many ordered draws thresholds may lie: at geometrically spaced masses in both tails."""
    masses = np.geomspace(min(1.5 / max(size, 1), 0.4), 0.5, LEVELS)
    positions = np.unique(np.concatenate([masses, 1.0 - masses]) * size).astype(int)
    positions = np.unique(np.clip(positions, 1, max(size - 1, 1)))
    positions.setflags(write=False)  # all callers get the same
    return positions


def between_values(low: FloatArray, high: FloatArray) -> FloatArray:
    """Thresholds between values: their middles where there is a double there."""
    with np.errstate(invalid="ignore", over="ignore"):
        cuts = 0.5 * (low + high)
    exact = (cuts <= low) | ~np.isfinite(cuts)  # neighbouring doubles, or an infinite end
    cuts[exact] = _between(low[exact], high[exact])
    return np.asarray(cuts)


def _between(low: FloatArray, high: FloatArray) -> FloatArray:
    """A finite threshold t with low <= t <= high, where no double lies between them or an end is infinite.

    Of two neighbouring doubles it is the lower one, which the event above it excludes and the one below it too.
    """
    largest = np.finfo(float).max
    with np.errstate(invalid="ignore"):  # infinite ends are replaced below
        above_low = np.minimum(low + np.abs(low) + 1.0, largest)
        below_high = np.maximum(high - np.abs(high) - 1.0, -largest)
    low_side = np.where(np.isfinite(high), low, above_low)
    return np.where(np.isfinite(low), low_side, np.where(np.isfinite(high), below_high, 0.0))
