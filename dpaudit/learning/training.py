"""Training draws as learners see them: rows of numbers with labels, each reduced and sorted once."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.reductions import NO_POINTS, Own, Points, Reduction
from dpaudit.privacy.claims import FloatArray

ENORMOUS = 1e150  # numbers from here on are left out, as infinite ones are: their squares overflow
MOST_NUMBERS = 400_000  # that learners look at: of wide rows the first draws alone


@dataclasses.dataclass(frozen=True)
class Sorted:
    """The numbers of one reduction in order, with their labels; those that are enormous, infinite or NaN left out.

    Attributes
    ----------
    values : ndarray of float, shape (draws,)
        Increasing.
    labels : ndarray of bool, shape (draws,)
        True for draws of x.
    """

    values: FloatArray
    labels: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)

    @functools.cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where each different value begins, and the number of draws."""
        if not len(self.values):
            return np.zeros(1, dtype=np.intp)
        changes = np.flatnonzero(self.values[1:] != self.values[:-1]) + 1
        return np.concatenate([[0], changes, [len(self.values)]])

    @property
    def different(self) -> int:
        """How many different values there are."""
        return len(self.starts) - 1


class Training:
    """Draws of x (`first`) and of x_prime (`second`), shape (draws, columns) each.

    Attributes
    ----------
    numbers : ndarray of float, shape (draws, columns)
        Of both, as far as learners look.
    labels : ndarray of bool, shape (draws,)
        True for draws of x.
    points : mapping
        What is known of the inputs: points of as many numbers as there are columns, by names.
    """

    def __init__(self, first: FloatArray, second: FloatArray, points: Points = NO_POINTS) -> None:
        self.points = points
        self.looks: list[Reduction] | None = None  # what learners look at, once one has asked
        columns = max(first.shape[1], 1)
        rows = max(MOST_NUMBERS // (2 * columns), 1)
        self.numbers = np.concatenate([first[:rows], second[:rows]])
        self.labels = np.arange(len(self.numbers)) < min(len(first), rows)
        self._sorted: dict[Reduction, Sorted] = {}

    @property
    def columns(self) -> int:
        """Numbers of a row."""
        return int(self.numbers.shape[1])

    def sorted(self, reduction: Reduction) -> Sorted:
        """The numbers that a reduction makes of the draws, in order, see `Sorted`; worked out once."""
        if reduction not in self._sorted:
            values = reduction(self.numbers)
            known = np.abs(values) < ENORMOUS
            values, labels = values[known], self.labels[known]
            order = np.argsort(values, kind="stable")
            self._sorted[reduction] = Sorted(values[order], labels[order])
        return self._sorted[reduction]

    def spread(self, column: int) -> float:
        """The interquartile range of the finite numbers of a column; 0 where there are none."""
        values = self.sorted(Own(column)).values
        return float(values[(3 * len(values)) // 4] - values[len(values) // 4]) if len(values) else 0.0

    def unit(self, columns: tuple[int, ...]) -> float:
        """A size that some columns have in common, a power of 2: for sums of them."""
        size = max((self.spread(column) for column in columns), default=0.0)
        return 2.0 ** math.ceil(math.log2(size)) if 1e-200 < size < 1e200 else 1.0
