"""Facts of an input: the numbers that a mechanism may have started from.

Of an input that is numbers these are the numbers themselves; of a dataset its length, and the sum, mean, smallest and
largest of its numbers; of a table the same of each column. They suggest where to look. Nothing rests on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.subjects.foreign import own

MOST_NUMBERS = 1_000_000  # of an input: a larger one has none
MOST_COLUMNS = 64  # of a table that are looked at one by one
ABOUT = ("sums", "means", "smallest", "largest")


def numbers_of(value: Any) -> FloatArray | None:
    """An input as an array of finite real numbers, a row an entry; None where it is anything else.

    A table by columns, a dictionary of equally long lists, is transposed.

    Examples
    --------
    >>> numbers_of({"a": [1, 2], "b": [3, 4]}).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    value = own(value)
    if isinstance(value, Mapping):
        columns = [column for column in map(numbers_of, value.values()) if column is not None and column.ndim == 1]
        if not columns or len({len(column) for column in columns}) > 1:
            return None
        return np.stack(columns, axis=1)
    if isinstance(value, str | bytes | None) or not isinstance(value, Sequence | np.ndarray | int | float | np.generic):
        return None
    try:
        array: NDArray[Any] = np.asarray(value)
    except (ValueError, OverflowError):  # ragged; integers beyond all doubles
        return None
    if array.dtype.kind not in "biuf" or not 0 < array.size <= MOST_NUMBERS or not np.all(np.isfinite(array)):
        return None
    return array.astype(float)


def scalars_of(value: Any) -> dict[str, float]:
    """Single numbers that are known of an input, by their names; none for an input of no known form.

    Examples
    --------
    >>> scalars_of([1.0, 2.0, 4.5])["sums"], scalars_of("text")
    (7.5, {'length': 4.0})
    """
    found: dict[str, float] = {}
    if hasattr(value, "__len__"):
        found["length"] = float(len(value))
    numbers = numbers_of(value)
    if numbers is None:
        return found
    if numbers.ndim == 0:
        return {"number": float(numbers)}
    about = {name: float(number) for name, number in _about(numbers.ravel()).items()}
    return found | {name: number for name, number in about.items() if math.isfinite(number)}


def columns_of(value: Any) -> dict[str, FloatArray]:
    """The columns of an input that is a table of numbers, by their names or positions; none for another one.

    Examples
    --------
    >>> columns_of([[1, 2], [3, 4]])["1"].tolist()
    [2.0, 4.0]
    """
    value = own(value)
    if isinstance(value, Mapping):
        columns = {str(name): numbers_of(column) for name, column in value.items()}
        return {name: column for name, column in columns.items() if column is not None and column.ndim == 1}
    numbers = numbers_of(value)
    if numbers is None or numbers.ndim != 2 or numbers.shape[1] > MOST_COLUMNS:
        return {}
    return {str(k): numbers[:, k] for k in range(numbers.shape[1])}


def points_of(value: Any, columns: int) -> dict[str, tuple[float, ...]]:
    """Points of so many numbers that are known of an input: itself, or what is known of each column of its table.

    Examples
    --------
    >>> points_of([[0.0, 1.0], [2.0, 5.0]], 2)["means"]
    (1.0, 3.0)
    """
    numbers = numbers_of(value)
    if columns < 2 or numbers is None:
        return {}
    found: dict[str, tuple[float, ...]] = {}
    if numbers.size == columns:
        found["numbers"] = tuple(numbers.ravel().tolist())
    if numbers.ndim == 2 and numbers.shape[1] == columns:
        found |= {name: tuple(np.atleast_1d(point).tolist()) for name, point in _about(numbers).items()}
    return {name: point for name, point in found.items() if all(map(math.isfinite, point))}


def _about(numbers: FloatArray) -> dict[str, Any]:
    """`ABOUT` of numbers along the first axis."""
    with np.errstate(over="ignore"):
        values = numbers.sum(axis=0), numbers.mean(axis=0), numbers.min(axis=0), numbers.max(axis=0)
    return dict(zip(ABOUT, values, strict=True))
