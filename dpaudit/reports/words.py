"""Sentences of the reports: all in `templates/words.toml`, by their names; what they hold is computed elsewhere.

A sentence has places in braces, which are filled as they are: what stands in a value is never read as a place.
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

WORDS = Path(__file__).parent / "templates" / "words.toml"


@functools.cache
def words(name: str) -> Any:
    """A text, or a table of texts, by its dotted name."""
    if not name:
        return tomllib.loads(WORDS.read_text(encoding="utf-8"))
    table, _, key = name.rpartition(".")
    return words(table)[key]


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
