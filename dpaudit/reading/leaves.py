"""Leaves: places in outputs, and what is read there.

The number under key "a", the length of the list at position 0, whether a key is there, which of the usual texts stands
here: each is a leaf. What an output holds at one level (`Parts`) is the same whoever asks: leaves that are noted, and
layouts that read columns.
"""

from __future__ import annotations

import bz2
import dataclasses
import functools
import lzma
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dpaudit.reading.outcomes import canonical, number_of, plain, state_of
from dpaudit.reading.outlines import NUMBER
from dpaudit.reading.whole_numbers import WHOLE_FROM

DEEPEST_LEAF = 36  # levels of nesting
LONGEST = 256  # positions of a sequence that have leaves of their own
LONGEST_TEXT = 20_000  # characters of a text in which numbers and words are looked for
WORD = re.compile(r"[^\W\d_]+")
TEXT = "text"  # the step from a text to the numbers in it
LETTERS = "letters"  # the step from a text to its characters, each at its place
BYTES = "bytes"  # the step from bytes to the numbers that they are, each at its place
INSIDE = "inside"  # the step from compressed bytes to what they hold
MOST_LETTERS = 64  # characters of a text that are looked at; those of a longer one are not
MOST_BYTES = 224  # the same of bytes, the first ones
LARGEST_INSIDE = 1 << 20  # bytes that compressed ones may hold, as far as anybody looks


VALUE, PRESENT, LENGTH, CODE, HOLDS = "value", "presence", "length", "category", "membership"
LOW = "low digits"  # of an integer that has more digits than a double
LOW_MODULUS = 10**15  # the last digits of a large integer: so many are exact in a double
PLACE = "place"  # of a key among those of its mapping, in the order in which they come
MOST_PLACED = 64  # of a mapping, of which places are read: those of a larger one are not
SUM_DIGITS = 9  # of the size of its numbers, that a sum is read to: what lower ones leak is the floating-point check's
# Of the numbers in a sequence, in a set in increasing order. A position is the sequence's length where there is none.
SUMMARIES = ("sum", "smallest", "largest", "last", "nonzeros", "first nonzero", "position of the largest")
PRIMARY = (VALUE, PRESENT, LENGTH, CODE, HOLDS, PLACE, LOW)

