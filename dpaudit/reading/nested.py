"""Layouts: objects as columns of numbers, the same columns for every output, learned from training draws.

A leaf is a place in an output and what is read there: the number under key "a", the length of the list at position 0,
whether a key is there, which of the usual texts stands here. A `Layout` is a list of leaves. It is fixed by the
training draws and is part of the score that reads through it, so it is saved and replayed with it.

Outputs of one form are read together, column by column. Those that a layout is learned from have all their leaves noted
(`Leaves`), and so have expansions, which many outputs share: a layout takes them from there. All ways read the same.

Validity: a layout reads one output at a time, and what it reads is a function of the output's contents: numbers by
value, sets without order (their numbers are sorted), dictionaries by their keys, and by the order in which these come.
What is not there is NaN.
"""

from __future__ import annotations

import array
import bz2
import collections
import dataclasses
import functools
import itertools
import lzma
import math
import re
import sys
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.log_ratios import shrunk_log_ratio
from dpaudit.reading.outcomes import LARGEST_EXACT, Notes, Outcomes, canonical, is_number, number_of, plain, state_of
from dpaudit.reading.outlines import NUMBER
from dpaudit.reading.unread import Limits

MOST_LEAVES = 256  # columns of a layout: a bound on time
MOST_CODES = 64  # texts of one place that have a number of their own
MOST_MEMBERS = 32  # members of one place's sets, and words of its texts, that are looked for
LEARNED_FROM = 1_000  # draws of one side that the leaves are collected from
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
MOST_NOTED = 256  # leaves of an output that are noted: a bound on memory
MOST_SHARED = 1_024  # the same of what many outputs share
MOST_PLACES = 200_000  # of all outputs, that have a number: a bound on memory

LIMITS = Limits(DEEPEST_LEAF, MOST_LETTERS, LONGEST_TEXT, MOST_BYTES, LONGEST, 64)

VALUE, PRESENT, LENGTH, CODE, HOLDS = "value", "presence", "length", "category", "membership"
LOW = "low digits"  # of an integer that has more digits than a double
LOW_MODULUS = 10**15  # the last digits of a large integer: so many are exact in a double
PLACE = "place"  # of a key among those of its mapping, in the order in which they come
MOST_PLACED = LIMITS.keys  # of a mapping, of which places are read: those of a larger one are not
SUM_DIGITS = 9  # of the size of its numbers, that a sum is read to: what lower ones leak is the floating-point check's
# Of the numbers in a sequence, in a set in increasing order. A position is the sequence's length where there is none.
SUMMARIES = ("sum", "smallest", "largest", "last", "nonzeros", "first nonzero", "position of the largest")
FEWEST_ALIKE = 8  # outputs of one form that are read together
SUMMARISED = 1_000_000  # numbers of sequences that are summarised at once: a bound on memory
NUMBERS, SEQUENCES, KEYS = frozenset({float, int, bool}), frozenset({list, tuple}), frozenset({str, int})  # of these
PRIMARY = (VALUE, PRESENT, LENGTH, CODE, HOLDS, PLACE, LOW)
SEVERAL = "several"  # noted beside the summaries, where they are of more than one number

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


class _Node:
    """A place of a layout: the columns that are read there, and the places below; -1 for a column it has not."""

    def __init__(self) -> None:
        self.value = self.present = self.length = self.code = self.place = self.low = -1
        self.codes: Mapping[str, float] = {}
        self.members: dict[str, int] = {}
        self.summaries: dict[str, int] = {}
        self.children: dict[str | int, _Node] = {}

    def add(self, leaf: Leaf, column: int) -> None:
        """Read a leaf of this place into a column."""
        if leaf.what == HOLDS:
            self.members[leaf.codes[0]] = column
        elif leaf.what in SUMMARIES:
            self.summaries[leaf.what] = column
        elif leaf.what == VALUE:
            self.value = column
        elif leaf.what == PRESENT:
            self.present = column
        elif leaf.what == LENGTH:
            self.length = column
        elif leaf.what == PLACE:
            self.place = column
        elif leaf.what == LOW:
            self.low = column
        else:
            self.code, self.codes = column, leaf.numbered

    def child(self, step: str | int) -> _Node:
        return self.children.setdefault(step, _Node())


