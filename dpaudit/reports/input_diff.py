"""Difference of two inputs whose printed forms do not show it: neighbours mostly begin in the same way.

The words are those of the names of pairs (`dpaudit.privacy.differences`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit.privacy.differences import difference, is_frame
from dpaudit.reports.wording import clean
from dpaudit.results.saved_inputs import is_redacted

NAME = 40  # characters of an input's name (`Pair.x_id`), and of a text from where it differs
MAX_CHARACTERS = 400  # characters of all that is said
MAX_ENTRIES = 1_000  # of both inputs: lists of zeros and ones take .1 s then, a thousand times in a report at most


def apart(x: Any, x_prime: Any, width: int = NAME) -> str:
    """Say where two inputs differ; empty where forms of `width` characters show it: both whole, and not the same.

    Empty as well where to find it out would take too long, where a value cannot be printed, and of two tables, of
    which the second one's name is the difference.

    Examples
    --------
    >>> apart({"a": 0, "b": 1}, {"a": 0, "b": 2}, 8)
    "x and x′ differ: 'b': 1 becomes 2"
    """
    both, text = (x, x_prime), ""
    with contextlib.suppress(Exception):  # a value may misbehave when it is compared or printed
        if is_redacted(x) or all(map(is_frame, both)) or sum(map(_entries, both)) > MAX_ENTRIES:
            return ""
        forms = [clean(value, width + 1) for value in both]
        if forms[0] != forms[1] and max(map(len, forms)) <= width:
            return ""
        text = _of_texts(x, x_prime) if isinstance(x, str) and isinstance(x_prime, str) else difference(x, x_prime)
    return f"x and x′ differ: {clean(text, MAX_CHARACTERS)}" if text else ""


def _entries(value: Any) -> int:
    """Count the entries of an input, those of its rows included."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, Mapping):
        return 1 + sum(map(_entries, value.values()))
    return 1 + sum(map(_entries, value)) if isinstance(value, list | tuple) else 1


def _of_texts(x: str, x_prime: str) -> str:
    places = (place for place, (old, new) in enumerate(zip(x, x_prime, strict=False)) if old != new)
    same = next(places, min(len(x), len(x_prime)))
    old, new = (clean(text[same:], NAME) for text in (x, x_prime))
    return f"from character {same}, {old!r} becomes {new!r}" if old != new else ""
