"""The lines of all pairs of a table: bounds that are valid for the claim's own parameter, and as strong as said."""

import math

import numpy as np
import pytest
from scipy import special, stats
from support.pair_records import BOTH, ONLY_X, lines_of, record_of

import dpaudit
from dpaudit.exact.response import loss_on_claim
from dpaudit.inference.binomial import binomial_lower
from dpaudit.inference.bound_search import just_above
from dpaudit.inference.guess_rules import SIZES as RULE_SIZES
from dpaudit.inference.pair_lines import GUESSES_QUANTILE, SIZES, detectable_losses, log_tails
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.privacy.claims import gaussian_profile
from dpaudit.privacy.renyi_lines import RenyiLines, as_lines

LEVEL, DRAWS = 0.01, 60
MU = 1.0
ANCHORS, MASS_SHARE = PAYOFF_SIZES.anchors, RULE_SIZES.mass_share
GAUSSIAN = dpaudit.FDP(lambda rate: stats.norm.cdf(stats.norm.isf(rate) - MU), name="f of mu = 1")
FREE = {
    "gaussian": dpaudit.GaussianDP(MU),
    "trade-off": GAUSSIAN,
    "profile": dpaudit.ProfileClaim(dpaudit.GaussianDP(MU).profile),
    "zcdp": dpaudit.ZeroConcentratedDP(0.5),
    "renyi": dpaudit.RenyiDP(2.0, 1.0),
}


# Every record of 60 draws of a rule that always guesses, and of one that guesses in half of them.
CORRECT, GUESSES = (side.ravel() for side in np.meshgrid(np.arange(0, 61, 3), [0, 30, 60]))
SEEN = GUESSES >= CORRECT


@pytest.mark.parametrize("name", sorted(FREE))
@pytest.mark.parametrize("way", [BOTH, ONLY_X])
def test_the_bound_is_the_largest_value_of_which_the_two_limits_break_a_line(name, way):
    """By the definition, a record, an anchor and a value at a time."""
    claim, level = FREE[name], 0.01
    record = record_of(CORRECT[SEEN], GUESSES[SEEN], 60, way)
    table = lines_of(claim, np.full(len(record.correct), claim.value))
    lower, epsilon_lower = table.bounds(record)
    lines = as_lines(claim)
    for k in range(0, len(lower), 7):
        spent = level * MASS_SHARE
        r = binomial_lower(record.correct[k], record.guesses[k], level - spent)
        s = binomial_lower(record.guesses[k], 60, spent)
        for value, is_broken in ((lower[k] * (1 - 1e-9), True), (max(lower[k], 1e-3) * 1.1, False)):
            if value > 0.0 and value < 500.0:
                deltas = [float(lines.lines(np.array([value]), a)[1][0]) for a in ANCHORS]
                excesses = s * (r * (1.0 + np.exp(ANCHORS)) - np.exp(ANCHORS))
                assert (excesses > np.array(deltas) * (1.0 if way == BOTH else 0.5)).any() == is_broken, (k, value)
    assert (epsilon_lower >= 0.0).all() and np.isfinite(lower).all() and (lower[record.guesses == 0.0] == 0.0).all()


# Each law with two outcomes keeps the lines that its least promise implies: brute force over a grid of laws.
RENYI = (dpaudit.RenyiDP(2.0, 1.0), dpaudit.RenyiDP(1.2, 0.1), dpaudit.RenyiDP(40.0, 0.7),
         dpaudit.ZeroConcentratedDP(0.5), dpaudit.ZeroConcentratedDP(0.01))  # fmt: skip


@pytest.mark.parametrize("claim", RENYI, ids=str)
def test_no_law_that_keeps_a_renyi_promise_breaks_a_line_that_it_implies(claim):
    grid = np.concatenate([np.geomspace(1e-6, 0.5, 120), 1.0 - np.geomspace(1e-6, 0.5, 120)])
    p, q = np.meshgrid(grid, grid, indexing="ij")
    keeps = np.ones(p.shape, dtype=bool)
    for order in claim.orders:
        most = (order - 1.0) * float(claim.renyi_epsilons(np.array([claim.value]), order)[0])
        for a, b in ((p, q), (q, p)):
            logs = [order * np.log(u) + (1.0 - order) * np.log(v) for u, v in ((a, b), (1.0 - a, 1.0 - b))]
            keeps &= np.logaddexp(*logs) <= most
    for anchor in (0.0, 0.1, 0.5, 1.0, 3.0):
        excess = float(np.where(keeps, p - np.exp(anchor) * q, -1.0).max())
        delta = RenyiLines(claim).profile(anchor)
        assert excess <= delta
        # As tight as the grids are: within 30% of what a law reaches, or 0.02.
        assert delta <= max(1.3 * excess, excess + 0.02)


