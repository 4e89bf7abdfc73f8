"""Dependence of executions on more than their input and their draws: on state that calls change, or on what is outside.

A certificate and a record are of a program whose calls are alike. Two things show that together:

* **State** (`State`). All that a mechanism can reach and change (variables of closures, globals that its code names,
  defaults, attributes of functions, instances and classes, what containers and arrays of these hold) is looked at
  before the first run and after each one. Where no run of all paths changes it, every later call starts as the first
  did, by induction.
* **Names** (`Code`). The code that ran may only name what is listed here: functions of `MODULES` and `BUILTINS`,
  values that are state, and attributes of those. So it gets at no clock, file, process, address or order of hashes.

Whatever is not known to be harmless is named as a doubt: then nothing is proved. It is no finding against a program.
"""

from __future__ import annotations

import _random
import array
import builtins
import collections
import dataclasses
import dis
import functools
import gc
import itertools
import json.scanner
import operator
import pickle
import random
import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal, getcontext
from typing import Any

import numpy as np
from scipy import special

from dpaudit.subjects.tracebacks import OWN_FOLDER, is_users
from dpaudit.symbolic.faces import BENEATH, OLD_BENEATH, REFERENCE
from dpaudit.symbolic.symbols import Symbol, SymbolArray

MAX_HOLDERS, MAX_BYTES = 100_000, 1 << 24  # that are looked at after each run
# Packages whose functions depend on their arguments, on generators that are watched, and on nothing else.
_MODULES = (
    "math cmath numpy scipy itertools functools operator collections fractions decimal statistics bisect heapq "
    "random secrets dataclasses typing numbers copy enum abc contextlib string types dpaudit json _json "
    "__future__"
)
MODULES = frozenset(_MODULES.split())
# What is none of that: files, clocks, memory as it was found, settings of the process, attributes by their names.
HARMFUL = {
    "numpy": "empty empty_like memmap load loadtxt genfromtxt fromfile fromregex save savez savez_compressed "
    "savetxt datetime64 seterr seterrcall geterr geterrcall setbufsize getbufsize set_printoptions get_printoptions "
    "shares_memory may_share_memory show_config show_runtime info test get_include "
    "array_repr array_str array2string mod as_strided recarray chararray masked_all masked_all_like DataSource",
    "operator": "attrgetter methodcaller mod imod",
    "collections": "UserString",
    "string": "Template Formatter",
    "decimal": "getcontext setcontext",
    "types": "CodeType FunctionType ModuleType FrameType",
    "functools": "singledispatch singledispatchmethod",
    "json": "load dump",
}
FILES = ("scipy.io", "scipy.datasets", "numpy.ctypeslib", "numpy.f2py", "numpy.testing", "numpy.lib.format")
_BUILTINS = (
    "abs all any bin bool bytearray bytes callable classmethod complex dict divmod enumerate filter float "
    "hex int isinstance issubclass iter len list map max min next oct ord pow print property range reversed round "
    "slice sorted staticmethod sum super tuple zip Ellipsis NotImplemented"
)
BUILTINS = frozenset(_BUILTINS.split())
_TUPLEGETTER: type = type(collections.namedtuple("_", "a").a)  # type: ignore[attr-defined]
OF_PROCESS = (RecursionError, MemoryError, OSError, SystemError, Warning)  # exceptions
_ATTRIBUTES = (
    "gi_frame gi_code cr_frame ag_frame f_back f_globals f_locals f_builtins tb_frame tb_next ctypes format "
    "format_map func_globals register cache_info flags union symmetric_difference"
)
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
_DUNDERS = (
    "__init__ __post_init__ __name__ __class__ __len__ __getitem__ __contains__ __iter__ __next__ __call__ __round__ "
    "__floor__ __ceil__ __trunc__ __abs__ __int__ __float__ __neg__ __add__ __sub__ __mul__ __lt__ __le__ __gt__ __ge__"
)
DUNDERS = frozenset(_DUNDERS.split())
ATOMS = frozenset({  # instances of these, and not of subclasses, hold nothing that changes
    type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range, Decimal, re.Pattern,
    types.CodeType, types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType, types.ClassMethodDescriptorType, _TUPLEGETTER,
})  # fmt: skip
PLAIN = frozenset({
    object, dict, list, set, frozenset, tuple, int, float, complex, str, bytes, Decimal, slice, property, BaseException,
    bytearray, array.array, collections.deque, collections.defaultdict, types.MappingProxyType, np.ndarray,
    np.void, json.scanner.make_scanner,
})  # fmt: skip
CONTAINERS: tuple[Any, ...] = (list, tuple, set, frozenset, collections.deque, bytearray, array.array)
HANDLES = (  # that hold what they were made of, and cannot be changed
    types.MethodType, staticmethod, classmethod, types.MethodWrapperType, operator.itemgetter, types.GenericAlias
)  # fmt: skip
# Those with attributes: Python's, numpy's and, from numpy 2 on, the compiled ones of its generators.
FUNCTIONS = (types.FunctionType, type(np.mean), *{type(np.random.default_rng)} - {types.BuiltinFunctionType})
GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
FIELDS = types.MemberDescriptorType | types.GetSetDescriptorType  # of what a class written in C holds, and of slots
AS_TEXT = "it makes a text, which may have an address in memory"
A_SET = "a set, whose order may depend on the process"
AS_SET = f"it makes {A_SET}"
MEMORY = "it may read memory as it was found"
SHOWN = frozenset({AS_TEXT, AS_SET, MEMORY})  # by an order, a text or a number; nothing is reached by it
MORE = "it raises an exception that may hold more than its text"
FORMS = "its outcomes have different classes of one name, equal numbers of different classes, or NaN of different bits"
INPUT = "an input"
_MISSING = object()
# Of an own class, by which its state is not as it is read; and what no program names.
HOOKS = ("__del__", "__getattribute__", "__dict__", "__class__")
UNREAD = frozenset({"__dict__", "__weakref__", "_abc_impl", "__abstractmethods__", "__slotnames__"})
OF_HEAP, FIXED = 1 << 9, 1 << 8  # flags of classes: made at run time; and of those, that cannot be changed


