"""The band: its probability against enumeration, its coverage, its width against the one of constant width."""

import math

import numpy as np
import pytest
from scipy import special, stats

from dpaudit.scores import bands
from dpaudit.scores.bands import anytime_bands, band, law_band, looks


def test_the_probability_of_the_event_is_that_of_a_chain_of_binomials():
    levels, least, most = np.array([0.2, 0.5, 0.8]), np.array([0, 2, 4]), np.array([3, 5, 6])
    expected = 0.0
    for first in range(4):
        for second in range(max(first, 2), 6):
            for third in range(max(second, 4), 7):
                expected += (
                    stats.binom.pmf(first, 6, 0.2)
                    * stats.binom.pmf(second - first, 6 - first, 0.3 / 0.8)
                    * stats.binom.pmf(third - second, 6 - second, 0.3 / 0.5)
                )
    assert bands._probability(6, levels, least, most) == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize("size", [1, 2, 25, 200])
def test_one_law_is_covered_at_all_thresholds_together(size):
    # 4,000 bands at 5%: P(Binomial(4000, 0.05) >= 266) = 2.7e-6
    rng = np.random.default_rng(20_261_125)
    found = law_band(size, 0.05)
    uniforms = np.sort(rng.random((4_000, size)), axis=1)
    misses = ((uniforms < found.lower[1:]) | (uniforms > found.upper[:-1])).any(axis=1).sum()
    assert stats.binom.sf(265, 4_000, 0.05) < 3e-6
    assert misses < 266
    assert size < 25 or misses > 100  # it is not wide either: P(Binomial(4000, 0.04) <= 100) = 2e-7


def dkw_half_width(size, error_rate):
    """Massart's constant."""
    return math.sqrt(math.log(2.0 / error_rate) / (2.0 * size))


@pytest.mark.parametrize("size", [100, 1_000])
def test_the_band_is_narrower_than_dkw_on_average_and_far_narrower_in_the_tails(size):
    found, half = law_band(size, 0.05), dkw_half_width(size, 0.05)
    share = np.arange(size + 1) / size
    theirs = np.minimum(1.0, share + half) - np.maximum(0.0, share - half)
    ours = found.upper - found.lower
    assert ours.mean() < 0.97 * theirs.mean()
    assert ours[0] < 0.7 * theirs[0] and ours[-1] < 0.7 * theirs[-1]
    assert np.max(ours / theirs) < 1.04  # computed, not sampled: 1.033 at 100, in the middle


def test_limits_of_the_trade_off_hold_the_true_curve_and_the_profile():
    rng = np.random.default_rng(20_261_126)
    at, mu = np.linspace(0.0, 1.0, 41), 1.0
    true = special.ndtr(-special.ndtri(at) - mu)
    epsilon = np.linspace(0.0, 4.0, 17)
    profile = special.ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * special.ndtr(-epsilon / mu - mu / 2)
    misses = 0
    for _ in range(200):  # P(Binomial(200, 0.05) >= 29) = 5e-7
        found = band(rng.normal(mu, 1.0, 150), rng.normal(0.0, 1.0, 120), 0.05)
        outside = np.any(found.upper(at) < true - 1e-12) or np.any(found.lower(at) > true + 1e-12)
        misses += bool(outside or np.any(found.profile_bound().delta(epsilon) > profile + 1e-12))
    assert misses < 29


def test_ties_nan_and_infinities_are_scores_like_others():
    found = band(np.array([np.nan, 1.0, np.inf, np.inf]), np.array([-np.inf, 1.0, 1.0]), 0.05)
    assert np.all(found.type_one_lower <= found.type_one_upper)
    assert found.type_one_upper[0] == 1.0  # every score is at least the lowest one
    assert found.type_one_lower[-1] == 0.0  # and none is above all


def test_looks_share_the_error_rate_so_that_all_hold_together():
    assert looks(1_000) == [32, 64, 128, 256, 512]
    assert sum(1.0 / ((k + 1) * (k + 2)) for k in range(10_000)) < 1.0
    rng = np.random.default_rng(1)
    found = anytime_bands(rng.normal(2.0, 1.0, 300), rng.normal(0.0, 1.0, 300), 0.05)
    assert len(found) == 4
    assert found[-1].profile_bound().delta(np.zeros(1))[0] > found[0].profile_bound().delta(np.zeros(1))[0]


def test_a_band_of_the_half_error_rate_that_is_used_as_one_of_the_whole_is_told_apart():
    """A negative control: at a tenth of the width the same count of misses is far above its limit."""
    found = law_band(200, 0.6)
    uniforms = np.sort(np.random.default_rng(3).random((500, 200)), axis=1)
    misses = ((uniforms < found.lower[1:]) | (uniforms > found.upper[:-1])).any(axis=1).sum()
    assert misses > 200  # 60% of 500, less 9 standard deviations
