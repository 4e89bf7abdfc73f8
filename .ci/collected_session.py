"""Try faults of one module in a session of pytest that has imported and collected everything once.

Starting Python, importing and collecting cost seconds a fault, the tests that notice it some milliseconds. So one
process collects the tests and runs each once, noting which lines of the module it runs and how long it takes. Each
fault is then put into a fork of that process: the code of the functions that it changes is exchanged where they stand,
and changed constants of the module are set wherever they were imported. Of the tests that run the changed lines the
fastest come first, and the first failure ends the fork.

A fault that cannot be put in like that, or that nothing noticed, is tried once more by the caller in a process that
imports the changed module: what was kept from before the fault (a cache, a default of an argument) hides nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import os
import resource
import signal
import sys
import time
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

SECONDS = 15.0  # of processor time without a fault: the tests that are run for one fault, at most
MIN_TESTS = 3  # tests that are run whatever they take
PATIENCE = 10  # times the processor seconds of a test without a fault, and 2 seconds more
WALL = 900  # seconds: for a fault that waits for ever, on a busy machine
MEMORY = 6 << 30
PLAIN = (int, float, str, tuple, dict, frozenset, type(None))


class CannotExchange(Exception):
    """A fault is not one of functions and plain constants."""


@dataclasses.dataclass(frozen=True)
class Test:
    """A collected test, the lines of the module that it runs, and its processor seconds."""

    item: Any
    lines: frozenset[int]
    seconds: float


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a fault: noticed or not, by which tests it was asked, and whether it could be put in."""

    name: str
    status: int | None  # 0: not noticed; None: not put in
    asked: tuple[str, ...]


def covering(tests: Iterable[Test], first: int, last: int) -> list[Test]:
    """The tests that run a line of these, the fastest first, as many as `SECONDS` allow."""
    return fastest(test for test in tests if any(first <= line <= last for line in test.lines))


def fastest(tests: Iterable[Test]) -> list[Test]:
    """The fastest of them, as many as `SECONDS` allow."""
    chosen: list[Test] = []
    taken = 0.0
    for test in sorted(tests, key=lambda test: test.seconds):
        taken += test.seconds
        if taken > SECONDS and len(chosen) >= MIN_TESTS:
            break
        chosen.append(test)
    return chosen


def changed_lines(source: str, changed: str) -> tuple[int, int]:
    """The first and the last line that a fault changes, from 1, as they are without it."""
    before, after = source.splitlines(), changed.splitlines()
    first = next((k for k, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before) - 1)
    same = next((k for k, (a, b) in enumerate(zip(before[::-1], after[::-1], strict=False)) if a != b), 0)
    return first + 1, max(len(before) - same, first + 1)


def exchanged(before: types.CodeType, after: types.CodeType) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    """The functions that differ between two versions of a module, outermost ones only.

    Raises
    ------
    CannotExchange
        If functions were added or taken away.
    """
    inside = [[one for one in code.co_consts if isinstance(one, types.CodeType)] for code in (before, after)]
    if [one.co_qualname for one in inside[0]] != [one.co_qualname for one in inside[1]]:
        raise CannotExchange
    for old, new in zip(*inside, strict=True):
        if not old.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
            yield from exchanged(old, new)
        elif old != new:
            yield old, new


@dataclasses.dataclass(frozen=True)
class Imported:
    """What a fault is put into: a module, the functions of its file wherever they are kept, and all caches."""

    module: types.ModuleType
    functions: list[types.FunctionType]
    caches: list[Any]

    @classmethod
    def of(cls, module: types.ModuleType, path: Path) -> Imported:
        here = str(path.resolve())
        is_here = functools.cache(lambda file: os.path.realpath(file) == here)
        everything = gc.get_objects()
        functions = [one for one in everything if isinstance(one, types.FunctionType)]
        return cls(
            module,
            [one for one in functions if is_here(one.__code__.co_filename)],
            [one for one in everything if isinstance(one, functools._lru_cache_wrapper)],
        )


