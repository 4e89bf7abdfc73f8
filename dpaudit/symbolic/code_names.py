"""Names in a code object: which of them reach nothing but arguments, traced draws, and the state that was looked at.

A name of a clock, a file, an address, an order of hashes or anything that is not listed here is a possible impurity.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import dis
import functools
import importlib
import itertools
import re
import sys
import types
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from dpaudit.subjects.tracebacks import is_users

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
    "byte_bounds array_repr array_str array2string mod as_strided recarray chararray masked_all masked_all_like "
    "DataSource set_default_printstyle pad str_ bytes_ nditer nested_iters",
    "operator": "attrgetter methodcaller mod imod is_ is_not",
    "collections": "UserString KeysView ItemsView Set MutableSet",
    "string": "Template Formatter",
    "decimal": "getcontext setcontext",
    "types": "CodeType FunctionType ModuleType FrameType",
    "typing": "overload get_overloads clear_overloads get_type_hints get_origin get_args",
    "dataclasses": "fields",
    "abc": "update_abstractmethods",
    "contextlib": "chdir",
    "scipy": "set_workers set_backend set_global_backend register_backend skip_backend",
    "functools": "singledispatch singledispatchmethod",
    "json": "load dump",
}
FILES = (  # and memory as it was found
    "scipy.io", "scipy.datasets", "numpy.ctypeslib", "numpy.f2py", "numpy.testing", "numpy.lib.format", "numpy.rec",
    "numpy.core.records",
)  # fmt: skip
_BUILTINS = (
    "abs all any bin bool bytearray bytes callable classmethod complex dict divmod enumerate filter float "
    "hex int isinstance issubclass iter len list map max min next oct ord pow print property range reversed round "
    "slice sorted staticmethod sum super tuple zip Ellipsis NotImplemented"
)
BUILTINS = frozenset(_BUILTINS.split())
OF_PROCESS = (RecursionError, MemoryError, OSError, SystemError, Warning)  # exceptions
_ATTRIBUTES = (
    "gi_frame gi_code cr_frame ag_frame f_back f_globals f_locals f_builtins tb_frame tb_next ctypes format "
    "format_map func_globals register cache_info flags union symmetric_difference symmetric_difference_update mro "
    "_baseclass get_state"
)
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
_DUNDERS = (
    "__init__ __post_init__ __name__ __class__ __len__ __getitem__ __contains__ __iter__ __next__ __call__ __round__ "
    "__floor__ __ceil__ __trunc__ __abs__ __int__ __float__ __neg__ __add__ __sub__ __mul__ __lt__ __le__ __gt__ __ge__"
)
DUNDERS = frozenset(_DUNDERS.split())
AS_TEXT = "it makes a text, which may have an address in memory"
A_SET = "a set, whose order may depend on the process"
AS_SET = f"it makes {A_SET}"
MEMORY = "it may read memory as it was found, or the order of a set"
SHOWN = frozenset({AS_TEXT, AS_SET, MEMORY})  # by an order, a text or a number; nothing is reached by it
MISSING = object()
IMPURITIES: list[str] = []  # doubts of the runs of this process, in their order: of values, exceptions and outputs
GLOBALS = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME"})
LOADED, SETTING = frozenset({"LOAD_ATTR", "LOAD_METHOD"}), frozenset({"STORE_ATTR", "DELETE_ATTR"})
SETS = frozenset({"BUILD_SET", "SET_ADD", "SET_UPDATE"})
GROWING = frozenset({"add", "update"})  # methods of sets, which are heard where they are called at once
KEYWORDS = {"where": MEMORY, "file": AS_TEXT}  # of a call
VIEWS = frozenset({"keys", "items"})  # of which operators make sets
ITERATED = frozenset({"GET_ITER", "LIST_EXTEND", "CONTAINS_OP"})
_CONSUMERS = "sorted list tuple len sum max min dict enumerate zip any all map filter iter reversed set frozenset"
CONSUMERS = frozenset({*_CONSUMERS.split(), "dpaudit set", "dpaudit frozenset"})  # which ask for items alone
SEVERAL = frozenset({"map", "filter", "zip"})  # that go through each of their arguments
ARGUMENTS = frozenset({"LOAD_CONST", "LOAD_FAST", "LOAD_CLOSURE", "BUILD_TUPLE", "MAKE_FUNCTION", "KW_NAMES"})
TEXTS = re.compile("[<>=|]?[US][0-9]*")  # types of arrays of texts, into which anything is written as its text
WRITING = frozenset({"fill", "put", "place", "putmask", "copyto", "itemset"})  # into arrays


@dataclasses.dataclass(frozen=True)
class CodeNames:
    """A code object that ran, with the variables that it names: those of its module, and those of closures."""

    code: types.CodeType
    own: Mapping[str, Any]
    cells: Mapping[str, Any]

    def impurity(self, has_formats: bool, has_texts: bool, cached: Set[str]) -> str:
        """The first name in it that is not known to be harmless, as a clause with the line; empty where there is none.

        `has_formats` and `has_texts` say whether texts with a percent sign, and arrays of texts, are among the state,
        `cached` which attributes are values that are worked out once.
        """
        found = next(self._impurities(has_formats, has_texts, cached), None)
        return "" if found is None else f"{found[0]} ({self.code.co_filename.rpartition('/')[2]}:{found[1]})"

    def reaches_more(self) -> bool:
        """Tell whether it may get at more than what it names: more is shown by an order or a text, not reached."""
        return any(said not in SHOWN for said, _ in self._impurities(False, False, ()))

    def _impurities(
        self, has_formats: bool, has_texts: bool, cached: Collection[str]
    ) -> Iterator[tuple[str, int | None]]:
        line, listed = self.code.co_firstlineno, list(instructions(self.code))
        has_formats |= any(one.opname == "LOAD_CONST" and "%" in str(one.argval) for one in listed)
        for place, one in enumerate(listed):
            line = one.starts_line or line
            after = listed[place + 1 : place + 40]
            form = one.arg or 0  # 4 is one of a number, unless it is that of a text (1 to 3)
            is_text = one.opname in ("FORMAT_SIMPLE", "CONVERT_VALUE")
            is_text |= one.opname == "FORMAT_VALUE" and (not form & 4 or bool(form & 3))
            is_text |= one.opname == "LOAD_CONST" and TEXTS.fullmatch(str(one.argval)) is not None
            is_text |= has_formats and one.opname == "BINARY_OP" and one.argrepr in ("%", "%=")
            is_text |= has_texts and (one.opname in ("STORE_SUBSCR", "STORE_SLICE") or one.argval in WRITING)
            asked = {other.argval for other in listed[max(place - 8, 0) : place] if other.opname == "LOAD_GLOBAL"}
            is_set = one.opname in LOADED and one.argval in VIEWS and not is_gone_through(listed, place, self.own)
            is_set |= (
                type(one.argval) is frozenset and after[0].opname != "CONTAINS_OP" and not has_one_order(one.argval)
            )
            said = AS_TEXT if is_text and not _is_raised(after) else AS_SET * is_set or self._named(one, after, asked)
            if not said and one.opname in SETTING and one.argval in cached:
                said = f"it sets the attribute {one.argval}, which is worked out once"
            # From Python 3.12 on one instruction loads a method that is called at once, too.
            if one.opname == "LOAD_ATTR" and one.argval in GROWING and "NULL" not in one.argrepr:
                owner = self.own.get(str(listed[place - 1].argval))
                said = said or AS_SET * (not isinstance(owner, types.ModuleType))
            if one.opname == "DICT_MERGE":
                said = said or MEMORY  # keywords that no name shows, as "where" of an array
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
        if name == "__class__" and kind in LOADED and not is_compared(after):
            return MEMORY
        if kind in LOADED | SETTING:
            is_not_named = is_hidden(name) or (kind in SETTING and name in DUNDERS)
            return f"it names the attribute {name}" if is_not_named else ""
        if kind == "LOAD_CONST" and after and after[0].opname == "MATCH_CLASS":
            return next((f"it names the attribute {part}" for part in name if is_hidden(part)), "")
        if kind == "IMPORT_NAME":
            following = itertools.takewhile(lambda other: other.opname.startswith(("IMPORT_FROM", "STORE_")), after)
            taken = [(name, other.argval) for other in following if other.opname == "IMPORT_FROM"]
            parts = [getattr(sys.modules.get(name), part, types) for name, part in taken]
            is_known = bool(taken) and is_listed(name) and set(taken) <= set(imports(self.code))
            is_known = is_known and not any(isinstance(one, types.ModuleType) or is_as_found(one) for one in parts)
            return "" if is_known and all(map(is_harmless, parts)) else f"it imports {name}"
        if kind == "LOAD_BUILD_CLASS":
            return "it makes a class"
        return AS_SET if kind in SETS else ""

    def _of_chain(self, names: Sequence[str], is_asked: bool) -> str:
        first, value = names[0], self.cells.get(names[0], self.own.get(names[0], MISSING))
        if value is MISSING:
            value = getattr(builtins, first, MISSING)
            is_error = isinstance(value, type) and issubclass(value, BaseException)
            is_known = value is MISSING or first in BUILTINS or first.startswith("dpaudit ")
            return "" if is_known or (is_error and not issubclass(value, OF_PROCESS)) else f"it names {first}"
        said = f"it names {'.'.join(names)}"
        for name in names[1:]:
            if not isinstance(value, types.ModuleType):
                break
            is_known = is_own(value.__name__) or is_listed(value.__name__)
            if not is_known or type(value) is not types.ModuleType or name not in vars(value):  # nor of a function
                return said
            value = vars(value)[name]
        is_made = is_as_found(value) and not is_asked
        return "" if not is_made and not isinstance(value, types.ModuleType) and is_harmless(value) else said


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
    for one in instructions(code):
        if one.opname in GLOBALS:
            found.append((one.argval,))
            is_going_on = True
        elif one.opname in LOADED and is_going_on:
            found[-1] += (one.argval,)
        else:
            is_going_on = False
    return tuple(found)


@functools.lru_cache(maxsize=4_096)
def imports(code: types.CodeType) -> tuple[tuple[str, str], ...]:
    """The names that a code takes from modules, each after its module: ("math", "exp")."""
    listed, found, module = list(instructions(code)), list[tuple[str, str]](), ""
    for place, one in enumerate(listed):
        if one.opname == "IMPORT_NAME":
            module = one.argval if listed[place - 2].argval == 0 and listed[place - 1].argval else ""
        found += [(module, one.argval)] * (one.opname == "IMPORT_FROM" and is_listed(module))
    return tuple(found)


def globals_of(code: types.CodeType, own: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The globals that a code names, with the variables of the module that they are in, of libraries too.

    What it imports is found where it would be, so that it is looked at before it is used.
    """
    for module, name in itertools.chain.from_iterable(map(imports, nested(code))):
        with contextlib.suppress(ImportError):
            yield name, vars(importlib.import_module(module))
    for names in itertools.chain.from_iterable(map(chains, nested(code))):
        place = own
        for name in names:
            value = place.get(name, MISSING)
            yield name, place
            if not isinstance(value, types.ModuleType):
                break
            place = vars(value)


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code, and those that are made in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    return (one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "NOP", "RESUME", "EXTENDED_ARG"))


