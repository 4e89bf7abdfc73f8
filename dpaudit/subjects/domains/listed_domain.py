"""Domains of listed inputs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.metrics import is_same
from dpaudit.privacy.pairs import short_form
from dpaudit.subjects.domains.domain import Domain, Inputs, Start

LISTED = 400  # pairs of a list of inputs that are all starts; of a longer list its neighbours and ends are


@dataclasses.dataclass(frozen=True)
class ListedDomain(Domain):
    """Inputs that the user lists; any two of them are adjacent, or those that `adjacent` says.

    For metric claims: any two inputs have a budget of their own.

    Parameters
    ----------
    inputs : sequence
        At least two.
    adjacent : callable, optional
        (x, x_prime) to whether they are.

    Examples
    --------
    >>> [(x, y) for _, x, y in ListedDomain((0, 1, 5)).starts()]
    [(0, 1), (0, 5), (1, 5)]
    """

    inputs: tuple[Any, ...]
    adjacent: Callable[[Any, Any], bool] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if len(self.inputs) < 2:
            raise UsageError(f"inputs must be at least two, got {len(self.inputs)}.")

    def starts(self) -> Iterator[Start]:
        """All pairs of a short list; of a longer one those of neighbours in the list and of its ends."""
        if len(self.inputs) * (len(self.inputs) - 1) // 2 <= LISTED:
            chosen: Iterable[Inputs] = itertools.combinations(self.inputs, 2)
        else:
            chosen = [(self.inputs[0], self.inputs[-1]), *itertools.pairwise(self.inputs)]
        for x, x_prime in chosen:
            if self._is_adjacent(x, x_prime):
                yield "listed", x, x_prime

    def random(self, rng: np.random.Generator) -> Inputs:
        """Two of the inputs; after 1,000 that are not adjacent, an input and itself."""
        for _ in range(1000):
            i, j = rng.choice(len(self.inputs), size=2, replace=False).tolist()
            if self._is_adjacent(self.inputs[i], self.inputs[j]):
                return self.inputs[i], self.inputs[j]
        return self.inputs[0], self.inputs[0]

    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """One of the two stays, the other one is another input."""
        others = [self.inputs[k] for k in rng.integers(len(self.inputs), size=4)]
        found = [(x, other) if k % 2 else (other, x_prime) for k, other in enumerate(others)]
        return [pair for pair in found if self._is_adjacent(*pair)]

    def all_inputs(self, most: int) -> Iterable[Any]:
        return self.inputs

    def is_pair(self, x: Any, x_prime: Any) -> bool:
        known = all(any(is_same(value, other) for other in self.inputs) for value in (x, x_prime))
        return known and (self._is_adjacent(x, x_prime) or self._is_adjacent(x_prime, x))

    def to_dict(self) -> dict[str, Any]:
        shown = [short_form(value) for value in self.inputs[:20]]
        return {"kind": "inputs", "inputs": shown, "count": len(self.inputs)}

    def _is_adjacent(self, x: Any, x_prime: Any) -> bool:
        return self.adjacent is None or bool(self.adjacent(x, x_prime))
