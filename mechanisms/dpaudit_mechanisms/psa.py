"""Parameter Selection Algorithm (PSA): algorithm 3 of Kamalaruban et al. (2018), arXiv:1806.02389.

Strategy 3 for the noise scales of K linear queries.

Each pass gives every query the scale that it would need alone, shares the budget of each pair of elements among the
queries in proportion to what they would use there, reads off the scales that these shares allow, and goes on with the
budget that is left. The rates 1/c of the passes add up.

Letters: Q queries (K, N), d metric (N, N) in nats, c scales (K,) in query units per nat, R = 1/c rates, Delta_k(i, j) =
|Q[k, i] - Q[k, j]|, pairs are i < j.

What holds (and is tested): every pass uses up the whole budget of some pair that a remaining query tells apart, so at
least one query is finished in it and there are at most K passes; the rates are feasible, sum over k of
R_k Delta_k(i, j) <= d(i, j). They are not optimal (`dpaudit_mechanisms.optimal_scales` is).

Degenerate cases (DX-A3, "Open points"): pairs that no query tells apart and pairs of infinite budget are left out (a,
e); a query that tells apart a pair whose budget is used up is finished (b); a constant query has c = 0 (c), one that
tells apart two elements at distance 0 has c = inf: it cannot be answered (d). In floating point the pair that a pass
uses up is known without looking at its residual, and others count as used up at 1e-12 of their budget (f); what
rounding may have overspent in the end is taken back from all queries alike. The input is never changed (g).

Source: DX-A3; DX-L4 for the number of passes.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from dpaudit_mechanisms.index_metric import budget_matrix
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, table

USED_UP = 1e-12  # share of a pair's budget: what is left is rounding
# Validity: a ratio that underflows, or whose inverse overflows, would read as "not told apart", and the query would be
# answered without noise. Ratios are raised to this one: more noise than is needed, by nothing that can be seen.
MIN_RATIO = 1e-150


@dataclasses.dataclass(frozen=True, eq=False)
class PairRatios:
    """Delta_k / d over the pairs that matter: finite budget, told apart by some query.

    Attributes
    ----------
    ratios : numpy.ndarray of float, shape (K, pairs)
        Query units per nat; pairs that ask nothing are left out.
    impossible : numpy.ndarray of bool, shape (K,)
        Queries that tell apart two elements at distance 0 (or so near that the ratio overflows): no finite scale keeps
        that. Their rows of `ratios` are 0.
    """

    ratios: FloatArray
    impossible: Any


def pair_ratios(queries: FloatArray, budgets: FloatArray) -> PairRatios:
    """The ratios of all pairs i < j, from queries (K, N) and budgets (N, N); O(K N^2) time and memory."""
    first, second = np.triu_indices(len(budgets), 1)
    limits = budgets[first, second]
    finite = np.isfinite(limits)
    first, second, limits = first[finite], second[finite], limits[finite]
    gaps = np.abs(queries[:, first] - queries[:, second])  # (K, pairs)
    matters = gaps.any(axis=0)
    gaps, limits = gaps[:, matters], limits[matters]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratios = np.where(gaps > 0.0, np.maximum(gaps / limits, MIN_RATIO), 0.0)
    impossible = np.isinf(ratios).any(axis=1)
    ratios[impossible] = 0.0
    return PairRatios(ratios, impossible)


def psa(queries: ArrayLike, metric: ArrayLike) -> FloatArray:
    """Algorithm 3 of Kamalaruban et al. (2018), arXiv:1806.02389: the Parameter Selection Algorithm.

    Noise scales, shape (K,), in query units per nat.

    Parameters
    ----------
    queries : array_like of float, shape (K, N)
        Finite.
    metric : array_like of float, shape (N, N)
        d(i, j) in nats, in [0, inf]; symmetric, 0 on the diagonal. The triangle inequality is not needed.

    Returns
    -------
    numpy.ndarray of float, shape (K,)
        Feasible: sum over k of |Q[k, i] - Q[k, j]| / c[k] <= d(i, j) up to rounding (K + 1 units in the last place). 0
        for a constant query, inf for one that no finite noise makes private.

    Notes
    -----
    At most K passes of O(K N^2).

    Examples
    --------
    Two queries that never tell the same pair apart each get the whole budget there:

    >>> psa([[0, 0, 1], [0, 1, 1]], [[0, 1, 9], [1, 0, 2], [9, 2, 0]]).round(3).tolist()
    [0.5, 1.0]
    """
    rows = table("queries", queries, (None, None), finite=True)
    return scales_of_ratios(pair_ratios(rows, budget_matrix(metric, rows.shape[1])))


def scales_of_ratios(pairs: PairRatios) -> FloatArray:
    """PSA on ratios that are known already: scales (K,)."""
    every = pairs.ratios  # (K, pairs)
    rates = np.zeros(len(every))
    alive = np.flatnonzero(every.any(axis=1))
    ratios, left = every[alive], np.ones(every.shape[1])  # left: share of each pair's budget that is not used yet
    while alive.size:
        matters = ratios.any(axis=0)  # every such pair has left > 0, else its queries would be finished
        ratios, left = ratios[:, matters], left[matters]
        wanted = ratios / left
        alone = wanted.max(axis=1)  # step 1: c'_k
        wanted /= alone[:, None]  # in [0, 1]: what each query would use, over what is left
        total = wanted.sum(axis=0)
        # steps 2 and 3: Delta_k / d^k = c'_k total wherever Delta_k > 0
        most = np.array([total[row > 0.0].max() for row in ratios])
        step = 1.0 / (alone * most)
        rates[alive] += step
        used_up = left - step @ ratios <= USED_UP  # step 4, of the budget at the start
        used_up[total.argmax()] = True  # exactly used up: there sum_k wanted_k / most_k = total / total
        left = np.maximum(left - step @ ratios, 0.0)
        goes_on = ~(ratios[:, used_up] > 0.0).any(axis=1)
        alive, ratios = alive[goes_on], ratios[goes_on]
    overspent = float((rates @ every).max(initial=0.0))
    if overspent > 1.0:
        rates /= overspent
    with np.errstate(divide="ignore"):
        scales = np.where(rates > 0.0, 1.0 / rates, 0.0)
    return np.where(pairs.impossible, math.inf, scales)
