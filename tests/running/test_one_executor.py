"""The contract of an executor, held by all who carry out work, and broken by twins.

Those of `dpaudit.running.workers.Workers` carry out groups of items; a `WorkerPool` carries out an audit's tasks on top
of them, here, in isolation, or from a journal. Validity asks one thing of both: who does the work, when, and how often
it was begun leaves no trace in what is counted.
"""

import contextlib
import dataclasses
import math
import pickle

import pytest
from support.samplers import laplace as release
from support.samplers import one_by_one as one_release

from dpaudit.campaign.draws import Draws, RoundPlan
from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import read_outputs
from dpaudit.running.checkpoint import open_checkpoint
from dpaudit.running.streams import stream
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.running.workers import (
    VERSIONS,
    DaskWorkers,
    JoblibWorkers,
    LokyWorkers,
    Packed,
    Raised,
    RayWorkers,
    _pack,
    carry_out_group,
)
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.isolation import Isolation, isolated

GROUPS = [[0, 1, 2], [3], [4, -5, 6], [7, 8]]  # a negative item raises


def job(base):
    """A function of its item alone, which other processes take by its value."""

    def work(item):
        import numpy

        from dpaudit.errors import SubjectError

        if item < 0:
            raise SubjectError(f"no result of {item}")
        return base + float(numpy.random.default_rng(item).normal())

    return work


class Here:
    """The reference: every group at once, in this process."""

    overhead, slots, is_ready = 0.0, 1, True

    def warm_up(self):
        pass

    def run(self, packed, groups):
        for k, group in enumerate(groups):
            yield k, *pickle.loads(carry_out_group(VERSIONS, packed, _pack(group)))

    def close(self):
        pass


def needs(module, make):
    def made():
        pytest.importorskip(module, reason=f"{module} is not installed")
        return make()

    return made


MADE = {
    "here": Here,
    "loky": lambda: LokyWorkers(2),
    "threads": lambda: JoblibWorkers(2, "threading"),
    "processes of joblib": lambda: JoblibWorkers(2, "multiprocessing"),
    "dask": needs("distributed", lambda: DaskWorkers(2, None)),
    "ray": needs("ray", lambda: RayWorkers(2, None)),
}
SLOW = {"dask", "ray"}


@pytest.fixture(scope="module", params=[pytest.param(k, marks=[pytest.mark.long] * (k in SLOW)) for k in MADE])
def workers(request):
    made = MADE[request.param]()
    yield made
    made.close()
    made.close()  # nothing is left to give back


def told(results):
    """Results as values that can be compared: errors by their texts."""
    return [str(one.error) if isinstance(one, Raised) else one for one in results]


def expected(work):
    found = {}
    for k, group in enumerate(GROUPS):
        found[k] = []
        for item in group:
            try:
                found[k].append(work(item))
            except SubjectError as error:
                found[k].append(str(error))
    return found


def each_group_comes_once_with_its_place(workers):
    places = [k for k, _, _ in workers.run(Packed(job(0.0), "a job"), GROUPS)]
    assert sorted(places) == list(range(len(GROUPS)))


def results_are_those_of_this_process_to_the_bit(workers):
    found = {k: told(results) for k, results, _ in workers.run(Packed(job(0.5), "a job"), GROUPS)}
    assert found == expected(job(0.5))


def an_error_is_the_result_of_its_item_alone(workers):
    found = {k: told(results) for k, results, _ in workers.run(Packed(job(0.0), "a job"), GROUPS)}
    assert found[2][1] == "no result of -5"
    assert [type(value) for value in (found[2][0], found[2][2])] == [float, float]


def a_second_job_is_not_taken_for_the_first(workers):
    for base in (0.0, 100.0, 0.0):
        found = {k: told(results) for k, results, _ in workers.run(Packed(job(base), "a job"), GROUPS)}
        assert found == expected(job(base))


def who_stops_listening_leaves_them_usable(workers):
    with contextlib.closing(workers.run(Packed(job(0.0), "a job"), GROUPS)) as running:
        next(running)
    results_are_those_of_this_process_to_the_bit(workers)


def sizes_and_times_make_sense(workers):
    workers.warm_up()
    assert workers.slots >= 1 and 0.0 <= workers.overhead < math.inf and workers.is_ready in (True, False)
    assert all(0.0 <= seconds < math.inf for _, _, seconds in workers.run(Packed(job(0.0), "a job"), GROUPS))


CONTRACT = [
    each_group_comes_once_with_its_place,
    results_are_those_of_this_process_to_the_bit,
    an_error_is_the_result_of_its_item_alone,
    a_second_job_is_not_taken_for_the_first,
    who_stops_listening_leaves_them_usable,
    sizes_and_times_make_sense,
]


@pytest.mark.parametrize("holds", CONTRACT, ids=lambda check: check.__name__)
def test_the_contract_of_workers(workers, holds):
    holds(workers)


class LosesOne(Here):
    def run(self, packed, groups):
        yield from list(super().run(packed, groups))[1:]


class Repeats(Here):
    def run(self, packed, groups):
        results = list(super().run(packed, groups))
        yield from [*results, results[-1]]


class MixesPlaces(Here):
    def run(self, packed, groups):
        for k, results, seconds in super().run(packed, groups):
            yield len(groups) - 1 - k, results, seconds


class KeepsItsFirstJob(Here):
    first = None

    def run(self, packed, groups):
        self.first = self.first or packed
        yield from super().run(self.first, groups)


