"""Time of instrumented code: a program's functions ask the operations, and numpy's that make arrays keep symbols."""

from __future__ import annotations

import builtins
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpaudit.subjects.tracebacks import signal_handlers
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.known_names import WATCHING
from dpaudit.symbolic.operations import INSTRUMENTED, OPERATIONS, StandIn, instrument
from dpaudit.symbolic.symbols import Symbol, SymbolArray, guarded

BEFORE_DTYPE = {"array": 1, "asarray": 1, "full": 2, "repeat": 3, "tile": 2}  # arguments that a type may stand behind
ALONE = threading.RLock()  # of whoever instruments, as codes and functions of numpy are of the process
ARRAYS = {name: getattr(np, name) for name in BEFORE_DTYPE}


def keeping_symbols(name: str) -> StandIn:
    """The function of numpy that makes arrays, which keeps symbols in them."""
    function, before_dtype = ARRAYS[name], BEFORE_DTYPE[name]

    def guard(*arguments: Any, **options: Any) -> Any:
        typed = [*arguments[before_dtype:], *(options[key] for key in ("dtype",) if key in options)]
        if typed and any(map(_has_symbols, arguments)):
            rest = {key: value for key, value in options.items() if key != "dtype"}
            return guarded(function(*arguments[:before_dtype], dtype=object, **rest)).astype(typed[0], copy=False)
        found = function(*arguments, **options)
        return guarded(found) if type(found) is np.ndarray and found.dtype == object and not typed else found

    return StandIn(function, guard)


def _has_symbols(value: Any, depth: int = 3) -> bool:
    if isinstance(value, Symbol | SymbolArray):
        return isinstance(value, Symbol) or type(value) is SymbolArray
    return depth > 0 and type(value) in (list, tuple) and any(_has_symbols(item, depth - 1) for item in value[:1000])


@contextlib.contextmanager
def kept_by_conversions(depends: Dependence) -> Iterator[None]:
    """While this goes on, the functions of a program are instrumented; then they have their own code again."""
    with ALONE:
        vars(builtins).update(OPERATIONS)  # they stay there: a generator of the program's may go on later
        before, handlers = len(INSTRUMENTED), signal_handlers()
        WATCHING.append(depends.state.look_at_process)
        try:
            for name in ARRAYS:
                setattr(np, name, keeping_symbols(name))
            for function in depends.functions:
                if function.__code__ not in handlers:  # which are known by their codes
                    instrument(function)
            yield
        finally:
            WATCHING.remove(depends.state.look_at_process)
            for name, function in ARRAYS.items():
                setattr(np, name, function)
            for function, code in INSTRUMENTED[before:]:
                function.__code__ = code
            del INSTRUMENTED[before:]
