"""Identity of outputs: when two outputs are the same one, for audits and certificates alike.

An audit compares canonical tokens (`dpaudit.features.outcomes.canonical`). Beside them it reads the order of the keys
of a mapping, the classes of the items of containers, the type of an array and the text of an exception
(`dpaudit.features.visitor`), and what stands beside a value that carries notes. `identity` is the token with all of
these as notes. Of an output that is itself a list or array of numbers an audit does not read the classes, since a batch
of such outputs is held as doubles: there the identity is finer, as a proof must be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.features.forms import class_name, class_names
from dpaudit.features.outcomes import DEEPEST, canonical, plain, written
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
    return written(value, depth, identity) + "".join([f"\x01{note}\x02" for note in _notes(value, depth)])


def _notes(value: Any, depth: int) -> Iterator[str]:
    """Notes on what is read of a value beside its token, classes of its items included."""
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
        if isinstance(bare, frozenset):
            yield "frozenset"
        if not bare:
            yield "no members"
    elif isinstance(bare, Sequence) and not isinstance(bare, str | bytes) and bare:
        is_array = isinstance(value, np.ndarray)
        yield value.dtype.str if is_array else f"{class_name(bare)} of {class_names(bare)}"
    if isinstance(value, Noted | Opaque) and value.beside:
        yield f"beside {identity(value.beside, depth + 1)}"


def without_notes(text: str) -> str:
    """The canonical token of an identity: what it is called where no other output has the same one."""
    return NOTE.sub("", text)


def with_notes(text: str) -> str:
    """An identity for people, with its notes in brackets."""
    return NOTE.sub(r" (\1)", text)
