"""Subjects that misbehave, each in one way; `HOSTILE` lists them with how an audit of them must end.

Those "on 1" misbehave where the input is 1 only: that they do is an outcome that depends on the input. Those "always"
do so whatever the input is. Apart from that they release Laplace noise of scale 1 on 0 or 1, claim eps=1.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import mmap
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

PIDS = "DPAUDIT_TEST_PIDS"  # the file that subjects which start processes write their ids to
NOW = memoryview(mmap.mmap(-1, 8)).cast("d")  # [0]: seconds of a clock that workers and the auditor share
OWN = np.random.default_rng(7)  # of subjects that have a generator of their own


def noise(data: Any, rng: np.random.Generator) -> float:
    return float(data + rng.laplace())


class Rude(BaseException):
    pass


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class Sly:
    """Equal to everything, of no hash, printed with an error."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        raise ValueError("no hash")

    def __repr__(self) -> str:
        raise ValueError("no text")


class Bomb:
    """Ends the process that pickles it, and the one that reads it again."""

    def __reduce__(self) -> Any:
        return os._exit, (3,)


def clock() -> float:
    """The clock of `time_passes`: it stands still unless a subject says that it will not come back.

    Nobody is late on a busy machine then, and what never ends is late at once.
    """
    return NOW[0]


def time_passes(seconds: float) -> None:
    NOW[0] += seconds


def hang(data: Any, rng: Any) -> Any:
    time_passes(1_000.0)
    while True:
        pass


def sleep(data: Any, rng: Any) -> Any:
    time_passes(1_000.0)
    time.sleep(1_000)


def refuse_to_die(data: Any, rng: Any) -> Any:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    time_passes(1_000.0)
    while True:
        try:
            time.sleep(1_000)
        except BaseException:
            continue


def stop(data: Any, rng: Any) -> Any:
    time_passes(1_000.0)
    os.kill(os.getpid(), signal.SIGSTOP)


def segfault(data: Any, rng: Any) -> Any:
    ctypes.string_at(0)


def interrupt(data: Any, rng: Any) -> Any:
    raise KeyboardInterrupt


def rude(data: Any, rng: Any) -> Any:
    raise Rude("no Exception")


def unprintable(data: Any, rng: Any) -> Any:
    raise Unprintable


def recurse(data: Any, rng: Any) -> Any:
    return recurse(data, rng)


def overflow(data: Any, rng: Any) -> Any:
    time_passes(1_000.0)
    sys.setrecursionlimit(10**9)
    nested: Any = []
    for _ in range(10**6):
        nested = [nested]
    return repr(nested)


def eat_memory(data: Any, rng: Any) -> Any:
    return len([bytearray(10**7) for _ in range(10**6)])


def large(data: Any, rng: Any) -> Any:
    return np.zeros(10**6)


def cyclic(data: Any, rng: Any) -> Any:
    threading.Timer(0.1, time_passes, (1_000.0,)).start()  # while the output is read, which never ends
    nested: list[Any] = []
    nested += [nested, nested]
    return nested


def generator(data: Any, rng: Any) -> Any:
    return itertools.count()


def print_endlessly(data: Any, rng: Any) -> Any:
    while True:
        os.write(1, b"x" * 65_536)


def kill_parent(data: Any, rng: Any) -> Any:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1_000)


def write_everywhere(data: Any, rng: Any) -> Any:
    for handle in range(3, 64):
        try:
            os.write(handle, b"garbage " * 8)
        except OSError:
            continue
    return 0.0


# What is done beside a sound output.


def prints(data: Any, rng: Any) -> Any:
    print("the input is", data, flush=True)
    os.write(2, b"and again on stderr\n")
    return noise(data, rng)


def _remember(pid: int) -> None:
    with open(os.environ[PIDS], "a") as pids:
        pids.write(f"{pid}\n")


def forks(data: Any, rng: Any) -> Any:
    pid = os.fork()
    if pid == 0:
        time.sleep(1_000)
        os._exit(0)
    _remember(pid)
    return noise(data, rng)


def comes_back_twice(data: Any, rng: Any) -> Any:
    """The child of the fork returns too, and would go on as a second worker."""
    os.fork()
    return noise(data, rng)


