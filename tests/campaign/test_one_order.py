"""The contract of `dpaudit.campaign.campaign.Campaign`, held by everything that has an error rate of its own.

Checks ask a campaign for its public order alone: what it was when it froze, what was drawn, what was counted, and the
levels of its tests. Another campaign is one more row of `MADE`. Twins break the contract, each in one place, and the
check that is named beside a twin must fail it.
"""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpaudit.audits.low_bits import Candidate, LowBitGame
from dpaudit.campaign.all_pairs import AllPairsGame
from dpaudit.campaign.campaign import Campaign, shares_by_rank
from dpaudit.campaign.draws import Draws, RoundPlan
from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.witness_game import Asked, WitnessGame
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.pair_lines import PairLines
from dpaudit.inference.tasks import Request
from dpaudit.privacy.claims import PureDP
from dpaudit.privacy.pair_budgets import PairBudgets
from dpaudit.privacy.pairs import Pair

SAMPLES, ERROR_RATE = 120, 0.05
TRIANGLE = [(0, 1), (1, 2), (0, 2)]


class Deck:
    """Laplace noise around the position of the input, from one stream a task."""

    def __init__(self, journal, step=0.0):
        self.journal, self.tasks, self.step, self.sign = journal, [], step, 1.0

    def __call__(self, tasks):
        self.journal.append("draw")
        self.tasks += tasks
        results = []
        for task in tasks:
            rng = np.random.default_rng([task.input, task.round, task.chunk])
            values = self.sign * (task.input + rng.laplace(size=task.size))
            outcomes = read_outputs(np.round(values / self.step) * self.step if self.step else values, task.size)
            results.append(task.result_on(outcomes))
        return results


def coin(*key):
    return np.random.default_rng([99, *key])


class Ones:
    """Counts draws."""

    def zeros(self):
        return np.zeros(1, dtype=np.int64)

    def count(self, outcomes):
        return np.array([len(outcomes)])


class CountsDraws:
    """A test whose rule is fixed: it is asked for nothing but its level."""

    statistic, level = Ones(), 0.0

    def __init__(self):
        self.counted = np.zeros(2, dtype=np.int64)

    def start(self, level):
        self.level = level

    def add(self, counts_x, counts_x_prime):
        self.counted += [counts_x[0], counts_x_prime[0]]

    def update(self):
        pass


def label_game(mode, kind=LabelGame, pairs=TRIANGLE, tossed=coin):
    return lambda deck: kind(
        [PureDP(1.0)] * len(pairs), pairs, samples=SAMPLES, error_rate=ERROR_RATE, mode=mode, draw=deck, coin=tossed
    )


def universe(deck):
    ends = np.array(TRIANGLE)
    options = {"inputs": 3, "samples": SAMPLES, "error_rate": ERROR_RATE}
    return AllPairsGame(
        ends[:, 0], ends[:, 1], PairLines(PairBudgets.same(PureDP(1.0), 3)), **options, draw=deck, coin=coin
    )


def witness(deck, tossed=coin):
    return WitnessGame.of_one(Asked(CountsDraws(), ERROR_RATE, 2 * SAMPLES, tossed()), deck)


def doubles(deck, draws=SAMPLES):
    chosen = [Candidate(Pair(*pair), pair, PureDP(1.0).budget, k) for k, pair in enumerate(TRIANGLE)]
    return LowBitGame(chosen, draws, deck, coin, ERROR_RATE)


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
    if not isinstance(campaign, WitnessGame):
        return campaign.level.tolist()
    without_rule = campaign.without_rule if isinstance(campaign, LowBitGame) else []
    return [one.test.level for one in campaign.asked] + [pair.error_share for pair in without_rule]


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


def a_round_freezes_draws_absorbs_looks_and_only_then_fits(make):
    campaign, _, journal = begun(make)
    rounds = 0
    while campaign.round():
        rounds += 1
    assert rounds > 0
    assert journal == ["_freeze", "draw", "_absorb", "_look", "_fit"] * rounds + ["_freeze"]


def levels_are_fixed_before_the_first_round_and_sum_to_the_error_rate(make):
    campaign, _, _ = begun(make)
    before = levels_of(campaign)
    assert sum(before) == pytest.approx(ERROR_RATE) and min(before) > 0.0
    while campaign.round():
        pass
    assert levels_of(campaign) == before


def no_draw_is_made_twice_and_all_are_counted_as_runs(make):
    campaign, deck, _ = begun(make)
    while campaign.round():
        pass
    streams = [(task.input, task.round, task.chunk) for task in deck.tasks]
    assert len(streams) == len(set(streams))
    assert campaign.runs == sum(task.size for task in deck.tasks)


