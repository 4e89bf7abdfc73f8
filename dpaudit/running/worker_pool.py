"""Execution of tasks: draw a chunk of outputs from its stream, count on it, return counts.

Workers return counts, and the few training draws that a task asks for; never samples beyond these. Who draws a chunk is
decided by time alone, and changes nothing: its stream is keyed by what is drawn.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.campaign.campaign import Progress
from dpaudit.errors import DpauditError, OutOfTimeError, SubjectError, UsageError
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.tasks import Drawer, Task, TaskResult
from dpaudit.running.checkpoint import Checkpoint
from dpaudit.running.plain_data import NotPlainError, to_bytes
from dpaudit.running.streams import ORDER_OF_CALLS, stream
from dpaudit.running.workers import Packed, Raised, open_workers, outcome
from dpaudit.subjects.call_limits import end_of_time, until
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.isolation.worker import global_state
from dpaudit.subjects.plain import Seen

STARTING_SECONDS = 1.0  # that starting workers takes, about: an audit that draws for longer starts them beside it
TELL_SECONDS = 0.25  # between two words on the progress of one batch
MAX_INTERLEAVED = 8  # inputs whose calls are made in one random order: the outputs of a chunk of each are held
GROUPS_A_SLOT = 4  # messages to a worker in one batch, at most

Drawn = Iterator[tuple[int, TaskResult | Raised]]  # positions of tasks, and what they gave


def randomness_moved(subject: Subject, rng: np.random.Generator) -> Callable[[], bool]:
    """A function that tells whether randomness has been taken since now: of `rng`, or of global generators.

    Global ones count where the subject is given no generator. A seed is drawn from `rng` for every call, so that of a
    subject that takes one this is always so.
    """

    def state() -> Any:
        return rng.bit_generator.state if subject.replayable else global_state()

    before = state()
    return lambda: bool(state() != before)


@dataclasses.dataclass(frozen=True)
class DrawJob:
    """Carries out tasks of one purpose: what is sent to workers.

    `moved` says, by input, whether the first chunk that was drawn in this process took randomness, or what was drawn
    before it, by a plan or an earlier audit.
    """

    subject: Subject
    data: Sequence[Any] | Mapping[int, Any]
    seed: int
    purpose: int
    moved: dict[int, bool] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    until: float = dataclasses.field(default_factory=end_of_time)  # of this machine's monotonic clock
    machine: str = dataclasses.field(default_factory=socket.gethostname)

    def __call__(self, task: Task) -> TaskResult:
        rng = self.stream_of(task)
        moved = randomness_moved(self.subject, rng)
        with until(self.until if self.machine == socket.gethostname() else math.inf):
            outputs = self.subject.observe(self.data[task.input], task.size, rng)
        self._note(task, moved())
        return task.result_on(read_outputs(outputs, task.size))

    def calls(self, tasks: Sequence[tuple[int, Task]]) -> Iterator[tuple[int, TaskResult | Raised] | None]:
        """Make the calls of tasks of one input one by one: a result with the last call of each task, None before."""
        for k, task in tasks:
            rng, outputs = self.stream_of(task), Seen()
            moved = randomness_moved(self.subject, rng)
            calls = self.subject.observe_one_by_one(self.data[task.input], task.size, rng)
            for left in reversed(range(task.size)):
                try:
                    outputs.append(next(calls))
                except DpauditError as error:
                    yield k, Raised(error)
                    return
                if left:
                    yield None
            self._note(task, moved())
            yield k, task.result_on(read_outputs(outputs, task.size))

    def _note(self, task: Task, is_moved: bool) -> None:
        if task.input not in self.moved:
            history, data = self.subject.history, self.data[task.input]
            self.moved[task.input] = is_moved or history.has_moved(data)
            if is_moved:
                history.note_moved(data)

    def stream_of(self, task: Task) -> np.random.Generator:
        """Stream of a task's chunk."""
        return stream(self.seed, self.purpose, task.input, task.round, task.chunk)

    @functools.cached_property
    def packed(self) -> Packed:
        """Itself as bytes."""
        return Packed(self, self.subject.name)


