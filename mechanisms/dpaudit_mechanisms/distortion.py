"""Distorting queries so that less noise is needed: the best trade of a bias against the scale c, solved exactly.

A query q (N,) is answered through c q', where |q'_i - q'_j| <= d(i, j). In w = c q' the constraint reads
|w_i - w_j| <= c d(i, j), and the least distortion max |q - w| that it allows is

    g(c) = max over i, j of (|q_i - q_j| - c d(i, j)) / 2, at least 0,

reached by w_i = g(c) + min over j of (q_j + c d(i, j)); this needs the triangle inequality (w then changes by at most c
d(i, j), and lies in [q - g, q + g]). So g is convex and piecewise linear in c, and a cost n g(c) + a c^(1/3) is concave
on each piece: its minimum is at a corner of g. That solves the printed problems DX-O3 and DX-O4 exactly, which are not
convex in (q', c), and DX-O7, where the second term is c itself.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from dpaudit.privacy.finite_metrics import check_metric
from dpaudit_mechanisms.index_metric import budget_matrix
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, table
from dpaudit_mechanisms.protocol import UsageError, number


@dataclasses.dataclass(frozen=True, eq=False)
class Distortion:
    """Result of `best_distortion`.

    `c` is the scale, `distorted` are the vectors w = c q' of shape (K, N), `distortion` is max |q - w|, `cost` the
    value of the cost at c.
    """

    c: float
    distorted: FloatArray
    distortion: float
    cost: float


def least_distortion(queries: ArrayLike, metric: ArrayLike, c: float) -> tuple[float, FloatArray]:
    """g(c) of all queries together, and vectors w of shape (K, N) that reach it.

    Parameters
    ----------
    queries : array_like of float, shape (K, N)
    metric : array_like of float, shape (N, N)
        d(i, j) in nats, with the triangle inequality; infinity asks for nothing.
    c : float
        In [0, inf), in query units per nat.

    Examples
    --------
    >>> distortion, w = least_distortion([[0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], c=0.5)
    >>> distortion, w.tolist()
    (0.25, [[0.25, 0.75]])
    """
    rows, budgets = _checked(queries, metric)
    allowed = np.where(np.isinf(budgets), np.inf, c * np.where(np.isinf(budgets), 0.0, budgets))
    distortions, distorted = [], []
    for row in rows:
        gap = max(0.0, float((np.abs(row[:, None] - row) - allowed).max()) / 2.0)
        distortions.append(gap)
        distorted.append(gap + (row + allowed).min(axis=1))
    # A query with a smaller distortion of its own keeps it: less is not worse.
    return max(distortions), np.array(distorted)


def best_distortion(queries: ArrayLike, metric: ArrayLike, cost: Callable[[float, float], float]) -> Distortion:
    """The scale c in [0, inf) of least cost(distortion, c), for a cost that is concave in c on each piece of g.

    Linear costs count: `lambda distortion, c: distortion + c`. With increasing c the cost at a fixed distortion must
    not fall, so that no c beyond the one without distortion is worth a look. O((K N^2)^2) time: meant for small
    universes.

    Examples
    --------
    >>> best = best_distortion([[-1.0, 1.0]], [[0.0, 5.0], [5.0, 0.0]], lambda distortion, c: distortion + c)
    >>> best.c, best.cost  # 2 / 5: all noise, no distortion
    (0.4, 0.4)
    """
    rows, budgets = _checked(queries, metric)
    return _best_of(rows, budgets, _corners(_lines(rows, budgets)), cost)


def best_squared_distortion(queries: ArrayLike, metric: ArrayLike, price: float = 2.0) -> Distortion:
    """The scale c in [0, inf) of least g(c)^2 + price c^2: DX-O6 for one query and the squared loss, at price 2.

    On each piece g(c) = (G - s c) / 2 the cost is a parabola with its minimum at c = s G / (s^2 + 4 price): the optimum
    is there, or at a corner.

    Examples
    --------
    >>> best = best_squared_distortion([[-1.0, 1.0]], [[0.0, 2.0], [2.0, 0.0]])
    >>> round(best.c, 6), round(best.cost, 6)  # s / (s^2 / 2 + 4) at s = 2
    (0.333333, 0.666667)
    """
    rows, budgets = _checked(queries, metric)
    weight = number("price", price, "in (0, inf)", lambda v: 0.0 < v < np.inf)
    lines = _lines(rows, budgets)
    minima = (lines[:, 1] * lines[:, 0] / (lines[:, 1] ** 2 + 4.0 * weight)).tolist()
    return _best_of(rows, budgets, [*_corners(lines), *minima], lambda distortion, c: distortion**2 + weight * c**2)


def _best_of(
    rows: FloatArray, budgets: FloatArray, candidates: list[float], cost: Callable[[float, float], float]
) -> Distortion:
    """The candidate of least cost; the smallest of several."""
    scales = sorted({c for c in candidates if c >= 0.0})
    costs = [cost(least_distortion(rows, budgets, c)[0], c) for c in scales]
    c = scales[int(np.argmin(costs))]
    distortion, distorted = least_distortion(rows, budgets, c)
    return Distortion(c, distorted, distortion, min(costs))


def _lines(rows: FloatArray, budgets: FloatArray) -> FloatArray:
    """The lines (G - s c) / 2 whose maximum, with 0, is g: G and s in the columns, shape (lines, 2)."""
    first, second = np.triu_indices(rows.shape[1], 1)
    gaps = np.abs(rows[:, first] - rows[:, second]).ravel()
    slopes = np.tile(budgets[first, second], len(rows))
    is_asked = np.isfinite(slopes) & (gaps > 0.0)
    lines = np.unique(np.stack([gaps[is_asked], slopes[is_asked]], axis=1), axis=0)
    if lines.size and (lines[:, 1] == 0.0).any():
        raise UsageError("metric must be positive where a query differs, got 0.0.")
    return lines.reshape(-1, 2)


def _corners(lines: FloatArray) -> list[float]:
    """Every c at which two of the lines cross, or one falls to 0, and 0 itself."""
    corners = [0.0, *(lines[:, 0] / lines[:, 1]).tolist()]
    for n, (gap, slope) in enumerate(lines.tolist()):
        others = lines[:n]
        crossing = others[others[:, 1] != slope]
        corners += ((gap - crossing[:, 0]) / (slope - crossing[:, 1])).tolist()
    return corners


def _checked(queries: ArrayLike, metric: ArrayLike) -> tuple[FloatArray, FloatArray]:
    rows = table("queries", queries, (None, None), finite=True)
    budgets = budget_matrix(metric, rows.shape[1])
    check_metric(budgets, tolerance=1e-12)
    return rows, budgets
