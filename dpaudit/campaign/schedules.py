"""Schedules: how many draws of which pairs come next.

Validity. Who plays a round, and how long it is, is a function of earlier rounds alone. Sequential wealth may be looked
at after every round (Ville's inequality), so rounds may be longer where no pair is near a decision. An exact test is
looked at once, after a number of draws that the pilot fixes: it has one round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np

from dpaudit.campaign.campaign import shares_by_rank
from dpaudit.inference.pair_game import PairGame

Mode = Literal["sequential", "adaptive", "fixed"]
FIRST_PILOT = 24  # labelled draws before the first bet on a single pair
# Of all labelled draws: before many pairs' bets; before a fixed test, where fits see as many.
PILOT_SHARE = {"sequential": 0.05, "adaptive": 0.05, "fixed": 0.15}
PILOT_PER_PAIR = 250  # labelled draws by which each further pair lengthens a sequential pilot, up to that share
# A fixed rule is learned once. Up to so many draws the pilot is this share of all: what takes many cells to see is then
# found in half as many draws, and one threshold in about as many; what shows seldom, and then for certain, takes more.
# At 20,000 draws one of 7,000 finds 7 of 10 leaks of the gallery that one of 4,000 misses.
FIXED_PILOT, FIXED_SHARE = 8_000, 0.35
# Draws of an input that fits may see, so of a pilot: a fit takes 40,000 of both (single numbers: 10,000); fixed, half.
TRAINING_DRAWS = {"sequential": 20_000, "adaptive": 20_000, "fixed": 50_000}
ROUND_GROWTH = {1: 0.02, 5: 0.08}  # a round's labelled draws over all those before it, from so many open pairs on
FAR_GROWTH = 0.145  # the same where all open pairs are far from a decision: the most by which one is seen too late
MIN_ROUND = 16  # labelled draws
ADAPTIVE_REACH = 16  # times its even share: the labelled draws that a pair may take in adaptive mode
MAX_STEP = 0.3  # of its labelled draws so far: the most of a pair in an adaptive round, but for what others draw of it


@dataclasses.dataclass
class Schedule:
    """Schedule of the draws of a label game's pairs, in rounds with a look after each."""

    planned: int  # labelled draws of a pair, with the pilot
    pairs: int
    inputs: int  # how many the pairs have together
    mode: Mode = "sequential"
    is_coarse = False  # whether rounds are as long as where all pairs are far from a decision
    looks_once = False  # whether a test is looked at once, at the end, and fitted before it alone

    def __post_init__(self) -> None:
        self.pilot = self.first_pilot()  # labelled draws of a pair, even: as many of x as of x_prime
        self.limit = self.planned  # labelled draws that a pair may take, with the pilot
        self.most_runs = self.planned // 2 * self.inputs

    def first_pilot(self) -> int:
        share = max(int(PILOT_SHARE[self.mode] * self.planned), 64)
        # One pair needs no ranking; the more there are, the more a good one is worth.
        share = min(share, FIRST_PILOT + PILOT_PER_PAIR * (self.pairs - 1))
        return self._at_most(share, self.planned // 4)

    def _at_most(self, share: int, most: int) -> int:
        return 2 * max(1, min(share, 2 * TRAINING_DRAWS[self.mode], most) // 2)

    def sizes(self, pairs: Sequence[PairGame], open_pairs: Sequence[int], runs: int) -> dict[int, int]:
        """The labelled draws of the next round, of each pair that plays in it.

        `open_pairs` are the positions of those that may still draw, at least one; `runs` are those so far.
        """
        del runs
        growth = _growth(len(open_pairs))
        if self.is_coarse or all(pairs[k].is_far for k in open_pairs):
            growth = max(growth, FAR_GROWTH)
        used = {k: self.pilot + pairs[k].labelled / pairs[k].pool.breadth for k in open_pairs}
        return {k: pairs[k].pool.labelled(max(MIN_ROUND, int(growth * so_far))) for k, so_far in used.items()}

    def rounds(self) -> int:
        """Rounds at most, the pilot among them: those of pairs that stay near a decision."""
        rounds, so_far = 1, self.pilot
        while so_far < self.planned:
            rounds, so_far = rounds + 1, so_far + max(MIN_ROUND, int(_growth(self.pairs) * so_far))
        return rounds

    def drawn(self, pairs: Sequence[PairGame], runs: int) -> int:
        """Labelled draws so far, of the planned ones."""
        del runs
        return self.pilot + max(int(pair.labelled / pair.pool.breadth) for pair in pairs)


class Fixed(Schedule):
    """One round of all that the pilot leaves, and one look."""

    looks_once = True

    def first_pilot(self) -> int:
        most = int(FIXED_SHARE * self.planned)
        return self._at_most(max(int(PILOT_SHARE[self.mode] * self.planned), min(FIXED_PILOT, most), 64), most)

    def sizes(self, pairs: Sequence[PairGame], open_pairs: Sequence[int], runs: int) -> dict[int, int]:
        del runs
        return {k: pairs[k].pool.labelled(self.planned) for k in open_pairs}

    def rounds(self) -> int:
        return 2


class Adaptive(Schedule):
    """`samples` runs an input on average: half of all evenly, half in proportion to 1 / rank by wealth.

    What the leading pairs draw is read by other open pairs of the same inputs too, where they lag behind.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.limit = min(ADAPTIVE_REACH, self.pairs) * self.planned

    def drawn(self, pairs: Sequence[PairGame], runs: int) -> int:
        del pairs
        return runs * self.planned // self.most_runs

    def sizes(self, pairs: Sequence[PairGame], open_pairs: Sequence[int], runs: int) -> dict[int, int]:
        left = self.most_runs - runs
        if left < MIN_ROUND:
            return {}
        are_open = [pairs[k] for k in open_pairs]
        used = np.array([pair.pool.labelled(self.pilot) + pair.labelled for pair in are_open], dtype=float)
        step = min(
            max(MIN_ROUND, _growth(len(open_pairs)) * used.sum()), left
        )  # of a pair of its own a labelled draw is one run
        has_begun = any(pair.labelled for pair in pairs)
        target = shares_by_rank([(pair.wealth,) if has_begun else pair.main.merit for pair in are_open])
        wanted = np.maximum(target * (used.sum() + step) - used, 0.0)
        wanted = np.minimum(wanted * step / wanted.sum(), np.maximum(MIN_ROUND, MAX_STEP * used))
        wanted[np.argmax(wanted)] = max(float(wanted.max()), float(MIN_ROUND))
        sizes = {k: int(size) for k, size in zip(open_pairs, wanted.tolist(), strict=True) if size >= MIN_ROUND}
        drawn: dict[int, float] = {}
        for k, size in sizes.items():
            pool = pairs[k].pool
            for i in pool.inputs:
                drawn[i] = max(drawn.get(i, 0.0), size * pool.load(i))
        for k, so_far in zip(open_pairs, used.tolist(), strict=True):
            pool = pairs[k].pool
            shared = int(min(drawn.get(i, 0.0) / pool.load(i) for i in pool.inputs))
            if shared >= MIN_ROUND and so_far < pool.labelled(self.planned):
                sizes[k] = max(sizes.get(k, 0), shared)
        return dict(sorted(sizes.items()))


def _growth(open_pairs: int) -> float:
    return ROUND_GROWTH[max(least for least in ROUND_GROWTH if least <= open_pairs)]


SCHEDULES: dict[Mode, type[Schedule]] = {"sequential": Schedule, "adaptive": Adaptive, "fixed": Fixed}


def schedule_of(mode: Mode, samples: int, pairs: int, inputs: int) -> Schedule:
    """The schedule of a mode, for at most 2 * samples labelled draws a pair."""
    return SCHEDULES[mode](2 * samples, pairs, inputs, mode)
