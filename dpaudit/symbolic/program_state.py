"""State of a program: all that it can reach and change, as it is before a run and after it.

An object counts as seen where its class adds to its base no more than a dictionary, slots, or fields that Python shows.
All else is a possible impurity.
"""

from __future__ import annotations

import _random
import array
import builtins
import collections
import dataclasses
import enum
import functools
import gc
import operator
import pickle
import random
import re
import reprlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from decimal import Decimal
from typing import Any

import numpy as np

from dpaudit.subjects.tracebacks import is_users
from dpaudit.symbolic.generators import CHECKING
from dpaudit.symbolic.known_names import (
    A_SET,
    MISSING,
    MODULES,
    globals_of,
    has_one_order,
    is_of_own,
    is_own,
)  # fmt: skip
from dpaudit.symbolic.symbols import Symbol, SymbolArray
from dpaudit.symbolic.values import known_functions, real

MAX_HOLDERS, MAX_BYTES = 100_000, 1 << 24  # that are looked at after each run
_TUPLEGETTER: type = type(collections.namedtuple("_", "a").a)  # type: ignore[attr-defined]
DESCRIPTORS = (
    types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
ATOMS = frozenset({  # instances of these, and not of subclasses, hold nothing that changes
    type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range, Decimal, re.Pattern,
    types.CodeType, *DESCRIPTORS, _TUPLEGETTER,
})  # fmt: skip
PLAIN = frozenset({
    object, dict, list, set, frozenset, tuple, int, float, complex, str, bytes, Decimal, slice, property, BaseException,
    bytearray, array.array, collections.deque, collections.defaultdict, types.MappingProxyType, np.ndarray,
    np.void,
})  # fmt: skip
CONTAINERS: tuple[Any, ...] = (list, tuple, set, frozenset, collections.deque, bytearray, array.array)
HANDLES = (  # that hold what they were made of, and cannot be changed
    types.MethodType, staticmethod, classmethod, types.MethodWrapperType, operator.itemgetter, types.GenericAlias,
    type(Callable[[], None]),
)  # fmt: skip
# Those with attributes: Python's, numpy's and, from numpy 2 on, the compiled ones of its generators.
FUNCTIONS = (types.FunctionType, type(np.mean), *{type(np.random.default_rng)} - {types.BuiltinFunctionType})
GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
METHODS = (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)
FIELDS = types.MemberDescriptorType | types.GetSetDescriptorType  # of what a class written in C holds, and of slots
INPUT, COPIED, HELD = "what is given", "an input of which calls get copies", "an input"
RAISES = "holds what raises where it is looked at"
UNNAMED = "what no name of a program gives"  # the class of an object, a closure of a library
# Of an own class, by which its state is not as it is read; and what no program names.
HOOKS = (
    "__del__", "__getattribute__", "__dict__", "__class__", "__subclasshook__", "__array_interface__",
    "__array_struct__",
)  # fmt: skip
UNREAD = frozenset({
    "__dict__", "__weakref__", "_abc_impl", "__abstractmethods__", "__slotnames__", "__annotations__",
    "__dataclass_fields__", "_baseclass",
})  # fmt: skip
OF_DECORATORS = frozenset(str(module.__file__) for module in (dataclasses, enum, functools, reprlib))  # their methods
HANDED_DOWN = types.GetSetDescriptorType | None
MADE = 1 << 9  # flag of a class that is made while Python runs


class State:
    """All that can be reached from some roots, as it is when this is made."""

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        self.impurity = ""
        self._holders: list[tuple[str, Callable[[], list[Any]], list[Any]]] = []
        self._bytes = 0
        self._cached: list[tuple[str, dict[str, Any], str]] = []  # values that are worked out once
        self.works: set[tuple[str, int]] = set()  # file and line of the functions that work them out
        self._worked: list[Any] = []  # those that came while all was as it is between two runs
        self.functions: list[types.FunctionType] = []  # of the program itself
        self._streams: dict[int, tuple[Any, bytes]] = {}  # generators, with their states as they were found
        self.is_process = False  # whether all generators of the process were looked for
        self._known: dict[Any, Any] = {}
        self.look(roots)

    def look(self, roots: Iterable[tuple[str, Any]], replaced: Set[int] = frozenset()) -> None:
        """Look at what can be reached from some roots, from now on; of what is `replaced` in inputs, once."""
        waiting, name = list(roots), ""
        try:
            while waiting and not self.impurity:
                name, value = waiting.pop()
                name = name if name != INPUT else COPIED if id(value) in replaced else HELD
                key = name == COPIED, id(value)  # what is copied in one place may be what it is in another
                if is_atom(value) or key in self._known:
                    continue
                self._known[key] = value  # kept, so that its number stays its own
                waiting += [(INPUT if label == COPIED else label, part) for label, part in self._parts(name, value)]
                if len(self._holders) > MAX_HOLDERS or self._bytes > MAX_BYTES:
                    self.impurity = "it holds more than is looked at after each call"
        except Exception:  # whatever stands for something that is not there raises
            self.impurity = f"{name} {RAISES}"
        # A value that is worked out once is no state until it is there; from then on it is, with what it holds.
        for label, own, name in self._new_cached():
            self._known[label, id(own), name] = own
            self.look(self._hold(label, functools.partial(standing_in, own, name)))
        # Validity: a program whose operations are known reaches what was looked at. Else it may be whatever the process
        # has: its generators are found by type, as `isinstance` takes some times as long.
        if self.impurity:
            self.look_at_process()

    def look_at_process(self) -> None:
        """Look at all generators of the process from now on."""
        if not self.is_process:
            kinds = set[type]().union(*map(_subclasses, GENERATORS[1:]))
            self._note_generators(one for one in gc.get_objects() if type(one) in kinds)
            self.is_process = True

    def _note_generators(self, found: Iterable[Any]) -> None:
        for one in found:
            if id(one) not in CHECKING and id(one) not in self._streams:
                self._streams[id(one)] = one, pickle.dumps(_state_of(one))

    def _new_cached(self) -> list[tuple[str, dict[str, Any], str]]:
        """Values that are computed once and kept, and that are there without having been noted."""
        return [one for one in self._cached if one[2] in one[1] and (one[0], id(one[1]), one[2]) not in self._known]

    def changed(self) -> str:
        """The name of something that is not as it was; empty where all is."""
        for label, own, name in self._new_cached():
            if not any(own[name] is value for value in self._worked):
                return label
        self.look(())
        for name, read, before in self._holders:
            now = read()
            if len(now) != len(before) or not all(map(_is_same, now, before)):
                return name
        return ""

    def note_work(self, event: str, value: Any) -> None:
        """Look at a value that is worked out once, as that begins ("call") and ends ("return").

        Validity: it may be kept, as all state was then what it is between two runs, so that it is of no run's input.
        """
        changed = self.changed()
        self._impure_if(bool(changed), f"a value that is worked out once is of what a run has changed: {changed}")
        if event == "return" and not changed:
            self._worked.append(value)
            self.look([("what is worked out once", value)])

    def moved(self) -> bool:
        """Tell whether a generator has drawn since it was found."""
        return any(pickle.dumps(_state_of(one)) != before for one, before in self._streams.values())

    def _hold(self, name: str, read: Callable[[], list[Any]]) -> list[tuple[str, Any]]:
        """Look at a holder from now on; gives what it holds. Of some inputs calls get copies."""
        before = read()
        self._holders += [(name, read, before)] * (name != COPIED)
        return [(name, part) for part in before]

    def _parts(self, name: str, value: Any) -> list[tuple[str, Any]]:
        kind = type(value)
        if kind in FUNCTIONS:
            return self._of_function(value)
        if kind in HANDLES:
            return [(name, part) for part in gc.get_referents(value)]
        if kind is functools.cached_property:
            return self._hold(name, lambda: [part for key, part in vars(value).items() if key != "lock"])
        if issubclass(kind, np.dtype):
            return [*self._hold(name, lambda: [str(value)]), (name, value.metadata)]
        if kind is functools._lru_cache_wrapper:
            self._hold(f"the cache of {name}", lambda: [value.cache_info().misses, value.cache_info().currsize])
            return [*((name, part) for part in _kept_by(value)), *self._of_instance(value)]
        if isinstance(value, types.BuiltinFunctionType):
            own = value.__self__
            return [] if isinstance(own, types.ModuleType | None) else [(name, own)]
        if kind is types.CellType:
            return self._hold(name, lambda: gc.get_referents(value))
        if issubclass(kind, type):
            return self._of_class(value)
        if kind is SymbolArray:
            return []
        if issubclass(kind, (*GENERATORS, Symbol)):
            has_stream = issubclass(kind, np.random.Generator)
            stream = np.random.Generator.bit_generator.__get__(value) if has_stream else value
            self._note_generators([stream] * issubclass(kind, GENERATORS))  # also one that a run has made
            fields = [field for one in kind.__mro__ if is_own(one.__module__) for field in _fields(one)]
            own = getattr(value, "__dict__", {})
            found = self._hold(name, lambda: [*own, *own.values(), *(getattr(value, one, None) for one in fields)])
            return [(UNNAMED, kind), *found]
        if isinstance(value, types.ModuleType):
            self._impure_if(True, f"it holds the module {value.__name__} itself")
            return []
        if kind is np.ufunc:
            is_known = id(value) in known_functions(len(sys.modules))[1]
            self._impure_if(not is_known, "it holds a ufunc of its own")
            return []
        unseen = next((one for one in kind.__mro__ if not _is_seen(one)), None)
        self._impure_if(unseen is not None, f"it holds a {kind.__qualname__}, whose state is not seen")
        return [(UNNAMED, kind), *self._contents(name, value), *self._of_instance(value)]

    def _contents(self, name: str, value: Any) -> list[tuple[str, Any]]:
        """The items of a container, beside attributes; by Python's own methods, which a class cannot replace."""
        kind = type(value)
        if issubclass(kind, np.ndarray | np.void):
            plain = np.ndarray.view(value, np.ndarray) if issubclass(kind, np.ndarray) else value
            self._bytes += plain.nbytes * (name != COPIED)
            self._hold(name, lambda: [plain.tobytes(), str((value.shape, value.dtype, value.strides)), value.flags.num])
            self._impure_if(kind is np.void and plain.dtype.hasobject, "it holds objects in a record")
            return [(name, part) for part in (plain.dtype, *(plain.ravel().tolist() if plain.dtype.hasobject else ()))]
        if issubclass(kind, collections.defaultdict):  # called by an index, where no call is looked at
            make = vars(collections.defaultdict)["default_factory"].__get__(value)
            is_known = make is None or type(make) is types.FunctionType
            is_known |= id(make) in known_functions(len(sys.modules))[0]
            self._impure_if(not is_known, "it holds a dictionary whose default is no function of its own")
        if issubclass(kind, dict):  # an ordered one has an order of its own
            keys = collections.OrderedDict.keys if issubclass(kind, collections.OrderedDict) else dict.keys
            return self._hold(name, lambda: [*keys(value), *dict.values(value)])
        if kind is types.MappingProxyType:
            return self._hold(name, lambda: [*value.keys(), *value.values()])
        base = next((one for one in CONTAINERS if issubclass(kind, one)), None)
        found = [] if base is None else self._hold(name, lambda: list(base.__iter__(value)))
        is_ordered = base not in (set, frozenset) or has_one_order([part for _, part in found])
        # A change that is taken back may leave another order.
        is_ordered &= base is not set or name in (COPIED, UNNAMED)
        self._impure_if(not is_ordered, f"it holds {A_SET}")
        return found

    def _impure_if(self, is_so: bool, impurity: str) -> None:
        self.impurity = self.impurity or impurity * is_so

    def _of_function(self, function: Any) -> list[tuple[str, Any]]:
        is_python, name = type(function) is types.FunctionType, function.__name__
        attributes = self._hold(f"an attribute of {name}", lambda: [*vars(function), *vars(function).values()])
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True) if is_python else ()
        found = [(f"the variable {variable} of {name}", cell) for variable, cell in cells]
        if not is_python or not is_of_own(function.__globals__):
            return [(UNNAMED, cell) for _, cell in found]
        found += attributes
        self.functions.append(function)
        found += self._hold(f"a default of {name}", lambda: [function.__defaults__, function.__kwdefaults__])
        for variable, place in globals_of(function.__code__, function.__globals__):
            # No code that is asked for its names gives one of a library another value.
            places = [place, *([vars(builtins)] if variable not in place else [])] if is_of_own(place) else []
            for one in places:
                held = self._hold(f"the global {variable}", functools.partial(standing_in, one, variable))
                found += [(label, part) for label, part in held if type(part) is not types.ModuleType]
        return found

    def _of_class(self, kind: type) -> list[tuple[str, Any]]:
        if not is_own(kind.__module__):  # of which a program that is proved names what was there before it
            self._impure_if(not _is_where_it_says(kind), f"it holds a {kind.__name__} that is not of {kind.__module__}")
            return []
        name = kind.__qualname__
        read = lambda: [part for key, part in vars(kind).items() if key not in UNREAD]  # noqa: E731
        found = self._hold(f"an attribute of {name}", read)
        for hook in HOOKS:
            self._impure_if(not isinstance(vars(kind).get(hook), HANDED_DOWN), f"{name} has a {hook}")
        # Validity: these are called by operators, texts and attributes, where no call is looked at.
        for key, part in vars(kind).items():
            is_unseen = key not in UNREAD and not _is_looked_at(key, part)
            self._impure_if(is_unseen, f"{name} has a {key} that is no function of its own")
        return [*found, *((UNNAMED, base) for base in (type(kind), *kind.__bases__))]

    def _of_instance(self, value: Any) -> list[tuple[str, Any]]:
        kinds, label = type(value).__mro__, f"an attribute of {type(value).__qualname__}"
        found, own = [], getattr(value, "__dict__", None)
        if type(own) is dict:
            self._impure_if(any(hook in own for hook in HOOKS), f"it holds a {type(value).__qualname__} with a hook")
            parts = [(key, part) for one in kinds for key, part in vars(one).items()]
            cached = {key: part.func for key, part in parts if isinstance(part, functools.cached_property)}
            self._cached += [(label, own, key) for key in cached]
            codes = [one.__code__ for one in cached.values() if hasattr(one, "__code__")]
            self.works |= {(code.co_filename, code.co_firstlineno) for code in codes}
            passed = cached.keys() | UNREAD
            found += self._hold(
                label, lambda: [p for key, part in own.items() if key not in passed for p in (key, part)]
            )
        if fields := [name for one in kinds for name in _fields(one)]:
            twice = [[getattr(value, name, None) for name in fields] for _ in range(2)]
            # What is made anew for whoever reads it, as `contents` of a pointer, is no state, and hides some.
            kept = [name for name, *both in zip(fields, *twice, strict=True) if _is_same(*both)]
            self._impure_if(len(kept) < len(fields), f"it holds a {type(value).__qualname__}, whose state is not seen")
            found += self._hold(label, lambda: [getattr(value, name, None) for name in kept])
        return found


