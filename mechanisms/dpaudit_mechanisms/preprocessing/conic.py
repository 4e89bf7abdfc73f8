"""Convex programs with a quadratic or linear objective and linear rows, solved by Clarabel's interior point method.

minimise x' P x / 2 + q' x subject to A x = b for the first rows and A x <= b for the rest; P diagonal. `clarabel` is an
optional dependency (extra `preprocessing`).
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from dpaudit.errors import DpauditError
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, installed

TOLERANCE = 1e-9  # of Clarabel: gap and residuals, on its own scaling of the program


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
    """A minimiser, its objective, and the dual objective: a lower bound of the optimum up to `TOLERANCE`.

    The lower bound is -inf where the solver ended early: `x` may be good then, and nothing is proved.
    """

    x: FloatArray
    value: float
    lower_bound: float


class Rows:
    """Linear rows collected block by block: sum of coefficient * variable = or <= right-hand side.

    Examples
    --------
    >>> rows = Rows()
    >>> rows.add([(np.array([0]), 1.0), (np.array([1]), 1.0)], 1.0)  # x0 + x1 <= 1
    >>> rows.matrix(2)[0].toarray().tolist()
    [[1.0, 1.0]]
    """

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Any, Any]] = []
        self._bounds: list[FloatArray] = []
        self.count = 0

    def add(self, terms: Sequence[tuple[Any, ArrayLike]], bound: ArrayLike) -> None:
        """One row for each index of the first term's variables: sum over terms of coefficients * x[variables]."""
        size = len(terms[0][0])
        rows = self.count + np.arange(size)
        for variables, coefficients in terms:
            self._entries.append((rows, np.asarray(variables), np.broadcast_to(np.asarray(coefficients, float), size)))
        self._bounds.append(np.broadcast_to(np.asarray(bound, float), size))
        self.count += size

    def matrix(self, variables: int) -> tuple[Any, FloatArray]:
        """The rows as a sparse matrix (rows, variables) and their right-hand sides."""
        if not self.count:
            return sparse.csc_matrix((0, variables)), np.zeros(0)
        rows, columns, values = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        shape = (self.count, variables)
        return sparse.csc_matrix((values, (rows, columns)), shape=shape), np.concatenate(self._bounds)


def solve(quadratic: FloatArray, linear: FloatArray, equal: Rows, at_most: Rows) -> Solution:
    """The minimum of sum quadratic x^2 / 2 + linear x; `quadratic` is the diagonal of P, shape (variables,).

    Raises
    ------
    UsageError
        If clarabel is not installed.
    DpauditError
        If the solver ends without a solution.
    """
    clarabel = installed("clarabel", "preprocessing")
    (left, right), (below, limit) = equal.matrix(len(linear)), at_most.matrix(len(linear))
    cones = [clarabel.ZeroConeT(equal.count), clarabel.NonnegativeConeT(at_most.count)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    matrix = sparse.vstack([left, below], format="csc")
    program = clarabel.DefaultSolver(
        sparse.diags(quadratic, format="csc"), linear, matrix, np.concatenate([right, limit]), cones, settings
    )
    found = program.solve()
    x, status = np.array(found.x), str(found.status)
    if status in ("Solved", "AlmostSolved"):
        return Solution(x, float(found.obj_val), float(found.obj_val_dual))
    if status in ("InsufficientProgress", "NumericalError", "MaxIterations") and np.isfinite(x).all():
        return Solution(x, float(found.obj_val), -math.inf)  # maybe a good point, but nothing is proved
    raise DpauditError(f"the convex program must have a solution, got status {status}.")
