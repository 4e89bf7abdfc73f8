"""Outcomes of calls that are no outputs of the subject's own, or that are not seen as such.

A call that raised, or that ended its worker process, is an outcome like any other; so is an output of a class that only
a worker knows.
"""

from __future__ import annotations

import dataclasses
from typing import Any

PROGRAM_DIED = "ProgramDied"  # the kind of a call in which a program ended


@dataclasses.dataclass(frozen=True)
class Failed:
    """The outcome of one call that raised; `kind` is the exception's type, `message` its text."""

    kind: str
    message: str

    @property
    def token(self) -> str:
        """What is the same for all outcomes of this kind."""
        return f"raised {self.kind}"

    @property
    def described(self) -> str:
        """Its kind and its text, on one line."""
        return f"{self.kind}: {self.message}".removesuffix(": ").removesuffix(".")

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
