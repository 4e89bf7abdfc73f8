"""The sequential game in numbers: targets, shares of the wealth, weights beforehand, and what decides."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dpaudit.learning.fitted_partitions import fit_partitions
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.reading.outcomes import Outcomes
from dpaudit.testing import sequential_game
from dpaudit.testing.sequential_game import SequentialGame


def outcomes(values):
    return Outcomes(np.array(values, dtype=float).reshape(-1, 1))


def started(claim, level=0.05, draws=1_000, **options):
    game = SequentialGame(claim, draws, **options)
    game.fit(fit_partitions(outcomes([0] * 15 + [3] * 5), outcomes([3] * 15 + [0] * 5)), level)
    game.start(level)
    return game


@pytest.mark.parametrize(
    ("value", "smallest", "targets"),
    [
        (1.0, 1.0, (0.6,)),
        (1.0, 0.6, (0.6,)),  # small enough
        (1.0, 0.25, (0.21, 0.6)),
        (10.0, 1.0, (0.0735, 0.21, 0.6)),
        (10.0, 2.1, (0.21, 0.6)),
        (0.0, 0.25, (0.6,)),
        (1e-9, 0.01, (0.6,)),
    ],
)
def test_targets_go_down_in_steps_until_one_is_small_enough(value, smallest, targets):
    assert sequential_game._targets(value, (0.6,), smallest) == pytest.approx(targets)


@pytest.mark.parametrize("claim", [PureDP(0.0), PureDP(0.3), PureDP(1.0), PureDP(20.0), GaussianDP(3.0)], ids=str)
@pytest.mark.parametrize("decides", [True, False])
def test_the_shares_of_all_bets_sum_to_one_and_that_for_the_budget_is_what_it_says(claim, decides):
    game = SequentialGame(claim, 1_000, decides=decides)
    shares, targets, deep = game._shares, game._targets, game._deep_targets
    assert len(shares) == 1 + len(targets) + len(deep) and shares.sum() == pytest.approx(1.0, rel=1e-12)
    assert (shares > 0.0).all() and game.log_wealth == pytest.approx(math.log(shares[0])) and game.p_value is None
    assert shares[0] == pytest.approx(0.9 if decides else 1.0 / (1.0 + len(targets)))
    if deep:  # a tenth of the rest
        assert shares[1 + len(targets) :].sum() == pytest.approx(0.1 * (1.0 - shares[0]))
    for several in (shares[1 : 1 + len(targets)], shares[1 + len(targets) :]):
        assert np.ptp(several) == 0.0 if len(several) else True
    smallest = 1.0 if decides else 0.25
    assert min(targets) * claim.value <= smallest and all(one * claim.value > smallest for one in targets[1:])
    # The deep ones go on below the first, down to 0.01 or less, none of them twice.
    both = [*deep, *targets]
    assert both == sorted(set(both)) and min(both) * claim.value <= max(0.01, min(targets) * claim.value)


@pytest.mark.parametrize("decides", [True, False])
@pytest.mark.parametrize("level", [0.05, 1e-4])
def test_the_budget_is_rejected_from_the_wealth_of_one_over_the_level_on_with_its_share(decides, level, monkeypatch):
    for short, is_rejected in ((1e-9, False), (-1e-9, True)):
        game = started(PureDP(1.0), level, decides=decides)
        share = math.exp(game.log_wealth)
        needed = -math.log(level) - math.log(share)
        monkeypatch.setattr(game, "_of_epoch", lambda epoch, won=needed - short: won)
        game.update()
        assert game.is_rejected == is_rejected
        assert game.log_wealth == pytest.approx(-math.log(level) - short, abs=1e-12)
        assert (game.known_lower > 1.0) == is_rejected and game.known_lower < 1.0 + 1e-6


def test_a_share_that_is_not_bet_is_added_to_what_the_bets_have():
    game = started(PureDP(1.0))
    (epoch,) = game.epochs
    assert epoch.idle == pytest.approx(60.0 / 100.0)  # 40 training draws
    game.add(game.statistic.count(outcomes([0.0] * 9)), game.statistic.count(outcomes([3.0] * 9)))
    game.update()
    logs = epoch.log_wealth(game._watched_lines) + epoch.bets.log_weights
    assert np.exp(epoch.bets.log_weights).sum() == pytest.approx(1.0, abs=1e-9)
    assert math.exp(game.now) == pytest.approx(0.6 + 0.4 * np.exp(logs).sum(), rel=1e-9)


# --- weights beforehand ---


@dataclasses.dataclass(frozen=True)
class Kind:
    """What `_prior` reads of a partition."""

    kind: str
    order: str = "free"
    is_learned: bool = False
    evidence: float = 0.0

    @property
    def name(self):
        return f"{self.kind}, {self.order}"


TWINS = [Kind("a"), Kind("a", "monotone"), Kind("a", "mirrored")]


def prior(*partitions):
    weights = np.exp(SequentialGame(PureDP(1.0), 1_000)._prior(partitions, 5))
    assert weights.shape == (len(partitions), 5) and np.ptp(weights, axis=1) == pytest.approx(0.0)
    assert weights[:, 0].sum() <= 1.0 + 1e-12  # a fit makes it 1
    return weights[:, 0]


def test_the_first_partition_and_its_twins_have_six_tenths_and_the_other_kinds_are_alike():
    found = prior(*TWINS, Kind("b"), Kind("c"), Kind("c", "monotone"))
    assert found[:3] == pytest.approx([0.2] * 3)
    b, c, c_monotone = found[3:].tolist()
    assert b == pytest.approx(2.0 * c) == pytest.approx(2.0 * c_monotone) and b + c + c_monotone <= 0.4 + 1e-12
    assert prior(*TWINS) == pytest.approx([0.2] * 3)


def test_partitions_that_learners_propose_share_a_tenth_or_six_tenths_where_one_is_clearly_ahead():
    told = [Kind("b", is_learned=True, evidence=5.0), Kind("c", is_learned=True, evidence=4.0)]
    split = np.exp([0.0, -1.0]) / np.exp([0.0, -1.0]).sum()
    fitted = prior(*TWINS, Kind("d"))
    assert prior(*TWINS, Kind("d"), *told) == pytest.approx([*(0.9 * fitted), *(0.1 * split)])
    ahead = [dataclasses.replace(one, evidence=one.evidence + 1.0) for one in told]  # by 6 nats
    assert prior(*TWINS, Kind("d"), *ahead) == pytest.approx([*(0.4 * fitted), *(0.6 * split)])
    nearly = [dataclasses.replace(one, evidence=one.evidence + 0.99) for one in told]
    assert prior(*TWINS, Kind("d"), *nearly)[-2:] == pytest.approx(0.1 * split)
    far = [told[0], dataclasses.replace(told[1], evidence=-90.0)]  # none has less than exp(-3) of the best one
    assert prior(*TWINS, Kind("d"), *far)[-1] == pytest.approx(0.1 * math.exp(-3.0) / (1.0 + math.exp(-3.0)))


def test_what_learners_told_is_that_of_the_best_of_them():
    assert sequential_game._told_by_learned(TWINS) == -math.inf
    both = [Kind("a", evidence=9.0), Kind("b", is_learned=True, evidence=2.0), Kind("c", is_learned=True, evidence=3.0)]
    assert sequential_game._told_by_learned(both) == 3.0


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str)
def test_what_a_partition_won_is_its_weight_in_the_next_epoch(claim):
    """An epoch in which all bets are on what came: those of the next one begin with what each partition has won."""
    game = started(claim)
    game.add(game.statistic.count(outcomes([0.0] * 20)), game.statistic.count(outcomes([3.0] * 20)))
    game.update()
    (epoch,) = game.epochs
    won = epoch.log_wealth(game._watched_lines)  # (partitions, components)
    before = game._prior(epoch.partitions, game._components_count)
    game.fit(fit_partitions(outcomes([0] * 35 + [3] * 5), outcomes([3] * 35 + [0] * 5)), 0.05)
    after = game._prior(epoch.partitions, game._components_count)
    gained = (after - before)[:, epoch.kept]
    assert gained == pytest.approx(won, abs=1e-9)
    # A new partition begins with the average.
    fresh = game._prior([dataclasses.replace(TWINS[0], kind="never seen")], game._components_count)[0]
    assert fresh == pytest.approx(np.full(len(fresh), np.log(np.exp(won + epoch.bets.log_weights).sum())
                                          + math.log(0.6)), abs=1e-9)  # fmt: skip