def put_in(imported: Imported, path: Path, source: str, changed: str) -> None:
    """Put a fault into a module that is imported already.

    Raises
    ------
    CannotExchange
        If nothing of it is a function or a plain constant.
    """
    new_code = compile(changed, str(path), "exec")
    pairs = {
        (old.co_qualname, old.co_firstlineno): new
        for old, new in exchanged(compile(source, str(path), "exec"), new_code)
    }
    done = 0
    for function in imported.functions:
        new = pairs.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if new is not None:
            if function.__code__.co_freevars != new.co_freevars:
                raise CannotExchange
            function.__code__ = new
            done += 1
    done += 0 if pairs else _set_constants(imported.module, new_code)
    if not done:
        raise CannotExchange
    for cache in imported.caches:
        cache.cache_clear()


def _set_constants(module: types.ModuleType, code: types.CodeType) -> int:
    fresh = dict(vars(module))
    try:
        exec(code, fresh)
    except Exception as error:  # a register that takes no name twice, or the fault itself
        raise CannotExchange from error
    done = 0
    for name, value in fresh.items():
        old = vars(module).get(name)
        if isinstance(value, PLAIN) and isinstance(old, PLAIN) and repr(value) != repr(old):
            for other in list(sys.modules.values()):
                if other is not None and vars(other).get(name) is old:
                    setattr(other, name, value)
                    done += 1
    return done


class Session:
    """A plugin of pytest that tries faults in place of the plain run.

    Parameters
    ----------
    module : str
        Its name, as it is imported.
    path : Path
        Its file.
    faults : sequence of (str, str)
        Names of faults, and the whole changed module of each.
    """

    def __init__(self, module: str, path: Path, faults: list[tuple[str, str]]) -> None:
        self.module, self.path, self.faults = module, path, faults
        self.outcomes: list[Outcome] = []
        self.tests: list[Test] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:  # of the collection
            raise session.Failed("tests must be collected")
        for item in session.items:
            self.tests.append(self._run_once(session, item))
        if session.testsfailed:
            return True
        source = self.path.read_text(encoding="utf-8")
        imported = Imported.of(sys.modules[self.module], self.path)
        gc.collect()
        gc.freeze()
        # A test that fails in a fork, or after others than before, would be taken for one that notices every fault.
        in_order = sorted(self.tests, key=lambda test: test.seconds)
        if self._try(session, imported, "no fault", source, source, in_order).status != 0:
            raise session.Failed("tests must pass in a fork without a fault, the fastest first")
        for name, changed in self.faults:
            chosen = covering(self.tests, *changed_lines(source, changed))
            if not chosen:  # a line that is run when the module is imported, or by no test
                chosen = fastest(self.tests)
            self.outcomes.append(self._try(session, imported, name, source, changed, chosen))
        return True

    def _run_once(self, session: pytest.Session, item: Any) -> Test:
        lines: set[int] = set()
        here = str(self.path.resolve())
        names: dict[str, bool] = {}

        def within(frame: types.FrameType, event: str, argument: Any) -> Any:
            lines.add(frame.f_lineno)
            return within

        def calls(frame: types.FrameType, event: str, argument: Any) -> Any:
            file = frame.f_code.co_filename
            if file not in names:
                names[file] = os.path.realpath(file) == here
            return within(frame, event, argument) if names[file] else None

        started = time.process_time()
        sys.settrace(calls)
        try:
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        finally:
            sys.settrace(None)
        return Test(item, frozenset(lines), time.process_time() - started)

    def _try(
        self, session: pytest.Session, imported: Imported, name: str, source: str, changed: str, chosen: list[Test]
    ) -> Outcome:
        child = os.fork()
        if child == 0:
            status = 99
            try:
                signal.alarm(WALL)
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                try:
                    if changed != source:
                        put_in(imported, self.path, source, changed)
                except CannotExchange:
                    os._exit(98)
                status = 0
                hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
                for test in chosen:
                    used = time.process_time()
                    limit = int(used + PATIENCE * test.seconds + 3)
                    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))  # a hard limit cannot be raised again
                    session.config.hook.pytest_runtest_protocol(item=test.item, nextitem=None)
                    if session.testsfailed:
                        status = 1
                        break
            except BaseException:  # the fault ended pytest itself, or a test by more than an exception
                status = 1
            finally:
                os._exit(status)
        _, how = os.waitpid(child, 0)
        status = os.WEXITSTATUS(how) if os.WIFEXITED(how) else -1
        return Outcome(name, None if status == 98 else status, tuple(test.item.nodeid for test in chosen))
