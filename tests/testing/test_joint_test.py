"""The joint test of correct and wrong guesses: its level by enumeration, its order, and what it is better at."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit.learning.histograms import Coordinate
from dpaudit.learning.rules import ABSTAIN, Reading, Rule, inset
from dpaudit.reading.outcomes import read_outputs
from dpaudit.testing import binomial, joint_test
from dpaudit.testing.joint_test import LEFT_OUT, UPPER_SHARE, _largest, joint_p_value, weight_of_wrong

DRAWS = 30
FIXED = settings(derandomize=True, deadline=None, max_examples=60)
records = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: (pair[0], pair[1], 150))


def law_of_counts(correct, wrong):
    """P(C = c, W = w) of `DRAWS` draws, shape (DRAWS + 1, DRAWS + 1)."""
    counts = np.arange(DRAWS + 1)
    of_wrong = stats.binom.pmf(counts, DRAWS, wrong)
    left = np.maximum(DRAWS - counts, 0)
    given = stats.binom.pmf(counts[:, None], left[None, :], min(1.0, correct / (1.0 - wrong)))
    return given * of_wrong[None, :]


@pytest.mark.parametrize(("epsilon", "cost"), [(0.0, 0.05), (1.0, 0.1), (2.0, 0.05)])
@pytest.mark.parametrize("weight", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("level", [0.05, 0.2])
def test_no_law_on_the_line_is_rejected_more_often_than_promised(epsilon, cost, weight, level):
    """Exact: the rejection probability of laws on the boundary of the line, summed over all records."""
    rejected = np.array(
        [
            [
                c + w <= DRAWS and joint_p_value(c, w, DRAWS, epsilon, cost, weight, level) <= level
                for w in range(DRAWS + 1)
            ]
            for c in range(DRAWS + 1)
        ]
    )
    assert rejected.any()
    largest = (1.0 - cost) / (1.0 + math.exp(epsilon))
    sizes = [law_of_counts(math.exp(epsilon) * w + cost, w)[rejected].sum() for w in np.linspace(0.0, largest, 60)[:-1]]
    assert max(sizes) <= level
    # Not the largest size that there is: half of the level, at least, is used at the worst law.
    assert max(sizes) >= 0.25 * level


@FIXED
@given(record=records, weight=st.floats(1.0, 50.0), epsilon=st.floats(0.0, 4.0), cost=st.floats(1e-4, 0.3))
def test_p_values_increase_in_epsilon_and_in_cost(record, weight, epsilon, cost):
    correct, wrong, draws = record
    p = joint_p_value(correct, wrong, draws, epsilon, cost, weight, 0.05)
    assert UPPER_SHARE * 0.05 <= p <= 1.0
    # 1e-9: two sums of as many terms, rounded
    assert joint_p_value(correct, wrong, draws, epsilon + 0.3, cost, weight, 0.05) >= p - 1e-9
    assert joint_p_value(correct, wrong, draws, epsilon, min(1.0, 1.3 * cost), weight, 0.05) >= p - 1e-9


def test_the_grid_is_fine_enough():
    """The p-value, an upper bound of a supremum, is within a tenth of what a search over the line's laws finds."""
    correct, wrong, draws, epsilon, cost, weight = 300, 2, 20_000, 3.5, 0.004, 40.0
    p = joint_p_value(correct, wrong, draws, epsilon, cost, weight, 0.05) - UPPER_SHARE * 0.05
    found = 0.0
    statistic = correct - weight * wrong
    for w in np.linspace(0.0, (0.0175 - cost) / (1.0 + math.exp(epsilon)), 200):  # 0.0175 > the limit on a guess, 1.7%
        c = math.exp(epsilon) * w + cost
        counts = np.arange(60)
        tail = stats.binom.sf(np.ceil(statistic + weight * counts) - 1, draws - counts, c / (1.0 - w))
        found = max(found, float((stats.binom.pmf(counts, draws, w) * tail).sum()))
    assert found <= p * 1.02  # the search goes a little beyond the limit
    assert p <= 1.1 * found


@pytest.mark.parametrize("weight", [2.0, 20.0, 60.0])
def test_the_p_value_is_no_less_than_the_tail_of_any_law_within_the_limit(weight):
    """Exact, without any slack: also between the points of the grid, and at its end, where c + w is at the limit."""
    correct, wrong, draws, epsilon, cost, level = 90, 1, 2_000, 3.0, 0.02, 0.05
    most = float(stats.beta.ppf(1.0 - UPPER_SHARE * level, correct + wrong + 1, draws - correct - wrong))
    p = joint_p_value(correct, wrong, draws, epsilon, cost, weight, level) - UPPER_SHARE * level
    counts = np.arange(200)
    for w in np.linspace(0.0, (most - cost) / (1.0 + math.exp(epsilon)), 301):
        c = math.exp(epsilon) * w + cost
        tail = stats.binom.sf(np.ceil(correct - weight * wrong + weight * counts) - 1, draws - counts, c / (1.0 - w))
        assert (stats.binom.pmf(counts, draws, w) * tail).sum() <= p * (1.0 + 1e-9)


