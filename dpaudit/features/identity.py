"""Identity of outputs: when two outputs are the same one, for audits and certificates alike.

An audit compares canonical tokens (`dpaudit.features.outcomes.canonical`). Beside them it reads the order of the keys
of a mapping, the classes of the items of containers, the type of an array and the text of an exception
(`dpaudit.features.visitor`), and what stands beside a value that carries notes. `identity` is the token with all of
these as notes. Of an output that is itself a list or array of numbers an audit does not read the classes, since a batch
of such outputs is held as doubles: there the identity is finer, as a proof must be.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.features.outcomes import DEEPEST, canonical, plain, written
from dpaudit.subjects.call_outcomes import Failed, Noted

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
    return written(value, depth, identity) + "".join([f"\x01{note}\x02" for note in _notes(value, depth)])


def _notes(value: Any, depth: int) -> Iterator[str]:
    """What is read of a value beside its token, and what that says of its items."""
    bare = plain(value)
    if isinstance(bare, Failed):
        yield repr(bare.message)
    elif depth > DEEPEST:
        pass
    elif isinstance(bare, Mapping):
        keys = [canonical(key, depth + 1) for key in bare]
        if keys != sorted(keys):
            yield f"keys {', '.join(keys)}"
        if keys:
            yield f"items {class_names(bare.values())}"
    elif isinstance(bare, set | frozenset):
        if not bare:
            yield "no members"
    elif isinstance(bare, Sequence) and not isinstance(bare, str | bytes) and bare:
        is_array = isinstance(value, np.ndarray)
        yield value.dtype.str if is_array else f"{class_name(bare)} of {class_names(bare)}"
    if isinstance(value, Noted) and value.beside:
        yield f"beside {identity(value.beside, depth + 1)}"


def class_names(items: Iterable[Any]) -> str:
    """The classes of some items, in their order, those that repeat with their number."""
    names = map(_name_of_class, map(type, items))
    runs = [(name, len(list(group))) for name, group in itertools.groupby(names)]
    return " ".join([f"{count} {name}" if count > 1 else name for name, count in runs])


def class_name(item: Any) -> str:
    """The class of an item; numpy's numbers count as Python's: they become those on their way from a worker.

    Examples
    --------
    >>> class_name(np.int64(1)), class_name(1.5), class_name(np.arange(2))
    ('int', 'float', 'ndarray')
    """
    kind: Any = type(item)
    return _name_of_class(kind)


@functools.cache
def _name_of_class(kind: Any) -> str:
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