@dataclasses.dataclass(frozen=True)
class Layout:
    """A view: the leaves of an output as columns of numbers; NaN where an output has no such leaf."""

    leaves: tuple[Leaf, ...]

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        root = _Node()
        for column, leaf in enumerate(self.leaves):
            node = root
            for step in leaf.path:
                node = node.child(step)
            node.add(leaf, column)
        outcomes = outcomes.as_objects()
        start = [0.0 if leaf.what == PRESENT else math.nan for leaf in self.leaves]
        columns = np.empty((len(outcomes), len(start)))
        columns[:] = start
        of_forms, others = _by_form(outcomes)
        if of_forms:
            self._take(of_forms, columns)
        if len(others):
            _read_all(root, [outcomes.raw[position] for position in others], np.array(others), columns)
        return Outcomes(columns)

    def _take(self, of_forms: Mapping[_Form, tuple[list[int], list[Leaves]]], columns: FloatArray) -> None:
        """Write what is noted of outputs into their rows, those of one form together."""
        size = len(NOTED.every)  # more may come from other threads, which none of these forms has
        at_place = np.full(size, -1, dtype=np.intp)  # where a form has what is read at each place
        known = [(k, NOTED.find(leaf.place)) for k, leaf in enumerate(self.leaves)]
        own = [(k, number) for k, number in known if number is not None and number < size]
        kinds = [[pair for pair in own if _kind_of(self.leaves[pair[0]].what) == kind] for kind in range(3)]
        of_kinds = [np.array(pairs, dtype=np.intp).reshape(-1, 2) for pairs in kinds]
        for form, (positions, noted) in of_forms.items():
            found = []
            for of_kind, places in zip(of_kinds, form.places, strict=True):
                at_place[places] = np.arange(len(places))
                at = at_place[of_kind[:, 1]]
                at_place[places] = -1
                found.append((of_kind[at >= 0, 0], at[at >= 0]))
            (of_numbers, at), (of_tokens, at_token), (of_members, at_members) = found
            seen: dict[int, int] = {}  # outputs may share their leaves: what is read of these is read once
            which = np.array([seen.setdefault(id(leaves), len(seen)) for leaves in noted])
            distinct = list({id(leaves): leaves for leaves in noted}.values())
            rows = np.array(positions)[:, None]
            if len(of_numbers):
                numbers = np.frombuffer(b"".join([leaves.numbers for leaves in distinct])).reshape(len(distinct), -1)
                columns[rows, of_numbers] = numbers[:, at][which]
            if len(of_tokens):
                numbered = [self.leaves[k].numbered for k in of_tokens.tolist()]
                codes = list(zip(numbered, at_token.tolist(), strict=True))
                read = [[own.get(leaves.tokens[k], -1.0) for own, k in codes] for leaves in distinct]
                columns[rows, of_tokens] = np.array(read)[which]
            if len(of_members):
                sought = [(self.leaves[k].codes[0], at) for k, at in zip(of_members, at_members, strict=True)]
                held = [[one in leaves.members[k] for one, k in sought] for leaves in distinct]
                columns[rows, of_members] = np.array(held)[which]

    def only(self, columns: Sequence[int]) -> Layout:
        """The layout of some of its columns."""
        return Layout(tuple(self.leaves[column] for column in columns))

    def to_dict(self) -> dict[str, Any]:
        leaves = [{"path": list(leaf.path), "what": leaf.what, "codes": list(leaf.codes)} for leaf in self.leaves]
        return {"kind": "layout", "leaves": leaves}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Layout:
        known = {*PRIMARY, *SUMMARIES}
        if any(leaf["what"] not in known for leaf in record["leaves"]):
            raise ValueError(f"leaf must be one of {', '.join(sorted(known))}, got {record['leaves']!r:.200}.")
        return cls(tuple(Leaf(tuple(leaf["path"]), leaf["what"], tuple(leaf["codes"])) for leaf in record["leaves"]))

    def name_of(self, column: int) -> str:
        return self.leaves[column].describe()

    def values_of(self, column: int) -> Mapping[float, str] | None:
        """The values of a column, with their names: categories, and whether something is there."""
        leaf = self.leaves[column]
        if leaf.what == CODE:
            return {**{float(k): code for k, code in enumerate(leaf.codes)}, -1.0: "another one"}
        return {0.0: "no", 1.0: "yes"} if leaf.what in (PRESENT, HOLDS) else None

    @property
    def of_columns(self) -> str:
        """What a column is."""
        return "a number, length or category at a fixed place"


