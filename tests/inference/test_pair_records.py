"""The test of many records at once against the test of one, and its exactness by enumeration."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import special, stats

from dpaudit.inference import binomial
from dpaudit.inference.exact import ExactTest
from dpaudit.inference.guess_rules import SIZES
from dpaudit.inference.pair_lines import GUESSES_QUANTILE, PairLines, Record, detectable_losses, log_tails
from dpaudit.privacy.claims import ApproxDP
from dpaudit.privacy.pair_budgets import PairBudgets

RNG = np.random.default_rng(20_261_121)
GUESSES = RNG.integers(1, 500, size=40)
CORRECT = (GUESSES * RNG.random(40)).astype(int)
MASS_SHARE = SIZES.mass_share


def lines(epsilon, delta):
    """The lines of pairs of one delta with an epsilon each."""
    epsilon = np.asarray(epsilon, dtype=float)
    return PairLines(dataclasses.replace(PairBudgets.same(ApproxDP(1.0, delta), len(epsilon)), values=epsilon))


def record_of(correct, guesses, draws, level):
    correct, guesses = np.atleast_1d(correct).astype(float), np.atleast_1d(guesses).astype(float)
    return Record(correct, guesses, np.zeros(len(correct), dtype=int), np.full(len(correct), level), draws)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_p_values_are_those_of_the_test_of_one_record(delta):
    level, draws, epsilon = 0.001, 1_000, RNG.random(40) * 2.0
    many = lines(epsilon, delta).log_p(record_of(CORRECT, GUESSES, draws, level))
    for k in range(40):
        one = binomial.p_value(CORRECT[k], GUESSES[k], draws, epsilon[k], delta, level, MASS_SHARE)
        # The mass is rounded down by 1e-9 of itself, which can move a p-value by about draws * 1e-9 of itself.
        assert math.exp(many[k]) == pytest.approx(one, rel=1e-5)
        assert math.exp(many[k]) >= one * (1.0 - 1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_the_bound_is_the_end_of_the_rejected_epsilons(delta):
    record = record_of(CORRECT, GUESSES, 1_000, 0.01)
    lower, _ = lines(np.full(40, 0.4), delta).bounds(record)
    assert np.any(lower > 0.0)
    for shift, rejected in ((-1e-6, True), (1e-6, False)):
        # Accuracy gets the level less what the mass was paid, so the p-value of the two parts decides.
        log_p = lines(np.maximum(lower + shift, 0.0), delta).log_p(record)
        assert np.all((log_p <= np.log(0.01) + 1e-9)[lower > 1e-3] == rejected)


def test_the_smallest_tails_are_bounded_and_not_lost():
    log_p = float(lines([0.1], 0.0).log_p(record_of(9e5, 1e6, 1_000_000, 0.01))[0])
    # Chernoff: n KL(0.9, expit(0.1)) = 1e6 * 0.3338
    rate = special.rel_entr(0.9, special.expit(0.1)) + special.rel_entr(0.1, special.expit(-0.1))
    assert log_p == pytest.approx(-1e6 * rate, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_the_bound_covers_at_its_level_by_enumeration(delta):
    # All records of 30 labelled draws of a rule that guesses with probability 0.5 and is right exactly as often as
    # epsilon = 0.7 allows: the probability that the bound exceeds 0.7 is at most the level; it is not far below.
    level, draws, epsilon = 0.05, 30, 0.7
    accuracy = float(special.expit(epsilon))
    guesses, correct = np.meshgrid(np.arange(draws + 1), np.arange(draws + 1), indexing="ij")
    g, c = guesses[correct <= guesses], correct[correct <= guesses]
    weight = stats.binom.pmf(g, draws, 0.5) * stats.binom.pmf(c, g, accuracy)
    lower, _ = lines(np.full(len(g), epsilon), delta).bounds(record_of(c, g, draws, level))
    above = float(weight[lower > epsilon].sum())
    assert above <= level
    assert above > (0.02 if delta == 0.0 else 0.0)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_power_is_that_of_the_exact_test_of_one_pair(delta):
    epsilon = np.array([0.0, 0.5, 1.0, 3.0])
    spent = 1e-5 * MASS_SHARE * (delta > 0.0)
    found = detectable_losses(epsilon, np.full(4, delta), 20_000, 1e-5, 0.1, 0.9, spent)
    for value, loss in zip(epsilon.tolist(), found.tolist(), strict=True):
        test = ExactTest(ApproxDP(value, delta), 20_000)
        test.start(1e-5)
        assert loss == pytest.approx(test.power(0.1, 0.9)[0], abs=1e-9)
    assert np.isinf(detectable_losses(np.array([30.0]), np.zeros(1), 1_000, 1e-5, 0.1, 0.9, 0.0)).all()


def test_a_tail_too_small_to_be_computed_is_at_most_what_could_be():
    # 1,631 of 1,812 at odds of 1: exp(-n KL) is above 1e-290 and the tail below it (an exact sum in logarithms).
    c, n = np.arange(1_631, 1_813), 1_812
    exact = special.logsumexp(stats.binom.logpmf(c, n, 0.5))
    chernoff = -n * (special.rel_entr(c[0] / n, 0.5) + special.rel_entr(1.0 - c[0] / n, 0.5))
    assert exact < math.log(1e-290) < chernoff
    found = log_tails(np.array([1_631.0]), np.array([float(n)]), np.array([0.5]), np.zeros(1))
    assert found[0] == pytest.approx(math.log(1e-290), rel=1e-12) and found[0] >= exact


def test_one_guess_is_enough_for_a_power_where_it_can_refute():
    # Of 80 draws with an event of mass 0.1 there is at most one guess with probability 0.0022, at most two with 0.011.
    # One right guess has a p-value of 0.5 against epsilon = 0: it refutes at a level of 0.6, and at no level below 0.5.
    zero = np.zeros(1)
    assert int(special.bdtrik(GUESSES_QUANTILE, 80, 0.1)) == 1

    def loss(draws, level):
        return detectable_losses(zero, zero, draws, level, 0.1, 0.8, 0.0)[0]

    # P(right) = 0.8 / 0.995 for one guess: the loss is its logit.
    assert loss(80, 0.6) == pytest.approx(special.logit(0.8 / 0.995), abs=1e-9)
    assert loss(80, 0.4) == math.inf
    assert loss(5, 0.6) == math.inf  # no guess
