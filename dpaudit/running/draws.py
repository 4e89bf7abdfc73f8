"""How tasks are carried out: draw a chunk of outputs from its stream, count on it, return counts.

Workers return counts, and the few training draws that a task asks for; never samples beyond these.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Sequence
from typing import Any

import joblib

from dpaudit.errors import UsageError
from dpaudit.evidence.label_game import Task, TaskResult
from dpaudit.evidence.outcomes import read_outputs
from dpaudit.running.streams import stream
from dpaudit.subjects.callables import Subject

WORTH_SENDING = 200_000  # runs in one batch of tasks below which worker processes cost more than they save


def carry_out(subject: Subject, data: Any, seed: int, purpose: int, task: Task) -> TaskResult:
    """Draw the task's chunk on `data`, count each request, keep the first `task.keep` outcomes."""
    rng = stream(seed, purpose, task.input, task.round, task.chunk)
    outcomes = read_outputs(subject.sample(data, task.size, rng), task.size)
    counts = tuple(request.count(outcomes) for request in task.requests)
    return TaskResult(counts, outcomes.rows(slice(0, task.keep)) if task.keep else None)


@dataclasses.dataclass
class Drawer:
    """Carries out batches of tasks for one audit, in this process or in workers.

    Attributes
    ----------
    subject : Subject
    data : sequence
        The inputs of the audit, by position.
    seed, purpose : int
        Of the streams.
    jobs : int
        Worker processes; 1 draws here. A subject with randomness of its own is always drawn here: copies of its state
        in several processes could repeat each other.
    backend : str
        joblib's backend for more than one job.
    """

    subject: Subject
    data: Sequence[Any]
    seed: int
    purpose: int
    jobs: int = 1
    backend: str = "loky"

    def __post_init__(self) -> None:
        if self.jobs != 1 and self.backend != "loky":  # said now, not when the first large batch comes
            try:
                joblib.Parallel(n_jobs=self.jobs, backend=self.backend)
            except (ValueError, ImportError) as error:
                raise UsageError(f"backend must be one that joblib knows, got {self.backend!r} ({error}).") from error

    def __call__(self, tasks: Sequence[Task]) -> list[TaskResult]:
        if self.jobs == 1 or not self.subject.replayable or sum(task.size for task in tasks) < WORTH_SENDING:
            return [self._carry_out(task) for task in tasks]
        parallel = joblib.Parallel(n_jobs=self.jobs, backend=self.backend)
        calls = (
            joblib.delayed(carry_out)(self.subject, self.data[task.input], self.seed, self.purpose, task)
            for task in tasks
        )
        try:
            return list(parallel(calls))
        except pickle.PicklingError as error:
            raise UsageError(
                f"mechanism must be one that can be sent to worker processes, got {self.subject.name} ({error}). "
                "Use jobs=1."
            ) from error

    def _carry_out(self, task: Task) -> TaskResult:
        return carry_out(self.subject, self.data[task.input], self.seed, self.purpose, task)
