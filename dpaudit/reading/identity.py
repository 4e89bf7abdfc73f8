"""Identity of outputs: when two outputs are the same one, for audits and certificates alike.

An audit compares canonical tokens (`dpaudit.reading.outcomes.canonical`). Beside them it reads the order of the keys of
a mapping, the classes of the items of containers, the type of an array and the text of an exception
(`dpaudit.features.visitor`), and what stands beside a value that carries notes. `identity` is the token with all of
these as notes. Of an output that is itself a list or array of numbers an audit does not read the classes, since a batch
of such outputs is held as doubles: there the identity is finer, as a proof must be.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.reading.outcomes import DEEPEST, canonical, plain, state_of
from dpaudit.subjects.call_outcomes import Failed, Noted, Opaque

NOTE = re.compile("\x01([^\x02]*)\x02")  # no printed form of a text has these two characters


def identity(value: Any, depth: int = 0) -> str:
    """A text that two outputs share exactly where no audit can tell them apart.

    Parameters
    ----------
    value : Any
        Plain data (`dpaudit.subjects.plain.seen`).

    Examples
    --------
    >>> identity({"b": 1, "a": 2}) == identity({"a": 2, "b": 1}), identity([1]) == identity([1.0]), identity(1)
    (False, False, '1.0')
    >>> without_notes(identity([1])), with_notes(identity([1])), with_notes(identity(Failed("KeyError", "a")))
    ('[1.0]', '[1.0] (list of int)', "raised KeyError ('a')")
    """
    if isinstance(value, Noted) and value.beside:
        return _of_contents(value, depth) + _note(f"beside {_of_mapping(value.beside, depth + 1)}")
    return _of_contents(value, depth)


def _of_contents(value: Any, depth: int) -> str:
    array_type = value.dtype.str if isinstance(value, np.ndarray) else ""
    value = plain(value)
    if isinstance(value, Failed):
        return value.token + _note(repr(value.message))
    if depth > DEEPEST or isinstance(value, str | bytes | int | float | Fraction | None):
        return canonical(value, depth)
    if isinstance(value, Mapping):
        return _of_mapping(value, depth)
    if isinstance(value, set | frozenset):
        return canonical(value, depth) + ("" if value else _note("no members"))
    if isinstance(value, Sequence):
        items = ",".join([identity(item, depth + 1) for item in value])
        return f"[{items}]" + (_note(array_type or f"{class_name(value)} of {class_names(value)}") if value else "")
    state = state_of(value)
    if state is None:
        return canonical(value, depth)
    return (value.kind if isinstance(value, Opaque) else type(value).__qualname__) + _of_mapping(state, depth + 1)


def _of_mapping(value: Mapping[Any, Any], depth: int) -> str:
    items = [(canonical(key, depth + 1), identity(item, depth + 1)) for key, item in value.items()]
    ordered = sorted(items)
    text = "{" + ",".join([f"{key}:{item}" for key, item in ordered]) + "}"
    if items != ordered:
        text += _note(f"keys {', '.join(key for key, _ in items)}")
    if items:
        text += _note(f"items {class_names(value.values())}")
    return text


def _note(text: str) -> str:
    return f"\x01{text}\x02"


def class_names(items: Iterable[Any]) -> str:
    """The classes of some items, in their order, those that repeat with their number."""
    runs = [(name, len(list(group))) for name, group in itertools.groupby(map(class_name, items))]
    return " ".join([f"{count} {name}" if count > 1 else name for name, count in runs])


def class_name(item: Any) -> str:
    """The class of an item; numpy's numbers count as Python's: they become those on their way from a worker.

    Examples
    --------
    >>> class_name(np.int64(1)), class_name(1.5), class_name(np.arange(2))
    ('int', 'float', 'ndarray')
    """
    return _name_of_class(type(item))


@functools.cache
def _name_of_class(kind: type) -> str:
    if issubclass(kind, np.datetime64 | np.timedelta64):
        return "int"
    if issubclass(kind, Noted):
        return str(kind.__base__.__name__) if kind.__base__ else ""
    return type(kind(0).item()).__name__ if issubclass(kind, np.generic) else kind.__name__


def without_notes(text: str) -> str:
    """The canonical token of an identity: what it is called where no other output has the same one."""
    return NOTE.sub("", text)


def with_notes(text: str) -> str:
    """An identity for people, with its notes in brackets."""
    return NOTE.sub(r" (\1)", text)
