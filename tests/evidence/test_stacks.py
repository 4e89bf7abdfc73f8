"""Stacks and groups of epochs: the wealth that each epoch has alone, and the values that all together reject.

Nothing is asserted of probabilities: what is compared are two ways to compute one number.
"""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.evidence import stacks
from dpaudit.evidence.betting import fit_bets, log_sum
from dpaudit.evidence.fitted_partitions import fit_partitions
from dpaudit.evidence.outcomes import Outcomes
from dpaudit.evidence.sequential_game import SequentialGame
from dpaudit.evidence.stacks import Group, Reckoning, grouped, with_idle
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP

FIXED = settings(derandomize=True, deadline=None, max_examples=100)
CLAIMS = [PureDP(1.0), ApproxDP(0.5, 0.01), GaussianDP(1.0)]


def played(claim, scale, rounds=6, seed=0):
    """A game that was fitted anew before each round, on longer and longer rounds."""
    rng = np.random.default_rng(seed)
    game = SequentialGame(claim, 50_000)
    kept, size = [rng.laplace(1.0, scale, 20), rng.laplace(0.0, scale, 20)], 30
    for _ in range(rounds):
        sides = [Outcomes(np.array(side).reshape(-1, 1)) for side in kept]
        game.fit(fit_partitions(*sides), 0.05)
        game.start(0.05)
        drawn = [rng.laplace(1.0, scale, size), rng.laplace(0.0, scale, size)]
        game.add(*(game.statistic.count(Outcomes(side.reshape(-1, 1))) for side in drawn))
        game.update()
        kept, size = [np.concatenate([a, b]) for a, b in zip(kept, drawn, strict=True)], 3 * size
    return game


def one_by_one(game, value):
    """Log wealth of each kind of bets against a value, epoch by epoch, without stacks."""
    totals = np.log(game._shares)
    for epoch in game.epochs:
        kinds = [(epoch.book, epoch.bets)]
        free = [k for k, partition in enumerate(epoch.partitions) if partition.order == "free"]
        book = epoch.book.for_partitions(np.array(free))  # what is meant for lower values has no other orders
        for target in game._targets:
            meant_for = target * game.claim.value
            components = game._components(meant_for, game._anchor_for(meant_for, epoch))
            prior = np.zeros((len(free), components.up.shape[1]))
            kinds.append((book, fit_bets(book, components, prior, (len(free),))))
        for k, (of_kind, bets) in enumerate(kinds):
            logs = bets.log_wealth(of_kind.live, *game._lines(value, bets.components))
            totals[k] += float(with_idle(log_sum(logs + bets.log_weights), epoch.idle))
    return totals


@pytest.mark.parametrize("claim", CLAIMS, ids=["pure", "approximate", "gaussian"])
@pytest.mark.parametrize("numbers", [stacks.BLOCK_NUMBERS, 4_000], ids=["large blocks", "small blocks"])
def test_stacked_epochs_have_the_wealth_of_one_after_the_other(monkeypatch, claim, numbers):
    monkeypatch.setattr(stacks, "BLOCK_NUMBERS", numbers)
    game = played(claim, 0.8)
    groups = game._groups()
    assert len(groups) > 1
    for value in (0.0, 0.4, claim.value, 1.5 * claim.value):
        together = np.log(game._shares) + sum(group.log_wealth(value, game._lines) for group in groups)
        # 1e-9: the same sums in another order; each of thousands of terms is off by at most some 1e-16 of it
        assert np.allclose(together, one_by_one(game, value), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("claim", CLAIMS, ids=["pure", "approximate", "gaussian"])
@pytest.mark.parametrize("scale", [0.6, 1.0, 2.0])
def test_the_bound_is_that_of_all_epochs_asked_at_every_value(monkeypatch, claim, scale):
    by_groups = played(claim, scale).lower
    monkeypatch.setattr(stacks, "GROUPS", ())
    monkeypatch.setattr(Group, "limits", lambda self, value: (np.full(len(self.stacks), -math.inf),) * 2)
    monkeypatch.setattr(
        Reckoning,
        "_rejects",
        lambda self, value: (
            self._total(value, np.array([g.log_wealth(value, self.lines) for g in self.groups])) >= self.threshold
        ),
    )
    assert played(claim, scale).lower == by_groups


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
    st.lists(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=3).map(sorted), min_size=1, max_size=5),
    st.floats(0.5, 10.0),
)
def test_groups_answer_as_all_together_do_whatever_was_asked_before(heights, asked, threshold):
    groups = [Group([Falling(*kind) for kind in kinds]) for kinds in heights]
    shares = np.log([0.9, 0.1])
    reckoning = Reckoning(groups, lambda value: shares, threshold, None)
    for values in asked:
        truth = []
        for value in values:
            logs = shares + np.sum([[h - s * value for h, s in kinds] for kinds in heights], axis=0)
            truth.append(float(np.logaddexp.reduce(logs)) - threshold)
        answers = reckoning.rejects(np.array(values)).tolist()
        assert all(
            answer == (excess >= 0.0) for answer, excess in zip(answers, truth, strict=True) if abs(excess) > 1e-9
        )
    for group in groups:
        for stack in group.stacks:
            assert len(set(stack.asked)) == len(stack.asked), "a value is asked once"


def test_early_epochs_are_not_asked_where_the_late_ones_decide():
    late, early = (Group([Falling(*kind)]) for kind in ((100.0, 100.0), (2.0, 4.0)))
    reckoning = Reckoning([late, early], lambda value: np.zeros(1), 3.0, None)
    assert reckoning.rejects(np.array([0.0, 1.0, 2.0])).tolist() == [True, False, False]
    assert early.stacks[0].asked == [2.0, 1.0]  # at 0 it has at least what it has at 1
    assert reckoning.rejects(np.array([0.5])).tolist() == [True] and len(early.stacks[0].asked) == 2
    assert not Reckoning([], lambda value: np.log([0.9, 0.1]), 3.0, None).rejects(np.array([0.5]))[0]


@FIXED
@given(st.lists(st.integers(1, 1_000), max_size=30))
def test_groups_hold_every_epoch_once_and_the_last_ones_first(counted):
    parts = grouped([float(count) for count in counted])
    positions = [k for part in reversed(parts) for k in range(part.start, part.stop)]
    assert positions == list(range(len(counted)))
    if counted:
        assert sum(counted[parts[0]]) >= stacks.GROUPS[0] * sum(counted)
