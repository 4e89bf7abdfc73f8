"""A line of its own for each pair: tests and bounds by scipy.stats and by enumeration, and losses by their exact power.

Everything is computed, so nothing is drawn and no rate is spent.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import special, stats

import dpaudit
from dpaudit.inference.guess_rules import SIZES as RULE_SIZES
from dpaudit.inference.pair_lines import SIZES, PairLines, Record, detectable_losses
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.privacy.pair_budgets import PairBudgets

BOTH, ONLY_X = range(2)  # positions in `WAYS`
LEVEL, DRAWS = 0.01, 60
ANCHORS, MASS_SHARE = PAYOFF_SIZES.anchors, RULE_SIZES.mass_share


def with_budgets(claim, budget):
    """The lines of pairs of one claim with a budget each."""
    budget = np.asarray(budget, dtype=float)
    return PairLines(dataclasses.replace(PairBudgets.same(claim, len(budget)), values=budget))


def own_lines(budget, delta):
    return with_budgets(dpaudit.ApproxDP(1.0, delta), budget)


def record_of(correct, guesses, draws, sides=2.0, level=LEVEL):
    way = np.where(np.asarray(sides) == 2.0, BOTH, ONLY_X)
    correct, guesses, way, level = np.broadcast_arrays(correct, guesses, way, level)
    return Record(correct.astype(float), guesses.astype(float), way, level.astype(float), draws)


def p_value(correct, guesses, draws, sides, level, epsilon, delta):
    """By the definition: the tail at the largest accuracy that the line allows, and what the limit of s has spent."""
    spent = level * MASS_SHARE if delta > 0.0 else 0.0
    extra = 0.0
    if delta > 0.0:
        s_lower = stats.beta.ppf(spent, guesses, draws - guesses + 1) if guesses else 0.0
        extra = delta * sides / 2.0 / s_lower if s_lower else math.inf
    accuracy = min(1.0, (math.exp(epsilon) + extra) / (1.0 + math.exp(epsilon)))
    return min(1.0, spent + stats.binom.sf(correct - 1, guesses, accuracy))


@pytest.mark.parametrize("delta", [0.0, 0.03])
@pytest.mark.parametrize("sides", [1.0, 2.0])
def test_each_pair_has_the_p_value_of_its_own_line(delta, sides):
    correct, guesses, budget = (
        side.ravel() for side in np.meshgrid(np.arange(0, 61, 6), [0, 30, 60], [0.0, 0.3, 2.0], indexing="ij")
    )
    kept = correct <= guesses
    correct, guesses, budget = correct[kept], guesses[kept], budget[kept]
    lines = own_lines(budget, delta)
    record = record_of(correct, guesses, DRAWS, sides)
    found = np.exp(lines.log_p(record))
    for k, epsilon in enumerate(budget):
        expected = p_value(correct[k], guesses[k], DRAWS, sides, LEVEL, epsilon, delta)
        # The limit of s is rounded down by 1e-9 of itself.
        assert found[k] == pytest.approx(expected, rel=1e-6), k
    lower, epsilon_lower = lines.bounds(record)
    assert np.array_equal(lower, epsilon_lower)  # the parameter is epsilon at the delta of reports
    over = lower > budget
    assert np.array_equal(over, found <= LEVEL)
    assert over.any() and not over.all()
    # And the bound is where the p-value passes the level, also away from the budgets.
    for k in np.flatnonzero(lower > 0.0):
        at = [p_value(correct[k], guesses[k], DRAWS, sides, LEVEL, lower[k] * by, delta) for by in (0.999, 1.001)]
        assert at[0] <= LEVEL < at[1], k


@pytest.mark.parametrize("sides", [1.0, 2.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.1), (0.0, 0.2)])
def test_of_all_records_of_a_mechanism_on_its_line_at_most_a_share_of_the_level_has_a_bound_above(
    sides, epsilon, delta
):
    """P(A) = e^epsilon Q(A) + delta; with two sides an event B beside it for which x and x_prime are exchanged."""
    level, draws, wrong_share = 0.05, 40, 0.15
    right_share = math.exp(epsilon) * wrong_share + delta
    # A draw has label x with probability 1/2: with both events a guess is right as often under either label.
    chances = [right_share * sides / 2.0, wrong_share * sides / 2.0]
    correct, wrong = (side.ravel() for side in np.meshgrid(np.arange(draws + 1), np.arange(draws + 1)))
    kept = correct + wrong <= draws
    correct, wrong = correct[kept], wrong[kept]
    of_each = stats.multinomial.pmf(
        np.stack([correct, wrong, draws - correct - wrong], axis=1), draws, [*chances, 1.0 - sum(chances)]
    )
    record = record_of(correct, correct + wrong, draws, sides, level)
    lines = own_lines(np.full(len(correct), epsilon), delta)
    lower, _ = lines.bounds(record)
    assert of_each[lower > epsilon].sum() <= level
    assert of_each[lines.log_p(record) <= math.log(level)].sum() <= level
    assert of_each[lower > 0.0].sum() > 0.0  # the control: it does say something


def test_the_line_that_a_record_speaks_against_is_the_pairs_own():
    lines = own_lines(np.array([0.5, 0.7]), 0.02)
    assert [lines.line(record_of([50, 20], 60, DRAWS), pair) for pair in (0, 1)] == [
        (0.0, 0.5, 0.02),
        (0.0, 0.7, 0.02),
    ]


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


@pytest.mark.parametrize("delta", [0.0, 0.002])
def test_randomised_response_of_that_loss_is_rejected_as_often_as_was_asked(delta):
    draws, level, budget = 1_000, 1e-3, np.array([0.1, 1.0])
    losses = own_lines(budget, delta).losses(np.full(2, 0.2), draws, level, 0.9)
    # 140 to 259 guesses, but for a probability below 1e-4, and every number of correct ones.
    guesses, correct = (side.ravel() for side in np.meshgrid(np.arange(140, 260), np.arange(260), indexing="ij"))
    guesses, correct = guesses[correct <= guesses], correct[correct <= guesses]
    record = record_of(correct, guesses, draws, 2.0, level)
    for epsilon, loss in zip(budget, losses, strict=True):
        of_each = stats.binom.pmf(guesses, draws, 0.2) * stats.binom.pmf(correct, guesses, special.expit(loss))
        rejected = own_lines(np.full(len(guesses), epsilon), delta).log_p(record) <= math.log(level)
        # At least what was asked, and little more: counts are whole numbers.
        assert 0.9 <= of_each[rejected].sum() <= 0.97


def test_free_lines_name_the_anchor_that_has_the_p_value():
    claim = dpaudit.GaussianDP(1.0)
    correct, guesses = np.array([59, 40, 30, 29]), np.array([60, 40, 60, 31])
    table = with_budgets(claim, np.full(4, claim.value))
    record = record_of(correct, guesses, DRAWS)
    lower, _ = table.bounds(record)
    for pair in range(4):
        found = [p_value(correct[pair], guesses[pair], DRAWS, 2.0, LEVEL, a, deltas[0]) for a, deltas in
                 ((a, claim.lines(np.array([1.0]), a)[1]) for a in ANCHORS)]  # fmt: skip
        anchor, epsilon, delta = table.line(record, pair)
        assert epsilon == anchor and delta == float(claim.lines(np.array([1.0]), anchor)[1][0])
        # The limit of s is rounded down by 1e-9 of itself.
        assert found[ANCHORS.index(anchor)] == pytest.approx(min(found), rel=1e-6)
        assert math.exp(table.log_p(record)[pair]) == pytest.approx(min(found), rel=1e-6)
        assert (min(found) <= LEVEL) == (lower[pair] > 1.0)
    assert (lower[:2] > 1.0).all() and lower[2] == 0.0
