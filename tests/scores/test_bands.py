"""The band: its probability against enumeration, its coverage, its width against the one of constant width; trade-off
functions from profiles, rounded outwards; and bets on scores: cells, an order of play, and how often they err."""

import math

import numpy as np
import pytest
from scipy import special, stats

import dpaudit
from dpaudit.scores import bands, profile_bounds
from dpaudit.scores.bands import Bands, anytime_bands, band, law_band
from dpaudit.scores.bets import ScoreBets, labelled
from dpaudit.scores.profile_bounds import TYPE_ONE, ProfileBound


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
    assert bands._probability(6, 0.8, bands._increments(6, levels), least, most) == pytest.approx(expected, abs=2e-9)


def coverage(size, found):
    """P(lower[k] <= F <= upper[k] at all thresholds), exactly: how many uniforms lie below each limit is a chain."""
    low, high, counts = found.lower[1:], found.upper[:-1], np.arange(size + 1)  # of the sorted uniforms
    chance, at = np.eye(size + 1)[0], 0.0
    for end in np.unique(np.concatenate([low, high])).tolist():
        if 0.0 < end < 1.0:
            more = counts[None] - counts[:, None], size - counts[:, None]
            chance, at = chance @ stats.binom.pmf(*more, (end - at) / (1.0 - at)), end
            least, most = np.count_nonzero(high <= end), size - np.count_nonzero(low >= end)
            chance = np.where((least <= counts) & (counts <= most), chance, 0.0)
    return float(chance.sum())


@pytest.mark.parametrize("level", [0.05, 0.01])
@pytest.mark.parametrize("size", [1, 2, 10, 40, 60])
def test_one_law_is_covered_at_all_thresholds_together(size, level):
    missed = 1.0 - coverage(size, law_band(size, level))
    assert missed <= level
    assert size < 40 or missed > 0.95 * level  # it is not wide either


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
        outside = np.any(found.upper(at) < true - 1e-12) or np.any(found.thresholds_lower(at) > true + 1e-12)
        misses += bool(outside or np.any(Bands((found,)).profile_bound().delta(epsilon) > profile + 1e-12))
    assert misses < 29


def test_ties_nan_and_infinities_are_scores_like_others():
    found = band(np.array([np.nan, 1.0, np.inf, np.inf]), np.array([-np.inf, 1.0, 1.0]), 0.05)
    assert np.all(found.type_one_lower <= found.type_one_upper)
    assert found.type_one_upper[0] == 1.0  # every score is at least the lowest one
    assert found.type_one_lower[-1] == 0.0  # and none is above all


def test_a_randomised_threshold_is_not_below_the_lower_limit():
    """A score of two values: thresholds have errors (0, 1), (0.5, 0.1), (1, 0); with the roles exchanged (0.1, 0.5).

    A mixture of (0.5, 0.1) and (0.1, 0.5) has (0.25, 0.35). 2,000 runs a side: the band at 1e-6 is within 0.15 of it.
    """
    rng = np.random.default_rng(1)
    found = band((rng.random(2_000) < 0.9) + 0.0, (rng.random(2_000) < 0.5) + 0.0, 1e-6)
    for limit, sign in ((found.thresholds_lower, 1.0), (found.upper, -1.0)):
        away = sign * (np.array([0.35, 0.1, 0.05]) - limit(np.array([0.25, 0.5, 0.75])))
        assert np.all(away >= 0.0) and np.all(away < 0.15)


def test_the_lower_limit_is_of_thresholds_alone():
    """Scores whose size tells, not their sign: thresholds see little, and the mechanism's own limit is below theirs."""
    rng = np.random.default_rng(2)
    size = 2_000
    signs = rng.choice([-1.0, 1.0], (2, size))
    found = band(signs[0] * (2.0 + rng.random(size)), signs[1] * rng.random(size), 1e-6)
    assert found.thresholds_lower(np.array([0.1]))[0] > 0.3  # the truth of thresholds is 0.4; of |score| it is 0
    assert found.upper(np.array([0.1]))[0] < 0.5


def test_bands_of_all_looks_hold_the_true_curve_together():
    """P(Binomial(120, 0.05) >= 22) = 1e-7; the same looks at the whole error rate each would err more often."""
    rng = np.random.default_rng(20_261_127)
    at = np.linspace(0.0, 1.0, 41)
    true = special.ndtr(-special.ndtri(at) - 1.0)
    misses = 0
    for _ in range(120):
        found = anytime_bands(rng.normal(1.0, 1.0, 250), rng.normal(0.0, 1.0, 250), 0.05)
        misses += bool(np.any(found.upper(at) < true - 1e-12) or np.any(found.thresholds_lower(at) > true + 1e-12))
    assert stats.binom.sf(21, 120, 0.05) < 2e-7
    assert misses < 22


