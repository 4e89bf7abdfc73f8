"""Wealth of guesses: its expectation by enumeration of all labels and outcomes, its shape, and its thresholds.

Nothing here is random: every probability is an exact sum over labelled draws, so no assertion has an error rate.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.testing import wealth

FIXED = settings(derandomize=True, deadline=None, max_examples=60)
ROUNDING = 1e-12  # sums of at most 6**4 products of 4 factors: 6**4 * 20 * 2**-53 = 3e-12 at wealth 1, far less seen
FRACTIONS = wealth.fractions(100, math.log(20.0))


def randomised_response(epsilon):
    keep = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    return [keep, 1.0 - keep], [1.0 - keep, keep]


def dominating_pair(epsilon, delta):
    """The laws that lose the most under (epsilon, delta)-DP, on four outcomes."""
    (keep, flip), _ = randomised_response(epsilon)
    rest = 1.0 - delta
    return [delta, rest * keep, rest * flip, 0.0], [0.0, rest * flip, rest * keep, delta]


def labelled_draws(p, q):
    """(label, outcome, probability) of one labelled draw with a fair coin."""
    return [(1, o, 0.5 * p[o]) for o in range(len(p))] + [(0, o, 0.5 * q[o]) for o in range(len(q))]


def column(label, guess):
    """0 correct, 1 wrong, 2 abstained (guess None)."""
    return 2 if guess is None else 0 if guess == label else 1


def expected_wealth(p, q, guesses, epsilon, delta, draws=3, row=None):
    """By enumeration of all labels and outcomes of `draws` draws under one rule: a guess for each outcome."""
    row = len(set(guesses) - {None}) - 1 if row is None else row
    total = 0.0
    for game in itertools.product(labelled_draws(p, q), repeat=draws):
        record = np.zeros((2, 3))
        for label, outcome, _ in game:
            record[row, column(label, guesses[outcome])] += 1
        log = wealth.log_wealth(record, np.array([epsilon]), np.array([delta]), FRACTIONS)[0]
        total += math.prod(probability for *_, probability in game) * math.exp(log)
    return total


def hockey_stick(p, q, epsilon):
    return sum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True))


# --- the expectation ---


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("guesses", [(1, 0), (1, None), (None, 0)])
def test_expected_wealth_is_one_for_randomised_response_on_its_budget(epsilon, guesses):
    p, q = randomised_response(epsilon)
    # each of the two events has probability ratio exactly e^epsilon: the payoff has mean exactly 0, no bet is wasted
    assert expected_wealth(p, q, guesses, epsilon, 0.0) == pytest.approx(1.0, abs=ROUNDING)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [0.01, 0.3])
@pytest.mark.parametrize("guesses", [(1, 1, 0, 0), (1, 1, None, None), (None, None, 0, 0)])
def test_expected_wealth_is_one_for_the_dominating_pair_of_an_approximate_claim(epsilon, delta, guesses):
    p, q = dominating_pair(epsilon, delta)
    # P(S) = e^epsilon Q(S) + delta for S = {0, 1}, and the other way round for {2, 3}: the line is met with equality
    assert expected_wealth(p, q, guesses, epsilon, delta) == pytest.approx(1.0, abs=ROUNDING)


def test_a_two_sided_rule_that_paid_for_one_side_only_would_win():
    p, q = dominating_pair(0.5, 0.1)  # the negative control of the two tests above: the cost of delta is per event
    assert expected_wealth(p, q, (1, 1, 0, 0), 0.5, 0.1, row=0) > 1.01


@FIXED
@given(
    st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any),
    st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any),
    st.sampled_from([g for g in itertools.product((0, 1, None), repeat=3) if set(g) != {None}]),
    st.floats(0.0, 3.0),
)
def test_expected_wealth_is_at_most_one_for_every_law_that_keeps_the_line(first, second, guesses, epsilon):
    p, q = (np.array(weights) / sum(weights) for weights in (first, second))
    delta = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))  # the least delta that both directions keep
    assert expected_wealth(p, q, guesses, epsilon, delta, draws=2) <= 1.0 + ROUNDING


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_expected_wealth_stays_one_when_the_rule_depends_on_earlier_draws(delta):
    p, q = dominating_pair(0.7, delta)
    rules = {1: (1, 1, 0, 0), 0: (None, None, 0, 0)}  # after a win, two events and a bet; after a loss, one and an idle
    line = np.array([0.7]), np.array([delta])
    total = 0.0
    for game in itertools.product(labelled_draws(p, q), repeat=3):
        records, won = np.zeros((2, 2, 3)), 1
        for label, outcome, _ in game:
            guess = rules[won][outcome]
            records[won, won, column(label, guess)] += 1
            won = int(guess == label)
        log = wealth.log_wealth(records[0], *line, FRACTIONS)[0]
        log += wealth.log_wealth(records[1], *line, FRACTIONS)[0]
        total += math.prod(probability for *_, probability in game) * math.exp(log)
    # a product of two wealths of which each draw moves one, known before it: by induction its mean is 1
    assert total == pytest.approx(1.0, abs=ROUNDING)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.5, 0.05)])
@pytest.mark.parametrize("level", [0.05, 0.3])
def test_wealth_ever_reaches_the_threshold_with_probability_at_most_the_level(epsilon, delta, level):
    draws = 60
    p, q = dominating_pair(epsilon, delta)
    correct = 0.5 * (p[0] + p[1] + q[2] + q[3])  # of the rule (1, 1, 0, 0), which never abstains
    fraction = wealth.fractions(draws, -math.log(level))
    alive, crossed = {0: 1.0}, 0.0  # probability of each number of correct guesses, not yet crossed
    for t in range(1, draws + 1):
        after = {}
        for k, probability in alive.items():
            after[k] = after.get(k, 0.0) + probability * (1.0 - correct)
            after[k + 1] = after.get(k + 1, 0.0) + probability * correct
        alive = {}
        for k, probability in after.items():
            record = np.array([[0, 0, 0], [k, t - k, 0]])
            if wealth.log_wealth(record, np.array([epsilon]), np.array([delta]), fraction)[0] >= -math.log(level):
                crossed += probability
            else:
                alive[k] = probability
    assert 0.1 * level < crossed <= level  # Ville's inequality, by exact dynamic programming; and it is not idle


# --- the formula ---


@FIXED
@given(
    st.lists(st.integers(0, 30), min_size=6, max_size=6),
    st.floats(0.0, 5.0),
    st.floats(0.0, 0.9),
)
def test_log_wealth_is_the_log_of_the_average_product_of_factors(counts, epsilon, delta):
    record = np.array(counts).reshape(2, 3)
    products = []
    for fraction in FRACTIONS.tolist():
        product = 1.0
        for row, cost in zip(record.tolist(), (delta / 2.0, delta), strict=True):
            stake = fraction / (math.exp(epsilon) + cost)
            for times, payoff in zip(row, (1.0 - cost, -math.exp(epsilon) - cost, -cost), strict=True):
                product *= (1.0 + stake * payoff) ** times
        products.append(product)
    value = wealth.log_wealth(record, np.array([epsilon]), np.array([delta]), FRACTIONS)[0]
    direct = sum(products) / len(products)
    # up to 180 factors, each off by a few 2**-53; the smallest is 1 - 0.96, where cancellation gives 1e-15 / 0.04
    assert value == pytest.approx(math.log(direct), abs=1e-10)


def test_an_empty_record_has_wealth_one():
    assert wealth.log_wealth(np.zeros((2, 3)), np.array([0.0, 1.0]), np.array([0.1, 0.0]), FRACTIONS).tolist() == [0, 0]


@pytest.mark.parametrize("epsilon", [30.0, 700.0, 1e5])
def test_log_wealth_is_finite_at_budgets_beyond_the_range_of_the_exponential(epsilon):
    record = np.array([[5, 1, 7], [9, 2, 3]])
    value = wealth.log_wealth(record, np.array([epsilon]), np.array([0.01]), FRACTIONS)[0]
    # a correct guess and an abstention then change nothing; a wrong guess costs 1 - fraction
    expected = math.log(np.mean((1.0 - FRACTIONS) ** 3))
    assert value == pytest.approx(expected, abs=20 * math.exp(-30.0))


# --- monotone in the parameter ---


@FIXED
@given(st.lists(st.integers(0, 50), min_size=6, max_size=6))
def test_wealth_decreases_in_delta_and_without_delta_in_epsilon(counts):
    record = np.array(counts).reshape(2, 3)
    grid = np.linspace(0.0, 4.0, 41)
    by_epsilon = wealth.log_wealth(record, grid, np.zeros_like(grid), FRACTIONS)
    by_delta = wealth.log_wealth(record, np.full_like(grid, 0.7), grid / 4.0, FRACTIONS)
    assert np.all(np.diff(by_epsilon) <= 1e-12)  # rounding of sums of 300 logarithms
    assert np.all(np.diff(by_delta) <= 1e-12)


def test_wealth_may_increase_in_epsilon_where_there_is_a_delta():
    # why bets whose parameters are searched hold their stakes fixed: with many abstentions the charge for delta, in
    # units of the largest legal stake, falls with epsilon: -cost / (e^epsilon + cost)
    record = np.array([[0, 0, 0], [0, 0, 100]])
    values = wealth.log_wealth(record, np.array([0.0, 2.0]), np.array([0.1, 0.1]), FRACTIONS)
    assert values[1] > values[0]


# --- thresholds, grids and stakes ---


@FIXED
@given(st.integers(1, 10**9), st.floats(0.0, 40.0))
def test_fractions_are_stakes_below_the_largest_legal_one(draws, log_threshold):
    fraction = wealth.fractions(draws, log_threshold)
    assert np.all((fraction > 0.0) & (fraction < 1.0)) and np.all(np.diff(fraction) > 0.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.02)])
@pytest.mark.parametrize("guesses", [0, 3, 40])
def test_critical_correct_is_the_first_count_that_a_linear_search_finds(epsilon, delta, guesses):
    threshold, draws = math.log(20.0), 100

    def reaches(correct):
        record = np.array([[0, 0, 0], [correct, guesses - correct, draws - guesses]])
        return wealth.log_wealth(record, np.array([epsilon]), np.array([delta]), FRACTIONS)[0] >= threshold

    first = next((correct for correct in range(guesses + 1) if reaches(correct)), guesses + 1)
    found = wealth.critical_correct(guesses, draws, epsilon, delta, FRACTIONS, threshold)
    assert found == first


@pytest.mark.parametrize("guesses", [20, 60])
def test_critical_correct_counts_no_draw_that_was_not_made(guesses):
    # The threshold lies 1e-9 above the wealth of k correct guesses, so that k + 1 are needed; one draw of abstention
    # more or less, or one of another rule, moves it by about delta * stake.
    epsilon, delta, draws = 0.5, 0.1, 100

    def log_wealth(correct):
        record = np.array([[0, 0, 0], [correct, guesses - correct, draws - guesses]])
        return wealth.log_wealth(record, np.array([epsilon]), np.array([delta]), FRACTIONS)[0]

    for k in range(guesses // 2, guesses):
        assert log_wealth(k + 1) > log_wealth(k) + 1e-3
        assert wealth.critical_correct(guesses, draws, epsilon, delta, FRACTIONS, log_wealth(k) + 1e-9) == k + 1
        assert wealth.critical_correct(guesses, draws, epsilon, delta, FRACTIONS, log_wealth(k) - 1e-9) == k
