"""The bound on the number of correct guesses: against enumeration, a linear program, and what others have printed."""

import numpy as np
import pytest
from scipy import optimize, special, stats

from dpaudit.scores.one_run import _tail_and_spread, delta_lower, gaussian_is_rejected


def tail_upper(epsilon, guesses, correct, delta_budget):
    """The theorem's bound: the largest probability of at least `correct` right guesses, for m delta."""
    if correct <= 0:
        return np.ones_like(epsilon)
    tail, spread = _tail_and_spread(epsilon, guesses, correct)
    with np.errstate(divide="ignore"):
        extra = np.where(np.asarray(delta_budget) > 0.0, delta_budget * (1.0 - tail) / spread, 0.0)
    return np.minimum(1.0, tail + extra)


def largest_tail(guesses, correct, lines, canaries):
    """P(W >= correct) maximised by HiGHS over all laws of W that keep the swap inequalities of some lines."""
    states, rows, limits = guesses + 1, [], []
    for number, (epsilon, delta) in enumerate(lines):
        slack = states + number * guesses
        total = np.zeros(states + len(lines) * guesses)
        for k in range(1, guesses + 1):
            row = np.zeros_like(total)
            row[k], row[k - 1], row[slack + k - 1] = k, -np.exp(epsilon) * (guesses - k + 1), -1.0
            rows.append(row)
            limits.append(0.0)
            total[slack + k - 1] = 1.0
        rows.append(total)
        limits.append(canaries * delta)
    cost, mass = np.zeros_like(rows[0]), np.zeros_like(rows[0])
    cost[correct:states], mass[:states] = -1.0, 1.0
    found = optimize.linprog(cost, A_ub=np.array(rows), b_ub=limits, A_eq=mass[None], b_eq=[1.0], bounds=(0, None))
    return -found.fun


@pytest.mark.parametrize("guesses, correct, epsilon, delta", [
    (12, 11, 0.5, 1e-3), (20, 17, 1.0, 1e-2), (20, 20, 2.0, 1e-3), (30, 22, 0.0, 3e-3), (8, 3, 0.3, 1e-4),
    (10, 9, 1.0, 0.2),
])  # fmt: skip
def test_the_bound_is_the_linear_programs_optimum(guesses, correct, epsilon, delta):
    expected = largest_tail(guesses, correct, [(epsilon, delta)], canaries=30)
    found = tail_upper(np.array([epsilon]), guesses, correct, np.array([30 * delta]))[0]
    assert found == pytest.approx(expected, abs=1e-7)  # HiGHS works to 1e-7


@pytest.mark.parametrize("epsilon, delta, correct", [(0.5, 1e-3, 9), (1.0, 1e-2, 10), (0.0, 5e-3, 8)])
def test_a_mechanism_attains_the_bound(epsilon, delta, correct):
    """It draws W from the extremal law and shows m guesses of which W, at random, are right; delta is enumerated."""
    m = 10
    binomial = stats.binom.pmf(np.arange(m + 1), m, special.expit(epsilon))
    tail = binomial[correct:].sum()
    weight = m * delta * tail / (correct * binomial[correct])
    law = (1.0 - weight) * binomial + weight * np.where(np.arange(m + 1) >= correct, binomial / tail, 0.0)
    assert law[correct:].sum() == pytest.approx(
        tail_upper(np.array([epsilon]), m, correct, np.array([m * delta]))[0], rel=1e-9
    )
    # outputs of one agreement with coin i flipped: C(m - 1, k - 1) outputs that agree at i and have k agreements in all
    each = law / special.comb(m, np.arange(m + 1))
    k = np.arange(1, m + 1)
    agree = special.comb(m - 1, k - 1) * np.maximum(0.0, each[k] - np.exp(epsilon) * each[k - 1])
    differ = special.comb(m - 1, k - 1) * np.maximum(0.0, each[k - 1] - np.exp(epsilon) * each[k])
    assert agree.sum() + differ.sum() == pytest.approx(delta, rel=1e-9)  # its exact delta


