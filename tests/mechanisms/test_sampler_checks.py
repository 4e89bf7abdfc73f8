"""The checks of samplers, checked: each must accept a right sampler, and reject too little *and* too much noise."""

import numpy as np
import pytest
from sampler_checks import (
    DRAWS,
    MIN_CONTROL_GAP,
    THRESHOLD,
    are_independent,
    cdf_gap,
    is_drawn_from,
    is_drawn_from_outcomes,
)
from scipy import stats


def test_the_stated_thresholds_are_the_computed_ones():
    assert round(THRESHOLD, 4) == 0.0154
    assert round(MIN_CONTROL_GAP, 4) == 0.0370


@pytest.mark.parametrize(("factor", "expected"), [(1.0, True), (0.8, False), (1.25, False)])
def test_a_continuous_sampler_is_told_from_one_with_other_noise(factor, expected):
    # Laplace functions of scales 1 and 1.25 are 0.041 apart: above the smallest gap of a control.
    samples = np.random.default_rng(20_261_121).laplace(scale=factor, size=DRAWS)
    assert is_drawn_from(samples, stats.laplace.cdf) is np.bool_(expected)


@pytest.mark.parametrize(("probabilities", "expected"), [((0.5, 0.3, 0.2), True), ((0.55, 0.25, 0.2), False)])
def test_a_discrete_sampler_is_told_from_one_with_other_probabilities(probabilities, expected):
    samples = np.random.default_rng(20_261_122).choice(3, size=DRAWS, p=probabilities)
    assert cdf_gap((0.5, 0.3, 0.2), (0.55, 0.25, 0.2)) > MIN_CONTROL_GAP
    assert is_drawn_from_outcomes(samples, range(3), (0.5, 0.3, 0.2)) == expected


@pytest.mark.parametrize("fault", [None, "equal", "opposite", "one for all", "repeated"])
def test_independent_columns_are_told_from_shared_ones(fault):
    u = np.random.default_rng(20_261_123).random((DRAWS, 3))  # 12 calls at 1e-10; a shared one is half of 1 away
    if fault == "repeated":
        u[1::2] = u[::2]
    elif fault:
        u[:, 2] = {"equal": u[:, 1], "opposite": 1.0 - u[:, 1], "one for all": u[0, 0]}[fault]
    assert are_independent(u) == (fault is None)


def test_an_impossible_outcome_is_rejected():
    samples = np.zeros(DRAWS)
    samples[0] = 7.0
    assert not is_drawn_from_outcomes(samples, [0, 1], [1.0, 0.0])
