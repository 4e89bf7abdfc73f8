"""Conversions: calls of `int`, `float`, `type` and `numpy.array` that leave a symbol a symbol.

Python's `int(x)` and `float(x)` return exact numbers, whatever x is, and `type(x)` asks nobody. So while a certificate
is made, the functions of the user's files call others instead, which are the
same for anything but a symbol. Only names in front of a call are replaced: `int` as a type stays what it is. Lines and
tracebacks stay, too. Calls of `str`, `repr` and `set` tell whether what they give is the same in every process, and
those of `getattr` and `hasattr` whether a program may ask for that (`dpaudit.symbolic.dependence`). Functions of numpy
that make arrays (`BEFORE_DTYPE`) guard the symbols in them.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from dpaudit.subjects.tracebacks import is_users, signal_handlers
from dpaudit.symbolic.code_names import AS_TEXT, IMPURITIES, MEMORY, instructions, is_as_found, is_compared
from dpaudit.symbolic.dependence import Dependence, checked, checked_getattr, checked_hasattr
from dpaudit.symbolic.generators import TracedRng
from dpaudit.symbolic.symbols import Symbol, SymbolArray, guarded
from dpaudit.symbolic.watching import unheard

LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
MAX_NAME_INDEX = 127  # of a name whose instruction has no second byte
MAX_KNOWN = 1 << 16  # codes, some hundred bytes each beside themselves
_KNOWN: dict[tuple[int, frozenset[str]], tuple[CodeType, CodeType]] = {}


def _keeping(kind: type) -> Callable[..., Any]:
    """A function that calls the class, but gives a number that is a symbol as a symbol."""

    def keep(*arguments: Any, **options: Any) -> Any:
        if len(arguments) == 1 and not options and isinstance(arguments[0], Symbol):
            return arguments[0].as_class(kind)
        return kind(*arguments, **options)

    return keep


def keep_type(*arguments: Any, **options: Any) -> Any:
    """`type`, which gives the class of what a symbol, an array of them or a face stands for."""
    if len(arguments) == 1 and isinstance(arguments[0], Symbol | SymbolArray | TracedRng):
        return arguments[0].__class__
    found = type(*arguments, **options)
    if is_as_found(found):
        frame = sys._getframe(1)
        with unheard():
            after = [one for one in instructions(frame.f_code) if one.offset > frame.f_lasti]
            IMPURITIES.extend([] if is_compared(after) else [MEMORY])
    return found


BEFORE_DTYPE = {"array": 1, "asarray": 1, "full": 2, "repeat": 3, "tile": 2}  # arguments that a type may stand behind
ARRAYS = {name: getattr(np, name) for name in BEFORE_DTYPE}


def keeping_symbols(name: str) -> Callable[..., Any]:
    """The function of numpy that makes arrays, which keeps symbols in them."""
    function, before_dtype = ARRAYS[name], BEFORE_DTYPE[name]

    @functools.wraps(function)
    def guard(*arguments: Any, **options: Any) -> Any:
        typed = [*arguments[before_dtype:], *(options[key] for key in ("dtype",) if key in options)]
        if typed and any(map(_has_symbols, arguments)):
            rest = {key: value for key, value in options.items() if key != "dtype"}
            return guarded(function(*arguments[:before_dtype], dtype=object, **rest)).astype(typed[0])
        found = function(*arguments, **options)
        is_text = type(found) is np.ndarray and found.dtype.kind in "US" and arguments
        if is_text and not all(isinstance(one, str | bytes) for one in ARRAYS["array"](arguments[0], object).flat):
            IMPURITIES.append(AS_TEXT)
        return guarded(found) if type(found) is np.ndarray and found.dtype == object and not typed else found

    return guard


def _has_symbols(value: Any, depth: int = 3) -> bool:
    if isinstance(value, Symbol | SymbolArray):
        return isinstance(value, Symbol) or type(value) is SymbolArray
    return depth > 0 and type(value) in (list, tuple) and any(_has_symbols(item, depth - 1) for item in value[:1000])


# No name of a program has a space. They stay among the builtins: a generator of the user's may go on later.
CALLED: Mapping[str, Callable[..., Any]] = {
    **{kind.__name__: _keeping(kind) for kind in (int, float)},
    "type": keep_type,
    "getattr": checked_getattr,
    "hasattr": checked_hasattr,
    **{function.__name__: checked(function) for function in (str, repr, set, frozenset)},
}
KEPT = {name: f"dpaudit {name}" for name in CALLED}


@contextlib.contextmanager
def kept_by_conversions(depends: Dependence | None = None) -> Iterator[None]:
    """While this goes on, the functions of the user's files keep symbols; then they have their own code again.

    Those that a program may call, where that is known of what it depends on. Where a function is missed, a conversion
    in it gives a number, and a text or a set in it is an impurity by its name.
    """
    vars(builtins).update({KEPT[name]: function for name, function in CALLED.items()})
    changed: list[tuple[FunctionType, CodeType, CodeType]] = []
    try:
        for name in ARRAYS:
            setattr(np, name, keeping_symbols(name))
        for function in users_functions(None if depends is None else depends.functions()):
            own = function.__globals__  # which may have many thousands of names, that are not gone through
            code = _known_with_calls(function.__code__, frozenset(name for name in KEPT if name not in own))
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


def users_functions(known: list[FunctionType] | None = None) -> list[FunctionType]:
    """The functions of the user's files, among these or all of the process.

    But for those with builtins of their own and for handlers of signals, which are known by their codes
    (`dpaudit.subjects.tracebacks.is_outcome`).
    """
    handlers = signal_handlers()
    found: list[Any] = [item for item in gc.get_objects() if type(item) is FunctionType] if known is None else known
    return [
        function for function in found
        if is_users(function.__code__.co_filename)
        and function.__builtins__ is vars(builtins)
        and function.__code__ not in handlers
    ]  # fmt: skip


def _known_with_calls(code: CodeType, names: frozenset[str]) -> CodeType:
    """The same as `with_calls`, worked out once for each code: a process may have many thousands of functions."""
    if len(_KNOWN) >= MAX_KNOWN:
        _KNOWN.clear()
    known = _KNOWN.get((id(code), names))
    if known is None or known[0] is not code:  # codes are told apart by identity: equal ones may be of two files
        known = _KNOWN[id(code), names] = code, with_calls(code, names)
    return known[1]


def with_calls(code: CodeType, names: Set[str]) -> CodeType:
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
            if index <= MAX_NAME_INDEX:
                content[place + 1] = index << 1 | 1
    if len(all_names) == len(code.co_names):
        return code
    return code.replace(co_code=bytes(content), co_names=tuple(all_names))
