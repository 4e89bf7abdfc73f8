"""Words of the reports, and the forms of those that programs read: files of `templates/`, by their names.

A sentence has places in braces, which are filled as they are: what stands in a value is never read as a place.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TEMPLATES = Path(__file__).parent / "templates"


@functools.cache
def words(name: str) -> Any:
    """A text, or a table of texts, of words.toml by its dotted name."""
    if not name:
        import tomllib  # not for those who only count in words

        return tomllib.loads((TEMPLATES / "words.toml").read_text(encoding="utf-8"))
    table, _, key = name.rpartition(".")
    return words(table)[key]


def plural(count: int, noun: str) -> str:
    """`count` with its noun in the right number: "1 pair", "2,000 pairs"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def some(names: Sequence[str], most: int, noun: str = "") -> str:
    """The first names, and how many more: "a, b and 2 more"."""
    rest = len(names) - most
    more = "" if rest <= 0 else f" and {rest:,} more" if not noun else f" and {plural(rest, f'more {noun}')}"
    return ", ".join(names[:most]) + more


def printable(text: str) -> str:
    """A text with an escape (`\\u202e`) for each character that cannot be printed; a line end is one of these."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def said(name: str, /, **values: object) -> str:
    """The sentence of this name with its values.

    Examples
    --------
    >>> said("headline.violated", having="1 of 2 pairs")
    'Violated: the promise is broken for 1 of 2 pairs'
    """
    return str(words(name)).format_map(values)


def joined(*texts: str) -> str:
    """The sentences that there are, behind each other."""
    return " ".join(text for text in texts if text)


@functools.cache
def form(name: str) -> Any:
    """A form of a format, as "oscal.risk", or all forms of one."""
    file, _, part = name.partition(".")
    return form(file)[part] if part else json.loads((TEMPLATES / f"{file}.json").read_text(encoding="utf-8"))


def filled(name: str, /, **values: Any) -> Any:
    """The form of this name with its values, as strict JSON."""
    return fill(form(name), values)


def fill(shape: Any, values: Mapping[str, Any]) -> Any:
    """A form filled: the text "$a" becomes the value of a; an entry whose key ends in "?" goes where that is empty.

    Examples
    --------
    >>> fill({"a": "$x", "b?": ["$y"], "c?": "$y", "d": "at {x}"}, {"x": 1, "y": None})
    {'a': 1, 'b': [None], 'd': 'at 1'}
    """
    if isinstance(shape, str):
        return values[shape[1:]] if shape.startswith("$") else shape.format_map(values)
    if isinstance(shape, list):
        return [fill(one, values) for one in shape]
    if not isinstance(shape, dict):
        return shape
    found = {key: fill(one, values) for key, one in shape.items()}
    return {key.removesuffix("?"): one for key, one in found.items() if one or not key.endswith("?")}
