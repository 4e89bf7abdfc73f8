"""Limits on calls: their time, a copy of the process that one leaves behind, another working directory.

A mechanism that calls `os.fork` returns twice. The second auditor would draw, look and write beside the first one, so
the copy is ended as soon as the call comes back in it.

A limit of time (`--seconds`) is looked at after each call. What is drawn when it is over is not counted. Some calls
never come back: `interrupted` ends one in the middle, by a thread that watches the clock.
Validity: a sequential test may stop at any look, for any reason that earlier looks and the clock give: its wealth at
the last look stands. A round that is broken off is never looked at.
"""

from __future__ import annotations

import _thread
import contextlib
import contextvars
import ctypes
import dataclasses
import functools
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

from dpaudit.errors import OutOfTimeError
from dpaudit.subjects.tracebacks import OPERATIONS, OWN_FOLDER, is_users

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


TICK = 0.01  # seconds between two looks at the clock


class _Late(BaseException):
    """The time of a call is over, in a thread that has no signals; `interrupted` says how it ends."""


class _Again:
    """Negated, it has the handler called at the next step of the main thread.

    No call, as Python would take that step as soon as one comes back.
    """

    __neg__ = staticmethod(functools.partial(_thread.interrupt_main, getattr(signal, "SIGVTALRM", signal.SIGINT)))


@dataclasses.dataclass
class _Limit:
    """A moment from which on the calls of a thread are broken off, how, and whether one was."""

    moment: float
    end: Callable[[], object]
    was_used: bool = False


_limits = threading.local()
_again = _Again()


def _late(limits: list[_Limit]) -> _Limit | None:
    """The innermost limit that is over."""
    return next((limit for limit in reversed(limits) if _clock() > limit.moment), None)


def _is_of_call(frame: FrameType | None) -> bool:
    """Tell whether a frame is of the user's code, or was called by it: this package may be noting what a call did."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        is_noting = frame.f_code.co_filename.startswith(OWN_FOLDER) and frame.f_code.co_filename != OPERATIONS
        frame = None if is_noting else frame.f_back
    return frame is not None


def _tick(number: int, frame: FrameType | None) -> None:
    limit = _late(getattr(_limits, "all", []))
    if limit is None or not _is_of_call(frame):
        return
    is_caught, limit.was_used = limit.was_used, True
    try:
        limit.end()
    except BaseException as error:
        found = error
    if is_caught:  # by the program, which may do so each time: then at every step, so that it leaves all of that
        _drop_own_hooks()  # else they take that step
        _ = -_again
    raise found


def _drop_own_hooks() -> None:
    for hook, drop in ((sys.gettrace(), sys.settrace), (sys.getprofile(), sys.setprofile)):
        code = getattr(hook, "__code__", None)
        if code is not None and code.co_filename.startswith(OWN_FOLDER):
            drop(None)


@contextlib.contextmanager
def watching() -> Iterator[list[_Limit]]:
    """For a while another thread looks at the clock, and breaks off this one where a limit is over; once, if nested.

    So a loop of many short runs, each with a limit, has one such thread.
    """
    limits: list[_Limit] | None = getattr(_limits, "all", None)
    if limits is not None:
        yield limits
        return
    limits = _limits.all = []
    thread, is_over = threading.get_ident(), threading.Event()
    has_signals = hasattr(signal, "pthread_kill") and threading.current_thread() is threading.main_thread()
    number = signal.SIGVTALRM if has_signals and signal.getsignal(signal.SIGVTALRM) is not None else None  # of C

    def watch() -> None:
        while not is_over.wait(TICK):
            limit = _late(limits)
            if limit is None or not _is_of_call(sys._current_frames().get(thread)):
                continue
            if number is not None:
                signal.pthread_kill(thread, number)
            else:
                limit.was_used = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Late))

    before = signal.signal(number, _tick) if number is not None else None
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield limits
    finally:
        del _limits.all
        is_over.set()
        watcher.join()
        if number is not None:
            signal.signal(number, signal.SIG_IGN)  # drops one that a call has blocked, which would end the process
            signal.signal(number, before)


@contextlib.contextmanager
def interrupted(moment: float, end: Callable[[], object]) -> Iterator[None]:
    """From a moment of the monotonic clock on the user's code is broken off by `end`, which raises; an inner one first.

    A loop that calls nothing is, too, and in the main thread, by signals, what sleeps or catches an exception. What
    catches every one goes on in another thread, and where the system has no such signal.
    """
    if moment == float("inf"):
        yield
        return
    limit = _Limit(moment, end)
    with watching() as limits:
        limits.append(limit)
        before = sys.unraisablehook
        silent = sys.unraisablehook = functools.partial(_unraisable, before)
        try:
            yield
        except GeneratorExit:  # nobody waits for its end
            limit.was_used = False
            raise
        finally:
            if sys.unraisablehook is silent:  # a call may have set another one
                sys.unraisablehook = before
            limits.pop()
            if limit.was_used:  # whatever the program has made of it
                end()


def _unraisable(before: Callable[[Any], object], found: Any) -> None:
    """Say nothing of an end of a call that Python cannot raise, as it closes a generator: the call is known as over."""
    if not found.exc_type.__module__.startswith("dpaudit."):
        before(found)


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
