"""Names: which modules are the program's own, which attributes no proved program names; and doubts about runs."""

from __future__ import annotations

import os
import re
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from dpaudit.subjects.tracebacks import is_users
from dpaudit.symbolic.choices import place_of_call
from dpaudit.symbolic.instrumenting import nested, original
from dpaudit.symbolic.watching import unheard

# Packages whose modules a program may name.
_MODULES = (
    "math cmath numpy scipy itertools functools operator collections fractions decimal statistics bisect heapq "
    "random secrets dataclasses typing numbers copy enum abc contextlib string types dpaudit json _json __future__"
)
MODULES = frozenset(_MODULES.split())
_DUNDERS = (
    "init post_init new name class len getitem contains iter next enter exit call round floor ceil trunc abs int "
    "float neg add sub mul lt le gt ge eq ne"
)
DUNDERS = frozenset(f"__{name}__" for name in _DUNDERS.split())
AS_TEXT = "it makes a text, which may have an address in memory"
AS_OURS = "an exception names what stands for a function"
A_SET = "a set, whose order may depend on the process"
AS_SET = f"it makes {A_SET}"
SHOWN = frozenset({AS_TEXT, AS_SET})  # by an order or a text; nothing is reached by it
MISSING = object()
_OURS = "NumpyRng OldNumpyRng PythonRng UniformNumber WholeNumber Noisy SymbolArray"
# Or pickle's, which looks a function up where libraries find another one meanwhile.
NAMES_OF_OURS = re.compile(rf"dpaudit\.symbolic|same object as |(?:'|\bnot )(?:{_OURS.replace(' ', '|')})\b")
IMPURITIES: list[str] = []  # doubts of the runs of this process, in their order: of values, exceptions and outputs
WATCHING: list[Callable[[], None]] = []  # what is told of a doubt before that is done which it is about


def doubt(reason: str) -> None:
    """Note what is not known to depend on an input and on draws alone, with the line of the program."""
    if reason not in SHOWN:
        with unheard():
            for tell in WATCHING:
                tell()
    file, line = place_of_call()
    IMPURITIES.append(f"{reason} ({os.path.basename(file)}:{line})" if file else reason)


def globals_of(code: types.CodeType, own: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The globals that a code names, with the variables of the module that they are in.

    Any name of a code may be one of a module that it names.
    """
    names = {name for one in nested(original(code)) for name in one.co_names}
    waiting, known = [own], list[dict[str, Any]]()
    while waiting:
        place = waiting.pop()
        if any(place is one for one in known):
            continue
        known.append(place)
        for name in names & place.keys() if place is not own else names:
            yield name, place
            value = place.get(name, MISSING)
            if isinstance(value, types.ModuleType) and (is_own(value.__name__) or is_listed(value.__name__)):
                waiting.append(vars(value))


def is_own(module: Any) -> bool:
    """Tell whether a module is the program's own: of no library, nor of Python, nor one of `MODULES`."""
    module = str(module)  # of some classes in C it is a descriptor
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    if top in sys.stdlib_module_names:  # a file of the user's may stand where one of Python's would be
        return bool(file) and is_users(file)
    return top not in MODULES and is_users(file)


def is_of_own(place: Mapping[str, Any]) -> bool:
    """Tell whether variables are those of an own module, or of none: any may have a library's name."""
    name = str(place.get("__name__", ""))
    return is_own(name) or vars(sys.modules.get(name, types)) is not place


def is_listed(module: str) -> bool:
    return module.partition(".")[0] in MODULES


def is_hidden(name: str) -> bool:
    """Tell whether no proved program names an attribute."""
    is_own = name.startswith("_dpaudit_")  # of what stands for a generator
    return is_own or (name.startswith("__") and name.endswith("__") and name not in DUNDERS)


def has_one_order(value: Collection[Any]) -> bool:
    """Tell whether the order of a set is the same in each process."""
    return len(value) < 2 or all(map(has_one_hash, value))


def has_one_hash(item: Any) -> bool:
    """Tell whether a value has the same hash in each process: a number other than NaN, or a tuple of such."""
    if type(item) is tuple:
        return all(map(has_one_hash, item))
    # Validity: a program's own comparison would be made once more than in a run that nobody looks at.
    kind = type(item)
    is_compared = all(type(one) is types.WrapperDescriptorType for one in (kind.__eq__, kind.__hash__))
    return is_compared and isinstance(item, int | float | np.number | np.bool_) and bool(item == item)


def names_ours(text: str) -> bool:
    """Tell whether the text of an exception names what stands for a function of the program."""
    return NAMES_OF_OURS.search(text) is not None


def is_of_process(text: str) -> bool:
    """Tell whether the text of an exception may be another one in a run that nobody looks at."""
    return "0x" in text or names_ours(text)