def test_implied_lines_promise_less_as_the_value_grows_and_nothing_at_the_end():
    for claim in (dpaudit.RenyiDP(1.001, 1.0), dpaudit.RenyiDP(1e4, 1.0), dpaudit.ZeroConcentratedDP(1.0)):
        values = np.array([0.0, 1e-3, 0.1, 1.0, 30.0, 1e6, np.inf])
        for anchor in ANCHORS:
            deltas = RenyiLines(claim).lines(values, anchor)[1]
            assert (np.diff(deltas) >= 0.0).all() and np.isfinite(deltas).all()
            assert deltas[0] < 1e-2 and deltas[-1] == 1.0
    assert RenyiLines(dpaudit.ZeroConcentratedDP(0.5)).profile(1.0) > gaussian_profile(np.array([1.0]), 1.0)[0]


def test_a_budget_of_nothing_and_a_profile_that_never_ends():
    nothing = lines_of(dpaudit.GaussianDP(1.0), np.zeros(2))
    lower, _ = nothing.bounds(record_of([60, 30], 60, 60))
    assert lower[0] > just_above(0.0) and lower[1] == 0.0
    constant = lines_of(dpaudit.ProfileClaim(lambda epsilon: 0.1), np.ones(2))  # its line at 0 has no scale
    lower, epsilon_lower = constant.bounds(record_of([60, 33], 60, 60))
    assert lower.tolist() == [1000.0, 0.0] and epsilon_lower[0] > 2.0


def own_lines(budget, delta):
    return lines_of(dpaudit.ApproxDP(1.0, delta), budget)


def p_value(correct, guesses, draws, way, level, epsilon, delta):
    """By the definition: the tail at the largest accuracy that the line allows, and what the limit of s has spent."""
    spent = level * MASS_SHARE if delta > 0.0 else 0.0
    extra = 0.0
    if delta > 0.0:
        s_lower = stats.beta.ppf(spent, guesses, draws - guesses + 1) if guesses else 0.0
        extra = delta * (1.0 if way == BOTH else 0.5) / s_lower if s_lower else math.inf
    accuracy = min(1.0, (math.exp(epsilon) + extra) / (1.0 + math.exp(epsilon)))
    return min(1.0, spent + stats.binom.sf(correct - 1, guesses, accuracy))


@pytest.mark.parametrize("delta", [0.0, 0.03])
@pytest.mark.parametrize("way", [BOTH, ONLY_X])
def test_each_pair_has_the_p_value_of_its_own_line(delta, way):
    correct, guesses, budget = (
        side.ravel() for side in np.meshgrid(np.arange(0, 61, 6), [0, 30, 60], [0.0, 0.3, 2.0], indexing="ij")
    )
    kept = correct <= guesses
    correct, guesses, budget = correct[kept], guesses[kept], budget[kept]
    lines = own_lines(budget, delta)
    record = record_of(correct, guesses, DRAWS, way)
    found = np.exp(lines.log_p(record))
    for k, epsilon in enumerate(budget):
        expected = p_value(correct[k], guesses[k], DRAWS, way, LEVEL, epsilon, delta)
        # The limit of s is rounded down by 1e-9 of itself.
        assert found[k] == pytest.approx(expected, rel=1e-6), k
    lower, epsilon_lower = lines.bounds(record)
    assert np.array_equal(lower, epsilon_lower)  # the parameter is epsilon at the delta of reports
    over = lower > budget
    assert np.array_equal(over, found <= LEVEL)
    assert over.any() and not over.all()
    # And the bound is where the p-value passes the level, also away from the budgets.
    for k in np.flatnonzero(lower > 0.0):
        at = [p_value(correct[k], guesses[k], DRAWS, way, LEVEL, lower[k] * by, delta) for by in (0.999, 1.001)]
        assert at[0] <= LEVEL < at[1], k