class State:
    """All that can be reached from some roots, as it is when this is made."""

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        self.doubt, self.has_formats = "", False
        self._holders: list[tuple[str, Callable[[], list[Any]], list[Any]]] = []
        self._bytes = 0
        self.codes: set[tuple[str, int]] = set()  # file and line of all functions
        self._cached: list[tuple[str, dict[str, Any], str]] = []  # values that are worked out once
        self.works: set[tuple[str, int]] = set()  # file and line of the functions that work them out
        self._worked: list[Any] = []  # those that came while all was as it is between two runs
        self.functions: list[types.FunctionType] = []  # of the program itself
        self._streams: dict[int, tuple[Any, bytes]] = {}  # generators, with their states as they were found
        self._checked = 0  # functions whose names were looked at
        self.is_process = False  # whether all generators of the process were looked for
        self._known: dict[Any, Any] = {}
        self._before = self._in_run = _settings()
        self.look(roots)

    def look(self, roots: Iterable[tuple[str, Any]]) -> None:
        """Look at what can be reached from some roots, from now on."""
        waiting = list(roots)
        while waiting and not self.doubt:
            name, value = waiting.pop()
            if _is_atom(value) or id(value) in self._known:
                self.has_formats |= isinstance(value, str) and "%" in value
                continue
            self._known[id(value)] = value  # kept, so that its number stays its own
            waiting += self._parts(name, value)
            if len(self._holders) > MAX_HOLDERS or self._bytes > MAX_BYTES:
                self.doubt = "it holds more than is looked at after each call"
        # A value that is worked out once is no state until it is there; from then on it is, with what it holds.
        for label, own, name in self._unseen():
            self._known[label, id(own), name] = own
            self.look(self._hold(label, functools.partial(_global, own, name)))
        # Validity: where all names are known, what was looked at is all that can be reached (`Code`). Else whatever the
        # process has may be: its generators are found by type, as `isinstance` takes some times as long.
        if self._reaches_more():
            self.look_at_process()

    def look_at_process(self) -> None:
        """Look at all generators of the process from now on."""
        if not self.is_process:
            self.is_process = True
            kinds = set[type]().union(*map(_subclasses, (np.random.BitGenerator, np.random.RandomState, random.Random)))
            self._note_generators(one for one in gc.get_objects() if type(one) in kinds)

    def _reaches_more(self) -> bool:
        """Tell whether more may be reached than was looked at."""
        fresh, self._checked = self.functions[self._checked :], len(self.functions)
        return bool(self.doubt) or any(
            Code(code, one.__globals__, _cells(one)).reaches_more() for one in fresh for code in _nested(one.__code__)
        )

    def _note_generators(self, found: Iterable[Any]) -> None:
        for one in found:
            if one is not REFERENCE.bit_generator and id(one) not in self._streams:
                self._streams[id(one)] = one, pickle.dumps(_state_of(one))

    def _unseen(self) -> list[tuple[str, dict[str, Any], str]]:
        """The values that are worked out once, are there, and were not looked at."""
        return [one for one in self._cached if one[2] in one[1] and (one[0], id(one[1]), one[2]) not in self._known]

    def begin(self) -> None:
        """Note that a run begins: it may have settings of its own."""
        self._in_run = _settings()

    def changed(self, settings: list[Any] | None = None) -> str:
        """The name of something that is not as it was; empty where all is."""
        for label, own, name in self._unseen():
            if not any(own[name] is value for value in self._worked):
                return label
        self.look(())
        if _settings() != (settings or self._before):
            return "a setting of the process"
        for name, read, before in self._holders:
            now = read()
            if len(now) != len(before) or not all(map(_is_same, now, before)):
                return name
        return ""

    def note_work(self, event: str, value: Any) -> None:
        """Look at a value that is worked out once, as that begins ("call") and ends ("return").

        Validity: it may be kept, as all state was then what it is between two runs, so that it is of no run's input.
        """
        changed = self.changed(self._in_run)
        self._doubt_if(bool(changed), f"a value that is worked out once is of what a run has changed: {changed}")
        if event == "return" and not changed:
            self._worked.append(value)
            self.look([("what is worked out once", value)])

    def moved(self) -> bool:
        """Tell whether a generator has drawn since it was found."""
        return any(pickle.dumps(_state_of(one)) != before for one, before in self._streams.values())

    @property
    def cached(self) -> set[str]:
        """The names of values that are worked out once."""
        return {name for _, _, name in self._cached}

    def _hold(self, name: str, read: Callable[[], list[Any]]) -> list[tuple[str, Any]]:
        """Look at a holder from now on; gives what it holds. Of inputs calls get copies (`dpaudit.subjects.copies`)."""
        before = read()
        self._holders += [(name, read, before)] * (name != INPUT)
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
            if not isinstance(own, types.ModuleType) and own is not None:
                return [(name, own)]
            self._doubt_if(not _is_harmless(value), f"it holds {value.__name__}()")
            return []
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
            fields = [field for one in kind.__mro__ if _is_own(one.__module__) for field in _fields(one)]
            own = getattr(value, "__dict__", {})
            found = self._hold(name, lambda: [*own, *own.values(), *(getattr(value, one, None) for one in fields)])
            return [(name, kind), *found]
        if isinstance(value, types.ModuleType):
            self._doubt_if(True, f"it holds the module {value.__name__} itself")
            return []
        if kind is np.ufunc:
            self._doubt_if("(vectorized)" in value.__name__, f"it holds a ufunc of {value.__name__}")
            return []
        unseen = next((one for one in kind.__mro__ if not _is_seen(one)), None)
        self._doubt_if(unseen is not None, f"it holds a {kind.__qualname__}, whose state is not seen")
        self._doubt_if(not _is_harmless(value) and not _is_own(kind.__module__), f"it holds a {kind.__qualname__}")
        return [(name, kind), *self._contents(name, value), *self._of_instance(value)]

    def _contents(self, name: str, value: Any) -> list[tuple[str, Any]]:
        """The items of a container, beside attributes; by Python's own methods, which a class cannot replace."""
        kind = type(value)
        if issubclass(kind, np.ndarray | np.void):
            plain = np.ndarray.view(value, np.ndarray) if issubclass(kind, np.ndarray) else value
            self._bytes += plain.nbytes * (name != INPUT)
            self._hold(name, lambda: [plain.tobytes(), str((value.shape, value.dtype, value.strides)), value.flags.num])
            self._doubt_if(kind is np.void and plain.dtype.hasobject, "it holds objects in a record")
            return [(name, part) for part in (plain.dtype, *(plain.ravel().tolist() if plain.dtype.hasobject else ()))]
        if issubclass(kind, dict):  # an ordered one has an order of its own
            keys = collections.OrderedDict.keys if issubclass(kind, collections.OrderedDict) else dict.keys
            return self._hold(name, lambda: [*keys(value), *dict.values(value)])
        if kind is types.MappingProxyType:
            return self._hold(name, lambda: [*value.keys(), *value.values()])
        base = next((one for one in CONTAINERS if issubclass(kind, one)), None)
        found = [] if base is None else self._hold(name, lambda: list(base.__iter__(value)))
        is_ordered = base not in (set, frozenset) or _has_one_order([part for _, part in found])
        self._doubt_if(not is_ordered, f"it holds {A_SET}")
        return found

    def _doubt_if(self, is_so: bool, doubt: str) -> None:
        self.doubt = self.doubt or doubt * is_so

    def _of_function(self, function: Any) -> list[tuple[str, Any]]:
        is_python, name = type(function) is types.FunctionType, function.__name__
        module = str(function.__globals__.get("__name__", "")) if is_python else function.__module__
        attributes = self._hold(f"an attribute of {name}", lambda: [*vars(function), *vars(function).values()])
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True) if is_python else ()
        found = [(f"the variable {variable} of {name}", cell) for variable, cell in cells]
        if not is_python or not _is_of_own(function.__globals__):
            self._doubt_if(not _is_listed(module), f"it holds {module}.{name}()")
            return found + [(name, part) for key, part in vars(function).items() if not _is_hidden(key)]
        found += attributes
        self.functions.append(function)
        self.codes.update((code.co_filename, code.co_firstlineno) for code in _nested(function.__code__))
        found += self._hold(f"a default of {name}", lambda: [function.__defaults__, function.__kwdefaults__])
        for variable, place in _globals_of(function.__code__, function.__globals__):
            read = functools.partial(_global, place, variable)
            # No code that is asked for its names gives one of a library another value.
            if _is_of_own(place):
                self._hold(f"the global {variable}", read)
            found += [(f"the global {variable}", part) for part in read() if not isinstance(part, types.ModuleType)]
        return found

    def _of_class(self, kind: type) -> list[tuple[str, Any]]:
        name, is_own = kind.__qualname__, _is_own(kind.__module__)

        def read() -> list[Any]:
            return [part for key, part in vars(kind).items() if key not in UNREAD]

        if not is_own and (not kind.__flags__ & OF_HEAP or kind.__flags__ & FIXED):
            return []
        found = self._hold(f"an attribute of {name}", read)
        for hook in HOOKS:
            is_plain = isinstance(vars(kind).get(hook), types.GetSetDescriptorType | None)
            self._doubt_if(is_own and not is_plain, f"{name} has a {hook}")
        matched = vars(kind).get("__match_args__", ())
        is_shown = not isinstance(matched, tuple) or not any(type(one) is str and _is_hidden(one) for one in matched)
        self._doubt_if(is_own and not is_shown, f"{name} matches what is not to be named")
        if not is_own:
            # What functions of its own module hold is the library's; what stands on them may be a program's.
            place = vars(sys.modules.get(kind.__module__, types))
            plain = [part for _, part in found if type(part) is types.FunctionType and part.__globals__ is place]
            passed = [*plain, vars(kind).get("__doc__")]  # a documentation with a percent sign is no format
            found = [(label, part) for label, part in found if not any(part is one for one in passed)]
            found += [(name, part) for one in plain for key, part in vars(one).items() if not _is_hidden(key)]
        return [*found, *((name, base) for base in (type(kind), *kind.__bases__))]

    def _of_instance(self, value: Any) -> list[tuple[str, Any]]:
        kinds, label = type(value).__mro__, f"an attribute of {type(value).__qualname__}"
        found, own = [], getattr(value, "__dict__", None)
        if type(own) is dict:
            cached = {
                k for one in kinds for k, part in vars(one).items() if isinstance(part, functools.cached_property)
            }
            self._cached += [(label, own, key) for key in cached]
            self.works |= {
                (code.co_filename, code.co_firstlineno)
                for one in kinds
                for part in vars(one).values()
                if isinstance(part, functools.cached_property)
                for code in (getattr(part.func, "__code__", None),)
                if code is not None
            }
            found += self._hold(
                label, lambda: [p for key, part in own.items() if key not in cached for p in (key, part)]
            )
        if fields := [name for one in kinds for name in _fields(one)]:
            twice = [[getattr(value, name, None) for name in fields] for _ in range(2)]
            # What is made anew for whoever reads it, as `contents` of a pointer, is no state, and hides some.
            kept = [name for name, *both in zip(fields, *twice, strict=True) if _is_same(*both)]
            self._doubt_if(len(kept) < len(fields), f"it holds a {type(value).__qualname__}, whose state is not seen")
            found += self._hold(label, lambda: [getattr(value, name, None) for name in kept])
        return found


