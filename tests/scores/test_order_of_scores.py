"""The order of runs: p-values against enumeration of all arrangements."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dpaudit.scores.order import _few_descents, is_sorted, order_p_value, sorted_probability


@pytest.mark.parametrize("scores", [[1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 1.0, 1.0, 1.0, 2.0], [7.0] * 4])
def test_the_probability_of_a_sorted_column_is_that_of_enumeration(scores):
    arrangements = list(itertools.permutations(scores))
    rising = sum(all(a <= b for a, b in itertools.pairwise(found)) for found in arrangements)
    assert sorted_probability(np.array(scores)) == pytest.approx(rising / len(arrangements), rel=1e-12)


@pytest.mark.parametrize("size", [2, 5, 7])
def test_the_bound_on_descents_is_above_the_law_of_all_permutations(size):
    found = [sum(a > b for a, b in itertools.pairwise(order)) for order in itertools.permutations(range(size))]
    for descents in range(size):
        exact = np.mean([count <= descents for count in found])
        assert exact <= _few_descents(size, descents) <= max(1.0 * (descents >= size / 2), 12.0 * exact)


def test_p_values_of_independent_runs_are_not_too_small():
    """P(p <= 0.2) is at most 0.2 in each case: P(Binomial(1000, 0.2) >= 268) = 1.5e-7."""
    assert stats.binom.sf(267, 1_000, 0.2) < 2e-7
    for seed, draw in enumerate((np.random.Generator.normal, lambda rng, size: rng.integers(0, 2, size) + 0.0)):
        rng = np.random.default_rng(seed)
        small = sum(order_p_value(draw(rng, size=6), rng) <= 0.2 for _ in range(1_000))
        assert small < 268


def test_equal_scores_and_nan_are_in_no_order():
    rng = np.random.default_rng(3)
    assert order_p_value(np.zeros(500), rng) > 1e-6
    assert order_p_value(np.array([np.nan] * 50 + [1.0] * 50), rng) < 1e-20  # sorted, NaN below everything
    assert order_p_value(np.array([1.0]), rng) == 1.0 and order_p_value(np.array([]), rng) == 1.0
    assert is_sorted(np.array([2.0, 1.0, 1.0])) and not is_sorted(np.array([1.0, 2.0, 1.0]))
