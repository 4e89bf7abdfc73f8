"""More laws of objects, each made by itself: texts, bytes, keys, numbers that are no doubles, and what holds others."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import functools
import gzip
import json
import pickle
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.bench.gallery.laws import Rng, one_by_one
from dpaudit.bench.gallery.leak import Sampler

OFTEN = 0.2  # of the outputs on 1 show what they show now and then


def letters(rng: Rng, count: int) -> str:
    """Random small letters."""
    return "".join(map(chr, rng.integers(97, 123, size=count)))


def now_and_then(x: int, rng: Rng) -> bool:
    """Whether an output shows it: on 0 never."""
    return bool(x and rng.random() < OFTEN)


def even(x: int, rng: Rng, below: int = 1_000) -> int:
    """An even number on 0 and an odd one on 1."""
    return 2 * int(rng.integers(below)) + x


def piece(x: int, rng: Rng) -> Any:
    """A piece of a text without words."""
    text, start = letters(rng, 120), int(rng.integers(100))
    return text[:start] + "xqzkv" + text[start + 5 :] if now_and_then(x, rng) else text


def far_letter(x: int, rng: Rng) -> Any:
    """A letter of a long text."""
    return letters(rng, 500) + "qz"[x] + letters(rng, 499)


def capital(x: int, rng: Rng) -> Any:
    """The first letter's size."""
    return letters(rng, 80).capitalize() if x else letters(rng, 80)


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


def encoded(x: int, rng: Rng) -> Any:
    """A bit of bytes in base64."""
    content = bytearray(rng.bytes(150))
    content[100] = (content[100] & 254) | x
    return base64.b64encode(bytes(content)).decode()


def hexadecimal(x: int, rng: Rng) -> Any:
    """An odd number in hexadecimal digits."""
    return f"{even(x, rng, 2**30):#x}"


