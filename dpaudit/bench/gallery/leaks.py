"""The leaks of the gallery: laws with their parameters, by form."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from dpaudit.bench.gallery import laws, object_laws, row_laws, table_laws
from dpaudit.bench.gallery.leak import Leak, Sampler

BASES = ("laplace", "normal", "uniform")
OBJECTS = {
    "order": ("order of keys", laws.order),
    "key": ("keys", laws.key),
    "length": ("sizes", laws.length),
    "member": ("members", laws.member),
    "letter": ("texts", laws.letter),
    "late number": ("texts", laws.late_number),
    "word": ("texts", laws.word),
    "JSON": ("texts", laws.as_json),
    "path": ("texts", laws.path),
    "compressed": ("bytes", laws.compressed),
    "one bit of 24 bytes": ("bytes", laws.raw_bytes),
    "large integer": ("low digits", laws.large_integer),
    "category with its number": ("equality of parts", laws.pair_of),
    "missing": ("missing values", laws.missing),
    "rows": ("sizes", laws.shape),
}


def gallery() -> list[Leak]:
    """All leaks, by form; the names differ."""
    ours = [Leak(form, name, law) for form, name, law in (*_everything(), *table_laws.leaks())]
    return [*ours, *second_half(0), *second_half(1)]


def second_half(half: int) -> list[Leak]:
    """Every other one of the leaks that were thought of later: the first half (0), or the other one (1).

    Kinds of reading and learners were added after a look at what was missed of both. The other half is for reports: no
    constant was chosen on it.
    """
    everything = [Leak(form, name, law) for form, name, law in (*row_laws.leaks(), *object_laws.leaks())]
    return everything[half::2]


def _everything() -> Iterator[tuple[str, str, Sampler]]:
    of = functools.partial
    for base in BASES:
        for mass in (0.03, 0.1):
            for width in (1e-2, 1e-3, 1e-4, 1e-6):
                if width < 1e-2 or mass > 0.05:  # else it takes more draws, by any means
                    name = f"{mass:g} of {base} within {width:g}"
                    yield "narrow", name, of(laws.interval, base=base, mass=mass, width=width, places=(0.31,))
            places = (0.11, 0.37, 0.73, 0.89)
            yield (
                "bands",
                f"{mass:g} of {base} in 4 bands",
                of(laws.interval, base=base, mass=2.0 * mass, width=1e-3, places=places),
            )
            for number, form in ((0.25, "atoms"), (math.nan, "missing values"), (math.inf, "infinities")):
                yield form, f"{mass:g} of {base} at {number}", of(laws.value, base=base, mass=mass, number=number)
            yield "signs of zeros", f"{mass:g} of {base}", of(laws.value, base=base, mass=mass, number=0.0)
            yield "tails", f"{mass:g} of {base}", of(laws.tail, base=base, mass=mass)
    for base in ("uniform", "normal"):
        for mass in (0.03, 0.1):
            yield "holes", f"{mass:g} of {base}", of(laws.hole, base=base, mass=mass)
    for columns in (2, 3, 5):
        for mass in (0.05, 0.1):
            yield "rings", f"{mass:g} in {columns} dimensions", of(laws.ring, columns=columns, mass=mass)
            yield (
                "equality of parts",
                f"{mass:g} in {columns} columns",
                of(laws.equal_parts, columns=columns, mass=mass),
            )
        yield "correlations", f"{columns} columns", of(laws.correlation, columns=columns)
        yield "parity", f"{columns} columns", of(laws.parity, columns=columns)
    for columns in (2, 3):
        yield "signs", f"{columns} columns", of(laws.signs, columns=columns)
    for step in (2.0, 3.0, 7.0, 10.0, 100.0, 0.5, 0.01):
        for columns in (1, 3):
            yield "residues", f"{step:g} in {columns} columns", of(laws.residue, step=step, columns=columns)
    for step in (2.0, 10.0):
        yield "residues", f"{step:g} in a dictionary", of(laws.residue, step=step, columns=3, place="dictionary")
    for unit in (60, 3_600, 86_400):
        yield "dates", f"in units of {unit} seconds", of(laws.moment, unit=unit)
    for columns in (10, 60):
        yield "one column of many", f"{columns} columns", of(laws.coordinate, columns=columns, shift=4.0)
        yield (
            "many weak columns",
            f"{columns} columns",
            of(laws.weak_columns, columns=columns, shift=5.0 / math.sqrt(columns)),
        )
        yield "sparse positions", f"{columns} columns", of(laws.sparse, columns=columns)
    for name, (form, make) in OBJECTS.items():
        yield form, name, of(laws.one_by_one, make=make)
    for depth in (3, 12):
        yield "nesting", f"{depth} levels", of(laws.one_by_one, make=of(laws.nested, depth=depth))
