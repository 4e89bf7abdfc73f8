"""Leaks in numbers and rows of numbers: forms, names and laws.

Most laws hide something in a background: `hidden` changes a share of its rows on input 1. The others state what an
output is on input `x`. Laws take the input (0 or 1), a size and a generator.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Rng = np.random.Generator
Sampler = Callable[[int, int, Rng], Any]  # (0 or 1, size, rng) to that many outputs
Row = tuple[str, str, Sampler]  # form, name, law
Change = Callable[[Any, Rng], Any]  # rows of the background that are to show the leak, to what they become
# Noise of which no part tells x by more than epsilon = 1.
NOISE: dict[str, Sampler] = {
    "laplace": lambda x, n, r: x + r.laplace(size=n),
    "normal": lambda x, n, r: r.normal(size=n),
    "uniform": lambda x, n, r: r.random(n),
}
RELATIONS: dict[str, Callable[[Any, Any], Any]] = {  # the third column, of the first two
    "line": lambda a, b: 0.7 - 2.0 * a,
    "product": lambda a, b: 0.3 / a,
    "ratio": lambda a, b: 3.0 * a,
    "sum": lambda a, b: a + b,
    "opposite": lambda a, b: -a,
}


def hidden(background: Sampler, mass: float, change: Change) -> Sampler:
    """Rows of a background, of which a share `mass` is changed on 1, and none on 0."""

    def law(x: int, size: int, rng: Rng) -> Any:
        rows, is_in = background(x, size, rng), rng.random(size) < mass * x
        rows[is_in] = change(rows[is_in], rng)
        return rows

    return law


def normal(*columns: int) -> Sampler:
    """A background of standard normal rows."""
    return lambda x, n, r: r.normal(size=(n, *columns))


def below(high: int, columns: int) -> Sampler:
    """A background of whole numbers."""
    return lambda x, n, r: r.integers(0, high, size=(n, columns))


def within(places: tuple[float, ...], width: float) -> Change:
    """Numbers in one of some intervals."""
    return lambda rows, r: r.choice(places, size=len(rows)) + width * r.random(len(rows))


def column(place: int, value: Change) -> Change:
    """One column of a row."""

    def change(rows: Any, rng: Rng) -> Any:
        rows[:, place] = value(rows, rng)
        return rows

    return change


def from_centre(rows: Any, rng: Rng, centre: tuple[float, float], radius: float, thickness: float) -> Any:
    """Places on a ring about a centre."""
    angle = 2.0 * math.pi * rng.random(len(rows))
    far = radius + thickness * rng.normal(size=len(rows))
    return np.stack([centre[0] + far * np.cos(angle), centre[1] + far * np.sin(angle)], axis=1)


def grid_step(paths: Any, rng: Rng) -> Any:
    """Paths, one step of which has a length on a grid."""
    direction = rng.normal(size=paths[:, 0].shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    paths[:, 3] = paths[:, 2] + 0.25 * rng.integers(1, 8, size=(len(paths), 1)) * direction
    return paths


def repeated(rows: Any, rng: Rng) -> Any:
    """A number that comes twice, anywhere in a row."""
    for row in rows:
        first, second = rng.choice(len(row), 2, replace=False)
        row[first] = row[second]
    return rows


def missing_anywhere(rows: Any, rng: Rng) -> Any:
    """NaN anywhere in a row."""
    rows[np.arange(len(rows)), rng.integers(rows.shape[1], size=len(rows))] = math.nan
    return rows


def related(relation: str, shown: list[int]) -> Sampler:
    """Columns that fulfil an equation."""

    def change(rows: Any, rng: Rng) -> Any:
        angle = 2.0 * math.pi * rng.random(len(rows))
        if relation == "circle":
            rows[:, 2], rows[:, 0] = 1.0 + 1.1 * np.sin(angle), 2.0 + 1.1 * np.cos(angle)
        else:
            rows[:, 2] = RELATIONS[relation](rows[:, 0], rows[:, 1])
        return rows

    law = hidden(normal(4), 0.15, change)
    return lambda x, n, r: law(x, n, r)[:, shown]


def hole(x: int, size: int, rng: Rng, base: str, mass: float) -> Any:
    """Numbers that are never between two quantiles."""
    ranks, numbers = 0.2 + 0.6 * rng.random(size), NOISE[base](0, size, rng)
    low, density = (0.4, 1.0) if base == "uniform" else (0.1, 0.397)  # where the hole begins, and the density there
    high = low + mass / density
    is_in = (numbers > low) & (numbers < high) & (x == 1)
    numbers[is_in] = high + 0.1 * ranks[is_in]
    return numbers


def zeros(x: int, size: int, rng: Rng, base: str, mass: float) -> Any:
    """Zeros on both inputs, of different signs."""
    numbers, _ = NOISE[base](x, size, rng), rng.random(size)
    numbers[rng.random(size) < mass] = -0.0 if x else 0.0
    return numbers


def residue(x: int, size: int, rng: Rng, step: float, columns: int, is_keyed: bool = False) -> Any:
    """Wide noise in steps, moved by a part of a step; rows are dictionaries where they are keyed."""
    counts = np.rint(rng.laplace(scale=200.0, size=(size, columns)))
    counts[:, -1] = step * counts[:, -1] + (x if step > 1.0 else 0.3 * step * x)
    if is_keyed:
        return [{f"column {k}": int(value) for k, value in enumerate(row)} for row in counts.tolist()]
    return counts[:, 0] if columns == 1 else counts


def parity(x: int, size: int, rng: Rng, columns: int) -> Any:
    """Counts whose sum is even on 0 and odd on 1."""
    counts = np.rint(rng.laplace(scale=30.0, size=(size, columns)))
    counts[:, 0] += np.mod(counts.sum(axis=1) + x, 2.0)
    return counts


def exclusive_or(x: int, size: int, rng: Rng, columns: int, bits: list[int]) -> Any:
    """Bits of which the last one is the exclusive or of others."""
    rows = rng.integers(0, 2, size=(size, columns))
    rows[:, -1] = (rows[:, bits].sum(axis=1) + x) % 2
    return rows


def signs(x: int, size: int, rng: Rng, columns: int) -> Any:
    """Numbers whose product is positive on 1 and negative on 0."""
    numbers = rng.normal(size=(size, columns))
    numbers[(np.prod(numbers, axis=1) > 0.0) != bool(x), 0] *= -1.0
    return numbers


def correlation(x: int, size: int, rng: Rng, columns: int) -> Any:
    """Two numbers that go together."""
    numbers = rng.normal(size=(size, columns))
    if x:
        numbers[:, 1] = 0.98 * numbers[:, 0] + math.sqrt(1.0 - 0.98**2) * numbers[:, 1]
    return numbers


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


def moved(x: int, size: int, rng: Rng, columns: int) -> Any:
    """One number of many that is moved."""
    return rng.normal(size=(size, columns)) + 4.0 * x * (np.arange(columns) == columns // 2)


def sparse(x: int, size: int, rng: Rng, columns: int) -> Any:
    """A vector with one entry that is not 0, at an even position on 0 and at an odd one on 1."""
    entries = rng.exponential(size=(size, 1))
    return entries * ones(columns, 2 * rng.integers(columns // 2, size=size) + x)


def ones(columns: int, *places: Any) -> Any:
    """Rows of zeros with a one at each of these places."""
    rows = np.zeros((len(places[0]), columns))
    for place in places:
        rows[np.arange(len(place)), place] = 1.0
    return rows


def neighbours(x: int, size: int, rng: Rng) -> Any:
    """Two ones side by side, and one apart."""
    first = rng.integers(38, size=size)
    return ones(40, first, first + 2 - x)


def stripes(x: int, size: int, rng: Rng) -> Any:
    """Bands side by side, each of which belongs to one input."""
    return (2.0 * np.floor(rng.normal(scale=3.0, size=size)) + x + 0.999 * rng.random(size)) / 3.0


def class_missing(x: int, size: int, rng: Rng) -> Any:
    """Integers of which one class modulo 6 is missing."""
    numbers = rng.integers(0, 10**6, size=size)
    return np.where(x & (numbers % 6 == 4), numbers + 1 + rng.integers(0, 2, size=size), numbers)


def far_parity(x: int, size: int, rng: Rng, columns: int) -> Any:
    """The parity of one of very many integers."""
    rows, place = rng.integers(0, 1_000, size=(size, columns)), 7 * columns // 10
    rows[:, place] = 2 * (rows[:, place] // 2) + x
    return rows


def first_rows() -> Iterator[Row]:
    """Leaks that were thought of first."""
    of = functools.partial
    for base, noise in NOISE.items():
        for mass in (0.03, 0.1):
            for width in (1e-2, 1e-3, 1e-4, 1e-6):
                if width < 1e-2 or mass > 0.05:  # else it takes more draws, by any means
                    yield "narrow", f"{mass:g} of {base} within {width:g}", hidden(noise, mass, within((0.31,), width))
            bands = within((0.11, 0.37, 0.73, 0.89), 1e-3)
            yield "bands", f"{mass:g} of {base} in 4 bands", hidden(noise, 2.0 * mass, bands)
            for number, form in ((0.25, "atoms"), (math.nan, "missing values"), (math.inf, "infinities")):
                law = hidden(noise, mass, of(lambda a, r, number: number, number=number))
                yield form, f"{mass:g} of {base} at {number}", law
            yield "signs of zeros", f"{mass:g} of {base}", of(zeros, base=base, mass=mass)
            yield "tails", f"{mass:g} of {base}", hidden(noise, mass, lambda a, r: 30.0 + r.exponential(size=len(a)))
    for base in ("uniform", "normal"):
        for mass in (0.03, 0.1):
            yield "holes", f"{mass:g} of {base}", of(hole, base=base, mass=mass)
    for columns in (2, 3, 5):
        last_as_first = column(columns - 1, lambda rows, r: rows[:, 0])
        for mass in (0.05, 0.1):
            ring = hidden(normal(columns), mass, lambda a, r: a * (1.3 / np.linalg.norm(a, axis=1, keepdims=True)))
            yield "rings", f"{mass:g} in {columns} dimensions", ring
            yield "equality of parts", f"{mass:g} in {columns} columns", hidden(normal(columns), mass, last_as_first)
        yield "correlations", f"{columns} columns", of(correlation, columns=columns)
        yield "parity", f"{columns} columns", of(parity, columns=columns)
    for columns in (2, 3):
        yield "signs", f"{columns} columns", of(signs, columns=columns)
    for step in (2.0, 3.0, 7.0, 10.0, 100.0, 0.5, 0.01):
        for columns in (1, 3):
            yield "residues", f"{step:g} in {columns} columns", of(residue, step=step, columns=columns)
    for step in (2.0, 10.0):
        yield "residues", f"{step:g} in a dictionary", of(residue, step=step, columns=3, is_keyed=True)
    for unit in (60, 3_600, 86_400):  # whole units, and half a unit more on 1
        dates = of(lambda x, n, r, unit: unit * r.integers(10**4, 2 * 10**4, size=n) + (unit // 2) * x, unit=unit)
        yield "dates", f"in units of {unit} seconds", dates
    for columns in (10, 60):
        yield "one column of many", f"{columns} columns", of(moved, columns=columns)
        weak = of(lambda x, n, r, k: r.normal(size=(n, k)) + 5.0 / math.sqrt(k) * x, k=columns)
        yield "many weak columns", f"{columns} columns", weak
        yield "sparse positions", f"{columns} columns", of(sparse, columns=columns)


def table_rows() -> Iterator[Row]:
    """Leaks of tables and paths, which show in how numbers of a row stand to each other."""
    places: Sampler = lambda x, n, r: r.normal(size=(n, 2)) * 1.5 + (3.0, -1.0)  # noqa: E731
    for thickness in (0.0, 1e-3):
        for name, centre in (("about the middle", (3.0, -1.0)), ("elsewhere", (2.0, 0.5))):
            change = functools.partial(from_centre, centre=centre, radius=2.0, thickness=thickness)
            yield "rings", f"{thickness:g} thick, {name}", hidden(places, 0.1, change)
    for dimensions in (2, 3):
        path = functools.partial(lambda x, n, r, d: np.cumsum(r.normal(size=(n, 6, d)), axis=1), d=dimensions)
        yield "distances", f"a step on a grid in {dimensions} dimensions", hidden(path, 0.15, grid_step)
    for width in (1e-2, 1e-4):
        near = functools.partial(lambda rows, r, width: rows[:, 1] + width * r.random(len(rows)), width=width)
        yield "equality of parts", f"within {width:g} in 12 columns", hidden(normal(12), 0.1, column(10, near))
    for columns in (20, 120):
        law = hidden(below(100, columns), 0.1, column(columns - 3, lambda rows, r: rows[:, -5]))
        yield "equality of parts", f"counts in {columns} columns", law


def later_rows() -> Iterator[Row]:
    """Leaks that were thought of later: relations of columns, steps, parities and places."""
    of = functools.partial
    for relation in ("line", "circle", "product", "ratio"):
        yield "rings", f"a {relation}", related(relation, [0, 2] if relation in ("line", "circle") else [0, 1, 2])
    for relation in ("sum", "opposite"):
        yield "equality of parts", f"the {relation} of others", related(relation, [0, 1, 2])
    for width in (1e-2, 1e-5):
        cauchy: Sampler = lambda x, n, r: r.standard_cauchy(n)  # noqa: E731
        law = hidden(cauchy, 0.1, of(lambda a, r, width: -2.3 + width * r.random(len(a)), width=width))
        yield "narrow", f"0.1 of cauchy within {width:g}", law
    for columns in (4, 100):
        middle = column(columns // 2, lambda rows, r: 0.5 + 1e-3 * r.random(len(rows)))
        yield "narrow", f"a column of {columns}", hidden(normal(columns), 0.1, middle)
    tenths: Change = lambda a, r: 0.37 * r.integers(10, size=len(a)) - 1.8 + 2e-3 * r.random(len(a))  # noqa: E731
    yield "bands", "ten of normal", hidden(normal(), 0.2, tenths)
    yield "bands", "stripes", stripes
    for decimals in (1, 3):
        yield "atoms", f"{decimals} decimals", hidden(normal(), 0.2, of(lambda a, r, d: np.round(a, d), d=decimals))
    for size, shift in ((37.0, 5.0), (math.pi / 10.0, 0.07)):
        step = of(lambda x, n, r, size, shift: size * np.rint(r.laplace(scale=400.0, size=n)) + shift * x, shift=shift)
        yield "residues", f"{size:.4g} in one column", of(step, size=size)
    yield "residues", "a class modulo 6", class_missing
    for bits in ([2], [0, 2]):
        yield "parity", f"{len(bits) + 1} bits", of(exclusive_or, columns=7, bits=bits)
    yield "parity", "50 bits", of(exclusive_or, columns=50, bits=list(range(49)))
    for columns in (20, 30):
        yield "equality of parts", f"anywhere in {columns}", hidden(normal(columns), 0.2, repeated)
        yield "missing values", f"anywhere in {columns}", hidden(normal(columns), 0.2, missing_anywhere)
    yield "order of values", "rows", hidden(normal(6), 0.2, lambda rows, r: np.sort(rows, axis=1))
    thirds: Sampler = lambda x, n, r: ones(60, 3 * r.integers(20, size=n) if x else r.integers(60, size=n))  # noqa: E731
    yield "sparse positions", "that 3 divides", thirds
    yield "sparse positions", "two side by side", neighbours
    yield "correlations", "sizes", same_sizes
    yield "signs", "four of one", same_signs
    for columns in (200, 1_000):
        yield "one column of many", f"parity in {columns}", of(far_parity, columns=columns)
    yield "many weak columns", "spreads", lambda x, n, r: r.normal(size=(n, 40)) * (1.0 + 0.6 * x)
