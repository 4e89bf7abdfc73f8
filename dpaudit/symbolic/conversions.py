"""Time of instrumented code: a program's functions ask the operations."""

from __future__ import annotations

import builtins
import contextlib
import threading
from collections.abc import Iterator

from dpaudit.subjects.tracebacks import signal_handlers
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.known_names import WATCHING
from dpaudit.symbolic.operations import INSTRUMENTED, OPERATIONS, instrument

ALONE = threading.RLock()  # of whoever instruments, as codes are of the process


@contextlib.contextmanager
def kept_by_conversions(depends: Dependence) -> Iterator[None]:
    """While this goes on, the functions of a program are instrumented; then they have their own code again."""
    with ALONE:
        vars(builtins).update(OPERATIONS)  # they stay there: a generator of the program's may go on later
        before, handlers = len(INSTRUMENTED), signal_handlers()
        WATCHING.append(depends.state.look_at_process)
        try:
            for function in depends.functions:
                if function.__code__ not in handlers:  # which are known by their codes
                    instrument(function)
            yield
        finally:
            WATCHING.remove(depends.state.look_at_process)
            for function, code in INSTRUMENTED[before:]:
                function.__code__ = code
            del INSTRUMENTED[before:]
