"""Warnings about degenerate outputs (constant, all exceptions), and about what of them is not read: not part of a test.

An audit finds no leak in a mechanism that always gives the same output, and none in calls that raise as often on both
inputs. Both may well be mistakes, of the mechanism or of the call, which the verdict does not tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.features.outcomes import MAXIMUM_TOKEN, Outcomes, canonical
from dpaudit.features.unread import unread
from dpaudit.inference.failures import MAX_NAMED
from dpaudit.inference.tasks import FIRST_DRAWS
from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.pairs import short_form
from dpaudit.results.model import IS_RETURNED, Keys
from dpaudit.subjects.call_outcomes import Ended, Failed, Opaque

MIN_EQUAL_OUTPUTS = 20  # fewer equal outputs can be chance: no warning
TEXTS_DIFFER = (
    "The texts of the exceptions on x are none of those on x′. Look at them: a text that names a record gives it away, "
    "and no rule may have seen it."
)


def remarks(inputs: Sequence[Sequence[Outcomes]]) -> tuple[str, ...]:
    """Sentences on the outputs of all inputs of a pair; none where they are not degenerate.

    Parameters
    ----------
    inputs : sequence of sequences of Outcomes
        Of each input the outputs that were kept, in parts.
    """
    parts = [part for of_input in inputs for part in of_input]
    count = sum(len(part) for part in parts)
    on = "both inputs" if len(inputs) == 2 else f"all {len(inputs):,} inputs"
    raised = Counter(output.token for part in parts for output in part.raw if isinstance(output, Failed))
    if raised:
        kinds = [f"{number:,} {kind}" for kind, number in raised.most_common(MAX_NAMED)]
        more = f" and {len(raised) - MAX_NAMED:,} more kinds" if len(raised) > MAX_NAMED else ""
        what = "was an exception" if raised.total() == 1 else "were exceptions"
        if any(isinstance(output, Ended) for part in parts for output in part.raw):
            what += " or did not come back"
        text = f"Of the {count:,} outcomes that were looked at, on {on}, {raised.total():,} {what}"
        text += f": {', '.join(kinds)}{more}. "
        text += "The kind of each is an outcome like any other; rules look at its text, too."
        return (text, TEXTS_DIFFER) if _have_texts_of_their_own(inputs) else (text,)
    same = _one_value(parts) if count >= MIN_EQUAL_OUTPUTS else ""
    if not same:
        return ()
    text = f"All {count:,} outputs that were looked at, on {on}, read as {same}"
    return (f"{text}: {IS_RETURNED}",)


def not_read(inputs: Sequence[Sequence[Outcomes]]) -> tuple[str, ...]:
    """A sentence on what of the first outputs of a pair's inputs nobody looks at; none where that is nothing."""
    looked_at = (output for of_input in inputs for part in of_input[:1] for output in part.raw[:FIRST_DRAWS])
    kinds = unread(looked_at, forms={form for of_input in inputs for part in of_input for form in part.forms})
    if not kinds:
        return ()
    return (f"Not read of the outputs: {'; '.join(map(str, kinds))}. A leak that is there alone may not be found.",)


def _have_texts_of_their_own(inputs: Sequence[Sequence[Outcomes]]) -> bool:
    """Tell whether exceptions on each of two inputs repeat some texts, and these are others on each.

    A text may also tell when it was raised, or where in memory; then it hardly comes twice.
    """
    seen = []
    for of_input in inputs:
        texts = [output.message for part in of_input for output in part.raw if isinstance(output, Failed)]
        if len(texts) < MIN_EQUAL_OUTPUTS or len(set(texts)) > len(texts) / 2:
            return False
        seen.append(set(texts))
    return len(seen) == 2 and seen[0].isdisjoint(seen[1])


def keys_of(parts: Sequence[Outcomes]) -> Keys | None:
    """The keys of the outputs that are dictionaries, in these parts; None where none is one."""
    counts: Counter[Any] = Counter()
    outputs = 0
    for output in (output for part in parts for output in part.raw if isinstance(output, Mapping)):
        outputs += 1
        counts.update(output.keys())
    found: Counter[str] = Counter()
    for key, count in counts.items():
        found[canonical(key)] += count
    return Keys(outputs, len(found), sum(count < outputs for count in found.values())) if outputs else None


def _one_value(parts: Sequence[Outcomes]) -> str:
    """The printed form of the one value that all outputs have; empty if there are two, or they are not seen whole."""
    tokens: set[str] = set()
    for part in parts:
        if not len(part):
            continue
        if part.tokens is None and not _are_equal(part.numbers):
            return ""
        first = part.rows(slice(0, 1)).as_objects().tokens
        tokens.update(part.tokens if part.tokens is not None else () if first is None else first)
        if len(tokens) > 1:
            return ""
    if not tokens or len(next(iter(tokens))) >= MAXIMUM_TOKEN:
        return ""
    head = next(part for part in parts if len(part)).rows(slice(0, 1))
    value = head.as_objects().raw[0]
    if isinstance(value, Opaque):  # by its class, and not as this program holds it
        return f"one value of the class {value.kind}"
    return short_form(_as_integers(value) if head.is_integer else value)


def _are_equal(rows: FloatArray) -> bool:
    """Tell whether all rows are the same, NaN included."""
    return bool(np.all((rows == rows[0]) | (np.isnan(rows) & np.isnan(rows[0]))))


def _as_integers(value: object) -> object:
    """A number, or a list of them, as it came: integers are held as doubles."""
    if isinstance(value, list):
        return [_as_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
