"""Scores and rules: what they count, what they are read back as, and that they see one output at a time."""

import bz2
import dataclasses
import lzma
import math
import pickle
import zlib
from pathlib import PurePosixPath

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.learning.candidates import candidates
from dpaudit.learning.edge_counts import EdgeCounter
from dpaudit.learning.fitted_scores import best_rule, fit_rules
from dpaudit.learning.hints import Hints
from dpaudit.learning.histograms import (
    Coordinate,
    Histogram,
    Remainder,
    Table,
    fit_histogram,
    fit_table,
    histogram_edges,
    shrunk_log_ratio,
)
from dpaudit.learning.objectives import Objective
from dpaudit.learning.rules import ABSTAIN, Rule, rule_from_dict
from dpaudit.learning.scores import LogRatio, Viewed, score_from_dict
from dpaudit.learning.thresholds import best_thresholds
from dpaudit.reading.leaves import Leaf
from dpaudit.reading.nested import Layout, learn_layout
from dpaudit.reading.outcomes import Outcomes, Reading, from_objects, read_outputs
from dpaudit.reading.outlines import FORM
from dpaudit.reading.vectors import Linear, Nearness, Summary, fit_linear
from dpaudit.subjects.plain import seen

FIXED = settings(derandomize=True, deadline=None, max_examples=100)
anything = st.one_of(st.floats(-3.0, 3.0), st.sampled_from([0.0, 1.0, math.inf, -math.inf, math.nan]))
thresholds = st.one_of(st.floats(-2.0, 2.0), st.sampled_from([math.inf, -math.inf]))


def outcomes(values):
    return Outcomes(np.array(values, dtype=float).reshape(len(values), -1))


def normal_density(data, outputs):
    return -0.5 * (np.asarray(outputs, dtype=float) - data) ** 2


@st.composite
def rules(draw):
    low, high = sorted((draw(thresholds), draw(thresholds)))
    return Rule(
        Coordinate(0, 1), low, high, draw(st.sampled_from([1, -1])), Reading(1), draw(st.sampled_from([-1, 0, 1]))
    )


# --- views ---


def test_a_sum_of_which_only_rounding_is_left_is_one_value():
    """Where coordinates have a given sum: the last bits of naive noise would tell the inputs apart by accident."""
    first = np.random.default_rng(20_261_543).laplace(size=1_000)
    view = Summary(("sum",), np.array([0.3, 1.35]), np.array([1.7, 0.85]))
    given_sum, free = outcomes(np.column_stack([first, (3.0 - first) / 2.0])), outcomes(np.column_stack([first, first]))
    assert not view(given_sum).numbers.any() and np.unique(view(free).numbers).size == 1_000


# --- rules ---


@FIXED
@given(rules(), st.lists(anything, max_size=40))
def test_a_rule_counts_what_it_guesses(rule, values):
    guesses = rule.guess(outcomes(values)).tolist() if values else []
    expected = [guesses.count(0), guesses.count(1), guesses.count(ABSTAIN)]
    assert rule.count(Outcomes(np.array(values, dtype=float).reshape(-1, 1))).tolist() == expected


@FIXED
@given(rules())
def test_a_rule_never_has_more_guessing_events_than_its_sides(rule):
    # points on both sides of every threshold, both ends of the line, and NaN
    points = [math.nan, -1e9, 1e9, 0.0]
    points += [t + step for t in (rule.low, rule.high) if math.isfinite(t) for step in (-1e-6, 0.0, 1e-6)]
    assert len(set(rule.guess(outcomes(points)).tolist()) - {ABSTAIN}) <= rule.sides
    if rule.low < math.inf and rule.high > -math.inf:  # and no fewer: the cost of delta is not paid for nothing
        assert len(set(rule.guess(outcomes(points)).tolist()) - {ABSTAIN}) == rule.sides


@FIXED
@given(rules(), st.lists(anything, min_size=1, max_size=20))
def test_a_rule_is_read_back_as_it_was_written(rule, values):
    back = rule_from_dict(rule.to_dict(), None, 0, 1)
    assert back == rule
    assert back.guess(outcomes(values)).tolist() == rule.guess(outcomes(values)).tolist()


