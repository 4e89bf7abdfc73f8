"""Schedules in numbers: pilots, rounds and limits of stand-in pairs, as their docstrings and constants say.

Nothing is drawn here. Rounds are functions of the numbers below alone.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpaudit.campaign.schedules import schedule_of
from dpaudit.inference.pools import Pool


@dataclasses.dataclass
class Pair:
    """What a schedule reads of a pair. Merits rank the pairs before the first round."""

    pool: Pool
    labelled: int = 0
    is_far: bool = False
    wealth: float = 0.0

    @property
    def main(self):
        return self

    @property
    def merit(self):
        return 0, -self.wealth  # the other way round, to tell it from wealth


def apart(count, **numbers):
    """So many pairs of which no two share an input."""
    pairs = [Pair(Pool.single((2 * k, 2 * k + 1))) for k in range(count)]
    for name, values in numbers.items():
        for pair, value in zip(pairs, np.broadcast_to(values, count).tolist(), strict=True):
            setattr(pair, name, value)
    return pairs


@pytest.mark.parametrize("open_pairs", [1, 4, 5, 8])
def test_a_sequential_round_is_a_share_of_the_draws_so_far(open_pairs):
    schedule = schedule_of("sequential", 50_000, 8, 16)  # with a pilot of 1,774
    assert schedule.pilot == 24 + 7 * 250
    asked = list(range(8 - open_pairs, 8))
    pairs = apart(8, labelled=[100 * k for k in range(8)])
    growth = 0.02 if open_pairs < 5 else 0.08

    def rounds(growth):
        return {k: int(growth * (1_774 + 100 * k)) for k in asked}

    assert schedule.sizes(pairs, asked, 0) == rounds(growth)
    # A longer round only where every open pair is far from a decision.
    for pair in pairs:
        pair.is_far = True
    assert schedule.sizes(pairs, asked, 0) == rounds(0.145)
    pairs[7].is_far = False
    assert schedule.sizes(pairs, asked, 0) == rounds(growth)


def adaptive(pairs=4, samples=1_000):
    schedule = schedule_of("adaptive", samples, pairs, 2 * pairs)
    schedule.pilot = 64
    return schedule


def test_the_leader_of_an_adaptive_round_catches_up_with_its_share():
    """Half of all evenly and half by 1 / rank: of 4 pairs the leader has 1/8 + 12/50 of it, that is 0.365."""
    schedule, pairs = adaptive(), apart(4, labelled=936, wealth=[0.0, 3.0, 1.0, -2.0])
    # 4,000 labelled draws so far; a round is of 80 (2%), all of which the leader lacks.
    assert schedule.sizes(pairs, [0, 1, 2, 3], 4_000) == {1: 80}
    # Where little is left no more than that is drawn, and nothing below a round of 16.
    assert sum(schedule.sizes(pairs, [0, 1, 2, 3], 8_000 - 40).values()) <= 40
    assert schedule.sizes(pairs, [0, 1, 2, 3], 8_000 - 15) == {}
    assert schedule.sizes(pairs, [0, 1, 2, 3], 8_000 - 16) != {}


def shares_of(wealths):
    ranks = np.argsort(np.argsort(-np.asarray(wealths))) + 1
    return 0.5 / len(wealths) + 0.5 / ranks / (1.0 / ranks).sum()


@pytest.mark.parametrize("pairs_count", [2, 4, 6])
def test_an_adaptive_round_brings_pairs_towards_half_even_and_half_by_rank(pairs_count):
    rng = np.random.default_rng(20_261_126)
    for _ in range(40):
        wealths = rng.normal(size=pairs_count)
        labelled = rng.integers(1, 3_000, size=pairs_count)
        pairs = apart(pairs_count, labelled=labelled, wealth=wealths)
        sizes = adaptive(pairs_count, 100_000).sizes(pairs, list(range(pairs_count)), 0)
        used = labelled + 64
        step = max(16.0, (0.08 if pairs_count >= 5 else 0.02) * used.sum())
        short = np.maximum(shares_of(wealths) * (used.sum() + step) - used, 0.0)
        expected = np.minimum(short * step / short.sum(), np.maximum(16.0, 0.3 * used))
        expected[expected.argmax()] = max(expected.max(), 16.0)
        assert sizes == {k: int(size) for k, size in enumerate(expected) if size >= 16.0}
        assert all(16 <= size <= max(16.0, 0.3 * used[k]) for k, size in sizes.items())


def test_what_the_leader_draws_is_read_by_open_pairs_of_the_same_inputs_that_lag():
    pairs = [Pair(Pool.single(inputs), labelled=3_000) for inputs in ((0, 1), (0, 1), (2, 3))]
    pairs[0].wealth = 5.0
    schedule = adaptive(3, 2_000)
    sizes = schedule.sizes(pairs, [0, 1, 2], 0)
    assert sizes[0] >= 16 and sizes[1] == sizes[0] and 2 not in sizes
    assert set(schedule.sizes(pairs, [0, 2], 0)) == {0}  # a decided pair reads nothing
    pairs[1].labelled = 4_000  # and one that had as many as an even share reads no more
    assert set(schedule.sizes(pairs, [0, 1, 2], 0)) == {0}
