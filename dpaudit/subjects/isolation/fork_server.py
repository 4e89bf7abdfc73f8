"""The fork server: a process with one thread that forks workers, and ends them with all that they started.

It is forked once, from the auditor, and every worker is forked from it: locks of the auditor's other threads are taken
once at most and are of no use to it, and a worker starts from the state that the subject had at the first fork.

A worker leads a session and a process group of its own. To end it is to kill its group, and then every process that is
left: the fork server is the *subreaper* of what it forks (Linux), so that a process which left the group, or whose
parent died, becomes its child, whatever it did to hide. Where there are no subreapers the group alone is killed.
The fork server ends when the auditor does: its end of the control socket is closed then.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import io
import os
import signal
import socket
import struct
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

START, END, END_AT_ONCE, QUIT = b"s", b"e", b"k", b"q"
STARTED = struct.Struct("!q")
ENDED = struct.Struct("!iq")
QUIT_SECONDS = 5.0  # for the fork server to end its worker and itself
ANSWER_SECONDS = 10.0  # for the fork server to answer: one that something has stopped is continued, and then ended
GRACE = 0.2  # seconds for a worker that closed its channel to end by itself, so that its status is its own
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CHILDREN = "/proc/self/task/{}/children"

Serve = Callable[[socket.socket], None]  # what a worker does with its end of the channel


class ForkServerLost(Exception):
    """The fork server does not answer: something killed it."""


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere, and where it is refused, nothing."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def children() -> list[int]:
    """The process ids of this thread's living or unreaped children, as far as the system tells (Linux)."""
    try:
        with open(CHILDREN.format(threading.get_native_id())) as listed:
            return [int(text) for text in listed.read().split()]
    except (OSError, ValueError):
        return []


class ForkServer:
    """The auditor's handle of a fork server, which calls `prepare()` first, once.

    A worker calls `serve(channel)`, with a socket, and ends when that returns.
    """

    def __init__(self, prepare: Callable[[], None], serve: Serve) -> None:
        for stream in (sys.stdout, sys.stderr):  # what the fork copies of a buffer could be written twice
            with contextlib.suppress(Exception):
                stream.flush()
        self._control, theirs = socket.socketpair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: see above
            self.pid = os.fork()
        if self.pid == 0:  # pragma: no cover (in the child)
            try:
                self._control.close()
                _keep(theirs, prepare, serve)
            finally:
                os._exit(0)  # whatever happens: this copy of the auditor must not go on
        theirs.close()
        self._control.settimeout(ANSWER_SECONDS)
        self.close = weakref.finalize(self, _close, self._control, self.pid, os.getpid())  # it and its worker, once

    def start(self) -> tuple[int, socket.socket, int]:
        """A new worker: its process id, its channel, and the reading end of what it prints."""
        try:
            self._control.sendall(START)
            content, handles, _, _ = socket.recv_fds(self._control, STARTED.size, 2)
            if len(content) != STARTED.size or len(handles) != 2:
                raise ForkServerLost
        except OSError as error:
            raise ForkServerLost from error
        return int(STARTED.unpack(content)[0]), socket.socket(fileno=handles[0]), handles[1]

    def end(self, *, at_once: bool) -> tuple[int, int]:
        """End the worker: its exit status as `os.waitpid` gives it, and how many other processes were left of it."""
        try:
            self._control.sendall(END_AT_ONCE if at_once else END)
            content = self._control.recv(ENDED.size)
            if len(content) != ENDED.size:
                raise ForkServerLost
        except OSError as error:
            raise ForkServerLost from error
        status, others = ENDED.unpack(content)
        return status, others


def _close(control: socket.socket, pid: int, owner: int) -> None:
    if os.getpid() != owner:  # a forked copy of the auditor: the fork server is not its child
        control.close()
        return
    with contextlib.suppress(OSError):  # one that was stopped ends its worker, and what that has left, all the same
        os.kill(pid, signal.SIGCONT)
    with contextlib.suppress(OSError):  # said aloud: another fork server may hold a copy of this end
        control.sendall(QUIT)
    control.close()
    until = time.monotonic() + QUIT_SECONDS
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return
            time.sleep(0.0005)


def _keep(control: socket.socket, prepare: Callable[[], None], serve: Serve) -> None:  # pragma: no cover
    """Fork and end workers as the auditor asks, until its end is closed."""
    os.setsid()  # an interrupt from the keyboard is for the auditor
    for interrupt in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(interrupt, signal.SIG_DFL)
    with contextlib.suppress(Exception):
        signal.setitimer(signal.ITIMER_REAL, 0)
    faulthandler.disable()  # it may hold a copy of the auditor's stderr
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _forget_files(control.fileno())
    prepare()
    worker = 0
    while True:
        try:
            command = control.recv(1)
        except OSError:
            command = b""
        if command == START:
            ours, theirs = socket.socketpair()
            reading, writing = os.pipe()
            worker = os.fork()
            if worker == 0:
                try:
                    control.close()
                    ours.close()
                    os.close(reading)
                    _become_worker(writing)
                    serve(theirs)
                finally:
                    os._exit(0)
            theirs.close()
            os.close(writing)
            socket.send_fds(control, [STARTED.pack(worker)], [ours.fileno(), reading])
            ours.close()
            os.close(reading)
            continue
        status, others = _end(worker, at_once=command != END)
        worker = 0
        if not command or command == QUIT:
            return
        control.sendall(ENDED.pack(status, others))


def _forget_files(kept: int) -> None:  # pragma: no cover (in the fork server)
    """Put nothing in the place of whatever the auditor has open for writing: files, pipes, sockets.

    The numbers stay taken: an object that closes its file later on must not close another one of the same number.
    """
    import fcntl

    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        numbers = list(range(3, 256))
    for number in numbers:
        if number in (0, 1, 2, kept, nothing):
            continue
        with contextlib.suppress(OSError):
            if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                os.dup2(nothing, number)


def _end(worker: int, *, at_once: bool) -> tuple[int, int]:  # pragma: no cover (in the fork server)
    """Kill the worker, its group and all that is left; its status and the number of the others."""
    status, others = 0, 0
    if worker:
        found = 0
        until = time.monotonic() + (0.0 if at_once else GRACE)
        while not found and time.monotonic() < until:
            found, status = os.waitpid(worker, os.WNOHANG)
            if not found:
                time.sleep(0.0005)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker, signal.SIGKILL)
        if not found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)  # it may have changed its group
            _, status = os.waitpid(worker, 0)
    while True:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            for pid in children():
                os.kill(pid, signal.SIGKILL)
        try:
            found, _ = os.waitpid(-1, 0)
        except ChildProcessError:
            return status, others
        others += 1


def _become_worker(printed: int) -> None:  # pragma: no cover (in the worker)
    """A session and group of its own, ended with the fork server; what it prints goes into the pipe `printed`."""
    os.setsid()
    _prctl(PR_SET_CHILD_SUBREAPER, 0)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.close(nothing)
    os.close(printed)
    _kept.extend([sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__, sys.stdin])
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", "replace", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", "replace", write_through=True)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc]


_kept: list[Any] = []  # the auditor's streams, in a worker: one that is forgotten is flushed
