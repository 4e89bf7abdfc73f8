"""Digests of claims, inputs, options and tasks: equal for equal contents, in any process."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np

from dpaudit.features.outcomes import canonical

DEEPEST = 30  # levels of nesting that a digest follows

OfObject = Callable[[Any], str]


def input_key(value: Any) -> str:
    """64 hexadecimal digits that tell inputs apart, the same in every process; objects by what they hold.

    Validity: two inputs that share a key share their evidence. That names the wrong one of them, at worst: wealth is an
    e-value against the claim's holding on all of them.

    Examples
    --------
    >>> input_key(0.0) == input_key(0.0), input_key(0.0) == input_key(-0.0), input_key([1, 2]) == input_key((1, 2))
    (True, False, False)
    """
    return _hexadecimal(value, canonical)


def digest(value: Any) -> str:
    """64 hexadecimal digits of the contents of `value`: numbers by their bits, arrays, containers, dataclasses.

    Of a function or an object of any other kind only its name counts, never its address.

    Examples
    --------
    >>> digest({"x": [1.0, None]}) == digest({"x": [1.0, None]}), digest(0.0) == digest(-0.0), digest(1) == digest(True)
    (True, False, False)
    """
    return _hexadecimal(value, lambda found: str(getattr(found, "__qualname__", "")))


def _hexadecimal(value: Any, of_object: OfObject, depth: int = 0) -> str:
    state = hashlib.sha256()
    _feed(state, value, of_object, depth)
    return str(state.hexdigest())


def _feed(state: Any, value: Any, of_object: OfObject, depth: int) -> None:
    def say(*parts: str) -> None:
        for part in parts:
            content = part.encode("utf-8", "surrogatepass")
            state.update(len(content).to_bytes(8, "little"))
            state.update(content)

    def follow(*items: Any) -> None:
        for item in items:
            _feed(state, item, of_object, depth + 1)

    kind = type(value)
    if depth > DEEPEST:
        say("deep", kind.__qualname__)
    elif value is None or kind in (bool, int, str, bytes):
        say(kind.__name__, repr(value))
    elif kind is float:
        say("float", value.hex())
    elif isinstance(value, np.ma.MaskedArray):
        say("masked")
        follow((np.ma.getmaskarray(value), value.data))
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcUSmM":
        say("array", value.dtype.str, repr(value.shape))
        state.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.ndarray | np.void):  # of objects, or with fields
        say("objects", str(value.dtype), repr(value.shape))
        follow(value.tolist())
    elif isinstance(value, enum.Enum):
        say("enum", kind.__qualname__, value.name)
    elif isinstance(value, Mapping):
        say("mapping", str(len(value)))
        follow(*(part for item in value.items() for part in item))
    elif isinstance(value, Set):
        say("set", *sorted(_hexadecimal(item, of_object, depth + 1) for item in value))
    elif isinstance(value, list | tuple):
        say(kind.__name__, str(len(value)))
        follow(*value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        say("dataclass", kind.__qualname__)
        for field in dataclasses.fields(value):
            if field.compare:
                say(field.name)
                follow(getattr(value, field.name, None))
    else:
        say("object", kind.__qualname__, of_object(value))
