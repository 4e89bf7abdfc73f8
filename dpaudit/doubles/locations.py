"""Locations: the numbers that noise was probably added to, for looks at the doubles of the sums.

Where an input is of the outputs' form its own number is the location. Of a dataset it is one of its facts (its length,
the sum, mean, smallest or largest of its numbers, of all or of one column): the one that lies where the outputs do, on
both inputs. It suggests which doubles to look at, and nothing rests on it.

A fact is a number of somebody's data. Rules that are saved or said therefore name it (`Location.fact`) and never hold
it: who has the two inputs computes it again (`numbers_named`), and nobody else learns it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.facts import ABOUT, columns_of, scalars_of
from dpaudit.reading.real_columns import Path, number_under

FEWEST = 50  # training numbers of an input, without which nobody knows where they lie
NEAR = 6.0  # standard errors of a median, within which a fact must lie
ENTRY = "entry"  # the number that an input itself holds under the path of the outputs
WORDS = {"length": "length", "number": "number"} | dict(zip(ABOUT, ("sum", "mean", "least", "largest"), strict=True))


@dataclasses.dataclass(frozen=True)
class Location:
    """The numbers that noise was probably added to on x and on x_prime, and the name by which they are found again.

    `fact` is `ENTRY` or the name of a fact of `dpaudit.reading.facts`, of the whole input or of one `column`, by its
    position among those that both inputs have: the name of a column may tell of people too.
    """

    x: float
    x_prime: float
    fact: str = ENTRY
    column: int | None = None

    def said(self, name: str) -> str:
        """The fact of an input of this name in words, without its value."""
        if self.fact == ENTRY:
            return name
        return f"the {WORDS[self.fact]} of {name if self.column is None else f'column {self.column} of {name}'}"


def location_of(x: Any, x_prime: Any, path: Path, first: FloatArray, second: FloatArray) -> Location | None:
    """What the numbers under a path of outputs of x (`first`) and x_prime are around; None where nobody knows.

    Examples
    --------
    >>> noise = np.random.default_rng(0).laplace(size=(2, 500))
    >>> location_of([1.0, 2.5], [1.0, 2.5, 4.0], (), noise[0] + 3.5, noise[1] + 7.5)
    Location(x=3.5, x_prime=7.5, fact='sums', column=None)
    """
    own = number_under(x, path), number_under(x_prime, path)
    if not all(map(math.isnan, own)):
        return None if any(map(math.isnan, own)) else Location(*own)
    lies = [middle for middle in (_middle(first), _middle(second)) if middle is not None]
    if len(lies) < 2:
        return None
    best: tuple[float, Location | None] = NEAR, None
    for known in _known(x, x_prime):
        both = zip((known.x, known.x_prime), lies, strict=True)
        off = max(abs(fact - middle) / error for fact, (middle, error) in both)
        if off < best[0]:
            best = off, known
    return best[1]


def numbers_named(fact: str, column: int | None, path: Path, x: Any, x_prime: Any) -> Location:
    """The location that a saved rule names, of these inputs: the same numbers that `location_of` found.

    Raises
    ------
    ValueError
        If the inputs have no fact of this name.

    Examples
    --------
    >>> numbers_named("sums", None, (), [1.0, 2.5], [1.0, 2.5, 4.0])
    Location(x=3.5, x_prime=7.5, fact='sums', column=None)
    """
    if fact == ENTRY and column is None:
        own = Location(number_under(x, path), number_under(x_prime, path))
        if not math.isnan(own.x) and not math.isnan(own.x_prime):
            return own
    for known in _known(x, x_prime):
        if (known.fact, known.column) == (fact, column):
            return known
    raise ValueError(f"fact must be one that both inputs have, got {fact!r} of column {column!r}.")


def _known(x: Any, x_prime: Any) -> Iterable[Location]:
    """Facts that both inputs have, by the same name."""
    everything: list[tuple[int | None, dict[str, float], dict[str, float]]] = []
    everything.append((None, scalars_of(x), scalars_of(x_prime)))
    tables = columns_of(x), columns_of(x_prime)
    shared = [name for name in tables[0] if name in tables[1]]
    everything += [(k, scalars_of(tables[0][name]), scalars_of(tables[1][name])) for k, name in enumerate(shared)]
    for column, of_x, of_x_prime in everything:
        for name, fact in of_x.items():
            if name in of_x_prime:
                yield Location(fact, of_x_prime[name], name, column)


def _middle(values: FloatArray) -> tuple[float, float] | None:
    """The median of the finite ones among some numbers, and about its standard error; None for too few."""
    known = values[np.isfinite(values)]
    if len(known) < FEWEST:
        return None
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75]).tolist()
    return middle, max(high - low, 1e-300) / math.sqrt(len(known))
