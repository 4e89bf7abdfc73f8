"""Difference of two inputs whose names do not show it: neighbours mostly begin in the same way.

Inputs may be large, and reports ask for many pairs: arrays are compared as a whole, lists up to `MAX_ENTRIES`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.differences import is_frame
from dpaudit.reports.wording import clean
from dpaudit.results.saved_inputs import is_redacted

SHOWN = 3  # places where they differ
VALUE = 60  # characters of a value there
CONTEXT = 20  # characters before the first one that differs, in a long value
NAME = 40  # characters of an input's name (`Pair.x_id`)
MAX_ENTRIES = 200_000  # entries that are compared one by one, or rows of plain values
ROW = 100  # entries of a row that take about as long as the row itself
PLAIN = frozenset((int, bool, str, bytes, type(None), float))  # equal where they have one type and are equal
WITH_NAN = "fcmM"  # kinds of arrays that may hold what is not equal to itself
PLAIN_ARRAYS = (np.ndarray, np.memmap, np.recarray)  # other classes may hold more than their values, as a mask

Places = Iterator[tuple[str, Any, Any]]


def apart(x: Any, x_prime: Any, width: int = NAME) -> str:
    """Say where two inputs differ; empty where forms of `width` characters show it: both whole, and not the same.

    Empty as well where to find it out would take too long, where a value cannot be printed, and of two tables, of
    which the second one's name is the difference.

    Examples
    --------
    >>> apart({"a": 0, "b": 1}, {"a": 0, "b": 2}, 8)
    "x and x′ differ at ['b']: 1 against 2"
    """
    with contextlib.suppress(Exception):  # a value may misbehave when it is compared or printed
        return "" if is_redacted(x) or (is_frame(x) and is_frame(x_prime)) else _told(x, x_prime, width)
    return ""


def _told(x: Any, x_prime: Any, width: int) -> str:
    if _is_small(x, width) and _is_small(x_prime, width):
        forms = [clean(value, width + 1) for value in (x, x_prime)]
        if forms[0] != forms[1] and max(map(len, forms)) <= width:
            return ""
    found = list(itertools.islice(_Comparison().places(x, x_prime, ""), SHOWN + 1))
    parts = []
    for place, a, b in found[:SHOWN]:
        first, second = _values(a, b)
        parts.append(f"at {clean(place, VALUE)}: {first} against {second}" if place else f"{first} against {second}")
    more = "; and in more places" if len(found) > SHOWN else ""
    return f"x and x′ differ {'; '.join(parts)}{more}" if parts else ""


def _is_small(value: Any, width: int) -> bool:
    """Tell whether a form of `width` characters may show the value: not for containers with more entries."""
    if not isinstance(value, list | tuple | Mapping):
        return True
    items = value.values() if isinstance(value, Mapping) else value
    return len(value) <= width and all(_is_small(item, width) for item in items)


class _Comparison:
    """One comparison of two inputs; `left` is how many entries may still be compared, after which it is given up."""

    def __init__(self) -> None:
        self.left = MAX_ENTRIES

    def places(self, a: Any, b: Any, place: str) -> Places:
        """Places with the two values there, in the order of `a`; `_Absent` where there is none."""
        if _have_rows(a, b):
            yield from self._rows(a, b, place)
        elif _have_parts(a, b):
            for key in [*a, *(key for key in b if key not in a)]:
                yield from self.places(a.get(key, _Absent), b.get(key, _Absent), f"{place}[{clean(repr(key), VALUE)}]")
        elif self.are_different(a, b):
            yield place, a, b

    def are_different(self, a: Any, b: Any) -> bool:
        """Tell whether two values differ: by their printed forms where there is no better way."""
        if a is not b and _have_parts(a, b):
            return any(self.places(a, b, ""))
        self._spend(1)
        if a is b:
            return False
        kind = type(a)
        if kind is not type(b) or (isinstance(a, np.ndarray) and (a.ndim > 0 or a.shape != b.shape)):
            return True
        if kind is float or issubclass(kind, np.floating):  # zeros of both signs are the same, as in arrays
            return bool(a != b and (a == a or b == b))
        return bool(a != b) if kind in PLAIN else repr(a) != repr(b)

    def _spend(self, entries: int) -> None:
        self.left -= entries
        if self.left < 0:
            raise ValueError("too many entries")

    def _rows(self, a: Any, b: Any, place: str) -> Places:
        """Of two lists or arrays of records: those that one has more, or else all that differ."""
        if self._is_same_row(a, b):
            return
        least, more = min(len(a), len(b)), abs(len(a) - len(b))
        longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
        self._spend(0 if _are_plain(a, b) or least <= self.left else least)
        start = next(self._unlike(longer[:least], shorter), least) if more else 0
        if not more or any(True for _ in self._unlike(longer[start + more :], shorter[start:])):
            for k in self._unlike(a[:least], b[:least]):
                one, other, at = a[k], b[k], f"{place}[{k}]"
                yield from self.places(one, other, at) if _have_parts(one, other) else [(at, one, other)]
            start = least
        for k in range(start, start + more):
            yield f"{place}[{k}]", *((a[k], _Absent) if len(a) > len(b) else (_Absent, b[k]))

    def _is_same_row(self, a: Any, b: Any) -> bool:
        """Tell whether two lists hold the same plain values; zeros of both signs are the same here, as in arrays."""
        if isinstance(a, np.ndarray) or len(a) != len(b):
            return False
        self._spend(1 + len(a) // ROW)
        types = list(map(type, a))
        return PLAIN.issuperset(types) and types == list(map(type, b)) and bool(a == b)

    def _unlike(self, a: Any, b: Any) -> Iterator[int]:
        """Places of records that differ, of arrays of values all at once."""
        if _are_plain(a, b):
            yield from np.flatnonzero(_unequal(a, b).any(axis=tuple(range(1, a.ndim)))).tolist()
        else:
            yield from (k for k, (one, other) in enumerate(zip(a, b, strict=True)) if self.are_different(one, other))


def _have_rows(a: Any, b: Any) -> bool:
    """Tell whether both are lists, or tuples, or arrays of records of one type and shape."""
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return isinstance(a, list | tuple) and type(a) is type(b)
    is_one_type = a.dtype == b.dtype or a.dtype.kind == b.dtype.kind in ("S", "U")
    return bool(is_one_type and a.ndim == b.ndim > 0 and a.shape[1:] == b.shape[1:])


def _have_parts(a: Any, b: Any) -> bool:
    return _have_rows(a, b) or (isinstance(a, Mapping) and isinstance(b, Mapping))


def _are_plain(*arrays: Any) -> bool:
    """Tell whether arrays can be compared as a whole: they hold values and no objects, and nothing beside them."""
    return all(
        type(one) in PLAIN_ARRAYS and not one.dtype.hasobject and (one.dtype.kind != "V" or bool(one.dtype.names))
        for one in arrays
    )


def _unequal(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which entries of two arrays of one shape differ; NaN is equal to NaN."""
    if a.dtype.names is None:
        unequal: NDArray[np.bool_] = np.asarray(a != b)
        return unequal & np.asarray((a == a) | (b == b)) if a.dtype.kind in WITH_NAN else unequal
    found = np.zeros(a.shape, dtype=bool)
    for name in a.dtype.names:
        part = _unequal(np.asarray(a[name]), np.asarray(b[name]))
        found |= part.any(axis=tuple(range(a.ndim, part.ndim)))
    return found


class _Absent:
    """Stands for the value of a key that an input has not."""


def _values(a: Any, b: Any) -> tuple[str, str]:
    """Two different values as texts that differ, where their printed forms do."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in (a, b)]
    texts = ["nothing" if value is _Absent else value if isinstance(value, str) else repr(value) for value in plain]
    first, second = (clean(text, VALUE) for text in texts)
    if first == second:
        pairs = enumerate(zip(*texts, strict=False))
        start = next((k for k, (one, other) in pairs if one != other), min(map(len, texts)))
        first, second = ("…" + clean(text[max(0, start - CONTEXT) :], VALUE) for text in texts)
    return first, second
