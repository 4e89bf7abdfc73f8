"""Dependence of executions on more than their input and their draws: on state that calls change, or on what is outside.

A certificate and a record are of a program whose calls are alike. Two things show that together:

* **State** (`program_state`). All that a mechanism can reach and change (variables of closures, globals that its code
  names, defaults, attributes of functions, instances and classes, what containers and arrays of these hold) is looked
  at before the first run and after each one. Where no run of all paths changes it, every later call starts as the first
  did, by induction.
* **Operations** (`operations`). The program's own code is instrumented: each call, attribute, operator and text asks
  first. It calls functions that are listed, with plain values. So it gets at no clock, file, process, address or order
  of hashes.

What is not known to be harmless is a possible *impurity*: then nothing is proved. It is no finding against a program.
"""

from __future__ import annotations

import random
import types
from typing import Any

import numpy as np

from dpaudit.subjects.copies import replaced
from dpaudit.subjects.tracebacks import OWN_FOLDER, is_users
from dpaudit.symbolic.generated import is_generated
from dpaudit.symbolic.generators import BENEATH, OLD_BENEATH
from dpaudit.symbolic.instrumenting import KNOWN
from dpaudit.symbolic.known_names import IMPURITIES, globals_of, is_of_own
from dpaudit.symbolic.program_state import INPUT, State, silent, standing_in

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
        # Validity: a file is what a code says; a function that was looked at is the program's own whatever that is.
        is_held = any(code is one.__code__ for one in self.functions)
        if is_of_own(frame.f_globals) and (is_held or is_users(code.co_filename)):
            first = next(iter(frame.f_locals.values()), None)
            by = frame.f_back.f_code.co_filename  # libraries make functions of texts, and call them themselves
            is_made = code.co_filename.startswith("<") and not (is_held or is_users(by) or by.startswith(OWN_FOLDER))
            if id(code) not in KNOWN and not is_made and not is_generated(code, first, frame.f_globals):
                self.state.look_at_process()  # Validity: it has not begun, and what ran before does not reach beyond
                place = f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"
                said = f"it calls {code.co_name}(), whose source is not at hand ({place})"
                self._unfollowed = self._unfollowed or said
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
        doubts = IMPURITIES[self._before : self._before + 1]
        return self.state.impurity or self._unfollowed or "".join(doubts)  # what is not looked at is not followed