def silent(values: Iterable[Any], known: dict[int, Any]) -> Iterator[Any]:
    """Parts of some values that are written in C, make no frame where they are called or read, and may keep something.

    These are partial functions, methods that are bound to an object, and iterators. What is `known`, by its number, is
    passed over.
    """
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if is_atom(value) or isinstance(value, types.ModuleType) or kind in FUNCTIONS or id(value) in known:
            continue
        known[id(value)] = value
        bound = value.__self__ if kind in METHODS else None
        if kind is types.MethodType and type(value.__func__) is types.FunctionType:
            waiting.append(bound)
        elif bound is not None:
            is_kept = isinstance(bound, types.ModuleType | type | frozenset)
            yield from [] if is_kept or type(bound).__module__.startswith("pybind11") else [value]
        elif kind is functools.partial or isinstance(getattr(kind, "__next__", None), types.WrapperDescriptorType):
            yield value
        elif isinstance(value, dict):
            waiting.extend(dict.values(value))
        elif base := next((one for one in CONTAINERS if isinstance(value, one)), None):
            waiting.extend(base.__iter__(value))
        else:
            waiting.extend((value.fget, value.fset) if kind is property else getattr(value, "__dict__", {}).values())


def _is_seen(kind: type) -> bool:
    """Tell whether the state of instances is in their attributes, or in what a container of Python's holds."""
    top = str(kind.__module__).partition(".")[0]
    is_listed = is_own(kind.__module__) or top in MODULES or top == "builtins" or kind in PLAIN
    # What is written in C may hold more; a class of Python's adds a dictionary, slots or nothing to its base.
    adds_nothing = kind.__base__ is not None and kind.__basicsize__ == kind.__base__.__basicsize__
    return is_listed and (kind in PLAIN or "__dict__" in vars(kind) or "__slots__" in vars(kind) or adds_nothing)


