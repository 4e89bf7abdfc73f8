"""Streams keyed by what is drawn, and tasks carried out the same by any number of workers."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from support.samplers import laplace

from dpaudit.errors import SubjectError
from dpaudit.inference.tasks import Request, Task
from dpaudit.running import streams, worker_pool
from dpaudit.running.streams import stream
from dpaudit.running.worker_pool import DrawJob, WorkerPool
from dpaudit.subjects.callables import as_subject


@dataclasses.dataclass(frozen=True)
class Signs:
    """Counts outputs below 0, above it, and the other ones."""

    def zeros(self):
        return np.zeros(3, dtype=np.int64)

    def count(self, outcomes):
        values = outcomes.numbers[:, 0]
        below, above = int(np.sum(values < 0.0)), int(np.sum(values > 0.0))
        return np.array([below, above, len(values) - below - above])


POSITIVE = Signs()


def drawer(mechanism=laplace, **kwargs):
    return WorkerPool(**kwargs).drawer(as_subject(mechanism), [0.0, 1.0], 7, streams.DRAWS)


def task(input_=0, round_=0, chunk=0, start=0, size=100, quotas=(100,), keep=100):
    return Task(input_, round_, chunk, start, size, tuple(Request(quota, POSITIVE) for quota in quotas), keep)


# --- streams ---


# --- tasks ---


@pytest.mark.parametrize("quotas", [(0, 1, 37, 100), (100,)])
@pytest.mark.parametrize("keep", [0, 5, 100])
def test_a_request_counts_the_first_draws_of_the_chunk_and_the_first_are_kept(quotas, keep):
    values = laplace(0.0, 100, streams.stream(7, streams.DRAWS, 0, 3, 2))
    result = DrawJob(as_subject(laplace), [0.0], 7, streams.DRAWS)(task(0, 3, 2, quotas=quotas, keep=keep))
    for quota, counts in zip(quotas, result.counts, strict=True):
        below, above = int(np.sum(values[:quota] < 0.0)), int(np.sum(values[:quota] > 0.0))
        assert counts.tolist() == [below, above, quota - below - above]
    assert (result.kept is None) == (keep == 0)
    if keep:
        assert result.kept.numbers.ravel().tolist() == values[:keep].tolist()


class NoWorkers:
    """Workers that must not be asked."""

    slots, overhead, is_ready = 2, 0.0, True

    def warm_up(self):
        raise AssertionError("a worker was started")

    def run(self, packed, groups):
        raise AssertionError("a worker was asked")


def test_a_subject_with_randomness_of_its_own_is_drawn_in_this_process(monkeypatch, always_sent):
    monkeypatch.setattr(worker_pool, "open_workers", lambda *args: NoWorkers())
    assert len(drawer(lambda data: data + np.random.default_rng().laplace())([task()])) == 1
    with pytest.raises(AssertionError, match="a worker was asked"):  # the control: another subject is sent
        drawer(laplace)([task()])


def test_few_draws_are_not_worth_a_worker(monkeypatch):
    monkeypatch.setattr(worker_pool, "open_workers", lambda *args: NoWorkers())
    two = drawer()
    assert len(two([task(), task(1)])) == 2
    two.func.__self__._seconds, two.func.__self__._runs = 10.0, 100  # a tenth of a second a draw
    with pytest.raises(AssertionError, match="a worker was asked"):  # the control
        two([task(), task(1)])
    assert len(two([task()])) == 1  # one chunk is one process's work


# --- whole audits ---


def calls_of(inputs, size, chunk, mechanism):
    """The results of a round of calls, and the input of each call in order."""
    order = []

    def called(data, rng):
        order.append(data)
        return mechanism(data, rng)

    tasks = [
        Task(i, 1, number, start, min(chunk, size - start), (), 4)
        for i in range(inputs)
        for number, start in enumerate(range(0, size, chunk))
    ]
    return WorkerPool().drawer(as_subject(called), list(range(inputs)), 5, 0)(tasks), order


def test_calls_on_several_inputs_come_in_one_random_order_and_change_no_output():
    results, order = calls_of(2, 3_000, 512, lambda data, rng: data + rng.normal())
    changes = sum(a != b for a, b in itertools.pairwise(order))
    assert order.count(0) == order.count(1) == 3_000
    assert abs(changes - 3_000) < 5 * math.sqrt(1_500)  # half of 6,000, with that deviation: a false alarm in 6e-7
    for result, i, number in zip(results, [0] * 6 + [1] * 6, [0, 1, 2, 3, 4, 5] * 2, strict=True):
        rng = stream(5, 0, i, 1, number)
        assert result.kept.numbers[:, 0].tolist() == [i + rng.normal() for _ in range(4)]


def test_tasks_are_complete_one_after_the_other_so_that_outputs_are_let_go(monkeypatch):
    done, count = [], Task.result_on
    monkeypatch.setattr(Task, "result_on", lambda task, outcomes: (done.append(task.chunk), count(task, outcomes))[1])
    calls_of(2, 5_000, 100, lambda data, rng: 0.0)
    assert len(done) == 100 and max(abs(chunk - place // 2) for place, chunk in enumerate(done)) <= 3


def test_the_task_that_breaks_is_told_though_others_before_it_are_not_complete():
    subject = dataclasses.replace(as_subject(lambda data, size, rng: 0.0 if data else [0.0]), one_by_one=True)
    tasks = [Task(i, 1, 0, 0, 500, (), 4) for i in (0, 1)]
    with pytest.raises(SubjectError, match="must return a batch of 1 output"):
        WorkerPool().drawer(subject, [0, 1], 5, 0)(tasks)
