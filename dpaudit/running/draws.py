"""How tasks are carried out: draw a chunk of outputs from its stream, count on it, return counts.

Workers return counts, and the few training draws that a task asks for; never samples beyond these. Who draws a chunk is
decided by time alone, and changes nothing: its stream is keyed by what is drawn.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.campaign.campaign import Progress
from dpaudit.errors import DpauditError, SubjectError, UsageError
from dpaudit.reading.outcomes import read_outputs
from dpaudit.running.checkpoint import Checkpoint
from dpaudit.running.plain_data import NotPlainError, to_bytes
from dpaudit.running.randomness import randomness_moved
from dpaudit.running.streams import ORDER_OF_CALLS, stream
from dpaudit.running.workers import Packed, Raised, Workers, open_workers, outcome
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.plain import Seen
from dpaudit.testing.tasks import Task, TaskResult

WORTH_SENDING = 0.0  # seconds that workers must save, beside their overhead, before a batch is sent to them
WARM_UP_SECONDS = 2.0  # of drawing still to come from which workers are started beside it
STARTING_SECONDS = 1.0  # that starting workers takes, about, where a batch would wait for it
TELL_SECONDS = 0.25  # between two words on the progress of one batch
MOST_INTERLEAVED = 8  # inputs whose calls are made in one random order
MOST_HYPERGEOMETRIC = 1_000_000_000  # calls, below which that order is drawn segment by segment
SEGMENT = 1 << 14  # of these calls
GROUPS_A_SLOT = 4  # messages to a worker in one batch, at most


def carry_out(subject: Subject, data: Any, seed: int, purpose: int, task: Task) -> TaskResult:
    """Draw the task's chunk on `data`, count each request, keep `task.keep` of the outcomes."""
    return counted(subject.observe(data, task.size, stream_of(seed, purpose, task)), task)


def stream_of(seed: int, purpose: int, task: Task) -> np.random.Generator:
    """That of a task's chunk."""
    return stream(seed, purpose, task.input, task.round, task.chunk)


def counted(outputs: Any, task: Task) -> TaskResult:
    """The counts of a task's requests on its outputs, and the outcomes that it keeps."""
    outcomes = read_outputs(outputs, task.size)
    counts = tuple(request.count(outcomes) for request in task.requests)
    kept = task.kept_of(outcomes)
    return TaskResult(counts, kept.kept() if kept is not None else None)


@dataclasses.dataclass(frozen=True)
class DrawJob:
    """Carries out tasks of one purpose: what is sent to workers.

    `moved` says, by input, whether the first chunk that was drawn in this process took randomness.
    """

    subject: Subject
    data: Sequence[Any] | Mapping[int, Any]
    seed: int
    purpose: int
    moved: dict[int, bool] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def __call__(self, task: Task) -> TaskResult:
        if task.input in self.moved:
            return carry_out(self.subject, self.data[task.input], self.seed, self.purpose, task)
        rng = stream_of(self.seed, self.purpose, task)
        moved = randomness_moved(self.subject, rng)
        outputs = self.subject.observe(self.data[task.input], task.size, rng)
        self.moved[task.input] = moved()
        return counted(outputs, task)

    @functools.cached_property
    def packed(self) -> Packed:
        """Itself as bytes."""
        return Packed(self, self.subject.name)


def is_interleaved(subject: Subject, inputs: Sequence[Any], runs: int) -> bool:
    """Whether so many calls on several inputs are made in one random order, where they are made here.

    Validity: a mechanism that changes from call to call, or a machine that does, cannot tell then which input it is.
    Of many inputs the outputs that have to be held until a task is complete would be too many. Calls on one object that
    is given twice would share a working copy.
    """
    are_apart = len({id(data) for data in inputs}) == len(inputs)
    is_called_once = not subject.is_vectorised and not subject.is_contained
    return is_called_once and are_apart and 2 <= len(inputs) <= MOST_INTERLEAVED and runs < MOST_HYPERGEOMETRIC


