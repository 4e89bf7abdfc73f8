"""Single faults of sessions and checkpoints that rates cannot show: streams, joins, keys, checksums."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dpaudit
from dpaudit.inference.tasks import Request, Task, TaskResult
from dpaudit.running.accumulating import AccumulatingAudit
from dpaudit.running.checkpoint import open_checkpoint
from dpaudit.running.store import Store


def session(path, mechanism, seed=1, samples=60):
    return dpaudit.audit(mechanism, "eps=1", [(0.0, 1.0)], samples=samples, seed=seed, store=path, floating_point=False)


# --- sessions ---


@pytest.mark.guard
def test_no_draw_of_three_sessions_of_one_seed_is_drawn_again(tmp_path):
    # Wealth of sessions multiplies: a session that bets on the draws of another one squares what these happened to be.
    # (In a file: what a mechanism holds is part of its fingerprint, and another mechanism has other streams.)
    path = str(tmp_path / "drawn")

    def noted(data, size, rng):
        noise = rng.laplace(size=size)
        with open(path, "ab") as file:
            file.write(noise.tobytes())
        return data + noise

    for _ in range(3):
        session(tmp_path / "evidence.db", noted)
    with Store.at(tmp_path / "evidence.db", create=False) as store:
        (subject,) = store.subjects()
    assert len(subject["nights"]) == 3
    drawn = np.fromfile(path)
    assert len(np.unique(drawn)) == len(drawn) > 300


@pytest.mark.guard
def test_a_session_that_failed_joins_nothing_and_one_that_did_not_does(tmp_path, monkeypatch):
    said = []
    save = AccumulatingAudit._save

    def noted(self, is_last=False, joins=True):
        said.append(joins)
        return save(self, is_last, joins)

    monkeypatch.setattr(AccumulatingAudit, "_save", noted)
    calls = []

    def laplace(data, size, rng):
        calls.append(size)
        if len(calls) == limit:
            raise ValueError("no batch today")
        return data + rng.laplace(size=size)

    limit = 0
    session(tmp_path / "whole.db", laplace)
    assert said and all(said)
    needed, said[:], calls[:] = len(calls), [], []
    limit = needed - 1  # after the pilot: draws were counted already
    result = session(tmp_path / "failed.db", laplace)
    assert result.verdict == "error" and said and said[-1] is False


# --- checkpoints ---

HEADER = {"claim": "eps=1"}


@dataclasses.dataclass(frozen=True)
class Above:
    """Counts outputs up to a threshold, those above it, and NaN."""

    threshold: float

    def zeros(self):
        return np.zeros(3, dtype=np.int64)

    def count(self, outcomes):
        values = outcomes.numbers[:, 0]
        return np.array([(values < self.threshold).sum(), (values >= self.threshold).sum(), np.isnan(values).sum()])


CELLS = Above(0.5)


def task(quota=10, size=10, keep=0, start=0, input_=0, chunk=0, is_last=False, cells=CELLS):
    return Task(input_, 1, chunk, start, size, (Request(quota, cells),), keep, is_last)


RESULT = TaskResult((np.array([4, 6, 0], dtype=np.int64),), None)
OTHERS = {
    "quota": task(quota=9),
    "size": task(size=11),
    "start": task(start=5),
    "keep": task(keep=2),
    "is_last": task(keep=0, is_last=True),
    "statistic": task(cells=Above(0.7)),
}


@pytest.fixture
def kept(tmp_path):
    """A checkpoint with records of three chunks, closed; and where it is."""
    path = tmp_path / "kept"
    made = open_checkpoint(path, HEADER, resume=False, replayable=True)
    for chunk in range(3):
        made.note(0, [(task(chunk=chunk), RESULT)])
    made.close()
    return path


@pytest.mark.parametrize("other", OTHERS)
def test_a_record_of_another_course_is_not_taken(kept, other):
    again = open_checkpoint(kept, HEADER, resume=True, replayable=True)
    known = again.find(0, task())
    assert known is not None and np.array_equal(known.counts[0], RESULT.counts[0])
    assert again.find(1, task()) is None  # of another purpose
    with pytest.raises(
        dpaudit.UsageError, match=r"checkpoint must lead to .* got another course at round 1 of input 0 .*kept"
    ):
        again.find(0, OTHERS[other])
    again.close()
