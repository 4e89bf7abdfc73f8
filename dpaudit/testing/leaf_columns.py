"""Columns of outputs that are no numbers: what tests of independence and of exchangeability look at."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dpaudit.features.reader import Reader
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, from_objects
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.plain import packed

MAX_SAMPLE = 400  # different outputs that columns are looked for in: a bound on time (unmeasured)
TOKENS = ("category", "form", "kind", "class", "classes inside", "shape", "dtype")  # whose numbers have no order


@dataclasses.dataclass(frozen=True)
class LeafColumns:
    """A few columns of outputs; NaN where an output has no such part.

    Attributes
    ----------
    reader : Reader
        That reads no more than it must.
    columns : tuple of int
        Of these the ones that are looked at.
    """

    reader: Reader
    columns: tuple[int, ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """The numbers of outcomes, shape (draws, columns)."""
        return self.reader.read(_with_texts(outcomes))[:, self.columns]

    @property
    def names(self) -> list[str]:
        """What each column is, in words."""
        names = self.reader.names
        return [names[column] for column in self.columns]

    @property
    def places(self) -> list[str]:
        """The same, where a number of a list is called as that of an array is."""
        first = self.reader.blocks[0].width if self.reader.blocks and not self.reader.blocks[0].path else 0
        is_value = [
            column >= first and name == "the output" for column, name in zip(self.columns, self.names, strict=True)
        ]
        return [
            "" if is_whole else f"column {column}" if column < first else name
            for column, name, is_whole in zip(self.columns, self.names, is_value, strict=True)
        ]


def leaf_columns(outcomes: Outcomes, most: int, *, categories: bool = True) -> LeafColumns | None:
    """Columns that vary, at most so many: of more, half with the most values and half with the fewest; None for none.

    What a batch shares has few values, so that columns with the most would leave out what is looked for.

    Without `categories` texts of a place count only where they are two: more are numbered by chance, and what is above
    the median is another set of them in other outcomes.

    Validity: they are a function of which outputs there are, and not of their order. They are looked for in one output
    of each token, the first by its printed form, in the order of tokens; the order of keys is left out.
    """
    objects = _with_texts(outcomes.as_objects())
    places: dict[str, list[int]] = {}
    for position, token in enumerate(objects.tokens.tolist() if objects.tokens is not None else []):
        places.setdefault(token, []).append(position)
    if len(places) < 2:
        return None
    tokens = sorted(places)
    tokens = [tokens[k * len(tokens) // min(len(tokens), MAX_SAMPLE)] for k in range(min(len(tokens), MAX_SAMPLE))]
    chosen = [min(places[token], key=lambda position: _printed(objects.raw[position])) for token in tokens]
    sample = from_objects([objects.raw[position] for position in chosen])
    reader = Reader.learn((sample,))
    columns = reader.read(sample)
    different = [len(np.unique(column)) for column in columns.T]  # NaN is one value
    what = [name.partition(" of ")[0].removeprefix("the ") for name in reader.names]
    own = [
        k for k, count in enumerate(different)
        if count > 1 and what[k] != "place" and (categories or count == 2 or what[k] not in TOKENS)
    ]  # fmt: skip
    ranked = sorted(own, key=lambda k: (-different[k], k))
    if len(ranked) > most:
        ranked = ranked[: most - most // 2] + ranked[len(ranked) - most // 2 :]
    return LeafColumns(*reader.only(sorted(ranked))) if ranked else None


def _printed(output: Any) -> str:
    """The printed form of plain data; that of its bytes where Python does not print it: a very long integer."""
    try:
        return repr(output)
    except ValueError:
        return repr(packed(output))


def _with_texts(outcomes: Outcomes) -> Outcomes:
    """Outcomes whose exceptions have tokens with their texts: to other readers they are of a kind and no more."""
    if outcomes.tokens is None or not any(isinstance(output, Failed) for output in outcomes.raw):
        return outcomes
    return from_objects([
        {"raised": output.kind, "message": output.message} if isinstance(output, Failed) else output
        for output in outcomes.raw
    ])  # fmt: skip
