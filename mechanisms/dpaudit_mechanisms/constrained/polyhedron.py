"""Polyhedra {z : A z = b, G z >= h} and the L2 projection onto them (imaging, CD-S9).

The projection is a least-distance program, which Lawson and Hanson turn into non-negative least squares: with
x = z - y, minimise |E w - f| over w >= 0, E = [G'; (h - G y)'], f = (0, ..., 0, 1); the residual gives x, and w > 0 the
rows that hold with equality. `scipy.optimize.nnls`, an active-set method, solves it; the point is then computed from
its active rows alone, so that no output carries the tolerance of a solver, nor anything of the other outputs of its
batch. Boxes, and sets of non-negative numbers with a given sum, are projected onto in closed form.

Source: Lawson and Hanson, Solving Least Squares Problems (1974), chapter 23.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy import optimize

from dpaudit.errors import DpauditError, UsageError
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.inputs import ArrayLike, BoolArray, FloatArray, fixed, output_batch, table

FEASIBLE = 1e-9  # relative violation of a row that counts as rounding


@dataclasses.dataclass(frozen=True, eq=False)
class Polyhedron:
    """The set {z : A z = b, rows z >= bounds}: closed and convex, so that every point has one nearest point.

    Parameters
    ----------
    rows : array_like of float, shape (inequalities, coordinates)
    bounds : array_like of float, shape (inequalities,)
    equalities : Affine, optional

    Raises
    ------
    UsageError
        If shapes do not fit or the set is empty.

    Examples
    --------
    >>> half = Polyhedron([[1.0, 0.0]], [0.0])  # z_1 >= 0
    >>> half.project([[-1.0, 2.0], [3.0, 4.0]]).tolist()
    [[0.0, 2.0], [3.0, 4.0]]
    """

    rows: Any
    bounds: Any
    equalities: Affine | None = None

    def __post_init__(self) -> None:
        rows = table("rows", self.rows, (None, None), finite=True)
        bounds = table("bounds", self.bounds, (len(rows),), finite=True)
        if self.equalities is not None and self.equalities.coordinates != rows.shape[1]:
            raise UsageError(f"equalities must have {rows.shape[1]} coordinates, got {self.equalities.coordinates}.")
        fixed(self, rows=rows, bounds=bounds)
        self.project(np.zeros((1, rows.shape[1])))  # refuses an empty set

    @property
    def coordinates(self) -> int:
        """Of the space, n."""
        return int(self.rows.shape[1])

    def contains(self, points: ArrayLike) -> BoolArray:
        """Tell whether each point is in the set up to rounding, shape (size,)."""
        batch = output_batch(points, (self.coordinates,))
        room = FEASIBLE * (np.abs(self.bounds) + np.abs(batch) @ np.abs(self.rows).T + 1.0)
        inside = (batch @ self.rows.T >= self.bounds - room).all(axis=1)
        return np.asarray(inside if self.equalities is None else inside & self.equalities.contains(batch))

    def project(self, points: ArrayLike) -> FloatArray:
        """The nearest point of the set in L2 for each point, shape (size, coordinates).

        Raises
        ------
        UsageError
            If the set is empty.
        """
        batch = output_batch(points, (self.coordinates,))
        start = batch if self.equalities is None else self.equalities.project(batch)
        basis = np.eye(self.coordinates) if self.equalities is None else self.equalities.kernel
        reduced = self.rows @ basis.T  # the rows in orthonormal coordinates of the affine set
        slack = self.bounds - start @ self.rows.T  # (size, inequalities): > 0 where violated
        found = start.copy()
        room = FEASIBLE * 1e-3 * (np.abs(self.bounds) + np.abs(start) @ np.abs(self.rows).T)
        for i in np.flatnonzero((slack > room).any(axis=1)):  # the others are in the set
            found[i] = start[i] + _least_move(reduced, slack[i], room[i]) @ basis
        return found


def _least_move(rows: FloatArray, levels: FloatArray, room: FloatArray) -> FloatArray:
    """The shortest x with rows x >= levels, from its active rows; `room` is what counts as rounding of each level."""
    # Lengths of rows and moves are brought to 1: the method's own tolerance is absolute.
    lengths = np.linalg.norm(rows, axis=1)
    flat = lengths <= 1e-12 * max(1.0, float(lengths.max(initial=0.0)))
    # A row that no move changes (one that follows from the equalities): its level is rounding, or nothing satisfies it.
    if (levels[flat] > np.maximum(FEASIBLE, 1e3 * room[flat])).any():
        raise UsageError("rows must leave a point, got an empty set.")
    unit, steps = rows[~flat] / lengths[~flat, None], levels[~flat] / lengths[~flat]
    size = float(np.abs(steps).max())
    system = np.vstack([unit.T, steps / size])
    target = np.zeros(len(system))
    target[-1] = 1.0
    weights, residual = optimize.nnls(system, target, maxiter=50 * system.shape[1])
    if residual < 1e-9:
        raise UsageError("rows must leave a point, got an empty set.")
    active = weights > 0.0
    if not active.any():
        raise DpauditError("the projection found no active row for a point outside of the set.")
    # The nearest point of the active rows' affine set: no trace of the method's tolerance is left.
    move = np.linalg.lstsq(unit[active], steps[active], rcond=None)[0]
    if (unit @ move < steps - 1e-7 * size).any():
        raise DpauditError("the projection violates a row by more than 1e-7 of the distance.")
    return np.asarray(move)


def project_onto_simplex(points: ArrayLike, totals: ArrayLike) -> FloatArray:
    """The nearest non-negative vectors with these sums, by sorting; O(n log n) a point, the whole batch at once.

    Parameters
    ----------
    points : array_like of float, shape (size, coordinates)
    totals : array_like of float, shape (size,)
        In [0, inf).

    Examples
    --------
    >>> project_onto_simplex([[3.0, 0.0, -5.0]], [2.0]).tolist()
    [[2.0, 0.0, 0.0]]
    """
    sums = np.asarray(totals, dtype=float)
    batch = np.asarray(points, dtype=float)
    if np.isnan(batch).any():
        raise UsageError("points must be numbers, got nan.")
    if batch.ndim != 2 or not batch.shape[1] or sums.shape != batch.shape[:1]:
        raise UsageError(f"totals must be one number a point, got shapes {sums.shape} and {batch.shape}.")
    if not ((sums >= 0.0) & np.isfinite(sums)).all():
        raise UsageError(f"totals must be in [0, inf), got {sums[~((sums >= 0.0) & np.isfinite(sums))][0]}.")
    ordered = -np.sort(-batch, axis=1)
    counts = np.arange(1, batch.shape[1] + 1)
    levels = (np.cumsum(ordered, axis=1) - sums[:, None]) / counts
    kept = np.maximum((ordered > levels).sum(axis=1), 1)  # how many stay positive
    return np.maximum(batch - levels[np.arange(len(batch)), kept - 1][:, None], 0.0)