class LeavesOutErrors(Here):
    def run(self, packed, groups):
        for k, results, seconds in super().run(packed, groups):
            yield k, [one for one in results if not isinstance(one, Raised)], seconds


class EndsWithItsListener(Here):
    is_ended = False

    def run(self, packed, groups):
        try:
            yield from super().run(packed, groups) if not self.is_ended else ()
        except GeneratorExit:
            self.is_ended = True
            raise


class HasNoClock(Here):
    def run(self, packed, groups):
        for k, results, _ in super().run(packed, groups):
            yield k, results, math.nan


@pytest.mark.parametrize(
    ("twin", "broken"),
    [
        (LosesOne, each_group_comes_once_with_its_place),
        (Repeats, each_group_comes_once_with_its_place),
        (MixesPlaces, results_are_those_of_this_process_to_the_bit),
        (LeavesOutErrors, an_error_is_the_result_of_its_item_alone),
        (KeepsItsFirstJob, a_second_job_is_not_taken_for_the_first),
        (EndsWithItsListener, who_stops_listening_leaves_them_usable),
        (HasNoClock, sizes_and_times_make_sense),
    ],
)
def test_a_twin_that_breaks_the_contract_of_workers_is_caught(twin, broken):
    with pytest.raises((AssertionError, IndexError)):
        broken(twin())


# --- a worker pool: tasks of an audit, whoever carries them out ---


PLAN = RoundPlan({0: 90, 1: 75}, keeps=1_000)


def drawn(subject, worker_pool):
    """Outcomes of two rounds by input, and the runs."""
    made = Draws(worker_pool.drawer(subject, [0.0, 1.0], 7, 8), largest_batch=40)
    for _ in range(2):
        made.learn(PLAN)
    return {i: made.joined(i).numbers[:, 0].tolist() for i in (0, 1)}, made.runs


def by_hand(one_by_one):
    """The same from the streams alone, one chunk after the other."""
    found = {0: [], 1: []}
    for round_ in range(2):
        for i, size in PLAN.needed.items():
            for chunk, start in enumerate(range(0, size, 40)):
                rng = stream(7, 8, i, round_, chunk)
                length = min(40, size - start)
                values = [one_release(float(i), rng) for _ in range(length)] if one_by_one else release(i, length, rng)
                found[i] += list(read_outputs(values, length).numbers[:, 0])
    return found


def here(subject, tmp_path):
    del tmp_path
    return drawn(subject, WorkerPool())


def in_workers(jobs, backend="loky"):
    def way(subject, tmp_path):
        del tmp_path
        worker_pool = WorkerPool(jobs, backend)
        try:
            return drawn(subject, worker_pool)
        finally:
            worker_pool.close()

    return way


def resumed(subject, tmp_path):
    """A first process draws one round and ends; a second one finds it, and draws the other."""
    for rounds in (1, 2):
        noted = open_checkpoint(tmp_path / "worker_pool.ckpt", {"seed": 7}, resume=rounds == 2, replayable=True)
        worker_pool = WorkerPool(checkpoint=noted)
        made = Draws(worker_pool.drawer(subject, [0.0, 1.0], 7, 8), largest_batch=40)
        for _ in range(rounds):
            made.learn(PLAN)
        noted.close()
    assert worker_pool.found == 5  # chunks of the first round
    return {i: made.joined(i).numbers[:, 0].tolist() for i in (0, 1)}, made.runs


def in_isolation(subject, tmp_path):
    del tmp_path
    with isolated(subject, Isolation(seconds_a_call=20.0)) as alone:
        return drawn(alone, WorkerPool())


WAYS = {
    "here": here,
    "in processes": in_workers(2),
    "in threads": in_workers(2, "threading"),
    "resumed": resumed,
    "in isolation": in_isolation,
}


@pytest.mark.parametrize("one_by_one", [False, True], ids=["in batches", "one by one"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_who_draws_leaves_no_trace(way, one_by_one, tmp_path, always_sent):
    found, runs = way(as_subject(one_release if one_by_one else release), tmp_path)
    known = by_hand(one_by_one)
    if way is in_isolation and one_by_one:  # places within a chunk are drawn as well, from a stream of their own
        assert found == way(as_subject(one_release), tmp_path)[0]
        found, known = ({i: sorted(values) for i, values in one.items()} for one in (found, known))
    assert found == known
    assert runs == 2 * sum(PLAN.needed.values())


class OneStream(WorkerPool):
    """Draws all tasks of a round from the stream of the first."""

    def carry_out(self, job, tasks):
        same = {"round": tasks[0].round, "chunk": tasks[0].chunk}
        return [super(OneStream, self).carry_out(job, [dataclasses.replace(task, **same)])[0] for task in tasks]


class OutOfOrder(WorkerPool):
    """Gives results as they come."""

    def carry_out(self, job, tasks):
        return super().carry_out(job, tasks)[::-1]


class DrawsAgain(WorkerPool):
    """Draws a task a second time, from what its stream has left."""

    def carry_out(self, job, tasks):
        super().carry_out(job, tasks[:1])
        return super().carry_out(job, [dataclasses.replace(tasks[0], chunk=99), *tasks[1:]])


@pytest.mark.parametrize("twin", [OneStream, OutOfOrder, DrawsAgain])
def test_a_worker_pool_that_leaves_a_trace_is_caught(twin):
    found, _ = drawn(as_subject(release), twin())
    assert found != by_hand(False)
