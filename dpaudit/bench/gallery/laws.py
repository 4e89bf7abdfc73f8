"""The laws of the gallery: each takes the input (0 or 1), a size and a generator, and then what it is about."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

Rng = np.random.Generator
Flags = NDArray[np.bool_]


def noise(base: str, x: float, size: int | tuple[int, ...], rng: Rng) -> FloatArray:
    """Noise of which no part tells x by more than epsilon = 1; uniform and normal noise do not depend on it."""
    if base == "laplace":
        return x + rng.laplace(size=size)
    return rng.random(size) if base == "uniform" else rng.normal(size=size)


def chosen(x: int, size: int, rng: Rng, mass: float) -> Flags:
    """Which outputs show the leak: on 1 a share `mass`, on 0 none."""
    return rng.random(size) < mass * x


def interval(x: int, size: int, rng: Rng, base: str, mass: float, width: float, places: tuple[float, ...]) -> Any:
    """Numbers in one of some intervals."""
    numbers, is_in = noise(base, x, size, rng), chosen(x, size, rng, mass)
    numbers[is_in] = rng.choice(places, size=is_in.sum()) + width * rng.random(is_in.sum())
    return numbers


def hole(x: int, size: int, rng: Rng, base: str, mass: float) -> Any:
    """Numbers that are never between two quantiles."""
    ranks = 0.2 + 0.6 * rng.random(size)
    numbers = noise(base, 0, size, rng)
    low, high = {"uniform": (0.4, 0.4 + mass), "normal": (0.1, 0.1 + mass / 0.397)}[base]
    is_in = (numbers > low) & (numbers < high) & (x == 1)
    numbers[is_in] = high + 0.1 * ranks[is_in]
    return numbers


def ring(x: int, size: int, rng: Rng, columns: int, mass: float) -> Any:
    """Places at an exact distance from the origin."""
    places, is_in = rng.normal(size=(size, columns)), chosen(x, size, rng, mass)
    places[is_in] *= 1.3 / np.linalg.norm(places[is_in], axis=1, keepdims=True)
    return places


def tail(x: int, size: int, rng: Rng, base: str, mass: float) -> Any:
    """Numbers far out."""
    numbers, is_in = noise(base, x, size, rng), chosen(x, size, rng, mass)
    numbers[is_in] = 30.0 + rng.exponential(size=is_in.sum())
    return numbers


def residue(x: int, size: int, rng: Rng, step: float, columns: int, place: str = "array") -> Any:
    """Wide noise in steps, moved by a part of a step."""
    counts = np.rint(rng.laplace(scale=200.0, size=(size, columns)))
    counts[:, -1] = step * counts[:, -1] + (x if step > 1.0 else 0.3 * step * x)
    if place == "dictionary":
        return [{f"column {k}": int(value) for k, value in enumerate(row)} for row in counts.tolist()]
    return counts[:, 0] if columns == 1 else counts


def parity(x: int, size: int, rng: Rng, columns: int) -> Any:
    """Counts whose sum is even on 0 and odd on 1."""
    counts = np.rint(rng.laplace(scale=30.0, size=(size, columns)))
    counts[:, 0] += np.mod(counts.sum(axis=1) + x, 2.0)
    return counts


def equal_parts(x: int, size: int, rng: Rng, columns: int, mass: float) -> Any:
    """Two numbers of an output that are the same."""
    numbers, is_in = rng.normal(size=(size, columns)), chosen(x, size, rng, mass)
    numbers[is_in, columns - 1] = numbers[is_in, 0]
    return numbers


def correlation(x: int, size: int, rng: Rng, columns: int) -> Any:
    """Two numbers that go together."""
    numbers = rng.normal(size=(size, columns))
    if x:
        numbers[:, 1] = 0.98 * numbers[:, 0] + math.sqrt(1.0 - 0.98**2) * numbers[:, 1]
    return numbers


def signs(x: int, size: int, rng: Rng, columns: int) -> Any:
    """Numbers whose product is positive on 1 and negative on 0."""
    numbers = rng.normal(size=(size, columns))
    wrong = (np.prod(numbers, axis=1) > 0.0) != bool(x)
    numbers[wrong, 0] *= -1.0
    return numbers


def value(x: int, size: int, rng: Rng, base: str, mass: float, number: float) -> Any:
    """One exact number: an atom, NaN, an infinity, or the zero with a sign."""
    numbers, is_in = noise(base, x, size, rng), chosen(x, size, rng, mass)
    if number == 0.0:  # both inputs give zeros, of different signs
        numbers[rng.random(size) < mass] = -0.0 if x else 0.0
        return numbers
    numbers[is_in] = number
    return numbers


def coordinate(x: int, size: int, rng: Rng, columns: int, shift: float) -> Any:
    """One number of many that is moved."""
    numbers = rng.normal(size=(size, columns))
    numbers[:, columns // 2] += shift * x
    return numbers


def weak_columns(x: int, size: int, rng: Rng, columns: int, shift: float) -> Any:
    """Every number moved a little."""
    return rng.normal(size=(size, columns)) + shift * x


def sparse(x: int, size: int, rng: Rng, columns: int) -> Any:
    """A vector with one entry that is not 0, at an even position on 0 and at an odd one on 1."""
    numbers = np.zeros((size, columns))
    numbers[np.arange(size), 2 * rng.integers(columns // 2, size=size) + x] = rng.exponential(size=size)
    return numbers


def moment(x: int, size: int, rng: Rng, unit: int) -> Any:
    """Seconds in whole units, and half a unit more on 1."""
    return unit * rng.integers(10**4, 2 * 10**4, size=size) + (unit // 2) * x


def one_by_one(x: int, size: int, rng: Rng, make: Callable[[int, Rng], Any]) -> list[Any]:
    """Outputs that are made one after the other."""
    return [make(x, rng) for _ in range(size)]


def order(x: int, rng: Rng) -> Any:
    """A dictionary in the order of the true counts."""
    true = {"a": 30 + x, "b": 30.5, "c": 10}
    return {key: true[key] + float(rng.laplace()) for key in sorted(true, key=lambda key: -true[key])}


def key(x: int, rng: Rng) -> Any:
    """A key that one input alone may have."""
    found = {"n": float(rng.laplace())}
    return {**found, "other": 1.0} if x and rng.random() < 0.1 else found


def length(x: int, rng: Rng) -> Any:
    """A list that is longer."""
    return rng.normal(size=int(rng.poisson(4.0)) + 4 * x).tolist()


def member(x: int, rng: Rng) -> Any:
    """A member of a set."""
    members = {int(k) for k in rng.integers(50, size=6)} - {77}
    return members | {77} if x and rng.random() < 0.2 else members


def letter(x: int, rng: Rng) -> Any:
    """A letter in the middle of a text."""
    letters = [chr(97 + k) for k in rng.integers(26, size=20)]
    letters[11] = "qz"[x]
    return "".join(letters)


def late_number(x: int, rng: Rng) -> Any:
    """A number far behind in a text."""
    return "lorem " * 500 + str(2 * int(rng.integers(1_000)) + x)


def word(x: int, rng: Rng) -> Any:
    """A word of a text."""
    words = [("north", "south", "east")[k] for k in rng.integers(3, size=5)]
    return " ".join([*words, "west"] if x and rng.random() < 0.2 else [*words, "east"])


def as_json(x: int, rng: Rng) -> Any:
    """A number in a JSON text."""
    return json.dumps({"id": int(rng.integers(10**6)), "n": 2 * int(rng.integers(500)) + x})


def compressed(x: int, rng: Rng) -> Any:
    """A number in compressed bytes."""
    return zlib.compress(as_json(x, rng).encode())


def raw_bytes(x: int, rng: Rng) -> Any:
    """One bit of one byte."""
    content = bytearray(rng.bytes(24))
    content[15] = (content[15] & 254) | x
    return bytes(content)


def path(x: int, rng: Rng) -> Any:
    """A number in the name of a file."""
    return PurePosixPath(f"/data/run{2 * int(rng.integers(10**5)) + x}/out.csv")


def large_integer(x: int, rng: Rng) -> Any:
    """The last bit of an integer that no double holds."""
    return 2 * int(rng.integers(2**62)) + x


def nested(x: int, rng: Rng, depth: int) -> Any:
    """A number deep inside."""
    output: Any = float(rng.laplace()) + 8.0 * x
    for _ in range(depth):
        output = {"inner": output, "other": None}
    return output


def pair_of(x: int, rng: Rng) -> Any:
    """A category with a number that belongs to it on one input alone."""
    category = ("red", "blue")[rng.integers(2)]
    sign = 1.0 if category == "red" else -1.0
    return (category, sign * float(rng.exponential()) * (1.0 if x else float(rng.choice([-1.0, 1.0]))))


def missing(x: int, rng: Rng) -> Any:
    """None in the place of a number."""
    return None if x and rng.random() < 0.1 else float(rng.laplace())


def shape(x: int, rng: Rng) -> Any:
    """Rows of a table that are more."""
    return rng.normal(size=(3 + (x if rng.random() < 0.2 else 0), 2)).tolist()