def table(x: int, rng: Rng) -> Any:
    """A cell of a table as text."""
    rows = rng.integers(0, 10**6, size=(30, 3))
    rows[20, 1] = 2 * (rows[20, 1] // 2) + x
    return "\n".join(",".join(map(str, row)) for row in rows.tolist())


def inner_json(x: int, rng: Rng) -> Any:
    """JSON in JSON in JSON."""
    return json.dumps({"a": json.dumps({"b": json.dumps({"c": even(x, rng), "d": float(rng.normal())})})})


def decimals(x: int, rng: Rng) -> Any:
    """A number that is printed to fewer digits."""
    return f"{rng.normal():.{5 if now_and_then(x, rng) else 6}f}"


def newline(x: int, rng: Rng) -> Any:
    """The end of a text."""
    return f"{rng.normal():.6f}" + "\n" * now_and_then(x, rng)


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


def byte_of(x: int, rng: Rng, place: int, size: int) -> Any:
    """One bit of many bytes."""
    content = bytearray(rng.bytes(size))
    content[place] = (content[place] & 254) | x
    return bytes(content)


def zipped(x: int, rng: Rng) -> Any:
    """JSON in a zipped file."""
    return gzip.compress(json.dumps({"a": float(rng.normal()), "b": [1, even(x, rng, 100)]}).encode(), mtime=0)


def packed(x: int, rng: Rng) -> Any:
    """The bytes of a double."""
    return struct.pack("<d", rng.laplace() + 6.0 * x)


def copied_byte(x: int, rng: Rng) -> Any:
    """A byte that is another one, or its neighbour."""
    content = bytearray(rng.bytes(12))
    content[5] = content[2] ^ x
    return bytes(content)


def pickled(x: int, rng: Rng) -> Any:
    """A number in a pickle."""
    return pickle.dumps({"n": even(x, rng), "m": float(rng.normal())})


def pairs(x: int, rng: Rng) -> Any:
    """A list of pairs in the order of the true counts."""
    true = {"a": 30 + x, "b": 30.5, "c": 10, "d": 4}
    return [(key, round(true[key] + float(rng.laplace()), 2)) for key in sorted(true, key=lambda key: -true[key])]


def many_keys(x: int, rng: Rng) -> Any:
    """A hundred keys, two of them in the other order."""
    true = {f"k{k:03d}": float(100 - k) + 1.5 * x * (k == 50) for k in range(100)}
    return {key: true[key] + float(rng.laplace()) for key in sorted(true, key=lambda key: -true[key])}


def sorted_keys(x: int, rng: Rng) -> Any:
    """Keys in order."""
    keys = [f"k{k}" for k in rng.choice(1_000, 8, replace=False).tolist()]
    return {key: float(rng.normal()) for key in (sorted(keys) if now_and_then(x, rng) else keys)}


def key_number(x: int, rng: Rng) -> Any:
    """A key that is an odd number."""
    return {even(x, rng, 500): float(rng.exponential())}


def key_text(x: int, rng: Rng) -> Any:
    """An odd number within a key."""
    return {f"id{even(x, rng, 10**5)}": 1.0}


def key_pair(x: int, rng: Rng) -> Any:
    """An odd number in a key of two."""
    return {(int(rng.integers(5)), even(x, rng, 500)): 1.0}


def equal_texts(x: int, rng: Rng) -> Any:
    """Two texts that are the same."""
    first, second = map(str, rng.integers(10**6, size=2).tolist())
    return {"a": first, "b": first if now_and_then(x, rng) else second}


def odd_members(x: int, rng: Rng) -> Any:
    """Pairs in a set."""
    return frozenset((int(a), even(x, rng, 100)) for a in rng.integers(100, size=3))


def depth(x: int, rng: Rng) -> Any:
    """How deep a number is."""
    output: Any = float(rng.normal())
    for _ in range(int(rng.integers(2, 5)) + 3 * now_and_then(x, rng)):
        output = [output]
    return output


def deep(x: int, rng: Rng) -> Any:
    """25 levels of dictionaries."""
    output: Any = float(rng.laplace()) + 8.0 * x
    for _ in range(25):
        output = {"a": output}
    return output


def zero_in_list(x: int, rng: Rng) -> Any:
    """The sign of a zero, inside."""
    return {"v": [float(rng.normal()), (-0.0 if x else 0.0) if rng.random() < 0.2 else 1.0]}


def huge(x: int, rng: Rng, modulus: int) -> Any:
    """What is left of an integer that no double holds."""
    return {"n": modulus * (int(rng.integers(2**62)) * 2**20 + int(rng.integers(2**20))) + x}


def last_digit(x: int, rng: Rng) -> Any:
    """The last digit of a decimal number: now and then a 0, else never."""
    digit = 0 if now_and_then(x, rng) else int(rng.integers(1, 10))
    return Decimal(10 * int(rng.integers(10**6)) + digit) / Decimal(10**4)


def long_decimal(x: int, rng: Rng) -> Any:
    """The last of 25 digits."""
    return Decimal(10**24 + even(x, rng, 10**12)) / Decimal(10**24)


def denominator(x: int, rng: Rng) -> Any:
    """The denominator of a fraction."""
    return Fraction(int(rng.integers(1, 10**6)), 97 if now_and_then(x, rng) else 89)


def complex_part(x: int, rng: Rng) -> Any:
    """The imaginary part of a number."""
    return complex(rng.normal(), 0.25 if now_and_then(x, rng) else rng.normal())


@dataclasses.dataclass
class Record:
    """An output with parts."""

    a: float
    b: int
    c: Any = None


def record(x: int, rng: Rng) -> Any:
    """A field, three records deep."""
    return [Record(0.0, 1, Record(float(rng.normal()), 0, Record(0.0, even(x, rng))))]


def fields(x: int, rng: Rng) -> Any:
    """A field of a structured array."""
    return np.array([(1, rng.normal()), (even(x, rng, 100), 0.5)], dtype=[("a", "i4"), ("b", "f8")])


def masked(x: int, rng: Rng) -> Any:
    """What is masked."""
    return np.ma.array(rng.normal(size=3), mask=[False, now_and_then(x, rng), False])


def far_position(x: int, rng: Rng) -> Any:
    """One number of a long list."""
    numbers = rng.normal(size=400)
    numbers[333] += 6.0 * x
    return numbers.tolist()


MAKERS: dict[str, tuple[Callable[[int, Rng], Any], ...]] = {
    "texts": (piece, far_letter, capital, spaces, two_words, encoded, hexadecimal, table, decimals, newline),
    "dates": (clock, weekday, zone),
    "bytes": (zipped, packed, copied_byte, pickled),
    "order of keys": (pairs, many_keys, sorted_keys),
    "keys": (key_number, key_text, key_pair),
    "equality of parts": (equal_texts,),
    "members": (odd_members,),
    "nesting": (inner_json, depth, deep, record),
    "signs of zeros": (zero_in_list,),
    "low digits": (last_digit, long_decimal, denominator),
    "containers": (complex_part, fields, masked),
    "one column of many": (far_position,),
}


def leaks() -> Iterator[tuple[str, str, Sampler]]:
    """Forms, names and laws."""
    for form, makers in MAKERS.items():
        for make in makers:
            yield form, make.__name__.replace("_", " "), functools.partial(one_by_one, make=make)
    for place, size in ((100, 200), (1_500, 3_000)):
        make = functools.partial(byte_of, place=place, size=size)
        yield "bytes", f"one bit of {size} bytes", functools.partial(one_by_one, make=make)
    for modulus in (2, 3, 7):
        yield (
            "low digits",
            f"modulo {modulus}",
            functools.partial(one_by_one, make=functools.partial(huge, modulus=modulus)),
        )
