"""Unions of closed intervals on the real line, as sorted arrays of shape (intervals, 2); ends count for nothing.

They carry densities: sets are equal here where they differ by finitely many points.
"""

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, table

NOTHING: FloatArray = np.zeros((0, 2))


def union(intervals: ArrayLike) -> FloatArray:
    """The union of intervals [low, high] of shape (intervals, 2), as disjoint intervals in increasing order.

    Touching intervals become one; those of length 0 stay, as they can still move others.

    Raises
    ------
    UsageError
        If an end is not finite, or low is above high.

    Examples
    --------
    >>> union([[2.0, 3.0], [0.0, 1.0], [1.0, 1.5]]).tolist()
    [[0.0, 1.5], [2.0, 3.0]]
    """
    given = np.asarray(intervals, dtype=float)
    ends = table("intervals", given, (None, 2)) if given.size else NOTHING
    if not (np.isfinite(ends).all() and (ends[:, 0] <= ends[:, 1]).all()):
        raise UsageError(f"intervals must be finite with low <= high, got {ends.tolist()}.")
    return _merged(ends)


def unions(name: str, intervals: ArrayLike) -> FloatArray:
    """`union` of an argument of this name."""
    return union(table(name, intervals, (None, 2)))


def _merged(ends: FloatArray) -> FloatArray:
    if not len(ends):
        return NOTHING
    ordered = ends[np.argsort(ends[:, 0], kind="stable")]
    highest = np.maximum.accumulate(ordered[:, 1])
    starts = np.concatenate([[True], ordered[1:, 0] > highest[:-1]])
    stops = np.concatenate([np.flatnonzero(starts)[1:] - 1, [len(ordered) - 1]])
    return np.column_stack([ordered[starts, 0], highest[stops]])


def minkowski(first: FloatArray, second: FloatArray) -> FloatArray:
    """All sums of a point of each: O(len(first) len(second)) intervals, merged.

    Examples
    --------
    >>> minkowski(union([[0.0, 1.0]]), union([[0.0, 0.0], [5.0, 6.0]])).tolist()
    [[0.0, 1.0], [5.0, 7.0]]
    """
    return _merged((first[:, None] + second).reshape(-1, 2))


def difference(first: FloatArray, second: FloatArray) -> FloatArray:
    """Difference of two unions, the first less the second, up to ends and without intervals of length 0.

    Examples
    --------
    >>> difference(union([[0.0, 10.0]]), union([[2.0, 3.0], [9.0, 12.0]])).tolist()
    [[0.0, 2.0], [3.0, 9.0]]
    """
    cuts = np.unique(np.concatenate([first.ravel(), second.ravel()]))
    if len(cuts) < 2:
        return NOTHING
    pieces = np.column_stack([cuts[:-1], cuts[1:]])
    middles = pieces.mean(axis=1)
    return _merged(pieces[is_inside(first, middles) & ~is_inside(second, middles)])


def is_inside(intervals: FloatArray, points: ArrayLike) -> np.ndarray:
    """Tell whether each point is in a union of disjoint intervals in increasing order; of the shape of `points`."""
    values = np.asarray(points, dtype=float)
    if not len(intervals):
        return np.zeros(values.shape, dtype=bool)
    place = np.searchsorted(intervals[:, 0], values, side="right") - 1
    return (place >= 0) & (values <= intervals[np.maximum(place, 0), 1])


def length(intervals: FloatArray) -> float:
    """Total length."""
    return float((intervals[:, 1] - intervals[:, 0]).sum())
