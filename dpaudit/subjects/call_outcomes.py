"""Outcomes of calls that are no outputs of the subject's own, or that are not seen as such.

A call that raised, or that ended its worker process, is an outcome like any other; so is an output of a class that only
a worker knows. What an output holds beside its contents, such as the attributes of a table, is carried as notes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

PROGRAM_DIED = "ProgramDied"  # the kind of a call in which a program ended


@dataclasses.dataclass(frozen=True)
class Failed:
    """The outcome of one call that raised; `kind` is the exception's type, `message` its text.

    Of the first one of a kind, `place` and `traceback` say where it came from (`dpaudit.subjects.tracebacks`). They are
    no part of the outcome: two that differ in them alone are equal, and no rule sees them.
    """

    kind: str
    message: str
    place: str = dataclasses.field(default="", compare=False, repr=False)
    traceback: str = dataclasses.field(default="", compare=False, repr=False)

    @property
    def token(self) -> str:
        """What is the same for all outcomes of this kind."""
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
        """Whether the process that made the call ended with it: a program's, or an isolated worker."""
        return self.kind == PROGRAM_DIED


@dataclasses.dataclass(frozen=True)
class Ended(Failed):
    """The outcome of one call in a worker process that did not come back: `kind` says how it ended.

    For example "time-out", "SIGSEGV", "exit 3"; `message` is what it printed last.
    """

    @property
    def token(self) -> str:
        """What is the same for all outcomes of this kind."""
        return f"ended by {self.kind}"

    @property
    def took_process(self) -> bool:
        """Whether the process that made the call ended with it."""
        return True


@dataclasses.dataclass(frozen=True, eq=False)
class Opaque:
    """An output of another class as plain data: the name of its class with its attributes or a text.

    `state` maps the names of attributes to plain data; `text` is a printed form; neither: there is nothing to see.
    """

    kind: str
    state: dict[str, Any] | None = None
    text: str | None = None


class Noted:
    """Plain data with notes: what the output was beside its contents, by names.

    Equal to, and read as, the value without them, but for the columns and the identity of an output.
    """

    beside: dict[str, Any]


class NotedDict(dict[Any, Any], Noted):
    """A dictionary with notes."""


class NotedList(list[Any], Noted):
    """A list with notes."""


class NotedTuple(tuple[Any, ...], Noted):
    """A tuple with notes."""


class NotedText(str, Noted):
    """A text with notes."""


_NOTED: tuple[tuple[type, type], ...] = ((dict, NotedDict), (list, NotedList), (tuple, NotedTuple), (str, NotedText))


def noted(value: Any, beside: dict[str, Any]) -> Any:
    """A value with notes beside it; the value itself where there are none, or its class cannot carry any.

    Examples
    --------
    >>> one = noted([1, 2], {"name": "a"})
    >>> one == [1, 2], one.beside
    (True, {'name': 'a'})
    """
    if not beside:
        return value
    for kind, with_notes in _NOTED:
        if type(value) in (kind, with_notes):
            found = with_notes(value)
            found.beside = {**getattr(value, "beside", {}), **beside}
            return found
    return value
