"""The test of many records at once against the test of one, and its exactness by enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from dpaudit.privacy.claims import ApproxDP, PureDP
from dpaudit.testing import binomial
from dpaudit.testing import guess_records as records
from dpaudit.testing.fixed_game import MASS_SHARE, FixedGame

RNG = np.random.default_rng(20_261_121)
GUESSES = RNG.integers(1, 500, size=40)
CORRECT = (GUESSES * RNG.random(40)).astype(int)


@pytest.mark.parametrize("cost", [0.0, 0.01])
def test_p_values_are_those_of_the_test_of_one_record(cost):
    level, draws, epsilon = 0.001, 1_000, RNG.random(40) * 2.0
    many = records.log_p_values(
        CORRECT.astype(float), GUESSES.astype(float), draws, epsilon, np.full(40, cost), np.full(40, level), MASS_SHARE
    )
    for k in range(40):
        one = binomial.p_value(CORRECT[k], GUESSES[k], draws, epsilon[k], cost, level, MASS_SHARE)
        # The mass is rounded down by 1e-9 of itself, which can move a p-value by about draws * 1e-9 of itself.
        assert math.exp(many[k]) == pytest.approx(one, rel=1e-5)
        assert math.exp(many[k]) >= one * (1.0 - 1e-9)


@pytest.mark.parametrize("claim", [PureDP(0.4), ApproxDP(0.4, 0.02)])
def test_the_bound_is_the_end_of_the_rejected_epsilons(claim):
    level, draws = np.full(40, 0.01), 1_000
    cost = np.full(40, claim.delta)
    lower = records.epsilon_lower(CORRECT.astype(float), GUESSES.astype(float), draws, cost, level, MASS_SHARE)
    assert np.any(lower > 0.0)
    for shift, rejected in ((-1e-6, True), (1e-6, False)):
        # Accuracy gets the level less what the mass was paid, so the p-value of the two parts decides.
        values = np.maximum(lower + shift, 0.0)
        log_p = records.log_p_values(
            CORRECT.astype(float), GUESSES.astype(float), draws, values, cost, level, MASS_SHARE
        )
        assert np.all((log_p <= np.log(level) + 1e-9)[lower > 1e-3] == rejected)


def test_the_smallest_tails_are_bounded_and_not_lost():
    args = (np.array([9e5]), np.array([1e6]), 1e6, np.array([0.1]), np.array([0.0]), np.array([0.01]), MASS_SHARE)
    log_p = float(records.log_p_values(*args)[0])
    # Chernoff: n KL(0.9, expit(0.1)) = 1e6 * 0.3338
    rate = special.rel_entr(0.9, special.expit(0.1)) + special.rel_entr(0.1, special.expit(-0.1))
    assert log_p == pytest.approx(-1e6 * rate, rel=1e-9)


def test_the_bound_covers_at_its_level_by_enumeration():
    # All records of 30 labelled draws of a rule that guesses with probability 0.5 and is right exactly as often as
    # epsilon = 0.7 allows: the probability that the bound exceeds 0.7 is at most the level; it is not far below.
    level, draws, epsilon = 0.05, 30, 0.7
    accuracy = float(special.expit(epsilon))
    guesses, correct = np.meshgrid(np.arange(draws + 1), np.arange(draws + 1), indexing="ij")
    legal = correct <= guesses
    g, c = guesses[legal].astype(float), correct[legal].astype(float)
    weight = stats.binom.pmf(g, draws, 0.5) * stats.binom.pmf(c, g, accuracy)
    for cost in (0.0, 0.05):
        lower = records.epsilon_lower(c, g, draws, np.full(len(g), cost), np.full(len(g), level), MASS_SHARE)
        above = float(weight[lower > epsilon].sum())
        assert above <= level
        assert above > (0.02 if cost == 0.0 else 0.0)


def test_the_power_is_that_of_a_fixed_game():
    epsilon = np.array([0.0, 0.5, 1.0, 3.0])
    for delta in (0.0, 0.01):
        found = records.detectable_losses(epsilon, delta, 20_000, 1e-5, MASS_SHARE, 0.1, 0.9, 0.005)
        for value, loss in zip(epsilon.tolist(), found.tolist(), strict=True):
            game = FixedGame(ApproxDP(value, delta), 20_000)
            game.start(1e-5)
            assert loss == pytest.approx(game.power(0.1, 0.9)[0], abs=1e-9)
    assert np.isinf(records.detectable_losses(np.array([30.0]), 0.0, 1_000, 1e-5, MASS_SHARE, 0.1, 0.9, 0.005)).all()


def test_a_tail_too_small_to_be_computed_is_at_most_what_could_be():
    # 1,631 of 1,812 at odds of 1: exp(-n KL) is above 1e-290 and the tail below it (an exact sum in logarithms).
    c, n = np.arange(1_631, 1_813), 1_812
    exact = special.logsumexp(stats.binom.logpmf(c, n, 0.5))
    chernoff = -n * (special.rel_entr(c[0] / n, 0.5) + special.rel_entr(1.0 - c[0] / n, 0.5))
    assert exact < math.log(1e-290) < chernoff
    ones, none = np.ones(1), np.zeros(1)
    found = records.log_p_values(1_631 * ones, n * ones, float(n), none, none, 0.01 * ones, MASS_SHARE)
    assert found[0] == pytest.approx(math.log(1e-290), rel=1e-12) and found[0] >= exact


def test_one_guess_is_enough_for_a_power_where_it_can_refute():
    # Of 40 draws with an event of mass 0.1 there is no guess with probability 0.9**40 = 0.015, at most one with 0.08.
    # One right guess has a p-value of 0.5 against epsilon = 0: it refutes at a level of 0.6, and at no level below 0.5.
    zero, quantile = np.zeros(1), 0.1
    assert int(special.bdtrik(quantile, 40, 0.1)) == 1

    def loss(draws, level):
        return records.detectable_losses(zero, 0.0, draws, level, MASS_SHARE, 0.1, 0.8, quantile)[0]

    # P(right) = 0.8 / 0.9 for one guess: the loss is its logit.
    assert loss(40, 0.6) == pytest.approx(special.logit(0.8 / 0.9), abs=1e-9)
    assert loss(40, 0.4) == math.inf
    assert loss(5, 0.6) == math.inf  # no guess
