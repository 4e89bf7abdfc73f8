"""Where two inputs of a pair differ, for inputs that are too long for a report and begin in the same way."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpaudit.reports.wording import clean
from dpaudit.saved_inputs import is_redacted

SHOWN = 3  # places where they differ
VALUE = 60  # characters of a value there
CONTEXT = 20  # characters before the first one that differs, in a long value
DEEPEST = 20


def apart(x: Any, x_prime: Any, width: int) -> str:
    """Where two inputs differ whose forms of `width` characters are the same; empty where these forms differ.

    Examples
    --------
    >>> apart({"a": 0, "b": 1}, {"a": 0, "b": 2}, 8)
    "x and x′ differ at ['b']: 1 against 2"
    """
    if is_redacted(x) or clean(x, width) != clean(x_prime, width):
        return ""
    found = list(itertools.islice(_places(x, x_prime, ""), SHOWN + 1))
    parts = []
    for place, a, b in found[:SHOWN]:
        first, second = _values(a, b)
        parts.append(f"at {clean(place, VALUE)}: {first} against {second}" if place else f"{first} against {second}")
    more = "; and in more places" if len(found) > SHOWN else ""
    return f"x and x′ differ {'; '.join(parts)}{more}" if parts else ""


def _places(a: Any, b: Any, place: str, depth: int = 0) -> Iterator[tuple[str, Any, Any]]:
    """Places with the two values there, in the order of `a`; `_Absent` where there is none."""
    if depth < DEEPEST and isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in a:
            yield from _places(a[key], b.get(key, _Absent), f"{place}[{clean(repr(key), VALUE)}]", depth + 1)
        for key in b:
            if key not in a:
                yield f"{place}[{clean(repr(key), VALUE)}]", _Absent, b[key]
    elif depth < DEEPEST and isinstance(a, list | tuple) and type(a) is type(b) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _places(one, other, f"{place}[{index}]", depth + 1)
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype:
        for row in np.argwhere(a != b).tolist():
            at = tuple(row)
            if repr(a[at]) != repr(b[at]):  # as of NaN in both
                yield f"{place}[{', '.join(map(str, at))}]", a[at], b[at]
    elif a is not b and repr(a) != repr(b):
        yield place, a, b


class _Absent:
    """Stands for the value of a key that an input has not."""


def _values(a: Any, b: Any) -> tuple[str, str]:
    """Two different values as texts that differ, where their printed forms do."""
    texts = ["nothing" if value is _Absent else value if isinstance(value, str) else repr(value) for value in (a, b)]
    shown = [clean(text, VALUE) for text in texts]
    if shown[0] == shown[1]:
        start = next(
            (k for k, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), min(map(len, texts))
        )
        start = max(0, start - CONTEXT)
        shown = ["…" + clean(text[start:], VALUE) for text in texts]
    return shown[0], shown[1]
