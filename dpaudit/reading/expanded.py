"""Expansions: what an output holds beside its parts, as plain data that a layout reads.

A text may be JSON, a date, an encoding of bytes or a table; bytes may be numbers; a mapping has keys that are numbers;
a list is in order or not, and has values twice. Each reading is a function of one value here, and a new one is a new
entry of `TEXTS` or `BYTES`, or a line in `expanded`. Of long texts, bytes and lists only what was *learned* to differ
is read: a few places, and a few pieces of text (`Telling`), by a view of their own.

Validity: an expansion is a function of one output, what tells is one of an output and of what earlier draws taught, and
nothing is run that an output holds: JSON, numbers and dates are parsed, pickles are not opened.
"""

from __future__ import annotations

import base64
import binascii
import collections
import dataclasses
import datetime
import itertools
import json
import math
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.identity import class_name
from dpaudit.reading.leaves import LONGEST, MOST_BYTES, MOST_LETTERS, VALUE, inside_of
from dpaudit.reading.nested import Layout, learn_layout
from dpaudit.reading.outcomes import Notes, Outcomes, canonical, plain, state_of
from dpaudit.reading.records import of_records
from dpaudit.reading.whole_numbers import WHOLE_FROM
from dpaudit.subjects.call_outcomes import Failed

DEEPEST = 12  # levels of expansions, those of texts in texts included
# Each of these bounds the time that one output takes:
LONGEST_PARSED = 20_000  # characters of a text, or bytes, that are parsed
MOST_KEYS = 64  # of a mapping that are read as a list
MOST_COMPARED = 2_000  # items of a list of numbers, of which equal ones are counted
MOST_PARTS = 64  # of a list, or of a mapping, that are expanded
MOST_LINES = 64
MOST_KINDS = 8  # items whose classes are read one by one
MOST_EXPANDED = 20_000  # parts of an output, those in texts and in compressed bytes included
LONGEST_SCREENED = 4_000  # places of a long part that are compared
MOST_PLACES = 12  # of a long part that are read
# Bytes of expansions, pickled, that are remembered: of each, and of all. They take some twenty times as much memory.
LARGEST_REMEMBERED, MOST_REMEMBERED = 4_000, 1_000_000
MOST_PIECES = 12  # of a text that are looked for
PIECES = 2, 4  # characters of a piece
LEARNED_FROM = 400  # draws of a side that places and pieces are learned from
LEAST = 3.5  # standard errors by which a place or a piece stands out
FEWEST = 12  # draws of a side
# Of integers that no double holds: what is left of them tells what is left modulo every small number but a few.
MODULUS = 2**6 * 3**3 * 5**2 * 7**2 * 11 * 13 * 17 * 19 * 23 * 29
TYPED = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
HEXADECIMAL = re.compile(r"(0x)?(?:[0-9a-fA-F]{2}){4,}|0x[0-9a-fA-F]+")
ENCODED = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
DELIMITERS = ",;\t|"

Path = tuple[str, ...]  # to a part of an output: the steps as texts
WHOLE = "whole"  # the name of an output that is a text, or long, itself


@dataclasses.dataclass(frozen=True)
class Expansion:
    """Objects as other objects: what they hold beside their parts."""

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        """The expansions as objects without tokens: a layout looks at nothing but what they hold."""
        outcomes = outcomes.as_objects()
        if not outcomes.notes:
            return _as_objects([expanded(output) for output in outcomes.raw])
        noted = [_noted(note, output) for note, output in zip(outcomes.notes, outcomes.raw, strict=True)]
        return _as_objects([one.value for one in noted], tuple(one.notes for one in noted))

    def to_dict(self) -> dict[str, Any]:
        return {"places": [], "pieces": []}