class _Part:
    """The calls on one input, made one by one: task by task.

    Attributes
    ----------
    position, task
        Those of the task that its calls are of.
    outputs : list
        Of these calls, as far as they were made.
    call : callable
        Makes the next one.
    """

    def __init__(self, job: DrawJob, tasks: Sequence[tuple[int, Task]]) -> None:
        self._job, self._tasks = job, list(reversed(tasks))
        self.begin()

    def begin(self) -> None:
        """Go on to the next task."""
        if not self._tasks:
            self.outputs = Seen()
            return
        self.position, self.task = self._tasks.pop()
        job, task = self._job, self.task
        rng = stream_of(job.seed, job.purpose, task)
        self._moved = randomness_moved(job.subject, rng) if task.input not in job.moved else None
        self.outputs = Seen()
        self.call = job.subject.observe_one_by_one(job.data[task.input], task.size, rng).__next__

    @property
    def left(self) -> int:
        """Calls of the task that are still to be made."""
        return self.task.size - len(self.outputs)

    def result(self) -> TaskResult:
        """That of the task, once all calls were made."""
        if self._moved is not None:
            self._job.moved[self.task.input] = self._moved()
        return counted(self.outputs, self.task)


def _place(flags: NDArray[np.bool_], count: int) -> int:
    """How many of the flags it takes to have so many that are true; all of them where there are fewer."""
    places = np.flatnonzero(flags)
    return int(places[count - 1]) + 1 if len(places) >= count else len(flags)