def test_a_rule_says_where_it_guesses_what():
    rule = Rule(Coordinate(0, 1), -1.0, 2.0, -1, Reading(1), 1)
    sentence = rule.describe("A", "B")
    assert "guess B where it is above 2" in sentence
    assert "guess A where it is below -1" in sentence
    assert "guess A where it is NaN" in sentence
    assert rule.guess(outcomes([3.0, -2.0, math.nan])).tolist() == [0, 1, 1]  # B is x_prime, label 0


# --- the fit ---


SAMPLES = {
    "continuous": (np.random.default_rng(1).normal(size=60), np.random.default_rng(2).normal(size=60) + 1.0),
    "two values": (np.array([0.0, 1.0] * 10 + [0.0] * 20), np.array([0.0, 1.0] * 10 + [1.0] * 20)),
    "one value": (np.zeros(20), np.zeros(20)),
    "neighbouring doubles": (np.full(20, 1.0), np.full(20, np.nextafter(1.0, 2.0))),
    "neighbours and others": (np.array([0.5, 1.0] * 10), np.array([np.nextafter(1.0, 2.0), 3.0] * 10)),
    "infinity and a negative": (np.full(20, math.inf), np.full(20, -5.0)),
    "both infinities": (np.array([math.inf, 0.0] * 10), np.array([-math.inf, 0.0] * 10)),
    "only infinities": (np.full(20, math.inf), np.full(20, -math.inf)),
    "minus infinity and a value": (np.full(20, -math.inf), np.full(20, 7.0)),
    "NaN on one side": (np.array([math.nan, 0.0] * 10), np.array([1.0, 0.0] * 10)),
    "only NaN": (np.full(20, math.nan), np.full(20, math.nan)),
    "NaN against a value": (np.full(20, math.nan), np.full(20, 2.0)),
    "large and small": (np.array([1e308, -1e308] * 10), np.array([1e-308, 1.0] * 10)),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("sequential", [True, False])
@pytest.mark.parametrize("name", SAMPLES)
def test_the_rates_of_a_fitted_rule_are_those_of_its_guesses(name, sequential):
    first, second = (outcomes(values) for values in SAMPLES[name])
    for fitted in fit_rules(first, second, Objective(0.5, 0.0, 1_000, 0.05, sequential)):
        if isinstance(fitted.rule.score, Histogram | Table):  # they get their thresholds from every second draw
            halves = first.rows(slice(1, None, 2)), second.rows(slice(1, None, 2))
        else:
            halves = first, second
        of_x, of_x_prime = (fitted.rule.count(part) / len(part) for part in halves)
        assert fitted.correct == pytest.approx(0.5 * (of_x[1] + of_x_prime[0]), abs=1e-12)
        assert fitted.wrong == pytest.approx(0.5 * (of_x[0] + of_x_prime[1]), abs=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "neighbouring doubles",
        "infinity and a negative",
        "only infinities",
        "minus infinity and a value",
        "NaN against a value",
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_samples_that_never_meet_are_told_apart(name, swapped):
    first, second = (outcomes(values) for values in (SAMPLES[name][::-1] if swapped else SAMPLES[name]))
    objective = Objective(0.5, 0.0, 1_000, 0.05, True)
    fitted = fit_rules(first, second, objective)
    rule = fitted[best_rule(fitted, objective)[0]].rule
    right = rule.count(first)[1] + rule.count(second)[0]
    assert rule.count(first)[0] + rule.count(second)[1] == 0
    assert right >= 20  # at least one of the two sides in full


def test_best_rule_is_the_one_of_largest_merit():
    objective = Objective(0.5, 0.0, 1_000, 0.05, True)
    fitted = fit_rules(*(outcomes(values) for values in SAMPLES["continuous"]), objective)
    position, merit = best_rule(fitted, objective)
    merits = [best_rule([rule], objective)[1] for rule in fitted]
    assert merit == max(merits) and merits[position] == merit


@pytest.mark.parametrize(
    ("of_x", "of_x_prime", "guesses"),
    [
        ([0, 0, 30, 30, 0], [30, 30, 0, 0, 0], [0, 0, 1, 1, None]),
        ([30, 30, 0, 0, 0], [0, 0, 30, 30, 0], [1, 1, 0, 0, None]),
        ([20, 20, 20, 0, 0], [0, 0, 20, 20, 20], [1, 1, None, 0, 0]),
        ([15, 15, 0, 0, 30], [15, 15, 30, 0, 0], [None, None, 0, None, 1]),
    ],
)
def test_the_best_thresholds_on_cells_guess_where_the_counts_differ(of_x, of_x_prime, guesses):
    objective = Objective(0.5, 0.0, 1_000, 0.05, True)
    counts1, counts0 = np.array(of_x, dtype=float), np.array(of_x_prime, dtype=float)
    merit, low, high, sign, nan_guess = best_thresholds(counts1, counts0, objective)
    found = [0 if sign > 0 else 1] * low + [None] * (high - low) + [1 if sign > 0 else 0] * (4 - high) + [nan_guess]
    for cell, (guess, wanted) in enumerate(zip(found, guesses, strict=True)):
        if wanted is not None:
            assert guess == wanted, (cell, found)
    assert merit[0] == 1  # worth a bet


@pytest.mark.parametrize("cells", [2, 3, 9])
def test_the_best_thresholds_on_cells_that_say_nothing_are_legal(cells):
    for counts in (np.zeros(cells), np.full(cells, 5.0)):
        merit, low, high, sign, nan_guess = best_thresholds(counts, counts, Objective(0.5, 0.0, 1_000, 0.05, True))
        assert merit[0] == 0 and not math.isnan(merit[1])
        assert 0 <= low <= high <= cells and sign in (1, -1) and nan_guess in (ABSTAIN, 0, 1)


def test_outputs_of_different_forms_on_the_two_sides_are_compared_as_objects():
    first, second = read_outputs([(1.0, 2.0)] * 20, 20), read_outputs([(1.0, 2.0, 3.0)] * 20, 20)
    objective = Objective(0.5, 0.0, 1_000, 0.05, True)
    fitted = fit_rules(first, second, objective)
    rule = fitted[best_rule(fitted, objective)[0]].rule
    assert rule.reading == Reading(0)
    assert rule.count(first)[1] + rule.count(second)[0] >= 20


# --- scores see one output at a time, and are data ---


def batch_of(columns, size, seed=3):
    return Outcomes(np.random.default_rng(seed).integers(0, 3, size=(size, columns)).astype(float))


def fitted_scores():
    first, second = batch_of(2, 80, 4), batch_of(2, 80, 5)
    wide_first, wide_second = batch_of(20, 200, 6), batch_of(20, 200, 7)
    return {
        "coordinate": (Coordinate(1, 2), first),
        "histogram": (fit_histogram(first, second, (0, 1), 4), first),
        "table": (fit_table(first, second, 100), first),
        "linear": (fit_linear(first, second), first),
        "wide linear": (fit_linear(wide_first, wide_second), wide_first),
        "nearness by l1": (Nearness.between([0.0, 0.1], [1.0, 0.7], (2,))[0], first),
        "nearness by squares": (Nearness.between([0.0, 0.1], [1.0, 0.7], (2,))[1], first),
        "remainder": (Remainder(2.0), batch_of(1, 80)),
        "log ratio": (LogRatio(lambda d, o: normal_density(d, o).sum(axis=1), 0.0, 1.0, (2,)), first),
    }


@pytest.mark.parametrize("name", fitted_scores())
def test_the_score_of_an_output_does_not_depend_on_its_batch(name):
    score, batch = fitted_scores()[name]
    whole = score(batch).tolist()
    for size in (1, 3, 7):  # a product of matrices may add in another order in another batch: same bits are asked for
        parts = [score(batch.rows(slice(k, k + size))).tolist() for k in range(0, len(batch), size)]
        assert [value for part in parts for value in part] == whole


@pytest.mark.parametrize("name", fitted_scores())
def test_a_score_is_read_back_as_it_was_written(name):
    score, batch = fitted_scores()[name]
    x, x_prime = ([0.0, 0.1], [1.0, 0.7]) if isinstance(score, Nearness) else (0.0, 1.0)
    back = score_from_dict(score.to_dict(), getattr(score, "log_density", None), x, x_prime)
    # log ratios of tables and histograms are written with 6 decimals, and a histogram adds two
    assert back(batch) == pytest.approx(score(batch), abs=2 * 0.5e-6 + 1e-12)


@pytest.mark.parametrize("name", [name for name in fitted_scores() if name != "log ratio"])
def test_a_score_survives_the_way_to_a_worker(name):
    score, batch = fitted_scores()[name]
    assert pickle.loads(pickle.dumps(score))(batch).tolist() == score(batch).tolist()


def test_an_unknown_score_is_refused():
    with pytest.raises(ValueError, match="score must be of a known kind, got 'oracle'"):
        score_from_dict({"kind": "oracle"}, None, 0, 1)
    with pytest.raises(ValueError, match="got 'log_ratio'"):  # the subject has no log density
        score_from_dict({"kind": "log_ratio", "shape": [], "is_integer": False}, None, 0, 1)


# --- what is known of a pair ---


def test_nearness_is_the_log_density_ratio_of_laplace_and_normal_noise_up_to_its_scale():
    rng = np.random.default_rng(1)
    x, x_prime = np.array([0.0, 2.0, -1.0]), np.array([1.0, 2.0, 3.0])
    outputs = rng.normal(size=(50, 3)) * 3.0
    by_l1, by_squares = Nearness.between(x, x_prime, (3,))
    laplace = np.abs(outputs - x_prime).sum(axis=1) - np.abs(outputs - x).sum(axis=1)
    normal = ((outputs - x_prime) ** 2 - (outputs - x) ** 2).sum(axis=1)
    # Scores are rounded to nine decimals, half of 1e-9 off at most, and multiplied by 5 and 17 here, the sums of |d|
    # and of d^2 that they were divided by.
    np.testing.assert_allclose(by_l1(Outcomes(outputs)) * 5.0, laplace, atol=5e-9)
    np.testing.assert_allclose(by_squares(Outcomes(outputs)) * 17.0, normal, atol=17e-9)


def test_nearness_says_nothing_of_outputs_that_are_not_finite():
    by_l1, by_squares = Nearness.between([0.0, 0.0], [1.0, 1.0], (2,))
    outputs = Outcomes(np.array([[math.nan, 0.0], [math.inf, 0.0], [-math.inf, math.inf]]))
    assert np.isnan(by_l1(outputs)).all()
    assert not np.isfinite(by_squares(outputs)).any()


@pytest.mark.parametrize(
    ("x", "x_prime", "shape"),
    [
        ([0.0, 1.0], [0.0, 1.0], (2,)),  # no difference
        ([0.0, 1.0], [0.0, 1.0, 2.0], (2,)),
        ([0.0, 1.0], [1.0, 1.0], (3,)),
        (["a", "b"], ["b", "a"], (2,)),
        ([0.0, math.inf], [0.0, 1.0], (2,)),
        ([[0.0], [0.0, 1.0]], [[0.0], [0.0, 1.0]], (2,)),  # ragged
        ([0.0, 1e300], [0.0, -1e300], (2,)),  # whose squares overflow
        ({"a": 1.0}, {"a": 2.0}, ()),
        ("text", "other", (4,)),
    ],
)
def test_inputs_that_outputs_cannot_be_near_to_suggest_nothing(x, x_prime, shape):
    assert Nearness.between(x, x_prime, shape) == ()


def test_a_nearness_cannot_be_read_back_beside_other_inputs():
    record = Nearness.between([0.0, 1.0], [1.0, 1.0], (2,))[0].to_dict()
    assert "0.0" not in str(record)  # no record of anybody's is in a saved rule
    with pytest.raises(ValueError, match="inputs must be numbers of shape"):
        score_from_dict(record, None, [0.0], [1.0])


def test_hints_come_first_but_for_plain_numbers():
    rng = np.random.default_rng(2)
    x, x_prime = np.zeros(4), np.ones(4)
    vectors = [read_outputs(data + rng.laplace(size=(100, 4)), 100) for data in (x, x_prime)]
    scores = [type(score).__name__ for score, *_ in candidates(*vectors, False, Hints(None, (x, x_prime)))]
    assert scores[:2] == ["Nearness", "Nearness"]
    known = Hints(LogRatio(normal_density, x, x_prime, (4,)), (x, x_prime))
    scores = [type(score).__name__ for score, *_ in candidates(*vectors, False, known)]
    assert scores[0] == "LogRatio"
    assert "Nearness" not in scores
    numbers = [read_outputs(data + rng.laplace(size=100), 100) for data in (0.0, 1.0)]
    scores = [type(score).__name__ for score, *_ in candidates(*numbers, False, Hints(None, (0.0, 1.0)))]
    assert scores[0] == "Coordinate"
    assert "Nearness" not in scores


# --- log densities ---


def ratio_of(log_density, **kwargs):
    return LogRatio(log_density, 0.0, 1.0, **kwargs)


def test_the_log_ratio_is_the_difference_of_log_densities():
    values = np.array([-1.0, 0.0, 0.5, 2.0])
    # N(0, 1) against N(1, 1): log ratio 1/2 - y
    assert ratio_of(normal_density)(outcomes(values)) == pytest.approx(0.5 - values, abs=1e-12)


def test_a_log_density_that_fails_on_one_output_says_nothing_of_that_one_alone():
    # a subject's log density gives None where it raises, and it raises for the whole batch
    def density(data, outputs):
        return None if np.any(outputs > 2.3) else normal_density(data, outputs)

    scores = ratio_of(density)(outcomes([0.0, 3.0, 1.0]))
    assert np.isnan(scores).tolist() == [False, True, False]
    assert scores[[0, 2]] == pytest.approx([0.5, -0.5])


BATCHY = {
    "mean of the batch": lambda data, outputs: normal_density(data, outputs) - (data + 1.0) * np.mean(outputs),
    "size of the batch": lambda data, outputs: normal_density(data, outputs) / (len(outputs) + data),
    "position in the batch": lambda data, outputs: np.arange(len(outputs)) * data,
}


@pytest.mark.parametrize("name", BATCHY)
def test_a_log_density_that_looks_at_its_batch_gives_no_score_that_does(name):
    batch = outcomes(np.random.default_rng(8).normal(size=30))
    ratio = ratio_of(BATCHY[name])
    alone = np.concatenate([ratio(batch.rows(slice(k, k + 1))) for k in range(30)])
    # either it is recognised and not used, or each output is scored as it is alone
    assert not getattr(ratio, "reads_single_outputs", lambda _: True)(batch) or np.array_equal(ratio(batch), alone)


@pytest.mark.parametrize(
    "rare",
    [
        lambda data, outputs: np.full(len(outputs), math.nan),  # as where a normaliser overflows
        lambda data, outputs: normal_density(data, outputs) + 5.0 * data,
        lambda data, outputs: None,
    ],
    ids=["NaN for all", "a shift for all", "nothing"],
)
def test_a_log_density_that_turns_on_one_rare_output_is_read_one_by_one(rare):
    # 20% of audits of one law on both inputs were false alarms where this was checked on the pilot only (nominal 5%)
    def density(data, outputs):
        return rare(data, outputs) if np.any(outputs > 2.3) else normal_density(data, outputs)

    values = np.random.default_rng(8).normal(size=40)
    values[17] = 3.0
    batch, ratio = outcomes(values), ratio_of(density)
    alone = np.concatenate([ratio(batch.rows(slice(k, k + 1))) for k in range(40)])
    assert np.array_equal(ratio(batch), alone, equal_nan=True)


def test_an_output_impossible_on_one_side_has_the_largest_ratio_and_on_both_none():
    densities = {0.0: np.array([0.0, -math.inf, -math.inf]), 1.0: np.array([-math.inf, 0.0, -math.inf])}
    scores = ratio_of(lambda data, outputs: densities[data][np.asarray(outputs, dtype=int)])(outcomes([0, 1, 2]))
    assert scores[:2].tolist() == [12.0, -12.0] and math.isnan(scores[2])


def test_a_log_density_of_integers_is_asked_for_integers():
    asked = []

    def density(data, outputs):
        asked.append(outputs.dtype.kind)
        return np.zeros(len(outputs))

    scores = ratio_of(density, is_integer=True)(outcomes([1.0, math.nan, math.inf]))
    assert set(asked) == {"i"}
    assert np.isnan(scores).tolist() == [False, True, True]


# --- bins, tables, discriminants ---


@FIXED
@given(st.lists(anything, max_size=20), st.lists(st.floats(-3.0, 3.0), max_size=5, unique=True))
def test_the_bin_of_a_value_is_the_number_of_edges_at_most_it(values, edges):
    edges = sorted(edges)
    expected = [len(edges) + 1 if math.isnan(v) else sum(edge <= v for edge in edges) for v in values]
    assert EdgeCounter(np.array(edges)).index(np.array(values, dtype=float)).tolist() == expected


@pytest.mark.parametrize("atom", [0.0, -0.0, 1.5, math.inf, -math.inf, 1e308])
def test_a_frequent_value_has_a_bin_of_its_own(atom):
    sample = np.concatenate([np.full(40, atom), np.linspace(-3.0, 3.0, 60)])
    edges = histogram_edges(sample, 10)
    others = np.array([np.nextafter(atom, math.inf), np.nextafter(atom, -math.inf), 0.25, -2.0])
    others = others[(others != atom)]
    assert np.all(np.diff(edges) > 0.0)
    assert EdgeCounter(edges).index(np.array([atom]))[0] not in EdgeCounter(edges).index(others).tolist()


def test_shrunk_log_ratios_are_those_of_shares_with_a_pseudo_count():
    first, second = np.array([9.0, 0.0, 1.0]), np.array([1.0, 4.0, 0.0])
    expected = [math.log((a + 1.0) / 11.0) - math.log((b + 1.0) / 6.0) for a, b in zip(first, second, strict=True)]
    assert shrunk_log_ratio(first, second) == pytest.approx(expected, abs=1e-12)


def test_a_table_pools_what_it_saw_once():
    first, second = read_outputs(["a", "a", "b", "c"], 4), read_outputs(["a", "d", "d", "e"], 4)
    table = fit_table(first, second, 10)
    assert set(table.values) == {"'a'", "'d'"}  # seen at least twice
    # counts (2, 1), (0, 2), and once seen: b and c under x, e under x_prime: (2, 1); each plus one, over sum plus one
    assert table.values["'a'"] == pytest.approx(math.log(3 / 5) - math.log(2 / 5))
    assert table.shared == pytest.approx(math.log(3 / 5) - math.log(2 / 5))
    assert table(read_outputs(["d", "new"], 2)).tolist() == [table.values["'d'"], table.shared]


def test_a_table_larger_than_allowed_or_without_a_repetition_is_not_made():
    once = read_outputs(["a", "b"], 2), read_outputs(["c", "d"], 2)
    twice = read_outputs(["a", "b"], 2), read_outputs(["a", "b"], 2)
    assert fit_table(*once, 10) is None
    assert fit_table(*twice, 1) is None
    assert fit_table(*twice, 2) is not None


@pytest.mark.parametrize("again", [math.nan, 0.5, -0.0])
def test_rows_that_repeat_in_one_column_of_two_are_in_a_table(again):
    """Rows are counted unless all numbers of a column differ; all NaN are one number there."""
    rows = np.array([[again, 7.0], [1.0, 8.0], [again, 7.0], [2.0, 9.0]])
    table = fit_table(read_outputs(rows, 4), read_outputs(rows + 10.0, 4), 10)
    assert table is not None and table(read_outputs(rows, 4))[0] == table(read_outputs(rows, 4))[2] > 0.0
    others = np.array([[again, 1.0], [again, 2.0], [again, 3.0], [again, 4.0]])
    assert fit_table(read_outputs(others, 4), read_outputs(others + 10.0, 4), 10) is None


def test_a_discriminant_points_from_x_prime_to_x():
    rng = np.random.default_rng(9)
    second = Outcomes(rng.normal(size=(200, 2)))
    first = Outcomes(second.numbers + np.array([1.0, 0.0]))  # the means differ by exactly (1, 0)
    linear = fit_linear(first, second)
    # the weights are the inverse covariance times that: the second one is the sample correlation, about 0.07 at 200
    assert isinstance(linear, Linear) and linear.weights[0] > 3 * abs(linear.weights[1])
    assert linear(first).mean() > linear(second).mean()


def test_no_discriminant_is_made_of_constants_or_of_numbers_that_are_not_finite():
    constant = outcomes([[1.0, 2.0]] * 10)
    assert fit_linear(constant, constant) is None
    assert fit_linear(outcomes([[1.0, math.inf]] * 10), outcomes([[1.0, 0.0]] * 10)) is None


def test_a_rare_exact_value_has_a_bin_of_its_own_and_a_sample_without_one_none():
    rng = np.random.default_rng(20_261_121)
    sample = rng.normal(size=2_000)
    hidden = np.append(sample, [0.25] * 8)  # far less than half of one of 16 bins
    edges = histogram_edges(hidden, 16)
    assert {0.25, np.nextafter(0.25, np.inf)} <= set(edges.tolist())
    assert len(histogram_edges(sample, 16)) == 15


def test_fine_tails_halve_the_outermost_bins_while_there_are_draws():
    sample = np.random.default_rng(3).normal(size=1_024)
    fine, plain = histogram_edges(sample, 8, tails=True), histogram_edges(sample, 8)
    assert set(plain) <= set(fine)
    # of 128 draws in an outermost bin the halves have 64, 32 and 16
    assert [int(np.count_nonzero(sample < edge)) for edge in fine[:4]] == [16, 32, 64, 128]
    assert [int(np.count_nonzero(sample >= edge)) for edge in fine[-4:]] == [128, 64, 32, 16]
    few = sample[:20]
    assert np.array_equal(histogram_edges(few, 8, tails=True), histogram_edges(few, 8))


# --- rules in words ---


def described(score, low, high, sign=1, nan_guess=ABSTAIN, columns=0):
    return Rule(score, low, high, sign, Reading(columns), nan_guess).describe("x", "y")


def test_a_rule_of_a_table_names_the_outcomes_that_it_guesses_on():
    table = Table({"'a'": 2.0, "'b'": -1.5, "'c'": 0.1, "'d'": 3.0}, shared=-3.0)
    said = described(table, -1.0, 1.0)
    assert said == (
        "Look at the output: guess x where it is 'd' or 'a'; guess y where it is 'b' or any outcome that was "
        "seen at most once before the test."
    )
    assert described(table, -math.inf, 1.0, -1) == "Look at the output: guess y where it is 'd' or 'a'."
    assert "the form of the output" in described(dataclasses.replace(table, outline=FORM), -1.0, 1.0)
    many = Table({str(k): 1.0 for k in range(5)})
    assert described(many, -math.inf, 0.5) == (
        "Look at the log ratio of the outcome in a table of 5 outcomes: guess x where it is above 0.5."
    )
    assert "…" in described(Table({"'" + "a" * 99 + "'": 1.0}), -math.inf, 0.5)


def test_a_rule_of_bins_names_the_ranges_that_it_guesses_on():
    after = math.nextafter(3.0, math.inf)
    edges, values = np.array([-1.0, 0.5, 3.0, after]), np.array([2.0, 2.0, -2.0, 0.0, 2.0, -2.0])
    bins = Histogram((0,), (edges,), (values,), 1)
    assert described(bins, -1.0, 1.0, columns=1) == (
        "Look at the output: guess x where it is below 0.5 or above 3; guess y where it is from 0.5 to 3 or NaN."
    )
    exactly = dataclasses.replace(bins, values=(np.array([2.0, 2.0, -2.0, 3.0, 0.0, 0.0]),))
    assert described(exactly, -3.0, 1.0, columns=1) == "Look at the output: guess x where it is below 0.5 or 3."
    many = Histogram((0,), (np.arange(19.0),), (np.tile([1.0, -1.0], 11)[:21],), 1)
    assert described(many, -0.5, 0.5, columns=1).startswith("Look at the log ratio of the output in 20 bins: ")
    column = Histogram((2,), (edges[:1],), (np.array([1.0, -1.0, 0.0]),), 3)
    assert described(column, -math.inf, 0.5, columns=3) == (
        "Look at coordinate 2 of the output: guess x where it is below -1."
    )


def test_a_rule_of_a_leaf_names_its_categories():
    layout = Layout((Leaf(("'a'",), "category", ("'no'", "'yes'")), Leaf(("'c'",), "presence")))
    category = Histogram((0,), (np.array([0.5]),), (np.array([-1.0, 1.0, 2.0]),), 2)
    assert described(Viewed(layout, category), -0.5, 0.5) == (
        "Look at category of the output, key 'a': guess x where it is 'yes' or not there; guess y where it is 'no' or "
        "another one."
    )
    presence = Histogram((1,), (np.array([0.5]),), (np.array([-1.0, 1.0, 0.0]),), 2)
    assert described(Viewed(layout, presence), -0.5, 0.5) == (
        "Look at presence of the output, key 'c': guess x where it is yes; guess y where it is no."
    )


def test_what_has_no_number_is_called_by_its_name():
    assert described(Coordinate(0, 4), 0.0, 1.0, nan_guess=1).endswith("guess x where it is no number.")
    assert described(Coordinate(0, 1), 0.0, 1.0, nan_guess=1, columns=1).endswith("guess x where it is NaN.")


AFTER_ONE = math.nextafter(1.0, 2.0)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([AFTER_ONE], "at most 1"),
        ([-math.inf, 1.0], "below 1"),
        ([1.0, AFTER_ONE], "1"),
        ([0.0, AFTER_ONE], "at least 0 and at most 1"),
        ([16777216.0, 16777217.0], "from 16777216 to 16777217"),
        ([12345678.0, math.nextafter(12345678.0, math.inf)], "12345678"),
        ([0.1 + 0.2, math.nextafter(0.1 + 0.2, 1.0)], "0.30000000000000004"),
        ([-math.inf, -1.7976931348623157e308], "-inf"),
        ([0.123456, 0.1234561], "from 0.123456 to 0.1234561"),
    ],
)
def test_ranges_are_said_as_they_are(edges, words):
    finite = [edge for edge in edges if edge > -math.inf]
    first = [5.0, 0.0] if len(finite) == 1 else [0.0, 5.0, 0.0]
    histogram = Histogram((0,), (np.array(finite),), (np.array([*first, 0.0]),), 1)
    rule = Rule(histogram, -math.inf, 1.0, 1, Reading(1))
    assert rule.describe("x", "y") == f"Look at the output: guess x where it is {words}."


