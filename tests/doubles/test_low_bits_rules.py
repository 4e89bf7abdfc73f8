"""Rules on low bits by brute force: scores a draw at a time, thresholds over all pairs, and columns by their shares."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.doubles import low_bits
from dpaudit.doubles.features import SPECIAL
from dpaudit.doubles.low_bits import SMALL_SPAN, LowBitRule, Table, _Test, choose_columns, fit, union

NONE, INFINITE = math.nan, math.inf
RNG = np.random.default_rng(20_261_129)


class Whole:
    """The number itself as a code; infinities have one of their own."""

    def __init__(self, is_ordered):
        self.is_ordered = is_ordered

    def codes(self, values):
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(values), np.nan_to_num(values, posinf=0.0), SPECIAL + 1).astype(np.int64)

    def words(self, ranges):
        return " or ".join(f"{first}..{last}" for first, last in ranges)


def score_of(table, value):
    """Of one number, by the definition of a table."""
    if math.isnan(value):
        return 0.0
    code = int(table.feature.codes(np.array([value]))[0])
    known = [k for k, start in enumerate(table.starts.tolist()) if (start >= SPECIAL) == (code >= SPECIAL)]
    if not table.feature.is_ordered or code >= SPECIAL:  # each code stands for itself
        known = [k for k in known if table.starts[k] == code]
    elif before := [k for k in known if table.starts[k] <= code]:  # the range that it lies in
        known = before
    else:
        known = known[:1]  # the first range is open below
    return float(table.scores[known[-1]]) if known else 0.0


TABLES = {
    "ordered": Table(Whole(True), np.array([-3, 0, 5]), np.array([1.0, -2.0, 0.5])),
    "ordered, one range": Table(Whole(True), np.array([2]), np.array([1.5])),
    "ordered, infinities": Table(Whole(True), np.array([0, 4, SPECIAL + 1]), np.array([1.0, -1.0, 3.0])),
    "ordered, infinities alone": Table(Whole(True), np.array([SPECIAL + 1]), np.array([3.0])),
    "ordered, far apart": Table(Whole(True), np.array([-3, SMALL_SPAN + 7]), np.array([1.0, -1.0])),
    "each": Table(Whole(False), np.array([-3, 0, 5]), np.array([1.0, -2.0, 0.5])),
    "each, infinities": Table(Whole(False), np.array([0, 4, SPECIAL + 1]), np.array([1.0, -1.0, 3.0])),
    "each, far apart": Table(Whole(False), np.array([0, SMALL_SPAN + 7]), np.array([1.0, -1.0])),
    "nothing": Table(Whole(False), np.array([], dtype=np.int64), np.array([])),
}
VALUES = np.array([-9.0, -4.0, -3.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 40_000.0, INFINITE, NONE])


@pytest.mark.parametrize("name", TABLES)
def test_a_table_scores_each_number_by_its_own_code(name):
    table = TABLES[name]
    numbers = VALUES[~np.isnan(VALUES)]
    assert table(numbers).tolist() == [score_of(table, value) for value in numbers]
    for value in numbers:  # and so whatever else is in the batch
        assert table(np.array([value])).tolist() == [score_of(table, value)]


@pytest.mark.parametrize("name", [name for name in TABLES if name != "nothing"])
def test_the_ranges_of_chosen_entries_are_the_codes_that_have_their_scores(name):
    table = TABLES[name]
    numbers = VALUES[~np.isnan(VALUES)]
    codes, scores = table.feature.codes(numbers), table(numbers)
    for chosen in itertools.product([False, True], repeat=len(table.starts)):
        ranges = table.ranges(np.array(chosen))
        wanted = set(table.scores[list(chosen)].tolist())
        for code, score in zip(codes.tolist(), scores.tolist(), strict=True):
            assert any(first <= code <= last for first, last in ranges) == (score in wanted), (chosen, code)
        assert all(before[1] < after[0] - 1 or before[1] >= SPECIAL - 1 or not table.feature.is_ordered
                   for before, after in itertools.pairwise(ranges))  # fmt: skip


@pytest.mark.parametrize(("high", "low"), [(1.0, -1.0), (0.0, -0.5), (INFINITE, 0.0), (1.5, -INFINITE), (0.5, 0.0)])
@pytest.mark.parametrize("quota", [0, 7, 60])
def test_a_rule_counts_its_guesses_on_the_first_draws_by_the_sum_of_its_columns(high, low, quota):
    columns = {(k,): RNG.choice(VALUES, size=60) for k in range(3)}
    for path in columns:
        columns[path][RNG.random(60) < 0.4] = NONE
    tables = (((0,), TABLES["ordered"]), ((2,), TABLES["each, infinities"]))
    rule = LowBitRule(tables, high, low)
    guessed = [0, 0]
    for k in range(quota):
        own = [(table, float(columns[path][k])) for path, table in tables]
        if all(math.isnan(value) for _, value in own):
            continue  # no number in either of its columns, whatever the others hold: it abstains
        score = sum(score_of(table, value) for table, value in own)
        guessed[0] += score >= high
        guessed[1] += score <= low
    assert rule.count(columns, quota) == tuple(guessed)
    assert rule.sides == (high < INFINITE) + (low > -INFINITE)


def test_the_words_of_a_rule_are_the_codes_that_it_guesses_on():
    table = TABLES["ordered"]  # 1 below 0, -2 up to 4, then 0.5
    rule = LowBitRule((((), table),), 0.5, -2.0)
    assert rule.events() == (f"{low_bits.BELOW_ALL}..-1 or 5..{low_bits.ABOVE_ALL}", "0..4")
    assert LowBitRule((((), table),), INFINITE, -2.0).events() == ("", "0..4")
    assert LowBitRule((((), table),), 0.5, -INFINITE).events()[1] == ""
    named = LowBitRule(((("a",), table),), 1.0, -INFINITE).events()
    assert named[0].startswith("with an entry ['a'] ") and named[1] == ""
    both = LowBitRule(((("a",), table), (("b",), table)), 1.0, -1.0)
    assert both.events() == tuple(f"whose low bits in 2 coordinates together speak for {x}" for x in ("x", "x′"))
    assert LowBitRule(both.tables, INFINITE, -1.0).events()[0] == ""
    assert LowBitRule(both.tables, 1.0, -INFINITE).events()[1] == ""


# --- which columns ---


def chosen(first, second):
    return choose_columns({(): np.asarray(first, dtype=float)}, {(): np.asarray(second, dtype=float)}) == [()]


def test_a_column_of_reals_varies_on_both_inputs_and_is_not_always_an_integer():
    assert chosen([0.5, 1.5, 1.0], [0.25, 2.0, 2.0])
    assert chosen([1.0, 2.0, 3.0], [1.0, 2.0, 3.5])  # an integer on one input alone
    assert not chosen([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert not chosen([0.5, 0.5, 0.5], [0.25, 2.0, 2.0])  # a constant on one input
    assert not chosen([0.25, 2.0, 2.0], [0.5, 0.5, 0.5])
    assert not chosen([0.5, 0.5, INFINITE], [0.25, 2.0, 2.0])  # of the finite ones
    assert not chosen([NONE, NONE, NONE], [0.25, 2.0, 2.0])


@pytest.mark.parametrize(("size", "other"), [(200, 200), (200, 120)])
def test_a_column_is_left_out_where_one_input_has_numbers_there_more_often(size, other):
    """By the two-proportion statistic of scipy: its square is chi-squared of the table of what is there and not."""
    reals, seen = RNG.random(400), set()
    for missing in range(0, 60, 4):
        first, second = reals[:size].copy(), reals[:other].copy()
        first[:missing], second[:10] = NONE, NONE
        squared = stats.chi2_contingency([[missing, size - missing], [10, other - 10]], correction=False).statistic
        assert chosen(first, second) == chosen(second, first) == (squared <= 9.0), missing
        seen.add(bool(squared <= 9.0))
    assert seen == {True, False}


def test_of_many_columns_those_are_chosen_that_lie_furthest_apart_in_their_order():
    paths = [(k,) for k in range(30)]
    # Odd multiples of 1/64, all of them: nothing differs by its lowest bits.
    apart = dict(zip(paths, (RNG.permutation(30) / 32.0).tolist(), strict=True))
    base = (2.0 * np.arange(101) + 1.0) / 64.0
    # Medians differ by `apart`; the quartiles are the same on all columns.
    first = {path: base for path in paths}
    second = {path: base + apart[path] for path in paths}
    most = sorted(sorted(paths, key=lambda path: -apart[path])[: low_bits.MOST_COLUMNS])
    assert choose_columns(first, second) == most and len(most) == 16
    assert choose_columns(dict(list(first.items())[:16]), second) == paths[:16]


def test_columns_are_compared_by_their_lowest_bits_too():
    """A column whose numbers are as large on both inputs, but multiples of 1/4 on one of them."""
    fine, coarse = np.linspace(0.1, 0.9, 101), np.tile([0.25, 0.5, 0.75], 34)[:101]
    paths = [(k,) for k in range(20)]
    first = {path: fine for path in paths}
    second = {path: fine + 1e-3 * k for k, path in enumerate(paths)}
    second[3,] = coarse
    assert (3,) in choose_columns(first, second) and (0,) not in choose_columns(first, second)


def test_paths_of_several_choices_are_named_once():
    assert union([[("b",), ("a",)], [("a",), ("c",)], []]) == [("b",), ("a",), ("c",)]


# --- thresholds and fits ---


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_the_thresholds_have_the_best_merit_of_all_pairs(delta):
    test = _Test(delta, 1e-3, 2_000)
    for _ in range(30):
        first, second = RNG.integers(-2, 3, size=150) + 1.0, RNG.integers(-3, 3, size=210) * 1.0
        found, high, low = test.thresholds(first, second)
        best = -math.inf
        for h, k in itertools.product([*np.unique([*first, *second]), INFINITE], [-INFINITE, *range(-3, 4)]):
            sides = int(h < INFINITE) + int(k > -INFINITE)
            if h <= k or not sides:
                continue
            correct = 0.5 * np.array([np.mean(first >= h) + np.mean(second <= k)])
            wrong = 0.5 * np.array([np.mean(second >= h) + np.mean(first <= k)])
            merit = float(test.merit(correct, wrong, float(sides), 360)[0])
            best = max(best, merit)
            if (h, k) == (high, low):
                assert found == pytest.approx(merit, rel=1e-12)
        assert found == pytest.approx(best, rel=1e-12) and high > low


def test_a_merit_is_the_log_odds_less_what_the_counts_to_come_and_those_here_may_hide():
    level, draws, seen, delta = 1e-3, 5_000, 800, 0.02
    test = _Test(delta, level, draws)
    quantile = stats.norm.isf(level)
    for correct, wrong, sides in ((0.3, 0.05, 2.0), (0.4, 0.0, 1.0), (0.1, 0.1, 2.0)):
        least = correct - math.sqrt(correct) * (quantile / math.sqrt(draws) + 1.0 / math.sqrt(seen))
        least -= delta * sides / 2.0
        expected = (wrong + math.sqrt(wrong / seen) + sides / seen) * draws
        most = (math.sqrt(expected + 0.25) + quantile / 2.0) ** 2
        merit = test.merit(np.array([correct]), np.array([wrong]), sides, seen)[0]
        assert merit == pytest.approx(math.log(least * draws / most), rel=1e-12)
    # Delta allows all that this rule gets right.
    assert test.merit(np.array([0.01]), np.array([0.0]), 2.0, seen)[0] == -INFINITE


def test_of_a_share_of_the_outputs_the_line_has_more_delta_and_the_test_fewer_draws():
    test = _Test(0.02, 1e-3, 5_000)
    part = test.on_share(0.4)
    assert (part.delta, part.level, part.draws) == (0.02 / 0.4, 1e-3, 2_000)
    assert test.on_share(1.0) is test


def test_tables_are_made_of_the_first_half_and_thresholds_of_the_second():
    """Of x all draws of the first half are multiples of 1/4, and none of the second: then a table promises nothing."""
    fine = RNG.random(2_000) + 0.1
    coarse = np.round(fine * 4.0) / 4.0

    def fitted(first, second):
        line = {"epsilon": 1.0, "delta": 0.0, "level": 1e-3, "draws": 14_000}
        columns = {(): first}, {(): second}
        return fit(*columns, **line, names=("x", "y"), locations={})

    told = fitted(coarse, fine[::-1].copy())
    assert told is not None and told.merit > 2.0 and told.rule.count({(): coarse}, 2_000)[0] > 1_900
    halves = np.concatenate([coarse[:1_000], fine[1_000:]])
    assert fitted(halves, fine[::-1].copy()).merit < 0.0
    swapped = np.concatenate([fine[:1_000], coarse[1_000:]])
    assert fitted(swapped, fine[::-1].copy()).merit < told.merit


def test_rare_codes_share_an_entry_up_to_12_draws_and_a_frequent_or_special_one_has_its_own():
    codes = np.array([-5, -2, 0, 1, 2, 3, 9, 10, SPECIAL, SPECIAL + 1])
    totals = np.array([3.0, 8.0, 12.0, 4.0, 8.0, 1.0, 2.0, 40.0, 1.0, 2.0])
    # 3 and 8, ended by the 12 of 0, which are enough; 4 and 8 are 12; 1 and 2, ended by 40; each special one.
    assert low_bits._pooled(codes, totals).tolist() == [0, 2, 3, 5, 7, 8, 9]
    totals[2], totals[4] = 11.0, 7.0  # 3, 8 and 11 are 22; 4, 7 and 1 are 12
    assert low_bits._pooled(codes, totals).tolist() == [0, 3, 6, 7, 8, 9]
    assert low_bits._pooled(codes[:1], totals[:1]).tolist() == [0]


@pytest.mark.parametrize(
    ("first", "second", "side"), [((50, 100), (9, 10), 1.0), ((50, 100), (5, 10), 0.0), ((10, 10), (20, 40), -1.0)]
)
def test_the_side_that_repeats_more_is_told_by_the_shares_of_different_values(first, second, side):
    draws = [np.resize(np.arange(different) + 0.5, size) for different, size in (first, second)]
    assert low_bits._sign(*draws) == side
    assert low_bits._sign(*draws[::-1]) == -side