def test_without_delta_the_bound_is_the_binomial_tail():
    epsilon = np.array([0.0, 0.5, 2.0])
    expected = stats.binom.sf(44, 50, special.expit(epsilon))
    assert tail_upper(epsilon, 50, 45, np.zeros(3)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("guesses, correct, canaries", [(50, 47, 100), (400, 300, 400), (10_000, 9_000, 20_000)])
def test_delta_lower_inverts_the_bound(guesses, correct, canaries):
    epsilon = np.linspace(0.0, 3.0, 13)
    delta = delta_lower(epsilon, guesses, correct, canaries, 0.05)
    rejected = delta > 0.0
    assert rejected.any()
    tails = tail_upper(epsilon, guesses, correct, canaries * delta)
    assert tails[rejected] == pytest.approx(0.05, rel=1e-6)
    assert np.all(tails[rejected] <= 0.05)
    assert np.all(np.diff(delta) <= 0.0)


def test_deltas_of_ten_million_guesses_are_rounded_down():
    # scipy's binomial law comes from Boost's beta functions, which lose 1e-11 there; log-gammas lose up to 3e-8
    guesses, epsilon = 10_000_000, np.linspace(0.0, 3.0, 25)
    for above in (2.0, 3.0, 5.0):
        for at, accuracy in zip(epsilon, special.expit(epsilon), strict=True):
            correct = int(guesses * accuracy + above * np.sqrt(guesses * accuracy * (1.0 - accuracy)))
            tail, mass = stats.binom.sf(correct - 1, guesses, accuracy), stats.binom.pmf(correct, guesses, accuracy)
            exact = max(0.0, 0.05 - tail) * correct * mass / (guesses * tail * (1.0 - tail))
            found = delta_lower(np.array([at]), guesses, correct, guesses, 0.05)[0]
            assert (1.0 - 2e-7) * exact <= found <= exact


def test_an_underflowing_tail_gives_the_limit_that_no_sampling_error_is_left_in():
    # 10^5 guesses, all right: at epsilon 0 the tail is 2^-100000; the limit is level (v - e^epsilon (r - v)) / c
    assert delta_lower(np.zeros(1), 100_000, 100_000, 100_000, 0.05)[0] == pytest.approx(0.05, rel=1e-6)


def test_no_guess_and_no_right_guess_reject_nothing():
    assert delta_lower(np.zeros(1), 10, 0, 10, 0.05)[0] == 0.0
    assert delta_lower(np.zeros(1), 0, 0, 10, 0.05)[0] == 0.0
    assert not gaussian_is_rejected(np.array([0.1]), 10, 0, 10, 0.05)[0]


def gaussian_lines(mu):
    """Lines of mu-Gaussian DP, those of negative epsilon by symmetry."""
    lines = []
    for epsilon in np.linspace(-2.0, 3.0, 41):  # with 15 the optimum is 9% too large
        e = abs(epsilon)
        delta = special.ndtr(-e / mu + mu / 2) - np.exp(e) * special.ndtr(-e / mu - mu / 2)
        lines.append((epsilon, delta if epsilon >= 0 else 1.0 - np.exp(epsilon) + np.exp(epsilon) * delta))
    return lines


@pytest.mark.parametrize("mu, canaries, guesses", [(0.5, 60, 30), (1.0, 40, 40)])
def test_the_recursion_over_thresholds_never_rejects_what_the_whole_program_allows(mu, canaries, guesses):
    """The recursion uses fewer inequalities than the program: its level must be at least the optimum."""
    for correct in (guesses - 4, guesses - 1):
        optimum = largest_tail(guesses, correct, gaussian_lines(mu), canaries)
        assert not gaussian_is_rejected(np.array([mu]), guesses, correct, canaries, optimum * 0.999)[0]
        assert gaussian_is_rejected(np.array([mu]), guesses, correct, canaries, min(0.999, optimum * 2.5))[0]