def test_long_outcomes_are_told_apart():
    head = "a sentence of more than sixty characters that all of the outcomes begin with, "
    table = Table({repr(head + "a"): 5.0, repr(head + "b"): -5.0})
    text = Rule(table, -1.0, 1.0, 1, Reading(0)).describe("x", "y")
    guess_x, guess_y = text.split("; ")
    assert guess_x.endswith("a'") and guess_y.endswith("b'.")


def test_a_key_that_holds_nan_is_there():
    often, rarely = (
        from_objects([{"a": math.nan if k % n == 0 else 1.0, "b": float(k)} for k in range(60)]) for n in (2, 10)
    )
    learned = learn_layout(often, rarely)
    assert learned is not None
    layout, first, second = learned
    rule = Rule(Viewed(layout, fit_histogram(first, second, (0,), 4)), -0.3, 0.3, 1, Reading(0))
    assert rule.guess(from_objects([{"a": math.nan, "b": 0.0}])).tolist() == [1]
    assert "no number" in rule.describe("x", "y") and "not there" not in rule.describe("x", "y")


# --- what leaves hold that nobody read ---


@pytest.mark.parametrize(
    ("outputs", "path", "what", "values"),
    [
        ([{"a": 1, "b": 2}, {"b": 1, "a": 2}], ("'a'",), "place", [0.0, 1.0]),
        ([b"\x01\x02" * 60, b"\x01\x03" * 60], ("bytes", 101), "value", [2.0, 3.0]),
        ([2**60 + 1, 2**60 + 6], (), "low digits", [float((2**60 + k) % 10**15) for k in (1, 6)]),
        ([zlib.compress(b"n 17"), zlib.compress(b"n 18")], ("inside", "text", 0), "value", [17.0, 18.0]),
        ([bz2.compress(b"n 17"), lzma.compress(b"n 18")], ("inside", "text", 0), "value", [17.0, 18.0]),
        ([["lorem " * 600 + "4"], ["lorem " * 600 + "5"]], (0, "text", 0), "value", [4.0, 5.0]),
        ([PurePosixPath("a/3"), PurePosixPath("b/4")], ("text", 0), "value", [3.0, 4.0]),
    ],
    ids=["order", "byte", "long integer", "zlib", "bz2 and lzma", "long text", "path"],
)
def test_leaves_are_read_that_hide(outputs, path, what, values):
    read = from_objects([seen(output) for output in outputs])
    assert Layout((Leaf(path, what),))(read).numbers.ravel().tolist() == values
    noted = Layout((Leaf(path, what),))(read.with_notes())
    assert noted.numbers.ravel().tolist() == values


@pytest.mark.parametrize("content", [b"\x1f\x8bbroken", b"\x78\x9c\xff\xff\xff", b"BZhbroken", b"\xfd7zXZ\x00broken"])
def test_bytes_that_only_look_compressed_are_read_as_they_are(content):
    read = from_objects([content])
    assert np.isnan(Layout((Leaf(("inside",), "length"),))(read).numbers).all()
    assert Layout((Leaf(("bytes", 0), "value"),))(read).numbers.tolist() == [[float(content[0])]]
