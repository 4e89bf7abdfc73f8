"""The levels of the tests of one pair, by the records of each: with `tests/meta/test_levels.py`, whose terms these are.

The shares sum to the rate, each test receives its own, and the bound of a record is the one that `scipy.stats` gives at
that share. Nothing here is left to chance.
"""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.learning.rules import Rule
from dpaudit.learning.scores import Coordinate
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, RenyiDP
from dpaudit.reading.outcomes import Reading, read_outputs
from dpaudit.testing import fixed_game, joint_test
from dpaudit.testing.fixed_game import FixedGame
from dpaudit.testing.pair_game import PairGame
from dpaudit.testing.protocols import Training
from dpaudit.testing.refined_edges import FINE, LAST_SEEN, SIZE, Edge, Edges, RefinedGame
from dpaudit.testing.renyi_game import RenyiGame
from dpaudit.testing.saved_state import pair_state, restored
from dpaudit.testing.sequential_game import SequentialGame

LEVEL = 0.05


def spied(monkeypatch, home, name, answer):
    """Replace a function by one that notes its arguments, by name, and gives `answer(arguments)`."""
    signature, seen = inspect.signature(getattr(home, name)), []

    def noted(*arguments, **options):
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        seen.append(bound.arguments)
        return answer(bound.arguments)

    monkeypatch.setattr(home, name, noted)
    return seen


def response(data, size, rng):
    """Randomised response: right with probability 0.9 on either input."""
    return np.where(rng.random(size) < 0.9, data, 1.0 - data)


def line_bound(correct, wrong, labelled, cost, level):
    """The bound on epsilon of a guessing record, by scipy.stats: Clopper-Pearson, with a share for P(a guess)."""
    guesses, spent = correct + wrong, fixed_game.MASS_SHARE * level if cost else 0.0
    accuracy = stats.beta.ppf(level - spent, correct, wrong + 1)
    extra = cost / stats.beta.ppf(spent, guesses, labelled - guesses + 1) if cost else 0.0
    return max(0.0, math.log(max((accuracy - extra) / (1.0 - accuracy), 1.0)))


SIDES = [read_outputs(response(x, 300, np.random.default_rng(int(x))), 300) for x in (0.0, 1.0)]


SCORE, READING = Coordinate(0, 1), Reading(1)
BOTH = Rule(SCORE, -1.0, 1.0, -1, READING)  # x below, x_prime above
ONE = Rule(SCORE, -math.inf, 1.0, -1, READING)


