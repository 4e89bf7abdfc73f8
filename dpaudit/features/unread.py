"""Parts of an output that nobody looks at one by one, in words, with an example.

A rule that looks at whole outputs still sees whether two of them are equal. But what is beyond these limits has no
threshold, no parity and no place of its own, and a leak that is there may not be found.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from dpaudit.features.forms import class_name, class_names, form_of
from dpaudit.subjects.call_outcomes import Failed, Noted, Opaque

MAX_EXAMPLE = 40  # characters of an example that are shown
MAX_PARTS = 10_000  # of one output that are gone through
NUMBERS = "in which form numbers are held"


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits up to which outputs are read. Each bounds the time or the memory that one output takes.

    The report names what lies beyond.
    """

    max_depth: int = 40  # levels of nesting, as far as equality of outputs looks
    max_places: int = 3_000  # numbers of one sequence that have columns of their own: a small image
    max_items: int = 64  # items of a sequence that holds more than numbers: each is visited by itself
    max_parts: int = 256  # keys of one mapping, and characters of a text, that have columns of their own
    max_text: int = 20_000  # characters of a text that are parsed
    max_columns: int = 16  # fields of the rows of a list that are read as columns
    modulus: int = 2**6 * 3**3 * 5**2 * 7**2 * 11 * 13 * 17 * 19 * 23 * 29  # of large integers: holds small moduli


LIMITS = Limits()


@dataclasses.dataclass(frozen=True)
class Unread:
    """Unread part of outputs, where the first of it is, and how that begins."""

    what: str
    place: str
    example: str

    def __str__(self) -> str:
        return f"{self.what}, such as {self.example} in {self.place}"


def unread(outputs: Iterable[Any], limits: Limits = LIMITS, forms: Iterable[str] = ()) -> tuple[Unread, ...]:
    """Unread parts of some outputs, which are plain data; each kind once, with its first example.

    Equal values may be held in several forms (see `_forms`): these are named where outputs differ in them at one place.
    `forms` are those of outputs that were read as numbers.

    Examples
    --------
    >>> limits = Limits(max_depth=3)
    >>> [one.what for one in unread([{"a": "x" * 300}, {"a": [[[1.5]]]}], limits)]
    ['characters of texts from 257 on, each at its place', 'what is nested more than 3 levels deep']
    >>> print(*unread([{"a": [[[1.5]]]}], limits))
    what is nested more than 3 levels deep, such as 1.5 in the output['a'][0][0][0]
    """
    found: dict[str, Unread] = {}
    varied: dict[tuple[str, str], set[str]] = {(NUMBERS, "the output"): {form for form in forms if form}}
    for output in outputs:
        for value, place, depth in itertools.islice(parts_of(output, limits), MAX_PARTS):
            what = _beyond(value, depth, limits)
            if what:
                found.setdefault(what, Unread(what, place, _example(value)))
            for what, form in _forms(value, depth):
                varied.setdefault((what, place), set()).add(form)
    for (what, place), several in varied.items():
        if len(several) > 1:
            found.setdefault(what, Unread(what, place, " and ".join(sorted(several)[:2])))
    return tuple(found.values())


def is_unread(value: Any) -> bool:
    """Tell whether of a part of plain data no more than its class was read."""
    return type(value) is Opaque and value.text is None and value.state is None and "state" not in value.beside


def _forms(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """In which form a value is held, where nothing of that is read: numbers that are outputs, keys, members, NaN."""
    is_array = isinstance(value, np.ndarray)
    if depth == 0 and not (isinstance(value, Noted) and value.is_more) and (form := form_of(value)):
        yield NUMBERS, form
    if depth == 0 and (is_array or isinstance(value, list | tuple)) and not (value.size if is_array else value):
        yield "the class and shape of what is empty", f"{class_name(value)} {np.shape(value)}"
    is_real = value != value if isinstance(value, float) else is_array and value.dtype.kind == "f"
    if is_real and np.any(nan := np.isnan(value)):
        bits = np.unique(np.atleast_1d(np.asarray(value))[np.atleast_1d(nan)].astype(float).view(np.uint64))
        yield "the bits of NaN", " ".join(f"{one:x}" for one in bits.tolist())
    if isinstance(value, Mapping) and not all(type(key) is str for key in value):
        yield "the classes of keys", class_names(value)
    if isinstance(value, Set):
        yield "the classes of members", " ".join(sorted({class_name(one) for one in value}))


def parts_of(output: Any, limits: Limits = LIMITS) -> Iterator[tuple[Any, str, int]]:
    """An output and its parts, with their places and depths."""
    waiting: collections.deque[tuple[Any, str, int]] = collections.deque([(output, "the output", 0)])
    while waiting:
        value, place, depth = waiting.popleft()
        yield value, place, depth
        if depth <= limits.max_depth:
            waiting += [(part, f"{place}{step}", depth + 1) for step, part in _parts(value)]


def _beyond(value: Any, depth: int, limits: Limits) -> str:
    """Unread part of a value itself; empty for nothing."""
    if depth > limits.max_depth:
        return f"what is nested more than {limits.max_depth} levels deep"
    if isinstance(value, str):
        if len(value) > limits.max_text:
            return f"numbers and words of texts behind character {limits.max_text:,}"
        is_long = len(value) > limits.max_parts
        return f"characters of texts from {limits.max_parts + 1:,} on, each at its place" * is_long
    if isinstance(value, bytes):
        return f"bytes from {limits.max_places + 1:,} on, each at its place" * (len(value) > limits.max_places)
    if isinstance(value, Mapping):
        return f"keys of mappings from {limits.max_parts + 1:,} on" * (len(value) > limits.max_parts)
    if isinstance(value, np.ndarray):
        is_long = value.size > limits.max_places
        return f"numbers of arrays from {limits.max_places + 1:,} on, each by itself" * is_long
    if isinstance(value, Opaque) and value.state is None and "state" not in value.beside:
        return f"what a {value.kind} holds beside its printed form"
    if not isinstance(value, Sequence) or len(value) <= limits.max_items:
        return ""
    if all(isinstance(item, int | float | np.number | None) for item in value):
        is_long = len(value) > limits.max_places
        return f"positions of lists of numbers from {limits.max_places + 1:,} on, each by itself" * is_long
    return f"positions of lists from {limits.max_items + 1:,} on, each by itself"


def _parts(value: Any) -> list[tuple[str, Any]]:
    beside = value.beside if isinstance(value, Noted | Opaque) else {}
    return [*_contents(value), *((f" beside {name}", part) for name, part in beside.items())]


def _contents(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, str | bytes | Failed):
        return []
    if isinstance(value, Opaque):
        return [] if value.state is None else [(f".{name}", part) for name, part in value.state.items()]
    if isinstance(value, Mapping):
        return [(f"[{key!r:.{MAX_EXAMPLE}}]", part) for key, part in value.items()]
    if isinstance(value, Set):
        return [("{…}", part) for part in value]
    return [(f"[{k}]", part) for k, part in enumerate(value)] if isinstance(value, Sequence) else []


def _example(value: Any) -> str:
    text = value.kind if isinstance(value, Opaque) else repr(value)
    return text if len(text) <= MAX_EXAMPLE else f"{text[:12]}…"
