"""Where two inputs of a pair differ, for inputs whose names do not show it: neighbours mostly begin in the same way."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.reports.wording import clean
from dpaudit.saved_inputs import is_redacted

SHOWN = 3  # places where they differ
VALUE = 60  # characters of a value there
CONTEXT = 20  # characters before the first one that differs, in a long value
DEEPEST = 20
NAME = 40  # characters of an input's name (`Pair.x_id`)


def apart(x: Any, x_prime: Any, width: int = NAME) -> str:
    """Where two inputs differ; empty where forms of `width` characters show it: both are whole, and are not the same.

    Examples
    --------
    >>> apart({"a": 0, "b": 1}, {"a": 0, "b": 2}, 8)
    "x and x′ differ at ['b']: 1 against 2"
    """
    forms = [clean(value, width + 1) for value in (x, x_prime)]
    if is_redacted(x) or (forms[0] != forms[1] and max(map(len, forms)) <= width):
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
    elif depth < DEEPEST and isinstance(a, list | tuple) and type(a) is type(b):
        start, stop = _inserted(a, b)
        for index, (one, other) in enumerate(zip(a[:start], b[:start], strict=True)):
            yield from _places(one, other, f"{place}[{index}]", depth + 1)
        for index in range(start, stop):
            more = (a[index], _Absent) if len(a) > len(b) else (_Absent, b[index])
            yield f"{place}[{index}]", *more
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype:
        for row in np.argwhere(a != b).tolist():
            at = tuple(row)
            if repr(a[at]) != repr(b[at]):  # as of NaN in both
                yield f"{place}[{', '.join(map(str, at))}]", a[at], b[at]
    elif depth < DEEPEST and _are_rows(a, b):
        yield from _places(list(a), list(b), place, depth + 1)
    elif _are_different(a, b):
        yield place, a, b


def _inserted(a: Sequence[Any], b: Sequence[Any]) -> tuple[int, int]:
    """Where the longer one has records that the other lacks (first, one past the last), the others being the same.

    Where that is nowhere, at its end; and of two that are as long, behind both.
    """
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    more = len(longer) - len(shorter)
    start = next((k for k, (one, other) in enumerate(zip(a, b, strict=False)) if _are_different(one, other)), None)
    if not more or start is None or any(map(_are_different, longer[start + more :], shorter[start:])):
        start = len(shorter)
    return start, start + more


def _are_rows(a: Any, b: Any) -> bool:
    """Whether both are arrays of the same records, of one more often than of the other."""
    arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return arrays and a.ndim == b.ndim > 0 and a.shape[1:] == b.shape[1:] and len(a) != len(b)


def _are_different(a: Any, b: Any) -> bool:
    return a is not b and repr(a) != repr(b)


class _Absent:
    """Stands for the value of a key that an input has not."""


def _values(a: Any, b: Any) -> tuple[str, str]:
    """Two different values as texts that differ, where their printed forms do."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in (a, b)]
    texts = ["nothing" if value is _Absent else value if isinstance(value, str) else repr(value) for value in plain]
    shown = [clean(text, VALUE) for text in texts]
    if shown[0] == shown[1]:
        start = next(
            (k for k, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), min(map(len, texts))
        )
        start = max(0, start - CONTEXT)
        shown = ["…" + clean(text[start:], VALUE) for text in texts]
    return shown[0], shown[1]
