"""Guessing rules: where to guess x, where to guess x_prime, where to abstain, fitted on earlier draws only.

A rule is a score with two thresholds. Among the scores that suit the outputs, and among the thresholds, the fit takes
the rule with the best *objective* on the training draws: the expected log wealth at the claim's line while that is
worth betting on, else the lower confidence bound that the planned draws would give. (An event of fixed mass would cap
the bound at the logarithm of its mass.) Validity never rests on the fit: it only sees draws that the rule is not
tested on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.evidence.outcomes import Outcomes, Reading
from dpaudit.evidence.scores import (
    Coordinate,
    Histogram,
    LogDensity,
    LogRatio,
    Score,
    fit_histogram,
    fit_linear,
    fit_table,
    score_from_dict,
)
from dpaudit.privacy.claims import FloatArray

ABSTAIN = -1
MAXIMUM_TABLE = 4_096  # outcomes in a table
LEVELS = 24  # thresholds tried in each tail, at geometrically spaced masses
# Standard deviations by which a record's log-odds are lowered in the fit: when chasing wealth, when chasing the bound.
TRAINING_DEVIATIONS = {True: 0.5, False: 4.0}


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

    def guess(self, outcomes: Outcomes) -> NDArray[np.int8]:
        """1, 0 or `ABSTAIN` for each outcome, shape (draws,)."""
        scores = self.score(self.reading(outcomes))
        result = np.full(len(scores), ABSTAIN, dtype=np.int8)
        result[scores > self.high] = 1 if self.sign > 0 else 0
        result[scores < self.low] = 0 if self.sign > 0 else 1
        if self.nan_guess != ABSTAIN:
            result[np.isnan(scores)] = self.nan_guess
        return result

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """How many outcomes it guesses as label 0, as label 1, and abstains from; shape (3,)."""
        scores = self.score(self.reading(outcomes))
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
    """The rule that `Rule.to_dict` wrote."""
    return Rule(
        score_from_dict(record["score"], log_density, x, x_prime),
        float.fromhex(record["low"]),
        float.fromhex(record["high"]),
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
    """

    epsilon: float
    delta: float
    draws: int
    level: float
    chase_wealth: bool

    def value(
        self, correct: FloatArray, wrong: FloatArray, sides: NDArray[np.int_], trained_on: float
    ) -> tuple[FloatArray, FloatArray]:
        """Expected log wealth, and the expected lower bound on epsilon, of guessing records given as rates.

        The rates come from `trained_on` draws, and the best of many records is taken. So one wrong guess is added to
        every record, and its log-odds are lowered by `TRAINING_DEVIATIONS` of their standard deviations: rare events
        that were lucky on the training draws do not win.
        """
        cost = self.delta * sides / 2.0
        c = correct - cost
        w = wrong + 1.0 / trained_on
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.maximum(correct, 1e-300) / c**2 + 1.0 / w  # of the log-odds, times the draws
            odds = np.where(c > 0.0, np.log(np.maximum(c, 1e-300) / w), -math.inf)
            cautious = odds - TRAINING_DEVIATIONS[self.chase_wealth] * np.sqrt(variance / trained_on)
            bound = odds - np.sqrt(
                variance * (self._quantile**2 / self.draws + TRAINING_DEVIATIONS[False] ** 2 / trained_on)
            )
        accuracy = special.expit(np.where(c > 0.0, cautious, -math.inf))
        limit = float(special.expit(self.epsilon))
        growth = (np.maximum(c, 0.0) + w) * (
            special.rel_entr(accuracy, limit) + special.rel_entr(1.0 - accuracy, float(special.expit(-self.epsilon)))
        )
        wealth = np.where((accuracy > limit) & (c > 0.0), growth * self.draws, 0.0)
        return wealth, np.where(c > 0.0, bound, -math.inf)

    @property
    def _quantile(self) -> float:
        return float(special.ndtri(self.level)) if self.level > 0.0 else -40.0


