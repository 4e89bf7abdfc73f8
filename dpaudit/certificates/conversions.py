"""Conversions: calls of `int`, `float`, `type` and `numpy.array` that leave a symbol a symbol.

Python's `int(x)` and `float(x)` return exact numbers, whatever x is, and `type(x)` asks nobody. So while a certificate
is made, the functions of the mechanism's own files call `keep_int`, `keep_float` and `keep_type` instead, which are the
same for anything but a symbol. Only names in front of a call are replaced: `int` as a type stays what it is. Lines and
tracebacks stay, too. `numpy.array` and `numpy.asarray` guard the symbols of the arrays that they make.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from dpaudit.certificates.symbol_arrays import SYMBOLS, guarded
from dpaudit.certificates.uniform_numbers import UniformNumber
from dpaudit.subjects.tracebacks import is_users

LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
LARGEST_INDEX = 127  # of a name whose instruction has no second byte


def keep_int(*arguments: Any, **options: Any) -> Any:
    """`int`, which gives a whole number that is a symbol as a symbol."""
    if len(arguments) == 1 and not options and type(arguments[0]) in SYMBOLS:
        value = arguments[0]
        return int(value) if type(value) is UniformNumber else value.as_class(int)
    return int(*arguments, **options)


def keep_float(*arguments: Any) -> Any:
    """`float`, which gives a symbol as a symbol."""
    if len(arguments) == 1 and type(arguments[0]) in SYMBOLS:
        return arguments[0].as_class(float)
    return float(*arguments)


def keep_type(*arguments: Any, **options: Any) -> Any:
    """`type`, which gives the class of the number that a symbol stands for."""
    if len(arguments) == 1 and type(arguments[0]) in SYMBOLS:
        return arguments[0].__class__
    return type(*arguments, **options)


def _guarding(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def guard(*arguments: Any, **options: Any) -> Any:
        found = function(*arguments, **options)
        if type(found) is not np.ndarray or found.dtype != object or len(arguments) > 1 or "dtype" in options:
            return found
        return guarded(found) if any(type(item) in SYMBOLS for item in found.flat) else found

    return guard


# No name of a program has a space. They stay among the builtins: a generator of the user's may go on later.
KEPT = {"int": "dpaudit int", "float": "dpaudit float", "type": "dpaudit type"}
ARRAYS = {name: getattr(np, name) for name in ("array", "asarray")}


@contextlib.contextmanager
def kept_by_conversions(mechanism: Any) -> Iterator[None]:
    """While this goes on, functions that a mechanism can reach keep symbols; then they have their own code again."""
    vars(builtins).update({KEPT["int"]: keep_int, KEPT["float"]: keep_float, KEPT["type"]: keep_type})
    changed: list[tuple[FunctionType, CodeType, CodeType]] = []
    try:
        for name, function in ARRAYS.items():
            setattr(np, name, _guarding(function))
        for function in reachable(mechanism):
            code = with_calls(function.__code__, {name for name in KEPT if name not in function.__globals__})
            if code is not function.__code__:
                changed.append((function, function.__code__, code))
                function.__code__ = code
        yield
    finally:
        for name, function in ARRAYS.items():
            setattr(np, name, function)
        for function, before, after in changed:
            if function.__code__ is after:
                function.__code__ = before


def reachable(mechanism: Any) -> list[FunctionType]:
    """Functions of the user's files that an object is, holds, or names: not all that it may call.

    Where a function is missed, a conversion in it gives a number, as it always did.
    """
    found: dict[int, FunctionType] = {}
    seen: set[int] = set()
    waiting = [mechanism]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, FunctionType):
            if not is_users(item.__code__.co_filename):
                continue
            found[id(item)] = item
            names = _names(item.__code__)
            named = [item.__globals__[name] for name in names if name in item.__globals__]
            waiting += [one for one in named if not isinstance(one, ModuleType)]
            modules = [vars(one) for one in named if isinstance(one, ModuleType)]
            waiting += [module[name] for module in modules for name in names if name in module]
            for cell in item.__closure__ or ():
                with contextlib.suppress(ValueError):  # it is empty
                    waiting.append(cell.cell_contents)
            waiting += [getattr(item, "__wrapped__", None), *(item.__defaults__ or ())]
        elif isinstance(item, functools.partial):
            waiting += [item.func, *item.args, *item.keywords.values()]
        elif isinstance(item, staticmethod | classmethod | MethodType):
            waiting += [item.__func__, getattr(item, "__self__", None)]
        elif isinstance(item, property):
            waiting.append(item.fget)
        elif isinstance(item, type):
            waiting += [part for kind in item.__mro__ if kind.__module__ != "builtins" for part in vars(kind).values()]
        elif isinstance(item, list | tuple):
            waiting += item
        elif isinstance(item, dict):
            waiting += item.values()
        elif type(item).__module__ != "builtins":
            waiting += [type(item), *getattr(item, "__dict__", {}).values()]
    return list(found.values())


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(value) for value in code.co_consts if isinstance(value, CodeType)))


def with_calls(code: CodeType, names: set[str]) -> CodeType:
    """The code with other names where one of these is called; itself where none is.

    Examples
    --------
    >>> def program(x):
    ...     return int(x), isinstance(x, int)
    >>> with_calls(program.__code__, {"int"}).co_names
    ('int', 'isinstance', 'dpaudit int')
    """
    constants = tuple(with_calls(value, names) if isinstance(value, CodeType) else value for value in code.co_consts)
    if any(a is not b for a, b in zip(constants, code.co_consts, strict=True)):
        code = code.replace(co_consts=constants)
    if names.isdisjoint(code.co_names):
        return code
    content, all_names = bytearray(code.co_code), list(code.co_names)
    for place in range(0, len(content), 2):
        # From Python 3.11 on the lowest bit says that what is loaded is called, and the rest is the name's index.
        is_long = place >= 2 and content[place - 2] == dis.EXTENDED_ARG
        if content[place] != LOAD_GLOBAL or not content[place + 1] & 1 or is_long:
            continue
        name = code.co_names[content[place + 1] >> 1]
        if name in names:
            all_names += [KEPT[name]] * (KEPT[name] not in all_names)
            index = all_names.index(KEPT[name])
            if index <= LARGEST_INDEX:
                content[place + 1] = index << 1 | 1
    if len(all_names) == len(code.co_names):
        return code
    return code.replace(co_code=bytes(content), co_names=tuple(all_names))
