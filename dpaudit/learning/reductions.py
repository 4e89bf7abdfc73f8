"""Reductions: functions of a row of numbers that give one number, as data.

Conventions: a reduction takes an array of shape (draws, columns) and gives one of shape (draws,). A row is reduced by
itself, to the last bit. NaN stands for a row that it says nothing about.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from dpaudit.privacy.claims import FloatArray

Points = Mapping[str, tuple[float, ...]]  # what is known of inputs, by names
NO_POINTS: Points = {}
DECIMALS = 9  # of a sum or distance, in units of its size: what lower digits tell is the floating-point check's to say


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
    if kind not in ("weighted", "radius"):
        raise ValueError(f"reduction must be of a known kind, got {kind!r}.")
    columns, (unit,) = tuple(int(column) for column in record["columns"]), _floats(record["unit"])
    if not 0.0 < unit < math.inf:
        raise ValueError(f"unit must be positive and finite, got {unit!r}.")
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
