"""Noise budgets: how much of the privacy each strategy row gets, so that the answers' total variance is least.

Letters: s costs of groups (g,), C constants of groups (g,), p the order of the norm that the noise goes with (1 for
Laplace, 2 for normal noise), eta budgets (g,). A row with budget eta gets Laplace noise of variance 2 / eta^2, or
normal noise of variance 1 / eta^2. The total variance is sum s_r / eta_r^2 (twice that for Laplace noise), where s_r is
the sum over the rows i of group r of sum_j a_j R[j, i]^2. What is kept private is the p-norm of (C_r eta_r): at most
epsilon for Laplace noise, at most mu (`dpaudit_mechanisms.gaussian.largest_mu`) for normal noise.

The minimum under that norm is in closed form (DC-EQ4, DC-C3.3): at norm 1 it is
(sum (C_r^2 s_r)^(1/3))^3 for p = 1 and (sum C_r sqrt(s_r))^2 for p = 2.
"""

import dataclasses
import math

import numpy as np

from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, positive, table
from dpaudit_mechanisms.protocol import UsageError, number


@dataclasses.dataclass(frozen=True, eq=False)
class BoundedBudgets:
    """Budgets that keep the total; the total variance with them, and a lower bound of it over all budgets.

    The factor 2 of the variance of Laplace noise is included. The bound is 0 where none is proved.
    """

    budgets: FloatArray
    value: float
    lower_bound: float


def optimal_budgets(costs: ArrayLike, constants: ArrayLike, order: int, total: float = 1.0) -> FloatArray:
    """The budgets of least total variance, shape (groups,), their norm being `total`.

    Parameters
    ----------
    costs, constants : array_like of float, shape (groups,)
        s in [0, inf), not all 0, and C in (0, inf). A group of cost 0 is not used: its budget is 0.
    order : {1, 2}
        1 for Laplace noise, 2 for normal noise.
    total : float, optional
        epsilon or mu, positive.

    Examples
    --------
    >>> optimal_budgets([2.0, 4.0], [1.0, 1.0], 1).round(4).tolist()  # figure 1: near the paper's 4/9 and 5/9
    [0.4425, 0.5575]
    """
    s, c = _checked(costs, constants, order)
    if order == 1:
        shape = np.cbrt(s / c)
    else:
        shape = np.sqrt(np.sqrt(s) / c)
    return shape * (positive("total", total) / norm(c * shape, order))


def uniform_budgets(constants: ArrayLike, order: int, total: float = 1.0) -> FloatArray:
    """The same budget for every row, shape (groups,), the norm being `total`.

    Examples
    --------
    >>> uniform_budgets([1.0, 1.0], 1).tolist()
    [0.5, 0.5]
    """
    c = _constants(constants, (None,), order)
    return np.full(len(c), positive("total", total) / norm(c, order))


def least_variance(costs: ArrayLike, constants: ArrayLike, order: int, total: float = 1.0) -> float:
    """The least total variance: Laplace noise for order 1, factor 2 included, normal noise for order 2.

    Examples
    --------
    >>> round(least_variance([2.0, 4.0], [1.0, 1.0], 1), 4)  # the paper's 46.17 is 46.1700 with 4/9 and 5/9
    46.1679
    """
    s, c = _checked(costs, constants, order)
    total = positive("total", total)
    if order == 1:
        return float(2.0 * np.cbrt(c**2 * s).sum() ** 3 / total**2)
    return float((c * np.sqrt(s)).sum() ** 2 / total**2)


def noise_variances(budgets: ArrayLike, order: int) -> FloatArray:
    """Variance of the noise of rows with these budgets: 2 / eta^2 for order 1, 1 / eta^2 for order 2; inf without."""
    eta = np.asarray(budgets, dtype=float)
    with np.errstate(divide="ignore"):
        return np.asarray((2.0 if order == 1 else 1.0) / eta**2)


def paper_mu(epsilon: float, delta: float) -> float:
    """The mu of the paper's normal noise, of variance 2 log(2 / delta) / epsilon^2 at sensitivity 1 (DC-T2.2).

    The claim (epsilon, delta) follows from it only while this is at most `largest_mu(ApproxDP(epsilon, delta))`.
    """
    delta = number("delta", delta, "in (0, 1)", lambda v: 0.0 < v < 1.0)
    return positive("epsilon", epsilon) / math.sqrt(2.0 * math.log(2.0 / delta))


def norm(values: FloatArray, order: int) -> float:
    """The l1 or l2 norm."""
    return float(np.abs(values).sum() if order == 1 else np.sqrt((values**2).sum()))


def _checked(costs: ArrayLike, constants: ArrayLike, order: int) -> tuple[FloatArray, FloatArray]:
    s = checked_costs(costs)
    return s, _constants(constants, s.shape, order)


def checked_costs(costs: ArrayLike) -> FloatArray:
    """Costs of groups or of rows, refused unless non-negative, finite and not all 0."""
    s = table("costs", costs, (None,))
    if not (np.isfinite(s).all() and (s >= 0.0).all() and s.any()):
        raise UsageError(f"costs must be non-negative, finite and not all 0, got {s.tolist()}.")
    return s


def check_order(order: int) -> None:
    """Refuse an order of the norm other than 1 and 2."""
    if order not in (1, 2):
        raise UsageError(f"order must be 1 or 2, got {order!r}.")


def _constants(constants: ArrayLike, shape: tuple[int | None, ...], order: int) -> FloatArray:
    check_order(order)
    return table("constants", constants, shape, within="in (0, inf)")