# Names.


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


def is_harmless(value: Any) -> bool:
    """Tell whether a value is of the program itself, or listed here."""
    is_code = isinstance(value, types.BuiltinFunctionType | types.FunctionType | type)
    module = str((value.__module__ if is_code else type(value).__module__) or "")
    top, name = module.partition(".")[0].removeprefix("_"), getattr(value, "__name__", type(value).__name__)
    if top == "builtins":
        return not isinstance(value, types.BuiltinFunctionType) or name in BUILTINS
    if module.startswith(FILES):
        return False
    return is_own(module) or (top in MODULES and name not in HARMFUL.get(top, "").split())


def is_as_found(value: Any) -> bool:
    """Tell whether a value is a class of sets, or of arrays that are made of memory as it is found."""
    if not isinstance(value, type):
        return False
    is_memory = issubclass(value, np.ndarray) and value.__new__ is np.ndarray.__new__
    return is_memory or issubclass(value, set | frozenset)


def is_gone_through(listed: Sequence[dis.Instruction], place: int, own: Mapping[str, Any]) -> bool:
    """Tell whether a view of a dictionary is made and gone through at once, by a loop or one of `CONSUMERS`.

    `own` are the global variables, which may have one under its name.
    """
    called = [one for one in listed[place + 1 :] if one.opname not in ("PRECALL", "PUSH_NULL")]
    if called[0].opname != "CALL":
        return False
    if called[1].opname in ITERATED:
        return True
    consumer, n_before = _callee(listed[:place])
    if consumer not in CONSUMERS or (consumer in own and not consumer.startswith("dpaudit ")):
        return False
    given = list(itertools.takewhile(lambda one: one.opname in ARGUMENTS, called[1:]))
    n_after, end = sum(dis.stack_effect(one.opcode, one.arg) for one in given), called[1 + len(given)]
    is_packed = any(  # in a tuple that goes on: others are of the cells of a function
        one.opname == "BUILD_TUPLE" and last.opname != "LOAD_CLOSURE" for last, one in zip(called, given, strict=False)
    )
    if end.opname != "CALL" or end.argval != n_before + 1 + n_after or is_packed:
        return False
    has_names = any(one.opname == "KW_NAMES" for one in given)
    if consumer in SEVERAL:
        return not has_names
    # Alone, or before one argument with a name: `max` and `sum` may give one of several back, and `dict` does.
    return n_before == 0 and n_after == has_names and not (has_names and consumer == "dict")


