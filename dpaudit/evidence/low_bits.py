"""Rules on the low bits of outputs: fitted on training draws, then fixed.

A score adds up, over a few columns of the output, the log ratio of x to x_prime of one feature's code, from a table.
The rule guesses x where the score is high, x_prime where it is low, and abstains between. One half of the training
draws makes the tables (and the values that `SeenBefore` remembers), the other picks the feature and the thresholds, so
that a table that learnt its own draws by heart is not taken for a good one.

Validity: nothing here rests on what is fitted. A rule is a function of one output, fixed before the draws that it is
counted on (`dpaudit.evidence.floating_point`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.evidence.attainability import attainable
from dpaudit.evidence.double_features import (
    ABOVE_ALL,
    BELOW_ALL,
    SPECIAL,
    Codes,
    Feature,
    SeenBefore,
    features_for,
    lowest_set_bit,
)
from dpaudit.evidence.real_columns import Path, path_text
from dpaudit.privacy.claims import FloatArray

MOST_COLUMNS = 16  # of an output that a rule looks at
POOLED = 12  # draws of both sides below which neighbouring codes of an ordered feature share a table entry
SMALL_SPAN = 1 << 15  # of codes that are counted one by one, between the least and the greatest
LARGEST_SCORE = 6.0  # of one column
MOST_CUTS = 32  # thresholds that are tried a side
CAUTION = 1.0  # standard deviations by which a record of the training draws is distrusted
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
        score = _summed([table(columns[path][:quota]) for path, table in self.tables])
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
    """At most `MOST_COLUMNS` real-valued columns that vary: of more, those in which the inputs differ most.

    `first` and `second` are a few draws of x and x_prime, one array a column.
    """
    chosen: list[tuple[float, int, Path]] = []
    for position, path in enumerate(first):
        sides = (first[path], second[path])
        both = np.concatenate(sides)
        finite = both[np.isfinite(both)]
        if not len(finite) or np.all(finite == np.rint(finite)) or np.all(finite == finite[0]):
            continue
        bits = [np.minimum(lowest_set_bit(side)[0], 1_100).astype(float) for side in sides]
        with np.errstate(all="ignore"):
            shift = max(_separation(*sides), _separation(bits[0], bits[1]))
        chosen.append((-shift, position, path))
    if len(chosen) > MOST_COLUMNS:
        chosen = sorted(sorted(chosen)[:MOST_COLUMNS], key=lambda entry: entry[1])
    return [path for _, _, path in chosen]


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
    locations: Mapping[Path, tuple[float, float]],
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
    locations : mapping of path to (float, float)
        The numbers that the inputs themselves hold under the paths of the columns, where they do.

    Returns
    -------
    Fitted or None
        None if there is no column, no draw, or no rule that ever guesses right.
    """
    best: Fitted | None = None
    single: list[tuple[Path, Table, float]] = []
    later: dict[Path, tuple[FloatArray, FloatArray]] = {}
    for path in first:
        n1, n0 = len(first[path]) // 2, len(second[path]) // 2
        if min(n1, n0) == 0:
            continue
        own = (first[path][:n1], second[path][:n0])
        later[path] = (first[path][n1:], second[path][n0:])
        best_here: tuple[Table, float] | None = None
        guesses = attainable(*locations[path], epsilon) if path in locations else []
        for feature in [*features_for(*own, *names, *later[path]), *guesses]:
            table = _table(feature, *own)
            s1, s0 = (table(side) for side in later[path])
            merit, high, low = _thresholds(s1, s0, epsilon, delta, level, draws)
            if best_here is None or merit > best_here[1] + MARGIN:
                best_here = (table, merit)
            if merit > (best.merit + MARGIN if best is not None else -math.inf):
                best = Fitted(LowBitRule(((path, table),), high, low), merit)
        if best_here is not None:
            single.append((path, *best_here))
    if len(single) > 1:
        tables = tuple((path, table) for path, table, _ in single)
        scores = [_summed([table(later[path][side]) for path, table in tables]) for side in (0, 1)]
        merit, high, low = _thresholds(scores[0], scores[1], epsilon, delta, level, draws)
        if merit > (best.merit + MARGIN if best is not None else -math.inf):
            best = Fitted(LowBitRule(tables, high, low), merit)
    return best


def _summed(scores: Sequence[FloatArray]) -> FloatArray:
    """The sum over columns, added up in one order whatever the size of the batch, so that a score has the same bits."""
    total = scores[0]
    for score in scores[1:]:
        total = total + score
    return total


