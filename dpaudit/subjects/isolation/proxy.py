"""The auditor's end: a worker that answers requests, or is ended and replaced.

`WorkerProxy.ask` sends a request and waits, for the answer, for the end of the worker, or for a limit. It never waits
for anything that the worker alone decides: neither for its channel to be read, nor for its death.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import select
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.errors import SubjectError
from dpaudit.subjects.call_outcomes import Ended
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.isolation.fork_server import ForkServer, ForkServerLost
from dpaudit.subjects.isolation.limits import Isolation
from dpaudit.subjects.isolation.worker import GOES_ON, NOTES, OUTPUT_LIMIT, TIME_OUT, Log, Worker

START_SECONDS = 20.0  # for a new worker to make its first call, beside the time of the call
MAX_STARTS = 4  # workers that end before any call, one after the other
SLACK = 0.02  # seconds between the limit of a call and its end: a call that ends just after it is marked by the worker
KEPT_PRINTS = 500  # characters of what a call printed last
MAX_INPUTS = 1_024  # that a worker holds
FORK_SERVER_KILLED = "the loss of its fork server"


@dataclasses.dataclass
class Answer:
    """Effects that were seen while a request was answered, or how the worker ended; the outcomes are in the log."""

    seen: Counter[str] = dataclasses.field(default_factory=Counter)
    ended: Ended | None = None
    seconds: float = 0.0


@dataclasses.dataclass
class Process:
    """A worker: its process id and handle, channel, pipe, and the inputs that it holds."""

    pid: int
    channel: socket.socket
    printed: int
    handle: int  # a pidfd, or -1
    inputs: set[int] = dataclasses.field(default_factory=set)
    is_fresh: bool = True
    is_deaf: bool = False  # its end of the channel is closed


class WorkerProxy:
    """The workers of one subject, one at a time, each from the state that it has now. Not for two threads at once."""

    def __init__(self, subject: Subject, isolation: Isolation) -> None:
        self.isolation = isolation
        self.log = Log(isolation.output)
        self._worker = Worker(subject, isolation, self.log)
        self._fork_server: ForkServer | None = None
        self.process: Process | None = None
        self.started = 0  # workers
        self.serial = 0  # of requests
        self.left_over = 0  # processes that workers left when they ended
        self.recycled = 0.0  # seconds that it took to end workers in which something went on
        self.owner = os.getpid()

    def close(self) -> None:
        """End the worker and the fork server; nothing in a forked copy of the auditor, whose they are not."""
        if os.getpid() != self.owner:
            return
        if self.process is not None:
            self._end(at_once=True)
        if self._fork_server is not None:
            self._fork_server.close()
            self._fork_server = None

    def start(self) -> None:
        """The fork server, now: from the state of the subject that every worker starts with."""
        if self._fork_server is None:
            self._fork_server = ForkServer(self._worker.prepare, self._worker.serve)

    def worker(self) -> Process:
        """The worker, a new one if there is none."""
        if self.process is not None:
            return self.process
        for _ in range(2):
            self.start()
            assert self._fork_server is not None
            try:
                pid, channel, printed = self._fork_server.start()
                break
            except ForkServerLost:
                self._fork_server.close()
                self._fork_server = None
        else:
            raise SubjectError("isolation must be able to start processes, got none from a new fork server.")
        self.started += 1
        os.set_blocking(printed, False)
        try:
            handle = os.pidfd_open(pid)  # type: ignore[attr-defined, unused-ignore]
        except (AttributeError, OSError):  # not Linux, or it has ended
            handle = -1
        self.process = Process(pid, channel, printed, handle)
        return self.process

    def ask(
        self,
        request: dict[str, Any],
        inputs: dict[int, bytes],
        seeds: np.random.Generator,
        limit: float,
        prepare: Callable[[dict[str, Any], Process], None] = lambda request, process: None,
    ) -> Answer:
        """Send a request and wait, again with a new worker where one ended before it began a call.

        `limit` is of each call, in seconds. `prepare` completes the request for the worker that gets it.
        """
        for _ in range(MAX_STARTS):
            process = self.worker()
            prepare(request, process)
            self.log.clear()
            if process.is_fresh:
                request["seed"] = (int(seeds.integers(2**63)), self.started)
            if len(process.inputs) > MAX_INPUTS:
                process.inputs.clear()
                request["forget"] = True
            request["inputs"] = {key: content for key, content in inputs.items() if key not in process.inputs}
            process.inputs.update(inputs)
            answer = self._answer(process, request, len(request.get("schedule", ())), limit)
            if answer.ended is None or self.log.since[0] >= 0.0:
                break
        return answer

    def _answer(self, process: Process, request: dict[str, Any], length: int, limit: float) -> Answer:
        """The answer to a request of so many calls: what was seen, or how the worker ended or was ended."""
        began = time.monotonic()
        printed = bytearray()
        counted = [0]
        how, has_answered = "", False
        place, allowed = 0, self.isolation.output
        self.serial += 1
        request["serial"] = self.serial
        try:
            process.channel.settimeout(self.isolation.seconds_a_call + START_SECONDS)
            process.channel.sendall(pickle.dumps(request, protocol=5))
            process.channel.settimeout(None)
        except OSError:
            process.is_deaf = True
        process.is_fresh = False
        poll = select.poll()
        for handle in (process.printed, process.handle, -1 if process.is_deaf else process.channel.fileno()):
            if handle >= 0:
                poll.register(handle, select.POLLIN)
        while not how and not has_answered:
            since = float(self.log.since[0])
            has_begun = since >= 0.0
            latest = began + START_SECONDS + limit * (max(length, 1) if has_begun else 1)  # whatever is in the log
            left = min(latest, since + limit + SLACK if has_begun else latest) - time.monotonic()
            if left <= 0.0:
                how = TIME_OUT
                break
            wait = min(left, 0.005 if process.is_deaf else 0.25 * self.isolation.seconds_a_call)
            for handle, _ in poll.poll(1_000.0 * wait + 1.0):
                if handle == process.printed:
                    if not self._drain(printed, counted, 1 << 20):
                        poll.unregister(handle)
                    if int(self.log.place[0]) != place:  # the limit is that of one call
                        place, allowed = int(self.log.place[0]), counted[0] + self.isolation.output
                    if counted[0] > allowed:
                        how = OUTPUT_LIMIT
                elif handle == process.handle:
                    how = how or "end"
                else:
                    part = b""
                    with contextlib.suppress(OSError):
                        part = process.channel.recv(1 << 20)
                    has_answered = bool(part) and self.log.answered[0] == self.serial  # others may write there too
                    if not part:
                        poll.unregister(handle)
                        process.is_deaf = True
                        how = how or ("end" if process.handle < 0 else "")
            if process.is_deaf and 0 < length <= self.log.place[0]:
                how = how or "end"
        seconds = time.monotonic() - began
        if how != OUTPUT_LIMIT:
            self._drain(printed, counted, self.isolation.output)
        answer = Answer(seconds=seconds)
        answer.seen["printed"] += counted[0] > 0
        if has_answered:  # although the worker may have ended just then
            answer.seen.update(name for name, was_seen in zip(NOTES, self.log.notes, strict=True) if was_seen)
            if any(name in answer.seen for name in GOES_ON):
                self.recycle()
            return answer
        text = printed[-KEPT_PRINTS:].decode("utf-8", "replace").strip()
        ended = self._end(at_once=how != "end", how="" if how == "end" else how)
        answer.ended = Ended(ended, text)
        answer.seen["descriptors"] += how != TIME_OUT and 0 < length <= self.log.place[0]
        return answer

    def recycle(self) -> None:
        """End a worker in which something goes on."""
        if self.process is not None:
            began = time.monotonic()
            self._end(at_once=True)
            self.recycled += time.monotonic() - began

    def _drain(self, printed: bytearray, counted: list[int], most: int) -> bool:
        """Take from the pipe what there is, about `most` bytes at most; False where nobody can write any more."""
        assert self.process is not None
        until = counted[0] + most
        while counted[0] <= until:
            try:
                part = os.read(self.process.printed, 1 << 16)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not part:
                return False
            counted[0] += len(part)
            printed += part
            del printed[: -2 * KEPT_PRINTS]
        return True

    def _end(self, *, at_once: bool, how: str = "") -> str:
        """End the worker; how it ended: `how`, or what its status says."""
        process = self.process
        assert process is not None
        self.process = None
        status = 0
        try:
            assert self._fork_server is not None
            status, others = self._fork_server.end(at_once=at_once)
            self.left_over += others
        except ForkServerLost:
            with contextlib.suppress(OSError):  # its workers die with it (Linux); elsewhere this ends the group
                os.killpg(process.pid, signal.SIGKILL)
            if self._fork_server is not None:
                self._fork_server.close()
            self._fork_server = None
            how = how or FORK_SERVER_KILLED
        finally:
            process.channel.close()
            os.close(process.printed)
            if process.handle >= 0:
                os.close(process.handle)
        if how:
            return how
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
        return f"exit {os.WEXITSTATUS(status)}"
