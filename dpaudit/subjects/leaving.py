"""Traces of calls: a copy of the process, another working directory; and the limit of time that ends them.

A mechanism that calls `os.fork` returns twice. The second auditor would draw, look and write beside the first one, so
the copy is ended as soon as the call comes back in it.

A limit of time (`--seconds`) is looked at after each call. What is drawn when it is over is not counted. Some calls
never come back: `interrupted` ends one in the middle, by a timer of the process.
Validity: a sequential test may stop at any look, for any reason that earlier looks and the clock give: its wealth at
the last look stands. A round that is broken off is never looked at.
"""

from __future__ import annotations

import contextlib
import contextvars
import mmap
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

from dpaudit.errors import OutOfTimeError
from dpaudit.subjects.tracebacks import is_users

COPY_STATUS = 3  # the exit status of a copy: it has found nothing
LEFT = "dpaudit: a call forked the process of the auditor. The copy ends here; the audit goes on in the first one.\n"

_leave, _present, _write, _clock = os._exit, os.getpid, os.write, time.monotonic  # bound before a mechanism is loaded
_is_reported = mmap.mmap(-1, 1)  # shared by all copies: a mechanism may fork in every call
_until: contextvars.ContextVar[float] = contextvars.ContextVar("_until", default=float("inf"))


class Hold:
    """Guard of some calls: `check` after each of them."""

    def __init__(self) -> None:
        self._own, self._until = _present(), _until.get()

    def check_process(self) -> None:
        """End a copy of the process."""
        if _present() != self._own:
            _end_copy()

    def check(self) -> None:
        """End a copy of the process; `OutOfTimeError` where the time is over."""
        self.check_process()
        if _clock() > self._until:
            raise OutOfTimeError


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """For a while calls have so many seconds, together; a limit that ends earlier goes on."""
    with until(_clock() + seconds):
        yield


@contextlib.contextmanager
def until(moment: float) -> Iterator[None]:
    """The same up to a moment of the monotonic clock of this machine."""
    token = _until.set(min(_until.get(), moment))
    try:
        yield
    finally:
        _until.reset(token)


def end_of_time() -> float:
    """The moment after which no call is made; inf for none."""
    return _until.get()


def is_time_over() -> bool:
    """Tell whether the time of calls is over."""
    return _clock() > _until.get()


TICK = 0.01  # seconds of the processor between two looks at the clock
_interrupts: list[tuple[float, Callable[[], object]]] = []


def _tick(_: int, frame: FrameType | None) -> None:
    # Validity: in the code of the user alone, as this package may be noting what a call has done.
    if frame is not None and is_users(frame.f_code.co_filename):
        for moment, end in reversed(_interrupts):
            if _clock() > moment:
                end()


@contextlib.contextmanager
def interrupted(moment: float, end: Callable[[], object]) -> Iterator[None]:
    """From a moment of the monotonic clock on the user's code is broken off by `end`, which raises; an inner one first.

    A loop that calls nothing is, too. Only the main thread of a process gets signals: in others nothing happens, nor
    where the system has no such timer.
    """
    is_main = threading.current_thread() is threading.main_thread()
    has_timer = hasattr(signal, "setitimer") and signal.getsignal(signal.SIGVTALRM) is not None  # else of compiled code
    if moment == float("inf") or not is_main or not has_timer:
        yield
        return
    _interrupts.append((moment, end))
    try:
        if len(_interrupts) > 1:
            yield
            return
        before, timer = signal.signal(signal.SIGVTALRM, _tick), signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, *timer)
            signal.signal(signal.SIGVTALRM, before)
    finally:
        _interrupts.pop()


@contextlib.contextmanager
def same_folder() -> Iterator[list[str]]:
    """For a while a mechanism may change the working directory; then it is what it was before.

    Gives a list, which has the directory that was left behind once the while is over, where it is another one.
    """
    before, found = _folder(), list[str]()
    try:
        yield found
    finally:
        if (after := _folder()) != before:
            found.append(after)
            with contextlib.suppress(OSError):  # it may be gone
                os.chdir(before)


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "a folder that is gone"


def _end_copy() -> NoReturn:
    if not _is_reported[0]:
        _is_reported[0] = 1
        with contextlib.suppress(OSError):
            _write(2, LEFT.encode())
    _leave(COPY_STATUS)
