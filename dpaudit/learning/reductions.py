"""Reductions: functions of a row of numbers that give one number, as data.

Conventions: a reduction takes an array of shape (draws, columns) and gives one of shape (draws,). A row is reduced by
itself, to the last bit. NaN stands for a row that it says nothing about.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.log_ratios import DECIMALS

Points = Mapping[str, tuple[float, ...]]  # what is known of inputs, by names
NO_POINTS: Points = {}


class Reduction(Protocol):
    """A function of a row of numbers."""

    def __call__(self, numbers: FloatArray) -> FloatArray: ...

    def to_dict(self) -> dict[str, Any]: ...

    def describe(self) -> str: ...

    @property
    def name(self) -> str:
        """What finds it again among the reductions that were learned from other draws."""
        ...


@dataclasses.dataclass(frozen=True)
class Own:
    """One column as it is."""

    column: int

    def __call__(self, numbers: FloatArray) -> FloatArray:
        return numbers[:, self.column]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "own", "column": self.column}

    def describe(self) -> str:
        return f"coordinate {self.column}"

    @property
    def name(self) -> str:
        return self.describe()


@dataclasses.dataclass(frozen=True)
class SignOfZero:
    """-1 where a column is -0.0, 1 where it is 0.0, and 0 elsewhere."""

    column: int

    def __call__(self, numbers: FloatArray) -> FloatArray:
        column = numbers[:, self.column]
        return np.where(column == 0.0, np.copysign(1.0, column), 0.0)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "sign_of_zero", "column": self.column}

    def describe(self) -> str:
        return f"the sign of a zero in coordinate {self.column}"

    @property
    def name(self) -> str:
        return self.describe()


@dataclasses.dataclass(frozen=True)
class Weighted:
    """A sum of columns with whole weights, such as a difference, in multiples of `unit`.

    Rounded to `DECIMALS` decimals of the unit, so that equal sums are equal numbers.
    """

    columns: tuple[int, ...]
    weights: tuple[int, ...]
    unit: float

    def __call__(self, numbers: FloatArray) -> FloatArray:
        total = np.zeros(len(numbers))
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite numbers
            for column, weight in zip(self.columns, self.weights, strict=True):
                total = total + weight * numbers[:, column]
            return np.asarray(np.round(total / self.unit, DECIMALS))

    def to_dict(self) -> dict[str, Any]:
        columns, weights = list(self.columns), list(self.weights)
        return {"kind": "weighted", "columns": columns, "weights": weights, "unit": float(self.unit).hex()}

    def describe(self) -> str:
        if set(self.weights) == {1} and len(self.columns) > 4:
            return f"the sum of {len(self.columns)} coordinates"
        parts = [f"{'-' if w < 0 else '+'} coordinate {c}" for c, w in zip(self.columns, self.weights, strict=True)]
        return " ".join(parts).removeprefix("+ ")

    @property
    def name(self) -> str:
        return self.describe()


@dataclasses.dataclass(frozen=True)
class Radius:
    """The euclidean distance of some columns from a centre, in multiples of `unit`, rounded as `Weighted` is.

    `known` names a centre that is a fact of an input: it is not written down, since inputs may be records.
    """

    columns: tuple[int, ...]
    centre: tuple[float, ...]
    unit: float
    known: str = ""

    def __call__(self, numbers: FloatArray) -> FloatArray:
        total = np.zeros(len(numbers))
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite numbers
            for column, centre in zip(self.columns, self.centre, strict=True):
                total = total + np.square((numbers[:, column] - centre) / self.unit)
            return np.asarray(np.round(np.sqrt(total), DECIMALS))

    def to_dict(self) -> dict[str, Any]:
        where: Any = self.known or [float(value).hex() for value in self.centre]
        return {"kind": "radius", "columns": list(self.columns), "centre": where, "unit": float(self.unit).hex()}

    def describe(self) -> str:
        where = f"({', '.join(f'{value:.6g}' for value in self.centre[:4])}{', …' if len(self.centre) > 4 else ''})"
        return f"the distance of {len(self.columns)} coordinates from {self.known or where}"

    @property
    def name(self) -> str:
        return f"distance of {len(self.columns)} coordinates from {self.known or 'their middle'}"


@dataclasses.dataclass(frozen=True)
class Gap:
    """The euclidean distance between two points of a row, in multiples of `unit`, rounded as `Weighted` is.

    `columns` are those of the first point and then those of the second.
    """

    columns: tuple[int, ...]
    unit: float = 1.0

    def __call__(self, numbers: FloatArray) -> FloatArray:
        size = len(self.columns) // 2
        total = np.zeros(len(numbers))
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite numbers
            for first, second in zip(self.columns[:size], self.columns[size:], strict=True):
                total = total + np.square((numbers[:, first] - numbers[:, second]) / self.unit)
            return np.asarray(np.round(np.sqrt(total), DECIMALS))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "gap", "columns": list(self.columns), "unit": float(self.unit).hex()}

    def describe(self) -> str:
        size = len(self.columns) // 2
        first, second = (", ".join(map(str, part)) for part in (self.columns[:size], self.columns[size:]))
        return f"the distance between coordinates {first} and coordinates {second}"

    @property
    def name(self) -> str:
        return self.describe()


@dataclasses.dataclass(frozen=True)
class Ratio:
    """The logarithm of the size of one column over, or times, that of another, to `DECIMALS` decimals.

    -inf or inf where one of the two is 0, and NaN where both are.
    """

    columns: tuple[int, int]
    is_product: bool

    def __call__(self, numbers: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):  # of zeros and infinite numbers
            first, second = (np.log(np.abs(numbers[:, column])) for column in self.columns)
            return np.asarray(np.round(first + second if self.is_product else first - second, DECIMALS))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "ratio", "columns": list(self.columns), "is_product": self.is_product}

    def describe(self) -> str:
        first, second = self.columns
        return f"the log size of coordinate {first} {'times' if self.is_product else 'over'} coordinate {second}"

    @property
    def name(self) -> str:
        return self.describe()


def _falls(numbers: FloatArray) -> FloatArray:
    return np.asarray(np.count_nonzero(numbers[:, 1:] < numbers[:, :-1], axis=1), dtype=float)


def _repeated(numbers: FloatArray) -> FloatArray:
    ordered = np.sort(numbers, axis=1)
    return np.asarray(np.count_nonzero(ordered[:, 1:] == ordered[:, :-1], axis=1), dtype=float)


def _first_nonzero(numbers: FloatArray) -> FloatArray:
    return np.where((numbers != 0.0).any(axis=1), (numbers != 0.0).argmax(axis=1), -1).astype(float)


COUNTS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "numbers that repeat another one": _repeated,
    "numbers that are missing": lambda numbers: np.count_nonzero(np.isnan(numbers), axis=1).astype(float),
    "numbers less than the one before": _falls,
    "numbers below 0": lambda numbers: np.count_nonzero(numbers < 0.0, axis=1).astype(float),
    "position of the first that is not 0": _first_nonzero,
}


@dataclasses.dataclass(frozen=True)
class RowCount:
    """One of `COUNTS` of a whole row."""

    what: str

    def __call__(self, numbers: FloatArray) -> FloatArray:
        return COUNTS[self.what](numbers)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "row_count", "what": self.what}

    def describe(self) -> str:
        return f"the {self.what} among all coordinates"

    @property
    def name(self) -> str:
        return self.describe()


@dataclasses.dataclass(frozen=True)
class Above:
    """How many of some columns are above a limit each: modulo 2 it is whether they go together."""

    columns: tuple[int, ...]
    limits: tuple[float, ...]

    def __call__(self, numbers: FloatArray) -> FloatArray:
        total = np.zeros(len(numbers))
        for column, limit in zip(self.columns, self.limits, strict=True):
            total = total + (numbers[:, column] > limit)
        return total

    def to_dict(self) -> dict[str, Any]:
        limits = [float(limit).hex() for limit in self.limits]
        return {"kind": "above", "columns": list(self.columns), "limits": limits}

    def describe(self) -> str:
        where = ", ".join(f"{c} above {limit:.6g}" for c, limit in zip(self.columns, self.limits, strict=True))
        return f"the number of coordinates {where}"

    @property
    def name(self) -> str:
        return f"the number of coordinates {', '.join(map(str, self.columns))} that are large"


@dataclasses.dataclass(frozen=True)
class Surface:
    """Which of a family of surfaces some columns lie on: a weighted sum of them and, for spheres, of their squares.

    `weights` has a number a column and one for the sum of squares, of columns in multiples of `unit`. Rounded as
    `Weighted` is.
    """

    columns: tuple[int, ...]
    weights: tuple[float, ...]
    unit: float

    def __call__(self, numbers: FloatArray) -> FloatArray:
        total, squares = np.zeros(len(numbers)), np.zeros(len(numbers))
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite numbers
            for column, weight in zip(self.columns, self.weights, strict=False):
                own = numbers[:, column] / self.unit
                total, squares = total + weight * own, squares + own * own
            if self.weights[-1] != 0.0:
                total = total + self.weights[-1] * squares
            return np.asarray(np.round(total, DECIMALS))

    def to_dict(self) -> dict[str, Any]:
        weights = [float(weight).hex() for weight in self.weights]
        return {"kind": "surface", "columns": list(self.columns), "weights": weights, "unit": float(self.unit).hex()}

    def describe(self) -> str:
        *own, squared = self.weights
        parts = [f"{w / self.unit:+.6g} coordinate {c}" for w, c in zip(own, self.columns, strict=True)]
        more = f" {squared / self.unit**2:+.6g} times the sum of their squares" if squared else ""
        return " ".join(parts).removeprefix("+") + more

    @property
    def name(self) -> str:
        return f"{'spheres' if self.weights[-1] else 'planes'} of coordinates {', '.join(map(str, self.columns))}"


@dataclasses.dataclass(frozen=True)
class Residue:
    """What is left of another reduction modulo `modulus`, counted from `offset`, as a share of the modulus.

    In [-1/8, 7/8], rounded to `DECIMALS` decimals. The window begins below 0, so that numbers on the lattice, which
    rounding puts on both sides of it, are together.
    """

    of: Reduction
    modulus: float
    offset: float = 0.0

    def __call__(self, numbers: FloatArray) -> FloatArray:
        values = self.of(numbers)
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite numbers
            left = np.round(np.mod(values - self.offset, self.modulus) / self.modulus, DECIMALS)
            return np.where(left > 0.875, left - 1.0, left)

    def to_dict(self) -> dict[str, Any]:
        modulus, offset = float(self.modulus).hex(), float(self.offset).hex()
        return {"kind": "residue", "of": self.of.to_dict(), "modulus": modulus, "offset": offset}

    def describe(self) -> str:
        after = f", counted from {self.offset:.6g}," if self.offset else ""
        return f"{self.of.describe()}{after} modulo {self.modulus:.6g}"

    @property
    def name(self) -> str:
        return f"{self.of.name} modulo {self.modulus:.6g}"


def reduction_from_dict(record: Mapping[str, Any], points: Points = NO_POINTS) -> Reduction:
    """The reduction that `to_dict` wrote; `points` are the facts of inputs that it may refer to.

    Raises
    ------
    ValueError
        If the kind is unknown, a modulus or unit is not a positive number, or a point is not known.
    """
    kind = record["kind"]
    if kind == "own":
        return Own(int(record["column"]))
    if kind == "sign_of_zero":
        return SignOfZero(int(record["column"]))
    if kind == "residue":
        of, modulus, offset = reduction_from_dict(record["of"], points), *_floats(record["modulus"], record["offset"])
        if not 0.0 < modulus < math.inf:
            raise ValueError(f"modulus must be positive and finite, got {modulus!r}.")
        return Residue(of, modulus, offset)
    if kind == "ratio":
        first, second = map(int, record["columns"])
        return Ratio((first, second), bool(record["is_product"]))
    if kind == "surface":
        weights, (unit,) = tuple(_floats(*record["weights"])), _floats(record["unit"])
        if len(weights) != len(record["columns"]) + 1 or not 0.0 < unit < math.inf:
            raise ValueError("weights must be one more than columns, and unit positive and finite.")
        return Surface(tuple(map(int, record["columns"])), weights, unit)
    if kind == "row_count":
        if record["what"] not in COUNTS:
            raise ValueError(f"count must be one of {', '.join(COUNTS)}, got {record['what']!r}.")
        return RowCount(record["what"])
    if kind == "above":
        if len(record["limits"]) != len(record["columns"]):
            raise ValueError(f"limits must be {len(record['columns'])} numbers, got {len(record['limits'])}.")
        return Above(tuple(map(int, record["columns"])), tuple(_floats(*record["limits"])))
    if kind not in ("weighted", "radius", "gap"):
        raise ValueError(f"reduction must be of a known kind, got {kind!r}.")
    columns, (unit,) = tuple(int(column) for column in record["columns"]), _floats(record["unit"])
    if not 0.0 < unit < math.inf:
        raise ValueError(f"unit must be positive and finite, got {unit!r}.")
    if kind == "gap":
        if not columns or len(columns) % 2:
            raise ValueError(f"columns must be those of two points, got {len(columns)}.")
        return Gap(columns, unit)
    if kind == "weighted":
        return Weighted(columns, tuple(int(weight) for weight in record["weights"]), unit)
    where = record["centre"]
    if isinstance(where, str):
        if len(points.get(where, ())) != len(columns):
            raise ValueError(f"inputs must have {where!r} of {len(columns)} numbers, got others.")
        return Radius(columns, points[where], unit, where)
    if len(where) != len(columns):
        raise ValueError(f"centre must have {len(columns)} numbers, got {len(where)}.")
    return Radius(columns, tuple(_floats(*where)), unit)


def _floats(*texts: str) -> list[float]:
    return [float.fromhex(text) for text in texts]
