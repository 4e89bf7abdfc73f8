"""Tests whose rules are fixed before, each on fresh labelled draws of its pair: the shortest campaign."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dpaudit.campaign.campaign import Campaign
from dpaudit.campaign.draws import Counts, Draws, RoundPlan
from dpaudit.inference.order import MAX_OBJECTS
from dpaudit.inference.tasks import Drawer, Request, toss
from dpaudit.privacy.claims import FloatArray

MAX_BATCH = 1 << 16  # draws at a time: how many numbers an output has is not known before


@dataclasses.dataclass
class Asked:
    """A test (`inference.protocols.Test`) with a rule, not started, and how it is asked.

    `level` is that of its one look, `coin` draws the labels alone, `inputs` are the positions of x and x_prime, and
    outputs are read less `move`.
    """

    test: Any
    level: float
    labelled: int
    coin: np.random.Generator
    inputs: tuple[int, int] = (0, 1)
    move: FloatArray | None = None


class WitnessGame(Campaign):
    """Asks tests once. `keeps` outcomes of each input are kept for their order."""

    def __init__(self, draws: Draws, asked: list[Asked], keeps: int = 0) -> None:
        super().__init__(draws)
        self.asked, self._keeps, self._is_frozen = asked, keeps, False

    @classmethod
    def of_one(cls, asked: Asked, draw: Drawer) -> WitnessGame:
        """The game of one witness."""
        return WitnessGame(Draws(draw, largest_batch=MAX_BATCH), [asked], MAX_OBJECTS)

    def start(self) -> None:
        """Fix the levels; nothing is drawn before."""
        for one in self.asked:
            one.test.start(one.level)

    def _freeze(self) -> RoundPlan | None:
        if self._is_frozen or not self.asked:
            return None
        self._is_frozen = True
        requests: dict[int, list[Request]] = {}
        for one in self.asked:
            for i, quota in zip(one.inputs, toss(one.labelled, one.coin), strict=True):
                requests.setdefault(i, []).append(Request(quota, one.test.statistic, 0, one.move))
        needed = {i: max(request.quota for request in requests[i]) for i in sorted(requests)}
        return RoundPlan(needed, requests, self._keeps)

    def _absorb(self, counts: Counts) -> None:
        counted = {i: iter(of_input) for i, of_input in counts.items()}
        for one in self.asked:
            one.test.add(*(next(counted[i]) for i in one.inputs))

    def _look(self) -> None:
        for one in self.asked:
            one.test.update()