def guessed(rule, right, wrong, labelled, claim):
    """A fixed game whose rule has guessed so often, as often on either side."""
    game = FixedGame(claim, labelled)
    game.set_rule(rule, 0.0)
    return game, (np.array([wrong // 2, right // 2, labelled // 2 - (right + wrong) // 2]),
                  np.array([right // 2, wrong // 2, labelled // 2 - (right + wrong) // 2]))  # fmt: skip


@pytest.mark.parametrize(("rule", "sides"), [(BOTH, 2), (ONE, 1)])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_a_guessing_record_has_the_bound_of_its_level_delta_and_events(rule, sides, delta):
    game, counts = guessed(rule, 300, 40, 1_000, ApproxDP(1.0, delta))
    game.start(LEVEL)
    game.add(*counts)
    game.update()
    assert game.lower == pytest.approx(line_bound(300, 40, 1_000, delta * sides / 2.0, LEVEL), rel=1e-5)
    spent = fixed_game.MASS_SHARE * LEVEL if delta else 0.0
    extra = delta * sides / 2.0 / stats.beta.ppf(spent, 340, 661) if delta else 0.0
    limit = (math.e + extra) / (1.0 + math.e)
    assert game.p_value == pytest.approx(spent + stats.binom.sf(299, 340, limit), rel=1e-5, abs=0.0)


def test_the_two_tests_of_rare_wrong_guesses_share_the_level(monkeypatch):
    """1% for the binomial test, 99% for the joint one; each p-value is divided by its share."""
    joint = []

    def answer(asked):
        joint.append(asked)
        return answer.p_value

    spied(monkeypatch, fixed_game, "joint_p_value", answer)
    share, by_counts = fixed_game.BINOMIAL_SHARE, line_bound(300, 40, 1_000, 0.01, 0.01 * LEVEL)
    for factor in (1.0 - 1e-9, 1.0 + 1e-9):
        game, counts = guessed(BOTH, 300, 40, 1_000, ApproxDP(1.0, 0.01))
        game._weight = 7.0
        game.start(LEVEL)
        game.add(*counts)
        answer.p_value = factor * (1.0 - share) * LEVEL
        game.update()
        assert game.lower > 1e3 if factor < 1.0 else game.lower == pytest.approx(by_counts, rel=1e-5)
        answer.p_value = 1e-6
        assert game.p_value == pytest.approx(1e-6 / (1.0 - share), rel=1e-9)
        answer.p_value = 1.0
        binomial = 0.05 * share * LEVEL + stats.binom.sf(
            299, 340, (math.e + 0.01 / stats.beta.ppf(0.05 * share * LEVEL, 340, 661)) / (1.0 + math.e)
        )
        assert game.p_value == pytest.approx(min(1.0, binomial / share), rel=1e-5)
    assert {one["level"] for one in joint} == {(1.0 - share) * LEVEL}
    assert {(one["correct"], one["wrong"], one["draws"], one["weight"]) for one in joint} == {(300, 40, 1_000, 7.0)}
    assert {one["cost"] for one in joint} == {0.01}  # two events: the whole delta


def test_the_joint_test_pays_for_its_limit_on_guesses(monkeypatch):
    """2% of its level: what is left of a p-value where no law that the line allows comes near to the record."""
    upper = joint_test.binomial_upper
    limits = spied(monkeypatch, joint_test, "binomial_upper", lambda given: upper(**given))
    assert joint_test.joint_p_value(1_500, 0, 2_000, 0.5, 0.001, 2.0, LEVEL) == pytest.approx(0.02 * LEVEL, rel=1e-9)
    assert [(one["successes"], one["trials"], one["level"]) for one in limits] == [(1_500, 2_000, 0.02 * LEVEL)]


def run_bound(correct, draws, cost, level):
    """The largest epsilon at which so many correct guesses in a row have a p-value of at most the level, on a grid."""
    z = np.geomspace(1e-5, 1.0, 100_001)
    least = np.minimum.accumulate(draws * np.log1p(cost * z) - correct * np.log1p(z))  # over z up to e^-epsilon
    return -math.log(z[np.flatnonzero(least <= math.log(level))[0]])


ABOVE = Edge(1, 0, 1.0, 0.01, FINE * LAST_SEEN - 1)
BELOW = Edge(-1, 1, 1.0, 0.01, FINE * LAST_SEEN - 1)


@pytest.mark.parametrize("edges", [(ABOVE, BELOW), (ABOVE,)], ids=["two edges", "one edge"])
def test_a_run_of_guesses_pays_for_each_edge_and_shares_the_level_with_the_rule(edges):
    """1,000 of 4,000 draws beyond the edges, all right, in two stages; the rule guesses nothing."""
    delta, beyond = 0.02, 500 // len(edges)
    game = RefinedGame(ApproxDP(1.0, delta), 4_000)
    game.set_rule(BOTH if len(edges) == 2 else ONE, 0.0)
    game._edges = Edges(SCORE, READING, edges, 0.0, 0.0, 0.0)
    game.start(LEVEL)
    for _ in range(2):
        counts = np.zeros((2, 3 + len(edges) * SIZE), dtype=np.int64)  # of x_prime, and of x
        counts[:, 2] = 1_000
        for k, edge in enumerate(edges):
            counts[edge.guess, 3 + (k + 1) * SIZE - 1] = beyond
        game.add(counts[1], counts[0])
    game.update()
    cost = delta * len(edges) / 2.0
    expected = run_bound(1_000, 4_000, cost, 0.99 * LEVEL)
    assert game.lower == pytest.approx(expected, abs=2e-3) and game.counts == (1_000, 0, 3_000)
    assert run_bound(1_000, 4_000, 2.0 * cost, LEVEL) < expected - 0.03  # what the edges cost shows
    z = np.linspace(0.0, math.exp(-1.0), 100_001)
    by_run = math.exp((4_000 * np.log1p(cost * z) - 1_000 * np.log1p(z)).min())
    assert game.p_value == pytest.approx(by_run / 0.99, rel=1e-3, abs=0.0)


def test_the_rule_beside_a_run_has_what_the_run_leaves():
    """A wrong guess outside ends the run at once: then the rule speaks, at 1% of the level."""
    game = RefinedGame(ApproxDP(1.0, 0.001), 2_000)
    game.set_rule(BOTH, 0.0)
    game._edges = Edges(SCORE, READING, (ABOVE, BELOW), 0.0, 0.0, 0.0)
    game.start(LEVEL)
    counts = np.zeros((2, 3 + 2 * SIZE), dtype=np.int64)
    counts[:, 3 + SIZE - 1] = counts[:, 3 + 2 * SIZE - 1] = 5  # of both labels: wrong ones beyond each edge
    counts[0, :3], counts[1, :3] = (400, 20, 580), (20, 400, 580)
    game.add(counts[1], counts[0])
    game.update()
    assert game.lower == pytest.approx(line_bound(800, 40, 2_000, 0.001, 0.01 * LEVEL), rel=1e-5)
    game.start(LEVEL)
    assert game.level + game._run_level == pytest.approx(LEVEL, rel=1e-12)


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.01), GaussianDP(1.0), PureDP(7.0)], ids=str)
@pytest.mark.parametrize("decides", [True, False])
def test_the_wealth_of_a_sequential_game_is_shared_over_what_its_bets_are_meant_for(claim, decides):
    game = SequentialGame(claim, 1_000, decides)
    assert game._shares.sum() == pytest.approx(1.0, rel=1e-12) and game._shares.min() > 0.0
    assert game.log_wealth == pytest.approx(game.now + math.log(game._shares[0]), rel=1e-12)


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_wealth_rejects_from_one_over_the_level_on(monkeypatch, factor):
    """Half of that, or without the share of the budget's bets, is not enough."""
    log_wealth = math.log(factor / LEVEL)
    renyi = RenyiGame(RenyiDP(2.0, 1.0), True, 400)
    monkeypatch.setattr(renyi, "_log_wealth", lambda value: log_wealth)
    sequential = SequentialGame(PureDP(1.0), 400)
    sequential.prepare(Training(*SIDES), LEVEL)
    monkeypatch.setattr(sequential, "_of_epoch", lambda epoch: log_wealth - math.log(0.9))
    for game in (renyi, sequential):
        game.start(LEVEL)
        game.update()
        assert game.log_wealth == pytest.approx(log_wealth) and game.is_rejected == (factor > 1.0)


def test_a_pair_that_goes_on_has_the_levels_that_it_had():
    pair = PairGame(GaussianDP(1.0), (0, 1), True, 400)
    pair.fit(*SIDES, LEVEL)
    pair.start(0.03)
    again = restored(pair_state(pair, "1/0"), PairGame(GaussianDP(1.0), (0, 1), True, 400), None, 0.0, 1.0)
    levels = [game.level for _, game in again.uses]
    assert levels == [game.level for _, game in pair.uses] == pytest.approx([0.024, 0.006]) and again.level == 0.03
