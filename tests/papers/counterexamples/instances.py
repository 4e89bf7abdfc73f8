"""What a search tries: instances as rows of numbers of [0, 1], and quotients of a whole batch of them.

Conventions: `v` has the shape (instances, numbers); a quotient returns the shape (instances,). Laws have the outcomes
on the last axis, and inputs on the one before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit_mechanisms.inputs import FloatArray

ROUNDING = 1e-7
DIFFERENCE = 1e-12
IDENTITY = 1e-9  # relative gap at which an identity's quotient is 1
Quotient = Callable[[FloatArray], FloatArray]


@dataclasses.dataclass(frozen=True)
class Target:
    """A statement that instances can refute.

    Parameters
    ----------
    what : str
        The instances, and what the quotient is.
    numbers : int
        How many numbers describe an instance.
    quotient : callable
        From (instances, numbers) to (instances,): above 1 refutes the statement.
    """

    what: str
    numbers: int
    quotient: Quotient

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Fresh instances, shape (size, numbers): a quarter of the numbers 0 or 1, since bounds are reached there."""
        values = rng.random((size, self.numbers))
        return np.where(rng.random(values.shape) < 0.25, np.round(values), values)


Targets = dict[str, Target]


def target(targets: Targets, claim: str, what: str, numbers: int) -> Callable[[Quotient], Quotient]:
    """Puts a quotient among the targets of a paper, under the id of its claim."""

    def register(quotient: Quotient) -> Quotient:
        targets[claim] = Target(what, numbers, quotient)
        return quotient

    return register


def laws(v: FloatArray, inputs: int) -> FloatArray:
    """Positive laws over four orders of magnitude, shape (instances, inputs, outcomes)."""
    weights = np.exp(9.0 * v.reshape(len(v), inputs, -1))
    return np.asarray(weights / weights.sum(axis=2, keepdims=True))


def pick(v: FloatArray, count: int) -> NDArray[np.intp]:
    """Positions 0..count - 1 from numbers of [0, 1]."""
    return np.minimum((v * count).astype(np.intp), count - 1)


def over(value: FloatArray, bound: Any) -> FloatArray:
    """A quotient; 0 / 0 is 0, as nothing is close there, and a bound of 0 that is exceeded infinite.

    1e-12 is taken off the value: what differences of terms of up to 1,000 are rounded by. Without it a bound near 0 is
    exceeded by rounding alone.
    """
    value, bound = np.broadcast_arrays(np.asarray(value, dtype=float), np.asarray(bound, dtype=float))
    small, above = bound <= DIFFERENCE, np.where(value < DIFFERENCE, 0.0, value - DIFFERENCE)
    return np.where(small, np.where(value <= 1e-9, 0.0, np.inf), above / np.where(small, 1.0, bound))


def gap(first: Any, second: Any) -> FloatArray:
    """How far an identity is from holding, in units of 1e-9 of its size; arrays of shape (instances, ...)."""
    a, b = np.broadcast_arrays(np.asarray(first, dtype=float), np.asarray(second, dtype=float))
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    return np.asarray(np.abs(a - b).max(axis=1) / (IDENTITY * (1.0 + np.abs(a).max(axis=1))))


def losses(laws_of_inputs: FloatArray) -> FloatArray:
    """The largest |log p - log q| over all pairs of inputs, shape (instances,)."""
    logs = np.log(laws_of_inputs)
    return np.asarray((logs.max(axis=1) - logs.min(axis=1)).max(axis=1))


def deltas(laws_of_two: FloatArray, factor: FloatArray) -> FloatArray:
    """The larger hockey-stick divergence of two inputs' laws at e^epsilon = factor, shape (instances,)."""
    p, q, f = laws_of_two[:, 0], laws_of_two[:, 1], factor[:, None]
    return np.maximum(np.maximum(p - f * q, 0.0).sum(axis=1), np.maximum(q - f * p, 0.0).sum(axis=1))


def shortest(lengths: FloatArray) -> FloatArray:
    """Shortest-path distances, shape (instances, n, n), of the lengths of all edges: triangle by triangle."""
    found = np.array(lengths)
    for j in range(found.shape[1]):
        np.minimum(found, found[:, :, [j]] + found[:, [j], :], out=found)
    return found


def symmetric(v: FloatArray, n: int) -> FloatArray:
    """Symmetric matrices with zeros on the diagonal, shape (instances, n, n), of n (n - 1) / 2 numbers each."""
    found = np.zeros((len(v), n, n))
    rows, columns = np.triu_indices(n, 1)
    found[:, rows, columns] = v
    return found + found.transpose(0, 2, 1)
