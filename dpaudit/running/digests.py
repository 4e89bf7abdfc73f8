"""Digests of claims, inputs, options and tasks: equal for equal contents, in any process."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np

from dpaudit.reading.outcomes import canonical

DIGITS = 24  # hexadecimal ones that are shown: two inputs of one digest are as good as impossible
DEEPEST = 30  # levels of nesting that a digest follows
LARGE, SPREAD = 1 << 20, 1 << 16  # bytes of an array that is looked at here and there, and entries that are looked at


def input_key(value: Any) -> str:
    """64 hexadecimal digits that tell inputs apart, the same in every process; objects by what they hold.

    Validity: two inputs that share a key share their evidence. That names the wrong one of them, at worst: wealth is an
    e-value against the claim's holding on all of them.

    Examples
    --------
    >>> input_key(0.0) == input_key(0.0), input_key(0.0) == input_key(-0.0), input_key([1, 2]) == input_key((1, 2))
    (True, False, False)
    """
    state = hashlib.sha256()
    _feed(state, value, 0, True, canonical)
    return state.hexdigest()


def digest(value: Any, *, whole: bool = True) -> str:
    """24 hexadecimal digits of the contents of `value`: numbers by their bits, arrays, containers, dataclasses.

    Of a function or an object of any other kind only its name counts, never its address; of an array of more than a
    million bytes only some 65,000 entries, evenly spread, unless `whole`.

    Examples
    --------
    >>> digest({"x": [1.0, None]}) == digest({"x": [1.0, None]}), digest(0.0) == digest(-0.0), digest(1) == digest(True)
    (True, False, False)
    """
    state = hashlib.sha256()
    _feed(state, value, 0, whole, _name)
    return state.hexdigest()[:DIGITS]


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", ""))


def _feed(state: Any, value: Any, depth: int, whole: bool, of_object: Callable[[Any], str]) -> None:
    def say(*parts: str) -> None:
        for part in parts:
            content = part.encode("utf-8", "surrogatepass")
            state.update(len(content).to_bytes(8, "little"))
            state.update(content)

    kind = type(value)
    if depth > DEEPEST:
        say("deep", kind.__qualname__)
    elif value is None or kind in (bool, int, str, bytes):
        say(kind.__name__, repr(value))
    elif kind is float:
        say("float", value.hex())
    elif isinstance(value, np.ma.MaskedArray):
        say("masked")
        _feed(state, (np.ma.getmaskarray(value), value.data), depth + 1, whole, of_object)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcUSmM":
        say("array", value.dtype.str, repr(value.shape))
        if not whole and value.nbytes > LARGE:
            value = value.ravel()[:: max(value.size // SPREAD, 1)]
        state.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.ndarray | np.void):  # of objects, or with fields
        say("objects", str(value.dtype), repr(value.shape))
        _feed(state, value.tolist(), depth + 1, whole, of_object)
    elif isinstance(value, enum.Enum):
        say("enum", kind.__qualname__, value.name)
    elif isinstance(value, Mapping):
        say("mapping", str(len(value)))
        for key, item in value.items():
            _feed(state, key, depth + 1, whole, of_object)
            _feed(state, item, depth + 1, whole, of_object)
    elif isinstance(value, Set):
        say("set", *sorted(_of_item(item, depth + 1, whole, of_object) for item in value))
    elif isinstance(value, list | tuple):
        say(kind.__name__, str(len(value)))
        for item in value:
            _feed(state, item, depth + 1, whole, of_object)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        say("dataclass", kind.__qualname__)
        for field in dataclasses.fields(value):
            if field.compare:
                say(field.name)
                _feed(state, getattr(value, field.name, None), depth + 1, whole, of_object)
    else:
        say("object", kind.__qualname__, of_object(value))


def _of_item(item: Any, depth: int, whole: bool, of_object: Callable[[Any], str]) -> str:
    state = hashlib.sha256()
    _feed(state, item, depth, whole, of_object)
    return str(state.hexdigest())
