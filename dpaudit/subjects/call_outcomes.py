"""Outcomes of calls that are no outputs of the subject's own, or that are not seen as such.

A call that raised, or that ended its worker process, is an outcome like any other; so is an output of a class that only
a worker knows. What an output holds beside its contents, such as the attributes of a table, is carried as notes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

PROGRAM_DIED = "ProgramDied"  # the kind of a call in which a program ended


@dataclasses.dataclass(frozen=True)
class Failed:
    """The outcome of one call that raised; `kind` is the exception's type, `message` its text.

    Of the first one of a kind, `place` and `traceback` say where it came from (`dpaudit.subjects.tracebacks`). They are
    no part of the outcome: two that differ in them alone are equal, and no rule sees them. `held` has its class, and
    the same of those that led to it with their texts; `is_whole` says whether it holds no more than these and its text.
    """

    kind: str
    message: str
    place: str = dataclasses.field(default="", compare=False, repr=False)
    traceback: str = dataclasses.field(default="", compare=False, repr=False)
    held: tuple[Any, ...] = dataclasses.field(default=(), compare=False, repr=False, kw_only=True)
    is_whole: bool = dataclasses.field(default=True, compare=False, repr=False, kw_only=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.message, self.place, self.traceback)  # not its class, which may be anything

    @property
    def token(self) -> str:
        """Token that all outcomes of this kind share."""
        return f"raised {self.kind}"

    @property
    def described(self) -> str:
        """Its kind, its text and its place, on one line."""
        text = f"{self.kind}: {self.message}".removesuffix(": ").removesuffix(".")
        return f"{text} in {self.place}" if self.place else text

    @property
    def bare(self) -> Failed:
        """The same outcome without where it came from."""
        return dataclasses.replace(self, place="", traceback="") if self.place or self.traceback else self

    @property
    def took_process(self) -> bool:
        """Tell whether the process that made the call ended with it: a program's, or an isolated worker."""
        return self.kind == PROGRAM_DIED


@dataclasses.dataclass(frozen=True)
class Ended(Failed):
    """The outcome of one call in a worker process that did not come back: `kind` says how it ended.

    For example "time-out", "SIGSEGV", "exit 3"; `message` is what it printed last.
    """

    @property
    def token(self) -> str:
        """Token that all outcomes of this kind share."""
        return f"ended by {self.kind}"

    @property
    def took_process(self) -> bool:
        """Tell whether the process that made the call ended with it."""
        return True


@dataclasses.dataclass(frozen=True, eq=False)
class Opaque:
    """An output of another class as plain data: the name of its class with its attributes or a text.

    `state` maps the names of attributes to plain data; `text` is a printed form; neither: there is nothing to see.
    `beside` has notes, as those of `Noted`.
    """

    kind: str
    state: dict[str, Any] | None = None
    text: str | None = None
    beside: dict[str, Any] = dataclasses.field(default_factory=dict)


class Noted:
    """Plain data with notes: what the output was beside its contents, by names.

    Equal to, and read as, the value without them, but for the columns and the identity of an output.
    """

    beside: dict[str, Any]

    @property
    def bare(self) -> Any:
        """The value without its notes."""
        if isinstance(self, np.ndarray):
            return np.asarray(self)
        return next(kind for kind, with_notes in NOTED.items() if isinstance(self, with_notes))(self)

    @property
    def is_more(self) -> bool:
        """Tell if notes say more than in which form a value is held: they are no part of what numbers are read as."""
        return not self.beside.keys() <= FORM


class NotedArray(np.ndarray[Any, Any], Noted):
    """An array with notes."""

    def __new__(cls, array: Any) -> NotedArray:
        return np.asarray(array).view(cls)

    def __array_finalize__(self, array: Any) -> None:
        self.beside = {}


FORM = frozenset({"class", "type", "order", "mask", "read-only"})  # notes that say in which form numbers are held
BARE: tuple[type, ...] = (dict, list, tuple, str, bytes, int, float, set, frozenset)
NOTED: dict[type, type] = {
    kind: type(f"Noted{kind.__name__.title()}", (kind, Noted), {"__module__": __name__}) for kind in BARE
}
NOTED[np.ndarray] = NotedArray
globals().update({kind.__name__: kind for kind in NOTED.values()})  # where pickle looks for them


def noted(value: Any, beside: dict[str, Any]) -> Any:
    """A value with notes beside it; the value itself where there are none.

    A value of a class that cannot carry any becomes `Opaque`, which holds it.

    Examples
    --------
    >>> one = noted([1, 2], {"name": "a"})
    >>> one == [1, 2], one.beside
    (True, {'name': 'a'})
    """
    if not beside:
        return value
    kind = type(value)
    if kind is Opaque:
        return dataclasses.replace(value, beside={**value.beside, **beside})
    if issubclass(kind, Noted):
        return noted(value.bare, {**value.beside, **beside})
    if kind not in NOTED:
        return Opaque(str(beside.get("class", kind.__qualname__)), state={"value": value}, beside=beside)
    found = NOTED[kind](value)
    found.beside = beside
    return found
