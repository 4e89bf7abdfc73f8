"""Facts of an input: the numbers that a mechanism may have started from, and that noise was probably added to.

Of an input that is numbers these are the numbers themselves; of a dataset its length, and the sum, mean, smallest and
largest of its numbers; of a table the same of each column. They suggest where to look. Nothing rests on them.

A fact is a number of somebody's data. Rules that are saved or said name it (`Location.fact`) and never hold it: who has
the two inputs computes it again (`location_named`), and nobody else learns it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.unread import LIMITS
from dpaudit.privacy.claims import FloatArray
from dpaudit.subjects.foreign import own


@dataclasses.dataclass(frozen=True)
class FactSizes:
    """Numbers that facts are computed of, at most, and how near outputs must lie."""

    max_numbers: int = 1_000_000  # of an input: sums of more take longer than a call of most mechanisms
    min_outputs: int = 50  # of an input: the standard error of a median is known to 10% from there on
    near: float = 6.0  # standard errors of a median, within which a fact must lie: beyond by chance once in 10^8


SIZES = FactSizes()
FACTS = ("sums", "means", "smallest", "largest")


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
    if array.dtype.kind not in "biuf" or not 0 < array.size <= SIZES.max_numbers or not np.all(np.isfinite(array)):
        return None
    return array.astype(float)


def scalars_of(value: Any) -> dict[str, float]:
    """Single numbers that are known of an input, by their names; none for an input of no known form.

    Examples
    --------
    >>> scalars_of([1.0, 2.0, 4.5])["sums"], scalars_of("text")
    (7.5, {'length': 4.0})
    """
    found = {"length": float(len(value))} if hasattr(value, "__len__") else {}
    numbers = numbers_of(value)
    if numbers is None:
        return found
    if numbers.ndim == 0:
        return {"number": float(numbers)}
    about = {name: float(number) for name, number in _facts(numbers.ravel()).items()}
    return found | {name: number for name, number in about.items() if math.isfinite(number)}


def _columns_of(value: Any) -> dict[str, FloatArray]:
    """The columns of an input that is a table of numbers, by their names or positions; none for another one."""
    value = own(value)
    if isinstance(value, Mapping):
        columns = {str(name): numbers_of(column) for name, column in value.items()}
        return {name: column for name, column in columns.items() if column is not None and column.ndim == 1}
    numbers = numbers_of(value)
    is_table = numbers is not None and numbers.ndim == 2 and numbers.shape[1] <= LIMITS.max_items
    return {str(k): column for k, column in enumerate(numbers.T)} if numbers is not None and is_table else {}


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
        found |= {name: tuple(np.atleast_1d(point).tolist()) for name, point in _facts(numbers).items()}
    return {name: point for name, point in found.items() if all(map(math.isfinite, point))}


def _facts(numbers: FloatArray) -> dict[str, Any]:
    """`FACTS` of numbers along the first axis."""
    with np.errstate(over="ignore"):
        values = numbers.sum(axis=0), numbers.mean(axis=0), numbers.min(axis=0), numbers.max(axis=0)
    return dict(zip(FACTS, values, strict=True))


ENTRY = "entry"  # the number that an input itself holds where outputs hold theirs
_WORDS = {"length": "length", "number": "number"} | dict(zip(FACTS, ("sum", "mean", "least", "largest"), strict=True))


@dataclasses.dataclass(frozen=True)
class Location:
    """The numbers that noise was probably added to on x and on x_prime, and the name by which they are found again.

    `fact` is `ENTRY` or the name of a fact, of the whole input or of one `column`, by its position among those that
    both inputs have: the name of a column may tell of people too.
    """

    x: float
    x_prime: float
    fact: str = ENTRY
    column: int | None = None

    def of(self, name: str) -> str:
        """The fact of an input of this name in words, without its value."""
        if self.fact == ENTRY:
            return name
        return f"the {_WORDS[self.fact]} of {name if self.column is None else f'column {self.column} of {name}'}"


def location_of(x: Any, x_prime: Any, entries: FloatArray, first: FloatArray, second: FloatArray) -> Location | None:
    """The numbers that outputs of x (`first`) and of x_prime (`second`) lie around; None where nobody knows.

    `entries`, shape (2,), are the numbers that the inputs hold where outputs hold these; NaN for another form.

    Examples
    --------
    >>> noise, nothing = np.random.default_rng(0).laplace(size=(2, 500)), np.full(2, math.nan)
    >>> location_of([1.0, 2.5], [1.0, 2.5, 4.0], nothing, noise[0] + 3.5, noise[1] + 7.5)
    Location(x=3.5, x_prime=7.5, fact='sums', column=None)
    """
    if not np.any(np.isnan(entries)):
        return Location(*entries.tolist())
    lies = _middle(first), _middle(second)
    best: tuple[float, Location | None] = SIZES.near, None
    for known in _shared_facts(x, x_prime) if None not in lies else ():
        both = zip((known.x, known.x_prime), lies, strict=True)
        off = max(abs(fact - lie[0]) / lie[1] for fact, lie in both if lie)
        if off < best[0]:
            best = off, known
    return best[1]


def location_named(fact: str, column: int | None, entries: FloatArray, x: Any, x_prime: Any) -> Location:
    """The location that a saved rule names, of these inputs: the same numbers that `location_of` found.

    Raises
    ------
    ValueError
        If the inputs have no fact of this name.
    """
    if fact == ENTRY and column is None and not np.any(np.isnan(entries)):
        return Location(*entries.tolist())
    for known in _shared_facts(x, x_prime):
        if (known.fact, known.column) == (fact, column):
            return known
    raise ValueError(f"fact must be one that both inputs have, got {fact!r} of column {column!r}.")


def _shared_facts(x: Any, x_prime: Any) -> Iterable[Location]:
    """Facts that both inputs have, by the same name."""
    tables = _columns_of(x), _columns_of(x_prime)
    shared = [name for name in tables[0] if name in tables[1]]
    parts = [(None, x, x_prime), *((k, tables[0][name], tables[1][name]) for k, name in enumerate(shared))]
    for column, of_x, of_x_prime in parts:
        others = scalars_of(of_x_prime)
        for name, fact in scalars_of(of_x).items():
            if name in others:
                yield Location(fact, others[name], name, column)


def _middle(values: FloatArray) -> tuple[float, float] | None:
    """The median of the finite ones among some numbers, and about its standard error; None for too few."""
    known = values[np.isfinite(values)]
    if len(known) < SIZES.min_outputs:
        return None
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75]).tolist()
    return middle, max(high - low, 1e-300) / math.sqrt(len(known))