def _is_looked_at(name: str, part: Any) -> bool:
    """Tell whether a special method or a property of an own class is a function of the program, or a number's."""
    if isinstance(part, property):
        return all(one is None or type(one) is types.FunctionType for one in (part.fget, part.fset, part.fdel))
    if isinstance(part, functools.cached_property):
        return type(part.func) is types.FunctionType
    inner = part.__func__ if isinstance(part, staticmethod | classmethod) else part
    if not (name.startswith("__") and name.endswith("__") and callable(inner)):
        return True
    if type(inner) is types.FunctionType:
        file, is_of_tuple = inner.__code__.co_filename, inner.__code__.co_qualname.startswith("namedtuple.")
        is_made = name in (inner.__name__, "__replace__") and (file in OF_DECORATORS or is_of_tuple)
        return is_users(file) or file.startswith("<") or is_made
    return name in ("__new__", "__new_member__") or getattr(inner, "__objclass__", None) in ATOMS - {type(None)}


def _is_where_it_says(kind: type) -> bool:
    """Tell whether a class is found in the module that it names, or is one of those that no statement makes."""
    found: Any = sys.modules.get(str(kind.__module__))
    for name in kind.__qualname__.split("."):
        found = real(getattr(found, name, None))
    return found is kind or not kind.__flags__ & MADE


