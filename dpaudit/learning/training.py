"""Training draws as learners see them: rows of numbers with labels, each reduced and sorted once."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.reductions import NO_POINTS, Own, Points, Reduction
from dpaudit.privacy.claims import FloatArray

ENORMOUS = 1e150  # numbers from here on are left out, as infinite ones are: their squares overflow
MOST_NUMBERS = 400_000  # that learners look at: of wide rows the first draws alone
BLOCK = 1 << 16  # numbers that are looked at together, unless one reduction has more: they fit into a cache


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


@dataclasses.dataclass(frozen=True)
class Block:
    """Several reductions with equally many draws of each label, in rows: one pass over them costs less than many.

    Attributes
    ----------
    reductions : tuple of Reduction
    values : ndarray of float, shape (reductions, draws)
        Increasing in each row.
    labels : ndarray of bool, shape (reductions, draws)
        True for draws of x.
    """

    reductions: tuple[Reduction, ...]
    values: FloatArray
    labels: NDArray[np.bool_]

    def of_label(self, label: bool) -> FloatArray:
        """The values of the draws with a label, shape (reductions, draws of it)."""
        return np.asarray(self.values[self.labels == label].reshape(len(self.reductions), -1))

    def only(self, row: int) -> Block:
        """One of the reductions."""
        return Block(self.reductions[row : row + 1], self.values[[row]], self.labels[[row]])


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
            sides = [np.sort(values[known & side]) for side in (self.labels, ~self.labels)]
            both = np.concatenate(sides)
            order = np.argsort(both, kind="stable")  # two runs, which it only merges
            self._sorted[reduction] = Sorted(both[order], order < len(sides[0]))
        return self._sorted[reduction]

    def blocks(self, reductions: Iterable[Reduction]) -> Iterator[Block]:
        """These reductions of the draws, see `sorted`, as many together as fit into a block; each once."""
        alike: dict[tuple[int, int], list[Reduction]] = {}
        for reduction in reductions:
            draws = self.sorted(reduction)
            alike.setdefault((len(draws), int(np.count_nonzero(draws.labels))), []).append(reduction)
        for (size, _), several in alike.items():
            most = max(BLOCK // max(size, 1), 1)
            for first in range(0, len(several), most):
                chosen = several[first : first + most]
                rows = [self.sorted(reduction) for reduction in chosen]
                values, labels = np.stack([row.values for row in rows]), np.stack([row.labels for row in rows])
                yield Block(tuple(chosen), values, labels)

    def spread(self, column: int) -> float:
        """The interquartile range of the finite numbers of a column; 0 where there are none."""
        values = self.sorted(Own(column)).values
        return float(values[(3 * len(values)) // 4] - values[len(values) // 4]) if len(values) else 0.0

    def unit(self, columns: tuple[int, ...]) -> float:
        """A size that some columns have in common, a power of 2: for sums of them."""
        size = max((self.spread(column) for column in columns), default=0.0)
        return 2.0 ** math.ceil(math.log2(size)) if 1e-200 < size < 1e200 else 1.0