def a_round_draws_what_was_frozen_and_counts_no_draw_for_both_labels(make):
    """All requests of one pair on one input are of other draws of it; of what is drawn all may be counted."""
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


def no_fit_sees_a_round_before_it_is_absorbed(make):
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


def a_round_is_frozen_whatever_it_will_draw(make):
    """Two runs on equal coins whose outputs differ from the first counted round on: its plan and levels are the same.

    What is counted is asked by what it says of the same outputs.
    """
    fresh = read_outputs(np.linspace(-3.0, 6.0, 200), 200)
    seen = []
    for turned in (False, True):
        campaign, deck, _ = begun(make)
        deck.sign = -1.0 if turned else 1.0
        plans, take = [], campaign.draws.take
        campaign.draws.take = lambda plan, plans=plans, take=take: plans.append(plan) or take(plan)
        assert campaign.round()
        plan = plans[-1]
        counts = {i: [(one.quota, one.start, one.statistic.count(fresh).tolist()) for one in requests]
                  for i, requests in plan.requests.items()}  # fmt: skip
        seen.append((dict(plan.needed), counts, levels_of(campaign)))
    assert seen[0] == seen[1]


def the_order_is_nobodys_to_change(make):
    assert type(make(Deck([]))).round is Campaign.round
    assert Campaign.round.__final__


CHECKS = [
    a_round_freezes_draws_absorbs_looks_and_only_then_fits,
    levels_are_fixed_before_the_first_round_and_sum_to_the_error_rate,
    no_draw_is_made_twice_and_all_are_counted_as_runs,
    a_round_draws_what_was_frozen_and_counts_no_draw_for_both_labels,
    no_fit_sees_a_round_before_it_is_absorbed,
    a_round_is_frozen_whatever_it_will_draw,
    the_order_is_nobodys_to_change,
]


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("holds", CHECKS, ids=lambda check: check.__name__)
def test_the_contract_of_campaigns(holds, make):
    holds(make)


# --- labels ---


def quotas_of(make):
    """The labelled draws of x and of x_prime in the first counted round of one pair."""
    campaign, _, _ = begun(make)
    plans, take = [], campaign.draws.take
    campaign.draws.take = lambda plan: plans.append(plan) or take(plan)
    assert campaign.round()
    return [sum(request.quota for request in plans[-1].requests.get(i, ())) for i in (0, 1)]


def labels_are_fair_coins(make):
    """Of 200 rounds of other coins: the number of draws of x is binomial(m, 1/2), and not m/2.

    Two exact binomial laws: of the draws of x in all rounds, and of the rounds that are more than a deviation off. A
    fair coin is outside their limits with probability at most 4e-9.
    """
    both = np.array([quotas_of(make(seed)) for seed in range(200)])
    (size,) = {*both.sum(axis=1).tolist()}  # the first round is as long whatever the coins
    each = stats.binom(size, 0.5)
    off = float(each.pmf([k for k in range(size + 1) if abs(2 * k - size) > np.sqrt(size)]).sum())
    rounds_off = int(np.sum(np.abs(2 * both[:, 0] - size) > np.sqrt(size)))
    for law, found in ((stats.binom(200 * size, 0.5), both[:, 0].sum()), (stats.binom(200, off), rounds_off)):
        assert law.ppf(1e-9) <= found <= law.isf(1e-9)


LABELLED = {
    "fixed": lambda seed: label_game("fixed", pairs=[(0, 1)], tossed=keyed(seed)),
    "sequential": lambda seed: label_game("sequential", pairs=[(0, 1)], tossed=keyed(seed)),
    "witness": lambda seed: lambda deck: witness(deck, keyed(seed)),
}


def keyed(seed):
    return lambda *key: np.random.default_rng([seed, 5, *key])


@pytest.mark.parametrize("make", LABELLED.values(), ids=LABELLED)
def test_the_labels_of_a_round_are_fair_coins(make):
    labels_are_fair_coins(make)