def test_all_correct_and_few_of_them_is_more_than_the_binomial_test_can_say():
    arguments = (1_000, 1_000, 200_000, 5.58, 0.001, 0.05)
    assert binomial.p_value(*arguments, 0.05) > 0.05
    assert joint_p_value(1_000, 0, 200_000, 5.58, 0.001, 280.0, 0.05) < 0.05


@pytest.mark.parametrize("record", [(0, 0, 50), (0, 50, 50), (3, 10, 50)])
def test_nothing_to_say_is_a_p_value_of_one(record):
    assert joint_p_value(*record, 1.0, 0.01, 5.0, 0.05) == 1.0
    assert joint_p_value(20, 0, 50, 1.0, 0.9, 5.0, 0.05) == 1.0  # the line allows more than was seen


def test_weights():
    assert weight_of_wrong(1_003.0, 0.0, 703.0) == 100.0
    assert weight_of_wrong(10.0, 0.0, 700.0) == 1.0
    assert weight_of_wrong(1_003.0, 16.0, 3.0) == pytest.approx(1_000.0 / 27.0)


# --- thresholds that move away from the other label ---


def test_thresholds_move_beyond_the_last_scores_of_the_other_label_by_some_spacings():
    own, other = np.linspace(0.0, 2.0, 201), np.linspace(-1.0, 1.0, 201)
    rule = Rule(Coordinate(0, 1), -math.inf, 1.0, 1, Reading(1), ABSTAIN)
    moved, lost = inset(rule, read_outputs(own, 201), read_outputs(other, 201))
    assert moved.high == pytest.approx(1.06)  # six spacings of 0.01
    assert moved.low == -math.inf
    assert lost == pytest.approx(0.06, abs=0.011)
    mirrored = Rule(Coordinate(0, 1), -1.0, math.inf, 1, Reading(1), ABSTAIN)
    moved, _ = inset(mirrored, read_outputs(-other, 201), read_outputs(-own, 201))
    assert moved.low == pytest.approx(-1.06)


def test_thresholds_between_values_that_repeat_stay():
    rule = Rule(Coordinate(0, 1), -math.inf, 0.5, 1, Reading(1), ABSTAIN)
    moved, lost = inset(rule, read_outputs([0.0] * 90 + [1.0] * 10, 100), read_outputs([0.0] * 100, 100))
    assert (moved, lost) == (rule, 0.0)


def test_a_threshold_without_enough_scores_beside_it_stays():
    rule = Rule(Coordinate(0, 1), -math.inf, 0.5, 1, Reading(1), ABSTAIN)
    assert inset(rule, read_outputs([1.0] * 5, 5), read_outputs([0.0] * 5, 5)) == (rule, 0.0)


def test_thresholds_move_to_finite_places():
    largest = np.finfo(float).max
    rule = Rule(Coordinate(0, 1), -math.inf, 0.5 * largest, 1, Reading(1), ABSTAIN)
    other = [-largest, *[0.0] * 3, 0.1 * largest, 0.2 * largest, 0.3 * largest, 0.4 * largest, 0.5 * largest]
    moved, lost = inset(rule, read_outputs([largest] * 9, 9), read_outputs(other, 9))
    assert 0.5 * largest < moved.high <= largest and 0.0 <= lost <= 1.0 and moved.sides == 1


@pytest.mark.parametrize("draws", [1, 40, 1_000, 200_000])
@pytest.mark.parametrize("probability", [0.0, 1e-7, 1e-3, 0.05, 0.4])
def test_more_wrong_guesses_than_are_summed_over_are_as_rare_as_promised(draws, probability):
    largest = _largest(draws, probability)
    assert largest <= draws
    # the exact tail, of the binomial's own library; the size is meant for a tail of about LEFT_OUT
    assert stats.binom.sf(largest, draws, probability) <= LEFT_OUT


@pytest.mark.parametrize("largest", [0, 1, 3])
def test_wrong_guesses_that_are_not_summed_over_count_as_the_most_extreme(monkeypatch, largest):
    # The sum over numbers of wrong guesses may end anywhere: what is left out makes the p-value larger, never smaller.
    record = {"correct": 60, "wrong": 1, "draws": 400, "epsilon": 1.0, "cost": 0.02, "weight": 3.0, "level": 0.05}
    whole = joint_p_value(**record)
    monkeypatch.setattr(joint_test, "_largest", lambda draws, probability: largest)
    assert joint_p_value(**record) >= whole > UPPER_SHARE * 0.05
