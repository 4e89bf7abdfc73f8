"""One witness, fixed before, on fresh labelled draws of its pair: the shortest campaign."""

from __future__ import annotations

import numpy as np

from dpaudit.campaign.campaign import Campaign
from dpaudit.campaign.draws import Counts, Draws, RoundPlan
from dpaudit.inference.order import MAX_OBJECTS
from dpaudit.inference.protocols import Test
from dpaudit.inference.tasks import Draw, Request, toss
from dpaudit.privacy.claims import FloatArray

MAX_BATCH = 1 << 16  # draws at a time: how many numbers an output has is not known before


class WitnessGame(Campaign):
    """Asks a test that has a rule and is not started once, on `labelled` draws of inputs 0 (x) and 1 (x_prime).

    `level` is that of its one look, `coin` draws the labels alone, and outputs are read less `move`.
    """

    def __init__(
        self,
        test: Test,
        level: float,
        labelled: int,
        draw: Draw,
        coin: np.random.Generator,
        move: FloatArray | None = None,
    ) -> None:
        super().__init__(Draws(draw, largest_batch=MAX_BATCH))
        self.test, self._level, self._move = test, level, move
        self._quotas = toss(labelled, coin)

    def start(self) -> None:
        """Fix the level; nothing is drawn before."""
        self.test.start(self._level)

    def _freeze(self) -> RoundPlan | None:
        if self.runs:
            return None
        requests = {i: [Request(size, self.test.statistic, 0, self._move)] for i, size in enumerate(self._quotas)}
        return RoundPlan(dict(enumerate(self._quotas)), requests, MAX_OBJECTS)

    def _absorb(self, counts: Counts) -> None:
        self.test.add(counts[0][0], counts[1][0])

    def _look(self) -> None:
        self.test.update()
