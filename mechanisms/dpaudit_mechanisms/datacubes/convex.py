"""Optimal noise budgets without groups: a convex program, with a proved lower bound.

Minimise sum b_i / e_i^2 over e >= 0 subject to sum over i of |S_ij|^p e_i^p <= 1 for all columns j (DC-EQ1), p = 1 for
Laplace and p = 2 for normal noise. With the scales c_i = b_i^(p/2) / e_i^p it is sum c_i^(2/p) subject to sum over i of
|S_ij|^p b_i^(p/2) / c_i <= 1: the problem of `dpaudit_mechanisms.optimal_scales`, which solves it and bounds it.
"""

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes.budgets import BoundedBudgets, check_order, checked_costs
from dpaudit_mechanisms.inputs import ArrayLike, positive, table
from dpaudit_mechanisms.optimal_scales import optimum_of_ratios


def convex_budgets(costs: ArrayLike, columns: ArrayLike, order: int, total: float = 1.0) -> BoundedBudgets:
    """Optimal budgets of rows of any matrix, within 1e-7 of the optimum.

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
    b = checked_costs(costs)
    changes = np.abs(table("columns", columns, (len(b), None), finite=True))
    check_order(order)
    total = positive("total", total)
    used = b > 0.0
    a = np.unique(changes[used].T ** order, axis=0)  # (columns, used rows)
    a = a[a.any(axis=1)]
    if not len(a) or not a.any(axis=0).all():
        raise UsageError("columns must change every row that has a cost, got one that is never changed.")
    roots = b[used] ** (order / 2.0)
    best = optimum_of_ratios((a * roots).T, "squared" if order == 1 else "l1")
    factor = (2.0 if order == 1 else 1.0) / total**2
    budgets = np.zeros(len(b))
    budgets[used] = (roots / best.scales) ** (1.0 / order) * total
    return BoundedBudgets(budgets, factor * best.loss, factor * best.lower_bound)
