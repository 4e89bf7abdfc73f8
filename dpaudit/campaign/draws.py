"""The draws of a campaign: taken round by round, in chunks, counted once, and shown to fits only when a round is over.

Memory. What is kept for fits takes `KEPT_BYTES` at most, over all inputs, but for the first `FIRST_DRAWS` of each. Of
larger outcomes fewer are kept, the first ones, and `dropped` says how many were not. Counts are of all outcomes.

Validity. What `take` gives back counts a round whose plan was fixed before its first draw. Until the round is released
no fit can see its outcomes: `joined` refuses. Which outcomes are kept goes by their places alone.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.outcomes import Outcomes, join
from dpaudit.inference.order import (
    COLUMNS,
    LATER,
    LATER_NUMBERS,
    MAX_OBJECTS,
    Change,
    LaterOutcomes,
    change_of,
    dependence_hint,
)
from dpaudit.inference.tasks import FIRST_DRAWS, Drawer, Request, Task, TaskResult

CHUNK_NUMBERS = 1 << 19  # numbers drawn at a time
CHUNK_BYTES = 128 << 20  # of the outcomes of an input that are drawn at a time, by the size of the first ones
KEPT_BYTES = 512 << 20  # of all outcomes that fits may see: 16 times what numbers take
CHUNK_CALLS = 512  # calls at a time, of a subject called once a draw, so that processes can share a round

Counts = dict[int, list[NDArray[np.int64]]]


def chunk_size(columns: int, size: int) -> int:
    """Draws of an input at a time, at most, whose outcomes are so many numbers and take so many bytes each."""
    return min(max(64, CHUNK_NUMBERS // max(columns, 1)), max(1, CHUNK_BYTES // max(size, 1)))


@dataclasses.dataclass(frozen=True)
class RoundPlan:
    """One round, fixed before the first of its draws."""

    needed: Mapping[int, int]  # draws of each input
    requests: Mapping[int, Sequence[Request]] = dataclasses.field(default_factory=dict)  # what is counted on them
    # Outcomes of an input that later fits may see, of all rounds together; of others a few are kept for their order.
    keeps: int = 0


@dataclasses.dataclass(frozen=True)
class Fresh:
    """A round that was drawn: its counts by input, in the order of the requests, and outcomes that no fit sees yet."""

    counts: Counts
    outcomes: Sequence[tuple[Task, TaskResult]]
    inputs: int


class Draws:
    """Draws of a campaign: it makes them (`draw` carries out tasks), and keeps outputs for fits.

    `first` is the number of the first round, which names its streams. Where a draw is a call of its own (`calls`),
    chunks are smaller, so that more processes can share a round. Of one input at most `largest_batch` draws are asked
    for at a time; by default as many as memory allows.
    """

    def __init__(self, draw: Drawer, first: int = 0, *, calls: bool = False, largest_batch: int | None = None) -> None:
        self.draw, self.round, self.runs = draw, first, 0  # the round that comes next, and all draws so far
        self.kept: dict[int, list[Outcomes]] = {}  # what fits may see of each input
        self.later: dict[int, LaterOutcomes] = {}  # a few of later draws, for their order alone
        self.columns = 1  # how many numbers an outcome is
        self.size = 1  # bytes that an outcome takes, at most, of those that were measured
        self.dropped = 0  # outcomes that were not kept, as there is a bound on memory
        self._trimmed: set[int] = set()  # inputs of which fewer were kept than their places say
        self._calls, self._largest_batch = calls, largest_batch or sys.maxsize
        self._batches: dict[int, list[int]] = {}  # the sizes of those that this run has drawn of what is kept
        self._from_before: dict[int, int] = {}  # of the outcomes that are kept, how many an earlier run has drawn
        self._is_open = False

    def go_on(self, inputs: Sequence[int], kept: Mapping[int, Outcomes]) -> None:
        """Go on from the outcomes that an earlier run has kept, in the place of a pilot."""
        self.round += 1
        self._from_before = {i: len(outcomes) for i, outcomes in kept.items()}
        self.kept = {i: [kept[i]] if i in kept else [] for i in inputs}
        self.measure(list(kept.values()))

    def measure(self, outcomes: Sequence[Outcomes]) -> None:
        """Note how large an outcome is."""
        self.columns = max((part.numbers.shape[1] for part in outcomes), default=1)
        self.size = max((part.nbytes // max(len(part), 1) for part in outcomes), default=1) or 1

    def take(self, plan: RoundPlan) -> Fresh:
        """Draw one round; its outcomes stay closed until `release`."""
        tasks = self._tasks(plan)
        # An input whose pairs' coins all fell on the other side has no task: its counts are zeros.
        totals = {i: [request.statistic.zeros() for request in plan.requests.get(i, ())] for i in plan.needed}
        drawn = list(zip(tasks, self.draw(tasks), strict=True))
        for task, result in drawn:
            self.runs += task.size
            totals[task.input] = [a + b for a, b in zip(totals[task.input], result.counts, strict=True)]
        self.round += 1
        self._is_open = True
        return Fresh(totals, drawn, len(plan.needed))

    def release(self, fresh: Fresh) -> None:
        """Let later fits see what is kept of a round: it was absorbed."""
        self._is_open = False
        for task, result in fresh.outcomes:
            if result.kept is None:
                continue
            kept = result.kept if task.is_last else self._within(task.input, result.kept, fresh.inputs)
            if len(kept) < task.keep:
                self.dropped += task.keep - len(kept)
                self._trimmed.add(task.input)
            if not len(kept):
                continue
            if task.is_last:
                most = LATER_NUMBERS // max(len(self.kept), fresh.inputs)
                self.later.setdefault(task.input, LaterOutcomes(most)).add(kept.narrowed(COLUMNS))
            else:
                self.kept.setdefault(task.input, []).append(kept)
                self._batches.setdefault(task.input, []).append(len(kept))

    def learn(self, plan: RoundPlan) -> Counts:
        """Draw what no test counts, and let fits see it at once; the counts are for fits too."""
        fresh = self.take(plan)
        self.release(fresh)
        return fresh.counts

    def hand_over(self, sizes: Mapping[int, int]) -> dict[int, Outcomes]:
        """Draw so many of each input that no test counts, and give them away: nothing is kept here."""
        self.learn(RoundPlan(sizes, keeps=max(sizes.values())))
        drawn = {i: self.joined(i) for i in self.kept}
        self.kept = {}
        return drawn

    def joined(self, i: int) -> Outcomes:
        """The outputs of one input that fits may see, as one object."""
        if self._is_open:
            raise RuntimeError("a fit must not see a round that is not absorbed.")
        parts = self.kept[i]
        self.kept[i] = [join(parts) if len(parts) > 1 else parts[0]]
        return self.kept[i][0]

    def first(self, i: int) -> Outcomes | None:
        """The first outcomes of one input that this run has drawn and kept, in the order of the calls."""
        if not self.kept.get(i):
            return None
        begin = self._from_before.get(i, 0)
        return self.joined(i).rows(slice(begin, begin + MAX_OBJECTS))

    def change(self, i: int) -> Change | None:
        """Tell whether the outcomes of one input changed from call to call, of those that this run has drawn."""
        first = self.first(i)
        if first is None or i in self._trimmed:  # Validity: which are looked at must go by their places alone
            return None
        later = self.later[i].parts if i in self.later else ()
        return change_of(first.narrowed(COLUMNS), self._batches.get(i, ()), later)

    def hint(self, i: int) -> float:
        """An approximate p-value: are the outcomes of one input spread evenly over the batches of this run?"""
        later = self.later[i].parts if i in self.later else []
        if self._calls or i in self._trimmed or not (self._batches.get(i) or later):
            return 1.0
        if not self._batches.get(i):  # nothing of this run is kept for fits
            return dependence_hint(join(later), [len(part) for part in later])
        return dependence_hint(self.joined(i).rows(slice(self._from_before.get(i, 0), None)), self._batches.get(i, ()))

    def keep_for_order(self, rows: int) -> None:
        """Drop what was kept, but for so many first outcomes of each input: no fit needs more of them."""
        self.kept = {i: [self.joined(i).rows(slice(0, rows)).narrowed(COLUMNS).kept()] for i in self.kept}

    def _tasks(self, plan: RoundPlan) -> list[Task]:
        """The round in chunks, each with its part of what is counted and kept."""
        largest = min(chunk_size(self.columns, self.size), self._largest_batch)
        each = min(largest, CHUNK_CALLS) if self._calls else largest
        tasks = []
        for i, count in plan.needed.items():
            room = self._room(i, plan, count)
            for chunk, start in enumerate(range(0, count, each)):
                size = min(each, count - start)
                wanted = tuple(request.within(start, size) for request in plan.requests.get(i, ()))
                is_later = room <= start
                keep = min(LATER, size) if is_later else min(room - start, size)
                tasks.append(Task(i, self.round, chunk, start, size, wanted, keep, is_later))
        return tasks

    def _room(self, i: int, plan: RoundPlan, count: int) -> int:
        """The number of further outcomes of an input that fits may see, of `count` that are drawn."""
        if not plan.keeps:
            return 0
        there = sum(len(part) for part in self.kept.get(i, ()))
        inputs = max(len(self.kept), len(plan.needed))
        most = max(KEPT_BYTES // (inputs * self.size), FIRST_DRAWS)
        wanted, room = plan.keeps - there, min(plan.keeps, most) - there
        self.dropped += max(min(wanted, count) - max(room, 0), 0)
        return room

    def _within(self, i: int, kept: Outcomes, inputs: int) -> Outcomes:
        """The first outcomes of a chunk, as many as there is room for: they may be larger than the measured ones."""
        there = self.kept.get(i, ())
        self.size = max(self.size, kept.nbytes // max(len(kept), 1))
        if sum(map(len, there)) + len(kept) <= FIRST_DRAWS:
            return kept
        most = KEPT_BYTES // max(len(self.kept), inputs)
        return kept.within(max(most - sum(part.nbytes for part in there), 0))
