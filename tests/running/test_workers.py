"""Who draws does not matter: processes that die, clusters that lose a worker, any backend give the same bits."""

import os
import threading
import time

import numpy as np
import pytest
from scale_subjects import EndsItsProcess, Slow
from support.evidence import evidence

import dpaudit
from dpaudit.inference.tasks import Task
from dpaudit.running import workers
from dpaudit.running.worker_pool import DrawJob, WorkerPool
from dpaudit.running.workers import DaskWorkers, Packed
from dpaudit.subjects.callables import as_subject

PAIRS = [(0.0, 1.0), (1.0, 2.0)]
OPTIONS = {"claim": "eps=1", "pairs": PAIRS, "samples": 1_000, "seed": 7, "mode": "fixed"}


# --- processes of this machine ---


def test_a_process_that_dies_in_the_middle_changes_nothing(tmp_path, always_sent):
    mark = tmp_path / "mark"
    told = []

    def after_the_pilot(state):
        if not told:
            mark.write_text(str(os.getpid()))  # the next worker that draws dies
        told.append(state.runs)

    # a sequential game tells of itself while there are rounds to come
    options = {**OPTIONS, "mode": "sequential"}
    alone = evidence(dpaudit.audit(EndsItsProcess(str(mark)), **options))
    again = dpaudit.audit(EndsItsProcess(str(mark)), jobs=2, on_progress=after_the_pilot, **options)
    assert not mark.exists()  # it did die
    assert evidence(again) == alone


@pytest.mark.long
def test_a_subject_that_ends_every_process_is_an_error(tmp_path, always_sent):
    mark = tmp_path / "mark"
    mark.write_text(str(os.getpid()))
    with pytest.raises(dpaudit.SubjectError, match="mechanism must leave the process that runs it alive, got 3 times"):
        dpaudit.audit(EndsItsProcess(str(mark), every_time=True), jobs=2, **OPTIONS)


def test_the_error_of_the_first_task_is_raised_whoever_comes_first(always_sent):
    def fails_late(data, size, rng):
        time.sleep(0.2 if data == 0.0 else 0.0)
        raise ValueError(f"no outputs on {data}")

    subject = as_subject(fails_late)
    for jobs in (1, 2):
        tasks = [Task(i, 0, 0, 0, 10, (), 0) for i in (0, 1)]
        with pytest.raises(dpaudit.SubjectError, match=r"no outputs on 0\.0"):
            WorkerPool(jobs).carry_out(DrawJob(subject, [0.0, 1.0], 1, 0), tasks)


class Adds:
    def __init__(self, values):
        self.values = values

    def __call__(self, item):
        return item + int(self.values[-1])


def test_workers_of_another_version_are_refused():
    packed = Packed(Adds(np.arange(3)), "adds")
    with pytest.raises(dpaudit.UsageError, match=r"workers must have dpaudit 99, .* got dpaudit "):
        workers.carry_out_group({**workers.VERSIONS, "dpaudit": "99"}, packed, workers._pack([1]))


class Locked:
    """A mechanism that cannot be pickled: locks stay in their process."""

    def __init__(self):
        self.lock = threading.Lock()

    def sample(self, data, size, rng):
        return data + rng.laplace(size=size)


def test_a_mechanism_that_cannot_be_sent_to_workers_is_named_with_what_to_do(always_sent):
    with pytest.raises(dpaudit.UsageError, match=r"mechanism must be one that can be sent .* got Locked .* Use jobs=1"):
        dpaudit.audit(Locked(), jobs=2, **OPTIONS)
    assert dpaudit.audit(Locked(), jobs=1, **OPTIONS).verdict != "error"


def test_a_library_that_is_missing_is_named_with_its_extra(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(workers.importlib, "import_module", missing)
    for backend in ("dask", "ray"):
        with pytest.raises(dpaudit.UsageError, match=rf"got '{backend}' .* pip install 'dpaudit\[{backend}\]'"):
            dpaudit.audit(Slow(0.0), backend=backend, **OPTIONS)


# --- clusters ---


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="dask's distributed is not installed")
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50) as made:
        yield made


@pytest.mark.long
def test_a_dask_cluster_gives_the_same_bits_and_is_left_running(cluster, always_sent):
    alone = evidence(dpaudit.audit(Slow(0.0), **OPTIONS))
    found = dpaudit.audit(Slow(0.0), backend="dask", cluster=cluster.scheduler_address, **OPTIONS)
    assert evidence(found) == alone
    assert len(cluster.workers) == 3


@pytest.mark.long
def test_the_client_of_this_process_is_used_without_an_address(cluster, always_sent):
    import distributed

    with distributed.Client(cluster):
        own = DaskWorkers(1, None)
        assert own.slots >= 1 and own._own == []
        own.close()


@pytest.mark.long
def test_a_scheduler_that_is_not_there_is_said_so(monkeypatch):
    pytest.importorskip("distributed", reason="dask's distributed is not installed")
    monkeypatch.setattr(workers, "TIMEOUT", 1)
    with pytest.raises(dpaudit.UsageError, match=r"cluster must be a dask scheduler with workers, got 'tcp://127"):
        dpaudit.audit(Slow(0.0), backend="dask", cluster="tcp://127.0.0.1:9", **OPTIONS)
