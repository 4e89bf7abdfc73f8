"""Tasks: what is drawn of one input in one chunk of a round, what is counted on it, and what is kept.

Whoever draws carries out tasks, in whatever order and process: each has a stream of its own, and its counts add up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.outcomes import Outcomes
from dpaudit.privacy.claims import FloatArray

FIRST_DRAWS = 64  # of an input, before their size is known; kept however large they are, and asked what they show


class Statistic(Protocol):
    """Statistic that is counted on a batch of outcomes: adds up over batches."""

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]: ...

    def zeros(self) -> NDArray[np.int64]: ...


@dataclasses.dataclass(frozen=True)
class Request:
    """Count `statistic` on `quota` draws of a task's input in this round, from position `start` on, less `move`."""

    quota: int
    statistic: Statistic
    start: int = 0
    move: FloatArray | None = None

    def within(self, start: int, size: int) -> Request:
        """The part of it that falls in the chunk of `size` draws from `start` on, as positions in that chunk."""
        low = min(max(self.start - start, 0), size)
        high = min(max(self.start + self.quota - start, 0), size)
        return dataclasses.replace(self, quota=high - low, start=low)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """The counts on the outcomes of a chunk."""
        return self.statistic.count(outcomes.rows(slice(self.start, self.start + self.quota)).moved(self.move))


KEPT_BYTES_A_TASK = 64 << 20  # of the outcomes of one chunk: the next ones may be larger than those that were measured


@dataclasses.dataclass(frozen=True)
class Task:
    """Draw `size` outputs of one input from the stream (round, chunk), count the requests, keep the first `keep`.

    `start` is the position of the chunk's first draw within the round's draws of the input. With `is_last` the last
    ones are kept.
    """

    input: int
    round: int
    chunk: int
    start: int
    size: int
    requests: tuple[Request, ...]
    keep: int
    is_last: bool = False

    def result_on(self, outcomes: Outcomes) -> TaskResult:
        """The counts of the requests on the chunk's outcomes, and those of them that are kept."""
        rows = slice(len(outcomes) - self.keep, None) if self.is_last else slice(0, self.keep)
        kept = outcomes.rows(rows).kept().within(KEPT_BYTES_A_TASK) if self.keep else None
        return TaskResult(tuple(request.count(outcomes) for request in self.requests), kept)


@dataclasses.dataclass(frozen=True)
class TaskResult:
    """Counts, one array a request, and the `keep` outcomes of the chunk (None for none)."""

    counts: tuple[NDArray[np.int64], ...]
    kept: Outcomes | None


Drawer = Callable[[Sequence[Task]], list[TaskResult]]


def toss(labelled: int, coin: np.random.Generator) -> tuple[int, int]:
    """Counts of x (label 1) and of x_prime among so many labelled draws: fair coins.

    `coin` is of a stream that nothing else reads, so labels do not depend on outputs.
    """
    ones = int(coin.binomial(labelled, 0.5))
    return ones, labelled - ones