def test_a_tiny_error_rate_has_the_band_of_constant_width():
    found, half = law_band(50, 1e-10), dkw_half_width(50, 1e-10)
    assert found.upper[5] == pytest.approx(0.1 + half) and found.lower[45] == pytest.approx(0.9 - half)
    assert np.all(law_band(50, 1.01e-8).upper < 1.2 * np.minimum(1.0, np.arange(51) / 50 + half))


def test_a_band_of_the_half_error_rate_that_is_used_as_one_of_the_whole_is_told_apart():
    """A negative control: at a tenth of the width the same count of misses is far above its limit."""
    found = law_band(200, 0.6)
    uniforms = np.sort(np.random.default_rng(3).random((500, 200)), axis=1)
    misses = ((uniforms < found.lower[1:]) | (uniforms > found.upper[:-1])).any(axis=1).sum()
    assert misses > 200  # 60% of 500, less 9 standard deviations


# ---- trade-off functions from profiles -------------------------------------------------------------------------------


def gaussian(mu):
    at = TYPE_ONE[1:-1]
    true = special.ndtr(-special.ndtri(at) - mu)

    def profile(epsilon):
        return special.ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * special.ndtr(-epsilon / mu - mu / 2)

    return at, true, ProfileBound((profile,))


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_the_upper_limit_of_the_trade_off_is_not_below_that_of_the_profile(mu):
    at, true, bound = gaussian(mu)
    away = bound.trade_off_upper(at) - true
    assert np.all(away >= -1e-13)  # the special functions' rounding
    assert np.all(away <= 0.011 * (1.0 - true))  # steps of 0.01 in epsilon: 1% of e^epsilon a, and of delta's slope


@pytest.mark.parametrize("step", [1, 50, 600])
def test_a_coarser_grid_is_further_out(monkeypatch, step):
    monkeypatch.setattr(profile_bounds, "FINE_GRID", profile_bounds.FINE_GRID[::step])
    at, true, bound = gaussian(1.0)
    assert np.all(bound.trade_off_upper(at) >= true - 1e-13)


def test_with_nothing_known_the_limit_is_the_diagonal():
    at = np.linspace(0.0, 1.0, 5)
    assert ProfileBound(()).trade_off_upper(at) == pytest.approx(1.0 - at)


# ---- bets on scores --------------------------------------------------------------------------------------------------


def test_leaves_of_a_tree_are_cells_of_what_was_predicted():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 400)
    bets = ScoreBets(rng.normal(size=400) + 2.0 * labels, labels, dpaudit.PureDP(1.0))
    assert sum(len(stage.cells) for stage in bets._stages) == 400 - 6
    for stage in bets._stages:
        assert stage.predicted.mass.sum() == pytest.approx(1.0) and np.all(stage.predicted.mass > 0.0)
        assert np.all(np.diff(stage.predicted.q) > 0.0)
        assert stage.cells.max() < 2 * len(stage.predicted.q)
    cells = np.concatenate([stage.cells // len(stage.predicted.q) for stage in bets._stages])
    assert np.array_equal(cells, labels[6:])


def test_the_wealth_is_that_of_all_scores_so_far_and_the_bound_is_below_it():
    rng = np.random.default_rng(2)
    bets = ScoreBets(*labelled(rng.normal(1.5, 1.0, 200), rng.normal(size=200), rng), dpaudit.GaussianDP(0.5))
    need = -np.log(0.05)
    course = bets.log_wealth(0.5 * (1.0 + 1e-7) + 1e-12)
    assert bets.decided_at(0.05) == 7 + int(np.argmax(course >= need)) and bets.largest() == course.max()
    lower = bets.lower(0.05)
    assert 0.5 < lower < 1.5 and bets.rejects(lower * 0.8, 0.05) and not bets.rejects(1.15 * lower, 0.05)


DRAWS, PLAYS, LEVEL = 40, 150, 0.05
FALSE_ALARM_RATE = 2e-6  # P(binomial(150, 0.05) >= 23) = 1.8e-6


@pytest.mark.slow
def test_a_claim_that_is_kept_exactly_is_rejected_no_more_often_than_the_level_says():
    """The law sits on the line of every epsilon at once: randomised response, and a Gaussian with its whole profile."""
    assert stats.binom.sf(22, PLAYS, LEVEL) < FALSE_ALARM_RATE
    rng = np.random.default_rng(20_261_126)
    for claim, draw in (
        (dpaudit.PureDP(1.0), lambda e: (rng.random(DRAWS) < special.expit(e)) + 0.0),
        (dpaudit.GaussianDP(1.73), lambda e: rng.normal(0.865 * e, 1.0, DRAWS)),
    ):
        rejected = 0
        for _ in range(PLAYS):
            rejected += ScoreBets(*labelled(draw(1.0), draw(-1.0), rng), claim).decided_at(LEVEL) is not None
        assert rejected < 23
