"""Calls of compiled code by which a program gets at something that no generator of its own accounts for.

`reason_of_call` is for Python's profiling hook, which sees every call of compiled code: the system's random numbers,
also where a library took the function by name, threads, processes and sockets; in the user's own code also clocks,
`id` and `hash`. `listening` sets that hook and puts back what was there. `is_device` tells files that give other bytes
each time.

Not seen: what compiled code draws by itself, and regular files that change between calls.
"""

from __future__ import annotations

import _thread
import contextlib
import datetime
import gc
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from dpaudit.subjects.tracebacks import OWN_FOLDER, is_users

SYSTEM = "the system's random numbers are used"
PROCESS = "a process is started"
CLOCK = "the clock is read"
ANYWHERE: Mapping[Any, str] = {os.urandom: SYSTEM, _thread.start_new_thread: "a thread is started"}
CLOCKS: Mapping[Any, str] = {
    **{
        getattr(time, name): CLOCK
        for name in (
            "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
            "thread_time", "localtime", "gmtime", "clock_gettime", "clock_gettime_ns", "ctime",
        )
        if hasattr(time, name)
    },
    **{getattr(datetime.datetime, name): CLOCK for name in ("now", "utcnow", "today")},
    datetime.date.today: CLOCK,
}  # fmt: skip
OF_PROCESS: Mapping[Any, str] = {
    id: "id() depends on the process",
    hash: "hash() depends on the process",
    os.getpid: "the number of the process is read",
}
BY_NAME = {
    "getrandom": SYSTEM,
    **dict.fromkeys(("fork_exec", "fork", "posix_spawn", "posix_spawnp"), PROCESS),
}
# Of these a certificate finds a difference by running paths twice; a symbol that meets no noise may seldom differ.
READING = {
    **dict.fromkeys(("system", "execv", "execve"), PROCESS),
    **dict.fromkeys(("recv", "recv_into", "recvfrom", "recvfrom_into"), "a socket is read"),
    **dict.fromkeys(("pread", "readv", "fromfile", "dlopen", "dlsym"), "something outside of Python is read"),
}


@contextlib.contextmanager
def listening(hear: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """While calls are heard by this hook alone; then the profiler that was there before goes on."""
    others: Any = sys.getprofile()
    sys.setprofile(hear)
    try:
        yield
    finally:
        if others is None or callable(others):
            sys.setprofile(others)
        else:  # a profiler in C, as cProfile of Python 3.11: `setprofile` would take it for a function, and call it
            sys.setprofile(None)
            others.enable()


def reason_of_call(frame: FrameType, function: Any) -> str:
    """Why a call of compiled code gets at something that no draw accounts for; empty where it does not."""
    try:
        reason = ANYWHERE.get(function) or BY_NAME.get(function.__name__, "")
        if reason or (function not in CLOCKS and function not in OF_PROCESS):
            return reason
    except (AttributeError, TypeError):
        return ""
    file = frame.f_code.co_filename
    if not is_users(file) or file.startswith((OWN_FOLDER, "<string>")) or _is_of_garbage_collection(frame):
        return ""
    return CLOCKS.get(function) or OF_PROCESS[function]


def _is_of_garbage_collection(frame: FrameType) -> bool:
    """Whether it is a callback of the garbage collector, as hypothesis has one that reads the clock: no program's."""
    return any(getattr(callback, "__code__", None) is frame.f_code for callback in gc.callbacks)


def reason_of_reading(function: Any) -> str:
    """Why a call of compiled code may read what differs each time: of an open device, a socket, another process."""
    name = getattr(function, "__name__", "")
    if not isinstance(name, str):
        return ""
    if name in READING or (name == "read" and getattr(function, "__module__", "") == "posix"):
        return READING.get(name, "something outside of Python is read")
    if name.startswith("read"):
        opened = getattr(getattr(function, "__self__", None), "name", None)
        if isinstance(opened, str | bytes | int) and is_device(opened):
            return f"the device {opened!r} is read"
    return ""


def is_device(file: Any) -> bool:
    """Whether a path or the number of a file is a device, a pipe or a socket, other than the null device.

    Examples
    --------
    >>> is_device(os.devnull), is_device(os.curdir)
    (False, False)
    """
    try:
        if not isinstance(file, int) and os.fspath(file) in (os.devnull, os.fsencode(os.devnull)):
            return False
        mode = os.stat(file).st_mode
    except (OSError, TypeError, ValueError):
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
