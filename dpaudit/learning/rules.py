"""Guessing rules: where to guess x, where to guess x_prime, where to abstain. A rule is a score with two thresholds.

Rules are fitted by `dpaudit.learning.fitted_scores`. Validity never rests on the fit: it only sees draws that the rule
is not tested on.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.edge_counts import EdgeCounter
from dpaudit.learning.histograms import Coordinate, Histogram, Remainder, Table
from dpaudit.learning.scores import LogDensity, Score, Viewed, score_from_dict
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.reading.outlines import WHOLE

ABSTAIN = -1  # beside the guesses, 0 and 1
MOST_NAMED, LONGEST_NAMED = 4, 60  # outcomes or ranges in the description of a rule, and characters of an outcome
LEAST = math.nextafter(0.0, 1.0)  # the least positive double: a threshold between 0 and what is above it
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
        """The rule as a sentence about the output: by the outcomes or the ranges it guesses on, where they are few."""
        for named in (_by_outcomes(self), _by_ranges(self)):
            if named is not None:
                what, where = named
                named_sides = ((x, where[1]), (x_prime, where[0]))
                parts = [f"guess {name} where it is {events}" for name, events in named_sides if events]
                return f"Look at {what}: " + ("; ".join(parts) if parts else "never guess") + "."
        above, below = (x, x_prime) if self.sign > 0 else (x_prime, x)
        # Moments are large numbers close to each other: as many digits as tell the thresholds apart, and two more.
        scale, gap = max(abs(self.high), abs(self.low)), self.high - self.low
        digits = 6 if not 0.0 < gap < scale < math.inf else int(np.clip(math.log10(scale / gap) + 3.0, 6, 17))
        parts = []
        if self.high < math.inf:
            parts.append(f"guess {above} where it is {_above(self.high, digits)}{_parity(self, True)}")
        if self.low > -math.inf:
            parts.append(f"guess {below} where it is {_below(self.low, digits)}{_parity(self, False)}")
        if self.nan_guess != ABSTAIN:
            parts.append(f"guess {x if self.nan_guess == 1 else x_prime} where it is {_not_a_number(self)}")
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


def is_by_bins(score: Score) -> TypeGuard[Histogram]:
    """Whether the score is a histogram of one column: a function of the bin of one number."""
    return isinstance(score, Histogram) and len(score.columns) == 1


def _parity(rule: Rule, is_above: bool) -> str:
    """Which whole numbers a rule of remainders modulo 2 guesses on at this side; empty for another rule, and for both.

    Labels and answers of yes or no are 0 and 1: what they leave modulo 2 is no threshold to a reader.
    """
    if not isinstance(rule.score, Remainder) or rule.score.modulus != 2.0:
        return ""
    parities = {"even numbers, such as 0": 0.0, "odd numbers, such as 1": 1.0}
    named = [name for name, left in parities.items() if (left > rule.high if is_above else left < rule.low)]
    return f" (of whole numbers: {named[0]})" if len(named) == 1 else ""


Named = tuple[str, dict[int, str]]  # what a rule looks at, and in words where it guesses 0 and 1; empty for nowhere


def _by_outcomes(rule: Rule) -> Named | None:
    """The rule of a table by the outcomes that it guesses on; None for another one, and where they are too many."""
    table = rule.score
    if not isinstance(table, Table):
        return None
    tokens = sorted(table.values, key=lambda token: (-abs(table.values[token]), token))
    guesses = rule.guess_scores(np.array([table.values[token] for token in tokens] + [table.shared])).tolist()
    where = {}
    named = [token for token, guess in zip(tokens, guesses, strict=False) if guess != ABSTAIN]
    if len(named) > 2 * MOST_NAMED:
        return None
    shortened = _told_apart(named)
    if shortened is None:
        return None
    for guess in (0, 1):
        own = [shortened[token] for token, of_token in zip(tokens, guesses, strict=False) if of_token == guess]
        if guesses[-1] == guess:
            own.append("any outcome that was seen at most once before the test")
        if len(own) > MOST_NAMED:
            return None
        where[guess] = " or ".join(own)
    what = "the output" if table.outline == WHOLE else f"the {table.outline} of the output"
    return what, where


def _by_ranges(rule: Rule) -> Named | None:
    """The rule of one column by the ranges that it guesses on, or by its values where these have names.

    None as for `_by_outcomes`, and for a column without names that is looked at as it is: thresholds tell that.
    """
    score = rule.score.score if isinstance(rule.score, Viewed) else rule.score
    if not isinstance(score, Coordinate) and not is_by_bins(score):
        return None
    column = score.column if isinstance(score, Coordinate) else score.columns[0]
    values = rule.score.view.values_of(column) if isinstance(rule.score, Viewed) else None
    ends: list[float] = []
    if isinstance(score, Coordinate):
        if values is None:
            return None
        guesses, of_nan = [], rule.nan_guess
    else:
        ends = [-math.inf, *score.edges[0].tolist(), math.inf]
        *guesses, of_nan = rule.guess_scores(score.values[0]).tolist()
    if isinstance(rule.score, Viewed):
        what = rule.score.view.name_of(column)
    else:
        what = "the output" if rule.reading.columns == 1 else f"coordinate {column} of the output"
    where = {}
    for guess in (0, 1):
        own: list[str] = []
        if values is not None:
            codes = np.array(list(values))
            of_codes = codes if isinstance(score, Coordinate) else score.values_of(codes)
            of_values = rule.guess_scores(of_codes).tolist()
            own += [_shortened(name) for name, its in zip(values.values(), of_values, strict=True) if its == guess]
        else:
            start = 0
            for same, bins in itertools.groupby(guesses):
                stop = start + len(list(bins))
                if same == guess:
                    own.append(_range(ends[start], ends[stop]))
                start = stop
        if of_nan == guess:
            # What is no number may well be there: a text, None or NaN.
            own.append("not there" if values is not None else _not_a_number(rule))
        if len(own) > MOST_NAMED:
            return None
        where[guess] = " or ".join(own)
    return what, where


def _not_a_number(rule: Rule) -> str:
    """What has no score, in words: of objects whatever is no number."""
    return "NaN" if rule.reading.columns else "no number"


def _range(low: float, high: float) -> str:
    """Numbers from `low` on and below `high`, in words."""
    if low == -math.inf and high == math.inf:
        return "any number"
    if high == math.nextafter(low, math.inf):
        return _whole(low)
    if high == -sys.float_info.max:
        return "-inf"
    digits = next((n for n in range(6, 17) if f"{low:.{n}g}" != f"{high:.{n}g}"), 17)
    (start, is_above), (stop, is_with) = (_end(end, digits) for end in (low, high))
    below = f"at most {stop}" if is_with else f"below {stop}"
    if low == -math.inf:
        return below
    if high == math.inf:
        return f"above {start}" if is_above else f"at least {start}"
    if is_above or is_with:
        return f"{'above' if is_above else 'at least'} {start} and {below}"
    return f"from {start} to {stop}"


def _above(threshold: float, digits: int) -> str:
    """What lies above a threshold, in words; doubles just beside 0 by 0 itself."""
    return "at least 0" if threshold == -LEAST else f"above {threshold + 0.0:.{digits}g}"  # + 0.0: not "-0"


def _below(threshold: float, digits: int) -> str:
    """What lies below it, as `_above`."""
    return "at most 0" if threshold == LEAST else f"below {threshold + 0.0:.{digits}g}"


def _end(end: float, digits: int) -> tuple[str, bool]:
    """The end of a range in words, and whether it is the next double after the one that is said."""
    before = math.nextafter(end, -math.inf)
    is_next = end == LEAST or (math.isfinite(end) and len(repr(before)) + 3 < len(repr(end)))
    said = (before if is_next else end) or 0.0  # not "-0"
    return (_whole(said) if is_next or said.is_integer() else f"{said:.{digits}g}"), is_next


def _whole(number: float) -> str:
    """A number with all the digits that tell it from others; integers without a point."""
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2.0**53 else repr(number)


def _told_apart(tokens: Sequence[str]) -> dict[str, str] | None:
    """Tokens in short, each in another way: from about where they begin to differ on; None where that is too long."""
    first, last = min(tokens, default=""), max(tokens, default="")
    shared = next((k for k, letters in enumerate(zip(first, last, strict=False)) if len({*letters}) > 1), len(first))
    for start in (0, max(shared - LONGEST_NAMED // 2, 0)):
        short = {token: ("…" if start else "") + _shortened(token[start:]) for token in tokens}
        if len(set(short.values())) == len(short):
            return short
    return None


def _shortened(token: str) -> str:
    return token if len(token) <= LONGEST_NAMED else f"{token[:LONGEST_NAMED]}…"


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
