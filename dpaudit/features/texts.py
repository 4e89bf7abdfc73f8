"""Texts: the numbers, words and letters of texts, and what is written in them: JSON, dates, encodings, tables."""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import functools
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.decoders import Cell, Text, code, doubles_in, shows_bits
from dpaudit.features.unread import LIMITS

# Words and numbers begin where none goes on, and a text is read in time in proportion to its length.
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
NAMED = re.compile(rf"(?<![^\W\d_])([^\W\d_]+)[^\w\n.+-]{{1,3}}({NUMBER.pattern})(?![.\w])")
EXACT = re.compile(r"[-+]?(?:0x[0-9a-f]\.?[0-9a-f]*p[-+]?\d+|(?<!\d)\d*\.\d{17,}(?:e[-+]?\d+)?)", re.IGNORECASE)
LETTERS = re.compile(r"[^\W\d_]+")
HEXADECIMAL = re.compile(r"(?:0x)?(?:[0-9a-fA-F]{2}){4,}|0x[0-9a-fA-F]+")
ENCODED = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
KINDS: Mapping[str, Callable[[str], bool]] = {
    "capitals": str.isupper, "digits": str.isdigit, "spaces": str.isspace, "letters": str.isalpha,
}  # fmt: skip


@functools.cache
def kinds_of_characters() -> NDArray[np.float64]:
    """Tell if each character up to U+FFFF is of each of `KINDS`, shape (characters, kinds); the last is all others."""
    characters = [*map(chr, range(0xFFFF)), "\U00020000"]
    return np.array([[test(one) for test in KINDS.values()] for one in characters], dtype=float)


def without_bits(text: str) -> str:
    """A text in which doubles that are written bit by bit stand as Python prints them: see `shows_bits`.

    Examples
    --------
    >>> without_bits("at 0x1.8p+1"), without_bits("0.1000000000000000055511151231257827"), without_bits("0x1f")
    ('at 3.0', '0.1', '0x1f')
    """
    if isinstance(text, Text):
        return text
    with contextlib.suppress(ValueError):
        found = _hexadecimal(text) or {"bytes": _base64(text)}
        if (doubles := doubles_in(found.get("bytes") or b"")) is not None:
            return str(doubles)
    return EXACT.sub(_as_printed, text)


def _as_printed(match: re.Match[str]) -> str:
    with contextlib.suppress(OverflowError):
        if "p" in match[0].lower():
            return repr(float.fromhex(match[0]))
        if shows_bits(Decimal(match[0])):
            return repr(float(match[0]))
    return match[0]


def named_numbers(text: str) -> dict[str, float]:
    """The numbers of a text that stand right behind a word, by these words.

    Examples
    --------
    >>> named_numbers("age: 31, zip=94110 v1.2")
    {'age': 31.0, 'zip': 94110.0}
    """
    return {word: float(number) for word, number in NAMED.findall(text[: LIMITS.max_text])}


def decoded(text: str) -> tuple[str, Any]:
    """Name of the first decoder that reads a text, and what it gives; "" for none."""
    for name, decode in TEXTS.items() if len(text) <= LIMITS.max_text and not isinstance(text, Text) else ():
        try:
            value = decode(text)
        except (ValueError, RecursionError, binascii.Error, OverflowError):
            continue
        if value is not None:
            return name, value
    return "", None


def _json(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
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
    first = {word: k for k, word in reversed(list(enumerate(words)))}
    return {"order": list(map(code, words)), "first": MappingProxyType(first)}  # whose items say no more than the order


TEXTS: dict[str, Callable[[str], Any]] = {
    "JSON": _json,
    "date": _date,
    "hexadecimal": _hexadecimal,
    "base64": _base64,
    "table": _table,
    "words": _words,
}
