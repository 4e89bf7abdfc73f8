"""The contract of `dpaudit.campaign.campaign.Campaign`, held by everything that has an error rate of its own."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.audits.low_bits import Candidate, LowBitGame
from dpaudit.campaign.campaign import Campaign, shares_by_rank
from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.rounds import Draws, Plan
from dpaudit.campaign.universe import UniverseGame
from dpaudit.campaign.witness_game import WitnessGame
from dpaudit.inference.pair_lines import PairLines
from dpaudit.privacy.claims import PureDP
from dpaudit.privacy.pair_budgets import PairBudgets
from dpaudit.privacy.pairs import Pair
from dpaudit.reading.outcomes import read_outputs
from dpaudit.testing.fixed_game import FixedGame
from dpaudit.testing.protocols import Training
from dpaudit.testing.tasks import Request, TaskResult, toss

SAMPLES, ERROR_RATE = 120, 0.05
TRIANGLE = [(0, 1), (1, 2), (0, 2)]


class Deck:
    """Laplace noise around the position of the input, from one stream a task."""

    def __init__(self, journal, step=0.0):
        self.journal, self.tasks, self.step = journal, [], step

    def __call__(self, tasks):
        self.journal.append("draw")
        self.tasks += tasks
        results = []
        for task in tasks:
            rng = np.random.default_rng([task.input, task.round, task.chunk])
            values = task.input + rng.laplace(size=task.size)
            outcomes = read_outputs(np.round(values / self.step) * self.step if self.step else values, task.size)
            results.append(TaskResult(tuple(r.count(outcomes) for r in task.requests), task.kept_of(outcomes)))
        return results


def coin(*key):
    return np.random.default_rng([99, *key])


def label_game(mode):
    return lambda deck: LabelGame(
        [PureDP(1.0)] * 3, TRIANGLE, samples=SAMPLES, error_rate=ERROR_RATE, mode=mode, draw=deck, coin=coin
    )


def universe(deck):
    ends = np.array(TRIANGLE)
    options = {"inputs": 3, "samples": SAMPLES, "error_rate": ERROR_RATE}
    return UniverseGame(
        ends[:, 0], ends[:, 1], PairLines(PairBudgets.same(PureDP(1.0), 3)), **options, draw=deck, coin=coin
    )


def witness(deck):
    test = FixedGame(PureDP(1.0), 2 * SAMPLES)
    first, second = (read_outputs(i + coin(i).laplace(size=200), 200) for i in (0, 1))
    test.prepare(Training(first, second), ERROR_RATE)
    return WitnessGame(test, ERROR_RATE, 2 * SAMPLES, deck, coin(), None)


def doubles(deck, draws=SAMPLES, in_stages=False):
    chosen = [Candidate(Pair(*pair), pair, PureDP(1.0).budget, k) for k, pair in enumerate(TRIANGLE)]
    return LowBitGame(chosen, draws, deck, coin, ERROR_RATE, in_stages)


MADE = {
    "sequential": label_game("sequential"),
    "adaptive": label_game("adaptive"),
    "fixed": label_game("fixed"),
    "universe": universe,
    "witness": witness,
    "doubles": doubles,
}


def levels_of(campaign):
    if isinstance(campaign, LabelGame):
        return [use.level for pair in campaign.pairs for _, use in pair.uses]
    if isinstance(campaign, LowBitGame):
        return [pair.level for pair in campaign.pairs]
    return [campaign.test.level] if isinstance(campaign, WitnessGame) else campaign.level.tolist()


def watched(campaign, journal):
    """The campaign, which notes each of its steps in the journal."""
    around(campaign, ("_freeze", "_absorb", "_look", "_fit"), journal.append)
    return campaign


def around(campaign, names, do):
    """Let `do` be called with the name of a step before each of these steps."""

    def wrapped(name, own):
        def step(*args):
            do(name)
            return own(*args)

        return step

    for name in names:
        setattr(campaign, name, wrapped(name, getattr(campaign, name)))


def begun(make):
    journal = []
    deck = Deck(journal)
    campaign = make(deck)
    campaign.start()
    journal.clear()
    return watched(campaign, journal), deck, journal


each = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


@each
def test_a_round_freezes_draws_absorbs_looks_and_only_then_fits(make):
    campaign, _, journal = begun(make)
    rounds = 0
    while campaign.round():
        rounds += 1
    assert rounds > 0
    assert journal == ["_freeze", "draw", "_absorb", "_look", "_fit"] * rounds + ["_freeze"]


@each
def test_levels_are_fixed_before_the_first_round_and_sum_to_the_error_rate(make):
    campaign, _, _ = begun(make)
    before = levels_of(campaign)
    assert sum(before) == pytest.approx(ERROR_RATE) and min(before) > 0.0
    while campaign.round():
        pass
    assert levels_of(campaign) == before


@each
def test_no_draw_is_made_twice_and_all_are_counted_as_runs(make):
    campaign, deck, _ = begun(make)
    while campaign.round():
        pass
    streams = [(task.input, task.round, task.chunk) for task in deck.tasks]
    assert len(streams) == len(set(streams))
    assert campaign.runs == sum(task.size for task in deck.tasks)


@each
def test_a_round_draws_what_was_frozen_and_counts_no_draw_for_both_labels(make):
    campaign, deck, _ = begun(make)
    freeze, plans = campaign._freeze, []

    def frozen():
        plans.append(freeze())
        return plans[-1]

    campaign._freeze = frozen
    first = len(deck.tasks)
    assert campaign.round()
    (plan,) = plans
    for i, needed in plan.needed.items():
        tasks = [task for task in deck.tasks[first:] if task.input == i]
        assert sum(task.size for task in tasks) == needed
        for place, request in enumerate(plan.requests[i]):
            assert sum(task.requests[place].quota for task in tasks) == request.quota <= needed


@each
def test_no_fit_sees_a_round_before_it_is_absorbed(make):
    campaign, _, _ = begun(make)
    refused = []

    def peek(name):
        with pytest.raises(RuntimeError, match="must not see a round"):
            campaign.draws.joined(0)
        refused.append(name)

    around(campaign, ("_absorb", "_look"), peek)
    assert campaign.round()
    assert refused == ["_absorb", "_look"]
    if campaign.draws.kept:
        campaign.draws.joined(0)  # it is over


@each
def test_the_order_is_nobodys_to_change(make):
    assert type(make(Deck([]))).round is Campaign.round
    assert Campaign.round.__final__


@pytest.mark.parametrize("missing", ["start", "_freeze", "_absorb", "_look"])
def test_a_campaign_without_one_of_its_steps_is_not_made(missing):
    steps = {name: lambda self: None for name in ("start", "_freeze", "_absorb", "_look") if name != missing}
    with pytest.raises(TypeError, match=missing):
        type("Unfinished", (Campaign,), steps)(Draws(Deck([])))


def test_a_twin_that_learns_from_what_it_counts_is_stopped_and_the_round_is_closed():
    class Peeking(Campaign):
        def start(self):
            self.draws.learn(Plan({0: 50}, keeps=100))

        def _freeze(self):
            return Plan({0: 50}, {0: [Request(50, Ones())]}, keeps=100)

        def _absorb(self, counts):
            self.draws.joined(0)

        def _look(self):
            pass

    class Ones:
        def zeros(self):
            return np.zeros(1, dtype=np.int64)

        def count(self, outcomes):
            return np.array([len(outcomes)])

    twin = Peeking(Draws(Deck([])))
    twin.start()
    with pytest.raises(RuntimeError, match="must not see a round that is not absorbed"):
        twin.round()
    assert len(twin.draws.joined(0)) == 100  # what it drew is no secret afterwards


def test_labels_are_fair_coins():
    """The sum of 400 numbers binomial(100, 1/2) is within 5 deviations (500): false with probability 6e-7."""
    rng = np.random.default_rng(8)
    tossed = [toss(100, rng) for _ in range(400)]
    assert {sum(both) for both in tossed} == {100}
    assert abs(sum(ones for ones, _ in tossed) - 20_000) < 500


def test_shares_go_by_rank_in_any_form_of_merit():
    harmonic = 1.0 + 1.0 / 2.0 + 1.0 / 3.0
    expected = [0.5 / 3 + 0.5 / 2 / harmonic, 0.5 / 3 + 0.5 / harmonic, 0.5 / 3 + 0.5 / 3 / harmonic]
    np.testing.assert_allclose(shares_by_rank([2.0, 5.0, 2.0]), expected)  # of equals the first
    np.testing.assert_allclose(shares_by_rank([(1, 2.0), (2, -np.inf), (1, -3.0)]), expected)
    np.testing.assert_allclose(shares_by_rank(np.array([-np.inf])), [1.0])


def test_what_a_stage_of_low_bits_is_trained_on_is_drawn_by_the_fit_before_it():
    journal = []
    deck = Deck(journal, step=2.0**-10)  # whose doubles keep the claim: three stages are played
    campaign = doubles(deck, 10_000, in_stages=True)
    campaign.start()
    levels = levels_of(campaign)
    journal.clear()
    watched(campaign, journal)
    while campaign.round():
        pass
    stage = ["_freeze", "draw", "_absorb", "_look", "_fit", "draw"]
    assert journal == [*stage, *stage, *stage[:-1], "_freeze"]
    assert levels_of(campaign) == levels and all(pair.found is not None for pair in campaign.pairs)
    streams = [(task.input, task.round, task.chunk) for task in deck.tasks]
    assert len(streams) == len(set(streams))