def _fields(kind: type) -> tuple[str, ...]:
    """The names of what instances hold beside their dictionary: slots, and members of what is written in C."""
    if issubclass(kind, np.ndarray | np.generic):
        return ()
    return tuple(name for name, part in vars(kind).items() if isinstance(part, FIELDS) and not name.startswith("__"))


def is_atom(value: Any) -> bool:
    """Tell whether a value is, by its class, nothing that can be changed."""
    return type(value) in ATOMS or (
        isinstance(value, np.generic) and not isinstance(value, np.void | Symbol) and type(value).__module__ == "numpy"
    )


def standing_in(place: Mapping[str, Any], name: str) -> list[Any]:
    return [place.get(name, MISSING)]


def _state_of(generator: Any) -> Any:
    """The state of a generator, by the methods of its base: those of a face would ask the run for it."""
    if issubclass(type(generator), random.Random):
        return _random.Random.getstate(generator)
    if issubclass(type(generator), np.random.RandomState):
        return np.random.RandomState.get_state(generator, legacy=False)
    # The last class that has a state says it: an own class may replace that. The base of all of numpy's has none.
    kinds = (one for one in type(generator).__mro__[::-1] if "state" in vars(one) and one is not np.random.BitGenerator)
    state: Any = next((vars(one)["state"].__get__(generator) for one in kinds), None)
    return state, getattr(generator.seed_seq, "n_children_spawned", 0)


def _kept_by(cache: Any) -> list[Any]:
    """The function behind a cache, arguments and results; a table of these has links, which hold nothing else."""
    found = [part for part in gc.get_referents(cache) if not isinstance(part, type)]
    links = "_lru_list_elem"
    return [one for one in found if type(one) is not dict or all(type(item).__name__ != links for item in one.values())]


def _subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(_subclasses, type.__subclasses__(kind)))


def _is_same(now: Any, before: Any) -> bool:
    if now is before:
        return True
    is_known = type(now) is type(before) and is_atom(now)
    return is_known and bool(now == before or (now != now and before != before))