def hides_a_process(data: Any, rng: Any) -> Any:
    """A daemon: another session, and its parent is gone."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _remember(os.getpid())
            time.sleep(1_000)
        os._exit(0)
    os.waitpid(child, 0)
    return noise(data, rng)


def starts_a_program(data: Any, rng: Any) -> Any:
    _remember(subprocess.Popen(["sleep", "1000"]).pid)
    return noise(data, rng)


def mutates(data: Any, rng: Any) -> Any:
    data[0] += 5.0
    return noise(data[0] - 5.0, rng)


def uses_global_generator(data: Any) -> Any:
    return float(data + np.random.laplace() + 0.0 * random.random())  # noqa: NPY002


def seeds_global_generators(data: Any, rng: Any) -> Any:
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    return noise(data, rng)


def closes_descriptors(data: Any, rng: Any) -> Any:
    os.closerange(0, 256)
    return noise(data, rng)


def moves(data: Any, rng: Any) -> Any:
    os.chdir("/")
    os.environ["HOME"] = "/nowhere"
    return noise(data, rng)


def starts_a_thread(data: Any, rng: Any) -> Any:
    threading.Thread(target=time.sleep, args=(1_000,)).start()
    return noise(data, rng)


def changes_handlers(data: Any, rng: Any) -> Any:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return noise(data, rng)


def breaks_modules(data: Any, rng: Any) -> Any:
    time.monotonic = lambda: 0.0
    sys.stdout = None  # type: ignore[assignment]
    pickle.loads = None  # type: ignore[assignment]
    return noise(data, rng)


def own_generator_and_crashes(data: Any) -> Any:
    if OWN.random() < 0.2:
        os.abort()
    return float(data + OWN.laplace())


@dataclasses.dataclass(frozen=True)
class On1:
    """Misbehaves where the input is 1, and is sound where it is 0."""

    misbehave: Callable[[Any, Any], Any]

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        return self.misbehave(data, rng) if data == 1.0 else noise(data, rng)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Vectorised: misbehaves where the input is 1, or always."""

    misbehave: Callable[[Any, Any], Any]
    is_always: bool = False

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        if self.is_always or data == 1.0:
            return self.misbehave(data, rng)
        return data + rng.laplace(size=size)


@dataclasses.dataclass(frozen=True)
class Case:
    """A subject, and how an audit of it must end.

    `verdict` "sound": nothing is found, as 240 draws can. `found` is a part of what the containment finding says, or of
    the error's message.
    """

    name: str
    subject: Any
    verdict: str
    found: str
    x: Any = 0.0
    x_prime: Any = 1.0


ENDS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "hang": (hang, "time-out"),
    "sleep": (sleep, "time-out"),
    "refuse to die": (refuse_to_die, "time-out"),
    "stop itself": (stop, "time-out"),
    "segfault": (segfault, "SIGSEGV"),
    "abort": (lambda data, rng: os.abort(), "SIGABRT"),
    "os._exit": (lambda data, rng: os._exit(3), "exit 3"),
    "overflow the stack of C": (overflow, "did not come back"),
    "print endlessly": (print_endlessly, "output limit"),
    "kill the parent": (kill_parent, "loss of its fork server"),
    "return too much": (large, "output limit"),
    "return a cycle": (cyclic, "did not come back"),
    "return what has no methods that work": (lambda data, rng: [Sly()], "unreadable output"),
}
RAISES: dict[str, Callable[[Any, Any], Any]] = {
    "sys.exit": lambda data, rng: sys.exit("enough"),
    "KeyboardInterrupt": interrupt,
    "a BaseException": rude,
    "an exception without a text": unprintable,
    "deep recursion": recurse,
    "exhaust memory": eat_memory,
    "return a bomb": lambda data, rng: {"result": Bomb()},
    "return a function": lambda data, rng: lambda: data,
    "return a generator": generator,
    "write into every descriptor": write_everywhere,
}
BESIDE = [
    Case("prints", prints, "sound", "printed"),
    Case("forks", forks, "sound", "left processes running"),
    Case("comes back twice", comes_back_twice, "sound", "left processes running"),
    Case("hides a process", hides_a_process, "sound", "left processes running"),
    Case("starts a program", starts_a_program, "sound", "left processes running"),
    Case("mutates its input", mutates, "sound", "changed its input", [0.0], [1.0]),
    Case("uses the global generator", uses_global_generator, "sound", "global generator"),
    Case("seeds the global generators", seeds_global_generators, "sound", "global generator"),
    Case("closes descriptors", closes_descriptors, "sound", "descriptors that are not its own"),
    Case("changes folder and environment", moves, "sound", "changed the working directory"),
    Case("starts threads", starts_a_thread, "sound", "left threads running"),
    Case("changes signal handlers", changes_handlers, "sound", "changed signal handlers"),
    Case("breaks modules", breaks_modules, "sound", "'ended': {}"),
    Case("has a generator of its own and crashes", own_generator_and_crashes, "sound", "SIGABRT"),
]
HOSTILE = [
    *(Case(f"{name} on 1", On1(act), "violated", found) for name, (act, found) in ENDS.items()),
    *(Case(f"{name} on 1", On1(act), "violated", "") for name, act in RAISES.items()),
    *BESIDE,
    *(Case(f"batch: {name} on 1", Batch(act), "violated", found)
      for name, (act, found) in ENDS.items() if name in ("sleep", "segfault", "os._exit")),
    Case("batch: a wrong length on 1", Batch(lambda data, rng: np.zeros(3)), "violated", "wrong length"),
    Case("batch: an endless generator on 1", Batch(generator), "violated", "wrong length"),
]  # fmt: skip
ALWAYS = {
    "sleep": (sleep, "time-out"),
    "segfault": (segfault, "SIGSEGV"),
    "exhaust memory": (eat_memory, "MemoryError"),
    "return too much": (large, "output limit"),
    "a batch of a wrong length": (Batch(lambda data, rng: [1.0, 2.0], is_always=True), "wrong length"),
}
