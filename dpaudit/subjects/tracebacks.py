"""Origin of the exceptions of a mechanism: to be said of an outcome, and never compared.

An exception is kept as its type and its text. Of the first one of a kind in a chunk of calls, and of a few kinds, the
place in the user's code and the traceback are kept too, as text: so they pass from one process to another, and take no
more memory where many calls raise.
"""

from __future__ import annotations

import dataclasses
import dis
import os
import signal
import sysconfig
import traceback
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Any

from dpaudit.errors import DpauditError
from dpaudit.subjects.call_outcomes import Failed

OWN_FOLDER = str(Path(__file__).resolve().parents[1]) + os.sep
OPERATIONS = os.path.join(OWN_FOLDER, "symbolic", "operations.py")  # does for instrumented code what that asks for
NOT_USERS = ("<frozen", OWN_FOLDER, *(sysconfig.get_path(kind) + os.sep for kind in ("stdlib", "purelib", "platlib")))
RAISE = dis.opmap["RAISE_VARARGS"]
MAX_FRAMES = 30  # of a traceback that is kept, the innermost ones
MAX_CHARACTERS = 20_000  # characters of it
MAX_KINDS = 5  # exceptions of a chunk of calls that are located: a mechanism may make a new kind in every call


def signal_handlers() -> frozenset[Any]:
    """The code of the functions that handle signals now.

    To be asked before calls: a mechanism that has a time limit of its own installs its handler in the call.
    """
    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    return frozenset(code for code in (getattr(handler, "__code__", None) for handler in handlers) if code is not None)


def is_outcome(error: BaseException, handlers: frozenset[Any]) -> bool:
    """Tell whether an exception that a call raised is the outcome of the call.

    An interrupt from the keyboard is none, nor what one of these signal handlers raised while the call was made (a time
    limit by `signal.alarm` around the audit). Anything else is, also what is no `Exception`: `SystemExit`,
    `asyncio.CancelledError`.
    """
    if isinstance(error, KeyboardInterrupt):
        return False
    return not handlers or not any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def is_of_output(error: BaseException) -> bool:
    """Tell whether an error of looking at an output is the mechanism's: any that no person and no handler raised.

    A `KeyboardInterrupt` is, where a `raise` has made it: one of a person comes between any two steps. What is no
    `Exception` and is raised here, as where the time of a run ends, is not.
    """
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    is_own = place is not None and place.tb_frame.f_code.co_filename.startswith(OWN_FOLDER)
    is_stated = place is not None and place.tb_lasti >= 0 and (isinstance(error, Exception) or not is_own)
    if isinstance(error, KeyboardInterrupt) and place is not None:
        is_stated = is_stated and place.tb_frame.f_code.co_code[place.tb_lasti] == RAISE
    return is_stated and is_outcome(Exception().with_traceback(error.__traceback__), signal_handlers())


def located_once(failed: Failed, error: BaseException, kinds: set[str]) -> Failed:
    """Locate as `located` the first exception of a kind, of a few kinds; `kinds` has those that were located."""
    if not is_new_kind(failed.kind, kinds):
        return failed
    kinds.add(failed.kind)
    return located(failed, error)


def is_new_kind(kind: str, kinds: Collection[str]) -> bool:
    """Tell whether an exception of this kind is to be located, after those of `kinds`."""
    return kind not in kinds and len(kinds) < MAX_KINDS


def located(failed: Failed, error: BaseException) -> Failed:
    """The outcome of a call that raised `error`, with the place and the traceback of it.

    The place is the innermost frame of the user's code, or else of a library that it called.
    """
    try:
        begin = _behind_own(error.__traceback__)
        kinds = traceback.TracebackException(type(error), error, begin, limit=-MAX_FRAMES, compact=True)
        _cut_own(kinds, error)
        return dataclasses.replace(failed, place=_place(begin), traceback="".join(kinds.format())[-MAX_CHARACTERS:])
    except KeyboardInterrupt:  # of a person
        raise
    except BaseException:  # an exception may misbehave when it is printed
        return failed


def is_users(file: str) -> bool:
    """Tell whether a file is the user's own: of no library, nor of dpaudit, and no source of compiled code."""
    return not file.startswith(NOT_USERS) and not file.endswith(".pyx")  # compiled code names its source from elsewhere


def _cut_own(kinds: traceback.TracebackException | None, error: BaseException | None) -> None:
    """Cut the exceptions that led to this one at dpaudit's own: calls are made while it handles those of others."""
    if kinds is not None and error is not None:
        for name in ("__cause__", "__context__"):
            if isinstance(getattr(error, name), DpauditError):
                setattr(kinds, name, None)
            _cut_own(getattr(kinds, name), getattr(error, name))


def _behind_own(begin: TracebackType | None) -> TracebackType | None:
    """A traceback from where dpaudit has called the mechanism; the whole of it where all is dpaudit's."""
    here = begin
    while here is not None and here.tb_frame.f_code.co_filename.startswith(OWN_FOLDER):
        here = here.tb_next
    return here if here is not None else begin


def _place(begin: TracebackType | None) -> str:
    places = [(frame.f_code, line) for frame, line in traceback.walk_tb(begin)]
    others = [place for place in places if not place[0].co_filename.startswith((OWN_FOLDER, "<frozen"))]
    chosen = [place for place in others if is_users(place[0].co_filename)] or others
    if not chosen:
        return ""
    code, line = chosen[-1]
    return f"{code.co_name} ({os.path.basename(code.co_filename)}, line {line})"
