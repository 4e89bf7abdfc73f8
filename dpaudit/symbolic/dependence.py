"""Dependence of executions on more than their input and their draws: on state that calls change, or on what is outside.

A certificate and a record are of a program whose calls are alike. Two things show that together:

* **State** (`program_state`). All that a mechanism can reach and change (variables of closures, globals that its code
  names, defaults, attributes of functions, instances and classes, what containers and arrays of these hold) is looked
  at before the first run and after each one. Where no run of all paths changes it, every later call starts as the first
  did, by induction.
* **Names** (`code_names`). The code that ran may only name what is listed here: functions of `MODULES` and `BUILTINS`,
  values that are state, and attributes of those. So it gets at no clock, file, process, address or order of hashes.

What is not known to be harmless is a possible *impurity*: then nothing is proved. It is no finding against a program.
"""

from __future__ import annotations

import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.subjects.copies import replaced
from dpaudit.subjects.tracebacks import OWN_FOLDER, is_users
from dpaudit.symbolic.code_names import (
    AS_SET,
    AS_TEXT,
    IMPURITIES,
    VIEWS,
    CodeNames,
    globals_of,
    has_one_hash,
    is_hidden,
    is_of_own,
)
from dpaudit.symbolic.generators import BENEATH, OLD_BENEATH
from dpaudit.symbolic.program_state import INPUT, RAISES, State, silent, standing_in

MORE = "it raises an exception that may hold more than its text"
FORMS = (
    "its outcomes have different classes of one name, equal numbers of different classes, or equal arrays and objects "
    "that are laid out otherwise (types, strides, bytes, one object in two places)"
)
VIEW = "an array of its outcomes may be a view of more than it shows (return a copy)"


class Dependence:
    """Record of what the runs of a mechanism on some inputs depend on; made before the first one."""

    def __init__(self, mechanism: Any, *inputs: Any) -> None:
        streams = (np.random.mtrand._rand, random._inst, BENEATH, OLD_BENEATH)
        shared = [("a generator of the process", one) for one in streams]
        self.state = State([*shared, ("the mechanism", mechanism)])
        self.add(*inputs)
        self.codes: list[CodeNames] = []
        self._known: dict[int, types.CodeType] = {}
        self._passed: dict[int, Any] = {}  # what libraries name, by its number
        self.working = set[int]()  # the codes of what works a value out once
        self._before = len(IMPURITIES)
        self.forms: dict[str, Any] = {}  # of outputs, by their tokens

    def add(self, *inputs: Any) -> None:
        """Look at more inputs on which it is run."""
        for x in inputs:
            self.state.look([(INPUT, x)], replaced(x))

    def moved(self) -> bool:
        """Tell whether a generator other than the one that runs are given has drawn, as far as it was looked for."""
        return self.state.moved()

    def functions(self) -> list[types.FunctionType] | None:
        """The functions of the program itself; None where it may call others."""
        return None if self.state.is_process else self.state.functions

    def note(self, frame: Any) -> None:
        """Note the code of a call."""
        code = frame.f_code
        if id(code) in self.working:
            self.state.note_work("call", None)
        if id(code) in self._known:
            return
        self._known[id(code)] = code
        if (code.co_filename, code.co_firstlineno) in self.state.works:
            self.working.add(id(code))
            self.state.note_work("call", None)
        if is_users(code.co_filename) and is_of_own(frame.f_globals):
            if not self._is_found(code):  # Validity: it has not begun, and what ran before does not reach beyond
                self.state.look_at_process()
            own = frame.f_locals if code.co_freevars else {}
            self.codes.append(CodeNames(code, frame.f_globals, {name: own.get(name) for name in code.co_freevars}))
        elif not code.co_filename.startswith(OWN_FOLDER):
            # Validity: what is written in Python is noted as it runs, wherever it stands. What is not may stand in a
            # library's tables or in the place of its functions, and is called or read there unseen.
            named = (part for name, place in globals_of(code, frame.f_globals) for part in standing_in(place, name))
            label = f"what {code.co_name}() of a library calls"
            self.state.look([(label, part) for part in silent(named, self._passed)])

    def note_form(self, token: str, held: tuple[Any, ...]) -> None:
        """Note of an output what its token does not show, as whether it is an int or the float that equals it."""
        IMPURITIES.extend([] if self.forms.setdefault(token, held) == held else [FORMS])

    def changed(self) -> str:
        """Clause that a run has changed what the next one starts with; empty where none has."""
        found = self.state.changed()
        return f"a run changes {found}: something is kept between runs" if found else ""

    def impurity(self) -> str:
        """The first name that is not known to be harmless, with the line, as a clause; empty where all are."""
        if self.state.impurity.endswith(RAISES):  # by its name, too
            return self.state.impurity
        for one in self.codes:
            if not self.state.impurity and not self._is_found(one.code):
                return f"it calls {one.code.co_name}(), which was not found beforehand"
        state = self.state
        found = (one.impurity(state.has_formats, state.has_texts, state.cached) for one in self.codes)
        return next(filter(None, found), state.impurity or (IMPURITIES[-1] if len(IMPURITIES) > self._before else ""))

    def _is_found(self, code: types.CodeType) -> bool:
        return (code.co_filename, code.co_firstlineno) in self.state.codes


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """`str`, `repr`, `set` or `frozenset`; notes a text with an address, and a set whose order depends on hashes."""

    def call(*arguments: Any, **options: Any) -> Any:
        found = function(*arguments, **options)
        if "0x" in found or "flags=[" in found if isinstance(found, str) else not all(map(has_one_hash, found)):
            IMPURITIES.append(AS_TEXT if isinstance(found, str) else AS_SET)
        return found

    return call


def checked_getattr(owner: Any, name: str, *default: Any) -> Any:
    """`getattr`; notes what a program may not name, and any name of a module, whose variables are looked at by name."""
    found = getattr(owner, name, *default)
    IMPURITIES.extend([AS_SET] if isinstance(owner, set) or name in VIEWS else [])
    if issubclass(type(owner), types.ModuleType) or type(name) is not str or is_hidden(name):
        IMPURITIES.append("it names an attribute" if type(name) is not str else f"it names the attribute {name}")
    return found


def checked_hasattr(owner: Any, name: str) -> bool:
    """`hasattr`; notes where what stands for a generator or a number is another answer than that."""
    found, kind = hasattr(owner, name), owner.__class__
    if type(owner) is not kind and found != any(name in vars(one) for one in kind.__mro__):
        IMPURITIES.append(f"it asks for the attribute {name}")
    return found
