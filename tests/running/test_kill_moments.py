"""kill -9 at random moments: what was drawn is kept, and what comes of it is the same or more, never other.

A moment is a number of calls that the process has made (of Python and of C), drawn between its first and its last one,
so it hangs on no clock. Where a database commits, a second process ends it after a random time.
"""

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time

import pytest
from killing import in_child
from scale_subjects import Slow
from support.evidence import evidence
from support.samplers import response

import dpaudit
from dpaudit.inference.saved import counted
from dpaudit.running.store import Store

MOMENTS = {"checkpoint": 96, "store": 60, "commit": 30, "jobs": 12, "dask": 12}  # 210 in all
PAIRS = [(0, 1), (1, 0)]


def few_or(many):
    return [pytest.param(4, marks=pytest.mark.slow), pytest.param(many, marks=pytest.mark.long)]


# --- checkpoints ---


def audited(**options):
    return dpaudit.audit(response, "eps=1", PAIRS, samples=150, seed=5, floating_point=False, **options)


def killed_checkpoints(folder, moments, in_a_row=6):
    """Chains of kills, each of which goes on from the last: what comes at their ends is what comes without."""
    rng = random.Random(20_261_126)
    expected = evidence(audited())
    of_all = in_child(lambda: audited(checkpoint=folder / "whole"))
    kills, path = 0, folder / "kept"
    while kills < moments:
        # An audit that goes on makes fewer calls than the whole does: a moment behind its end kills nobody.
        kills += in_child(lambda: audited(checkpoint=path, resume=True), rng.randint(1, of_all)) is None
        if kills % in_a_row == 0 or kills == moments:
            assert evidence(audited(checkpoint=path, resume=True)) == expected
            assert not path.exists()


@pytest.mark.parametrize("moments", few_or(MOMENTS["checkpoint"]))
def test_audits_killed_at_random_moments_come_to_the_same_bits(tmp_path, moments):
    killed_checkpoints(tmp_path, moments)


# --- stores ---


def session(path):
    return dpaudit.audit(response, "eps=1", PAIRS, samples=80, seed=1, floating_point=False, store=path)


def seen(path):
    """Draws and sessions of a store that is whole."""
    if not path.exists():
        return 0, 0
    connection = sqlite3.connect(path)
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    connection.close()
    with Store.at(path, create=False) as store:
        subjects = store.subjects()
    for subject in subjects:
        for pair in subject["pairs"]:
            assert counted(pair.state) == pair.labelled
    drawn = sum(pair.labelled for subject in subjects for pair in subject["pairs"])
    return drawn, sum(len(subject["nights"]) for subject in subjects)


def killed_sessions(folder, moments, in_a_row=6):
    """Sessions that are killed, one after the other, and after some of them one that is not."""
    rng = random.Random(20_261_127)
    of_all = in_child(lambda: session(folder / "whole.db"))
    kills, path, before = 0, folder / "store.db", (0, 0)
    while kills < moments:
        kills += in_child(lambda: session(path), rng.randint(1, of_all)) is None
        after = seen(path)
        assert after[0] >= before[0] and before[1] <= after[1] <= before[1] + 1, (before, after)
        if kills % in_a_row == 0 or kills == moments:
            before = after
            session(path)
            after = seen(path)
            assert after[0] > before[0] and after[1] == before[1] + 1
        before = after


@pytest.mark.parametrize("moments", few_or(MOMENTS["store"]))
def test_sessions_killed_at_random_moments_lose_no_draw_that_was_kept(tmp_path, moments):
    killed_sessions(tmp_path, moments)


@pytest.mark.long
def test_sessions_killed_while_they_commit_lose_no_draw_that_was_kept(tmp_path):
    # The journal of sqlite is there while it writes: that is when the process is ended.
    rng, path, kills = random.Random(20_261_128), tmp_path / "store.db", 0
    journal = tmp_path / "store.db-journal"
    session(path)
    before = seen(path)
    while kills < MOMENTS["commit"]:
        child = os.fork()
        if child == 0:
            try:
                session(path)
            finally:
                os._exit(0)
        written, ended, was_there = rng.randint(1, 4), (0, 0), False
        while ended == (0, 0):
            is_there = journal.exists()
            written -= is_there and not was_there
            if written == 0 and is_there:
                os.kill(child, signal.SIGKILL)
            was_there = is_there
            ended = os.waitpid(child, os.WNOHANG)
        kills += os.WIFSIGNALED(ended[1])
        after = seen(path)
        assert after[0] >= before[0] and before[1] <= after[1] <= before[1] + 1, (before, after)
        before = after


# --- workers ---

OPTIONS = {"claim": "eps=1", "pairs": [(0.0, 1.0), (1.0, 2.0)], "samples": 400, "seed": 7, "floating_point": False}


class Killer:
    """Kills one worker, at random, in rounds that are drawn at random."""

    def __init__(self, seed, most, workers):
        self.rng, self.most, self.workers, self.kills = random.Random(seed), most, workers, []

    def __call__(self, state):
        alive = sorted(set(self.workers()) - set(self.kills))
        if alive and len(self.kills) < self.most and self.rng.random() < 0.7:
            self.kills.append(self.rng.choice(alive))
            after = self.rng.uniform(0.0, 0.03)  # seconds: while the next round is drawn, or sent, or waited for
            threading.Timer(after, _kill, (self.kills[-1],)).start()


def _kill(process):
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself
        os.kill(process, signal.SIGKILL)


def killed_workers(workers, moments, **options):
    """Audits whose workers are killed at random: how many were."""
    slow, kills, seed = Slow(5e-4), 0, 0
    expected = evidence(dpaudit.audit(slow, **OPTIONS))
    while kills < moments:
        killer = Killer(seed, min(3, moments - kills), workers)
        assert evidence(dpaudit.audit(slow, on_progress=killer, **OPTIONS, **options)) == expected
        kills, seed = kills + len(killer.kills), seed + 1
        assert seed < 4 * moments, "workers must be there to be killed"
        time.sleep(0.05)
    return kills


@pytest.mark.long
def test_processes_killed_at_random_moments_change_no_bit(always_sent):
    def workers():
        return [process.pid for process in _pool_processes()]

    assert killed_workers(workers, MOMENTS["jobs"], jobs=2) == MOMENTS["jobs"]


def _pool_processes():
    from dpaudit.running import workers

    return [process for pool in workers._pools.values() for process in list((pool._processes or {}).values())]


@pytest.mark.long
def test_workers_of_dask_killed_at_random_moments_change_no_bit(always_sent):
    distributed = pytest.importorskip("distributed", reason="dask's distributed is not installed")
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50) as made:
        workers = lambda: [worker.pid for worker in made.workers.values() if worker.pid]  # noqa: E731
        done = killed_workers(workers, MOMENTS["dask"], backend="dask", cluster=made.scheduler_address)
    assert done == MOMENTS["dask"]
