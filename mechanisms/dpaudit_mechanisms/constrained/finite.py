"""Conditioning, imaging and mixing of finite laws: one row an input, one column a world.

Tables are row-stochastic, shape (inputs, worlds), of floats or of fractions (dtype object): nothing here rounds what
comes in as fractions. An event is the set of its worlds, as a boolean array; a closest-world map gives for each world
the position of the world that it moves to.
"""

import dataclasses
import itertools
from typing import Any

import numpy as np

from dpaudit_mechanisms.finite_choice import FiniteChoice
from dpaudit_mechanisms.inputs import FloatArray, fixed, position, table
from dpaudit_mechanisms.protocol import Claim, Pair, PureDP, UsageError


def masses(law: Any, event: Any) -> Any:
    """P(event) of each row, shape (inputs,)."""
    rows = np.asarray(law)
    return rows[:, np.asarray(event, dtype=bool)].sum(axis=1)


def conditioned(law: Any, event: Any) -> Any:
    """Each row given the event: p(w) / P(event) on it, 0 off it (CD-S5 for finite laws).

    Raises
    ------
    UsageError
        If the event has probability 0 in a row: the law given it is not defined there.

    Examples
    --------
    >>> conditioned([[0.5, 0.25, 0.25]], [True, True, False]).round(4).tolist()
    [[0.6667, 0.3333, 0.0]]
    """
    rows, inside = np.asarray(law), np.asarray(event, dtype=bool)
    if inside.shape != rows.shape[1:]:
        raise UsageError(f"event must be of shape {rows.shape[1:]}, got shape {inside.shape}.")
    mass = masses(rows, inside)
    if not (mass > 0).all():
        raise UsageError(f"event must have a positive probability on every input, got 0 on input {np.argmin(mass)}.")
    return np.where(inside, rows, 0 * rows) / mass[:, None]


def imaged(law: Any, nearest: Any) -> Any:
    """Each row after every world's probability has moved to its closest world (eq. 1, CD-S2).

    Examples
    --------
    >>> imaged([[0.5, 0.25, 0.25]], [0, 1, 0]).tolist()
    [[0.75, 0.25, 0.0]]
    """
    rows, goal = np.asarray(law), np.asarray(nearest)
    are_positions = goal.shape == rows.shape[1:] and goal.dtype.kind in "iu"
    if not are_positions or not ((goal >= 0) & (goal < rows.shape[1])).all():
        raise UsageError(f"nearest must be a world for each of {rows.shape[1]}, got {goal.tolist()}.")
    moved = 0 * rows
    for world, to in enumerate(goal):
        moved[:, to] = moved[:, to] + rows[:, world]
    return moved


@dataclasses.dataclass(frozen=True, eq=False)
class FiniteLaw(FiniteChoice):
    """Section 2 of Liu et al. (2023), arXiv:2303.00228.

    A mechanism with finitely many inputs and outputs, both positions; every two inputs are adjacent.

    Parameters
    ----------
    law : array_like of float, shape (inputs, worlds)
        Row-stochastic within 1e-9.

    Examples
    --------
    >>> round(FiniteLaw([[0.75, 0.25], [0.25, 0.75]]).claim.value, 6)  # log 3
    1.098612
    """

    law: Any

    def __post_init__(self) -> None:
        law = table("law", self.law, (None, None))
        if not (law >= 0.0).all() or np.abs(law.sum(axis=1) - 1.0).max() > 1e-9:
            raise UsageError(f"law must have rows of probabilities, got sums {law.sum(axis=1).tolist()}.")
        fixed(self, law=law)

    @property
    def claim(self) -> Claim:
        """`PureDP` at the exact loss over all pairs."""
        return PureDP(max((self.privacy_loss(p.x, p.x_prime) for p in self.pairs()), default=0.0))

    @property
    def outcomes(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The outputs: 0 to worlds - 1."""
        return np.arange(self.law.shape[1])

    def distribution(self, data: Any) -> FloatArray:
        """Probabilities of `outcomes` on one input, shape (worlds,)."""
        return np.asarray(self.law[position(data, len(self.law))])

    def log_law(self, data: Any) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.distribution(data))

    def pairs(self) -> list[Pair]:
        """Every two inputs."""
        return [Pair(a, b) for a, b in itertools.combinations(range(len(self.law)), 2)]

    def given(self, event: Any) -> "FiniteLaw":
        """This mechanism conditioned on an event of positive probability on every input."""
        return FiniteLaw(conditioned(self.law, event))

    def moved(self, nearest: Any) -> "FiniteLaw":
        """This mechanism after imaging along a closest-world map."""
        return FiniteLaw(imaged(self.law, nearest))
