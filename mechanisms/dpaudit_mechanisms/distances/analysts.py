"""Analysts: who asks the next query, from the answers so far. An analyst is part of the subject, and knows no data."""

import dataclasses
from collections.abc import Callable

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import FloatArray, fixed, table

# The next query of each run, shape (runs, l), from the answers so far, shape (runs, queries so far).
Analyst = Callable[[FloatArray], FloatArray]


@dataclasses.dataclass(frozen=True, eq=False)
class FixedQueries:
    """An analyst who has decided on all queries: points of shape (queries, l)."""

    points: FloatArray

    def __post_init__(self) -> None:
        fixed(self, points=table("points", self.points, (None, None)))

    def __call__(self, answers: FloatArray) -> FloatArray:
        if answers.shape[1] >= len(self.points):
            raise UsageError(f"queries must be at most the {len(self.points)} fixed ones, got one more.")
        return np.broadcast_to(self.points[answers.shape[1]], (len(answers), self.points.shape[1]))


@dataclasses.dataclass(frozen=True)
class SlopeSeeker:
    """An adaptive analyst on [0, width]: goes on by `step` while answers fall, and turns back with half of it.

    Where the answers are exact this finds a median of the database.

    Examples
    --------
    >>> SlopeSeeker(1.0)(np.array([[0.5, 0.3], [0.5, 0.7]])).tolist()
    [[0.5], [0.125]]
    """

    width: float
    step: float = 0.25

    def __call__(self, answers: FloatArray) -> FloatArray:
        place, step = np.zeros(len(answers)), np.full(len(answers), self.step * self.width)
        for t in range(1, answers.shape[1] + 1):
            if t > 1:
                step = np.where(answers[:, t - 1] > answers[:, t - 2], -0.5 * step, step)
            place = np.clip(place + step, 0.0, self.width)
        return place[:, None]
