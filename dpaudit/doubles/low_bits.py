"""Rules on the low bits of outputs: fitted on training draws, then fixed.

A score adds up, over a few columns of the output, the log ratio of x to x_prime of one feature's code, from a table.
The rule guesses x where the score is high, x_prime where it is low, and abstains between. One half of the training
draws makes the tables (and the values that `SeenBefore` remembers), the other picks the feature and the thresholds, so
that a table that learnt its own draws by heart is not taken for a good one. A feature whose own draws, which flatter
it, promise less than another has proved is not tried on the other half.

What is no number under a column's path (an exception, an entry that is missing, a text, NaN) has no bits, so it is no
evidence here: the audit's own games read it as the outcome that it is. Rules are fitted on numbers alone, a rule
abstains on an output that holds none in its columns, and a column is left out where one input has numbers there more
often than the other (`choose_columns`): else any rule on its numbers would tell their presence, and call it low bits.

Validity: nothing here rests on what is fitted. A rule is a function of one output, fixed before the draws that it is
counted on (`dpaudit.doubles.floating_point`). Columns are chosen on probes, before training and counting; to abstain
on what is no number is a rule that is fixed beforehand, the same for both inputs, and abstentions cost nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.doubles.attainability import attainable
from dpaudit.doubles.features import (
    ABOVE_ALL,
    BELOW_ALL,
    SPECIAL,
    Codes,
    Feature,
    SeenBefore,
    bits_of,
    distinct,
    features_for,
    lowest_set_bit,
)
from dpaudit.doubles.locations import Location
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.real_columns import Path, path_text
from dpaudit.reading.whole_numbers import are_integers

MOST_COLUMNS = 16  # of an output that a rule looks at
POOLED = 12  # draws of both sides below which neighbouring codes of an ordered feature share a table entry
SMALL_SPAN = 1 << 15  # of codes that are counted one by one, between the least and the greatest
LARGEST_SCORE = 6.0  # of one column, in nats: one code cannot outweigh all others
MOST_CUTS = 32  # thresholds that are tried a side
CAUTION = 1.0  # standard deviations by which a record of the training draws is distrusted
PRESENCE = 3.0  # standard deviations by which the inputs' shares of numbers in a column may differ
MARGIN = 0.2  # nats by which a later feature must be better: the earlier ones are easier to understand

Columns = Mapping[Path, FloatArray]


@dataclasses.dataclass(frozen=True)
class Table:
    """A feature with a log ratio for each of its codes; 0 for a code that no training draw showed.

    `starts` (increasing, shape (entries,)) are codes: of an ordered feature each begins a range that ends before the
    next; of another one each stands for itself.
    """

    feature: Feature
    starts: Codes
    scores: FloatArray

    def __call__(self, values: FloatArray) -> FloatArray:
        """The score of each value, shape (draws,)."""
        codes = self.feature.codes(values)
        if not len(self.starts):
            return np.zeros(values.shape)
        if self._by_code is None:
            return self._searched(codes)
        least, scores = self._by_code
        special_code = codes >= SPECIAL
        found = scores[np.clip(codes - (least - 1), 0, len(scores) - 1)]
        if special_code.any():
            found[special_code] = self._searched(codes[special_code])
        return np.asarray(found)

    @functools.cached_property
    def _by_code(self) -> tuple[int, FloatArray] | None:
        """The least plain code, and the scores of that before it, of it and all plain ones up to one behind the last.

        None where they are too many, or none.
        """
        plain = self.starts[self.starts < SPECIAL]
        if not len(plain) or plain[-1] - plain[0] >= SMALL_SPAN:
            return None
        return int(plain[0]), self._searched(np.arange(plain[0] - 1, plain[-1] + 2))

    def _searched(self, codes: Codes) -> FloatArray:
        places = np.maximum(np.searchsorted(self.starts, codes, side="right") - 1, 0)
        special_code = codes >= SPECIAL
        if self.feature.is_ordered:
            # A special code is never in the range of a plain one, nor the reverse.
            known = np.where(special_code, self.starts[places] == codes, self.starts[places] < SPECIAL)
        else:
            known = self.starts[places] == codes
        return np.where(known, self.scores[places], 0.0)

    def ranges(self, chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """The chosen entries as ranges of codes (first, last), those of an ordered feature merged and open-ended."""
        if not self.feature.is_ordered:
            return [(int(code), int(code)) for code in self.starts[chosen]]
        plain = int(np.sum(self.starts < SPECIAL))
        found: list[tuple[int, int]] = []
        for k in np.flatnonzero(chosen):
            code = int(self.starts[k])
            if code >= SPECIAL:
                found.append((code, code))
                continue
            first = BELOW_ALL if k == 0 else code
            last = ABOVE_ALL if k == plain - 1 else int(self.starts[k + 1]) - 1
            if found and found[-1][1] == first - 1:
                first = found.pop()[0]
            found.append((first, last))
        return found


@dataclasses.dataclass(frozen=True)
class LowBitRule:
    """Guess x where the summed score is at least `high`, x_prime where it is at most `low`; abstain between.

    It abstains where none of its columns holds a number; a column that holds none adds nothing to the score.
    `tables` has one entry for each column that the rule looks at. `sides` is how many of the two guesses it ever makes.
    """

    tables: tuple[tuple[Path, Table], ...]
    high: float
    low: float

    @property
    def sides(self) -> int:
        return int(self.high < math.inf) + int(self.low > -math.inf)

    def count(self, columns: Columns, quota: int) -> tuple[int, int]:
        """On the first `quota` draws: how often it guesses x, and how often x_prime."""
        values = [columns[path][:quota] for path, _ in self.tables]
        score = _summed([_score(table, own) for (_, table), own in zip(self.tables, values, strict=True)])
        score = score[_has_number(values)]
        return int(np.sum(score >= self.high)), int(np.sum(score <= self.low))

    def events(self) -> tuple[str, str]:
        """What the two guessing events are, in words that complete "outputs …"; empty for a guess it never makes."""
        if len(self.tables) > 1:
            kinds = f"whose low bits in {len(self.tables)} coordinates together"
            return (
                f"{kinds} speak for x" if self.high < math.inf else "",
                f"{kinds} speak for x′" if self.low > -math.inf else "",
            )
        ((path, table),) = self.tables
        where = path_text(path)
        said = []
        for chosen in (table.scores >= self.high, table.scores <= self.low):
            ranges = table.ranges(chosen)
            words = table.feature.words(ranges) if ranges else ""
            said.append(f"with an entry {where} {words}" if words and where else words)
        return said[0], said[1]


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A rule and how it did on the training draws: the expected lower bound on epsilon, in nats (-inf: none)."""

    rule: LowBitRule
    merit: float


