"""The gallery: leaks by their form, each with a sound twin, of which an audit with no hint finds a share.

Problems of the bench measure an audit against the optimum. The gallery asks something else: of a leak of this form, how
often is it found at all? Every leak breaks epsilon = 1 by far, so that a miss is blindness and not a want of draws.

The twin answers from the law of the other input with probability 1 / (1 + e): randomised response between two laws. Its
loss is at most 1 whatever the laws are, and 1 wherever one of them alone can give an output.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import array_laws
import numpy as np
import object_laws
from array_laws import Sampler

EPSILON = 1.0  # of the claim


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


def gallery() -> list[Leak]:
    """All leaks; forms and names together differ."""
    first = [*array_laws.first_rows(), *object_laws.first_objects()]
    tables = [*array_laws.table_rows(), *object_laws.table_objects()]
    return [*(Leak(*row) for row in (*first, *tables)), *second_half(0), *second_half(1)]


def second_half(half: int) -> list[Leak]:
    """Every other one of the leaks that were thought of later: the first half (0), or the other one (1).

    Kinds of reading and learners were added after a look at what was missed of both. The other half is for reports: no
    constant was chosen on it.
    """
    return [Leak(*row) for row in (*array_laws.later_rows(), *object_laws.later_objects())][half::2]
