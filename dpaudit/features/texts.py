"""Texts: lengths, letters, numbers and words of texts, and what is written in them: JSON, dates, encodings, tables."""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.features.visitor import LIMITS, Rows, Sink, Text, token, visit

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
WORD = re.compile(r"[^\W\d_]+")
HEXADECIMAL = re.compile(r"(?:0x)?(?:[0-9a-fA-F]{2}){4,}|0x[0-9a-fA-F]+")
ENCODED = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")


def read_texts(sink: Sink, values: Sequence[str], rows: Rows, path: str, depth: int) -> None:
    """Put what texts at one path hold into the sink. Each distinct text is looked at once."""
    known: dict[str, int] = {}
    which = np.array([known.setdefault(value, len(known)) for value in values], dtype=np.intp)
    distinct = list(known)
    sink.put(path, "length", rows, np.array([len(one) for one in distinct], dtype=float)[which])
    sink.put(path, "category", rows, np.array([sink.token(one) for one in distinct])[which])
    if max(map(len, distinct)) < 2:
        return
    letters = np.full((len(distinct), min(max(map(len, distinct)), LIMITS.max_letters)), np.nan)
    for row, one in zip(letters, distinct, strict=True):
        codes = np.frombuffer(one[: letters.shape[1]].encode("utf-32-le", "surrogatepass"), "<u4")
        row[: len(codes)] = codes
    inside = f"{path}, character"
    if sink.opens(inside, path):
        sink.blocks.setdefault(inside, []).append((rows, letters[which]))
    counts = [[sum(map(test, one)) for test in _KINDS] for one in (text[: LIMITS.max_text] for text in distinct)]
    inside = f"{path}, characters of a kind"
    if sink.opens(inside, path):
        sink.blocks.setdefault(inside, []).append((rows, np.array(counts, dtype=float)[which]))
    sink.texts.setdefault(path, []).append((rows, values))
    words = [set(WORD.findall(one[: LIMITS.max_text])) for one in distinct]
    sink.members.setdefault((path, "word"), []).append((rows, [words[k] for k in which.tolist()]))
    found = [[float(number) for number in NUMBER.findall(one[: LIMITS.max_text])] for one in distinct]
    _visit_some(sink, found, which, rows, path, ", number", depth)
    decoded: dict[str, list[Any]] = {name: [None] * len(distinct) for name in TEXTS}
    for k, one in enumerate(distinct):
        if isinstance(one, Text) or len(one) > LIMITS.max_text:
            continue
        for name, decode in TEXTS.items():
            try:
                value = decode(one)
            except (ValueError, RecursionError, binascii.Error, OverflowError):
                continue
            if value is not None:
                decoded[name][k] = value
                break
    for name, parts in decoded.items():
        _visit_some(sink, parts, which, rows, path, f" as {name}", depth)


def _visit_some(
    sink: Sink, parts: Sequence[Any], which: np.ndarray, rows: Rows, path: str, step: str, depth: int
) -> None:
    has = np.array([part is not None and part != [] for part in parts])[which]
    inside = f"{path}{step}"
    if has.any() and sink.opens(inside, path):
        values = [parts[k] for k in which[has].tolist()]
        if step == ", number":
            values = [value[: LIMITS.max_numbers] for value in values]
        visit(sink, values, rows[has], inside, depth + 1)


_KINDS: tuple[Callable[[str], bool], ...] = (str.isupper, str.isdigit, str.isspace, str.isalpha)


def _json(text: str) -> Any:
    if text.lstrip()[:1] not in tuple('{["'):
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
    if len(text) < 8 or len(text) % 4 or text.isalpha() or text.isdigit() or not ENCODED.fullmatch(text):
        return None
    return base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None, validate=True)


def _table(text: str) -> Any:
    lines = text.splitlines()[: LIMITS.max_items]
    if len(lines) < 2:
        return None
    delimiter = max(",;\t|", key=text.count)
    return [[float(cell) if NUMBER.fullmatch(cell) else Text(cell) for cell in line.split(delimiter)] for line in lines]


def _words(text: str) -> Any:
    words = text.split()
    return {"order": [token(word) for word in words[: LIMITS.max_items]]} if len(words) > 1 else None


TEXTS: dict[str, Callable[[str], Any]] = {
    "JSON": _json,
    "date": _date,
    "hexadecimal": _hexadecimal,
    "base64": _base64,
    "table": _table,
    "words": _words,
}
