"""Base class of domains, and helpers of all of them."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from dpaudit.privacy.claims import number
from dpaudit.privacy.differences import row_key
from dpaudit.privacy.pairs import Pair

Inputs = tuple[Any, Any]
Start = tuple[str, Any, Any]  # the family that a pair is of, x, x_prime
Relation = Literal["add_remove", "replace_one"]
RELATIONS: tuple[Relation, ...] = ("add_remove", "replace_one")
SWEEP = 48  # levels of a range
MAX_INPUTS, MAX_PAIRS = 64, 400  # of a domain whose pairs are listed
MOVES = 6  # different pairs that `moves` aims at
SHARE = 0.1  # of what is drawn at random: special values, a record that is there already, any number of a range


class Domain(ABC):
    """Source of pairs; see the module."""

    @abstractmethod
    def starts(self) -> Iterator[Start]:
        """The pairs to begin with, the most telling first: (family, x, x_prime)."""

    @abstractmethod
    def random(self, rng: np.random.Generator) -> Inputs:
        """A pair at random."""

    @abstractmethod
    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """Pairs that differ a little from this one, at most a handful; some may be the pair itself."""

    def sized(self, x: Any, x_prime: Any, size: float) -> Iterator[Inputs]:
        """Pairs like this one, of which the number that differs is moved by this part of its range."""
        return iter(())

    def steps(self, x: Any, x_prime: Any) -> int:
        """The number of steps of the way between two inputs, each between neighbours; 0 where no way is known."""
        return 0

    def on_way(self, x: Any, x_prime: Any, step: int) -> Any:
        """The input that is so many steps from x on the way to x_prime."""
        return x_prime if step else x

    def sweep(self) -> list[Any]:
        """Inputs of one level each, with a way from each to the next: a band of 1 / SWEEP of a range is met."""
        return []

    def all_inputs(self, most: int) -> Iterable[Any] | None:
        """All inputs, one after the other; None where they cannot be listed, or are known to be more than `most`."""
        return None

    def all_pairs(self) -> list[Pair] | None:
        """Every pair of neighbours, each once; None where there are too many, or they cannot be listed."""
        listed = self.all_inputs(MAX_INPUTS)
        inputs = [] if listed is None else list(itertools.islice(listed, MAX_INPUTS + 1))
        if len(inputs) > MAX_INPUTS:
            return None
        both = itertools.combinations(inputs, 2)
        pairs = [Pair(x, y) for x, y in both if self.is_pair(x, y) or self.is_pair(y, x)]
        return pairs if 0 < len(pairs) <= MAX_PAIRS else None

    def is_pair(self, x: Any, x_prime: Any) -> bool:
        """Tell whether both inputs are of the domain and adjacent in its sense; False where the domain cannot say."""
        return False

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The domain as JSON values, for the record of a search."""


def check_ends(low: Any, high: Any) -> None:
    """Check the two ends of a range of numbers."""
    least = number("low", low, "finite", math.isfinite)
    number("high", high, f"finite and above low ({least:g})", lambda v: least < v < math.inf)


def is_number(value: Any) -> bool:
    """Tell whether it is a finite number, and no truth value."""
    is_plain = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_plain and math.isfinite(value)


def distinct(values: Iterable[Any], most: int | None = None) -> list[Any]:
    """The values, each once; the first `most` of them, where that is given.

    Examples
    --------
    >>> distinct([3, 1.0, float("nan"), True, float("nan"), 3])
    [3, 1.0, nan]
    """
    found: dict[Hashable, Any] = {}
    for value in values:
        if len(found) == most:
            break
        found.setdefault(row_key(value), value)
    return list(found.values())


def spread(values: Sequence[Any], most: int) -> list[Any]:
    """At most `most` of the values, evenly from the first one to the last one, in their order.

    Examples
    --------
    >>> spread(range(100), 4)
    [0, 33, 66, 99]
    """
    if len(values) <= most:
        return list(values)
    return [values[round(k * (len(values) - 1) / max(most - 1, 1))] for k in range(most)]