def _callee(listed: Sequence[dis.Instruction]) -> tuple[str, int]:
    """The global whose arguments the value on top of the stack is among, and how many stand before it; "" for none."""
    for place in reversed(range(len(listed))):
        one = listed[place]
        if "JUMP" in one.opname or one.opname == "FOR_ITER":
            break
        if one.opname == "LOAD_GLOBAL" and "NULL" in one.argrepr:
            effects = (dis.stack_effect(other.opcode, other.arg) for other in listed[place + 1 :])
            depths = list(itertools.accumulate(effects, initial=0))
            if min(depths) >= 0:  # it has not been called yet
                return str(one.argval), depths[-1] - 1
    return "", 0


def is_compared(after: Sequence[dis.Instruction]) -> bool:
    """Tell whether a class is compared, or asked for an attribute, so that it is not called."""
    ends = (one.opname for one in after if not one.opname.startswith(("LOAD_", "BUILD_TUPLE")))
    return after[0].opname in LOADED or next(ends, "") in ("IS_OP", "COMPARE_OP", "CONTAINS_OP")


def is_hidden(name: str) -> bool:
    is_own = name.startswith("_dpaudit_")  # of what stands for a generator
    return is_own or name in ATTRIBUTES or (name.startswith("__") and name.endswith("__") and name not in DUNDERS)


def _is_raised(after: Sequence[dis.Instruction]) -> bool:
    """Tell whether a text goes into an exception that is raised at once."""
    ends = (one.opname for one in after if one.opname.startswith(("STORE", "POP_JUMP", "RETURN", "RAISE", "YIELD")))
    return next(ends, "").startswith("RAISE")


def has_one_order(value: Collection[Any]) -> bool:
    return len(value) < 2 or all(map(has_one_hash, value))


def has_one_hash(item: Any) -> bool:
    return all(map(has_one_hash, item)) if type(item) is tuple else isinstance(item, int | float | np.number | np.bool_)