@dataclasses.dataclass(frozen=True)
class Telling:
    """Objects as what was learned to tell of their texts, and of their long parts.

    Attributes
    ----------
    places : mapping
        Positions of long parts that are read, by the paths of these.
    pieces : mapping
        Pieces of texts that are looked for, by the paths of these.
    """

    places: Mapping[Path, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    pieces: Mapping[Path, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        """What tells as objects without tokens, by the paths that lead there."""
        return _as_objects([self.of(output) for output in outcomes.as_objects().raw])

    def of(self, output: Any) -> dict[str, Any]:
        """What tells of one output: nothing of a part that it does not have."""
        found: dict[str, Any] = {}
        for path in sorted(self.places.keys() | self.pieces.keys()):
            part = part_at(output, path)
            if not isinstance(part, str | bytes | Sequence):
                continue
            inside: dict[Any, Any] = {k: _code(part[k]) for k in self.places.get(path, ()) if k < len(part)}
            if isinstance(part, str):
                inside |= {piece: int(piece in part) for piece in self.pieces.get(path, ())}
            found[" ".join(path) or WHOLE] = inside
        return found

    def to_dict(self) -> dict[str, Any]:
        places = [{"path": list(path), "places": list(several)} for path, several in self.places.items()]
        pieces = [{"path": list(path), "pieces": list(several)} for path, several in self.pieces.items()]
        return {"telling": {"places": places, "pieces": pieces}}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Telling:
        """What `to_dict` wrote under "telling"; ValueError where a place is no position."""
        places = {tuple(one["path"]): tuple(map(int, one["places"])) for one in record["places"]}
        if any(place < 0 for several in places.values() for place in several):
            raise ValueError("places must be at least 0.")
        return cls(places, {tuple(one["path"]): tuple(map(str, one["pieces"])) for one in record["pieces"]})


def _as_objects(values: Sequence[Any], notes: tuple[Notes, ...] = ()) -> Outcomes:
    size = len(values)
    return Outcomes(np.full((size, 1), math.nan), np.full(size, "", dtype=object), raw=tuple(values), notes=notes)


def _view_of(record: Mapping[str, Any]) -> Expansion | Telling:
    """What `to_dict` of an expansion, or of what tells, wrote."""
    if "telling" in record:
        return Telling.from_dict(record["telling"])
    if record["places"] or record["pieces"]:
        raise ValueError("rule must be of this version, got one of an earlier one, which read texts in another way.")
    return Expansion()


@dataclasses.dataclass(frozen=True)
class ExpandedLayout:
    """A view: the leaves of an output's expansion, or of what tells, as columns of numbers."""

    expansion: Expansion | Telling
    layout: Layout

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        return self.layout(outcomes.seen_by(self.expansion))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "expanded", "expansion": self.expansion.to_dict(), "layout": self.layout.to_dict()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ExpandedLayout:
        """What `to_dict` wrote."""
        return cls(_view_of(record["expansion"]), Layout.from_dict(record["layout"]))

    def name_of(self, column: int) -> str:
        leaf = self.layout.leaves[column]
        if isinstance(self.expansion, Telling):
            if piece := self._piece(column):
                return f"whether {piece} is in {self._whole(column)}"
            inside = ", ".join(str(step).removesuffix(".0") for step in leaf.path[1:])
            if leaf.what == VALUE:
                return f"place {inside} of {self._whole(column)}"
            return f"{leaf.what} of {inside or 'what'}{', which' * bool(inside)} is looked for in {self._whole(column)}"
        return self.layout.name_of(column).replace("the output", "what the output holds", 1)

    def values_of(self, column: int) -> Mapping[float, str] | None:
        """As for `Layout`."""
        return {0.0: "no", 1.0: "yes"} if self._piece(column) else self.layout.values_of(column)

    def _piece(self, column: int) -> str:
        """The piece of text that a column says whether it is there; "" for another column."""
        leaf = self.layout.leaves[column]
        is_piece = isinstance(self.expansion, Telling) and leaf.what == VALUE and str(leaf.path[-1])[:1] in "'\""
        return str(leaf.path[-1]) if is_piece and len(leaf.path) == 2 else ""

    def _whole(self, column: int) -> str:
        """What pieces and places of a column are of."""
        path = self.layout.leaves[column].path
        name = str(path[0])[1:-1] if path else WHOLE
        return "the output" if name == WHOLE else f"the part {name} of the output"

    @property
    def of_columns(self) -> str:
        """What a column is."""
        return "a feature of what the output holds, beside its parts"


@dataclasses.dataclass(frozen=True)
class Noted:
    """What is noted of an output: its expansion, with notes on that, and its texts and long parts with their paths."""

    value: Any
    notes: Notes
    long: Mapping[Path, Any]


class Shared:
    """Expansions with notes on them, which equal ones share: those of records and tables are often one of a few.

    Equal are those of the same pickled bytes: then they have the same contents, types included. Large ones are not
    remembered, and where small ones have come to `MOST_REMEMBERED` bytes all are forgotten: most were of one output.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Any, Notes]] = {}
        self._bytes = 0

    def of(self, value: Any) -> tuple[Any, Notes]:
        """An expansion that is equal to this one, or itself, with its notes."""
        try:
            content = pickle.dumps(value, protocol=5)
        except Exception:  # of keys that are objects of somebody's own, which may raise anything
            return value, Notes()
        if len(content) > LARGEST_REMEMBERED:
            return value, Notes()
        known = self._known.get(content)
        if known is not None:
            known[1].is_shared = True
            return known
        self._bytes += len(content)
        if self._bytes > MOST_REMEMBERED:
            self._known, self._bytes = {}, len(content)
        found = self._known[content] = value, Notes()
        return found


SHARED = Shared()


def _noted(note: Notes, output: Any) -> Noted:
    """What is noted of an output; noted now if it was not."""
    if note.expansion is None:
        long: dict[Path, Any] = {}
        note.expansion = Noted(*SHARED.of(expanded(output, long=long)), long)
    noted: Noted = note.expansion
    return noted


def learn_expanded_layouts(first: Outcomes, second: Outcomes) -> Iterator[tuple[ExpandedLayout, Outcomes, Outcomes]]:
    """The views of expansions for outcomes of x and x_prime that vary, with what they show of them."""
    for expansion in learn_expansions(first, second):
        learned = learn_layout(first.seen_by(expansion), second.seen_by(expansion))
        if learned is not None:
            layout, *seen = learned
            yield ExpandedLayout(expansion, layout), seen[0], seen[1]


def learn_expansions(first: Outcomes, second: Outcomes) -> list[Expansion | Telling]:
    """The expansion for outcomes of x and x_prime, if there is anything in them to expand, and what tells."""
    long: tuple[dict[Path, list[Any]], dict[Path, list[Any]]] = ({}, {})
    is_any = False
    for side, outcomes in zip(long, (first, second), strict=True):
        some = outcomes.as_objects().rows(slice(0, LEARNED_FROM))
        for note, output in zip(some.notes or itertools.repeat(None), some.raw, strict=False):
            noted = _noted(Notes() if note is None else note, output)
            is_any = noted.value is not None or is_any
            for path, part in noted.long.items():
                side.setdefault(path, []).append(part)
    places: dict[Path, tuple[int, ...]] = {}
    pieces: dict[Path, tuple[str, ...]] = {}
    for path in sorted(long[0].keys() & long[1].keys()):
        a, b = long[0][path], long[1][path]
        if min(len(a), len(b)) < FEWEST:
            continue
        if any(map(_is_long, (*a, *b))) and (found := _places(a, b)):
            places[path] = found
        texts = [[part for part in side if isinstance(part, str)] for side in (a, b)]
        if min(map(len, texts)) >= FEWEST and (telling := _pieces(*texts)):
            pieces[path] = telling
    return [EXPANSION] * is_any + [Telling(places, pieces)] * bool(places or pieces)


EXPANSION = Expansion()


def part_at(output: Any, path: Path) -> Any:
    """The part of an output that a path leads to, as `expanded` makes paths; None where there is none."""
    value = plain(output)
    for step in path:
        if isinstance(value, Failed):
            value = value.message if step == "message" else None
        elif isinstance(value, str | bytes):
            name, value = _inside(value)
            if name != step:
                return None
        elif isinstance(value, Sequence):
            value = value[int(step)] if step.isdecimal() and int(step) < len(value) else None
        else:
            items = value if isinstance(value, Mapping) else (state_of(value) or {})
            value = next((item for key, item in items.items() if canonical(key) == step), None)
        value = plain(value)
    return value


def expanded(
    value: Any, path: Path = (), long: dict[Path, Any] | None = None, left: list[int] | None = None
) -> Any:
    """What one output holds beside its parts, as plain data; None for nothing.

    Parameters
    ----------
    value : Any
        Plain data, or a part of an output.
    path : tuple of str, optional
        Where the value is.
    long : dict, optional
        Texts and long parts are put there, by their paths.
    left : list of int, optional
        How many parts are expanded yet, of which each is taken off: `MOST_EXPANDED` of an output.

    Examples
    --------
    >>> expanded('{"n": 7}')["JSON"]["n"], expanded({4: "a"})["keys"], expanded([1.5, 1.5, 0.5])["repeated"]
    (7, [4], 1)
    """
    of_array = value.dtype.str if isinstance(value, np.ndarray) else ""
    value = plain(value)
    kind = type(value)
    if kind is float or kind is bool or value is None or len(path) > DEEPEST:
        return None
    left = [MOST_EXPANDED] if left is None else left  # texts in texts, and what is compressed, may hold any number
    left[0] -= 1
    if left[0] < 0:
        return None
    if kind is dict:  # the usual cases, faster
        return _of_mapping(value, path, long, left)
    if kind is list or kind is tuple:
        return _of_sequence(value, path, long, left, of_array)
    if isinstance(value, int):
        return {"left": value % MODULUS} if abs(value) >= WHOLE_FROM else None
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        parts = value.as_tuple()
        return {"digits": len(parts.digits), "last digit": parts.digits[-1], "exponent": parts.exponent}
    if isinstance(value, Failed):  # what was raised is its kind alone; here is what it says
        return {"message": value.message, "in message": _of_text(value.message, (*path, "message"), long, left)}
    if isinstance(value, Fraction):
        return {"numerator": value.numerator, "denominator": value.denominator}
    if isinstance(value, str | bytes):
        return _of_text(value, path, long, left)
    if isinstance(value, Mapping):
        return _of_mapping(value, path, long, left)
    if isinstance(value, set | frozenset):
        return {"members": sorted(value, key=canonical)[:MOST_KEYS]}
    if isinstance(value, Sequence):
        return _of_sequence(value, path, long, left, of_array)
    state = state_of(value)
    return _of_mapping(state, path, long, left) if state else None


def _of_mapping(value: Mapping[Any, Any], path: Path, long: dict[Path, Any] | None, left: list[int]) -> Any:
    found: dict[Any, Any] = {}
    for key, item in list(value.items())[:MOST_PARTS]:
        inner = expanded(item, (*path, canonical(key)), long, left)
        if inner is not None:
            found[key] = inner
    keys = list(value)[:MOST_KEYS]
    if len(keys) > 1 or any(type(key) is not str for key in keys):
        found = {"parts": found} if found else {}
        found["keys"] = keys
        found["falls"] = _falls([canonical(key) for key in keys])
        tokens = {canonical(item) for item in list(value.values())[:MOST_KEYS]}
        found["repeated"] = len(keys) - len(tokens)
        found["kinds"] = _kinds(list(value.values()))
    elif keys:
        found = {"parts": found, "keys": keys} if found else {"keys": keys}
    return found or None


def _of_sequence(
    value: Sequence[Any], path: Path, long: dict[Path, Any] | None, left: list[int], of_array: str = ""
) -> Any:
    found: dict[str, Any] = {"kinds": of_array or _kinds(value)} if len(value) else {}
    if long is not None and _is_long(value):
        long[path] = value
    items = [plain(item) for item in value[:MOST_COMPARED]]
    if len(items) > 1 and all(type(item) in (int, float) for item in items):
        known = [item for item in items if item == item]
        found["repeated"] = len(known) - len(set(known))
        found["falls"] = _falls(items)
        found["missing"] = len(items) - len(known)
        found["below 0"] = sum(item < 0 for item in known)
        return found
    inner = [expanded(item, (*path, str(k)), long, left) for k, item in enumerate(items[:MOST_PARTS])]
    if any(part is not None for part in inner):
        found["parts"] = inner
    if len(items) > 1:
        found["repeated"] = len(items) - len(set(map(canonical, items)))
        found["lengths"] = sum(len(item) for item in items if isinstance(item, Sequence))
        if (rows := of_records(items)) is not None:
            found["rows"] = rows
    return found or None


def _of_text(value: str | bytes, path: Path, long: dict[Path, Any] | None, left: list[int]) -> Any:
    if long is not None and (isinstance(value, str) or _is_long(value)):
        long[path] = value
    found: dict[str, Any] = {} if isinstance(value, bytes) else _counts(value)
    name, inside = _inside(value)
    if inside is not None:
        found[name] = inside
        more = expanded(inside, (*path, name), long, left)
        if more is not None:
            found[f"in {name}"] = more
    return found or None


def _inside(value: str | bytes) -> tuple[str, Any]:
    """What a text or bytes are read as, and what that gives; None where nothing reads them."""
    readings: Mapping[str, Callable[[Any], Any]] = TEXTS if isinstance(value, str) else BYTES
    if 0 < len(value) <= LONGEST_PARSED:
        for name, read in readings.items():
            inside = read(value)
            if inside is not None:
                return name, inside
    return "", None


def _is_long(part: Any) -> bool:
    """Whether a part has more places than a layout has columns for."""
    return len(part) > (MOST_LETTERS if isinstance(part, str) else MOST_BYTES if isinstance(part, bytes) else LONGEST)


def _counts(text: str) -> dict[str, int]:
    """Characters of a text by their kind."""
    if not text:
        return {}
    digits, spaces = sum(map(str.isdigit, text)), sum(map(str.isspace, text))
    letters = sum(map(str.isalpha, text))
    return {
        "capitals": sum(map(str.isupper, text)),
        "digits": digits,
        "spaces": spaces,
        "marks": len(text) - digits - spaces - letters,
        "first": ord(text[0]),
        "last": ord(text[-1]),
    }


def _code(item: Any) -> Any:
    return ord(item) if isinstance(item, str) and len(item) == 1 else item


def _kinds(items: Sequence[Any]) -> str:
    """The class of a sequence and those of its items: item by item where they are few, else each class once.

    Numpy's numbers count as Python's: they become those on their way from a worker.
    """
    names = list(map(class_name, items[:MOST_PARTS]))
    of_items = names if len(names) <= MOST_KINDS else sorted(set(names))
    return " ".join([type(items).__name__, "of", *of_items])


def _falls(items: Sequence[Any]) -> int:
    """How often an item is less than the one before: 0 for what is in order."""
    return sum(b < a for a, b in itertools.pairwise(items))


def _places(first: Sequence[Any], second: Sequence[Any]) -> tuple[int, ...]:
    """The positions of long parts whose values, or parities, have means that differ clearly; increasing."""
    longest = min(max(map(len, (*first, *second))), LONGEST_SCREENED)
    sides = [np.stack([_numbers(part, longest) for part in side]) for side in (first, second)]
    z = np.zeros(longest)
    for of_parity in (False, True):
        a, b = (np.mod(side, 2.0) if of_parity else side for side in sides)
        counts = [np.maximum(np.count_nonzero(~np.isnan(side), axis=0), 1) for side in (a, b)]
        means = [np.nansum(side, axis=0) / n for side, n in zip((a, b), counts, strict=True)]
        errors = sum(
            np.nansum(np.square(side - mean), axis=0) / n**2
            for side, mean, n in zip((a, b), means, counts, strict=True)
        )
        shift = np.abs(means[0] - means[1])
        enough = np.minimum(*counts) >= FEWEST
        with np.errstate(divide="ignore", invalid="ignore"):
            deviation = np.where(errors > 0.0, shift / np.sqrt(errors), np.where(shift > 0.0, math.inf, 0.0))
        z = np.maximum(z, np.where(enough, deviation, 0.0))
    best = np.argsort(-z, kind="stable")[:MOST_PLACES]
    return tuple(sorted(int(k) for k in best if z[k] >= LEAST))


def _numbers(part: Any, length: int) -> FloatArray:
    """The codes or numbers of a long part, at most and at least so many; NaN where there is none."""
    row = np.full(length, math.nan)
    cut = part[:length]
    if isinstance(cut, str):
        values: Any = np.frombuffer(cut.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    elif isinstance(cut, bytes):
        values = np.frombuffer(cut, dtype=np.uint8)
    else:
        values = [float(item) if type(item) in (int, float, bool) and abs(item) < 1e150 else math.nan for item in cut]
    row[: len(values)] = values
    return row


def _pieces(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """The pieces that are in clearly more texts of one side, the clearest first."""
    counts = [collections.Counter(piece for text in side for piece in _pieces_of(text)) for side in (first, second)]
    n, m = len(first), len(second)
    scored = []
    for piece in counts[0].keys() | counts[1].keys():
        a, b = counts[0][piece], counts[1][piece]
        if a + b < 4:
            continue
        share = (a + b + 1.0) / (n + m + 2.0)
        z = abs(a / n - b / m) / math.sqrt(share * (1.0 - share) * (1.0 / n + 1.0 / m))
        if z >= LEAST:
            scored.append((-z, piece))
    return tuple(piece for _, piece in sorted(scored)[:MOST_PIECES])


def _pieces_of(text: str) -> set[str]:
    start = text[:LONGEST_SCREENED]
    return {start[k : k + size] for size in PIECES for k in range(len(start) - size + 1)}


def _json(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _date(text: str) -> Any:
    if TYPED.fullmatch(text) is None:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return [moment.toordinal(), moment.hour, moment.minute, moment.second, moment.microsecond, moment.weekday()]


def _hexadecimal(text: str) -> Any:
    if HEXADECIMAL.fullmatch(text) is None:
        return None
    digits = text.removeprefix("0x")
    return int(digits, 16) if len(digits) <= 16 or len(digits) % 2 else bytes.fromhex(digits)


def _encoded(text: str) -> Any:
    if len(text) % 4 or ENCODED.fullmatch(text) is None or (text.isalpha() and len(text) < 64):
        return None
    try:
        return base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None, validate=True)
    except (binascii.Error, ValueError):
        return None


def _lines(text: str) -> Any:
    """A table of cells, or its lines; None of a text of one line."""
    lines = text.splitlines()[:MOST_LINES]
    if len(lines) < 2:
        return None
    delimiter = max(DELIMITERS, key=lambda mark: min(line.count(mark) for line in lines if line) if any(lines) else 0)
    if all(delimiter in line for line in lines if line):
        return [[_cell(cell) for cell in line.split(delimiter)] for line in lines]
    return lines


def _cell(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _words(text: str) -> Any:
    """The words in their order, where there are several."""
    words = text.split()
    return None if len(words) < 2 else {"first": {word: k for k, word in reversed(list(enumerate(words[:MOST_PARTS])))}}


def _doubles(value: bytes) -> Any:
    if len(value) % 8 or len(value) > 8 * MOST_PARTS:
        return None
    numbers = np.frombuffer(value, dtype="<f8")
    size = np.abs(numbers)
    if not np.all(np.isfinite(numbers) & ((size < 1e100) & (size > 1e-100) | (size == 0.0))):
        return None
    return numbers.tolist()


def _utf8(value: bytes) -> Any:
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() or "\n" in text else None


def _uncompressed(value: bytes) -> Any:
    inside = inside_of(value)
    return None if inside is None else inside[:LONGEST_PARSED]


# In this order: the first that reads a value is the one.
TEXTS: Mapping[str, Callable[[str], Any]] = {
    "JSON": _json,
    "date": _date,
    "hexadecimal": _hexadecimal,
    "base64": _encoded,
    "lines": _lines,
    "words": _words,
}
BYTES: Mapping[str, Callable[[bytes], Any]] = {"uncompressed": _uncompressed, "doubles": _doubles, "text": _utf8}