def choose_columns(first: Columns, second: Columns) -> list[Path]:
    """At most `MOST_COLUMNS` columns of reals: of more, those in which the inputs differ most.

    `first` and `second` are a few draws of x and x_prime, one array a column, NaN where there is no number. A column
    is one of reals if it varies on both inputs (two constants are no noise that was rounded), is not always an integer,
    and is a number about as often on either (`PRESENCE`).
    """
    chosen = [path for path in first if _is_real_valued(first[path], second[path])]
    if len(chosen) <= MOST_COLUMNS:
        return chosen
    shifts = {path: _shift(first[path], second[path]) for path in chosen}
    largest = set(sorted(chosen, key=lambda path: -shifts[path])[:MOST_COLUMNS])
    return [path for path in chosen if path in largest]


def _is_real_valued(first: FloatArray, second: FloatArray) -> bool:
    """Whether a column varies on both inputs, is not always an integer, and is a number as often on either."""
    sides = [side[np.isfinite(side)] for side in (first, second)]
    if not all(len(side) and np.any(side != side[0]) for side in sides):
        return False
    return not all(are_integers(side) for side in sides) and _is_as_often_there(first, second)


def _is_as_often_there(first: FloatArray, second: FloatArray) -> bool:
    """Whether the shares of numbers on the two inputs differ by no more than chance, `PRESENCE` standard deviations."""
    missing = [int(np.isnan(side).sum()) for side in (first, second)]
    size = len(first) + len(second)
    pooled = sum(missing) / size
    deviation = math.sqrt(pooled * (1.0 - pooled) * (1.0 / len(first) + 1.0 / len(second)))
    return abs(missing[0] / len(first) - missing[1] / len(second)) <= PRESENCE * deviation


def _has_number(columns: Sequence[FloatArray]) -> NDArray[np.bool_]:
    """Which outputs hold a number in at least one of these columns."""
    return np.asarray(~np.logical_and.reduce([np.isnan(values) for values in columns]))


