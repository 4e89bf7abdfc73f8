"""The rules for the noise scales c of K linear queries that are answered as they are (c x Q' = Q).

Letters: Q queries (K, N), d metric (N, N) in nats, c scales (K,) in query units per nat. Every rule keeps the condition
of DX-T1.1 (DX-C12): sum over k of |Q[k, i] - Q[k, j]| / c[k] <= d(i, j).

* "single" (DX-C10): K = 1 and c = max |q_i - q_j| / d(i, j), the smallest that is feasible.
* "S1" (DX-A-S1): every query gets the budget d / K, constant ones counted.
* "S2" (DX-A-S2): one c for all, from the l1 distance of the columns. Of all feasible scales its largest is the least.
* "PSA" (DX-A3): Algorithm 3, `dpaudit_mechanisms.psa`.
* "optimal": least sum of c_k^2 (DX-O5), `dpaudit_mechanisms.optimal_scales`; within 1e-7 of the optimum.

For one query all agree (DX-L2). Pairs of infinite budget ask nothing; where elements at distance 0 have different
answers, no finite scale exists.
"""

from typing import Literal, get_args

import numpy as np

from dpaudit_mechanisms.index_metric import budget_matrix
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, table
from dpaudit_mechanisms.optimal_scales import optimal_scales
from dpaudit_mechanisms.protocol import UsageError, check_among
from dpaudit_mechanisms.psa import MIN_RATIO, psa

Rule = Literal["single", "S1", "S2", "PSA", "optimal"]
RULES = get_args(Rule)


def noise_scales(queries: ArrayLike, metric: ArrayLike, rule: Rule) -> FloatArray:
    """The smallest noise scales c that one rule allows, shape (K,), in query units per nat; O(K N^2).

    Parameters
    ----------
    queries : array_like of float, shape (K, N)
    metric : array_like of float, shape (N, N)
        d(i, j) in nats.
    rule : {"single", "S1", "S2", "PSA", "optimal"}
        See the module.

    Raises
    ------
    UsageError
        If the rule is unknown, "single" meets more than one query, or no finite scale exists (`metric` 0 or so small
        that the ratio overflows where answers differ).

    Examples
    --------
    >>> queries, metric = [[0.0, 1.0], [0.0, 2.0]], [[0.0, 0.5], [0.5, 0.0]]
    >>> noise_scales(queries, metric, "S1").tolist(), noise_scales(queries, metric, "S2").tolist()
    ([4.0, 8.0], [6.0, 6.0])
    """
    check_among("rule", rule, RULES)
    rows = table("queries", queries, (None, None), finite=True)
    budgets = budget_matrix(metric, rows.shape[1])
    if rule == "single" and len(rows) != 1:
        raise UsageError(f"queries must be one query for the rule 'single', got {len(rows)}. Use 'S1', 'S2' or 'PSA'.")
    if rule == "optimal":
        return optimal_scales(rows, budgets).scales
    if rule == "PSA":
        scales = psa(rows, budgets)
        if np.isinf(scales).any():
            # The first query alone names the pair in the message.
            _largest_ratio(np.abs(np.subtract.outer(row := rows[np.isinf(scales)][0], row)), budgets)
        return scales
    if rule == "S2":
        distances = np.zeros_like(budgets)
        for row in rows:
            distances += np.abs(row[:, None] - row)
        return np.full(len(rows), _largest_ratio(distances, budgets))
    share = len(rows)  # DX-A-S1 divides the budget by K, constant queries counted; K = 1 is DX-C10
    return np.array([share * _largest_ratio(np.abs(row[:, None] - row), budgets) for row in rows])


def single_scales(queries: ArrayLike, metric: ArrayLike) -> FloatArray:
    """The rule "single" for each of many queries alone, shape (queries,); O(N^2) each, without a matrix a query.

    Raises
    ------
    UsageError
        As `noise_scales`.

    Examples
    --------
    >>> single_scales([[0.0, 1.0], [0.0, 3.0]], [[0.0, 0.5], [0.5, 0.0]]).tolist()
    [2.0, 6.0]
    """
    rows = table("queries", queries, (None, None), finite=True)
    budgets = budget_matrix(metric, rows.shape[1])
    first, second = np.triu_indices(len(budgets), 1)
    limits = budgets[first, second]
    kept = np.isfinite(limits)
    first, second, limits = first[kept], second[kept], limits[kept]
    if not (limits >= np.finfo(float).tiny).all():  # at 0 it depends on the query; below, 1 / limit may overflow
        return np.array([noise_scales(row[None], budgets, "single")[0] for row in rows])
    inverse = 1.0 / limits
    return np.array([(np.abs(row[first] - row[second]) * inverse).max(initial=0.0) for row in rows])


def improvement_factor(queries: ArrayLike, metric: ArrayLike, c: ArrayLike) -> float:
    """Noise of the ordinary Laplace mechanism divided by this one's: DX-D-IF1 for one query, DX-D-IFK for several.

    The ordinary mechanism keeps d_X with epsilon = min d(i, j) over i != j, so its scale is Delta_1 / epsilon. The
    factor is the geometric mean over the queries of that scale over c[k]; inf where some c[k] is 0.

    Parameters
    ----------
    queries : array_like of float, shape (K, N)
    metric : array_like of float, shape (N, N)
        d(i, j) in nats; the smallest off the diagonal must be in (0, inf).
    c : array_like of float, shape (K,)

    Raises
    ------
    UsageError
        If no ordinary mechanism keeps the metric (smallest distance 0) or none is needed (all infinite).

    Examples
    --------
    >>> improvement_factor([[0.0, 1.0, 1.0]], [[0, 2, 2], [2, 0, 1], [2, 1, 0]], [0.5])
    2.0
    """
    rows, scales = table("queries", queries, (None, None)), np.asarray(c, dtype=float)
    budgets = budget_matrix(metric, rows.shape[1])
    epsilon = float(budgets[~np.eye(len(budgets), dtype=bool)].min(initial=np.inf))
    if not 0.0 < epsilon < np.inf:
        raise UsageError(f"metric must have its smallest distance in (0, inf), got {epsilon}.")
    sensitivity = 0.0
    for i in range(rows.shape[1]):  # a row at a time: K N^2 numbers would not fit
        sensitivity = max(sensitivity, float(np.abs(rows - rows[:, i : i + 1]).sum(axis=0).max()))
    with np.errstate(divide="ignore"):
        logs = np.log(sensitivity / epsilon) - np.log(scales)
    return float(np.exp(logs.mean()))


def _largest_ratio(distances: FloatArray, budgets: FloatArray) -> float:
    """max of distance / budget over the pairs with different answers; 0 if there is none."""
    differs = distances > 0.0
    with np.errstate(divide="ignore", over="ignore"):
        ratios = np.divide(distances, budgets, out=np.zeros_like(distances), where=differs)
    ratios[differs & np.isfinite(budgets)] = np.maximum(ratios[differs & np.isfinite(budgets)], MIN_RATIO)
    if np.isinf(ratios).any():
        i, j = np.argwhere(np.isinf(ratios))[0].tolist()
        raise UsageError(
            f"metric must be positive where answers differ, got {budgets[i, j]} at ({i}, {j}), "
            f"where they differ by {distances[i, j]}: no finite noise keeps that budget."
        )
    return float(ratios.max())