class WorkerPool:
    """Executor of one audit's draws, which notes them: this process, its workers (`open_workers`), its checkpoint.

    `expected` are the runs that it will take, about: whether it is worth to start workers. `found` are the chunks that
    were found in the checkpoint, and `noted_error` is the last one that a task raised, which is its result.
    """

    def __init__(
        self, jobs: int = 1, backend: str = "loky", cluster: str | None = None, checkpoint: Checkpoint | None = None
    ) -> None:
        self.workers = open_workers(jobs, backend, cluster)
        self.checkpoint, self.expected, self.found = checkpoint, 0, 0
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

    def drawer(
        self,
        subject: Subject,
        data: Sequence[Any] | Mapping[int, Any],
        seed: int,
        purpose: int,
        moved: dict[int, bool] | None = None,
    ) -> Drawer:
        """Function that carries out one purpose's tasks, on `data` by position; `moved` is filled as `DrawJob` says."""
        return functools.partial(self.carry_out, DrawJob(subject, data, seed, purpose, {} if moved is None else moved))

    def carry_out(self, job: DrawJob, tasks: Sequence[Task]) -> list[TaskResult]:
        """The results in the order of the tasks.

        `SubjectError` of the first task, in their order, that raised one.
        """
        found: dict[int, TaskResult | Raised] = {}
        if self.checkpoint is not None:
            known = ((k, self.checkpoint.find(job.purpose, task)) for k, task in enumerate(tasks))
            found = {k: result for k, result in known if result is not None}
        done = sum(tasks[k].size for k in found)
        self._check_first(job, tasks, found)
        self.found += len(found)
        end = min((k for k, result in found.items() if isinstance(result, Raised)), default=len(tasks))
        for part in self._carried_out(job, {k: tasks[k] for k in range(end) if k not in found}):
            for error in (one.error for _, one in part if isinstance(one, Raised)):
                if isinstance(error, OutOfTimeError):  # no result of a task, which may be drawn another time
                    raise error
            if self.checkpoint is not None:
                # Validity: noted before anybody looks at it, so that no chunk that was looked at is ever drawn again.
                noted = [(tasks[k], result) for k, result in part]
                self.checkpoint.note(job.purpose, noted, job.subject.contained_so_far())
            found.update(part)
            done += sum(tasks[k].size for k, _ in part)
            if self._tell and self._state and time.monotonic() - self._told > TELL_SECONDS:
                self._told = time.monotonic()
                self._tell(dataclasses.replace(self._state, runs=self._state.runs + done))
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

    def _carried_out(self, job: DrawJob, missing: dict[int, Task]) -> Iterator[list[tuple[int, TaskResult | Raised]]]:
        """The missing tasks' results, in parts that are noted as one; up to the first that raises, if carried out here.

        Validity: what a subject draws together is one part. Were half of a round noted and the other half drawn again,
        the calls of that half would come later than those that were noted, and a time-out would tell which they are.
        """
        if not missing:
            return
        if job.subject.draws_together:
            yield self._together(job, missing)
        # A subject with randomness of its own is always drawn here: copies of its state in several processes could
        # repeat each other. So is an isolated one: what its calls did is noted, and its patience counted, in one place.
        elif job.subject.replayable and not job.subject.is_contained and self.seconds_saved(missing) > 0.0:
            yield from ([one] for one in self._sent(job, missing))
        elif self._is_interleaved(job, missing):
            yield from ([one] for one in self._in_random_order(job, missing))
        else:
            for k, task in missing.items():
                start = time.perf_counter()
                result = outcome(job, task)
                self._pace(time.perf_counter() - start, task.size)
                yield [(k, result)]
                if isinstance(result, Raised):
                    return

    def _together(self, job: DrawJob, missing: dict[int, Task]) -> list[tuple[int, TaskResult | Raised]]:
        """The results of tasks whose calls are all made in one random order."""
        parts = [(job.data[task.input], task.size, job.stream_of(task)) for task in missing.values()]
        try:
            outputs = job.subject.together(parts)
        except DpauditError as error:
            return [(min(missing), Raised(error))]
        return [
            (k, task.result_on(read_outputs(batch, task.size)))
            for (k, task), batch in zip(missing.items(), outputs, strict=True)
        ]

    def _is_interleaved(self, job: DrawJob, missing: dict[int, Task]) -> bool:
        """Tell whether calls on several inputs are made in one random order, where they are made here.

        Validity: a mechanism that changes from call to call, or a machine that does, cannot tell then which input it
        is. Of many inputs the outputs that have to be held until a task is complete would be too many. Calls on one
        object that is given twice would share a working copy.
        """
        inputs = {task.input for task in missing.values()}
        are_apart = len({id(job.data[i]) for i in inputs}) == len(inputs)
        is_called_once = not job.subject.is_vectorised and not job.subject.is_contained
        return is_called_once and are_apart and 2 <= len(inputs) <= MAX_INTERLEAVED

    def _in_random_order(self, job: DrawJob, missing: dict[int, Task]) -> Drawn:
        """Each missing task's result, the calls of all of them made in one uniformly random order (a byte a call).

        Those on one input are made in the order of its tasks, so that no more than one of each is held.
        """
        first = missing[min(missing)]
        rng = stream(job.seed, ORDER_OF_CALLS, job.purpose, first.input, first.round, first.chunk)
        by_input: dict[int, list[tuple[int, Task]]] = {}
        for k, task in missing.items():
            by_input.setdefault(task.input, []).append((k, task))
        sizes = [sum(task.size for _, task in tasks) for tasks in by_input.values()]
        calls = [job.calls(tasks) for tasks in by_input.values()]
        order = np.repeat(np.arange(len(sizes), dtype=np.uint8), sizes)
        rng.shuffle(order)
        start = time.perf_counter()
        for number in memoryview(order.data):
            if (done := next(calls[number])) is not None:
                self._pace(time.perf_counter() - start, missing[done[0]].size)
                yield done
                if isinstance(done[1], Raised):
                    return
                start = time.perf_counter()

    def _sent(self, job: DrawJob, missing: dict[int, Task]) -> Drawn:
        assert self.workers is not None
        count = min(GROUPS_A_SLOT * self.workers.slots, len(missing))
        groups = [list(missing)[first::count] for first in range(count)]  # chunks are about of one size
        for place, results, seconds in self.workers.run(job.packed, [[missing[k] for k in group] for group in groups]):
            self._pace(seconds, sum(missing[k].size for k in groups[place]))
            yield from zip(groups[place], results, strict=True)

    def seconds_saved(self, missing: Mapping[int, Task]) -> float:
        """By which workers would be done before this process is, by the time that draws have taken so far."""
        if self.workers is None:
            return 0.0
        pace = self.seconds_a_run
        if pace * (self.expected - self._runs) > STARTING_SECONDS:
            self.workers.warm_up()
        saved = pace * sum(task.size for task in missing.values()) * (1 - 1 / min(len(missing), self.workers.slots))
        return saved - self.workers.overhead - (0.0 if self.workers.is_ready else STARTING_SECONDS)

    def _check_first(self, job: DrawJob, tasks: Sequence[Task], found: Mapping[int, TaskResult | Raised]) -> None:
        """Draw again the first chunk of each input that was found: a fingerprint does not see everything."""
        if self.found or not found or not job.subject.repeats_its_draws:
            return
        try:
            first = {tasks[k].input: k for k in sorted(found, reverse=True)}.values()
            drawn = {k: to_bytes(outcome(job, tasks[k]), places=False) for k in sorted(first)}
            is_same = all(content == to_bytes(found[k], places=False) for k, content in drawn.items())
        except NotPlainError:  # what was noted is plain
            is_same = False
        if not is_same:
            raise UsageError(
                f"checkpoint must be of this mechanism, got other draws of {job.subject.name} from the same stream. "
                "Something that it depends on has changed; begin again without the checkpoint."
            )

    @property
    def seconds_a_run(self) -> float:
        """Seconds of a run in one process, by those that were drawn so far; 0 where none was."""
        return self._seconds / self._runs if self._runs else 0.0

    def _pace(self, seconds: float, runs: int) -> None:
        self._seconds, self._runs = self._seconds + seconds, self._runs + runs
