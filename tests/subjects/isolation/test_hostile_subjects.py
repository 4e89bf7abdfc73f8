"""Every hostile subject is contained: the audit ends soon, as it should, and nothing is left running."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import time
import types
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_subjects import ALWAYS, HOSTILE, PIDS, Case, clock

import dpaudit
from dpaudit.subjects.call_outcomes import Ended
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.isolation import Isolation, fork_server, isolated, proxy, worker
from dpaudit.subjects.isolation import subject as isolated_subject
from dpaudit.subjects.isolation.fork_server import ForkServer
from dpaudit.subjects.plain import packed, unpacked

# No verdict may depend on how busy the machine is. Subjects that time out are audited by a clock that only they move;
# for all others the limit is so far away that no load reaches it.
LIMITS = Isolation(seconds_a_call=0.1, memory="64M", output="1M", patience=1e6)
AMPLE = Isolation(seconds_a_call=600, memory="64M", output="1M", patience=1e6)
CHEAP = {
    "refuse to die on 1",
    "segfault on 1",
    "print endlessly on 1",
    "kill the parent on 1",
    "return too much on 1",
    "return what has no methods that work on 1",
    "exhaust memory on 1",
    "return a bomb on 1",
    "prints",
    "comes back twice",
    "hides a process",
    "mutates its input",
    "uses the global generator",
    "closes descriptors",
    "starts threads",
    "breaks modules",
    "batch: os._exit on 1",
    "batch: a wrong length on 1",
}


def cases() -> list[Any]:
    marks = {case.name: () if case.name in CHEAP else (pytest.mark.long,) for case in HOSTILE}
    assert set(marks) >= CHEAP
    return [pytest.param(case, id=case.name, marks=marks[case.name]) for case in HOSTILE]


def no_longer_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Processes:
    """Every fork server and worker that an audit starts, by a handle that tells when it has ended.

    Only these are looked at: other processes of the test run, such as an idle pool of workers that a test before this
    one has left, may begin and end beside an audit whenever they like.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.handles: dict[int, int] = {}  # by process id, of those that could still be watched
        self.fork_servers: list[int] = []
        known = self

        class Watched(ForkServer):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                known.fork_servers.append(self.pid)
                known.watch(self.pid)

            def start(self) -> tuple[int, socket.socket, int]:
                started = super().start()
                known.watch(started[0])
                return started

        monkeypatch.setattr(proxy, "ForkServer", Watched)

    def watch(self, pid: int) -> None:
        """At its start: it exists, or has ended already and is nobody else yet."""
        with contextlib.suppress(ProcessLookupError, AttributeError):  # AttributeError: not Linux
            self.handles[pid] = os.pidfd_open(pid)

    def wait(self) -> None:
        """Until each has ended: a worker whose fork server was killed is ended by the kernel, which takes its time."""
        for handle in self.handles.values():
            select.select([handle], [], [])  # bounded by the time limit of all tests, which is a failure
            os.close(handle)
        for pid in self.fork_servers:
            with pytest.raises(ChildProcessError):  # the auditor's children: none is left unreaped
                os.waitpid(pid, os.WNOHANG)


@pytest.mark.parametrize("case", cases())
def test_a_hostile_subject_is_contained(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv(PIDS, str(pids))
    is_late = case.found in ("time-out", "did not come back")
    if is_late:
        for module in (isolated_subject, proxy, worker):
            monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=clock))
    folder, processes = os.getcwd(), Processes(monkeypatch)
    handlers = time.monotonic
    # A sound subject alarms with probability 0.001 at most (fixed seed); those that must be violated are so wherever
    # one input gives an outcome that the other never gives, after some 20 of the 240 draws.
    result = dpaudit.audit(
        case.subject, "eps=1", [(case.x, case.x_prime)], samples=120, confidence=0.999, seed=5,
        isolation=LIMITS if is_late else AMPLE, floating_point=False, inconclusive_factor=100.0,
    )  # fmt: skip
    allowed = {"sound": ("not_refuted", "inconclusive")}.get(case.verdict, (case.verdict,))
    assert result.verdict in allowed, result.findings[0].message
    contained = next(finding for finding in result.side_findings if finding.kind == "containment")
    assert case.found in str(contained.to_dict())
    assert capfd.readouterr() == ("", "")
    processes.wait()
    assert processes.fork_servers
    assert os.getcwd() == folder and time.monotonic is handlers
    for pid in pids.read_text().split() if pids.exists() else []:
        assert no_longer_there(int(pid))


def test_other_processes_may_end_beside_an_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pools = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
    case = next(case for case in HOSTILE if case.name == "prints")

    def ended(*arguments: Any) -> None:  # once the audit runs, as workers of a pool do that have been idle for long
        while pools:
            pools[-1].kill()
            pools.pop().wait()

    monkeypatch.setattr(ForkServer, "start", _after(ForkServer.start, ended))
    test_a_hostile_subject_is_contained(case, tmp_path, monkeypatch, capfd)
    assert not pools


def _after(function: Callable[..., Any], then: Callable[..., None]) -> Callable[..., Any]:
    def called(*arguments: Any) -> Any:
        found = function(*arguments)
        then()
        return found

    return called


def test_the_watch_over_processes_sees_one_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = Processes(monkeypatch)
    left = subprocess.Popen(["sleep", "1000"])
    processes.fork_servers.append(left.pid)
    with pytest.raises(pytest.fail.Exception):
        processes.wait()
    left.kill()
    processes.watch(left.pid)
    left.wait()
    processes.wait()


@pytest.mark.parametrize("name", ALWAYS)
def test_what_happens_whatever_the_input_is_an_error(name: str) -> None:
    act, found = ALWAYS[name]
    limits = LIMITS if found == "time-out" else AMPLE  # the clock on the wall: what never ends is late by any
    try:
        result = dpaudit.audit(act, "eps=1", [(0.0, 1.0)], samples=1_000, seed=5, isolation=limits)
    except dpaudit.SubjectError as error:
        assert found in str(error)
    else:
        assert result.verdict == "error"
        assert found in result.findings[0].message


def test_a_fork_server_that_is_stopped_does_not_hang_the_audit(monkeypatch):
    monkeypatch.setattr(fork_server, "ANSWER_SECONDS", 2.0)
    auditor = os.getpid()

    def stops(data, rng):
        if data > 0.5 and rng.random() < 0.02:
            os.kill(os.getppid(), signal.SIGSTOP)
            os._exit(3)
        return float(rng.laplace())

    started = time.monotonic()
    with isolated(as_subject(stops), Isolation(seconds_a_call=1.0)) as subject:
        outcomes = subject.sample(1.0, 100, np.random.default_rng(1))
        left = subject.shared.proxy._fork_server.pid
    assert any(isinstance(one, Ended) for one in outcomes) and len(outcomes) == 100
    assert time.monotonic() - started < 60.0 and os.getpid() == auditor
    with pytest.raises(OSError):
        os.kill(left, 0)


@pytest.mark.parametrize(
    "content", [pickle.dumps(Fraction(1, 3)), b"\x80\x05cfractions\nFraction\n\x8c\x0b1e300000000\x85R."]
)
def test_a_fraction_of_a_few_bytes_is_not_made_into_a_number_of_any_size(content):
    with pytest.raises(ValueError, match="plain data must be readable"):
        unpacked(content)
    assert unpacked(packed([Fraction(-1, 3)])) == [Fraction(-1, 3)]
