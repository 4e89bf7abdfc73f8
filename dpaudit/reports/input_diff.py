"""Difference of two inputs whose names do not show it: neighbours mostly begin in the same way.

Inputs may be large, and reports ask for many pairs: arrays are compared as a whole, lists up to `MAX_ENTRIES`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.reports.wording import clean
from dpaudit.results.saved_inputs import is_redacted

SHOWN = 3  # places where they differ
VALUE = 60  # characters of a value there
CONTEXT = 20  # characters before the first one that differs, in a long value
DEEPEST = 20
NAME = 40  # characters of an input's name (`Pair.x_id`)
MAX_ENTRIES = 200_000  # entries that are compared one by one, or rows of plain values
ROW = 100  # entries of a row that take about as long as the row itself
PLAIN = frozenset((int, bool, str, bytes, type(None), float))  # equal where they have one type and are equal
WITH_NAN = "fcmM"  # kinds of arrays that may hold what is not equal to itself
PLAIN_ARRAYS = (np.ndarray, np.memmap, np.recarray)  # other classes may hold more than their values, as a mask

Places = Iterator[tuple[str, Any, Any]]


def apart(x: Any, x_prime: Any, width: int = NAME) -> str:
    """Say where two inputs differ; empty where forms of `width` characters show it: both whole, and not the same.

    Empty as well where to find it out would take too long, or where a value cannot be printed.

    Examples
    --------
    >>> apart({"a": 0, "b": 1}, {"a": 0, "b": 2}, 8)
    "x and x′ differ at ['b']: 1 against 2"
    """
    with contextlib.suppress(Exception):  # a value may misbehave when it is compared or printed
        return "" if is_redacted(x) else _told(x, x_prime, width)
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


class _TooLongError(Exception):
    """More would have to be compared than `MAX_ENTRIES` entries."""


class _Comparison:
    """One comparison of two inputs; `left` is how many entries may still be compared."""

    def __init__(self) -> None:
        self.left = MAX_ENTRIES

    def places(self, a: Any, b: Any, place: str, depth: int = 0) -> Places:
        """Places with the two values there, in the order of `a`; `_Absent` where there is none."""
        if depth < DEEPEST and isinstance(a, Mapping) and isinstance(b, Mapping):
            for key in [*a, *(key for key in b if key not in a)]:
                at = f"{place}[{clean(repr(key), VALUE)}]"
                yield from self.places(a.get(key, _Absent), b.get(key, _Absent), at, depth + 1)
        elif depth < DEEPEST and isinstance(a, list | tuple) and type(a) is type(b):
            if not self._is_same_row(a, b):
                yield from self._rows(a, b, place, depth)
        elif _are_comparable(a, b) and a.shape == b.shape:
            yield from self._entries(a, b, place)
        elif depth < DEEPEST and _are_comparable(a, b) and a.ndim and a.shape[1:] == b.shape[1:]:
            first, second = (a, b) if _is_plain(a) and _is_plain(b) else (list(a), list(b))
            yield from self._rows(first, second, place, depth)
        elif self.are_different(a, b):
            yield place, a, b

    def are_different(self, a: Any, b: Any) -> bool:
        """Tell whether two values differ: by their printed forms where there is no better way."""
        self._spend(1)
        if a is b:
            return False
        kind = type(a)
        if kind is not type(b):
            return not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and not any(self._entries(a, b, "")))
        if kind is float or issubclass(kind, np.floating):  # zeros of both signs are the same, as in arrays
            return bool(a != b and (a == a or b == b))
        if kind in PLAIN:
            return bool(a != b)
        if kind in (list, tuple, dict):
            return any(self.places(a, b, ""))
        if issubclass(kind, np.ndarray):
            return not (_are_comparable(a, b) and a.shape == b.shape) or any(self._entries(a, b, ""))
        return repr(a) != repr(b)

    def _spend(self, entries: int) -> None:
        self.left -= entries
        if self.left < 0:
            raise _TooLongError

    def _is_same_row(self, a: Sequence[Any], b: Sequence[Any]) -> bool:
        """Tell whether both hold the same plain values; zeros of both signs are the same here, as in arrays."""
        if len(a) != len(b):
            return False
        self._spend(1 + len(a) // ROW)
        types = list(map(type, a))
        return PLAIN.issuperset(types) and types == list(map(type, b)) and a == b

    def _rows(self, a: Any, b: Any, place: str, depth: int) -> Places:
        """Of two lists or arrays of records: those that one has more, or else all that differ."""
        least, more = sorted((len(a), len(b)))
        more -= least
        longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
        if not isinstance(a, np.ndarray) and least > self.left:
            raise _TooLongError
        differ = list(self._unlike(longer[:least], shorter, more > 0))
        start = differ[0] if differ else least
        if not more or [*self._unlike(longer[start + more :], shorter[start:], True)]:
            start = least
            for k in differ if isinstance(a, np.ndarray) else range(least):
                yield from self.places(a[k], b[k], f"{place}[{k}]", depth + 1)
        for k in range(start, start + more):
            yield f"{place}[{k}]", *((a[k], _Absent) if len(a) > len(b) else (_Absent, b[k]))

    def _unlike(self, a: Any, b: Any, is_first: bool) -> Iterator[int]:
        """Places of records that differ: of arrays all, of lists the first, or none if nobody asks for it."""
        if isinstance(a, np.ndarray):
            yield from np.flatnonzero(_unequal(a, b).any(axis=tuple(range(1, a.ndim)))).tolist()
        elif is_first:
            pairs = enumerate(zip(a, b, strict=True))
            yield from itertools.islice((k for k, (one, other) in pairs if self.are_different(one, other)), 1)

    def _entries(self, a: NDArray[Any], b: NDArray[Any], place: str) -> Places:
        """Of two arrays of one shape, entry by entry."""
        if _is_plain(a) and _is_plain(b):
            flat = np.flatnonzero(_unequal(a, b)).tolist()
            places: Iterator[tuple[int, ...]] = (tuple(map(int, np.unravel_index(k, a.shape))) for k in flat)
        else:
            places = (at for at in np.ndindex(a.shape) if self.are_different(a[at], b[at]))
        for at in places:
            yield f"{place}[{', '.join(map(str, at))}]" if at else place, a[at], b[at]


def _are_comparable(a: Any, b: Any) -> bool:
    """Tell whether both are arrays of one type, or of texts, whose length is in the type."""
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim == b.ndim):
        return False
    return bool(a.dtype == b.dtype) or a.dtype.kind == b.dtype.kind in ("S", "U")


def _is_plain(array: NDArray[Any]) -> bool:
    """Tell whether an array can be compared as a whole: it holds values and no objects, and nothing beside them."""
    kind = array.dtype.kind
    return type(array) in PLAIN_ARRAYS and not array.dtype.hasobject and (kind != "V" or bool(array.dtype.names))


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
