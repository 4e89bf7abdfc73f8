"""Reading by columns: what a layout reads of many outputs, those of one form together.

Validity: what is written of a value is what `read_one` writes of it alone, to the last bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.leaves import (
    HOLDS,
    LENGTH,
    LETTERS,
    LONGEST_TEXT,
    LOW,
    LOW_MODULUS,
    MOST_LETTERS,
    MOST_PLACED,
    PLACE,
    PRESENT,
    SUMMARIES,
    TEXT,
    VALUE,
    WORD,
    Leaf,
    has_places,
    is_long,
    numbers_in,
    parts_of,
    rounded_sum,
    summaries_of,
)
from dpaudit.reading.outcomes import canonical, is_number, number_of, plain
from dpaudit.reading.outlines import NUMBER

FEWEST_ALIKE = 8  # outputs of one form that are read together: for fewer it saves nothing (unmeasured)
SUMMARISED = 1_000_000  # numbers of sequences that are summarised at once: a bound on memory
NUMBERS, SEQUENCES, KEYS = frozenset({float, int, bool}), frozenset({list, tuple}), frozenset({str, int})  # of these


class Node:
    """A place of a layout: the columns that are read there, and the places below; -1 for a column it has not."""

    def __init__(self) -> None:
        self.value = self.present = self.length = self.code = self.place = self.low = -1
        self.codes: Mapping[str, float] = {}
        self.members: dict[str, int] = {}
        self.summaries: dict[str, int] = {}
        self.children: dict[str | int, Node] = {}

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

    def child(self, step: str | int) -> Node:
        return self.children.setdefault(step, Node())


def read_all(node: Node, values: Sequence[Any], rows: NDArray[np.intp], columns: FloatArray) -> None:
    """Write what is read at a place and below of many values into their rows: those of one form column by column."""
    kinds = {_read_as(kind) for kind in set(map(type, values))}
    if len(kinds) > 1:
        for positions in _groups(values, lambda value: _read_as(type(value))).values():
            read_all(node, [values[k] for k in positions], rows[positions], columns)
        return
    read = READERS.get(next(iter(kinds), None)) if len(values) >= FEWEST_ALIKE else None
    left = range(len(values)) if read is None else read(node, values, rows, columns)
    for position in left:
        read_one(node, values[position], columns[rows[position]])


def _read_as(kind: type) -> type:
    """The class that values of a class are read as: one for all numbers, and one for all sequences, that read alike."""
    return float if kind in NUMBERS else list if kind in SEQUENCES else kind


def _groups(values: Sequence[Any], form: Callable[[Any], Any]) -> dict[Any, list[int]]:
    """The positions of values, by their form."""
    found: dict[Any, list[int]] = {}
    for position, value in enumerate(values):
        found.setdefault(form(value), []).append(position)
    return found


def _put(columns: FloatArray, rows: NDArray[np.intp], column: int, numbers: Any) -> None:
    """Write numbers into a column, if a layout has it."""
    if column >= 0:
        columns[rows, column] = numbers


def _read_numbers(
    node: Node, values: Sequence[Any], rows: NDArray[np.intp], columns: FloatArray
) -> Sequence[int]:
    """`read_all` of numbers, all of them or none: none where one is too large for a double."""
    try:
        numbers = list(map(float, values))
    except OverflowError:
        return range(len(values))
    _put(columns, rows, node.present, 1.0)
    _put(columns, rows, node.value, numbers)
    if node.low >= 0:
        for value, row in zip(values, rows.tolist(), strict=True):
            if is_long(value):
                columns[row, node.low] = float(value % LOW_MODULUS)
    return ()


def _read_texts(node: Node, values: Sequence[str], rows: NDArray[np.intp], columns: FloatArray) -> Sequence[int]:
    """`read_all` of texts."""
    _put(columns, rows, node.present, 1.0)
    _put(columns, rows, node.length, [float(len(value)) for value in values])
    if node.code >= 0:
        columns[rows, node.code] = [node.codes.get(token, -1.0) for token in map(repr, values)]
    if not node.members and not node.children:  # the usual case: nobody looks into the texts
        return ()
    starts = [value[:LONGEST_TEXT] for value in values]
    if node.members:
        words = [frozenset(WORD.findall(start)) for start in starts]
        for member, column in node.members.items():
            columns[rows, column] = [float(member in own) for own in words]
    if TEXT in node.children:
        found = [[float(number) for number in NUMBER.findall(start)] for start in starts]
        some = [k for k, own in enumerate(found) if own]
        read_all(node.children[TEXT], [found[k] for k in some], rows[some], columns)
    if LETTERS in node.children:
        short = [k for k, start in enumerate(starts) if 2 <= len(start) <= MOST_LETTERS]
        for step, child in node.children[LETTERS].children.items():
            if not isinstance(step, int):
                continue
            some = [k for k in short if step < len(starts[k])]
            read_all(child, [starts[k][step] for k in some], rows[some], columns)
    return ()


def _read_mappings(
    node: Node, values: Sequence[dict[Any, Any]], rows: NDArray[np.intp], columns: FloatArray
) -> Sequence[int]:
    """`read_all` of dictionaries: of those that have the same texts and integers as keys, in the same order."""
    if not set(map(type, itertools.chain.from_iterable(values))) <= KEYS:
        return range(len(values))
    left: list[int] = []
    for keys, positions in _groups(values, tuple).items():
        if len(positions) < FEWEST_ALIKE:
            left += positions
            continue
        own = rows[positions]
        _put(columns, own, node.present, 1.0)
        _put(columns, own, node.length, float(len(keys)))
        for place, key in enumerate(keys):
            child = node.children.get(canonical(key))
            if child is None:
                continue
            if 1 < len(keys) <= MOST_PLACED:
                _put(columns, own, child.place, float(place))
            read_all(child, [values[k][key] for k in positions], own, columns)
    return left


def _read_sequences(
    node: Node, values: Sequence[Any], rows: NDArray[np.intp], columns: FloatArray
) -> Sequence[int]:
    """`read_all` of lists and tuples: of those that have one length."""
    left: list[int] = []
    for size, positions in _groups(values, len).items():
        if len(positions) < FEWEST_ALIKE:
            left += positions
            continue
        own = rows[positions]
        _put(columns, own, node.present, 1.0)
        _put(columns, own, node.length, float(size))
        for step, child in node.children.items():
            if isinstance(step, int) and step < size:
                read_all(child, [values[k][step] for k in positions], own, columns)
        if node.summaries:
            _summarise([values[k] for k in positions], node.summaries, own, columns)
    return left


# Each writes what it reads of values of one class, and gives the positions of those that it leaves to `read_one`.
READERS: Mapping[Any, Callable[[Node, Sequence[Any], NDArray[np.intp], FloatArray], Sequence[int]]] = {
    float: _read_numbers,
    str: _read_texts,
    dict: _read_mappings,
    list: _read_sequences,
}


def _summarise(
    values: Sequence[Sequence[Any]], wanted: Mapping[str, int], rows: NDArray[np.intp], columns: FloatArray
) -> None:
    """The summaries of sequences of one length, each into its column: as `summaries_of` has them."""
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
            for what, number in summaries_of(numbers_in(value), len(value)).items():
                if what in wanted:
                    columns[row, wanted[what]] = number
        return
    size, is_nonzero = numbers.shape[1], numbers != 0.0
    found: dict[str, Callable[[], Any]] = {
        "sum": lambda: list(map(rounded_sum, numbers.tolist())),
        "smallest": lambda: numbers.min(axis=1),
        "largest": lambda: numbers.max(axis=1),
        "last": lambda: numbers[:, -1],
        "nonzeros": lambda: is_nonzero.sum(axis=1),
        "first nonzero": lambda: np.where(is_nonzero.any(axis=1), is_nonzero.argmax(axis=1), size),
        "position of the largest": lambda: numbers.argmax(axis=1),
    }
    for what, column in wanted.items():
        columns[rows, column] = found[what]()


def read_one(node: Node, value: Any, row: FloatArray) -> None:
    """Write what is read at a place and below into a row."""
    if node.present >= 0:
        row[node.present] = 1.0
    kind = type(value)
    if kind is not dict and kind is not list and kind is not tuple:
        value = plain(value)
        if is_number(value):
            if node.value >= 0:
                row[node.value] = number_of(value)
            if node.low >= 0 and is_long(value):
                row[node.low] = float(value % LOW_MODULUS)
            return
    if isinstance(value, str) and not node.members and not node.children:  # the usual case: nobody looks into the text
        if node.length >= 0:
            row[node.length] = len(value)
        if node.code >= 0:
            row[node.code] = node.codes.get(repr(value), -1.0)
        return
    parts = parts_of(value)
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
                read_one(child, parts.letters[step], row)
    if parts.sequence is not None:
        size = len(parts.sequence)
        for step, child in node.children.items():
            if isinstance(step, int) and step < size:
                read_one(child, parts.sequence[step], row)
        if node.summaries:
            for what, number in summaries_of(numbers_in(parts.sequence), size).items():
                if what in node.summaries:
                    row[node.summaries[what]] = number
    elif parts.items is not None:
        for token, child in node.children.items():
            if token in parts.items:
                read_one(child, parts.items[str(token)], row)
        if has_places(parts) and any(child.place >= 0 for child in node.children.values()):
            for place, token in enumerate(parts.items):
                if token in node.children and node.children[token].place >= 0:
                    row[node.children[token].place] = float(place)
