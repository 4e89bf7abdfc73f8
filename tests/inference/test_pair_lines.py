"""The lines of all pairs of a table: bounds that are valid for the claim's own parameter, and as strong as said."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from scipy import stats

import dpaudit
from dpaudit.exact.response import loss_on_claim
from dpaudit.inference.binomial import binomial_lower
from dpaudit.inference.bound_search import just_above
from dpaudit.inference.guess_rules import SIZES as RULE_SIZES
from dpaudit.inference.pair_lines import PairLines, Record
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.privacy.claims import DirectedProfile, gaussian_profile, no_promise
from dpaudit.privacy.pair_budgets import PairBudgets
from dpaudit.privacy.renyi_lines import RenyiLines, as_lines

BOTH, ONLY_X, ONLY_X_PRIME = range(3)  # positions in `WAYS`
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


def with_budgets(claim, budget):
    """The lines of pairs of one claim with a budget each."""
    budget = np.asarray(budget, dtype=float)
    return PairLines(dataclasses.replace(PairBudgets.same(claim, len(budget)), values=budget))


@functools.cache
def made(claim):
    return with_budgets(claim, [claim.value])


def table_of(claim, pairs):
    """The lines of so many pairs; those of a claim are computed once."""
    return made(claim) if pairs == 1 else with_budgets(claim, np.full(pairs, claim.value))


def records(correct, guesses, draws, sides=2.0, level=0.01):
    way = np.where(np.asarray(sides) == 2.0, BOTH, ONLY_X)
    correct, guesses, way, level = np.broadcast_arrays(correct, guesses, way, level)
    return Record(correct.astype(float), guesses.astype(float), way, level.astype(float), draws)


# Every record of 60 draws of a rule that always guesses, and of one that guesses in half of them.
CORRECT, GUESSES = (side.ravel() for side in np.meshgrid(np.arange(0, 61, 3), [0, 30, 60]))
SEEN = GUESSES >= CORRECT


@pytest.mark.parametrize("name", sorted(FREE))
@pytest.mark.parametrize("sides", [1.0, 2.0])
def test_the_bound_is_the_largest_value_of_which_the_two_limits_break_a_line(name, sides):
    """By the definition, a record, an anchor and a value at a time."""
    claim, level = FREE[name], 0.01
    record = records(CORRECT[SEEN], GUESSES[SEEN], 60, sides, level)
    table = table_of(claim, len(record.correct))
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
                assert (excesses > np.array(deltas) * sides / 2.0).any() == is_broken, (k, value)
    assert (epsilon_lower >= 0.0).all() and np.isfinite(lower).all() and (lower[record.guesses == 0.0] == 0.0).all()


@pytest.mark.parametrize("name", sorted(FREE))
def test_a_pair_is_over_its_budget_exactly_where_its_p_value_is_at_most_its_level(name):
    table = table_of(FREE[name], int(SEEN.sum()))
    for sides in (1.0, 2.0):
        record = records(CORRECT[SEEN], GUESSES[SEEN], 60, sides, 0.01)
        over = table.bounds(record)[0] > table.budget
        assert np.array_equal(over, table.log_p(record) <= np.log(0.01))
        assert over.any() and not over.all()


# Exact coverage: of two outcomes that a claim just allows, every possible record of 40 draws with its probability. The
# bounds are computed, so nothing is drawn and no rate is spent.
@pytest.mark.parametrize("name", sorted(FREE))
@pytest.mark.parametrize("threshold", [0.5, 1.5])
def test_of_all_records_a_mechanism_on_its_claim_has_at_most_a_share_of_the_level_has_a_bound_above(name, threshold):
    level, draws = 0.05, 40
    claim = FREE[name]
    p, q = stats.norm.cdf(MU - threshold), stats.norm.cdf(-threshold)  # of the event under x, and under x_prime
    if claim.family == "renyi":  # the promise that these two outcomes just keep
        claim = claim.with_value(least_value(claim, p, q))
    # A rule that guesses x on the event, and nothing else: correct ~ B(m, p / 2), wrong ~ B(m, q / 2).
    correct, wrong = (side.ravel() for side in np.meshgrid(np.arange(draws + 1), np.arange(draws + 1)))
    kept = correct + wrong <= draws
    correct, wrong = correct[kept], wrong[kept]
    of_each = stats.multinomial.pmf(
        np.stack([correct, wrong, draws - correct - wrong], axis=1), draws, [p / 2, q / 2, 1 - (p + q) / 2]
    )
    table = table_of(claim, len(correct))
    record = records(correct, correct + wrong, draws, 1.0, level)
    lower, epsilon_lower = table.bounds(record)
    above = float(of_each[lower > claim.value].sum())
    assert above <= level
    at_delta = np.log((p - table.delta) / q)  # what these two outcomes lose at the delta of reports
    assert float(of_each[epsilon_lower > at_delta].sum()) <= level
    assert float(of_each[lower > 0.0].sum()) > 0.0  # the control: it does say something


def least_value(claim, p, q):
    """The least value with which two outcomes of these probabilities keep a Renyi promise, at all of its orders."""
    found = 0.0
    for order in claim.orders:
        for a, b in ((p, q), (q, p)):
            divergence = np.log(a**order * b ** (1 - order) + (1 - a) ** order * (1 - b) ** (1 - order)) / (order - 1)
            found = max(found, divergence / float(claim.renyi_epsilons(np.array([1.0]), order)[0]))
    return found


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


def test_the_loss_that_is_found_is_one_that_the_test_rejects_as_often_as_it_says():
    """Randomised response of mass 0.2 and this loss: by the exact law of its guesses."""
    claim, draws, level = dpaudit.GaussianDP(0.2), 4_000, 1e-3
    losses = table_of(claim, 3).losses(np.full(3, 0.2), draws, level, 0.9)
    assert losses.shape == (3,) and np.ptp(losses) == 0.0
    loss = float(losses[0])
    assert loss > loss_on_claim(claim, 0.2)
    guesses = np.arange(700, 900)  # but for a probability below 1e-4
    accuracy = 1.0 / (1.0 + np.exp(-loss))
    least = np.array([np.append(rejects(claim, n, draws, level), n + 1)[0] for n in guesses])
    power = stats.binom.pmf(guesses, draws, 0.2) @ stats.binom.sf(least - 1, guesses, accuracy)
    assert power >= 0.9


def rejects(claim, guesses, draws, level):
    """Of so many guesses, the numbers of correct ones that are over the budget."""
    record = records(np.arange(guesses + 1), guesses, draws, 2.0, level)
    return np.flatnonzero(table_of(claim, guesses + 1).log_p(record) <= np.log(level))


def test_a_budget_of_nothing_and_a_profile_that_never_ends():
    nothing = with_budgets(dpaudit.GaussianDP(1.0), np.zeros(2))
    lower, _ = nothing.bounds(records([60, 30], 60, 60))
    assert lower[0] > just_above(0.0) and lower[1] == 0.0
    constant = with_budgets(dpaudit.ProfileClaim(lambda epsilon: 0.1), np.ones(2))  # its line at 0 has no scale
    lower, epsilon_lower = constant.bounds(records([60, 33], 60, 60))
    assert lower.tolist() == [1000.0, 0.0] and epsilon_lower[0] > 2.0


# Exact laws again. The promise is of (P, Q) alone: P(S) <= e^epsilon Q(S) + delta(epsilon), that of mu = 1.
@pytest.mark.parametrize("reverse", [False, True])
def test_each_order_of_a_pair_is_tested_against_its_own_lines(reverse):
    profile = dpaudit.GaussianDP(MU).profile
    functions = (no_promise, profile) if reverse else (profile, no_promise)
    claim = dpaudit.ProfileClaim(DirectedProfile(*functions))
    level, draws = 0.05, 40
    p, q = stats.norm.cdf(MU - 0.5), stats.norm.cdf(-0.5)  # of an event under the two laws: just what mu = 1 allows
    correct, wrong = (side.ravel() for side in np.meshgrid(np.arange(draws + 1), np.arange(draws + 1)))
    kept = correct + wrong <= draws
    correct, wrong = correct[kept], wrong[kept]

    def above(way, p, q):
        """Of a rule that guesses in one way on an event of these probabilities."""
        of_each = stats.multinomial.pmf(
            np.stack([correct, wrong, draws - correct - wrong], axis=1), draws, [p / 2, q / 2, 1 - (p + q) / 2]
        )
        record = Record(*(side.astype(float) for side in (correct, correct + wrong)), np.full(len(correct), way),
                        np.full(len(correct), level), draws)  # fmt: skip
        table = with_budgets(claim, np.full(len(correct), 1.0))
        over = table.bounds(record)[0] > 1.0
        assert np.array_equal(over, table.log_p(record) <= np.log(level))
        return float(of_each[over].sum())

    promised, other = (ONLY_X_PRIME, ONLY_X) if reverse else (ONLY_X, ONLY_X_PRIME)
    assert above(promised, p, q) <= level
    assert above(promised, 0.95, 0.01) > 0.7  # the control: it does say something of its own order,
    assert above(other, 0.95, 0.01) < 1e-5  # and nothing of the other, which is promised nothing
    assert above(BOTH, 0.95, 0.01) < 1e-5  # a rule on both events pays for the order that may lose anything
