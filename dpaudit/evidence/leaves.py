"""Layouts: objects as columns of numbers, the same columns for every output, learned from training draws.

A leaf is a place in an output and what is read there: the number under key "a", the length of the list at position 0,
whether a key is there, which of the usual texts stands here. A `Layout` is a list of leaves. It is fixed by the
training draws and is part of the score that reads through it, so it is saved and replayed with it.

Validity: a layout reads one output at a time, and what it reads is a function of the output's contents: numbers by
value, sets without order (their numbers are sorted), dictionaries by their keys. What is not there is NaN.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.evidence.histograms import shrunk_log_ratio
from dpaudit.evidence.outcomes import Outcomes, canonical, is_number, number_of, plain, state_of
from dpaudit.evidence.outlines import NUMBER

MOST_LEAVES = 256
MOST_CODES = 64  # texts of one place that have a number of their own
MOST_MEMBERS = 32  # members of one place's sets, and words of its texts, that are looked for
LEARNED_FROM = 1_000  # draws of one side that the leaves are collected from
DEEPEST_LEAF = 8  # levels of nesting
LONGEST = 256  # positions of a sequence that have leaves of their own
LONGEST_TEXT = 2_000  # characters of a text in which numbers and words are looked for
WORD = re.compile(r"[^\W\d_]+")
TEXT = "text"  # the step from a text to the numbers in it
LETTERS = "letters"  # the step from a text to its characters, each at its place
MOST_LETTERS = 32  # characters of a text that are looked at; those of a longer one are not

VALUE, PRESENT, LENGTH, CODE, HOLDS = "value", "presence", "length", "category", "membership"
SUM_DIGITS = 9  # of the size of its numbers, that a sum is read to: what lower ones leak is the floating-point check's
# Of the numbers in a sequence, in a set in increasing order. A position is the sequence's length where there is none.
SUMMARIES = ("sum", "smallest", "largest", "last", "nonzeros", "first nonzero", "position of the largest")
PRIMARY = (VALUE, PRESENT, LENGTH, CODE, HOLDS)

Path = tuple[str | int, ...]


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

    def describe(self) -> str:
        words = {TEXT: ", number", LETTERS: ", character"}
        place = "the output" + "".join(
            f", position {step}" if isinstance(step, int) else words.get(step, f", key {step}") for step in self.path
        )
        if self.what == HOLDS:
            return f"whether {self.codes[0]} is in {place}"
        return f"{self.what} of {place}" if self.what != VALUE else place


class _Node:
    """A place of a layout: the columns that are read there, and the places below; -1 for a column it has not."""

    def __init__(self) -> None:
        self.value = self.present = self.length = self.code = -1
        self.codes: dict[str, float] = {}
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
        else:
            self.code, self.codes = column, {code: float(k) for k, code in enumerate(leaf.codes)}

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
        start = [0.0 if leaf.what == PRESENT else math.nan for leaf in self.leaves]
        rows = []
        for output in outcomes.as_objects().raw:
            row = start.copy()
            _read(root, output, row)
            rows.append(row)
        return Outcomes(np.array(rows).reshape(len(rows), len(start)))

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

    @property
    def of_columns(self) -> str:
        """What a column is."""
        return "a number, length or category at a fixed place"


@dataclasses.dataclass(frozen=True)
class _Parts:
    """One level of an output that is no number: the category that it is, or what it holds."""

    category: str | None = None
    length: int | None = None
    items: Mapping[str, Any] | None = None  # of a mapping or an object, by the tokens of the keys
    sequence: Sequence[Any] | None = None  # of a sequence; the numbers of a set, in increasing order; those of a text
    members: frozenset[str] | None = None  # tokens of a set, words of a text
    letters: str = ""  # of a short text


def _parts(value: Any) -> _Parts:
    """The parts of a plain value that is no number."""
    if isinstance(value, str | bytes):
        start = value[:LONGEST_TEXT] if isinstance(value, str) else value[:LONGEST_TEXT].decode("latin-1")
        found = [float(number) for number in NUMBER.findall(start)]
        letters = start if 2 <= len(start) <= MOST_LETTERS else ""
        items = {TEXT: found} if found else None
        return _Parts(repr(value), len(value), items, None, frozenset(WORD.findall(start)), letters)
    if isinstance(value, Mapping):
        return _Parts(None, len(value), _items(value))
    if isinstance(value, set | frozenset):
        members = frozenset(canonical(item) for item in value)
        return _Parts(None, len(value), None, sorted(_numbers(value)), members)
    if isinstance(value, Sequence):
        return _Parts(None, len(value), None, value if isinstance(value, list | tuple) else list(value))
    state = state_of(value)
    return _Parts(None, None, _items(state)) if state else _Parts(canonical(value))


def _numbers(values: Iterable[Any]) -> list[float]:
    """The numbers among some values, NaN left out."""
    return [number for item in values if (number := number_of(plain(item))) == number]


def _items(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """The items by the tokens of their keys; of keys with one token, the item with the first token."""
    items: dict[str, Any] = {}
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
    try:
        total = math.fsum(numbers)  # rounded once: the same in any order
        size = math.fsum(map(abs, numbers))
        if 0.0 < size < math.inf:
            # To nine digits of their size: where they have a given sum, nothing but rounding would be left of it.
            total = round(total, SUM_DIGITS - math.ceil(math.log10(size)))
    except (OverflowError, ValueError):  # too large; infinities of both signs
        total = math.nan
    return {
        "sum": total,
        "smallest": min(numbers),
        "largest": largest,
        "last": numbers[-1],
        "nonzeros": float(sum(number != 0.0 for number in numbers)),
        "first nonzero": first,
        "position of the largest": float(numbers.index(largest)),
    }


def _read(node: _Node, value: Any, row: list[float]) -> None:
    """Write what is read at a place and below into a row."""
    if node.present >= 0:
        row[node.present] = 1.0
    kind = type(value)
    if kind is not dict and kind is not list and kind is not tuple:
        value = plain(value)
        if is_number(value):
            if node.value >= 0:
                row[node.value] = number_of(value)
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


def _found(value: Any, path: Path, found: list[tuple[Path, str, str]]) -> None:
    """Collect every leaf of one output: the path, what is there, and the token of a category or member."""
    value = plain(value)
    if is_number(value):
        found.append((path, VALUE, ""))
        return
    parts = _parts(value)
    if parts.length is not None:
        found.append((path, LENGTH, ""))
    if parts.category is not None:
        found.append((path, CODE, parts.category))
    for member in parts.members or ():
        found.append((path, HOLDS, member))
    if parts.sequence is not None and len(_numbers(parts.sequence)) > 1:
        found += [(path, what, "") for what in SUMMARIES]
    if len(path) >= DEEPEST_LEAF:
        return
    found += [((*path, LETTERS, k), CODE, repr(letter)) for k, letter in enumerate(parts.letters)]
    for position, item in enumerate(parts.sequence[:LONGEST] if parts.sequence is not None else ()):
        _found(item, (*path, position), found)
    for token, item in (parts.items or {}).items():
        found.append(((*path, token), PRESENT, ""))
        _found(item, (*path, token), found)


def learn_layout(first: Outcomes, second: Outcomes) -> tuple[Layout, Outcomes, Outcomes] | None:
    """The layout of outcomes under x and x_prime: the leaves most often met that vary; None if none does.

    With the layout, what it shows of the two. At most `MOST_LEAVES`, in the order of their paths. Of leaves that are
    equal on all draws the first stays.
    """
    counts: collections.Counter[tuple[Path, str]] = collections.Counter()
    tokens: dict[tuple[Path, str], dict[str, list[float]]] = {}
    total = 0
    for side, outcomes in enumerate((first, second)):
        raw = outcomes.as_objects().raw
        for output in raw[:: -(-len(raw) // LEARNED_FROM)]:
            total += 1
            found: list[tuple[Path, str, str]] = []
            _found(output, (), found)
            for path, what, token in found:
                key = (path, what)
                if what in (CODE, HOLDS):
                    tokens.setdefault(key, {}).setdefault(token, [0.0, 0.0])[side] += 1.0
                    if what == HOLDS:
                        continue
                counts[key] += 1
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

    def place(leaf: Leaf) -> tuple[Any, ...]:
        steps = tuple((isinstance(step, str), str(step), step if isinstance(step, int) else 0) for step in leaf.path)
        kinds = (*PRIMARY, *SUMMARIES)
        return len(leaf.path), tuple((text, number, name) for text, name, number in steps), kinds.index(leaf.what), leaf

    leaves.sort(key=lambda entry: (-entry[0], *place(entry[1])[:3], entry[1].codes))
    layout = Layout(tuple(sorted((leaf for _, leaf in leaves[:MOST_LEAVES]), key=lambda leaf: place(leaf)[1:3])))
    seen = [layout(part).numbers for part in (first, second)]
    both = np.concatenate(seen)
    kept: dict[bytes, int] = {}
    # Of equal columns the first stays; leaves come before summaries, which repeat them where there is but one number.
    for column in sorted(range(both.shape[1]), key=lambda k: layout.leaves[k].what in SUMMARIES):
        if len(np.unique(both[:, column])) > 1:
            kept.setdefault(both[:, column].tobytes(), column)
    if not kept:
        return None
    columns = sorted(kept.values())
    shown = [Outcomes(np.ascontiguousarray(numbers[:, columns])) for numbers in seen]
    return layout.only(columns), shown[0], shown[1]


def _codes(seen: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """The `MOST_CODES` most frequent texts, seen at least twice, by their log ratio; none if there is but one text."""
    usual = sorted((-sum(pair), token) for token, pair in seen.items() if sum(pair) >= 2.0)[:MOST_CODES]
    if len(seen) < 2 or not usual:
        return ()
    counts = np.array([seen[token] for _, token in usual])
    ratios = shrunk_log_ratio(counts[:, 0], counts[:, 1])
    return tuple(token for _, token in sorted(zip(ratios.tolist(), (token for _, token in usual), strict=True)))