def _table(feature: Feature, first: FloatArray, second: FloatArray) -> Table:
    """The log ratios of a feature's codes on one half of the training draws."""
    if isinstance(feature, SeenBefore):  # its own draws were all seen: what each code speaks for is known beforehand
        return Table(feature, np.arange(4), np.array([0.0, 1.0, -1.0, 0.5 * _sign(first, second)]))
    sides = [feature.codes(first), feature.codes(second)]
    starts, *counts = _counted(*sides)
    if feature.is_ordered:
        groups = _pooled(starts, counts[0] + counts[1])
        starts = starts[groups]
        counts = [np.add.reduceat(count, groups) for count in counts]
    ratios = np.log((counts[0] + 0.5) / (len(first) + 1.0)) - np.log((counts[1] + 0.5) / (len(second) + 1.0))
    return Table(feature, starts, np.clip(ratios, -LARGEST_SCORE, LARGEST_SCORE))


def _counted(first: Codes, second: Codes) -> tuple[Codes, FloatArray, FloatArray]:
    """The different codes of both sides, increasing, and how often each side has them."""
    least = int(min(first.min(), second.min()))
    span = int(max(first.max(), second.max())) - least + 1
    if span <= SMALL_SPAN:  # without a sort
        own = [np.bincount(side - least, minlength=span) for side in (first, second)]
        found = np.flatnonzero(own[0] + own[1])
        return found + least, own[0][found].astype(float), own[1][found].astype(float)
    starts, inverse = np.unique(np.concatenate([first, second]), return_inverse=True)
    parts = (inverse[: len(first)], inverse[len(first) :])
    counts = [np.bincount(part, minlength=len(starts)).astype(float) for part in parts]
    return starts, counts[0], counts[1]


def _sign(first: FloatArray, second: FloatArray) -> float:
    """Which side repeats its values more often: 1 for x, -1 for x_prime, 0 for neither."""
    distinct = len(np.unique(first)) * len(second) - len(np.unique(second)) * len(first)
    return float(np.sign(-distinct))


def _pooled(starts: Codes, totals: FloatArray) -> NDArray[np.intp]:
    """Where groups of neighbouring codes begin: each of at least `POOLED` draws, if no frequent code ends it before."""
    begins = [0]
    held = totals[0]
    for k in range(1, len(starts)):
        if held >= POOLED or totals[k] >= POOLED or starts[k] >= SPECIAL:
            begins.append(k)
            held = 0.0
        held += totals[k]
    return np.array(begins, dtype=np.intp)


def _thresholds(
    first: FloatArray, second: FloatArray, epsilon: float, delta: float, level: float, draws: int
) -> tuple[float, float, float]:
    """(merit, high, low): the thresholds with the best expected bound, for scores of x (`first`) and x_prime.

    The expected bound on epsilon is the log-odds of a right guess, with limits of the test's `level` on the counts to
    come and of `CAUTION` standard deviations on the rates seen here; one wrong guess is added for each event.
    """
    first, second = np.sort(first), np.sort(second)
    both = np.sort(np.concatenate([first, second]), kind="stable")  # both are sorted: they are only merged
    scores = both[np.concatenate([[True], both[1:] != both[:-1]])]
    if len(scores) > MOST_CUTS:
        scores = np.unique(both[np.floor(np.linspace(0.0, 1.0, MOST_CUTS) * (len(both) - 1)).astype(int)])
    n1, n0 = len(first), len(second)
    highs, lows = np.append(scores, math.inf), np.append(scores, -math.inf)
    right = [1.0 - np.searchsorted(side, highs, side="left") / len(side) for side in (first, second)]
    left = [np.searchsorted(side, lows, side="right") / len(side) for side in (first, second)]
    correct = 0.5 * (right[0][:, None] + left[1][None, :])  # (highs, lows)
    wrong = 0.5 * (right[1][:, None] + left[0][None, :])
    sides = np.isfinite(highs)[:, None].astype(float) + np.isfinite(lows)[None, :]
    legal = (highs[:, None] > lows[None, :]) & (sides > 0)
    quantile = -float(special.ndtri(level)) if level > 0.0 else 40.0
    # A lower limit on right guesses and an upper one on wrong ones, in draws to come: the latter is that of a Poisson
    # count, which is right for the few wrong guesses of a good rule.
    c = correct - delta * sides / 2.0
    c = c - np.sqrt(np.maximum(correct, 0.0)) * (quantile / math.sqrt(max(draws, 1)) + CAUTION / math.sqrt(n1 + n0))
    w = wrong + np.maximum(sides, 1.0) / (n1 + n0) + CAUTION * np.sqrt(wrong / (n1 + n0))
    most_wrong = (np.sqrt(w * draws + 0.25) + 0.5 * quantile) ** 2
    merit = np.log(np.maximum(c, 1e-150) * draws / most_wrong)
    merit = np.where(legal & (c > 0.0), merit, -math.inf)
    i, j = np.unravel_index(int(np.argmax(merit)), merit.shape)
    return float(merit[i, j]), float(highs[i]), float(lows[j])


def union(columns: Sequence[Sequence[Path]]) -> list[Path]:
    """The paths of several choices, each once, in the order of their first appearance."""
    return list(dict.fromkeys(path for chosen in columns for path in chosen))
