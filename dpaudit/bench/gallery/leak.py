"""A leak of the gallery and its sound twin.

The twin answers from the law of the other input with probability 1 / (1 + e): randomised response between two laws. Its
loss is at most 1 whatever the laws are, and 1 wherever one of them alone can give an output.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

EPSILON = 1.0  # of the claim

Sampler = Callable[[int, int, np.random.Generator], Any]  # (0 or 1, size, rng) to that many outputs


@dataclasses.dataclass(frozen=True)
class Leak:
    """A mechanism on the inputs 1 and 0 that breaks epsilon = 1."""

    form: str  # what kind of leak it is
    name: str  # of its own, within the form
    law: Sampler  # outputs on an input: an array of them, or a list

    def sample(self, data: int, size: int, rng: np.random.Generator) -> Any:
        """As a mechanism."""
        return self.law(data, size, rng)


@dataclasses.dataclass(frozen=True)
class SoundCounterpart:
    """Mechanism that keeps epsilon = 1 and looks like a leak."""

    leak: Leak

    def sample(self, data: int, size: int, rng: np.random.Generator) -> Any:
        """As a mechanism."""
        is_other = rng.random(size) < 1.0 / (1.0 + math.exp(EPSILON))
        first, second = (self.leak.law(x, size, rng) for x in (data, 1 - data))
        if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
            shape = (size,) + (1,) * (first.ndim - 1)
            return np.where(is_other.reshape(shape), second, first)
        return [b if other else a for a, b, other in zip(first, second, is_other.tolist(), strict=True)]
