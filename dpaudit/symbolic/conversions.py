"""Time of instrumented code: a program's functions ask the operations, and in libraries arrays keep symbols."""

from __future__ import annotations

import builtins
import contextlib
import threading
from collections.abc import Iterator

import numpy as np

from dpaudit.subjects.tracebacks import signal_handlers
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.known_names import WATCHING
from dpaudit.symbolic.operations import INSTRUMENTED, OPERATIONS, instrument
from dpaudit.symbolic.values import BEFORE_DTYPE, KEEPING

ALONE = threading.RLock()  # of whoever instruments, as codes and functions of numpy are of the process


@contextlib.contextmanager
def kept_by_conversions(depends: Dependence) -> Iterator[None]:
    """While this goes on, the functions of a program are instrumented; then they have their own code again."""
    with ALONE:
        vars(builtins).update(OPERATIONS)  # they stay there: a generator of the program's may go on later
        before, handlers = len(INSTRUMENTED), signal_handlers()
        WATCHING.append(depends.state.look_at_process)
        arrays = {name: getattr(np, name) for name in BEFORE_DTYPE}
        try:
            for name in arrays:  # for libraries, as pandas
                setattr(np, name, KEEPING.get(id(arrays[name]), arrays[name]))
            for function in depends.functions:
                if function.__code__ not in handlers:  # which are known by their codes
                    instrument(function)
            yield
        finally:
            for name, function in arrays.items():
                setattr(np, name, function)
            WATCHING.remove(depends.state.look_at_process)
            for function, code in INSTRUMENTED[before:]:
                function.__code__ = code
            del INSTRUMENTED[before:]