def _settings() -> list[Any]:
    """Settings of the process that functions of `MODULES` change, other than flags, which nothing reads."""
    own, streams = getcontext(), (sys.stdout, sys.stderr)
    traps = [signal for signal, is_trap in own.traps.items() if is_trap]
    numbers = [own.prec, own.rounding, own.Emin, own.Emax, own.capitals, own.clamp]
    return [*numbers, traps, np.geterr(), np.geterrcall(), np.get_printoptions(), special.geterr(), *map(id, streams)]


def _is_own(module: Any) -> bool:
    """Tell whether a module is the program's own: of no library, nor of Python, nor one of `MODULES`."""
    module = str(module)  # of some classes in C it is a descriptor
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    if top in sys.stdlib_module_names:  # a file of the user's may stand where one of Python's would be
        return bool(file) and is_users(file)
    return top not in MODULES and is_users(file)


def _is_of_own(place: Mapping[str, Any]) -> bool:
    """Tell whether variables are those of an own module, or of none: any may have a library's name."""
    name = str(place.get("__name__", ""))
    return _is_own(name) or vars(sys.modules.get(name, types)) is not place


def _is_seen(kind: type) -> bool:
    """Tell whether the state of instances is in their attributes, or in what a container of Python's holds."""
    top = str(kind.__module__).partition(".")[0]
    is_listed = _is_own(kind.__module__) or top in MODULES or top == "builtins" or kind in PLAIN
    # What is written in C may hold more; a class of Python's adds a dictionary, slots or nothing to its base.
    adds_nothing = kind.__base__ is not None and kind.__basicsize__ == kind.__base__.__basicsize__
    return is_listed and (kind in PLAIN or "__dict__" in vars(kind) or "__slots__" in vars(kind) or adds_nothing)


