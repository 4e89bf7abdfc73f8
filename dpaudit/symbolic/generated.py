"""Functions that `dataclasses` and `namedtuple` make of texts, so that they have no source."""

from __future__ import annotations

import collections
import dataclasses
import functools
import sys
import types
from collections.abc import Mapping
from typing import Any

from dpaudit.symbolic.values import is_followed, is_own_class, known_functions


def is_generated(code: types.CodeType, owner: Any, names: Mapping[str, Any]) -> bool:
    """Tell whether a code is one that `dataclasses` or `namedtuple` made for the class of its first argument."""
    if code.co_filename.startswith("<") and code.co_argcount + code.co_posonlyargcount:
        kinds = type.__dict__["__mro__"].__get__(owner if isinstance(owner, type) else type(owner))
        is_tuple = names.get("_tuple_new", tuple.__new__) == tuple.__new__
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
    parts = [getattr(one, "__func__", one) for one in (vars(again).values() if again is not None else ())]
    parts += [one.__wrapped__ for one in parts if hasattr(one, "__wrapped__")]  # a text, which may hold itself
    return tuple(one.__code__ for one in parts if isinstance(one, types.FunctionType))


def _equal(code: types.CodeType, made: types.CodeType) -> bool:
    names = code.co_names, code.co_consts, code.co_code, code.co_varnames, code.co_freevars
    return names == (made.co_names, made.co_consts, made.co_code, made.co_varnames, made.co_freevars)


def makes_known(factory: Any) -> bool:
    """Tell whether the default of a field is made by a function that is known for all arguments."""
    is_own_one = is_followed(factory) or (isinstance(factory, type) and is_own_class(factory))
    return factory is dataclasses.MISSING or is_own_one or id(factory) in known_functions(len(sys.modules))[0]
