"""The exact test on guesses: limits against sums, and its true level by enumeration of all records.

Nothing here is random: every rejection probability is an exact sum, so no assertion has an error rate.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpaudit.inference import binomial

LEVEL, MASS_SHARE = 0.05, 0.05


def tail(successes, trials, probability):
    """P(Binomial >= successes) by rational arithmetic."""
    p = Fraction(probability)
    return sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(max(successes, 0), trials + 1))


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.99, 1.0])
def test_the_upper_tail_is_the_binomial_sum(trials, probability):
    for successes in range(trials + 1):
        value = binomial.binomial_upper_tail(successes, trials, np.array([probability]))[0]
        assert value == pytest.approx(float(tail(successes, trials, probability)), abs=1e-13)  # scipy's betainc


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("level", [1e-6, 0.05, 0.5])
def test_a_limit_is_the_probability_whose_tail_is_the_level(trials, level):
    for successes in range(1, trials + 1):
        limit = binomial.binomial_lower(successes, trials, level)
        assert float(tail(successes, trials, limit)) == pytest.approx(level, rel=1e-9)  # inversion by scipy
        assert binomial.binomial_lower_each(np.array([successes]), np.array([trials]), np.array([level]))[0] == limit
        upper = binomial.binomial_upper(trials - successes, trials, level)
        assert float(tail(successes, trials, 1.0 - Fraction(upper))) == pytest.approx(level, rel=1e-7)


def test_limits_where_nothing_was_seen_all_was_seen_or_nothing_is_spent():
    assert binomial.binomial_upper(10.0, 10, 0.05) == binomial.binomial_upper(1e5, 100_000, 0.05) == 1.0
    assert binomial.binomial_lower(0, 10, 0.05) == 0.0
    assert binomial.binomial_lower(10, 10, 0.0) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.05, 0.4])
def test_largest_accuracy_bounds_every_law_on_a_grid_that_keeps_the_line(epsilon, delta):
    # brute force over the masses of the two guessing events under P and Q, in steps of 1/20, both directions asked
    factor, best = math.exp(epsilon), {}
    for p1, p0, q1, q0 in itertools.product(range(21), repeat=4):
        if p1 + p0 > 20 or q1 + q0 > 20:
            continue
        a, b, c, d = p1 / 20, p0 / 20, q1 / 20, q0 / 20
        slack = 1e-12  # rounding of the binomial sums that the limit is compared with
        if a - factor * c > delta + slack or d - factor * b > delta + slack:
            continue
        guessed = 0.5 * (a + b + c + d)
        if guessed > 0.0:
            accuracy = 0.5 * (a + d) / guessed
            assert accuracy <= binomial.largest_accuracy(epsilon, delta, guessed) + 1e-9
            best[guessed] = max(best.get(guessed, 0.0), accuracy)
    assert max(best.values()) > 0.9 * float(binomial.largest_accuracy(epsilon, delta, 1.0))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 800.0])
def test_largest_accuracy_is_attained_by_the_dominating_pair(epsilon):
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    for delta in (0.0, 0.1, 0.9):
        accuracy = delta + (1.0 - delta) * keep  # never abstaining
        assert binomial.largest_accuracy(epsilon, delta, 1.0) == pytest.approx(accuracy, abs=1e-15)


def test_where_guesses_are_rarer_than_delta_every_accuracy_is_allowed():
    assert binomial.largest_accuracy(1.0, 0.1, 0.05) == 1.0
    assert binomial.largest_accuracy(1.0, 0.1, 0.0) == 1.0


def rejection_probability(draws, guess_probability, accuracy, epsilon, cost, level):
    """By enumeration of all records: the number of guesses is binomial, that of correct ones given it."""
    total = 0.0
    for guesses in range(draws + 1):
        weight = stats.binom.pmf(guesses, draws, guess_probability)
        correct = np.arange(guesses + 1)
        p = [binomial.p_value(k, guesses, draws, epsilon, cost, level, MASS_SHARE) for k in correct.tolist()]
        assert np.all(np.diff(p) <= 1e-12)  # more correct guesses never weaken the evidence
        total += weight * stats.binom.pmf(correct, guesses, accuracy)[np.array(p) <= level].sum()
    return total


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("guess_probability", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("level", [0.05, 0.4])
def test_a_pure_line_on_its_boundary_is_rejected_with_at_most_the_level(epsilon, guess_probability, level):
    accuracy = 1.0 / (1.0 + math.exp(-epsilon))
    assert rejection_probability(60, guess_probability, accuracy, epsilon, 0.0, level) <= level + 1e-12


def test_without_abstention_a_pure_line_is_tested_at_the_full_binomial_level():
    accuracy, draws = 1.0 / (1.0 + math.exp(-1.0)), 60
    largest = max(float(tail(k, draws, accuracy)) for k in range(draws + 2) if tail(k, draws, accuracy) <= LEVEL)
    found = rejection_probability(draws, 1.0, accuracy, 1.0, 0.0, LEVEL)
    assert found == pytest.approx(largest, abs=1e-9)  # no smaller: nothing of the level is given away


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize(
    ("guess_probability", "cost"), [(1.0, 0.05), (0.3, 0.05), (0.3, 0.01), (0.05, 0.02), (0.9, 0.6)]
)
@pytest.mark.parametrize("level", [0.05, 0.4])
def test_a_line_with_delta_on_its_boundary_is_rejected_with_at_most_the_level(epsilon, guess_probability, cost, level):
    accuracy = float(binomial.largest_accuracy(epsilon, cost, guess_probability))
    assert rejection_probability(60, guess_probability, accuracy, epsilon, cost, level) <= level + 1e-12


def test_a_p_value_is_at_most_one_and_one_without_a_guess():
    assert binomial.p_value(0, 0, 100, 1.0, 0.0, LEVEL, MASS_SHARE) == 1.0
    assert binomial.p_value(0, 0, 100, 1.0, 0.1, LEVEL, MASS_SHARE) == 1.0
    assert binomial.p_value(0, 50, 100, 1.0, 0.1, LEVEL, MASS_SHARE) == 1.0


def test_no_p_value_is_zero():
    """One of 0 would be a proof; findings had none, but rules on low bits and stated error bounds of mechanisms had."""
    assert binomial.binomial_upper_tail(20_000, 20_000, np.array([0.5]))[0] == 0.0
    assert binomial.p_value(20_000, 20_000, 20_000, 0.0, 0.0, LEVEL, MASS_SHARE) > 0.0


def test_a_p_value_with_delta_is_never_below_what_is_spent_on_the_mass():
    p = binomial.p_value(10_000, 10_000, 10_000, 0.0, 1e-6, LEVEL, MASS_SHARE)
    assert LEVEL * MASS_SHARE <= p <= LEVEL * MASS_SHARE + 1e-12


@pytest.mark.parametrize("correct, guesses, draws", [(60, 70, 1_000), (9, 10, 400), (30, 60, 60), (0, 5, 50)])
@pytest.mark.parametrize("delta_cost", [0.001, 0.02, 0.1])
def test_the_p_value_of_a_line_with_a_delta_is_that_of_its_parts(correct, guesses, draws, delta_cost):
    # By other functions: a beta quantile is the lower limit on the probability of a guess, at its part of the level.
    epsilon, level, share = 0.7, 0.03, 0.2
    least = stats.beta.ppf(level * share, guesses, draws - guesses + 1)
    limit = min(1.0, (math.exp(epsilon) + delta_cost / least) / (1.0 + math.exp(epsilon)))
    expected = min(1.0, level * share + stats.binom.sf(correct - 1, guesses, limit))
    # 1e-9: the quantile and the tail are each good to about 1e-12
    assert binomial.p_value(correct, guesses, draws, epsilon, delta_cost, level, share) == pytest.approx(
        expected, rel=1e-9
    )
