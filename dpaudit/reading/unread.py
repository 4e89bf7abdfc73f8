"""What of an output nobody looks at one by one, in words, with an example.

A rule that looks at whole outputs still sees whether two of them are equal. But what is beyond these limits has no
threshold, no parity and no place of its own, and a leak that is there may not be found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from dpaudit.subjects.call_outcomes import Failed, Opaque

LONGEST_EXAMPLE = 40  # characters of an example that are shown
MOST_PARTS = 10_000  # of one output that are gone through


@dataclasses.dataclass(frozen=True)
class Limits:
    """How far outputs are read: levels, characters at places, of numbers and words, bytes, positions, keys in order."""

    levels: int
    letters: int
    text: int
    bytes: int
    positions: int
    keys: int


@dataclasses.dataclass(frozen=True)
class Unread:
    """What is not read, where the first of it is, and how that begins."""

    what: str
    place: str
    example: str

    def __str__(self) -> str:
        return f"{self.what}, such as {self.example} in {self.place}"


def unread(outputs: Iterable[Any], limits: Limits) -> tuple[Unread, ...]:
    """What is not read of some outputs, which are plain data; each kind once, with its first example.

    Examples
    --------
    >>> limits = Limits(levels=3, letters=64, text=2_000, bytes=200, positions=256, keys=64)
    >>> [one.what for one in unread([{"a": "x" * 70}, {"a": [[[1.5]]]}], limits)]
    ['characters of texts from 65 on, each at its place', 'what is nested more than 3 levels deep']
    >>> print(*unread([{"a": [[[1.5]]]}], limits))
    what is nested more than 3 levels deep, such as 1.5 in the output['a'][0][0][0]
    """
    found: dict[str, Unread] = {}
    for output in outputs:
        for one in _of_output(output, limits):
            found.setdefault(one.what, one)
    return tuple(found.values())


def _of_output(output: Any, limits: Limits) -> Iterator[Unread]:
    waiting: list[tuple[Any, str, int]] = [(output, "the output", 0)]
    for _ in range(MOST_PARTS):
        if not waiting:
            return
        value, place, depth = waiting.pop(0)
        what = _beyond(value, depth, limits)
        if what:
            yield Unread(what, place, _example(value))
        if depth <= limits.levels:
            waiting += [(part, f"{place}{step}", depth + 1) for step, part in _parts(value)]


def _beyond(value: Any, depth: int, limits: Limits) -> str:
    """What of a value itself is not read; empty for nothing."""
    if depth > limits.levels:
        return f"what is nested more than {limits.levels} levels deep"
    if isinstance(value, str):
        if len(value) > limits.text:
            return f"numbers and words of texts behind character {limits.text:,}"
        return f"characters of texts from {limits.letters + 1} on, each at its place" * (len(value) > limits.letters)
    if isinstance(value, bytes):
        return f"bytes from {limits.bytes + 1} on, each at its place" * (len(value) > limits.bytes)
    if isinstance(value, Mapping):
        return f"the order of more than {limits.keys} keys" * (len(value) > limits.keys)
    if isinstance(value, Opaque) and value.state is None:
        return f"what a {value.kind} holds beside its printed form"
    is_long = isinstance(value, Sequence) and len(value) > limits.positions
    return f"positions of lists from {limits.positions + 1} on, each by itself" * is_long


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, str | bytes | Failed):
        return []
    if isinstance(value, Opaque):
        return [] if value.state is None else [(f".{name}", part) for name, part in value.state.items()]
    if isinstance(value, Mapping):
        return [(f"[{key!r:.{LONGEST_EXAMPLE}}]", part) for key, part in value.items()]
    if isinstance(value, Set):
        return [("{…}", part) for part in value]
    return [(f"[{k}]", part) for k, part in enumerate(value)] if isinstance(value, Sequence) else []


def _example(value: Any) -> str:
    text = value.kind if isinstance(value, Opaque) else repr(value)
    return text if len(text) <= LONGEST_EXAMPLE else f"{text[:12]}…"
