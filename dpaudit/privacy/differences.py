"""Two inputs as a difference, in words: "row 3 removed: age=50, city='c'" instead of two long lists.

Known are lists and tuples, dictionaries, numpy arrays and pandas DataFrames (which need not be installed). Rows are
counted from 0. A text names the first `MAX_CHANGES` differences, and counts the others.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any

import numpy as np

MAX_CHANGES = 3  # named in one text
WIDTH = 60  # characters of a value


def difference(x: Any, x_prime: Any) -> str:
    """Change from x to x_prime, in words; empty where they are equal, or of kinds that are not known.

    Examples
    --------
    >>> difference([1, 2, 3], [1, 3])
    'row 1 removed: 2'
    >>> difference([{"age": 50, "city": "c"}], [{"age": 50, "city": "d"}])
    "row 0: city='c' becomes 'd'"
    >>> difference({"a": 1}, {"a": 1, "b": 2})
    "'b' added: 2"
    """
    if is_frame(x) and is_frame(x_prime):
        if list(x.columns) != list(x_prime.columns):
            return f"columns {_text(list(x.columns))} become {_text(list(x_prime.columns))}"
        types = zip(x.columns, x.dtypes, x_prime.dtypes, strict=True)
        recast = [f"column {name} of {old} becomes {new}" for name, old, new in types if old != new]
        rows = _rows(*map(_records, _of_one_type(x, x_prime) if recast else (x, x_prime)))
        return "; ".join([*filter(None, [rows]), *filter(None, [_said(recast)])])
    if isinstance(x, Mapping) and isinstance(x_prime, Mapping):
        return _said(_entries(x, x_prime))
    is_array = isinstance(x, np.ndarray) and isinstance(x_prime, np.ndarray)
    if is_array and x.shape == x_prime.shape and x.ndim > 0:
        places = [place for place in np.ndindex(x.shape) if _key(x[place]) != _key(x_prime[place])]
        shown = [place[0] if len(place) == 1 else place for place in places]
        changes = [f"[{_text(at)}]: {_text(x[at])} becomes {_text(x_prime[at])}" for at in shown[: MAX_CHANGES + 1]]
        return _said(changes, len(places))
    both = (x, x_prime)
    if is_array or all(isinstance(side, list | tuple) for side in both):
        return _rows(list(x), list(x_prime))
    return ""


def is_frame(value: Any) -> bool:
    """Tell whether it is a pandas DataFrame, without importing pandas."""
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == "pandas"


def is_series(value: Any) -> bool:
    """Tell whether it is a pandas Series, without importing pandas."""
    return type(value).__name__ == "Series" and type(value).__module__.split(".")[0] == "pandas"


def row_key(row: Any) -> Hashable:
    """A hashable key of a row, equal for rows that are the same."""
    if isinstance(row, np.ndarray | np.generic) or is_series(row):
        row = row.tolist()
    if isinstance(row, list | tuple):
        return ("row", *map(row_key, row))
    if isinstance(row, Mapping):
        return "record", frozenset((row_key(key), row_key(value)) for key, value in row.items())
    if isinstance(row, Set):
        return "set", frozenset(map(row_key, row))
    if is_frame(row):
        return frame_key(row)
    if isinstance(row, int | float | complex):
        return "NaN" if row != row else row
    try:
        hash(row)
    except TypeError:
        with whole_arrays():
            return type(row), repr(row)
    return type(row), row


def frame_key(frame: Any) -> tuple[Any, ...]:
    """Key that tells two frames apart: names and types of columns and of the index, attributes, and every value."""
    axes = frame.columns, frame.index
    with whole_arrays():
        names = tuple(map(repr, [*frame.columns, *(axis.names for axis in axes), frame.attrs]))
        dtypes = [*frame.dtypes, *(axis.dtype for axis in axes)]  # of many categories the text leaves some out
        types = tuple((repr(dtype), *map(repr, getattr(dtype, "categories", ()))) for dtype in dtypes)
        values = tuple(tuple(map(_key, frame.iloc[:, k].tolist())) for k in range(frame.shape[1]))
        return names, types, tuple(map(_key, frame.index.tolist())), values


def whole_arrays() -> contextlib.AbstractContextManager[Any]:
    """For a while arrays are printed with all of their numbers, in all digits."""
    return np.printoptions(threshold=sys.maxsize, floatmode="unique")


def frame_name(frame: Any) -> str:
    """A frame in short: its shape and names."""
    rows, names = len(frame), ", ".join(map(str, frame.columns))
    return f"DataFrame of {rows} row{'' if rows == 1 else 's'} ({names})"


def _records(frame: Any) -> list[dict[Any, Any]]:
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False, name=None)]


def _of_one_type(x: Any, x_prime: Any) -> tuple[Any, Any]:
    """The frames with the types of one, where that changes no value: one NaN makes a column of integers floats."""
    for one, other in ((x, x_prime), (x_prime, x)):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            cast = one.astype(dict(zip(other.columns, other.dtypes, strict=True)))
            if list(map(row_key, _records(cast))) == list(map(row_key, _records(one))):
                return (cast, other) if one is x else (other, cast)
    return x, x_prime


def _rows(x: Sequence[Any], x_prime: Sequence[Any]) -> str:
    """Rows added, removed or replaced, by the longest common parts of the two sequences."""
    matcher = difflib.SequenceMatcher(None, list(map(_key, x)), list(map(_key, x_prime)), autojunk=False)
    changes: list[str] = []
    for action, first, last, start, end in matcher.get_opcodes():
        if action == "equal":
            continue
        for k in range(max(last - first, end - start)):
            at, to = first + k, start + k
            if at < last and to < end:
                changes.append(_replaced(at, x[at], x_prime[to]))
            elif at < last:
                changes.append(f"row {at} removed: {_record(x[at])}")
            else:
                changes.append(f"row {to} added: {_record(x_prime[to])}")
    if len(x) == len(x_prime):  # a replaced row that equals its neighbours: one change of place, two of sequences
        replaced = [place for place in range(len(x)) if _key(x[place]) != _key(x_prime[place])]
        if len(replaced) < len(changes):
            changes = [_replaced(place, x[place], x_prime[place]) for place in replaced]
    return _said(changes)


def _replaced(place: int, old: Any, new: Any) -> str:
    if isinstance(old, Mapping) and isinstance(new, Mapping) and list(old) == list(new):
        cells = [
            f"{name}={_text(old[name])} becomes {_text(new[name])}"
            for name in old
            if _key(old[name]) != _key(new[name])
        ]
        return f"row {place}: " + ", ".join(cells)
    return f"row {place}: {_record(old)} becomes {_record(new)}"


def _entries(x: Mapping[Any, Any], x_prime: Mapping[Any, Any]) -> list[str]:
    changes = [f"{_text(key)} removed: {_text(x[key])}" for key in x if key not in x_prime]
    changes += [f"{_text(key)} added: {_text(x_prime[key])}" for key in x_prime if key not in x]
    for key in x:
        if key in x_prime and _key(x[key]) != _key(x_prime[key]):
            inner = difference(x[key], x_prime[key])
            changes.append(f"{_text(key)}: {inner or f'{_text(x[key])} becomes {_text(x_prime[key])}'}")
    return changes


def _record(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_text(entry)}" for name, entry in value.items())
    return _text(value)


def _said(changes: Sequence[str], count: int | None = None) -> str:
    total = len(changes) if count is None else count
    more = f"; and {total - MAX_CHANGES} more" if total > MAX_CHANGES else ""
    return "; ".join(changes[:MAX_CHANGES]) + more


def _text(value: Any) -> str:
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _key(value: Any) -> Any:
    """A hashable key of a value: its type and printed form, so that NaN is equal to itself and 1 is not 1.0."""
    return type(value).__name__, repr(value)