def _fields(kind: type) -> tuple[str, ...]:
    """The names of what instances hold beside their dictionary: slots, and members of what is written in C."""
    if issubclass(kind, np.ndarray | np.generic):
        return ()
    return tuple(name for name, part in vars(kind).items() if isinstance(part, FIELDS) and not name.startswith("__"))


def _is_atom(value: Any) -> bool:
    """Tell whether a value is, by its class, nothing that can be changed."""
    return type(value) in ATOMS or (
        isinstance(value, np.generic) and not isinstance(value, np.void | Symbol) and type(value).__module__ == "numpy"
    )


def _global(place: Mapping[str, Any], name: str) -> list[Any]:
    return [place.get(name, _MISSING)]


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


def _cells(function: types.FunctionType) -> dict[str, Any]:
    """The variables that a function has from around it."""
    found = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: part for name, cell in found for part in gc.get_referents(cell)}


def _kept_by(cache: Any) -> list[Any]:
    """The function behind a cache, arguments and results; a table of these has links, which hold nothing else."""
    found = [part for part in gc.get_referents(cache) if not isinstance(part, type)]
    links = "_lru_list_elem"
    return [one for one in found if type(one) is not dict or all(type(item).__name__ != links for item in one.values())]


def _unheard(values: Iterable[Any]) -> Iterator[Any]:
    """What values and their contents hold that makes no frame where it is called or read: callables and iterators in C.

    Functions of modules and of numpy keep nothing, nor do classes, but for what stands in them.
    """
    waiting, known = list(values), dict[int, Any]()
    while waiting:
        value = waiting.pop()
        kind = type(value)
        is_of_module = kind is types.BuiltinFunctionType and isinstance(value.__self__, types.ModuleType | None)
        if is_of_module or _is_atom(value) or isinstance(value, types.ModuleType) or kind in FUNCTIONS:
            continue
        if id(value) in known:
            continue
        known[id(value)] = value
        answers = [getattr(kind, name, None) for name in ("__call__", "__next__")]
        if not isinstance(value, type) and any(isinstance(one, types.WrapperDescriptorType) for one in answers):
            yield value
        elif isinstance(value, dict):
            waiting.extend(dict.values(value))
        elif base := next((one for one in CONTAINERS if isinstance(value, one)), None):
            waiting.extend(base.__iter__(value))
        else:
            waiting.extend((value.fget, value.fset) if kind is property else getattr(value, "__dict__", {}).values())