class Crew:
    """Who draws for one audit, and where it is noted: this process, its workers, its checkpoint.

    Parameters
    ----------
    jobs : int
        Worker processes; 1 draws here. With a cluster's backend: of a cluster of this machine, where none is named.
    backend : str
        "loky", "dask", "ray", or the name of another backend of joblib.
    cluster : str, optional
        The address of a scheduler.
    checkpoint : Checkpoint, optional
        Where finished chunks are noted, and found again.
    expected : int
        Runs that the audit will take, about: whether it is worth to start workers.

    Attributes
    ----------
    found : int
        Chunks that were found in the checkpoint.
    noted_error : SubjectError or None
        The last one that a task raised, which is its result.
    """

    def __init__(
        self,
        jobs: int = 1,
        backend: str = "loky",
        cluster: str | None = None,
        checkpoint: Checkpoint | None = None,
        expected: int = 0,
    ) -> None:
        self.workers: Workers | None = open_workers(jobs, backend, cluster)
        self.checkpoint, self.expected, self.found = checkpoint, expected, 0
        self.noted_error: SubjectError | None = None
        self._seconds, self._runs = 0.0, 0  # of one process
        self._tell: Callable[[Progress], None] | None = None
        self._state: Progress | None = None
        self._told = 0.0

    def telling(self, on_progress: Callable[[Progress], None] | None) -> Callable[[Progress], None] | None:
        """The same function, for games to tell where they stand; long rounds are told of chunk by chunk as well."""
        if on_progress is None:
            return None
        self._tell = on_progress

        def tell(state: Progress) -> None:
            self._state, self._told = state, time.monotonic()
            on_progress(state)

        return tell

    def carry_out(self, job: DrawJob, tasks: Sequence[Task]) -> list[TaskResult]:
        """The results in the order of the tasks.

        Raises
        ------
        SubjectError
            Of the first task, in their order, that raised one.
        """
        found: dict[int, TaskResult | Raised] = {}
        if self.checkpoint is not None:
            found = {
                k: known
                for k, task in enumerate(tasks)
                if (known := self.checkpoint.find(job.purpose, task)) is not None
            }
        done = sum(tasks[k].size for k in found)
        self._check_first(job, tasks, found)
        self.found += len(found)
        end = min((k for k, known in found.items() if isinstance(known, Raised)), default=len(tasks))
        missing = [k for k in range(end) if k not in found]
        for part in self._carried_out(job, tasks, missing):
            if self.checkpoint is not None:
                # Validity: noted before anybody looks at it, so that no chunk that was looked at is ever drawn again.
                noted = [(tasks[k], result) for k, result in part]
                self.checkpoint.note(job.purpose, noted, job.subject.contained_so_far())
            found.update(part)
            done += sum(tasks[k].size for k, _ in part)
            self._tell_runs(done)
        results: list[TaskResult] = []
        for _, result in sorted(found.items(), key=lambda item: (not isinstance(item[1], Raised), item[0])):
            if isinstance(result, Raised):  # the first of them
                self.noted_error = result.error if isinstance(result.error, SubjectError) else None
                raise result.error
            results.append(result)
        return results

    def close(self) -> None:
        """Give back workers; those of this machine are kept for the next audit."""
        if self.workers is not None:
            self.workers.close()

    def _carried_out(
        self, job: DrawJob, tasks: Sequence[Task], missing: Sequence[int]
    ) -> Iterator[list[tuple[int, TaskResult | Raised]]]:
        """The missing tasks' results, in parts that are noted as one; up to the first that raises, if carried out here.

        Validity: what a subject draws together is one part. Were half of a round noted and the other half drawn again,
        the calls of that half would come later than those that were noted, and a time-out would tell which they are.
        """
        if missing and job.subject.draws_together:
            yield self._together(job, tasks, missing)
        elif missing and self._is_worth_sending(job, [tasks[k] for k in missing]):
            yield from ([one] for one in self._sent(job, tasks, missing))
        else:
            yield from ([one] for one in self._drawn_here(job, tasks, missing))

    def _together(
        self, job: DrawJob, tasks: Sequence[Task], missing: Sequence[int]
    ) -> list[tuple[int, TaskResult | Raised]]:
        """The results of tasks whose calls are all made in one random order."""
        chosen = [tasks[k] for k in missing]
        streams = [stream(job.seed, job.purpose, task.input, task.round, task.chunk) for task in chosen]
        parts = [(job.data[task.input], task.size, rng) for task, rng in zip(chosen, streams, strict=True)]
        try:
            outputs = job.subject.together(parts)
        except DpauditError as error:
            return [(missing[0], Raised(error))]
        return [(k, counted(batch, task)) for k, batch, task in zip(missing, outputs, chosen, strict=True)]

    def _drawn_here(
        self, job: DrawJob, tasks: Sequence[Task], missing: Sequence[int]
    ) -> Iterator[tuple[int, TaskResult | Raised]]:
        """Each missing task's result, drawn in this process; up to the first that raises."""
        inputs = [job.data[i] for i in sorted({tasks[k].input for k in missing})]
        if is_interleaved(job.subject, inputs, sum(tasks[k].size for k in missing)):
            yield from self._in_random_order(job, tasks, missing)
            return
        for k in missing:
            start = time.perf_counter()
            result = outcome(job, tasks[k])
            self._pace(time.perf_counter() - start, tasks[k].size)
            yield k, result
            if isinstance(result, Raised):
                return

    def _in_random_order(
        self, job: DrawJob, tasks: Sequence[Task], missing: Sequence[int]
    ) -> Iterator[tuple[int, TaskResult | Raised]]:
        """Each missing task's result, the calls of all of them made in one uniformly random order.

        Those on one input are made in the order of its tasks, so that no more than one of each is held.
        """
        first = tasks[missing[0]]
        rng = stream(job.seed, ORDER_OF_CALLS, job.purpose, first.input, first.round, first.chunk)
        inputs = list(dict.fromkeys(tasks[k].input for k in missing))
        parts = [_Part(job, [(k, tasks[k]) for k in missing if tasks[k].input == i]) for i in inputs]
        left = np.array([sum(tasks[k].size for k in missing if tasks[k].input == i) for i in inputs])
        start = time.perf_counter()
        while left.any():
            # The law of a segment of one random order of all that is left.
            drawn = rng.multivariate_hypergeometric(left, min(SEGMENT, int(left.sum())))
            left -= drawn
            order = np.repeat(np.arange(len(inputs)), drawn)
            rng.shuffle(order)
            while len(order):
                # Up to the first call that completes a task, or the end of the segment.
                ends = [_place(order == number, part.left) for number, part in enumerate(parts)]
                now, order = order[: min(ends)], order[min(ends) :]
                calls, holds = [part.call for part in parts], [part.outputs.append for part in parts]
                for number in now.tolist():
                    try:
                        holds[number](calls[number]())
                    except DpauditError as error:
                        yield parts[number].position, Raised(error)
                        return
                for part in parts:
                    if part.left == 0:
                        self._pace(time.perf_counter() - start, part.task.size)
                        yield part.position, part.result()
                        start = time.perf_counter()
                        part.begin()

    def _sent(
        self, job: DrawJob, tasks: Sequence[Task], missing: Sequence[int]
    ) -> Iterator[tuple[int, TaskResult | Raised]]:
        assert self.workers is not None
        groups = _groups([tasks[k].size for k in missing], GROUPS_A_SLOT * self.workers.slots)
        sent = [[missing[place] for place in group] for group in groups]
        for position, results, seconds in self.workers.run(job.packed, [[tasks[k] for k in group] for group in sent]):
            self._pace(seconds, sum(tasks[k].size for k in sent[position]))
            yield from zip(sent[position], results, strict=True)

    def _is_worth_sending(self, job: DrawJob, tasks: Sequence[Task]) -> bool:
        """Whether workers would be done before this process is, by the time that draws have taken so far.

        A subject with randomness of its own is always drawn here: copies of its state in several processes could
        repeat each other. So is an isolated one: what its calls did is noted, and its patience counted, in one place.
        """
        if self.workers is None or not job.subject.replayable or job.subject.is_contained:
            return False
        pace = self.seconds_a_run
        if pace * (self.expected - self._runs) > WARM_UP_SECONDS:
            self.workers.warm_up()
        saved = pace * sum(task.size for task in tasks) * (1.0 - 1.0 / min(len(tasks), self.workers.slots))
        waiting = 0.0 if self.workers.is_ready else STARTING_SECONDS
        return saved - self.workers.overhead - waiting > WORTH_SENDING

    def _check_first(self, job: DrawJob, tasks: Sequence[Task], found: Mapping[int, TaskResult | Raised]) -> None:
        """Draw the first chunk that was found again: a fingerprint does not see all that a subject depends on."""
        if self.found or not found or not job.subject.repeats_its_draws:
            return
        k = min(found)
        try:
            drawn = outcome(job, tasks[k])
            is_same = to_bytes(drawn, places=False) == to_bytes(found[k], places=False)
        except NotPlainError:  # what was noted is plain
            is_same = False
        if not is_same:
            raise UsageError(
                f"checkpoint must be of this mechanism, got other draws of {job.subject.name} from the same stream. "
                "Something that it depends on has changed; begin again without the checkpoint."
            )

    def _tell_runs(self, done: int) -> None:
        """Tell of the runs of a batch that is not complete, at most so often."""
        if self._tell is not None and self._state is not None and time.monotonic() - self._told > TELL_SECONDS:
            self._told = time.monotonic()
            self._tell(dataclasses.replace(self._state, runs=self._state.runs + done))

    @property
    def seconds_a_run(self) -> float:
        """That a run takes in one process, of those that were drawn so far; 0 where none was."""
        return self._seconds / self._runs if self._runs else 0.0

    def _pace(self, seconds: float, runs: int) -> None:
        self._seconds, self._runs = self._seconds + seconds, self._runs + runs


