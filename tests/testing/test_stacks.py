"""Stacks and groups of epochs: the wealth that each epoch has alone, and the values that all together reject.

Nothing is asserted of probabilities: what is compared are two ways to compute one number.
"""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.learning.fitted_partitions import fit_partitions
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.reading.outcomes import Outcomes
from dpaudit.testing import stacks
from dpaudit.testing.betting import fit_bets, log_sum
from dpaudit.testing.hockey_stick import just_above
from dpaudit.testing.sequential_game import DEEP_FROM, PRECISION, SequentialGame
from dpaudit.testing.stacks import Group, Reckoning, grouped, with_idle

FIXED = settings(derandomize=True, deadline=None, max_examples=100)
CLAIMS = [PureDP(1.0), ApproxDP(0.5, 0.01), GaussianDP(1.0)]


def played(claim, scale, rounds=6, seed=0, decides=True):
    """A game that was fitted anew before each round, on longer and longer rounds."""
    rng = np.random.default_rng(seed)
    game = SequentialGame(claim, 50_000, decides)
    game.start(0.05)
    kept, size = [rng.laplace(1.0, scale, 20), rng.laplace(0.0, scale, 20)], 30
    for _ in range(rounds):
        sides = [Outcomes(np.array(side).reshape(-1, 1)) for side in kept]
        game.fit(fit_partitions(*sides), 0.05)
        drawn = [rng.laplace(1.0, scale, size), rng.laplace(0.0, scale, size)]
        game.add(*(game.statistic.count(Outcomes(side.reshape(-1, 1))) for side in drawn))
        game.update()
        kept, size = [np.concatenate([a, b]) for a, b in zip(kept, drawn, strict=True)], 3 * size
    return game


def one_by_one(game, value, targets):
    """Log wealth of each kind of bets against a value, epoch by epoch, without stacks."""
    totals = np.log(game._shares[: 1 + len(targets)])
    for epoch in game.epochs:
        kinds = [(epoch.book, epoch.bets)]
        free = [k for k, partition in enumerate(epoch.partitions) if partition.order == "free"]
        book = epoch.book.for_partitions(np.array(free))  # what is meant for lower values has no other orders
        for target in targets:
            meant_for, is_deep = target * game.claim.value, target in game._deep_targets
            if is_deep and epoch.training < DEEP_FROM:
                kinds.append(None)
                continue
            components = game._components(meant_for, (game._anchor_for(meant_for, epoch),))
            prior = np.zeros((len(free), components.up.shape[1]))
            kinds.append((book, fit_bets(book, components, prior, (len(free),))))
        for k, kind in enumerate(kinds):
            if kind is None:
                continue
            of_kind, bets = kind
            logs = bets.log_wealth(of_kind.live, *game._lines(value, bets.components))
            totals[k] += float(with_idle(log_sum(logs + bets.log_weights), epoch.idle))
    return totals