def _score(table: Table, values: FloatArray) -> FloatArray:
    """The score of each value, 0 for what is no number."""
    return np.where(np.isnan(values), 0.0, table(values))


def _shift(first: FloatArray, second: FloatArray) -> float:
    """How far the sides lie apart, by size or by lowest bits."""
    bits = [np.minimum(lowest_set_bit(side)[0], 1_100).astype(float) for side in (first, second)]
    with np.errstate(all="ignore"):
        return max(_separation(first, second), _separation(bits[0], bits[1]))


def _separation(first: FloatArray, second: FloatArray) -> float:
    """The difference of the medians over the spread of the quartiles, which heavy tails leave alone; 0 if none."""
    first, second = first[np.isfinite(first)], second[np.isfinite(second)]
    if not len(first) or not len(second):
        return 0.0
    quartiles = [np.percentile(side, [25, 50, 75]) for side in (first, second)]
    difference = abs(float(quartiles[0][1] - quartiles[1][1]))
    spread = float(quartiles[0][2] - quartiles[0][0] + quartiles[1][2] - quartiles[1][0])
    ratio = difference / spread if spread > 0.0 else (math.inf if difference > 0.0 else 0.0)
    return 0.0 if math.isnan(ratio) else ratio


def fit(
    first: Columns,
    second: Columns,
    *,
    epsilon: float,
    delta: float,
    level: float,
    draws: int,
    names: tuple[str, str],
    locations: Mapping[Path, Location | None],
) -> Fitted | None:
    """The rule with the best expected bound, from training draws of x (`first`) and x_prime (`second`).

    Parameters
    ----------
    epsilon, delta : float
        The line of the claim.
    level : float
        Of the test to come, on `draws` labelled draws.
    names : (str, str)
        Of the two inputs, for the words of a rule.
    locations : mapping of path to Location or None
        The numbers of the inputs that outputs lie around, under the paths of the columns, where they are known.

    Returns
    -------
    Fitted or None
        None if there is no column, no draw, or no rule that ever guesses right.
    """
    test = _Test(delta, level, draws)
    best: Fitted | None = None
    single: list[tuple[Path, Table, float]] = []
    later: dict[Path, _Half] = {}
    for path in first:
        n1, n0 = len(first[path]) // 2, len(second[path]) // 2
        own = _Half(first[path][:n1], second[path][:n0]).numbers()
        whole = _Half(first[path][n1:], second[path][n0:])
        chosen = whole.numbers()
        if min(map(len, (own.first, own.second, chosen.first, chosen.second))) == 0:
            continue
        later[path] = whole
        here = test.on_share(len(chosen.both) / len(whole.both))
        guesses = attainable(locations.get(path), epsilon)
        tried = features_for(own.first, own.second, *names, chosen.first, chosen.second)
        candidates = [_candidate(feature, own, here) for feature in [*tried, *guesses]]
        best_here: tuple[Table, float] | None = None
        for table, merit, high, low in _scored(candidates, chosen, here):
            if best_here is None or merit > best_here[1] + MARGIN:
                best_here = (table, merit)
            if merit > (best.merit + MARGIN if best is not None else -math.inf):
                best = Fitted(LowBitRule(((path, table),), high, low), merit)
        if best_here is not None:
            single.append((path, *best_here))
    if len(single) > 1:
        tables = tuple((path, table) for path, table, _ in single)
        scores = [later[path].scores(table) for path, table in tables]
        summed = [_summed(side) for side in zip(*scores, strict=True)]
        there = [_has_number([getattr(later[path], side) for path, _ in tables]) for side in ("first", "second")]
        numbers = [side[held] for side, held in zip(summed, there, strict=True)]  # at least one a side: of any column
        here = test.on_share(sum(map(len, numbers)) / sum(map(len, summed)))
        merit, high, low = here.thresholds(*numbers)
        if merit > (best.merit + MARGIN if best is not None else -math.inf):
            best = Fitted(LowBitRule(tables, high, low), merit)
    return best


@dataclasses.dataclass(frozen=True)
class _Half:
    """One half of the training draws of one column: those of x (`first`) and of x_prime; NaN is no number."""

    first: FloatArray
    second: FloatArray

    @functools.cached_property
    def both(self) -> FloatArray:
        """The draws of x, then those of x_prime."""
        return np.concatenate([self.first, self.second])

    def numbers(self) -> _Half:
        """The same draws without those that are no number."""
        return _Half(self.first[~np.isnan(self.first)], self.second[~np.isnan(self.second)])

    def scores(self, table: Table) -> tuple[FloatArray, FloatArray]:
        """Of the draws of x, and of x_prime; 0 for what is no number."""
        scores = _score(table, self.both)
        return scores[: len(self.first)], scores[len(self.first) :]


