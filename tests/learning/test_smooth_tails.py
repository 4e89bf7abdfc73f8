"""Thresholds of sums of weak columns: what a slope promises, and where it is not believed."""

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.learning import pilots
from dpaudit.learning.fitted_scores import fit_scores
from dpaudit.learning.scores import Coordinate, Histogram, Linear, Viewed
from dpaudit.learning.smooth_tails import LEAST_TERMS, MASSES, _tails_of, effective_terms, smooth_tails
from dpaudit.privacy.claims import PureDP
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.tallies import Tally
from dpaudit.reading.vectors import Summary
from dpaudit.testing.binomial import binomial_lower
from dpaudit.testing.fixed_game import FixedGame


def bits(size, rng, loss=0.05, columns=20):
    """Bits of which the first six are one more often on one side, with this loss each."""
    p = 1.0 / (1.0 + math.exp(-loss))
    sides = []
    for chance in (p, 1.0 - p):
        shown = rng.random((size, columns)) < np.append(np.full(6, chance), np.full(columns - 6, 0.5))
        sides.append(Outcomes(shown.astype(float)))
    return sides


def test_of_normal_scores_the_slope_gives_the_rates_of_every_tail():
    # Log-odds 0.2 z. Rates of guesses are known to about 1e-3 with 2 x 60,000 draws: 0.005 is five standard errors, and
    # one standard error of the slope (0.006) lowers the rates of correct guesses by 0.001 at most.
    rng = np.random.default_rng(20_261_201)
    folds = [(rng.normal(0.1, 1.0, 30_000), rng.normal(-0.1, 1.0, 30_000)) for _ in range(2)]
    tails = _tails_of("normal", folds)
    spread = math.sqrt(1.01)
    for k in range(0, len(tails.low), 7):
        high = -stats.norm.ppf(tails.high[k]) * spread if tails.high[k] > 0.0 else math.inf
        low = stats.norm.ppf(tails.low[k]) * spread if tails.low[k] > 0.0 else -math.inf
        correct = 0.5 * (stats.norm.sf(high, 0.1) + stats.norm.cdf(low, -0.1))
        wrong = 0.5 * (stats.norm.sf(high, -0.1) + stats.norm.cdf(low, 0.1))
        assert abs(tails.correct[k] - correct) < 0.005 and abs(tails.wrong[k] - wrong) < 0.005
        assert abs(tails.seen_correct[k] - correct) < 0.005 and abs(tails.seen_wrong[k] - wrong) < 0.005
    assert len(tails.low) == len(MASSES) ** 2 and tails.draws == 120_000


def test_tails_that_level_off_are_not_borne_out():
    # Laplace noise: log-odds of at most 0.5 however far out, while the slope of the middle promises 1 and more there.
    # At a mass of 1% the draws are off by 0.07: the probability of taking that for the slope's is below 1e-6.
    rng = np.random.default_rng(20_261_202)
    folds = [(rng.laplace(0.25, 1.0, 40_000), rng.laplace(-0.25, 1.0, 40_000)) for _ in range(2)]
    tails = _tails_of("laplace", folds)
    far = (tails.low < 0.005) & (tails.high < 0.005) & (tails.low > 0.0) & (tails.high > 0.0)
    assert far.any() and not tails.is_borne_out[far].any()


def test_rates_add_up_and_nothing_is_guessed_on_no_mass():
    first, second = bits(900, np.random.default_rng(20_261_203))
    found = list(smooth_tails(first, second))
    assert found and len({tails.kind for tails in found}) == len(found)
    for tails in found:
        # Counts are whole: each tail holds a draw a fold less than its mass at most.
        guessed = tails.low + tails.high
        assert np.all(np.abs(tails.correct + tails.wrong - guessed) <= 4.0 / 900)
        # 1e-12: cumulated sums of 1,800 terms of at most 1, over 1,800; each rounds by less than 2e-16 of the sum.
        assert np.allclose(tails.seen_correct + tails.seen_wrong, tails.correct + tails.wrong, rtol=0.0, atol=1e-12)
        assert tails.correct[0] == tails.wrong[0] == 0.0


def test_only_sums_of_columns_have_smooth_tails():
    rng = np.random.default_rng(20_261_204)
    one = Outcomes(rng.normal(size=(500, 1)))
    assert not list(smooth_tails(one, one))
    first, second = bits(500, rng)
    kinds = {score.kind for score in fit_scores(first, second) if effective_terms(score.score, first) > LEAST_TERMS}
    assert {tails.kind for tails in smooth_tails(first, second)} <= kinds | {"Linear 3"}  # as many in one half, or not


