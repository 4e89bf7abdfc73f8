"""Identity of outputs: when two outputs are the same one, for audits and certificates alike.

An audit compares canonical tokens (`dpaudit.reading.outcomes.canonical`). Beside them it reads the order of the keys of
a mapping, the classes of the items of containers, the type of an array and the text of an exception
(`dpaudit.reading.leaves`, `dpaudit.reading.expanded`). `identity` is the token with all of these as notes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.reading.outcomes import DEEPEST, canonical, plain, state_of
from dpaudit.subjects.call_outcomes import Failed, Opaque

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
        return f"[{items}]" + (_note(array_type or f"{type(value).__name__} of {_names(value)}") if value else "")
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
    if len(items) > 1 or any(type(key) is not str for key in value):
        text += _note(f"items {_names(value.values())}")
    return text


def _note(text: str) -> str:
    return f"\x01{text}\x02"


def _names(items: Iterable[Any]) -> str:
    """The classes of some items, in their order, those that repeat with their number."""
    runs = [(name, len(list(group))) for name, group in itertools.groupby(map(class_name, items))]
    return " ".join([f"{count} {name}" if count > 1 else name for name, count in runs])


def class_name(item: Any) -> str:
    """The class of an item; numpy's numbers count as Python's: they become those on their way from a worker."""
    if isinstance(item, np.ndarray):
        return "ndarray"
    return type(item.item() if isinstance(item, np.generic) else item).__name__


def without_notes(text: str) -> str:
    """The canonical token of an identity: what it is called where no other output has the same one."""
    return NOTE.sub("", text)


def with_notes(text: str) -> str:
    """An identity for people, with its notes in brackets."""
    return NOTE.sub(r" (\1)", text)