class _Parts(NamedTuple):
    """One level of an output that is no number: the category that it is, or what it holds."""

    category: str | None = None
    length: int | None = None
    items: Mapping[str, Any] | None = None  # of a mapping or an object, by the tokens of the keys
    sequence: Sequence[Any] | None = None  # of a sequence; the numbers of a set, in increasing order; those of a text
    members: frozenset[str] | None = None  # tokens of a set, words of a text
    letters: str = ""  # of a short text
    is_mapping: bool = False  # whose keys come in an order


def _parts(value: Any) -> _Parts:
    """The parts of a plain value that is no number."""
    kind = type(value)
    if kind is list or kind is tuple:  # the usual cases, faster
        return _Parts(None, len(value), None, value)
    if kind is dict:
        return _Parts(None, len(value), _items(value), is_mapping=True)
    if isinstance(value, str | bytes):
        start = value[:LONGEST_TEXT] if isinstance(value, str) else value[:LONGEST_TEXT].decode("latin-1")
        found = [float(number) for number in NUMBER.findall(start)]
        letters = start if isinstance(value, str) and 2 <= len(start) <= MOST_LETTERS else ""
        items: dict[str, Any] | None = {TEXT: found} if found else None
        if isinstance(value, bytes):
            items = {**(items or {}), BYTES: list(value[:MOST_BYTES])}
            if (inside := inside_of(value)) is not None:
                items[INSIDE] = inside.decode("latin-1")
        return _Parts(repr(value), len(value), items, None, frozenset(WORD.findall(start)), letters)
    if isinstance(value, Mapping):
        return _Parts(None, len(value), _items(value), is_mapping=True)
    if isinstance(value, set | frozenset):
        members = frozenset(canonical(item) for item in value)
        return _Parts(None, len(value), None, sorted(_numbers(value)), members)
    if isinstance(value, Sequence):
        return _Parts(None, len(value), None, value if isinstance(value, list | tuple) else list(value))
    state = state_of(value)
    if state:
        return _Parts(None, None, _items(state))
    text = canonical(value)  # what an object prints, for example
    found = [float(number) for number in NUMBER.findall(text[:LONGEST_TEXT])]
    return _Parts(text, None, {TEXT: found} if found else None)


def _numbers(values: Iterable[Any]) -> list[float]:
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


def _summaries(numbers: Sequence[float], length: int) -> dict[str, float]:
    """`SUMMARIES` of the numbers of a sequence of this length."""
    if not numbers:
        return {}
    largest = max(numbers)
    first = next((float(k) for k, number in enumerate(numbers) if number != 0.0), float(length))
    return {
        "sum": _sum(numbers),
        "smallest": min(numbers),
        "largest": largest,
        "last": numbers[-1],
        "nonzeros": float(sum(number != 0.0 for number in numbers)),
        "first nonzero": first,
        "position of the largest": float(numbers.index(largest)),
    }


def _sum(numbers: Sequence[float]) -> float:
    """The sum of some numbers, to nine digits of their size: of one that is given nothing but rounding would be left.

    NaN where it is too large, and of infinities of both signs.
    """
    try:
        total = math.fsum(numbers)  # rounded once: the same in any order
        size = math.fsum(map(abs, numbers))
        return round(total, SUM_DIGITS - math.ceil(math.log10(size))) if 0.0 < size < math.inf else total
    except (OverflowError, ValueError):
        return math.nan


def _read_all(node: _Node, values: Sequence[Any], rows: NDArray[np.intp], columns: FloatArray) -> None:
    """Write what is read at a place and below of many values into their rows: those of one form column by column.

    Validity: what is written of a value is what `_read` writes of it alone.
    """
    kinds = set(map(type, values))
    if len(values) < FEWEST_ALIKE:
        parts: Iterable[Sequence[int]] = ()
    elif kinds <= NUMBERS:
        parts = (range(len(values)),) if _read_numbers(node, values, rows, columns) else ()
    elif kinds == {str}:
        parts = (range(len(values)),)
        _read_texts(node, values, rows, columns)
    elif kinds == {dict}:
        parts = _read_mappings(node, values, rows, columns)
    elif kinds <= SEQUENCES:
        parts = _read_sequences(node, values, rows, columns)
    elif len(kinds) > 1:
        of_kinds: dict[Any, list[int]] = {}
        for position, value in enumerate(values):
            kind = type(value)
            of_kinds.setdefault(float if kind in NUMBERS else list if kind in SEQUENCES else kind, []).append(position)
        parts = list(of_kinds.values()) if len(of_kinds) > 1 else ()
        for positions in parts:
            _read_all(node, [values[k] for k in positions], rows[positions], columns)
    else:
        parts = ()
    done = sum(map(len, parts))
    if done == len(values):
        return
    read = set(itertools.chain.from_iterable(parts))
    for position, (value, row) in enumerate(zip(values, rows.tolist(), strict=True)):
        if position not in read:
            _read(node, value, columns[row])