@pytest.mark.parametrize("claim", CLAIMS, ids=["pure", "approximate", "gaussian"])
@pytest.mark.parametrize("numbers", [stacks.BLOCK_NUMBERS, 4_000], ids=["large blocks", "small blocks"])
def test_stacked_epochs_have_the_wealth_of_one_after_the_other(monkeypatch, claim, numbers):
    monkeypatch.setattr(stacks, "BLOCK_NUMBERS", numbers)
    game = played(claim, 0.8)
    targets = (*game._targets, *game._deep_targets)
    groups = [game._group(part).with_stacks(game._deep_stacks(part)) for part in game._parts()]
    assert len(groups) > 1 and game._deep_targets and game.epochs[0].training < DEEP_FROM < game.epochs[-1].training
    for value in (0.0, 0.4, claim.value, 1.5 * claim.value):
        together = np.log(game._shares)
        for group in groups:
            together += [group.log_wealth(k, value, game._lines) for k in range(len(together))]
        # 1e-9: the same sums in another order; each of thousands of terms is off by at most some 1e-16 of it
        assert np.allclose(together, one_by_one(game, value, targets), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("claim", CLAIMS, ids=["pure", "approximate", "gaussian"])
@pytest.mark.parametrize("budget_of_them", [0.5, 1.0, 3.0])  # bounds above the budget, about it, and below
@pytest.mark.parametrize("kind", ["as played", "carried", "other bets for lower targets", "not decided", "no counts"])
def test_the_bound_is_rejected_by_all_epochs_and_a_value_just_above_it_is_not(claim, budget_of_them, kind):
    rejected = 0
    for seed, scale in enumerate((0.5, 0.8, 1.5)):
        own = claim.with_value(budget_of_them * claim.value)
        game = played(own, scale, 0 if kind == "no counts" else 5, seed, decides=kind != "not decided")
        if kind in ("carried", "other bets for lower targets"):
            state = {**game.state, "lower": 0.0, "closed": None, "epochs": game.epochs}
            state |= {"carried": 2.5} if kind == "carried" else {"lower_bets": 1}
            game = SequentialGame(own, 50_000)
            game.start(0.05)
            game.go_on(**state)
        watched = game.known_lower  # what earlier looks rejected stays, whatever all draws say
        found = game.lower
        shown = known_total(game, found)
        assert found >= watched and game.is_rejected == (found > own.value)
        if found > watched:
            # 1e-8 nats: the same sums in another order, of some thousands of nats at 1e-12
            assert shown(found) >= -1e-8
            rejected += 1
        # 1e-9: 1e-7 above the budget is the next value that is asked, and no bound is between
        above = max((found if found != own.value else just_above(found)) * (1.0 + PRECISION) + 1e-11, watched)
        assert shown(above * (1.0 + 1e-9)) < 1e-8 or found == watched > 0.0
        if found <= own.value:
            assert shown(just_above(own.value)) < 1e-8
    assert rejected or kind == "no counts" or budget_of_them == 3.0


def known_total(game, found):
    """Log wealth over the threshold at any value, epoch by epoch: of deep targets too where the bound is a low one."""
    is_low = found < min(game._targets) * game.claim.value
    targets = (*game._targets, *game._deep_targets) if is_low else game._targets

    def total(value):
        logs = one_by_one(game, value, targets)
        carried = game._carried
        if carried is not None:
            logs[0] += carried if value <= game._watched else -math.inf
        if carried is not None or game._lower_bets == 0:
            logs[1:] = -math.inf
        return float(np.logaddexp.reduce(logs)) + math.log(game.level)

    return total


@dataclasses.dataclass
class Falling:
    """A stack of one epoch whose log wealth falls, with a record of where it was asked."""

    height: float
    slope: float
    asked: list = dataclasses.field(default_factory=list)

    def log_wealth(self, value, lines):
        self.asked.append(value)
        return np.array([self.height - self.slope * value])


numbers = st.floats(-20.0, 20.0)
slopes = st.floats(0.0, 30.0)


@FIXED
@given(
    st.lists(st.lists(st.tuples(numbers, slopes), min_size=2, max_size=2), min_size=1, max_size=4),
    st.lists(st.floats(0.0, 3.0), min_size=1, max_size=12),
    st.floats(0.5, 10.0),
)
def test_groups_answer_as_all_together_do_whatever_was_asked_before(heights, values, threshold):
    groups = [Group.of([Falling(*kind) for kind in kinds]) for kinds in heights]
    shares = np.log([0.9, 0.1])
    reckoning = Reckoning(groups, lambda value: shares, threshold, None)
    for value in values:
        logs = shares + np.sum([[h - s * value for h, s in kinds] for kinds in heights], axis=0)
        truth, answer = float(np.logaddexp.reduce(logs)) - threshold, reckoning.excess(value)
        # sums of up to a dozen numbers below 200, at 2**-53 each
        assert abs(truth) < 1e-11 or (answer >= 0.0) == (truth >= 0.0)
        assert abs(answer) <= abs(truth) + 1e-11  # nearer to 0, if limits told
    for group in groups:
        for stack in group.stacks:
            assert len(set(stack.asked)) == len(stack.asked), "a value is asked once"


def test_early_epochs_are_not_asked_where_the_late_ones_decide():
    late, early = (Group.of([Falling(*kind)]) for kind in ((1_000.0, 1_000.0), (2.0, 4.0)))
    reckoning = Reckoning([late, early], lambda value: np.zeros(1), 3.0, None)
    assert reckoning.excess(2.0) < 0.0 and early.stacks[0].asked == [2.0]
    assert reckoning.excess(0.0) >= 0.0 and early.stacks[0].asked == [2.0]  # at 0 it has at least what it has at 2
    # 31 nats over: asked, to know better what early epochs have where it is nearly 0
    assert reckoning.excess(0.96) >= 0.0 and early.stacks[0].asked == [2.0, 0.96]
    assert reckoning.excess(1.1) < 0.0 and early.stacks[0].asked == [2.0, 0.96]
    assert Reckoning([], lambda value: np.log([0.9, 0.1]), 3.0, None).excess(0.5) == pytest.approx(-3.0)


def test_bets_that_have_lost_more_than_the_others_can_win_are_not_asked():
    group = Group.of([Falling(10.0, 10.0), Falling(-500.0, 10.0)], [{2.0: -10.0}])
    reckoning = Reckoning([group], lambda value: np.zeros(2), 3.0, None)
    assert reckoning.excess(0.1) >= 0.0 and group.stacks[1].asked == [0.1]
    assert reckoning.excess(1.0) < 0.0 and group.stacks[1].asked == [0.1]
    assert reckoning.excess(2.0) < 0.0 and 2.0 not in group.stacks[0].asked  # what was known is not asked


@FIXED
@given(st.lists(st.integers(1, 1_000), max_size=30))
def test_groups_hold_every_epoch_once_and_the_last_ones_first(counted):
    parts = grouped([float(count) for count in counted])
    positions = [k for part in reversed(parts) for k in range(part.start, part.stop)]
    assert positions == list(range(len(counted)))
    if counted:
        assert sum(counted[parts[0]]) >= stacks.GROUPS[0] * sum(counted)
