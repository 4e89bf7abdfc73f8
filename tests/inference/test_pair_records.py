"""The test of many records at once against the test of one, and its exactness by enumeration."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import special, stats

from dpaudit.inference.pair_lines import GUESSES_QUANTILE, PairLines, Record, detectable_losses, log_tails
from dpaudit.privacy.claims import ApproxDP
from dpaudit.privacy.pair_budgets import PairBudgets


def lines(epsilon, delta):
    """The lines of pairs of one delta with an epsilon each."""
    epsilon = np.asarray(epsilon, dtype=float)
    return PairLines(dataclasses.replace(PairBudgets.same(ApproxDP(1.0, delta), len(epsilon)), values=epsilon))


def record_of(correct, guesses, draws, level):
    correct, guesses = np.atleast_1d(correct).astype(float), np.atleast_1d(guesses).astype(float)
    return Record(correct, guesses, np.zeros(len(correct), dtype=int), np.full(len(correct), level), draws)


def test_the_smallest_tails_are_bounded_and_not_lost():
    log_p = float(lines([0.1], 0.0).log_p(record_of(9e5, 1e6, 1_000_000, 0.01))[0])
    # Chernoff: n KL(0.9, expit(0.1)) = 1e6 * 0.3338
    rate = special.rel_entr(0.9, special.expit(0.1)) + special.rel_entr(0.1, special.expit(-0.1))
    assert log_p == pytest.approx(-1e6 * rate, rel=1e-9)


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