Path = tuple[str | int, ...]
Place = tuple[Path, str]  # a path, and what is read there


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One column: what is read at a place.

    `path` leads there: a position in a sequence (in a set: among its sorted numbers), the canonical token of a key,
    `TEXT` or `LETTERS`. `codes` are the texts that a category is numbered by, from those that speak most for x_prime to
    those that speak most for x, or the one member that is looked for.
    """

    path: Path
    what: str
    codes: tuple[str, ...] = ()

    @functools.cached_property
    def place(self) -> Place:
        """Where it is, and what is read there."""
        return self.path, self.what

    @functools.cached_property
    def numbered(self) -> Mapping[str, float]:
        """The numbers of its texts."""
        return {code: float(number) for number, code in enumerate(self.codes)}

    def describe(self) -> str:
        words = {TEXT: ", number", LETTERS: ", character", BYTES: ", byte", INSIDE: ", uncompressed"}
        place = "the output" + "".join(
            f", position {step}" if isinstance(step, int) else words.get(step, f", key {step}") for step in self.path
        )
        if self.what == HOLDS:
            return f"whether {self.codes[0]} is in {place}"
        return f"{self.what} of {place}" if self.what != VALUE else place


class Parts(NamedTuple):
    """One level of an output that is no number: the category that it is, or what it holds."""

    category: str | None = None
    length: int | None = None
    items: Mapping[str, Any] | None = None  # of a mapping or an object, by the tokens of the keys
    sequence: Sequence[Any] | None = None  # of a sequence; the numbers of a set, in increasing order; those of a text
    members: frozenset[str] | None = None  # tokens of a set, words of a text
    letters: str = ""  # of a short text
    is_mapping: bool = False  # whose keys come in an order


def parts_of(value: Any) -> Parts:
    """The parts of a plain value that is no number."""
    kind = type(value)
    if kind is list or kind is tuple:  # the usual cases, faster
        return Parts(None, len(value), None, value)
    if kind is dict:
        return Parts(None, len(value), _items(value), is_mapping=True)
    if isinstance(value, str | bytes):
        start = value[:LONGEST_TEXT] if isinstance(value, str) else value[:LONGEST_TEXT].decode("latin-1")
        found = [float(number) for number in NUMBER.findall(start)]
        letters = start if isinstance(value, str) and 2 <= len(start) <= MOST_LETTERS else ""
        items: dict[str, Any] | None = {TEXT: found} if found else None
        if isinstance(value, bytes):
            items = {**(items or {}), BYTES: list(value[:MOST_BYTES])}
            if (inside := inside_of(value)) is not None:
                items[INSIDE] = inside.decode("latin-1")
        return Parts(repr(value), len(value), items, None, frozenset(WORD.findall(start)), letters)
    if isinstance(value, Mapping):
        return Parts(None, len(value), _items(value), is_mapping=True)
    if isinstance(value, set | frozenset):
        members = frozenset(canonical(item) for item in value)
        return Parts(None, len(value), None, sorted(numbers_in(value)), members)
    if isinstance(value, Sequence):
        return Parts(None, len(value), None, value if isinstance(value, list | tuple) else list(value))
    state = state_of(value)
    if state:
        return Parts(None, None, _items(state))
    text = canonical(value)  # what an object prints, for example
    found = [float(number) for number in NUMBER.findall(text[:LONGEST_TEXT])]
    return Parts(text, None, {TEXT: found} if found else None)


def numbers_in(values: Iterable[Any]) -> list[float]:
    """The numbers among some values, NaN left out."""
    return [number for item in values if (number := number_of(plain(item))) == number]


def _items(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """The items by the tokens of their keys; of keys with one token, the item with the first token."""
    items: dict[str, Any] = {}
    if set(map(type, mapping)) == {str}:  # the usual case: no two of these have one token
        return {repr(key): item for key, item in mapping.items()}
    for key, item in mapping.items():
        token = repr(key) if type(key) is str else canonical(key)
        if token not in items or canonical(item) < canonical(items[token]):
            items[token] = item
    return items


def summaries_of(numbers: Sequence[float], length: int) -> dict[str, float]:
    """`SUMMARIES` of the numbers of a sequence of this length."""
    if not numbers:
        return {}
    largest = max(numbers)
    first = next((float(k) for k, number in enumerate(numbers) if number != 0.0), float(length))
    return {
        "sum": rounded_sum(numbers),
        "smallest": min(numbers),
        "largest": largest,
        "last": numbers[-1],
        "nonzeros": float(sum(number != 0.0 for number in numbers)),
        "first nonzero": first,
        "position of the largest": float(numbers.index(largest)),
    }


def rounded_sum(numbers: Sequence[float]) -> float:
    """The sum of some numbers, to nine digits of their size: of one that is given nothing but rounding would be left.

    NaN where it is too large, and of infinities of both signs.
    """
    try:
        total = math.fsum(numbers)  # rounded once: the same in any order
        size = math.fsum(map(abs, numbers))
        return round(total, SUM_DIGITS - math.ceil(math.log10(size))) if 0.0 < size < math.inf else total
    except (OverflowError, ValueError):
        return math.nan


def is_long(value: Any) -> bool:
    """Whether a number is an integer that may have more digits than a double."""
    return isinstance(value, int) and abs(value) >= WHOLE_FROM


def inside_of(value: bytes) -> bytes | None:
    """What compressed bytes hold, as far as anybody looks; None of others, and of those that do not open."""
    try:
        if value[:2] == b"\x1f\x8b" or (
            value[:1] == b"\x78" and len(value) > 2 and not (value[0] * 256 + value[1]) % 31
        ):
            return zlib.decompressobj(47).decompress(value, LARGEST_INSIDE)
        if value[:3] == b"BZh":
            return bz2.BZ2Decompressor().decompress(value, LARGEST_INSIDE)
        if value[:6] == b"\xfd7zXZ\x00":
            return lzma.LZMADecompressor(memlimit=1 << 26).decompress(value, LARGEST_INSIDE)
    except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError):
        return None
    return None


def has_places(parts: Parts) -> bool:
    """Whether the order of its items is read."""
    return parts.is_mapping and 1 < len(parts.items or ()) <= MOST_PLACED
