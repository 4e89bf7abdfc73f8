"""Pairs of inputs: the two sides of one label game.

A pair is ordered only in its names (x is label 1, x_prime is label 0): a claim is asked of it in both directions.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
    """Two inputs and the name of the pair.

    Parameters
    ----------
    x, x_prime : object
        Two inputs of the mechanism.
    id : str
        Names the pair in reports; unique within one audit.
    x_id, x_prime_id : str, optional
        Names of the inputs, for the rows and columns of a report; their short form by default.
    """

    x: Any
    x_prime: Any
    id: str = ""
    x_id: str = ""
    x_prime_id: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_id", self.x_id or short_form(self.x))
        object.__setattr__(self, "x_prime_id", self.x_prime_id or short_form(self.x_prime))
        object.__setattr__(self, "id", self.id or f"{self.x_id}|{self.x_prime_id}")


def short_form(value: Any, width: int = 40) -> str:
    """A one-line name of an input, at most `width` characters: never an object's address."""
    if isinstance(value, np.ndarray):
        text = np.array2string(value, threshold=6, precision=6, separator=",").replace("\n", "")
    elif type(value).__repr__ is object.__repr__:
        text = type(value).__qualname__
    else:
        text = " ".join(repr(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def as_pairs(pairs: Iterable[Any]) -> list[Pair]:
    """A list of `Pair` from an iterable of pairs or of 2-tuples (x, x_prime), each with a unique id.

    Raises
    ------
    UsageError
        If there is no pair, an entry is not a pair, or two entries that were given an id share it.

    Examples
    --------
    >>> [pair.id for pair in as_pairs([(0.0, 1.0), (0.0, 1.0)])]
    ['0.0|1.0', '0.0|1.0#2']
    """
    result: list[Pair] = []
    seen: dict[str, int] = {}
    try:
        entries = list(pairs)
    except TypeError:
        raise UsageError(f"pairs must be a list of (x, x_prime), got {pairs!r}.") from None
    for position, entry in enumerate(entries):
        if isinstance(entry, Pair):
            pair = entry
        elif isinstance(entry, Sequence | np.ndarray) and not isinstance(entry, str | bytes) and len(entry) == 2:
            pair = Pair(entry[0], entry[1])
        else:
            raise UsageError(f"pairs must be a list of (x, x_prime), got {entry!r} at position {position}.")
        count = seen[pair.id] = seen.get(pair.id, 0) + 1
        result.append(pair if count == 1 else dataclasses.replace(pair, id=f"{pair.id}#{count}"))
    if not result:
        raise UsageError("pairs must name at least one pair of inputs, got none.")
    return result


def all_pairs(inputs: Sequence[Any], ids: Sequence[str] | None = None) -> list[Pair]:
    """Every unordered pair of different positions of `inputs`: n (n - 1) / 2 pairs."""
    names = list(ids) if ids is not None else [short_form(value) for value in inputs]
    if len(names) != len(inputs):
        raise UsageError(f"ids must be as many as inputs, got {len(names)} ids for {len(inputs)} inputs.")
    return as_pairs(
        Pair(inputs[i], inputs[j], f"{names[i]}|{names[j]}", names[i], names[j])
        for i, j in itertools.combinations(range(len(inputs)), 2)
    )
