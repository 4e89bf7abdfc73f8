"""Average distances of a database, coordinate by coordinate: every statistic of the data that the mechanisms read.

The space is a box [0, w_1] x ... x [0, w_l] with the l1 distance, whose diameter is the sum of its widths. A database
has n points. The answer to a query y is F(y) = sum over i of F_i(y_i), with F_i(y_i) = mean of |x_i - y_i| over the
points: convex and piecewise linear, with slopes in [-1, 1].

Conventions
-----------
* The slope is the right derivative everywhere: (#{x_i <= y_i} - #{x_i > y_i}) / n, one rule for all databases.
* Neighbours differ in one point. Between them the vector (F_1(y_1), ..., F_l(y_l)) changes by at most the diameter
  over n in l1, and each slope by at most 2 / n: the slopes times the widths by at most 2 diameter / n in l1.
* Points outside of the box are moved onto it, each by itself, so that no statistic is more sensitive than that.

Sources: MQ-C8 to MQ-C12, MQ-L6. That slopes are 1 / n-sensitive, as condition (2) of MQ-L6 asks, is false: they have 2
/ n.
"""

import dataclasses
import functools
from typing import Annotated

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray, fixed, table


def box_widths(widths: ArrayLike) -> FloatArray:
    """Widths of a box, shape (l,), each in (0, inf); read-only."""
    checked = table("widths", widths, (None,), within="in (0, inf)")
    with np.errstate(over="ignore"):
        if not np.isfinite((checked**2).sum()):  # sensitivities are of their sum and of the sum of their squares
            raise UsageError(f"widths must be of finite sum and squares, got {checked.tolist()}.")
    checked.setflags(write=False)
    return checked


Widths = Annotated[FloatArray, lambda name, value: box_widths(value)]


@dataclasses.dataclass(frozen=True, eq=False)
class AverageDistances:
    """Values and slopes of F_1, ..., F_l at any point, in O(l log n) each after one sort of every coordinate.

    Parameters
    ----------
    points : array_like of float, shape (n, l)
        The database; moved onto the box, point by point.
    widths : array_like of float, shape (l,)
        Of the box, in (0, inf).

    Raises
    ------
    UsageError
        If there is no point, a number is not finite, or the shapes do not agree.

    Examples
    --------
    >>> averages = AverageDistances([[0.0], [0.5]], [1.0])
    >>> averages.values([[0.0], [0.25], [1.0]]).tolist(), averages.slopes([[0.0], [0.25], [0.5]]).tolist()
    ([[0.25], [0.25], [0.75]], [[0.0], [0.0], [1.0]])
    """

    points: FloatArray = dataclasses.field(repr=False)
    widths: FloatArray

    def __post_init__(self) -> None:
        widths = box_widths(self.widths)
        points = table("points", self.points, (None, len(widths)), finite=True)
        fixed(self, widths=widths, points=np.clip(points, 0.0, widths))

    @property
    def records(self) -> int:
        """n."""
        return len(self.points)

    @functools.cached_property
    def _sorted(self) -> tuple[FloatArray, FloatArray]:
        """Coordinates in increasing order (n, l), and their sums from the left, shape (n + 1, l)."""
        ordered = np.sort(self.points, axis=0)
        return ordered, np.concatenate([np.zeros((1, len(self.widths))), np.cumsum(ordered, axis=0)])

    def values(self, queries: ArrayLike) -> FloatArray:
        """F_i(y_i) for each query, shape (queries, l)."""
        return self.tangents(queries)[0]

    def slopes(self, queries: ArrayLike) -> FloatArray:
        """The right derivative of each F_i at y_i, shape (queries, l), in [-1, 1]."""
        return self.tangents(queries)[1]

    def tangents(self, queries: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Values and slopes together, each of shape (queries, l)."""
        at = table("queries", queries, (None, len(self.widths)))
        ordered, sums = self._sorted
        n = self.records
        below: IntArray = np.stack(
            [np.searchsorted(ordered[:, i], at[:, i], side="right") for i in range(len(self.widths))], axis=1
        )
        left = np.take_along_axis(sums, below, axis=0)  # (queries, l): sum of the coordinates at most y_i
        # mean |x - y| = (b y - left + (total - left) - (n - b) y) / n with b points at most y
        values = ((2 * below - n) * at + sums[-1] - 2.0 * left) / n
        return values, (2 * below - n) / n

    def value(self, queries: ArrayLike) -> FloatArray:
        """F(y), shape (queries,)."""
        return self.values(queries).sum(axis=1)
