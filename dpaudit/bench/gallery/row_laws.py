"""More laws of rows of numbers: relations of columns, steps, parities and places that the first laws have not.

Each takes the input (0 or 1), a size and a generator, as those of `laws` do.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpaudit.bench.gallery.laws import Rng, chosen
from dpaudit.bench.gallery.leak import Sampler


def related(x: int, size: int, rng: Rng, relation: str, mass: float) -> Any:
    """Columns that fulfil an equation."""
    rows, is_in = rng.normal(size=(size, 4)), chosen(x, size, rng, mass)
    a, b = rows[is_in, 0], rows[is_in, 1]
    angle = 2.0 * math.pi * rng.random(len(a))
    rows[is_in, 2] = {"line": 0.7 - 2.0 * a, "product": 0.3 / a, "ratio": 3.0 * a, "sum": a + b, "opposite": -a}.get(
        relation, 1.0 + 1.1 * np.sin(angle)
    )
    if relation == "circle":
        rows[is_in, 0] = 2.0 + 1.1 * np.cos(angle)
    return rows[:, [0, 2]] if relation in ("line", "circle") else rows[:, :3]


def narrow_column(x: int, size: int, rng: Rng, columns: int, width: float) -> Any:
    """One column of several, in an interval."""
    rows, is_in = rng.normal(size=(size, columns)), chosen(x, size, rng, 0.1)
    rows[is_in, columns // 2] = 0.5 + width * rng.random(is_in.sum())
    return rows


def wide_base(x: int, size: int, rng: Rng, width: float) -> Any:
    """A law with heavy tails, in an interval."""
    numbers, is_in = rng.standard_cauchy(size), chosen(x, size, rng, 0.1)
    numbers[is_in] = -2.3 + width * rng.random(is_in.sum())
    return numbers


def many_bands(x: int, size: int, rng: Rng) -> Any:
    """Ten bands, a fiftieth of the mass each."""
    numbers, is_in = rng.normal(size=size), chosen(x, size, rng, 0.2)
    numbers[is_in] = 0.37 * rng.integers(10, size=is_in.sum()) - 1.8 + 2e-3 * rng.random(is_in.sum())
    return numbers


def stripes(x: int, size: int, rng: Rng) -> Any:
    """Bands side by side, each of which belongs to one input."""
    return (2.0 * np.floor(rng.normal(scale=3.0, size=size)) + x + 0.999 * rng.random(size)) / 3.0


def rounded(x: int, size: int, rng: Rng, decimals: int) -> Any:
    """Numbers of a few decimals."""
    numbers, is_in = rng.normal(size=size), chosen(x, size, rng, 0.2)
    numbers[is_in] = np.round(numbers[is_in], decimals)
    return numbers


def step(x: int, size: int, rng: Rng, size_of_step: float, shift: float) -> Any:
    """Wide noise on a lattice, moved."""
    return size_of_step * np.rint(rng.laplace(scale=400.0, size=size)) + shift * x


def class_missing(x: int, size: int, rng: Rng) -> Any:
    """Integers of which one class modulo 6 is missing."""
    numbers = rng.integers(0, 10**6, size=size)
    return np.where(x & (numbers % 6 == 4), numbers + 1 + rng.integers(0, 2, size=size), numbers)


def exclusive_or(x: int, size: int, rng: Rng, columns: int, bits: tuple[int, ...]) -> Any:
    """Bits of which the last one is the exclusive or of others."""
    rows = rng.integers(0, 2, size=(size, columns))
    rows[:, -1] = (rows[:, list(bits)].sum(axis=1) + x) % 2
    return rows


def repeated(x: int, size: int, rng: Rng, columns: int) -> Any:
    """A number that comes twice, anywhere in a row."""
    rows = rng.normal(size=(size, columns))
    for row in np.flatnonzero(chosen(x, size, rng, 0.2)):
        first, second = rng.choice(columns, 2, replace=False)
        rows[row, first] = rows[row, second]
    return rows


def missing_anywhere(x: int, size: int, rng: Rng, columns: int) -> Any:
    """NaN anywhere in a row."""
    rows = rng.normal(size=(size, columns))
    at = np.flatnonzero(chosen(x, size, rng, 0.2))
    rows[at, rng.integers(columns, size=len(at))] = math.nan
    return rows


def sorted_rows(x: int, size: int, rng: Rng) -> Any:
    """Rows in order."""
    rows, is_in = rng.normal(size=(size, 6)), chosen(x, size, rng, 0.2)
    rows[is_in] = np.sort(rows[is_in], axis=1)
    return rows


def third_places(x: int, size: int, rng: Rng) -> Any:
    """A one at a position that 3 divides."""
    rows = np.zeros((size, 60))
    rows[np.arange(size), 3 * rng.integers(20, size=size) if x else rng.integers(60, size=size)] = 1.0
    return rows


def neighbours(x: int, size: int, rng: Rng) -> Any:
    """Two ones side by side, and one apart."""
    rows, first = np.zeros((size, 40)), rng.integers(38, size=size)
    rows[np.arange(size), first] = rows[np.arange(size), first + 2 - x] = 1.0
    return rows


def same_sizes(x: int, size: int, rng: Rng) -> Any:
    """Two numbers of about one size, whatever their signs."""
    rows = rng.normal(size=(size, 2))
    if x:
        rows[:, 1] = rng.choice([-1.0, 1.0], size=size) * np.abs(rows[:, 0]) * (1.0 + 0.05 * rng.normal(size=size))
    return rows


def same_signs(x: int, size: int, rng: Rng) -> Any:
    """Numbers of one sign."""
    rows = rng.normal(size=(size, 4))
    return np.abs(rows) * np.sign(rows[:, :1]) if x else rows


def far_parity(x: int, size: int, rng: Rng, columns: int) -> Any:
    """The parity of one of very many integers."""
    rows = rng.integers(0, 1_000, size=(size, columns))
    rows[:, 7 * columns // 10] = 2 * (rows[:, 7 * columns // 10] // 2) + x
    return rows


def spread(x: int, size: int, rng: Rng) -> Any:
    """Every number more spread out."""
    return rng.normal(size=(size, 40)) * (1.0 + 0.6 * x)


def leaks() -> Iterator[tuple[str, str, Sampler]]:
    """Forms, names and laws."""
    of = functools.partial
    for relation in ("line", "circle", "product", "ratio"):
        yield "rings", f"a {relation}", of(related, relation=relation, mass=0.15)
    for relation in ("sum", "opposite"):
        yield "equality of parts", f"the {relation} of others", of(related, relation=relation, mass=0.15)
    for width in (1e-2, 1e-5):
        yield "narrow", f"0.1 of cauchy within {width:g}", of(wide_base, width=width)
    for columns in (4, 100):
        yield "narrow", f"a column of {columns}", of(narrow_column, columns=columns, width=1e-3)
    yield "bands", "ten of normal", many_bands
    yield "bands", "stripes", stripes
    for decimals in (1, 3):
        yield "atoms", f"{decimals} decimals", of(rounded, decimals=decimals)
    for size, shift in ((37.0, 5.0), (math.pi / 10.0, 0.07)):
        yield "residues", f"{size:.4g} in one column", of(step, size_of_step=size, shift=shift)
    yield "residues", "a class modulo 6", class_missing
    for bits in ((2,), (0, 2)):
        yield "parity", f"{len(bits) + 1} bits", of(exclusive_or, columns=7, bits=bits)
    yield "parity", "50 bits", of(exclusive_or, columns=50, bits=tuple(range(49)))
    for columns in (20, 30):
        yield "equality of parts", f"anywhere in {columns}", of(repeated, columns=columns)
        yield "missing values", f"anywhere in {columns}", of(missing_anywhere, columns=columns)
    yield "order of values", "rows", sorted_rows
    yield "sparse positions", "that 3 divides", third_places
    yield "sparse positions", "two side by side", neighbours
    yield "correlations", "sizes", same_sizes
    yield "signs", "four of one", same_signs
    for columns in (200, 1_000):
        yield "one column of many", f"parity in {columns}", of(far_parity, columns=columns)
    yield "many weak columns", "spreads", spread
