"""Quantiles of columns with NaN are numpy's, to the bit."""

import numpy as np
import pytest

from dpaudit.reading.vectors import quantile_of_known


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("share", [0.005, 0.25, 0.5, 0.99, 1.0])
def test_quantiles_of_what_is_known_are_those_of_numpy(seed, share):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rng.integers(1, 60), rng.integers(1, 9))) * 10.0 ** rng.integers(-5, 5)
    is_missing = rng.random(numbers.shape) < rng.random()
    is_missing[0] = False  # each column has a number
    numbers[is_missing] = np.nan
    np.testing.assert_array_equal(quantile_of_known(numbers, share), np.nanquantile(numbers, share, axis=0))