def _put(columns: FloatArray, rows: NDArray[np.intp], column: int, numbers: Any) -> None:
    """Write numbers into a column, if a layout has it."""
    if column >= 0:
        columns[rows, column] = numbers


def _read_numbers(node: _Node, values: Sequence[Any], rows: NDArray[np.intp], columns: FloatArray) -> bool:
    """`_read_all` of numbers; False where one is too large for a double."""
    if node.low >= 0 or node.value >= 0:
        try:
            numbers = list(map(float, values))
        except OverflowError:
            return False
        _put(columns, rows, node.value, numbers)
    if node.low >= 0:
        for value, row in zip(values, rows.tolist(), strict=True):
            if _is_long(value):
                columns[row, node.low] = float(value % LOW_MODULUS)
    _put(columns, rows, node.present, 1.0)
    return True


def _read_texts(node: _Node, values: Sequence[str], rows: NDArray[np.intp], columns: FloatArray) -> None:
    """`_read_all` of texts."""
    _put(columns, rows, node.present, 1.0)
    _put(columns, rows, node.length, [float(len(value)) for value in values])
    if node.code >= 0:
        columns[rows, node.code] = [node.codes.get(token, -1.0) for token in map(repr, values)]
    if not node.members and not node.children:  # the usual case: nobody looks into the texts
        return
    starts = [value[:LONGEST_TEXT] for value in values]
    if node.members:
        words = [frozenset(WORD.findall(start)) for start in starts]
        for member, column in node.members.items():
            columns[rows, column] = [float(member in own) for own in words]
    if TEXT in node.children:
        found = [[float(number) for number in NUMBER.findall(start)] for start in starts]
        some = [k for k, own in enumerate(found) if own]
        _read_all(node.children[TEXT], [found[k] for k in some], rows[some], columns)
    if LETTERS in node.children:
        short = [k for k, start in enumerate(starts) if 2 <= len(start) <= MOST_LETTERS]
        for step, child in node.children[LETTERS].children.items():
            if not isinstance(step, int):
                continue
            some = [k for k in short if step < len(starts[k])]
            _read_all(child, [starts[k][step] for k in some], rows[some], columns)


def _read_mappings(
    node: _Node, values: Sequence[dict[Any, Any]], rows: NDArray[np.intp], columns: FloatArray
) -> list[list[int]]:
    """`_read_all` of dictionaries: of those that have the same texts and integers as keys, in the same order.

    Returns the positions of those that were read.
    """
    if not set(map(type, itertools.chain.from_iterable(values))) <= KEYS:
        return []
    of_keys: dict[tuple[Any, ...], list[int]] = {}
    for position, value in enumerate(values):
        of_keys.setdefault(tuple(value), []).append(position)
    alike = [(keys, positions) for keys, positions in of_keys.items() if len(positions) >= FEWEST_ALIKE]
    for keys, positions in alike:
        own = rows[positions]
        _put(columns, own, node.present, 1.0)
        _put(columns, own, node.length, float(len(keys)))
        for place, key in enumerate(keys):
            child = node.children.get(canonical(key))
            if child is None:
                continue
            if 1 < len(keys) <= MOST_PLACED:
                _put(columns, own, child.place, float(place))
            _read_all(child, [values[k][key] for k in positions], own, columns)
    return [positions for _, positions in alike]


