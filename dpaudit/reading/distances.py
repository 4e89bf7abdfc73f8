"""The distance of a number from a centre: what speaks where noise is larger on one input than on the other.

Then both tails speak for the same input. A rule on the number itself guesses one input in each tail, and takes one of
the two; bins know the tails only as finely as they are. Where the tails speak for different inputs, as under noise that
is moved, the distance has nothing to add, and would only be one competitor more.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes

TAIL_MASS = 0.05  # of the finite numbers, below and above: what the tails speak for is read off these
TAIL_DEVIATIONS = 2.0  # by which each of them must speak for the same input
FEWEST = 400  # finite numbers, without which tails say nothing


@dataclasses.dataclass(frozen=True)
class Distance:
    """The distance of a single number from a centre; infinite of infinite numbers, NaN of NaN."""

    centre: float

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        return self.of(outcomes.numbers[:, 0])

    def of(self, numbers: FloatArray) -> FloatArray:
        """The distance of each number, shape (numbers,)."""
        with np.errstate(over="ignore"):  # of very distant ones it is infinite
            return np.asarray(np.abs(numbers - self.centre))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "distance", "centre": float(self.centre).hex()}

    @staticmethod
    def from_dict(record: Mapping[str, Any]) -> Distance:
        """What `to_dict` wrote.

        Raises
        ------
        ValueError
            If the centre is not finite.
        """
        centre = float.fromhex(record["centre"])
        if not math.isfinite(centre):
            raise ValueError(f"centre must be finite, got {centre!r}.")
        return Distance(centre)

    def describe(self) -> str:
        return f"the distance of the output from {self.centre:.6g}"


def find_distance(first: FloatArray, second: FloatArray) -> Distance | None:
    """The distance from the median of numbers of x (`first`) and x_prime; None where the tails do not speak alike."""
    both = np.concatenate([first, second])
    finite = both[np.isfinite(both)]
    if len(finite) < FEWEST:
        return None
    tail = int(TAIL_MASS * len(finite))
    places = [tail, len(finite) // 2, len(finite) - 1 - tail]
    low, centre, high = np.partition(finite, places)[places].tolist()
    below, above = (
        [int(np.count_nonzero(side < low)) for side in (first, second)],
        [int(np.count_nonzero(side > high)) for side in (first, second)],
    )
    return Distance(centre) if speak_alike(below, above, (len(first), len(second))) else None


def speak_alike(below: Sequence[int], above: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether both tails speak for the same input, by so many numbers of x and x_prime in them, of so many in all."""
    spoken = []
    for of_x, of_x_prime in (below, above):
        n1, n0 = (max(size, 1) for size in sizes)
        variance = of_x / n1**2 + of_x_prime / n0**2
        spoken.append((of_x / n1 - of_x_prime / n0) / math.sqrt(variance) if variance > 0.0 else 0.0)
    return min(spoken) > TAIL_DEVIATIONS or max(spoken) < -TAIL_DEVIATIONS