def test_the_line_that_a_record_speaks_against_is_the_pairs_own():
    lines = own_lines(np.array([0.5, 0.7]), 0.02)
    assert [lines.line(record_of([50, 20], 60, DRAWS), pair) for pair in (0, 1)] == [(0.0, 0.5, 0.02), (0.0, 0.7, 0.02)]


@pytest.mark.parametrize("delta", [0.0, 0.002])
def test_each_pair_has_the_loss_that_is_found_at_its_budget_and_never_a_smaller_one(delta):
    """Against the same search at each budget itself; of many budgets a pair has that of one at most 1.6% larger."""
    budget = np.array([0.0, 1e-4, 0.003, 0.11, 0.5, 0.5, 3.0, 1.7])
    spent = 1e-3 * MASS_SHARE * (delta > 0.0)

    def exact(budget):
        return detectable_losses(budget, np.full(len(budget), delta), 4_000, 1e-3, 0.2, 0.9, spent)

    def found(budget):
        return own_lines(budget, delta).losses(np.full(len(budget), 0.2), 4_000, 1e-3, 0.9)

    assert found(budget).tolist() == exact(budget).tolist() and np.isfinite(found(budget)).all()
    # From 0.001 less a factor of 1,000 to 3 times as much 1,500 values stand in a ratio of 3e9^(1/1499) = 1.0147.
    many = np.geomspace(1e-3, 3.0, SIZES.max_values + 1)
    assert (found(many) >= exact(many)).all() and (found(many) <= exact(1.015 * many)).all()
    assert not np.array_equal(found(many), exact(many))


@pytest.mark.parametrize(
    "claim",
    [dpaudit.ApproxDP(epsilon, delta) for epsilon in (0.1, 1.0) for delta in (0.0, 0.002)] + [dpaudit.GaussianDP(0.2)],
)
def test_randomised_response_of_that_loss_is_rejected_as_often_as_was_asked(claim):
    draws, level = 1_000, 1e-3
    losses = lines_of(claim, np.full(3, claim.value)).losses(np.full(3, 0.2), draws, level, 0.9)
    assert np.ptp(losses) == 0.0 and losses[0] > loss_on_claim(claim, 0.2)
    # 140 to 259 guesses, but for a probability below 1e-4, and every number of correct ones.
    guesses, correct = (side.ravel() for side in np.meshgrid(np.arange(140, 260), np.arange(260), indexing="ij"))
    guesses, correct = guesses[correct <= guesses], correct[correct <= guesses]
    of_each = stats.binom.pmf(guesses, draws, 0.2) * stats.binom.pmf(correct, guesses, special.expit(losses[0]))
    lines = lines_of(claim, np.full(len(guesses), claim.value))
    rejected = lines.log_p(record_of(correct, guesses, draws, level=level)) <= math.log(level)
    # At least what was asked, and little more: counts are whole numbers.
    assert 0.9 <= of_each[rejected].sum() <= 0.97


def test_free_lines_name_the_anchor_that_has_the_p_value():
    claim = dpaudit.GaussianDP(1.0)
    correct, guesses = np.array([59, 40, 30, 29]), np.array([60, 40, 60, 31])
    table = lines_of(claim, np.full(4, claim.value))
    record = record_of(correct, guesses, DRAWS)
    lower, _ = table.bounds(record)
    for pair in range(4):
        found = [p_value(correct[pair], guesses[pair], DRAWS, BOTH, LEVEL, a, deltas[0]) for a, deltas in
                 ((a, claim.lines(np.array([1.0]), a)[1]) for a in ANCHORS)]  # fmt: skip
        anchor, epsilon, delta = table.line(record, pair)
        assert epsilon == anchor and delta == float(claim.lines(np.array([1.0]), anchor)[1][0])
        # The limit of s is rounded down by 1e-9 of itself.
        assert found[ANCHORS.index(anchor)] == pytest.approx(min(found), rel=1e-6)
        assert math.exp(table.log_p(record)[pair]) == pytest.approx(min(found), rel=1e-6)
        assert (min(found) <= LEVEL) == (lower[pair] > 1.0)
    assert (lower[:2] > 1.0).all() and lower[2] == 0.0


def test_the_smallest_tails_are_bounded_and_not_lost():
    log_p = float(own_lines([0.1], 0.0).log_p(record_of(9e5, 1e6, 1_000_000))[0])
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
