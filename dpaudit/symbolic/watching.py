"""Watches runs for randomness that no draw of theirs accounts for.

* Python's profiling hook sees every call of compiled code: the system's random numbers (so also `secrets`, `uuid4` and
  generators of numpy that are made without a seed), also where a library took the function by name, threads, processes
  and sockets. Clocks, `id` and `hash` are for the operations to see (`dpaudit.symbolic.operations`).
* The states of the generators of the process, and of those that the mechanism can reach, are compared before and after
  (`dpaudit.symbolic.program_state.State.moved`).

Not seen: what compiled code draws by itself, and regular files that change between calls. A repeated path that ends
otherwise shows those.
"""

from __future__ import annotations

import _random
import _thread
import contextlib
import datetime
import io
import os
import stat
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from dpaudit.subjects.call_limits import interrupted
from dpaudit.subjects.tracebacks import OPERATIONS, OWN_FOLDER
from dpaudit.symbolic.choices import Choices
from dpaudit.symbolic.generators import PythonRng

SYSTEM = "the system's random numbers are used"
PROCESS = "a process is started"
CLOCK = "the clock is read"
RUNNING: list[Choices] = []  # runs that go on
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
BY_NAME = {"getrandom": SYSTEM, **dict.fromkeys(("fork_exec", "fork", "posix_spawn", "posix_spawnp"), PROCESS)}
OPENING = (io.open, os.open)
# Of these a certificate finds a difference by running paths twice; a symbol that meets no noise may seldom differ.
READING = {
    **dict.fromkeys(("system", "execv", "execve"), PROCESS),
    **dict.fromkeys(("recv", "recv_into", "recvfrom", "recvfrom_into"), "a socket is read"),
    **dict.fromkeys(("pread", "readv", "fromfile", "dlopen", "dlsym"), "something outside of Python is read"),
}


@contextlib.contextmanager
def watched(run: Choices, reads: bool = False) -> Iterator[None]:
    """While a run goes on; tells it of other randomness, and where its deadline has long passed.

    With `reads` what is read of devices, sockets and processes counts, as where runs are seldom repeated; then the
    module `random` does not, which is led to the run.
    """
    calls = 0

    def hear(frame: FrameType, event: str, function: Any) -> None:
        nonlocal calls
        if event != "c_call":
            calls += 1
            depends = run.depends
            if depends is not None and event == "call":
                depends.note(frame)
            elif depends is not None and event == "return" and id(frame.f_code) in depends.working:
                depends.state.note_work(event, function)
            if not calls & 0xFF and time.monotonic() > run.deadline:  # a loop that sleeps, without the processor's time
                sys.setprofile(None)
                run.suspend()
            return
        reason = "" if run.is_over else _reason(frame, function, reads)
        if reason:
            if not reads:  # the run ends here
                sys.setprofile(None)
            run.mark_unseen(reason)

    is_left = False
    RUNNING.append(run)
    limit, depth = sys.getrecursionlimit(), sum(1 for _ in traceback.walk_stack(None))
    sys.setrecursionlimit(min(limit, depth + limit // 2))  # what needs more of it depends on who calls
    with interrupted(run.deadline, run.suspend), listening(hear):
        try:
            yield
        except KeyboardInterrupt:  # which takes the hook away where it comes as that hears
            is_left = True
            raise
        finally:
            RUNNING.pop()
            sys.setrecursionlimit(limit)
            # The program has set a hook of its own, or none.
            if sys.getprofile() is not hear and not run.is_over and not is_left:
                run.mark_unseen("the hook that sees calls was taken away, or calls went too deep")


def _reason(frame: FrameType, function: Any, reads: bool) -> str:
    owner = type(getattr(function, "__self__", None))
    # A face loses its state itself where that is read; what else is asked of its base goes past its methods.
    is_past = issubclass(owner, PythonRng if reads else _random.Random)
    if is_past and (owner is not PythonRng or function.__name__ != "getstate"):
        return "a generator of the module random is used"
    if not reads:
        return reason_of_call(function)
    file = frame.f_code.co_filename
    if file.startswith(OWN_FOLDER) and file != OPERATIONS:
        return ""
    if function in OPENING:  # by the names that the caller has for the file: a device need not be read by a method
        held = [one for value in frame.f_locals.values() for one in (value if type(value) is tuple else (value,))]
        device = next((one for one in held if isinstance(one, str | bytes | os.PathLike) and is_device(one)), None)
        return f"the device {str(device)!r} is opened" if device is not None else ""
    return reason_of_reading(function) or reason_of_call(function)


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


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """While nothing is heard or traced: for long computations of our own in the middle of a run."""
    profile, trace = sys.getprofile(), sys.gettrace()
    sys.settrace(None)
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(profile)
        sys.settrace(trace)


def reason_of_call(function: Any) -> str:
    """Reason why a call of compiled code gets at something that no draw accounts for; empty where it does not."""
    try:
        return ANYWHERE.get(function) or BY_NAME.get(function.__name__, "")
    except (AttributeError, TypeError):
        return ""


def reason_of_reading(function: Any) -> str:
    """Reason why a call of compiled code may read what differs each time: an open device, a socket, another process."""
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
    """Tell whether a path or the number of a file is a device, a pipe or a socket, other than the null device.

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
