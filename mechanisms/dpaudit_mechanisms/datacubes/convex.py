"""Optimal noise budgets without groups: a convex program, solved by Newton's method, with a proved lower bound.

Minimise sum b_i / e_i^2 over e >= 0 subject to sum over i of |S_ij|^p e_i^p <= 1 for all columns j (DC-EQ1), p = 1 for
Laplace and p = 2 for normal noise. In u = e^p it is sum b_i u_i^(-2/p) over linear constraints: a logarithmic barrier
needs a few dozen Newton steps.

The dual is a search for the least favourable distribution q of columns: for any q the optimum is at least
(sum_i b_i^(1/3) (sum_j |S_ij| q_j)^(2/3))^3 for p = 1, and (sum_i sqrt(b_i sum_j S_ij^2 q_j))^2 for p = 2, with
equality at the best q (the Lagrangian is minimised in closed form). Every solution carries that bound, for the q it
ended with.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import FloatArray, positive, table

GAP = 1e-10  # relative, at which the barrier stops
MAX_STEPS = 60  # Newton steps at one strength of the barrier
MAX_STRENGTHS = 40


@dataclasses.dataclass(frozen=True, eq=False)
class ConvexBudgets:
    """Budgets e, shape (m,), that are feasible; the total variance with them, and a lower bound of it over all budgets.

    The factor 2 of the variance of Laplace noise is included.
    """

    budgets: FloatArray
    value: float
    lower_bound: float


def convex_budgets(costs: ArrayLike, columns: ArrayLike, order: int, total: float = 1.0) -> ConvexBudgets:
    """Optimal budgets of rows of any matrix.

    Parameters
    ----------
    costs : array_like of float, shape (m,)
        sum_j a_j R[j, i]^2 of each row, non-negative, not all 0. A row of cost 0 is not used and gets budget 0.
    columns : array_like of float, shape (m, J)
        What a change of the data does to the rows: the columns of S where records are added or removed, differences of
        two columns where one is replaced.
    order : {1, 2}
        1 for Laplace noise, 2 for normal noise.
    total : float, optional
        epsilon or mu.

    Raises
    ------
    UsageError
        If something is out of range, or a row that is used is never changed (its best budget is infinite).

    Examples
    --------
    >>> found = convex_budgets([1.0, 1.0, 1.0], [[1, 0], [1, 1], [0, 1]], order=1)
    >>> found.budgets.round(4).tolist(), round(found.value, 4)  # no groups: the middle row is in both columns
    ([0.5575, 0.4425, 0.5575], 23.0839)
    >>> bool(found.lower_bound >= (1.0 - 1e-6) * found.value)
    True
    """
    b = table("costs", costs, (None,))
    changes = np.abs(table("columns", columns, (len(b), None)))
    if order not in (1, 2):
        raise UsageError(f"order must be 1 or 2, got {order!r}.")
    total = positive("total", total)
    if not np.isfinite(changes).all():
        raise UsageError("columns must be finite, got an infinite entry.")
    if not (np.isfinite(b).all() and (b >= 0.0).all() and b.any()):
        raise UsageError(f"costs must be non-negative, finite and not all 0, got {b.tolist()}.")
    used = b > 0.0
    a = np.unique(changes[used].T ** order, axis=0)  # (columns, used rows)
    a = a[a.any(axis=1)]
    if not len(a) or not a.any(axis=0).all():
        raise UsageError("columns must change every row that has a cost, got one that is never changed.")
    power = 2.0 / order
    u, dual = _barrier(b[used] / b.max(), a, power)
    u /= (a @ u).max()  # feasible, and tight
    factor = 2.0 if order == 1 else 1.0
    budgets = np.zeros(len(b))
    budgets[used] = u ** (1.0 / order) * total
    value = factor * float((b[used] / budgets[used] ** 2).sum())
    seen = a.T @ dual
    if order == 1:
        bound = float((np.cbrt(b[used]) * seen ** (2.0 / 3.0)).sum() ** 3)
    else:
        bound = float(np.sqrt(b[used] * seen).sum() ** 2)
    return ConvexBudgets(budgets, value, factor * bound / total**2)


def _barrier(b: FloatArray, a: FloatArray, power: float) -> tuple[FloatArray, FloatArray]:
    """u that minimises sum b u^-power under a u <= 1, up to `GAP`, and the distribution of columns of its dual."""
    u = np.full(len(b), 0.5 / a.sum(axis=1).max())
    strength = len(a) / float((b * u**-power).sum())

    def merit(point: FloatArray) -> float:
        slack = 1.0 - a @ point
        if (point <= 0.0).any() or (slack <= 0.0).any():
            return np.inf
        return float(strength * (b * point**-power).sum() - np.log(slack).sum())

    for _ in range(MAX_STRENGTHS):
        for _ in range(MAX_STEPS):
            slack = 1.0 - a @ u
            gradient = -strength * power * b * u ** (-power - 1.0) + a.T @ (1.0 / slack)
            scaled = a / slack[:, None]
            hessian = scaled.T @ scaled
            hessian[np.diag_indices(len(u))] += strength * power * (power + 1.0) * b * u ** (-power - 2.0)
            step = -np.linalg.solve(hessian, gradient)
            decrement = -float(gradient @ step)
            if decrement < 1e-9:
                break
            length, before = 1.0, merit(u)
            while length > 1e-12 and not merit(u + length * step) <= before - 0.1 * length * decrement:
                length *= 0.5
            if length <= 1e-12:
                break
            u = u + length * step
        if len(a) / strength <= GAP * float((b * u**-power).sum()):
            break
        strength *= 10.0
    weights = 1.0 / (1.0 - a @ u)
    return u, weights / weights.sum()
