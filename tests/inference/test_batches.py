"""The e-value of how a feature is spread over batches: exact over all tables, and what it finds."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from dpaudit.inference.order import batch_hint, batch_p_value


@pytest.mark.parametrize(("sizes", "m"), [([3, 4, 2], 4), ([1, 1, 6], 2), ([5, 5], 5), ([2, 2, 2, 2], 3)])
def test_its_inverse_is_1_at_most_on_average_over_all_tables(sizes, m):
    """E[1 / p] would be 1 at most if p were not cut off at 1; where it is cut off, 1 / p counts as 0 here."""
    mean = total = 0.0
    for table in itertools.product(*(range(size + 1) for size in sizes)):
        if sum(table) == m:
            share = np.prod(special.comb(sizes, table)) / special.comb(sum(sizes), m)
            p_value = batch_p_value(table, sizes)
            assert 0.0 < p_value <= 1.0
            total += share
            mean += share / p_value if p_value < 1.0 else 0.0
    assert total == pytest.approx(1.0) and mean <= 1.0


def test_it_is_valid_on_random_tables_of_many_batches():
    """Of 4,000 tables of independent flags 0.01 at most have p <= 0.01: 40 are expected, 75 have 1e-6. (Fixed.)"""
    rng = np.random.default_rng(7)
    sizes = rng.integers(1, 60, size=30)
    assert sum(batch_p_value(rng.binomial(sizes, 0.3), sizes) <= 0.01 for _ in range(4_000)) < 75


def test_rates_that_differ_are_found_and_the_same_feature_everywhere_says_nothing():
    assert batch_p_value([0, 100, 0, 100], [100] * 4) < 1e-50
    assert batch_p_value([400, 600, 450, 550], [1_000] * 4) < 1e-10
    assert batch_p_value([0, 0], [5, 5]) == 1.0 == batch_p_value([5, 5], [5, 5])
    assert batch_p_value([], []) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_the_hint_is_the_test_of_kruskal_and_wallis(seed):
    """Against scipy.stats.kruskal 1.17, with ties and without."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=6)
    values = rng.normal(size=int(sizes.sum())).round(seed % 3)
    groups = np.split(values, np.cumsum(sizes)[:-1])
    assert batch_hint(values, sizes) == pytest.approx(stats.kruskal(*groups).pvalue, rel=1e-9)


def test_a_hint_needs_two_batches_and_values_that_differ():
    assert batch_hint([1.0, 2.0, 3.0], [3]) == batch_hint([1.0, 2.0, 3.0], [3, 0]) == 1.0
    assert batch_hint([2.0] * 6, [3, 3]) == batch_hint([], []) == batch_hint([np.nan] * 4, [2, 2]) == 1.0
    assert batch_hint([np.nan] * 20 + [1.0] * 20, [20, 20]) < 1e-6
    assert batch_hint([True] * 8 + [False] * 8, [8, 8]) < 1e-3