@dataclasses.dataclass(frozen=True)
class _Test:
    """The test to come: the delta of its line, its level, its number of labelled draws."""

    delta: float
    level: float
    draws: int

    def merit(
        self, correct: FloatArray, wrong: FloatArray, sides: FloatArray | float, seen: int, caution: float = CAUTION
    ) -> FloatArray:
        """The expected bound on epsilon, in nats, of rules with these rates on `seen` training draws; -inf for none.

        It is the log-odds of a right guess, with limits of the test's `level` on the counts to come and of `caution`
        standard deviations on the rates seen here; one wrong guess is added for each of the (one or two) `sides`.
        """
        # A lower limit on right guesses and an upper one on wrong ones, in draws to come: the latter is that of a
        # Poisson count, which is right for the few wrong guesses of a good rule.
        deviations = self._quantile / math.sqrt(max(self.draws, 1)) + caution / math.sqrt(seen)
        least_correct = correct - np.sqrt(correct) * deviations - self.delta / 2.0 * sides
        wrong = np.maximum(wrong + np.sqrt(wrong) * (caution / math.sqrt(seen)), 0.0) + sides / seen
        most_wrong = (np.sqrt(wrong * self.draws + 0.25) + 0.5 * self._quantile) ** 2
        merit = np.log(np.maximum(least_correct, 1e-150) * self.draws / most_wrong)
        merit[least_correct <= 0.0] = -math.inf
        return np.asarray(merit)

    def on_share(self, share: float) -> _Test:
        """The same test for rates among a `share` of the outputs, on all others of which a rule abstains."""
        return self if share == 1.0 else _Test(self.delta / share, self.level, round(self.draws * share))

    @functools.cached_property
    def _quantile(self) -> float:
        return -float(scipy.special.ndtri(self.level)) if self.level > 0.0 else 40.0

    def promise(self, first: FloatArray, second: FloatArray, seen: tuple[int, int]) -> float:
        """More than the merit of any rule on these draws: so many `seen` of x and of x_prime, so many with each code.

        A code guesses the side that has it more often, from the most telling code on. Of all rules with so many wrong
        guesses none has more right ones, unless it splits a code; and none has more merit, split or not, as a merit is
        quasi-convex in both rates, and so greatest at a corner. The rates are taken for `CAUTION` standard deviations
        better than they are here, for there may be no wrong guess among others where there is one among these.
        """
        rates = first * (0.5 / seen[0]), second * (0.5 / seen[1])
        right, wrong = np.maximum(*rates), np.minimum(*rates)
        order = np.argsort(wrong / right)
        return float(self.merit(right[order].cumsum(), wrong[order].cumsum(), 1.0, sum(seen), -CAUTION).max())

    def thresholds(self, first: FloatArray, second: FloatArray) -> tuple[float, float, float]:
        """(merit, high, low): the thresholds with the best merit, for scores of x (`first`) and x_prime (`second`)."""
        first, second = np.sort(first), np.sort(second)
        both = np.sort(np.concatenate([first, second]), kind="stable")  # both are sorted: they are only merged
        scores = distinct(both)
        if len(scores) > MOST_CUTS:
            scores = np.unique(both[np.floor(np.linspace(0.0, 1.0, MOST_CUTS) * (len(both) - 1)).astype(int)])
        highs, lows = np.append(scores, math.inf), np.append(scores, -math.inf)
        right = [1.0 - np.searchsorted(side, highs, side="left") / len(side) for side in (first, second)]
        left = [np.searchsorted(side, lows, side="right") / len(side) for side in (first, second)]
        correct = 0.5 * (right[0][:, None] + left[1][None, :])  # (highs, lows)
        wrong = 0.5 * (right[1][:, None] + left[0][None, :])
        sides = np.isfinite(highs)[:, None].astype(float) + np.isfinite(lows)[None, :]
        merit = self.merit(correct, wrong, np.maximum(sides, 1.0), len(both))
        merit[(highs[:, None] <= lows[None, :]) | (sides == 0.0)] = -math.inf
        i, j = np.unravel_index(int(np.argmax(merit)), merit.shape)
        return float(merit[i, j]), float(highs[i]), float(lows[j])