@dataclasses.dataclass(frozen=True)
class FittedRule:
    """A rule with how good it looked on the training draws: (tier, value), comparable between rules of one objective.

    Tier 1: worth betting on, value is the expected log wealth. Tier 0: value is the expected lower bound.
    """

    rule: Rule
    merit: tuple[int, float]


def fit_rule(
    first: Outcomes, second: Outcomes, objective: Objective, log_ratio: LogRatio | None = None
) -> FittedRule:
    """The best rule for outcomes under x (`first`) and x_prime (`second`), by the objective.

    Scores that are themselves fitted see one half of the draws and get their thresholds from the other.
    """
    is_mixed = first.numbers.shape[1] != second.numbers.shape[1]  # numbers of different lengths: compared as objects
    objects = first.tokens is not None or second.tokens is not None or is_mixed
    if objects:
        first, second = first.as_objects(), second.as_objects()
    elif log_ratio is not None:
        log_ratio = dataclasses.replace(
            log_ratio, shape=first.shape, is_integer=first.is_integer and second.is_integer
        )
    reading = Reading(0 if objects else first.numbers.shape[1])
    best: FittedRule | None = None
    for score, a, b in _candidates(first, second, objects, log_ratio):
        fitted = _fit_thresholds(score, a, b, objective, reading)
        if best is None or fitted.merit > best.merit:
            best = fitted
    assert best is not None  # a coordinate is always among the candidates
    return best