def test_a_sum_has_as_many_terms_as_it_has_equal_ones():
    numbers = Outcomes(np.random.default_rng(20_261_207).normal(size=(20_000, 6)))
    low, high = np.full(6, -9.0), np.full(6, 9.0)
    for weights, terms in (([1.0] * 6, 6.0), ([1.0, 1.0, -1.0, 0, 0, 0], 3.0), ([5.0, 0, 0, 0, 0, 0], 1.0)):
        found = effective_terms(Linear(np.array(weights), low, high, np.zeros(6)), numbers)
        assert abs(found - terms) < 0.1  # variances of 20,000 draws are known to 1%: ten times that
    edges, values = (np.array([0.0]),) * 6, (np.array([-1.0, 1.0, 0.0]),) * 6
    several = Histogram(tuple(range(6)), edges, values, 6)
    assert abs(effective_terms(several, numbers) - 6.0) < 0.1
    assert effective_terms(several.only([0]), numbers) == effective_terms(Coordinate(0, 6), numbers) == 1.0
    view = Tally(np.array([0.0]), 0.0, 1.0, 6)
    pair = Linear(np.array([0.0, 1.0, 1.0]), low[:3], high[:3], np.zeros(3))
    assert 1.0 < effective_terms(Viewed(view, pair), numbers) < 2.0
    three = Summary(("sum",), np.zeros(6), np.ones(6))
    assert effective_terms(Viewed(three, Coordinate(0, 1)), numbers) == 6.0
    constant = Outcomes(np.where(np.arange(6) < 2, 7.0, numbers.numbers))
    assert effective_terms(Viewed(three, Coordinate(0, 1)), constant) == 4.0
    largest = Summary(("largest",), np.zeros(6), np.ones(6))
    assert effective_terms(Viewed(largest, Coordinate(0, 1)), numbers) == 1.0


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_that_is_smaller_under_x_is_read_the_other_way_round(sign):
    # Forty columns, each a tenth of a standard deviation apart: their sum by 0.63, 25 standard errors of 3,000 draws
    # a side. In the smallest tails, 24 guesses with log-odds of 1.6, fewer are right than wrong with probability 1e-3.
    rng = np.random.default_rng(20_261_208)
    first, second = (Outcomes(rng.normal(sign * shift, 1.0, size=(3_000, 40))) for shift in (0.05, -0.05))
    found = {tails.kind: tails for tails in smooth_tails(first, second)}
    sums = [tails for kind, tails in found.items() if kind.startswith("Viewed of Coordinate")]
    assert sums and all(tails.sign == sign for tails in sums)
    for tails in sums:
        guessed = (tails.low > 0.0) | (tails.high > 0.0)
        assert np.all(tails.correct[guessed] > tails.wrong[guessed])
        assert np.all(tails.seen_correct[guessed] > tails.seen_wrong[guessed])
    game = FixedGame(PureDP(1.0), 3_000)
    game.fit(first, second, 0.05)
    ones, zeros = game.rule.count(first), game.rule.count(second)
    assert ones[1] + zeros[0] > 1.2 * (ones[0] + zeros[1])


@pytest.mark.parametrize("width", [2, 9])
def test_infinite_and_missing_numbers_are_survived(width):
    rng = np.random.default_rng(20_261_205)
    numbers = rng.choice([0.0, 1.0, math.nan, math.inf, -math.inf], size=(400, width))
    first, second = Outcomes(numbers), Outcomes(numbers[::-1].copy())
    game = FixedGame(PureDP(0.5), 2_000)
    game.fit(first, second, 0.05)
    assert game.rule.sides in (0, 1, 2)


@pytest.mark.filterwarnings("error")
def test_columns_that_are_never_there_say_nothing():
    numbers = np.random.default_rng(20_261_209).normal(size=(600, 9))
    numbers[:, 2] = math.nan
    game = FixedGame(PureDP(0.5), 2_000)
    game.fit(Outcomes(numbers), Outcomes(numbers[::-1] + 0.5), 0.05)
    assert game.rule.sides in (0, 1, 2)


def expected_bound(rule, fresh, draws):
    """The bound on epsilon at the expected counts of so many labelled draws, by fresh draws of both sides."""
    ones, zeros = (rule.count(side) / len(side) for side in fresh)
    correct, wrong = 0.5 * (ones[1] + zeros[0]), 0.5 * (ones[0] + zeros[1])
    accuracy = binomial_lower(correct * draws, (correct + wrong) * draws, 0.05)
    return math.log(accuracy / (1.0 - accuracy))


def test_a_sum_of_weak_bits_is_guessed_far_out(monkeypatch):
    """Six bits of twenty with a loss of 0.05 each: 0.3 where all six agree.

    The best fixed guess is on 3% of the outputs, and its bound 0.26. What the records of 15,000 draws a side show
    leaves the guesses anywhere from 0.2% to 58% of the outputs. A bound by 150,000 fresh draws a side is off by 0.03
    (1.5 standard errors, at 3% of the outputs), and so is the average of ten: they are counted on the same draws.
    """
    fresh = bits(150_000, np.random.default_rng(20_261_206))
    bounds = {}
    for name, tails in (("slope", smooth_tails), ("records", lambda *_: [])):
        monkeypatch.setattr(pilots, "smooth_tails", tails)
        for seed in range(10):
            first, second = bits(15_000, np.random.default_rng(seed))
            game = FixedGame(PureDP(0.4), 170_000)
            game.fit(first, second, 0.05)
            bounds.setdefault(name, []).append(expected_bound(game.rule, fresh, 170_000))
    assert np.median(bounds["slope"]) > 0.2  # now and then a lucky record is taken instead
    assert np.mean(bounds["slope"]) > np.mean(bounds["records"]) + 0.02
