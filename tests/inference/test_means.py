"""Limits of means and probabilities: against closed forms, and against each other."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpaudit.inference import binomial, means

LOSSES = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30).map(np.array)


@given(LOSSES, st.floats(0.01, 50.0), st.floats(1.01, 3.0))
def test_wealth_falls_with_the_limit(losses, limit, factor):
    fractions = means.stakes(len(losses), 0.05)
    wealths = [means.mean_log_wealth(losses, m, fractions) for m in (limit, limit * factor, math.inf)]
    assert wealths[0] >= wealths[1] - 1e-9 and wealths[2] == 0.0


@given(LOSSES)
def test_the_lower_limit_is_rejected_and_at_most_the_sample_mean(losses):
    fractions = means.stakes(len(losses), 0.05)
    lower = means.mean_lower(losses, 0.05, fractions)
    assert 0.0 <= lower <= losses.mean()
    if lower > 0.0:
        assert means.mean_log_wealth(losses, lower, fractions) >= -math.log(0.05)


def test_the_expected_wealth_at_the_true_mean_is_one_for_every_fraction():
    # Two values, 0 with probability 3/4 and 4 with 1/4, mean 1; three draws, all 8 outcomes summed.
    fractions = means.stakes(3, 0.05)
    total = 0.0
    for outcome in np.ndindex(2, 2, 2):
        losses = np.array([4.0 * value for value in outcome])
        total += (
            0.25 ** sum(outcome) * 0.75 ** (3 - sum(outcome)) * math.exp(means.mean_log_wealth(losses, 1.0, fractions))
        )
    assert total == pytest.approx(1.0, abs=1e-12)


def test_a_bounded_loss_is_limited_from_above_by_its_mirror_image():
    losses = np.random.default_rng(1).uniform(size=500)
    fractions = means.stakes(500, 0.05)
    upper = means.mean_upper(losses, 0.05, fractions, 1.0, None)
    assert upper == 1.0 - means.mean_lower(1.0 - losses, 0.05, fractions)
    assert losses.mean() < upper < losses.mean() + 0.06


def test_an_unbounded_loss_needs_a_deviation_to_be_limited_from_above():
    losses = np.random.default_rng(1).exponential(size=2_000)
    fractions = means.stakes(2_000, 0.05)
    assert means.mean_upper(losses, 0.05, fractions, None, None) == math.inf
    upper = means.mean_upper(losses, 0.05, fractions, None, 1.0)
    # Catoni's limit is within sqrt(2 log(20) / n) = 0.055 of the mean, but for terms of order 1 / n.
    assert losses.mean() < upper < losses.mean() + 0.08


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3])
def test_limits_are_in_the_unit_of_the_losses(unit):
    losses, fractions = np.random.default_rng(2).exponential(size=300), means.stakes(300, 0.05)
    for stated in ({"largest": None, "deviation": 1.0}, {"largest": 9.0, "deviation": None}):
        there = {name: value and unit * value for name, value in stated.items()}
        limit = means.mean_upper(losses, 0.05, fractions, **stated)
        # A limit from below is found to 1e-9.
        assert means.mean_upper(unit * losses, 0.05, fractions, **there) == pytest.approx(unit * limit, rel=1e-7)
    lower = means.mean_lower(losses, 0.05, fractions)
    assert means.mean_lower(unit * losses, 0.05, fractions) == pytest.approx(unit * lower, rel=1e-7)


# Losses of 0 with this probability, else 1: the chance of a limit beyond the mean is a sum over the number of zeros.
@pytest.mark.parametrize("zeros", [0.5, 0.05, 0.998, 0.002])
@pytest.mark.parametrize("draws", [10, 30])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_the_limits_of_two_valued_losses_miss_no_more_often_than_the_level(zeros, draws, level):
    mean, deviation = 1.0 - zeros, math.sqrt(zeros * (1.0 - zeros))
    fractions = means.stakes(draws, level)
    missed = {"below": 0.0, "by the largest": 0.0, "by the deviation": 0.0, "of a probability": 0.0}
    for count in range(draws + 1):
        losses, chance = np.repeat([0.0, 1.0], [count, draws - count]), stats.binom.pmf(count, draws, zeros)
        missed["below"] += chance * (means.mean_lower(losses, level, fractions) > mean)
        missed["by the largest"] += chance * (means.mean_upper(losses, level, fractions, 1.0, None) < mean)
        missed["by the deviation"] += chance * (means.mean_upper(losses, level, fractions, None, deviation) < mean)
        missed["of a probability"] += chance * (binomial.binomial_upper(count, draws, level) < zeros)
    assert max(missed.values()) <= level, missed


def test_infinite_losses_have_an_infinite_mean():
    losses, fractions = np.array([1.0, math.inf]), means.stakes(2, 0.05)
    assert means.mean_lower(losses, 0.05, fractions) == math.inf == means.mean_upper(losses, 0.05, fractions, None, 1.0)
    assert means.mean_log_wealth(losses, 5.0, fractions) == math.inf


def test_a_limit_of_zero_is_broken_by_any_loss():
    fractions = means.stakes(3, 0.05)
    assert means.mean_log_wealth(np.array([0.0, 0.0, 1e-300]), 0.0, fractions) == math.inf
    assert means.mean_log_wealth(np.zeros(3), 0.0, fractions) == 0.0
    assert means.mean_lower(np.zeros(3), 0.05, fractions) == 0.0


@pytest.mark.parametrize(("trials", "probability", "level"), [(50, 0.1, 0.05), (1_000, 1e-3, 1e-4), (20, 0.5, 0.2)])
def test_the_critical_count_is_the_first_that_the_exact_test_rejects(trials, probability, level):
    least = means.critical_count(trials, probability, level)
    assert stats.binom.sf(least - 1, trials, probability) < level <= stats.binom.sf(least - 2, trials, probability)


def test_no_count_rejects_what_every_count_may_have():
    assert means.critical_count(3, 0.9, 0.05) == 4
    assert means.detectable_probability(3, 0.9, 0.05, 0.9) == math.inf
    assert means.critical_count(10, 0.0, 0.05) == 1


def test_the_detectable_probability_has_the_power():
    found = means.detectable_probability(1_000, 0.05, 0.01, 0.9)
    least = means.critical_count(1_000, 0.05, 0.01)
    assert stats.binom.sf(least - 1, 1_000, found) == pytest.approx(0.9, abs=1e-9)


def test_no_mean_is_detectable_that_is_more_than_a_million_times_its_limit():
    # One draw of a loss of r limits wins less than r times: the level asks for more than 1e30, and for more than 1e5.
    fractions = means.stakes(1, 1e-30)
    assert means.detectable_mean_ratio(np.ones(1), 1e-30, fractions, 0.9) == math.inf
    assert 1e5 < means.detectable_mean_ratio(np.ones(1), 1e-5, means.stakes(1, 1e-5), 0.9) < 1e6


def test_the_detectable_mean_is_about_where_the_power_is():
    # Exponential losses whose mean is the detectable ratio: 200 runs of 1,000 draws; binomial(200, 0.8) is below 140
    # with probability 4e-4, binomial(200, 0.99) is 200 with probability 0.13: the seed is fixed.
    level, draws, rng = 0.01, 1_000, np.random.default_rng(11)
    fractions = means.stakes(draws, level)
    ratio = means.detectable_mean_ratio(rng.exponential(size=draws), level, fractions, 0.9)
    found = sum(
        means.mean_log_wealth(ratio * rng.exponential(size=draws), 1.0, fractions) >= -math.log(level)
        for _ in range(200)
    )
    assert 1.05 < ratio < 1.3 and found >= 140, (ratio, found)