def _summed(scores: Sequence[FloatArray]) -> FloatArray:
    """The sum over columns, added up in one order whatever the size of the batch, so that a score has the same bits."""
    total = scores[0]
    for score in scores[1:]:
        total = total + score
    return total


def _scored(
    candidates: Sequence[tuple[float, Callable[[], Table]]], later: _Half, test: _Test
) -> list[tuple[Table, float, float, float]]:
    """(table, merit, high, low) of each candidate (its promise, and what makes its table) that may yet be chosen.

    In their order, but the most promising is scored first. A later one is left out if it promises less than the best
    merit found, an earlier one, which is easier to understand, if it promises less than that by `MARGIN`.
    """
    found: dict[int, tuple[Table, float, float, float]] = {}
    best, place = -math.inf, 0
    for k in sorted(range(len(candidates)), key=lambda k: -candidates[k][0]):
        promise, make_table = candidates[k]
        if promise < best - (MARGIN if k < place else 0.0):
            continue
        table = make_table()
        found[k] = (table, *test.thresholds(*later.scores(table)))
        if found[k][1] > best:
            best, place = found[k][1], k
    return [found[k] for k in sorted(found)]


def _candidate(feature: Feature, own: _Half, test: _Test) -> tuple[float, Callable[[], Table]]:
    """What a feature promises on one half of the training draws, and what makes the table of its log ratios there.

    The promise is infinite where these draws cannot tell.
    """
    if isinstance(feature, SeenBefore):  # its own draws were all seen: what each code speaks for is known beforehand
        known = np.array([0.0, 1.0, -1.0, 0.5 * _sign(own.first, own.second)])
        return math.inf, lambda: Table(feature, np.arange(4), known)
    starts, first, second = _counted(feature.codes(own.both), len(own.first))
    if feature.is_ordered:
        groups = _pooled(starts, first + second)
        starts, first, second = starts[groups], np.add.reduceat(first, groups), np.add.reduceat(second, groups)

    def make_table() -> Table:
        ratios = np.log((first + 0.5) / (len(own.first) + 1.0)) - np.log((second + 0.5) / (len(own.second) + 1.0))
        return Table(feature, starts, np.clip(ratios, -LARGEST_SCORE, LARGEST_SCORE))

    return test.promise(first, second, (len(own.first), len(own.second))), make_table


def _counted(codes: Codes, of_first: int) -> tuple[Codes, FloatArray, FloatArray]:
    """The different codes of both sides, increasing, and how often the first so many have them, and the rest."""
    least = int(codes.min())
    span = int(codes.max()) - least + 1
    if span <= SMALL_SPAN:  # without a sort
        codes = codes - least
        own = [np.bincount(side, minlength=span) for side in (codes[:of_first], codes[of_first:])]
        found = np.flatnonzero(own[0] + own[1])
        return found + least, own[0][found].astype(float), own[1][found].astype(float)
    starts = distinct(np.sort(codes))
    sides = [np.sort(side) for side in (codes[:of_first], codes[of_first:])]
    own = [np.diff(np.searchsorted(side, starts), append=len(side)) for side in sides]
    return starts, own[0].astype(float), own[1].astype(float)


def _sign(first: FloatArray, second: FloatArray) -> float:
    """Which side repeats its values more often: 1 for x, -1 for x_prime, 0 for neither."""
    different = [len(distinct(np.sort(bits_of(side)))) for side in (first, second)]
    return float(np.sign(different[1] * len(first) - different[0] * len(second)))


def _pooled(starts: Codes, totals: FloatArray) -> NDArray[np.intp]:
    """Where groups of neighbouring codes begin: each of at least `POOLED` draws, if no frequent code ends it before."""
    begins, held = [0], 0.0
    codes, counts = starts.tolist(), totals.tolist()
    for k in range(1, len(codes)):
        held += counts[k - 1]
        if held >= POOLED or counts[k] >= POOLED or codes[k] >= SPECIAL:
            begins.append(k)
            held = 0.0
    return np.array(begins, dtype=np.intp)


def union(columns: Sequence[Sequence[Path]]) -> list[Path]:
    """The paths of several choices, each once, in the order of their first appearance."""
    return list(dict.fromkeys(path for chosen in columns for path in chosen))