def _read_sequences(
    node: _Node, values: Sequence[Any], rows: NDArray[np.intp], columns: FloatArray
) -> list[list[int]]:
    """`_read_all` of lists and tuples: of those that have one length. The positions of those that were read."""
    of_lengths: dict[int, list[int]] = {}
    for position, value in enumerate(values):
        of_lengths.setdefault(len(value), []).append(position)
    alike = [(size, positions) for size, positions in of_lengths.items() if len(positions) >= FEWEST_ALIKE]
    for size, positions in alike:
        own = rows[positions]
        _put(columns, own, node.present, 1.0)
        _put(columns, own, node.length, float(size))
        for step, child in node.children.items():
            if isinstance(step, int) and step < size:
                _read_all(child, [values[k][step] for k in positions], own, columns)
        if node.summaries:
            _summarise([values[k] for k in positions], node.summaries, own, columns)
    return [positions for _, positions in alike]


def _summarise(
    values: Sequence[Sequence[Any]], wanted: Mapping[str, int], rows: NDArray[np.intp], columns: FloatArray
) -> None:
    """The summaries of sequences of one length, each into its column: as `_summaries` has them."""
    at_once = max(1, SUMMARISED // max(len(values[0]), 1))
    for start in range(0, len(values), at_once):
        part = slice(start, start + at_once)
        _summarise_some(values[part], wanted, rows[part], columns)


def _summarise_some(
    values: Sequence[Sequence[Any]], wanted: Mapping[str, int], rows: NDArray[np.intp], columns: FloatArray
) -> None:
    numbers = None
    if set(map(type, itertools.chain.from_iterable(values))) <= NUMBERS and len(values[0]):
        try:
            numbers = np.array([list(map(float, value)) for value in values])
        except OverflowError:
            numbers = None
    if numbers is None or np.any(np.isnan(numbers)) or np.any((numbers == 0.0) & np.signbit(numbers)):
        for value, row in zip(values, rows.tolist(), strict=True):
            for what, number in _summaries(_numbers(value), len(value)).items():
                if what in wanted:
                    columns[row, wanted[what]] = number
        return
    size, is_nonzero = numbers.shape[1], numbers != 0.0
    found: dict[str, Callable[[], Any]] = {
        "sum": lambda: list(map(_sum, numbers.tolist())),
        "smallest": lambda: numbers.min(axis=1),
        "largest": lambda: numbers.max(axis=1),
        "last": lambda: numbers[:, -1],
        "nonzeros": lambda: is_nonzero.sum(axis=1),
        "first nonzero": lambda: np.where(is_nonzero.any(axis=1), is_nonzero.argmax(axis=1), size),
        "position of the largest": lambda: numbers.argmax(axis=1),
    }
    for what, column in wanted.items():
        columns[rows, column] = found[what]()


def _read(node: _Node, value: Any, row: FloatArray) -> None:
    """Write what is read at a place and below into a row."""
    if node.present >= 0:
        row[node.present] = 1.0
    kind = type(value)
    if kind is not dict and kind is not list and kind is not tuple:
        value = plain(value)
        if is_number(value):
            if node.value >= 0:
                row[node.value] = number_of(value)
            if node.low >= 0 and _is_long(value):
                row[node.low] = float(value % LOW_MODULUS)
            return
    if isinstance(value, str) and not node.members and not node.children:  # the usual case: nobody looks into the text
        if node.length >= 0:
            row[node.length] = len(value)
        if node.code >= 0:
            row[node.code] = node.codes.get(repr(value), -1.0)
        return
    parts = _parts(value)
    if node.length >= 0 and parts.length is not None:
        row[node.length] = parts.length
    if node.code >= 0 and parts.category is not None:
        row[node.code] = node.codes.get(parts.category, -1.0)
    if parts.members is not None:
        for member, column in node.members.items():
            row[column] = float(member in parts.members)
    if parts.letters and LETTERS in node.children:
        for step, child in node.children[LETTERS].children.items():
            if isinstance(step, int) and step < len(parts.letters):
                _read(child, parts.letters[step], row)
    if parts.sequence is not None:
        size = len(parts.sequence)
        for step, child in node.children.items():
            if isinstance(step, int) and step < size:
                _read(child, parts.sequence[step], row)
        if node.summaries:
            for what, number in _summaries(_numbers(parts.sequence), size).items():
                if what in node.summaries:
                    row[node.summaries[what]] = number
    elif parts.items is not None:
        for token, child in node.children.items():
            if token in parts.items:
                _read(child, parts.items[str(token)], row)
        if _has_places(parts) and any(child.place >= 0 for child in node.children.values()):
            for place, token in enumerate(parts.items):
                if token in node.children and node.children[token].place >= 0:
                    row[node.children[token].place] = float(place)


def _is_long(value: Any) -> bool:
    """Whether a number is an integer that may have more digits than a double."""
    return isinstance(value, int) and abs(value) >= LARGEST_EXACT


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


def _has_places(parts: _Parts) -> bool:
    """Whether the order of its items is read."""
    return parts.is_mapping and 1 < len(parts.items or ()) <= MOST_PLACED


def _kind_of(what: str) -> int:
    """Whether numbers (0), a category's token (1) or the tokens of members (2) are read."""
    return {CODE: 1, HOLDS: 2}.get(what, 0)


class _Form:
    """Where the leaves of outputs stand: one for all that have the same places.

    Attributes
    ----------
    places : tuple of ndarray of int
        The numbers that `Places` has for those of numbers, of tokens, and of sets of members, in their order.
    counted : ndarray of int
        Those that a layout may read: of summaries only where they are of several numbers.
    """

    __slots__ = ("__weakref__", "counted", "places")

    def __init__(self, numbers: tuple[tuple[int, ...], ...], every: Sequence[Place]) -> None:
        self.places = tuple(np.array(several, dtype=np.intp) for several in numbers)
        found = [every[number] for number in numbers[0]]
        several = {path for path, what in found if what == SEVERAL}
        is_counted = [what != SEVERAL and (what not in SUMMARIES or path in several) for path, what in found]
        self.counted = np.concatenate([self.places[0][is_counted], self.places[1]])


TOO_MANY = object()  # in the place of leaves


class Places:
    """All places that outputs had, with a number for each, and the forms of outputs.

    Attributes
    ----------
    every : list of Place
        The places in the order of their numbers.
    root : _Spot
        Where outputs begin.
    """

    def __init__(self) -> None:
        self.every: list[Place] = []
        self.root = _Spot(())
        self._forms: weakref.WeakValueDictionary[tuple[tuple[int, ...], ...], _Form] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()  # audits may run in threads

    def number(self, spot: _Spot, what: str) -> int:
        """The number of the place where this is read at a spot: a new one where it has none yet."""
        found = spot.numbers.get(what)
        if found is None:
            with self._lock:
                found = spot.numbers.get(what)
                if found is None:
                    found = spot.numbers[what] = len(self.every)
                    self.every.append((spot.path, what))
        return found

    def find(self, place: Place) -> int | None:
        """The number of a place; None where no output had it."""
        path, what = place
        spot: _Spot | None = self.root
        for step in path:
            spot = spot.children.get(step) if spot is not None else None
        return None if spot is None else spot.numbers.get(what)

    def form(self, numbers: tuple[tuple[int, ...], ...]) -> _Form:
        """That of an output with numbers, tokens and sets of members at the places of these numbers."""
        with self._lock:
            form = self._forms.get(numbers)
            if form is None:
                assert all(len({*kind}) == len(kind) for kind in numbers), "an output has one thing at a place"
                form = self._forms[numbers] = _Form(numbers, self.every)
        return form


class _Spot:
    """A path in outputs: the numbers of what is read there, and the paths that go on from it.

    Outputs are walked along spots, so that a path that was seen before is not built again.
    """

    __slots__ = ("children", "numbers", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbers: dict[str, int] = {}
        self.children: dict[str | int, _Spot] = {}

    def child(self, step: str | int) -> _Spot:
        """The path that goes on with a step."""
        found = self.children.get(step)
        return found if found is not None else self.children.setdefault(step, _Spot((*self.path, step)))


NOTED = Places()  # those of leaves that are noted


class Leaves:
    """All leaves of one output: its form, and what is read at each place of it."""

    __slots__ = ("form", "members", "numbers", "tokens")

    def __init__(self, output: Any, known: Places = NOTED) -> None:
        places: tuple[list[int], ...] = ([], [], [])
        contents: tuple[list[Any], ...] = ([], [], [])
        _find(output, known.root, known, places, contents)
        self.form = known.form(tuple(map(tuple, places)))
        self.tokens: tuple[str, ...] = tuple(map(sys.intern, contents[1]))
        self.members: tuple[frozenset[str], ...] = tuple(contents[2])
        self.numbers = array.array("d", contents[0]).tobytes()

    def __len__(self) -> int:
        return len(self.tokens) + len(self.numbers) // 8 + sum(map(len, self.members))


def _find(
    value: Any, spot: _Spot, known: Places, places: tuple[list[int], ...], contents: tuple[list[Any], ...]
) -> None:
    """Collect every leaf of one output from a spot on: the number of its place, and what is read there.

    `places` and `contents` have a list for numbers, one for tokens of categories and one for tokens of members.
    """
    of_numbers, numbers = places[0], contents[0]
    number = known.number
    value = plain(value)
    if is_number(value):
        of_numbers.append(number(spot, VALUE))
        numbers.append(number_of(value))
        if _is_long(value):
            of_numbers.append(number(spot, LOW))
            numbers.append(float(value % LOW_MODULUS))
        return
    parts = _parts(value)
    if parts.length is not None:
        of_numbers.append(number(spot, LENGTH))
        numbers.append(parts.length)
    if parts.category is not None:
        places[1].append(number(spot, CODE))
        contents[1].append(parts.category)
    if parts.members is not None:
        places[2].append(number(spot, HOLDS))
        contents[2].append(parts.members)
    if parts.sequence is not None:
        own = _numbers(parts.sequence)
        for what, summary in _summaries(own, len(parts.sequence)).items():
            of_numbers.append(number(spot, what))
            numbers.append(summary)
        if len(own) > 1:
            of_numbers.append(number(spot, SEVERAL))
            numbers.append(1.0)
    if len(spot.path) >= DEEPEST_LEAF:
        return
    if parts.letters:
        letters = spot.child(LETTERS)
        places[1].extend(number(letters.child(k), CODE) for k in range(len(parts.letters)))
        contents[1].extend(map(repr, parts.letters))
    for position, item in enumerate(parts.sequence[:LONGEST] if parts.sequence is not None else ()):
        _find(item, spot.child(position), known, places, contents)
    for token, item in (parts.items or {}).items():
        child = spot.child(token)
        of_numbers.append(number(child, PRESENT))
        numbers.append(1.0)
        _find(item, child, known, places, contents)
    if _has_places(parts):
        of_numbers.extend(number(spot.child(token), PLACE) for token in parts.items or ())
        numbers.extend(map(float, range(len(parts.items or ()))))


def _noted(note: Notes, output: Any) -> Leaves | None:
    """The leaves of an output, noted now if they were not; None where there are too many to keep."""
    if note.leaves is None:
        leaves = Leaves(output) if len(NOTED.every) < MOST_PLACES else None
        most = MOST_SHARED if note.is_shared else MOST_NOTED
        note.leaves = leaves if leaves is not None and len(leaves) <= most else TOO_MANY
    return None if note.leaves is TOO_MANY else note.leaves


def _by_form(outcomes: Outcomes) -> tuple[dict[_Form, tuple[list[int], list[Leaves]]], Sequence[int]]:
    """Outcomes whose leaves are noted, of each form: their positions and leaves; and the positions of all others.

    Noted are those of outputs that a layout was learned from, and those that are shared: others are read faster column
    by column, as often as that comes.
    """
    of_forms: dict[_Form, tuple[list[int], list[Leaves]]] = {}
    if not outcomes.notes:
        return of_forms, range(len(outcomes))
    is_read = np.ones(len(outcomes), dtype=bool)
    for position, note in enumerate(outcomes.notes):
        if note.leaves is None and not note.is_shared:
            continue
        leaves = _noted(note, outcomes.raw[position])
        if leaves is not None:
            positions, noted = of_forms.setdefault(leaves.form, ([], []))
            positions.append(position)
            noted.append(leaves)
            is_read[position] = False
    return of_forms, np.flatnonzero(is_read).tolist()


def learn_layout(first: Outcomes, second: Outcomes) -> tuple[Layout, Outcomes, Outcomes] | None:
    """The layout of outcomes under x and x_prime: the leaves most often met that vary; None if none does.

    With the layout, what it shows of the two. At most `MOST_LEAVES`, in the order of their paths. Of leaves that are
    equal on all draws the first stays.
    """
    # Where too many places were noted, those of these outputs are by themselves, and forgotten.
    known = NOTED if len(NOTED.every) < MOST_PLACES else Places()
    of_sides: list[list[Leaves]] = [list(_learned_from(part.as_objects(), known)) for part in (first, second)]
    total = sum(map(len, of_sides))
    every = known.every
    often = np.zeros(len(every), dtype=np.intp)
    tokens: dict[Place, dict[str, list[float]]] = {}
    for side, outputs in enumerate(of_sides):
        for form, size in collections.Counter(output.form for output in outputs).items():
            often[form.counted] += size
        seen_tokens: collections.Counter[tuple[int, str]] = collections.Counter()
        times = collections.Counter(map(id, outputs))
        for output in {id(output): output for output in outputs}.values():
            _, of_tokens, of_members = output.form.places
            found = list(zip(of_tokens.tolist(), output.tokens, strict=True))
            for place, members in zip(of_members.tolist(), output.members, strict=True):
                found += [(place, member) for member in members]
            if times[id(output)] == 1:
                seen_tokens.update(found)
            else:  # shared by several
                seen_tokens.update(dict.fromkeys(found, times[id(output)]))
        for (at, token), count in seen_tokens.items():
            tokens.setdefault(every[at], {}).setdefault(token, [0.0, 0.0])[side] += count
    counts = {every[at]: int(often[at]) for at in np.flatnonzero(often).tolist()}
    leaves: list[tuple[int, Leaf]] = []
    for (path, what), count in counts.items():
        if what == CODE:
            codes = _codes(tokens[path, what])
            if codes:
                leaves.append((count, Leaf(path, what, codes)))
        elif what != PRESENT or count < total:
            leaves.append((count, Leaf(path, what)))
    for (path, what), pairs in tokens.items():
        if what == HOLDS:
            usual = [(sum(pair), token) for token, pair in pairs.items() if 2.0 <= sum(pair) < total]
            usual.sort(key=lambda entry: (-entry[0], entry[1]))
            leaves += [(int(count), Leaf(path, what, (token,))) for count, token in usual[:MOST_MEMBERS]]

    def order(leaf: Leaf) -> tuple[Any, ...]:
        steps = tuple((isinstance(step, str), str(step), step if isinstance(step, int) else 0) for step in leaf.path)
        kinds = (*PRIMARY, *SUMMARIES)
        return len(leaf.path), tuple((text, number, name) for text, name, number in steps), kinds.index(leaf.what), leaf

    leaves.sort(key=lambda entry: (-entry[0], *order(entry[1])[:3], entry[1].codes))
    layout = Layout(tuple(sorted((leaf for _, leaf in leaves[:MOST_LEAVES]), key=lambda leaf: order(leaf)[1:3])))
    seen = [layout(part).numbers for part in (first, second)]
    both = np.concatenate(seen)
    kept: dict[bytes, int] = {}
    varies = np.any(both != both[:1], axis=0) & ~np.all(np.isnan(both), axis=0)
    # Of equal columns the first stays; leaves come before summaries, which repeat them where there is but one number.
    for column in sorted(np.flatnonzero(varies).tolist(), key=lambda k: layout.leaves[k].what in SUMMARIES):
        kept.setdefault(both[:, column].tobytes(), column)
    if not kept:
        return None
    columns = sorted(kept.values())
    shown = [Outcomes(np.ascontiguousarray(numbers[:, columns])) for numbers in seen]
    return layout.only(columns), shown[0], shown[1]


def _learned_from(outcomes: Outcomes, known: Places) -> Iterator[Leaves]:
    """The leaves of the outcomes that a layout is learned from, whose places have these numbers."""
    for position in range(0, len(outcomes), max(1, -(-len(outcomes) // LEARNED_FROM))):
        output = outcomes.raw[position]
        noted = _noted(outcomes.notes[position], output) if outcomes.notes and known is NOTED else None
        yield Leaves(output, known) if noted is None else noted


def _codes(seen: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """The `MOST_CODES` most frequent texts, seen at least twice, by their log ratio; none if there is but one text."""
    usual = sorted((-sum(pair), token) for token, pair in seen.items() if sum(pair) >= 2.0)[:MOST_CODES]
    if len(seen) < 2 or not usual:
        return ()
    counts = np.array([seen[token] for _, token in usual])
    ratios = shrunk_log_ratio(counts[:, 0], counts[:, 1])
    return tuple(token for _, token in sorted(zip(ratios.tolist(), (token for _, token in usual), strict=True)))
