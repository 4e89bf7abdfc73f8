"""Leaks in objects, each made by itself: texts, bytes, keys, numbers that are no doubles, and what holds others.

A maker takes the input (0 or 1) and a generator, and gives one output.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import functools
import gzip
import json
import pickle
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from array_laws import Rng, Row

Maker = Callable[[int, Rng], Any]
OFTEN = 0.2  # of the outputs on 1 show what they show now and then


def now_and_then(x: int, rng: Rng, often: float = OFTEN) -> bool:
    """Tell whether an output shows it: on 0 never."""
    return bool(x and rng.random() < often)


def even(x: int, rng: Rng, below: int = 1_000) -> int:
    """An even number on 0 and an odd one on 1."""
    return 2 * int(rng.integers(below)) + x


def letters(rng: Rng, count: int) -> str:
    """Random small letters."""
    return "".join(map(chr, rng.integers(97, 123, size=count)))


def byte_of(x: int, rng: Rng, place: int, size: int) -> bytes:
    """One bit of random bytes."""
    content = bytearray(rng.bytes(size))
    content[place] = (content[place] & 254) | x
    return bytes(content)


def noisy(true: Mapping[str, float], rng: Rng) -> dict[str, float]:
    """Noisy counts, in the order of the true ones."""
    return {key: true[key] + float(rng.laplace()) for key in sorted(true, key=lambda key: -true[key])}


def nested(output: Any, depth: int, wrap: Callable[[Any], Any]) -> Any:
    """An output inside others."""
    return functools.reduce(lambda inner, _: wrap(inner), range(depth), output)


def levels(x: int, rng: Rng, depth: int) -> Any:
    """A number deep inside."""
    return nested(float(rng.laplace()) + 8.0 * x, depth, lambda inner: {"inner": inner, "other": None})


def key(x: int, rng: Rng) -> Any:
    """A key that one input alone may have."""
    found = {"n": float(rng.laplace())}
    return {**found, "other": 1.0} if now_and_then(x, rng, 0.1) else found


def member(x: int, rng: Rng) -> Any:
    """A member of a set."""
    members = {int(k) for k in rng.integers(50, size=6)}
    return members | {77} if now_and_then(x, rng) else members


def letter(x: int, rng: Rng) -> Any:
    """A letter in the middle of a text."""
    text = letters(rng, 20)
    return text[:11] + "qz"[x] + text[12:]


def word(x: int, rng: Rng) -> Any:
    """A word of a text."""
    words = [("north", "south", "east")[k] for k in rng.integers(3, size=5)]
    return " ".join([*words, "west" if now_and_then(x, rng) else "east"])


def as_json(x: int, rng: Rng) -> str:
    """A number in a JSON text."""
    return json.dumps({"id": int(rng.integers(10**6)), "n": even(x, rng, 500)})


def pair_of(x: int, rng: Rng) -> Any:
    """A category with a number that belongs to it on one input alone."""
    category = ("red", "blue")[rng.integers(2)]
    sign = 1.0 if category == "red" else -1.0
    return (category, sign * float(rng.exponential()) * (1.0 if x else float(rng.choice([-1.0, 1.0]))))


def piece(x: int, rng: Rng) -> Any:
    """A piece of a text without words."""
    text, start = letters(rng, 120), int(rng.integers(100))
    return text[:start] + "xqzkv" + text[start + 5 :] if now_and_then(x, rng) else text


def spaces(x: int, rng: Rng) -> Any:
    """Two spaces in the place of one."""
    words = [letters(rng, 5) for _ in range(20)]
    return " ".join(words[:7]) + ("  " if now_and_then(x, rng) else " ") + " ".join(words[7:])


def two_words(x: int, rng: Rng) -> Any:
    """The order of two words among others."""
    words = [f"w{k}" for k in rng.integers(1_000, size=10).tolist()]
    first, second = sorted(rng.choice(11, 2, replace=False).tolist())
    words.insert(first, "alpha" if x else "beta")
    words.insert(second + 1, "beta" if x else "alpha")
    return " ".join(words)


def table(x: int, rng: Rng) -> Any:
    """A cell of a table as text."""
    rows = rng.integers(0, 10**6, size=(30, 3))
    rows[20, 1] = 2 * (rows[20, 1] // 2) + x
    return "\n".join(",".join(map(str, row)) for row in rows.tolist())


def clock(x: int, rng: Rng) -> Any:
    """Minutes that 5 divides, in a text."""
    minutes = int(rng.integers(60))
    start = datetime.datetime(2021, 3, 4, 12) + datetime.timedelta(days=int(rng.integers(500)))
    return (start + datetime.timedelta(minutes=minutes - minutes % 5 * x, seconds=int(rng.integers(60)))).isoformat()


def weekday(x: int, rng: Rng) -> Any:
    """A date that is a Wednesday."""
    days = 7 * int(rng.integers(300)) + (2 if x else int(rng.integers(7)))
    return datetime.date(2020, 1, 6) + datetime.timedelta(days=days)


def zone(x: int, rng: Rng) -> Any:
    """The zone of a time."""
    offset = datetime.timezone(datetime.timedelta(hours=1 + now_and_then(x, rng)))
    return datetime.datetime.fromtimestamp(1.6e9 + int(rng.integers(10**7)), tz=offset)


def copied_byte(x: int, rng: Rng) -> Any:
    """A byte that is another one, or its neighbour."""
    content = bytearray(rng.bytes(12))
    content[5] = content[2] ^ x
    return bytes(content)


def sorted_keys(x: int, rng: Rng) -> Any:
    """Keys in order."""
    keys = [f"k{k}" for k in rng.choice(1_000, 8, replace=False).tolist()]
    return {key: float(rng.normal()) for key in (sorted(keys) if now_and_then(x, rng) else keys)}


def equal_texts(x: int, rng: Rng) -> Any:
    """Two texts that are the same."""
    first, second = map(str, rng.integers(10**6, size=2).tolist())
    return {"a": first, "b": first if now_and_then(x, rng) else second}


def depth(x: int, rng: Rng) -> Any:
    """Nesting depth of a number."""
    number = float(rng.normal())
    return nested(number, int(rng.integers(2, 5)) + 3 * now_and_then(x, rng), lambda inner: [inner])


def last_digit(x: int, rng: Rng) -> Any:
    """The last digit of a decimal number: now and then a 0, else never."""
    digit = 0 if now_and_then(x, rng) else int(rng.integers(1, 10))
    return Decimal(10 * int(rng.integers(10**6)) + digit) / Decimal(10**4)


@dataclasses.dataclass
class Record:
    """An output with parts."""

    a: float
    b: int
    c: Any = None


def huge(x: int, rng: Rng, modulus: int) -> Any:
    """Remainder of an integer that no double holds."""
    return {"n": modulus * (int(rng.integers(2**62)) * 2**20 + int(rng.integers(2**20))) + x}


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


# By form, and by name: leaks that were thought of first, those of tables and graphs, and later ones.
OBJECT_LEAKS: dict[str, tuple[str, Maker]] = {
    "order": ("order of keys", lambda x, r: noisy({"a": 30 + x, "b": 30.5, "c": 10}, r)),
    "key": ("keys", key),
    "length": ("sizes", lambda x, r: r.normal(size=int(r.poisson(4.0)) + 4 * x).tolist()),
    "member": ("members", member),
    "letter": ("texts", letter),
    "late number": ("texts", lambda x, r: "lorem " * 500 + str(even(x, r))),
    "word": ("texts", word),
    "JSON": ("texts", as_json),
    "path": ("texts", lambda x, r: PurePosixPath(f"/data/run{even(x, r, 10**5)}/out.csv")),
    "compressed": ("bytes", lambda x, r: zlib.compress(as_json(x, r).encode())),
    "one bit of 24 bytes": ("bytes", functools.partial(byte_of, place=15, size=24)),
    "large integer": ("low digits", lambda x, r: even(x, r, 2**62)),
    "category with its number": ("equality of parts", pair_of),
    "missing": ("missing values", lambda x, r: None if now_and_then(x, r, 0.1) else float(r.laplace())),
    "rows": ("sizes", lambda x, r: r.normal(size=(3 + (x if r.random() < 0.2 else 0), 2)).tolist()),
    "3 levels": ("nesting", functools.partial(levels, depth=3)),
    "12 levels": ("nesting", functools.partial(levels, depth=12)),
}
TABLE_LEAKS: dict[str, dict[str, Maker]] = {
    "order": {"sorted records": sorted_records},
    "distances": {"closed path": closed_path},
    "graphs": {"triangle": triangle},
    "classes": {"whole as integer": whole_as_integer},
}
LATER_LEAKS: dict[str, dict[str, Maker]] = {
    "texts": {
        "piece": piece,
        "far letter": lambda x, r: letters(r, 500) + "qz"[x] + letters(r, 499),
        "capital": lambda x, r: letters(r, 80).capitalize() if x else letters(r, 80),
        "spaces": spaces,
        "two words": two_words,
        "encoded": lambda x, r: base64.b64encode(byte_of(x, r, 100, 150)).decode(),
        "hexadecimal": lambda x, r: f"{even(x, r, 2**30):#x}",
        "table": table,
        "decimals": lambda x, r: f"{r.normal():.{5 if now_and_then(x, r) else 6}f}",
        "newline": lambda x, r: f"{r.normal():.6f}" + "\n" * now_and_then(x, r),
    },
    "dates": {"clock": clock, "weekday": weekday, "zone": zone},
    "bytes": {
        "zipped": lambda x, r: gzip.compress(
            json.dumps({"a": float(r.normal()), "b": [1, even(x, r, 100)]}).encode(), mtime=0
        ),
        "packed": lambda x, r: struct.pack("<d", r.laplace() + 6.0 * x),
        "copied byte": copied_byte,
        "pickled": lambda x, r: pickle.dumps({"n": even(x, r), "m": float(r.normal())}),
    },
    "order of keys": {
        "pairs": lambda x, r: [
            (key, round(count, 2)) for key, count in noisy({"a": 30 + x, "b": 30.5, "c": 10, "d": 4}, r).items()
        ],
        "many keys": lambda x, r: noisy({f"k{k:03d}": float(100 - k) + 1.5 * x * (k == 50) for k in range(100)}, r),
        "sorted keys": sorted_keys,
    },
    "keys": {
        "key number": lambda x, r: {even(x, r, 500): float(r.exponential())},
        "key text": lambda x, r: {f"id{even(x, r, 10**5)}": 1.0},
        "key pair": lambda x, r: {(int(r.integers(5)), even(x, r, 500)): 1.0},
    },
    "equality of parts": {"equal texts": equal_texts},
    "members": {"odd members": lambda x, r: frozenset((int(a), even(x, r, 100)) for a in r.integers(100, size=3))},
    "nesting": {
        "inner json": lambda x, r: json.dumps(
            {"a": json.dumps({"b": json.dumps({"c": even(x, r), "d": float(r.normal())})})}
        ),
        "depth": depth,
        "deep": lambda x, r: nested(float(r.laplace()) + 8.0 * x, 25, lambda inner: {"a": inner}),
        "record": lambda x, r: [Record(0.0, 1, Record(float(r.normal()), 0, Record(0.0, even(x, r))))],
    },
    "signs of zeros": {
        "zero in list": lambda x, r: {"v": [float(r.normal()), (-0.0 if x else 0.0) if r.random() < 0.2 else 1.0]}
    },
    "low digits": {
        "last digit": last_digit,
        "long decimal": lambda x, r: Decimal(10**24 + even(x, r, 10**12)) / Decimal(10**24),
        "denominator": lambda x, r: Fraction(int(r.integers(1, 10**6)), 97 if now_and_then(x, r) else 89),
    },
    "containers": {
        "complex part": lambda x, r: complex(r.normal(), 0.25 if now_and_then(x, r) else r.normal()),
        "fields": lambda x, r: np.array([(1, r.normal()), (even(x, r, 100), 0.5)], dtype=[("a", "i4"), ("b", "f8")]),
        "masked": lambda x, r: np.ma.array(r.normal(size=3), mask=[False, now_and_then(x, r), False]),
    },
    "one column of many": {
        "far position": lambda x, r: (r.normal(size=400) + 6.0 * x * (np.arange(400) == 333)).tolist()
    },
}


def _row(form: str, name: str, make: Maker) -> Row:
    return form, name, lambda x, size, rng: [make(x, rng) for _ in range(size)]


def first_objects() -> Iterator[Row]:
    """Leaks that were thought of first."""
    return (_row(form, name, make) for name, (form, make) in OBJECT_LEAKS.items())


def table_objects() -> Iterator[Row]:
    """Leaks of tables, paths and graphs."""
    return (_row(form, name, make) for form, makers in TABLE_LEAKS.items() for name, make in makers.items())


def later_objects() -> Iterator[Row]:
    """Leaks that were thought of later."""
    yield from (_row(form, name, make) for form, makers in LATER_LEAKS.items() for name, make in makers.items())
    for place, size in ((100, 200), (1_500, 3_000)):
        yield _row("bytes", f"one bit of {size} bytes", functools.partial(byte_of, place=place, size=size))
    for modulus in (2, 3, 7):
        yield _row("low digits", f"modulo {modulus}", functools.partial(huge, modulus=modulus))
