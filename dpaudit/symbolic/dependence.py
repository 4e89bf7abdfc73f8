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

import collections
import dataclasses
import functools
import random
import types
from typing import Any

import numpy as np

from dpaudit.subjects.copies import replaced
from dpaudit.subjects.tracebacks import OWN_FOLDER, is_users
from dpaudit.symbolic.generators import BENEATH, OLD_BENEATH
from dpaudit.symbolic.instrumenting import KNOWN
from dpaudit.symbolic.known_names import IMPURITIES, globals_of, is_of_own
from dpaudit.symbolic.operations import makes_known
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
        self._known: dict[int, types.CodeType] = {}
        self._unfollowed = ""
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

    @property
    def functions(self) -> list[types.FunctionType]:
        """The functions of the program itself, as far as they were looked at."""
        return self.state.functions

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
            is_made = code.co_filename.startswith("<") and not any(code is one.__code__ for one in self.functions)
            if id(code) not in KNOWN and not is_made and not is_generated(frame):
                self.state.look_at_process()  # Validity: it has not begun, and what ran before does not reach beyond
                what = f"it calls {code.co_name}(), whose source is not at hand"
                self._unfollowed = (
                    self._unfollowed or f"{what} ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})"
                )
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
        doubts = IMPURITIES[self._before : self._before + 1]
        return self._unfollowed or self.state.impurity or "".join(doubts)


def is_generated(frame: types.FrameType) -> bool:
    """Tell whether a call is of what `dataclasses` or `namedtuple` made for the class of its first argument."""
    code = frame.f_code
    owner = next(iter(frame.f_locals.values()), None)
    if code.co_filename.startswith("<") and code.co_argcount + code.co_posonlyargcount:
        kinds = type.__dict__["__mro__"].__get__(owner if isinstance(owner, type) else type(owner))
        is_tuple = frame.f_globals.get("_tuple_new", tuple.__new__) == tuple.__new__
        return is_tuple and any(_equal(code, made) for kind in kinds for made in _generated(kind))
    return False


@functools.lru_cache(maxsize=1_024)
def _generated(kind: type) -> tuple[types.CodeType, ...]:
    """The codes that are generated for a class, made once more."""
    again: Any = None
    if (params := vars(kind).get("__dataclass_params__")) is not None:
        taken = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
        fields = [
            (one.name, one.type, dataclasses.field(**{key: getattr(one, key) for key in taken}))
            for one in dataclasses.fields(kind)
        ]
        if not all(makes_known(one.default_factory) for one in dataclasses.fields(kind)):
            return ()
        hook = {"__post_init__": None} if hasattr(kind, "__post_init__") else {}
        options = {name: getattr(params, name) for name in ("init", "repr", "eq", "order", "unsafe_hash", "frozen")}
        again = dataclasses.make_dataclass(kind.__name__, fields, namespace=hook, **options)
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        again = collections.namedtuple(kind.__name__, kind._fields)  # type: ignore[misc, no-redef]
    parts = (getattr(one, "__func__", one) for one in (vars(again).values() if again is not None else ()))
    return tuple(one.__code__ for one in parts if isinstance(one, types.FunctionType))


def _equal(code: types.CodeType, made: types.CodeType) -> bool:
    names = code.co_names, code.co_consts, code.co_code, code.co_varnames, code.co_freevars
    return names == (made.co_names, made.co_consts, made.co_code, made.co_varnames, made.co_freevars)
