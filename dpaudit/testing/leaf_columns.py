"""Columns of outputs that are no numbers: the leaves that tests of independence and of order look at."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.leaves import CODE, PLACE
from dpaudit.reading.nested import Layout, learn_layout
from dpaudit.reading.outcomes import Outcomes, from_objects
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.plain import packed

SAMPLE = 400  # different outputs that leaves are looked for in, at most: a bound on time (unmeasured)


@dataclasses.dataclass(frozen=True)
class LeafColumns:
    """A few leaves of outputs, as columns of numbers; NaN where an output has no such leaf."""

    layout: Layout

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """The numbers of outcomes, shape (draws, columns)."""
        return self.layout(_as_said(outcomes)).numbers

    @property
    def names(self) -> list[str]:
        """What each column is, in words."""
        return [leaf.describe() for leaf in self.layout.leaves]


def leaf_columns(outcomes: Outcomes, most: int, *, categories: bool = True) -> LeafColumns | None:
    """Leaves that vary, at most so many: of more, half with the most values and half with the fewest; None for none.

    What a batch shares has few values, so that leaves with the most would leave out what is looked for.

    Without `categories` texts of a place count only where they are two: more are numbered by chance, and what is above
    the median is another set of them in other outcomes.

    Validity: they are a function of which outputs there are, and not of their order. They are looked for in one output
    of each token, the first by its printed form, in the order of tokens; the order of keys is left out.
    """
    objects = _as_said(outcomes)
    places: dict[str, list[int]] = {}
    for position, token in enumerate(objects.tokens.tolist() if objects.tokens is not None else []):
        places.setdefault(token, []).append(position)
    if len(places) < 2:
        return None
    tokens = sorted(places)
    tokens = [tokens[k * len(tokens) // min(len(tokens), SAMPLE)] for k in range(min(len(tokens), SAMPLE))]
    chosen = [min(places[token], key=lambda position: _printed(objects.raw[position])) for token in tokens]
    sides = [from_objects([objects.raw[position] for position in chosen[k::2]]) for k in (0, 1)]
    learned = learn_layout(*sides)
    if learned is None:
        return None
    layout, *shown = learned
    numbers = np.concatenate([side.numbers for side in shown])
    own = [
        k for k, leaf in enumerate(layout.leaves)
        if leaf.what != PLACE and (categories or leaf.what != CODE or len(leaf.codes) <= 2)
    ]  # fmt: skip
    ranked = sorted(own, key=lambda k: (-len(np.unique(numbers[:, k])), k))
    if len(ranked) > most:
        ranked = ranked[: most - most // 2] + ranked[len(ranked) - most // 2 :]
    return LeafColumns(layout.only(sorted(ranked))) if ranked else None


def _printed(output: Any) -> str:
    """The printed form of plain data; that of its bytes where Python does not print it: a very long integer."""
    try:
        return repr(output)
    except ValueError:
        return repr(packed(output))


def _as_said(outcomes: Outcomes) -> Outcomes:
    """Outcomes as objects, in which exceptions say what they say: to other readers they are of a kind and no more."""
    objects = outcomes.as_objects()
    if not any(isinstance(output, Failed) for output in objects.raw):
        return objects
    return from_objects([
        {"raised": output.kind, "message": output.message} if isinstance(output, Failed) else output
        for output in objects.raw
    ])  # fmt: skip
