"""The real numbers inside outputs of any form, each under the path that leads to it.

A path is a tuple of positions in sequences and arrays and of keys of dictionaries: `()` for an output that is a number,
`(2,)` for the third entry of a list or vector, `("mean",)` for an entry of a dictionary.

Validity: what is read of an output never depends on its batch. A batch of numbers and a batch of objects give the same
double under the same path for the same output, and NaN where an output has no number there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, plain

Path = tuple[Any, ...]
DEEPEST = 6  # levels of nesting that are looked into
MOST_PATHS = 4_096  # of one output that are followed: a bound on time


def paths_of(outcomes: Outcomes) -> list[Path]:
    """The paths to all real numbers of a batch, in the order of their first appearance; at most `MOST_PATHS`.

    A path is one of reals where some output has a float there; what is an integer in all of them has no low bits.
    """
    if outcomes.is_integer:
        return []
    if outcomes.tokens is None:
        count = min(outcomes.numbers.shape[1], MOST_PATHS)
        return [_path_of(column, outcomes.shape) for column in range(count)]
    found: dict[Path, None] = {}
    for output in outcomes.raw:
        _collect(output, (), found)
        if len(found) >= MOST_PATHS:
            break
    return list(found)[:MOST_PATHS]


def read_path(outcomes: Outcomes, path: Path) -> FloatArray:
    """The double under `path` of each output, shape (draws,); NaN where there is none."""
    if outcomes.tokens is None:
        column = _column_of(path, outcomes.shape)
        return np.full(len(outcomes), math.nan) if column is None else outcomes.numbers[:, column]
    return np.array([_follow(output, path) for output in outcomes.raw], dtype=float)


def number_under(value: Any, path: Path) -> float:
    """The number under `path` of one output, or of an input of the same form; NaN where there is none."""
    return _follow(value, path)


def path_text(path: Path) -> str:
    """How a sentence names a path: empty for the output itself."""
    return "".join(f"[{key!r}]" for key in path)


def _path_of(column: int, shape: tuple[int, ...]) -> Path:
    return tuple(int(position) for position in np.unravel_index(column, shape)) if shape else ()


def _column_of(path: Path, shape: tuple[int, ...]) -> int | None:
    fits = len(path) == len(shape) and all(
        type(position) is int and 0 <= position < size for position, size in zip(path, shape, strict=True)
    )
    if not fits:
        return None
    return int(np.ravel_multi_index(path, shape)) if shape else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)


def _collect(value: Any, path: Path, found: dict[Path, None]) -> None:
    value = plain(value)
    if isinstance(value, float):
        found.setdefault(path)
    elif len(path) < DEEPEST and len(found) < MOST_PATHS:
        if isinstance(value, Mapping):
            for key, item in value.items():
                if isinstance(key, str | int):
                    _collect(item, (*path, key), found)
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
            for position, item in enumerate(value):
                _collect(item, (*path, position), found)


def _follow(value: Any, path: Path) -> float:
    for key in path:
        value = plain(value)
        if isinstance(value, Mapping):
            has_key = key in value
        else:
            is_sequence = isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
            has_key = is_sequence and type(key) is int and 0 <= key < len(value)
        if not has_key:
            return math.nan
        value = value[key]
    value = plain(value)
    try:
        return float(value) if _is_number(value) else math.nan
    except OverflowError:  # an integer beyond all doubles
        return math.nan
