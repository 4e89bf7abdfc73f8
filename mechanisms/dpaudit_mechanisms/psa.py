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
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
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


@dataclasses.dataclass(frozen=True)
class ExactRun:
    """A run of PSA in rational numbers.

    Attributes
    ----------
    scales : tuple
        c_k as a Fraction; 0 for a constant query, math.inf for one that cannot be answered.
    passes : tuple of tuple of Fraction
        The rates T that each pass added, for all K queries.
    """

    scales: tuple[Fraction | float, ...]
    passes: tuple[tuple[Fraction, ...], ...]


def psa_exact(queries: Sequence[Sequence[Any]], metric: Sequence[Sequence[Any]]) -> ExactRun:
    """Algorithm 3 as printed, step by step, in exact arithmetic: the reference for `psa`. For small instances.

    Parameters
    ----------
    queries : sequence of K sequences of N rational numbers
    metric : sequence of N sequences of N rational numbers, or math.inf
        Symmetric.

    Examples
    --------
    >>> run = psa_exact([[0, 1, 1], [0, 0, 1]], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> [str(c) for c in run.scales], len(run.passes)
    (['1', '1'], 1)
    """
    elements = range(len(queries[0]))
    finite = [(i, j) for i, j in itertools.combinations(elements, 2) if metric[i][j] != math.inf]
    left = {(i, j): Fraction(metric[i][j]) for i, j in finite}
    gaps = [{(i, j): abs(Fraction(row[i]) - Fraction(row[j])) for i, j in finite} for row in queries]
    varying = [any(gap.values()) for gap in gaps]
    rates = [Fraction(0)] * len(queries)
    passes: list[tuple[Fraction, ...]] = []
    while True:
        # A query that tells apart a pair with nothing left has c'_k = inf: 1/c'_k = 0 and T_k = 0, it is finished.
        alive = [
            k for k, gap in enumerate(gaps) if varying[k] and all(left[pair] > 0 for pair in finite if gap[pair] > 0)
        ]
        if not alive:
            break
        seen = {k: [pair for pair in finite if gaps[k][pair] > 0] for k in alive}
        alone = {k: max(gaps[k][pair] / left[pair] for pair in seen[k]) for k in alive}
        total = {pair: sum((gaps[k][pair] / alone[k] for k in alive), Fraction(0)) for pair in finite}
        share = {k: {p: left[p] * (gaps[k][p] / alone[k]) / total[p] for p in seen[k]} for k in alive}
        scale = {k: max(gaps[k][pair] / share[k][pair] for pair in seen[k]) for k in alive}
        for pair in finite:
            left[pair] -= sum((gaps[k][pair] / scale[k] for k in alive), Fraction(0))
        step = tuple(1 / scale[k] if k in scale else Fraction(0) for k in range(len(queries)))
        rates = [rate + more for rate, more in zip(rates, step, strict=True)]
        passes.append(step)
    scales = tuple(
        Fraction(0) if not varies else 1 / rate if rate else math.inf
        for rate, varies in zip(rates, varying, strict=True)
    )
    return ExactRun(scales, tuple(passes))