def _candidates(
    first: Outcomes, second: Outcomes, objects: bool, log_ratio: LogRatio | None
) -> Iterator[tuple[Score, Outcomes, Outcomes]]:
    """Scores that suit the outcomes, each with the draws that its thresholds may be fitted on."""
    draws, columns = len(first) + len(second), first.numbers.shape[1]
    fit = first.rows(slice(0, None, 2)), second.rows(slice(0, None, 2))
    rest = first.rows(slice(1, None, 2)), second.rows(slice(1, None, 2))
    if log_ratio is not None and not objects:
        yield log_ratio, first, second
    if columns == 1 and not objects:
        yield Coordinate(0, 1), first, second
    if min(len(part) for part in rest) < 4:
        if columns > 1 or objects:
            yield Coordinate(0, columns), first, second
        return
    varying = [k for k in range(columns) if _varies(first.numbers[:, k], second.numbers[:, k])]
    if objects or columns > 1:
        table = fit_table(*fit, largest=min(MAXIMUM_TABLE, max(2, draws // 4)))
        if table is not None:
            yield table, *rest
    if not varying:
        yield Coordinate(0, columns), first, second
        return
    bins = int(np.clip(draws // 25, 4, 64)) if columns == 1 else int(np.clip(draws // 50, 2, 16))
    histogram = fit_histogram(*fit, tuple(varying), bins)
    yield histogram, *rest
    if len(varying) > 1 or objects:
        top = max(range(len(varying)), key=lambda k: _information(histogram, k, *fit))
        yield Coordinate(varying[top], columns), first, second
        yield Histogram((varying[top],), (histogram.edges[top],), (histogram.values[top],), columns), *rest
    if len(varying) > 1 and not objects and draws >= 32:
        linear = fit_linear(*fit)
        if linear is not None:
            yield linear, *rest


def _varies(a: FloatArray, b: FloatArray) -> bool:
    both = np.concatenate([a, b])
    return bool(np.any(both[1:] != both[0])) and not bool(np.all(np.isnan(both)))


def _information(histogram: Histogram, k: int, first: Outcomes, second: Outcomes) -> float:
    """How far one column's fitted log ratios separate the two samples: the difference of their means."""
    single = Histogram((histogram.columns[k],), (histogram.edges[k],), (histogram.values[k],), histogram.width)
    return float(single(first).mean() - single(second).mean())


def _fit_thresholds(
    score: Score, first: Outcomes, second: Outcomes, objective: Objective, reading: Reading
) -> FittedRule:
    """The thresholds of one score with the best objective, over a grid of tail masses on both sides."""
    s1, s0 = score(first), score(second)
    nan1, nan0 = float(np.mean(np.isnan(s1))), float(np.mean(np.isnan(s0)))
    s1, s0 = np.sort(s1[~np.isnan(s1)]), np.sort(s0[~np.isnan(s0)])
    cuts = _cuts(s1, s0)  # increasing, from -inf to inf
    n1, n0 = max(len(first), 1), max(len(second), 1)
    trained_on = float(n1 + n0)
    left1, left0 = np.searchsorted(s1, cuts) / n1, np.searchsorted(s0, cuts) / n0  # mass below each cut
    right1, right0 = len(s1) / n1 - left1, len(s0) / n0 - left0
    upper, lower = np.arange(len(cuts))[None, :], np.arange(len(cuts))[:, None]  # (cuts, cuts): low, high
    legal = lower <= upper
    sides = (lower > 0).astype(int) + (upper < len(cuts) - 1).astype(int)
    best: tuple[tuple[int, float], Rule] | None = None
    for sign in (1, -1):
        up1, up0, down1, down0 = (right1, right0, left1, left0) if sign > 0 else (right0, right1, left0, left1)
        correct = 0.5 * (up1[None, :] + down0[:, None])
        wrong = 0.5 * (up0[None, :] + down1[:, None])
        wealth, bound = objective.value(correct, wrong, sides, trained_on)
        wealth, bound = np.where(legal & (sides > 0), wealth, -1.0), np.where(legal & (sides > 0), bound, -math.inf)
        chased = objective.chase_wealth and float(wealth.max()) >= 1.0
        table = wealth if chased else bound
        i, j = np.unravel_index(int(np.argmax(table)), table.shape)
        merit = (1 if chased else 0, float(table[i, j]))
        if best is None or merit > best[0]:
            nan_guess = ABSTAIN
            if nan1 + nan0 > 0.0:
                c, w = float(correct[i, j]), float(wrong[i, j])
                gains = np.array([c, c + 0.5 * nan0, c + 0.5 * nan1]), np.array([w, w + 0.5 * nan1, w + 0.5 * nan0])
                choices = objective.value(*gains, np.full(3, 2), trained_on)[0 if chased else 1]
                nan_guess = int(np.argmax(choices)) - 1
                merit = (merit[0], float(np.max(choices)))
            best = merit, Rule(score, float(cuts[i]), float(cuts[j]), sign, reading, nan_guess)
    assert best is not None
    return FittedRule(best[1], best[0])


def _cuts(s1: FloatArray, s0: FloatArray) -> FloatArray:
    """Thresholds between distinct scores, at geometrically spaced masses in both tails, with -inf and inf."""
    both = np.sort(np.concatenate([s1, s0]))
    size = len(both)
    if size < 2:
        middle = both if size else np.zeros(1)
        return np.array([-math.inf, *middle[np.isfinite(middle)], math.inf])
    masses = np.geomspace(min(1.5 / size, 0.4), 0.5, LEVELS)
    positions = np.unique(np.concatenate([masses, 1.0 - masses]) * size).astype(int)
    positions = np.unique(np.clip(positions, 1, size - 1))
    # Move each position to where the score changes, to either side, so that equal scores stay together.
    starts = np.searchsorted(both, both[positions], side="left")
    ends = np.searchsorted(both, both[positions], side="right")
    edges = np.unique(np.concatenate([starts, ends]))
    edges = edges[(edges > 0) & (edges < size)]
    with np.errstate(invalid="ignore"):
        cuts = 0.5 * (both[edges - 1] + both[edges])
    exact = (cuts <= both[edges - 1]) | ~np.isfinite(cuts)  # neighbouring doubles, or an infinite end
    cuts[exact] = _between(both[edges[exact] - 1], both[edges[exact]])
    return np.unique(np.concatenate([[-math.inf], cuts[np.isfinite(cuts)], [math.inf]]))


def _between(low: FloatArray, high: FloatArray) -> FloatArray:
    """A finite threshold t with not(low > t) and not(high < t), where no double lies between or an end is infinite."""
    largest = np.finfo(float).max
    return np.where(np.isfinite(high), high, np.where(low == -math.inf, 0.0, np.minimum(low * 2.0 + 1.0, largest)))
