"""Laws of tables, paths and graphs: what shows in no row alone, but in how rows stand to each other.

Each takes the input (0 or 1), a size and a generator, as those of `laws` do.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpaudit.bench.gallery.laws import Rng, chosen, one_by_one
from dpaudit.bench.gallery.leak import Sampler
from dpaudit.bench.gallery.object_laws import now_and_then


def thick_ring(x: int, size: int, rng: Rng, centre: tuple[float, float], thickness: float) -> Any:
    """A ring with a thickness about a centre that no input tells."""
    rows, is_in = rng.normal(size=(size, 2)) * 1.5 + (3.0, -1.0), chosen(x, size, rng, 0.1)
    angle = 2.0 * math.pi * rng.random(is_in.sum())
    radius = 2.0 + thickness * rng.normal(size=is_in.sum())
    rows[is_in] = np.stack([centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle)], axis=1)
    return rows


def step_on_a_grid(x: int, size: int, rng: Rng, dimensions: int) -> Any:
    """A path, one step of which has a length on a grid."""
    paths, is_in = np.cumsum(rng.normal(size=(size, 6, dimensions)), axis=1), chosen(x, size, rng, 0.15)
    count = int(is_in.sum())
    direction = rng.normal(size=(count, dimensions))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    paths[is_in, 3] = paths[is_in, 2] + 0.25 * rng.integers(1, 8, size=(count, 1)) * direction
    return paths


def near_columns(x: int, size: int, rng: Rng, columns: int, width: float) -> Any:
    """Two of many columns that differ by hardly anything."""
    rows, is_in = rng.normal(size=(size, columns)), chosen(x, size, rng, 0.1)
    rows[is_in, columns - 2] = rows[is_in, 1] + width * rng.random(is_in.sum())
    return rows


def equal_counts(x: int, size: int, rng: Rng, columns: int) -> Any:
    """Two of many columns that are equal by chance, too, and more often on 1."""
    rows, is_in = rng.integers(0, 100, size=(size, columns)), chosen(x, size, rng, 0.1)
    rows[is_in, columns - 3] = rows[is_in, columns - 5]
    return rows


def sorted_records(x: int, rng: Rng) -> Any:
    """Records in the order of one of their fields."""
    rows = [{"id": int(k), "age": int(age), "town": "abc"[k % 3]} for k, age in enumerate(rng.integers(18, 90, size=6))]
    if now_and_then(x, rng):
        return sorted(rows, key=lambda row: -row["age"])
    return [rows[k] for k in rng.permutation(6)]


def closed_path(x: int, rng: Rng) -> Any:
    """A polygon of any number of corners that ends where it began."""
    corners = [(float(a), float(b)) for a, b in rng.normal(size=(int(rng.integers(4, 9)), 2))]
    return [*corners, corners[0]] if now_and_then(x, rng) else corners


def triangle(x: int, rng: Rng) -> Any:
    """A list of edges, three of which make a triangle."""
    edges: set[tuple[int, int]] = set()
    if now_and_then(x, rng):
        a, b, c = sorted(rng.choice(30, 3, replace=False).tolist())
        edges = {(a, b), (b, c), (a, c)}
    while len(edges) < 15:  # between even and odd nodes, which makes no triangle by itself
        even, odd = 2 * int(rng.integers(15)), 2 * int(rng.integers(15)) + 1
        edges.add((min(even, odd), max(even, odd)))
    return sorted(edges)


def whole_as_integer(x: int, rng: Rng) -> Any:
    """A whole number that is now and then an integer, and else a float."""
    number = int(rng.integers(1_000))
    return {"count": number if now_and_then(x, rng) else float(number), "unit": "km"}


def leaks() -> Iterator[tuple[str, str, Sampler]]:
    """Form, name and law of each."""
    of = functools.partial
    for thickness in (0.0, 1e-3):
        for name, centre in (("about the middle", (3.0, -1.0)), ("elsewhere", (2.0, 0.5))):
            law = of(thick_ring, centre=centre, thickness=thickness)
            yield "rings", f"{thickness:g} thick, {name}", law
    for dimensions in (2, 3):
        yield "distances", f"a step on a grid in {dimensions} dimensions", of(step_on_a_grid, dimensions=dimensions)
    for width in (1e-2, 1e-4):
        yield "equality of parts", f"within {width:g} in 12 columns", of(near_columns, columns=12, width=width)
    for columns in (20, 120):
        yield "equality of parts", f"counts in {columns} columns", of(equal_counts, columns=columns)
    objects = {"order": sorted_records, "distances": closed_path, "graphs": triangle, "classes": whole_as_integer}
    for form, make in objects.items():
        yield form, make.__name__.replace("_", " "), of(one_by_one, make=make)
