"""Where two inputs of a pair differ, for inputs whose names do not show it: neighbours mostly begin in the same way.

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
SCALARS = (int, bool, str, bytes, type(None))  # equal where they have one type and are equal
PLAIN = frozenset((*SCALARS, float))
WITH_NAN = "fcmM"  # kinds of arrays that may hold what is not equal to itself
PLAIN_ARRAYS = (np.ndarray, np.memmap, np.recarray)  # other classes may hold more than their values, as a mask


def apart(x: Any, x_prime: Any, width: int = NAME) -> str:
    """Where two inputs differ; empty where forms of `width` characters show it: both are whole, and are not the same.

    Empty as well where to find it out would take too long, or where a value cannot be printed.

    Examples
    --------
    >>> apart({"a": 0, "b": 1}, {"a": 0, "b": 2}, 8)
    "x and x′ differ at ['b']: 1 against 2"
    """
    if is_redacted(x):
        return ""
    with contextlib.suppress(Exception):  # a value may misbehave when it is compared or printed
        return _said(x, x_prime, width)
    return ""


def _said(x: Any, x_prime: Any, width: int) -> str:
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
    """Whether a form of `width` characters may show the value: not for containers with more entries."""
    if isinstance(value, Mapping):
        return len(value) <= width and all(_is_small(item, width) for item in value.values() if _is_sized(item))
    if isinstance(value, list | tuple):
        return len(value) <= width and all(_is_small(item, width) for item in value if _is_sized(item))
    return True


def _is_sized(value: Any) -> bool:
    return isinstance(value, list | tuple | Mapping)


class _TooLongError(Exception):
    """More would have to be compared than `MAX_ENTRIES` entries."""


class _Comparison:
    """One comparison of two inputs; `left` is how many entries may still be compared."""

    def __init__(self) -> None:
        self.left = MAX_ENTRIES

    def places(self, a: Any, b: Any, place: str, depth: int = 0) -> Iterator[tuple[str, Any, Any]]:
        """Places with the two values there, in the order of `a`; `_Absent` where there is none."""
        if depth < DEEPEST and isinstance(a, Mapping) and isinstance(b, Mapping):
            for key in a:
                at = f"{place}[{clean(repr(key), VALUE)}]"
                yield from self.places(a[key], b.get(key, _Absent), at, depth + 1)
            for key in b:
                if key not in a:
                    yield f"{place}[{clean(repr(key), VALUE)}]", _Absent, b[key]
        elif depth < DEEPEST and isinstance(a, list | tuple) and type(a) is type(b):
            if not self._is_same_row(a, b):
                yield from self._places_in_lists(a, b, place, depth)
        elif _are_comparable(a, b) and a.shape == b.shape:
            yield from self._places_in_arrays(a, b, place)
        elif depth < DEEPEST and _are_comparable(a, b) and a.ndim and a.shape[1:] == b.shape[1:]:
            if _is_plain(a) and _is_plain(b):
                yield from self._places_in_rows(a, b, place, depth)
            else:
                yield from self._places_in_lists(list(a), list(b), place, depth)
        elif self.are_different(a, b):
            yield place, a, b

    def are_different(self, a: Any, b: Any, depth: int = 0) -> bool:
        """Whether two values differ: by their printed forms where there is no better way."""
        self._spend(1)
        if a is b:
            return False
        kind = type(a)
        if kind is type(b):
            if kind in SCALARS:
                return bool(a != b)
            if kind is float or issubclass(kind, np.floating):  # zeros of both signs are the same, as in arrays
                return bool(a != b and (a == a or b == b))
            if kind in (list, tuple) and depth < DEEPEST and len(a) == len(b):
                if self._is_same_row(a, b):
                    return False
                return any(self.are_different(one, other, depth + 1) for one, other in zip(a, b, strict=True))
            if kind is dict and depth < DEEPEST and a.keys() == b.keys():
                return any(self.are_different(a[key], b[key], depth + 1) for key in a)
            if kind in (list, tuple, dict) and depth < DEEPEST:
                return True
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return not (_are_comparable(a, b) and a.shape == b.shape) or any(self._places_in_arrays(a, b, ""))
        return repr(a) != repr(b)

    def _spend(self, entries: int) -> None:
        self.left -= entries
        if self.left < 0:
            raise _TooLongError

    def _is_same_row(self, a: Sequence[Any], b: Sequence[Any]) -> bool:
        """Whether both hold the same plain values; zeros of both signs are the same here, as in arrays."""
        if len(a) != len(b):
            return False
        self._spend(1 + len(a) // ROW)
        types = list(map(type, a))
        return PLAIN.issuperset(types) and types == list(map(type, b)) and a == b

    def _places_in_lists(
        self, a: Sequence[Any], b: Sequence[Any], place: str, depth: int
    ) -> Iterator[tuple[str, Any, Any]]:
        if min(len(a), len(b)) > self.left:
            raise _TooLongError
        start = self._inserted(a, b)
        if start is None:
            start = min(len(a), len(b))
            for index, (one, other) in enumerate(zip(a, b, strict=False)):
                yield from self.places(one, other, f"{place}[{index}]", depth + 1)
        yield from _more(a, b, start, place)

    def _inserted(self, a: Sequence[Any], b: Sequence[Any]) -> int | None:
        """Where the longer one has records that the other lacks, the others being the same; None where it is not so."""
        longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
        more = len(longer) - len(shorter)
        if not more:
            return None
        pairs = enumerate(zip(longer, shorter, strict=False))
        start = next((k for k, (one, other) in pairs if self.are_different(one, other)), len(shorter))
        behind = zip(itertools.islice(longer, start + more, None), itertools.islice(shorter, start, None), strict=True)
        return None if any(self.are_different(one, other) for one, other in behind) else start

    def _places_in_arrays(self, a: NDArray[Any], b: NDArray[Any], place: str) -> Iterator[tuple[str, Any, Any]]:
        """Of two arrays of one shape, entry by entry."""
        if _is_plain(a) and _is_plain(b):
            flat: Iterator[int] = iter(np.flatnonzero(_unequal(a, b)))
            for at in (tuple(map(int, np.unravel_index(k, a.shape))) for k in flat):
                yield _at(place, at), a[at], b[at]
        else:
            for at in np.ndindex(a.shape):
                if self.are_different(a[at], b[at]):
                    yield _at(place, at), a[at], b[at]

    def _places_in_rows(
        self, a: NDArray[Any], b: NDArray[Any], place: str, depth: int
    ) -> Iterator[tuple[str, Any, Any]]:
        """Of two arrays of the same records, of one more often than of the other."""
        longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
        least, more = len(shorter), len(longer) - len(shorter)
        rows = np.flatnonzero(_unequal(longer[:least], shorter).any(axis=tuple(range(1, a.ndim))))
        start = int(rows[0]) if len(rows) else least
        if _unequal(longer[start + more :], shorter[start:]).any():
            for k in map(int, rows):
                yield from self.places(a[k], b[k], f"{place}[{k}]", depth + 1)
            start = least
        yield from _more(a, b, start, place)


def _more(a: Any, b: Any, start: int, place: str) -> Iterator[tuple[str, Any, Any]]:
    """The records from `start` on by which one is longer than the other."""
    for index in range(start, start + abs(len(a) - len(b))):
        yield f"{place}[{index}]", *((a[index], _Absent) if len(a) > len(b) else (_Absent, b[index]))


def _at(place: str, at: tuple[int, ...]) -> str:
    return f"{place}[{', '.join(map(str, at))}]" if at else place


def _are_comparable(a: Any, b: Any) -> bool:
    """Whether both are arrays of one type, or of texts, whose length is in the type."""
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim == b.ndim):
        return False
    return bool(a.dtype == b.dtype) or a.dtype.kind == b.dtype.kind in ("S", "U")


def _is_plain(array: NDArray[Any]) -> bool:
    """Whether an array can be compared as a whole: it holds values and no objects, and nothing beside them."""
    kind = array.dtype.kind
    return type(array) in PLAIN_ARRAYS and not array.dtype.hasobject and (kind != "V" or bool(array.dtype.names))


def _unequal(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries of two arrays of one shape differ; NaN is equal to NaN."""
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
    shown = [clean(text, VALUE) for text in texts]
    if shown[0] == shown[1]:
        start = next(
            (k for k, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), min(map(len, texts))
        )
        start = max(0, start - CONTEXT)
        shown = ["…" + clean(text[start:], VALUE) for text in texts]
    return shown[0], shown[1]
