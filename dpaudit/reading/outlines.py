"""Outlines: an outcome's token with some of it left out, so that what repeats is seen beside what never does.

("yes", 3.2) and ("yes", 0.7) are two outcomes and one *form* (numbers left out: "['yes',#]"); ("no", 0.7) has another
form and the same *structure* (texts left out too: "[text,#]"). An outline is read from one output alone, and like its
canonical token it knows no order of sets and dictionaries, and no address.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.reading.outcomes import (
    DEEPEST,
    Outcomes,
    canonical,
    is_number,
    number_of,
    plain,
    shortened,
    state_of,
)

WHOLE, FORM, STRUCTURE = "token", "form", "structure"
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")  # within a text


def outlines(outcomes: Outcomes, outline: str) -> list[str]:
    """The outline `FORM` or `STRUCTURE` of each outcome."""
    outcomes = outcomes.as_objects()
    if not outcomes.notes:
        return [outline_of(output, outline) for output in outcomes.raw]
    result = []
    for note, output in zip(outcomes.notes, outcomes.raw, strict=True):
        text: str | None = getattr(note, outline)
        if text is None:
            text = sys.intern(outline_of(output, outline))
            setattr(note, outline, text)
        result.append(text)
    return result


def outline_of(output: Any, outline: str) -> str:
    """The outline `FORM` or `STRUCTURE` of one output."""
    return shortened(_outline(output, outline == FORM, 0))


def _outline(value: Any, texts: bool, depth: int) -> str:
    if depth > DEEPEST:
        return type(value).__qualname__
    if type(value) is int or type(value) is bool:
        return "#"  # the usual case, faster
    value = plain(value)
    if is_number(value):
        number = number_of(value)
        return "#" if math.isfinite(number) else repr(number)
    if isinstance(value, str | bytes):
        if not texts:
            return "text"
        return NUMBER.sub("#", repr(value))
    inner = depth + 1
    if isinstance(value, Mapping):
        items = sorted(f"{canonical(key, inner)}:{_outline(item, texts, inner)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted(_outline(item, texts, inner) for item in value)) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(_outline(item, texts, inner) for item in value) + "]"
    state = state_of(value)
    if state:
        return f"{type(value).__qualname__}{_outline(state, texts, inner)}"
    return canonical(value, depth)