def _subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(_subclasses, type.__subclasses__(kind)))


def _is_same(now: Any, before: Any) -> bool:
    if now is before:
        return True
    is_known = type(now) is type(before) and _is_atom(now)
    return is_known and bool(now == before or (now != now and before != before))


def _is_listed(module: str) -> bool:
    return module.partition(".")[0] in MODULES


def _globals_of(code: types.CodeType, own: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The globals that a code names, with the variables of the module that they are in, of libraries too."""
    for names in itertools.chain.from_iterable(map(chains, _nested(code))):
        place = own
        for name in names:
            value = place.get(name, _MISSING)
            yield name, place
            if not isinstance(value, types.ModuleType):
                break
            place = vars(value)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code, and those that are made in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


GLOBALS = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME"})
LOADED, SETTING = frozenset({"LOAD_ATTR", "LOAD_METHOD"}), frozenset({"STORE_ATTR", "DELETE_ATTR"})
SETS = frozenset({"BUILD_SET", "SET_ADD", "SET_UPDATE"})
KEYWORDS = {"where": MEMORY, "file": AS_TEXT}  # of a call
ASKING = frozenset({"add", "update", "discard", "remove", "clear"})  # methods of sets that show no order
BY_NAME = frozenset({"or_", "and_", "xor", "sub", "ior", "iand", "ixor", "isub"})
OF_SETS = frozenset({"|", "&", "^", "-", "|=", "&=", "^=", "-="})  # which make sets of the keys of dictionaries


@functools.lru_cache(maxsize=4_096)
def chains(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """The globals of a code with the attributes that are taken of each at once: ("np", "random", "laplace").

    Examples
    --------
    >>> def release(x, rng):
    ...     return re.sub(x)
    >>> chains(release.__code__)
    (('re', 'sub'),)
    """
    found: list[tuple[str, ...]] = []
    is_going_on = False
    for one in _instructions(code):
        if one.opname in GLOBALS:
            found.append((one.argval,))
            is_going_on = True
        elif one.opname in LOADED and is_going_on:
            found[-1] += (one.argval,)
        else:
            is_going_on = False
    return tuple(found)


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    return (one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "NOP", "RESUME", "EXTENDED_ARG"))


# Names.


class Dependence:
    """Record of what the runs of a mechanism depend on; made before the first one.

    Parameters
    ----------
    mechanism : object or callable
    inputs : object
        On which it is run.
    """

    def __init__(self, mechanism: Any, *inputs: Any) -> None:
        streams = (np.random.mtrand._rand, random._inst, BENEATH, OLD_BENEATH)
        shared = [("a generator of the process", one) for one in streams]
        self.state = State([*shared, ("the mechanism", mechanism)])
        self.add(*inputs)
        self.codes: list[Code] = []
        self._known: dict[int, types.CodeType] = {}
        self.working = set[int]()  # the codes of what works a value out once
        self._before = len(UNSURE)
        self._set: Any = ()  # that was changed last
        self._forms: dict[str, Any] = {}  # of outputs, by their tokens

    def add(self, *inputs: Any) -> None:
        """Look at more inputs on which it is run."""
        self.state.look([(INPUT, x) for x in inputs])

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
        if is_users(code.co_filename) and _is_of_own(frame.f_globals):
            if not self._is_found(code):  # Validity: it has not begun, and what ran before does not reach beyond
                self.state.look_at_process()
            own = frame.f_locals if code.co_freevars else {}
            self.codes.append(Code(code, frame.f_globals, {name: own.get(name) for name in code.co_freevars}))
        elif not code.co_filename.startswith(OWN_FOLDER):
            # Validity: what is written in Python is noted as it runs, wherever it stands. What is not may stand in a
            # library's tables or in the place of its functions, and is called or read there unseen.
            named = (part for name, place in _globals_of(code, frame.f_globals) for part in _global(place, name))
            self.state.look([(f"what {code.co_name}() of a library calls", part) for part in _unheard(named)])

    def note_set(self, changed: Any, frame: Any = None) -> None:
        """Note a set that a method is about to change; its order is looked at when another one is, or at the end."""
        if changed is not self._set:
            UNSURE.extend([] if _has_one_order(self._set) else [AS_SET])
            own = () if frame is None else frame.f_locals.items()
            is_asked = any(value is changed and _is_asked(frame.f_code, name) for name, value in own)
            self._set = () if is_asked else changed

    def note_form(self, token: str, held: list[Any]) -> None:
        """Note of an output what its token does not show, as whether it is an int or the float that equals it."""
        UNSURE.extend([] if self._forms.setdefault(token, held) == held else [FORMS])

    def changed(self) -> str:
        """Clause that a run has changed what the next one starts with; empty where none has."""
        found = self.state.changed()
        return f"a run changes {found}: something is kept between runs" if found else ""

    def doubt(self) -> str:
        """The first name that is not known to be harmless, with the line, as a clause; empty where all are."""
        self.note_set(())
        for one in self.codes:
            if not self.state.doubt and not self._is_found(one.code):
                return f"it calls {one.code.co_name}(), which was not found beforehand"
        found = (one.doubt(self.state.has_formats, self.state.cached) for one in self.codes)
        return next(filter(None, found), self.state.doubt or (UNSURE[-1] if len(UNSURE) > self._before else ""))

    def _is_found(self, code: types.CodeType) -> bool:
        return (code.co_filename, code.co_firstlineno) in self.state.codes


@dataclasses.dataclass(frozen=True)
class Code:
    """A code that ran, with the variables that it names: those of its module, and those of closures."""

    code: types.CodeType
    own: Mapping[str, Any]
    cells: Mapping[str, Any]

    def doubt(self, has_formats: bool, cached: Set[str]) -> str:
        """The first name in it that is not known to be harmless, as a clause with the line; empty where there is none.

        `has_formats` says whether texts with a percent sign are among the state, `cached` which attributes are values
        that are worked out once.
        """
        found = next(self._doubts(has_formats, cached), None)
        return "" if found is None else f"{found[0]} ({self.code.co_filename.rpartition('/')[2]}:{found[1]})"

    def reaches_more(self) -> bool:
        """Tell whether it may get at more than what it names: more is shown by an order or a text, not reached."""
        return any(said not in SHOWN for said, _ in self._doubts(False, ()))

    def _doubts(self, has_formats: bool, cached: Collection[str]) -> Iterator[tuple[str, int | None]]:
        line, listed = self.code.co_firstlineno, list(_instructions(self.code))
        has_formats |= any(one.opname == "LOAD_CONST" and "%" in str(one.argval) for one in listed)
        for place, one in enumerate(listed):
            line = one.starts_line or line
            after = listed[place + 1 : place + 40]
            is_text = one.opname in ("FORMAT_VALUE", "FORMAT_SIMPLE") and not (one.arg or 0) & 4  # without a form
            is_text |= has_formats and one.opname == "BINARY_OP" and one.argrepr in ("%", "%=")
            asked = {other.argval for other in listed[max(place - 8, 0) : place] if other.opname == "LOAD_GLOBAL"}
            is_set = one.opname == "BINARY_OP" and one.argrepr in OF_SETS
            is_set = is_set and any(other.argval in ("keys", "items") for other in listed[max(place - 12, 0) : place])
            is_set |= one.argval in BY_NAME and not {"keys", "items"}.isdisjoint(self.code.co_names)
            is_set |= (
                type(one.argval) is frozenset and after[0].opname != "CONTAINS_OP" and not _has_one_order(one.argval)
            )
            said = AS_TEXT if is_text and not _is_raised(after) else AS_SET * is_set or self._named(one, after, asked)
            if not said and one.opname in SETTING and one.argval in cached:
                said = f"it sets the attribute {one.argval}, which is worked out once"
            if said:
                yield said, line

    def _named(self, one: dis.Instruction, after: Sequence[dis.Instruction], asked: Set[str]) -> str:
        name, kind = one.argval, one.opname
        if kind == "KW_NAMES" or (kind == "LOAD_CONST" and after and after[0].opname == "CALL_KW"):
            given = self.code.co_consts[one.arg or 0]
            return "" if "out" in given else next((KEYWORDS[key] for key in given if key in KEYWORDS), "")
        if kind in GLOBALS or (kind == "LOAD_DEREF" and isinstance(self.cells.get(name), types.ModuleType)):
            rest = itertools.takewhile(lambda other: other.opname in LOADED, after)
            is_asked = "isinstance" in asked and after[0].opname != "LOAD_METHOD"  # for a class, which is not called
            return self._of_chain([name, *(other.argval for other in rest)], is_asked)
        if kind in LOADED | SETTING:
            is_hidden = _is_hidden(name) or (kind in SETTING and name in DUNDERS)
            return f"it names the attribute {name}" if is_hidden else ""
        if kind == "LOAD_CONST" and after and after[0].opname == "MATCH_CLASS":
            return next((f"it names the attribute {part}" for part in name if _is_hidden(part)), "")
        if kind == "IMPORT_NAME":
            following = itertools.takewhile(lambda other: other.opname.startswith(("IMPORT_FROM", "STORE_")), after)
            taken = [other.argval for other in following if other.opname == "IMPORT_FROM"]
            parts = [getattr(sys.modules.get(name), part, types) for part in taken]
            is_known = bool(taken) and _is_listed(name) and not any(isinstance(one, types.ModuleType) for one in parts)
            return "" if is_known and all(map(_is_harmless, parts)) else f"it imports {name}"
        if kind == "LOAD_BUILD_CLASS":
            return "it makes a class"
        return AS_SET if kind in SETS else ""

    def _of_chain(self, names: Sequence[str], is_asked: bool) -> str:
        first, value = names[0], self.cells.get(names[0], self.own.get(names[0], _MISSING))
        if value is _MISSING:
            value = getattr(builtins, first, _MISSING)
            is_error = isinstance(value, type) and issubclass(value, BaseException)
            is_known = value is _MISSING or first in BUILTINS or first.startswith("dpaudit ")
            return "" if is_known or (is_error and not issubclass(value, OF_PROCESS)) else f"it names {first}"
        said = f"it names {'.'.join(names)}"
        for name in names[1:]:
            if not isinstance(value, types.ModuleType):
                break
            is_known = _is_own(value.__name__) or _is_listed(value.__name__)
            if not is_known or type(value) is not types.ModuleType or name not in vars(value):  # nor of a function
                return said
            value = vars(value)[name]
        is_made = value is np.ndarray and not is_asked  # of memory as it is found
        return "" if not is_made and not isinstance(value, types.ModuleType) and _is_harmless(value) else said


UNSURE: list[str] = []  # doubts of the runs of this process, in their order: of values, exceptions and outputs


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """`str`, `repr`, `set` or `frozenset`; notes a text with an address, and a set whose order depends on hashes."""

    def call(*arguments: Any, **options: Any) -> Any:
        found = function(*arguments, **options)
        if "0x" in found or "flags=[" in found if isinstance(found, str) else not all(map(_has_one_hash, found)):
            UNSURE.append(AS_TEXT if isinstance(found, str) else AS_SET)
        return found

    return call


def checked_getattr(owner: Any, name: str, *default: Any) -> Any:
    """`getattr`; notes what a program may not name, and any name of a module, whose variables are looked at by name."""
    found = getattr(owner, name, *default)
    if issubclass(type(owner), types.ModuleType) or type(name) is not str or _is_hidden(name):
        UNSURE.append("it names an attribute" if type(name) is not str else f"it names the attribute {name}")
    return found


def checked_hasattr(owner: Any, name: str) -> bool:
    """`hasattr`; notes where what stands for a generator or a number is another answer than that."""
    found, kind = hasattr(owner, name), owner.__class__
    if type(owner) is not kind and found != any(name in vars(one) for one in kind.__mro__):
        UNSURE.append(f"it asks for the attribute {name}")
    return found


def _is_hidden(name: str) -> bool:
    is_own = name.startswith("_dpaudit_")  # of what stands for a generator
    return is_own or name in ATTRIBUTES or (name.startswith("__") and name.endswith("__") and name not in DUNDERS)


@functools.lru_cache(maxsize=4_096)
def _is_asked(code: types.CodeType, name: str) -> bool:
    """Tell whether a variable with a set is asked what is in it and how much, and nothing else: no order shows."""
    listed = [one for one in _instructions(code) if one.opname not in ("PRECALL", "PUSH_NULL")]
    loaded = [one.argval if isinstance(one.argval, tuple) else (one.argval,) for one in listed]  # by one or two names
    places = [place for place, one in enumerate(listed) if "LOAD_FAST" in one.opname and name in loaded[place]]
    return bool(places) and all(
        loaded[place][-1] == name and loaded[place].count(name) == 1
        and (
            listed[place + 1].opname == "CONTAINS_OP" or listed[place + 1].argval in ASKING
            or (listed[place - 1].argval == "len" and listed[place + 1].opname == "CALL")
        )
        for place in places
    )  # fmt: skip


def _has_one_order(value: Collection[Any]) -> bool:
    return len(value) < 2 or all(map(_has_one_hash, value))


def _has_one_hash(item: Any) -> bool:
    return (
        all(map(_has_one_hash, item)) if type(item) is tuple else isinstance(item, int | float | np.number | np.bool_)
    )


def _is_raised(after: Sequence[dis.Instruction]) -> bool:
    """Tell whether a text goes into an exception that is raised at once."""
    ends = (one.opname for one in after if one.opname.startswith(("STORE", "POP_JUMP", "RETURN", "RAISE", "YIELD")))
    return next(ends, "").startswith("RAISE")


def _is_harmless(value: Any) -> bool:
    """Tell whether a value is of the program itself, or listed here."""
    is_code = isinstance(value, types.BuiltinFunctionType | types.FunctionType | type)
    module = str((value.__module__ if is_code else type(value).__module__) or "")
    top, name = module.partition(".")[0].removeprefix("_"), getattr(value, "__name__", type(value).__name__)
    if top == "builtins":
        return not isinstance(value, types.BuiltinFunctionType) or name in BUILTINS
    if module.startswith(FILES):
        return False
    return _is_own(module) or (top in MODULES and name not in HARMFUL.get(top, "").split())