@dataclasses.dataclass
class Drawer:
    """Carries out the tasks of one purpose of an audit: the `draw` of a label game.

    Attributes
    ----------
    subject : Subject
    data : sequence or mapping
        The inputs of the audit, by position.
    seed, purpose : int
        Of the streams.
    crew : Crew
        Who carries them out; by default this process alone.
    """

    subject: Subject
    data: Sequence[Any] | Mapping[int, Any]
    seed: int
    purpose: int
    crew: Crew = dataclasses.field(default_factory=Crew)

    def __post_init__(self) -> None:
        self._job = DrawJob(self.subject, self.data, self.seed, self.purpose)

    @property
    def moved(self) -> Mapping[int, bool]:
        """Whether the first chunk of an input took randomness, by input, of those that were drawn in this process."""
        return self._job.moved

    def __call__(self, tasks: Sequence[Task]) -> list[TaskResult]:
        return self.crew.carry_out(self._job, tasks)


def _groups(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Positions in at most so many groups of about the same total, the largest first."""
    order = sorted(range(len(sizes)), key=lambda k: -sizes[k])
    groups: list[list[int]] = [[] for _ in range(min(most, len(sizes)))]
    totals = [0] * len(groups)
    for k in order:
        least = totals.index(min(totals))
        groups[least].append(k)
        totals[least] += sizes[k]
    return groups