def test_equal_halves_are_no_fair_coins():
    """Twins: one has half of the draws on either side, the other one a coin that falls on x in 6 cases of 10."""
    halves = SimpleNamespace(binomial=lambda count, probability: count // 2)
    with pytest.raises(AssertionError):
        labels_are_fair_coins(lambda seed: lambda deck: witness(deck, lambda *key: halves))
    for seed in (1, 2):
        with pytest.raises(AssertionError):
            labels_are_fair_coins(lambda number, seed=seed: lambda deck: witness(deck, loaded([seed, number])))


def loaded(seed):
    rng = np.random.default_rng(seed)
    return lambda *key: SimpleNamespace(binomial=lambda count, probability: rng.binomial(count, 0.6))


# --- twins ---


class FreezesLate(LabelGame):
    """Draws what it is about to count, and then says what is counted."""

    def _freeze(self):
        plan = super()._freeze()
        if plan is not None:
            self.draws.take(dataclasses.replace(plan, requests={}))
        return plan


class FollowsWhatItSees(LabelGame):
    """Looks at draws before it freezes, and takes a longer round where they are large."""

    def _freeze(self):
        plan = super()._freeze()
        peeked = self.draws.take(dataclasses.replace(plan, requests={}))
        large = sum(float(np.sum(one.kept.numbers)) for _, one in peeked.outcomes if one.kept is not None) > 0.0
        return dataclasses.replace(plan, needed={i: count + large for i, count in plan.needed.items()})


class Doubles(LabelGame):
    """Spends twice its level after the first look."""

    def _look(self):
        super()._look()
        for pair in self.pairs:
            pair.start(2.0 * pair.level)


class StartsTwice(LabelGame):
    """Gives each pair the whole error rate."""

    def start(self):
        super().start()
        for pair in self.pairs:
            pair.start(self.error_rate)


class DrawsAgain(LabelGame):
    """Has one stream for all of its rounds."""

    def _fit(self):
        super()._fit()
        self.draws.round = 1


class CountsTwice(LabelGame):
    """Asks for more draws to be counted than there are."""

    def _freeze(self):
        plan = super()._freeze()
        return plan if plan is None else dataclasses.replace(plan, needed={i: 1 for i in plan.needed})


class Opens(LabelGame):
    """Lets fits see a round before it is absorbed."""

    def _absorb(self, counts):
        self.draws._is_open = False
        super()._absorb(counts)


class FitsFirst(LabelGame):
    """Fits on a round before it looks at it."""

    def _look(self):
        self._fit()
        super()._look()


TWINS = [
    (FreezesLate, a_round_freezes_draws_absorbs_looks_and_only_then_fits),
    (FollowsWhatItSees, a_round_is_frozen_whatever_it_will_draw),
    (Doubles, levels_are_fixed_before_the_first_round_and_sum_to_the_error_rate),
    (StartsTwice, levels_are_fixed_before_the_first_round_and_sum_to_the_error_rate),
    (DrawsAgain, no_draw_is_made_twice_and_all_are_counted_as_runs),
    (CountsTwice, a_round_draws_what_was_frozen_and_counts_no_draw_for_both_labels),
    (Opens, no_fit_sees_a_round_before_it_is_absorbed),
    (FitsFirst, a_round_freezes_draws_absorbs_looks_and_only_then_fits),
]


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
@pytest.mark.parametrize(("twin", "broken"), TWINS)
def test_a_twin_that_breaks_the_order_is_caught(twin, broken, mode):
    if twin is DrawsAgain and mode == "fixed":
        mode = "adaptive"  # one round has nothing to draw again
    with pytest.raises((AssertionError, RuntimeError, pytest.fail.Exception)):
        broken(label_game(mode, twin))


@pytest.mark.parametrize("missing", ["start", "_freeze", "_absorb", "_look"])
def test_a_campaign_without_one_of_its_steps_is_not_made(missing):
    steps = {name: lambda self: None for name in ("start", "_freeze", "_absorb", "_look") if name != missing}
    with pytest.raises(TypeError, match=missing):
        type("Unfinished", (Campaign,), steps)(Draws(Deck([])))


def test_a_twin_that_learns_from_what_it_counts_is_stopped_and_the_round_is_closed():
    class Peeking(Campaign):
        def start(self):
            self.draws.learn(RoundPlan({0: 50}, keeps=100))

        def _freeze(self):
            return RoundPlan({0: 50}, {0: [Request(50, Ones())]}, keeps=100)

        def _absorb(self, counts):
            self.draws.joined(0)

        def _look(self):
            pass

    twin = Peeking(Draws(Deck([])))
    twin.start()
    with pytest.raises(RuntimeError, match="must not see a round that is not absorbed"):
        twin.round()
    assert len(twin.draws.joined(0)) == 100  # what it drew is no secret afterwards


def test_shares_go_by_rank_in_any_form_of_merit():
    harmonic = 1.0 + 1.0 / 2.0 + 1.0 / 3.0
    expected = [0.5 / 3 + 0.5 / 2 / harmonic, 0.5 / 3 + 0.5 / harmonic, 0.5 / 3 + 0.5 / 3 / harmonic]
    np.testing.assert_allclose(shares_by_rank([2.0, 5.0, 2.0]), expected)  # of equals the first
    np.testing.assert_allclose(shares_by_rank([(1, 2.0), (2, -np.inf), (1, -3.0)]), expected)
    np.testing.assert_allclose(shares_by_rank(np.array([-np.inf])), [1.0])
