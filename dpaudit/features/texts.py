"""Texts: lengths, letters, numbers and words of texts, and what is written in them: JSON, dates, encodings, tables.

Each distinct text of a batch is looked at once; what is read of it is a function of the text alone.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.visitor import (
    BLOCK,
    VISITS,
    WORD,
    Cell,
    Rows,
    Sink,
    Text,
    code,
    visit,
    visit_beside,
)  # fmt: skip
from dpaudit.reading.unread import LIMITS

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
LETTERS = re.compile(r"[^\W\d_]+")
HEXADECIMAL = re.compile(r"(?:0x)?(?:[0-9a-fA-F]{2}){4,}|0x[0-9a-fA-F]+")
ENCODED = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
KINDS: Mapping[str, Callable[[str], bool]] = {
    "capitals": str.isupper, "digits": str.isdigit, "spaces": str.isspace, "letters": str.isalpha,
}  # fmt: skip


def read_texts(sink: Sink, values: Sequence[str], rows: Rows, path: str, depth: int) -> None:
    """Put what texts at one path hold into the sink."""
    sink.put_names(path, "kind", rows, "text")
    visit_beside(sink, values, rows, path, depth)
    known: dict[tuple[type, str], int] = {}
    which = np.array([known.setdefault((type(value), value), len(known)) for value in values], dtype=np.intp)
    texts = [value for _, value in known]
    sink.put(path, "length", rows, np.array(list(map(len, texts)), dtype=float)[which])
    if sink.asks(path, "category"):
        sink.put(path, "category", rows, np.array(list(map(sink.token, texts)))[which])
    if sink.asks(path, "form"):  # a text without its numbers, where it has any
        forms = [NUMBER.sub("#", one[: LIMITS.max_text]) for one in texts]
        has = np.array([form != one and not isinstance(one, Cell) for form, one in zip(forms, texts, strict=True)])
        sink.put(path, "form", rows[has[which]], np.array(list(map(sink.token, forms)))[which[has[which]]])
    inside = f"{path}, number"
    if sink.opens(inside, path):
        found = [list(map(float, NUMBER.findall(one[: LIMITS.max_text]))) or None for one in texts]
        _visit_some(sink, found, which, rows, inside, depth)
    rich = np.array([len(one) > 1 and not isinstance(one, Cell) for one in texts])  # one letter is its category
    if not rich.any():
        return
    rows, which = rows[rich[which]], (np.cumsum(rich) - 1)[which[rich[which]]]
    texts = [one for one, is_rich in zip(texts, rich.tolist(), strict=True) if is_rich]
    if sink.asks(path, WORD):
        words = [set(LETTERS.findall(one[: LIMITS.max_text])) for one in texts]
        sink.put(path, WORD, rows, [words[k] for k in which.tolist()])
    _letters(sink, texts, which, rows, path)
    decoded: dict[str, list[Any]] = {}
    if sink.paths is not None and not any(f"{path} as {name}" in sink.paths for name in TEXTS):
        return
    for k, one in enumerate(texts):
        name, value = ("", None) if isinstance(one, Text) or len(one) > LIMITS.max_text else _decoded(sink, one, path)
        if name:
            decoded.setdefault(name, [None] * len(texts))[k] = value
    for name, parts in decoded.items():
        _visit_some(sink, parts, which, rows, f"{path} as {name}", depth)


VISITS["text"] = read_texts


def _visit_some(sink: Sink, parts: Sequence[Any], which: NDArray[np.intp], rows: Rows, inside: str, depth: int) -> None:
    has = np.array([part is not None for part in parts])[which]
    if has.any():
        visit(sink, [parts[k] for k in which[has].tolist()], rows[has], inside, depth + 1)


@functools.cache
def _kinds_of_characters() -> NDArray[np.float64]:
    """Whether each character up to U+FFFF is of each of `KINDS`, shape (characters, kinds); the last is all others."""
    characters = [*map(chr, range(0xFFFF)), "\U00020000"]
    return np.array([[test(one) for test in KINDS.values()] for one in characters], dtype=float)


def _letters(sink: Sink, texts: Sequence[str], which: NDArray[np.intp], rows: Rows, path: str) -> None:
    """Put the first characters of texts, each at its place, and how many are of each kind."""
    first, counted = f"{path}, character", f"{path}, characters of a kind"
    asked = [inside for inside in (first, counted) if sink.opens(inside, path) and sink.asks(inside, BLOCK)]
    if not asked:
        return
    starts = [one[: LIMITS.max_text] for one in texts]
    lengths = np.array(list(map(len, starts)))
    codes = np.frombuffer("".join(starts).encode("utf-32-le", "surrogatepass"), "<u4")
    begins = np.cumsum(lengths) - lengths
    if first in asked:
        width = min(int(lengths.max()), LIMITS.max_parts)
        places = begins[:, None] + np.arange(width)
        known = np.arange(width) < lengths[:, None]
        letters = np.where(known, codes[np.minimum(places, len(codes) - 1)], np.nan)
        sink.put_block(first, rows, letters[which])
    if counted in asked:
        counts = np.add.reduceat(_kinds_of_characters()[np.minimum(codes, 0xFFFF)], begins, axis=0)
        sink.put_block(counted, rows, counts[which])


def _decoded(sink: Sink, text: str, path: str) -> tuple[str, Any]:
    """What a text is read as, by the first decoder that reads it, and what that gives; "" where nobody asks for it."""
    for name, decode in TEXTS.items():
        if not _may_be(name, text):
            continue
        try:
            value = decode(text)
        except (ValueError, RecursionError, binascii.Error, OverflowError):
            continue
        if value is not None:
            return (name, value) if sink.opens(f"{path} as {name}", path) else ("", None)
    return "", None


def _may_be(name: str, text: str) -> bool:
    return name != "JSON" or text.lstrip()[:1] in ("{", "[", '"')


def _json(text: str) -> Any:
    value = json.loads(text)
    return Text(value) if isinstance(value, str) else value


def _date(text: str) -> Any:
    if not DATE.fullmatch(text.strip()):
        return None
    moment = datetime.datetime.fromisoformat(text.strip())
    offset = moment.utcoffset()
    seconds = (moment.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1)
    return {
        "days": moment.toordinal(), "weekday": moment.weekday(), "day": moment.day, "month": moment.month,
        "seconds": seconds, "microsecond": moment.microsecond, "second": moment.second, "minute": moment.minute,
        "hour": moment.hour, "offset": None if offset is None else offset.total_seconds(),
    }  # fmt: skip


def _hexadecimal(text: str) -> Any:
    if not HEXADECIMAL.fullmatch(text) or text.isdigit():
        return None
    digits = text.removeprefix("0x")
    number = int(digits, 16)
    return {"number": number, "bytes": bytes.fromhex(digits)} if len(digits) % 2 == 0 else {"number": number}


def _base64(text: str) -> Any:
    if len(text) % 4 or text.isdigit() or (text.isalpha() and len(text) < 64) or not ENCODED.fullmatch(text):
        return None
    return base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None, validate=True)


def _table(text: str) -> Any:
    """The columns of lines of cells, by their places; of lines that have no delimiter in common the lines.

    A cell is a number, or a text whose numbers are left out: these are read of the text as a whole.
    """
    lines = text.splitlines()[: LIMITS.max_items]
    if len(lines) < 2:
        return None
    delimiters = [mark for mark in ",;\t|" if all(mark in line for line in lines if line)]
    if not delimiters or not any(lines):
        return list(map(_cell, lines))
    delimiter = max(delimiters, key=lines[0].count)
    rows = [line.split(delimiter) for line in lines]
    width = min(max(map(len, rows)), LIMITS.max_columns)
    return {k: [_cell(row[k]) if k < len(row) else None for row in rows] for k in range(width)}


def _cell(text: str) -> Any:
    if NUMBER.fullmatch(text):
        return float(text)
    return Cell(NUMBER.sub("#", text))


def _words(text: str) -> Any:
    """The words in their order, and the first place of each; what is between them is read as numbers and characters."""
    words = LETTERS.findall(text)[: LIMITS.max_items]
    if len(words) < 2:
        return None
    return {"order": list(map(code, words)), "first": {word: k for k, word in reversed(list(enumerate(words)))}}


TEXTS: dict[str, Callable[[str], Any]] = {
    "JSON": _json,
    "date": _date,
    "hexadecimal": _hexadecimal,
    "base64": _base64,
    "table": _table,
    "words": _words,
}
