"""The limits of an isolated subject, and their short form for the command line: `seconds=1,memory=512M`."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from typing import Any

from dpaudit.arguments import number
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import number_text

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SHORT = {"seconds": "seconds_a_call", **{name: name for name in ("memory", "output", "patience", "timing")}}
OUTPUTS_A_LIMIT = 10_000  # outputs for which a vectorised call, or a request to a program, has the time of one call
_SIZE = re.compile(r"(\d+)\s*([KMG]?)B?", re.IGNORECASE)
DEFAULTS = ("", "on", "yes", "true", "default")


@dataclasses.dataclass(frozen=True)
class Isolation:
    """Limits of the worker processes that a subject is called in.

    Parameters
    ----------
    seconds_a_call : float
        Above 0, by the wall clock. A call that takes longer is killed, and its outcome is a time-out. A vectorised call
        may take this long for each 10,000 outputs begun.
    memory : int
        Bytes that a process of the subject may take beside what it starts with, at least 2**20. Text such as "512M" is
        read too. It is a limit of address space, a process each.
    output : int
        Bytes that a call may return, and that it may print, at least 4,096; text as for `memory`.
    patience : float
        Seconds, above 0, that may be lost altogether to time-outs of calls and to ending what calls leave running. When
        it is used up the audit ends as an error, unless it has found a violation.
    timing : int
        0, or at least 100: calls of each pair by which the time that a call takes is examined, as a finding of its
        own (`AuditResult.side_findings`, kind "timing").

    Examples
    --------
    >>> Isolation(seconds_a_call=1, memory="512M").memory
    536870912
    >>> str(Isolation.parse("seconds=1,memory=512M"))
    'seconds=1,memory=512M,output=64M,patience=60,timing=0'
    """

    seconds_a_call: float = 10.0
    memory: int = 1 << 30
    output: int = 64 << 20
    patience: float = 60.0
    timing: int = 0

    def __post_init__(self) -> None:
        for name in ("seconds_a_call", "patience"):
            wanted = "a positive number of seconds"
            seconds = number(f"{name} of isolation", getattr(self, name), wanted, lambda v: 0.0 < v < math.inf)
            object.__setattr__(self, name, seconds)
        for name, least in (("memory", 1 << 20), ("output", 4_096)):
            given = value = getattr(self, name)
            if isinstance(given, str):
                found = _SIZE.fullmatch(given.strip())
                value = int(found[1]) * UNITS[found[2].upper()] if found else None
            if type(value) is not int or value < least:
                raise UsageError(f"{name} of isolation must be {least:,} bytes or more, such as '512M', got {given!r}.")
            object.__setattr__(self, name, value)
        calls = self.timing
        if isinstance(calls, bool) or not isinstance(calls, int) or (calls != 0 and calls < 100):
            raise UsageError(f"timing of isolation must be 0 or at least 100 calls, got {calls!r}.")

    @classmethod
    def parse(cls, text: str) -> Isolation:
        """Limits from their short form, `name=value` with commas; those that are not named have their defaults.

        Names: seconds, memory, output (bytes, or with K, M, G), patience, timing. "on" is all defaults.

        `UsageError` if a name is unknown, stands twice, or has a value that makes no sense.
        """
        stated: dict[str, Any] = {}
        if text.strip().lower() in DEFAULTS:
            return cls()
        for part in text.split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or name not in SHORT or SHORT[name] in stated:
                known = ", ".join(f"{known}=..." for known in SHORT)
                given = f"{part.strip()!r} in {text!r}"
                raise UsageError(f"isolation must be 'on' or limits {known}, each once, got {given}.")
            try:
                stated[SHORT[name]] = {"memory": str, "output": str, "timing": int}.get(name, float)(value)
            except ValueError as error:
                raise UsageError(f"{name} of isolation must be a number, got {value!r}.") from error
        return cls(**stated)

    def __str__(self) -> str:
        return (
            f"seconds={number_text(self.seconds_a_call)},memory={_size(self.memory)},output={_size(self.output)},"
            f"patience={number_text(self.patience)},timing={self.timing}"
        )

    def seconds_for(self, size: int) -> float:
        """Seconds that a vectorised call for `size` outputs may take."""
        return self.seconds_a_call * max(1, math.ceil(size / OUTPUTS_A_LIMIT))


def as_isolation(value: Any) -> Isolation | None:
    """Limits from what a caller states: None, False or "off" (none), True (defaults), a short form, or an `Isolation`.

    `UsageError` if it is none of these, or this system cannot fork processes.
    """
    if value is None or value is False or (isinstance(value, str) and value.strip().lower() == "off"):
        return None
    if value is True:
        value = Isolation()
    if isinstance(value, str):
        value = Isolation.parse(value)
    if not isinstance(value, Isolation):
        raise UsageError(f"isolation must be an Isolation, True, or a text such as 'seconds=1', got {value!r}.")
    if not hasattr(os, "fork"):
        raise UsageError("isolation must be left out on this system, which cannot fork processes, got one.")
    return value


def _size(value: int) -> str:
    unit = next((unit for unit in ("G", "M", "K") if value % UNITS[unit] == 0), "")
    return f"{value // UNITS[unit]}{unit}"
