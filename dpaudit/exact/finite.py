"""Exact losses of mechanisms with finitely many outcomes.

A mechanism is a row-stochastic matrix of shape (inputs, outcomes): row i has the output law of input i. Two rows p and
q are one pair. An outcome that neither input has counts for nothing; one that only p has makes the loss of p against q
infinite. Everything is in nats and in double precision: the quantities are exact formulas up to rounding, which grows
with the number of outcomes times 2**-53; only `zcdp_rho` contains a search, and it rounds outwards.

Sources: Balle, Barthe and Gaboardi (2018), arXiv:1807.01647 (hockey-stick divergence and profile); van Erven and
Harremoes (2014), arXiv:1206.2459 (Renyi divergence); Bun and Steinke (2016), arXiv:1605.02065 (zCDP).
"""

from __future__ import annotations

import heapq
import math

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import number

FloatArray = NDArray[np.float64]
SUM_TOLERANCE = 1e-12  # a row that sums to 1 within this is taken for rounded, and is used as it is
LARGEST_EPSILON = 700.0  # exp of more overflows


def privacy_loss(p: ArrayLike, q: ArrayLike) -> float:
    """Privacy loss of a pair, both directions: the largest |log(p(o) / q(o))| over outcomes o.

    The least epsilon for which the pair keeps epsilon-DP.

    Parameters
    ----------
    p, q : array_like of float, shape (outcomes,)
        Probabilities in the same order of outcomes, each non-negative and summing to 1 within 1e-12.

    Returns
    -------
    float
        In nats, in [0, inf]; inf if an outcome is possible under one of them only.

    Raises
    ------
    UsageError
        If shapes differ, an entry is negative or not finite, or a sum is not 1.

    Examples
    --------
    >>> round(privacy_loss([0.75, 0.25, 0.0], [0.25, 0.75, 0.0]), 6)  # log 3
    1.098612
    """
    p, q = _pair(p, q)
    return float(_absolute_log_ratios(p, q).max())


def privacy_losses(mechanism: ArrayLike) -> FloatArray:
    """`privacy_loss` of every two inputs of a mechanism, shape (inputs, inputs); symmetric, 0 on the diagonal.

    One input at a time: O(inputs^2 outcomes) time, O(inputs outcomes) memory.

    Examples
    --------
    >>> privacy_losses([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]).tolist()
    [[0.0, 0.0, inf], [0.0, 0.0, inf], [inf, inf, 0.0]]
    """
    rows = _stochastic(mechanism)
    return np.array([_absolute_log_ratios(row, rows).max(axis=1) for row in rows])


def hockey_stick_divergence(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    """Hockey-stick divergence of p from q, one direction: the sum over outcomes of max(p - e^epsilon q, 0).

    The least delta with p(S) <= e^epsilon q(S) + delta for every event S; exchange p and q for the other direction.

    Parameters
    ----------
    p, q : array_like of float, shape (outcomes,)
        As in `privacy_loss`.
    epsilon : float
        In nats, in [-700, 700]; may be negative.

    Returns
    -------
    float
        In [0, 1] up to rounding. Not rounded outwards.

    Raises
    ------
    UsageError
        As in `privacy_loss`, or if epsilon is out of range.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), section 2.

    Examples
    --------
    >>> round(hockey_stick_divergence([0.75, 0.25], [0.25, 0.75], epsilon=0.5), 6)
    0.33782
    """
    p, q = _pair(p, q)
    epsilon = number("epsilon", epsilon, "in [-700, 700]", lambda v: abs(v) <= LARGEST_EPSILON)
    return math.fsum(np.maximum(p - math.exp(epsilon) * q, 0.0).tolist())


def privacy_profile(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    """Privacy profile of a pair, both directions: the least delta for which it keeps (epsilon, delta).

    `epsilon` is in nats, in [0, 700]; the rest as in `hockey_stick_divergence`, of which it is the larger direction.

    Examples
    --------
    >>> privacy_profile([1.0, 0.0], [0.5, 0.5], epsilon=0.0)
    0.5
    """
    epsilon = number("epsilon", epsilon, "in [0, 700]", lambda v: 0.0 <= v <= LARGEST_EPSILON)
    return max(hockey_stick_divergence(p, q, epsilon), hockey_stick_divergence(q, p, epsilon))


def renyi_divergence(p: ArrayLike, q: ArrayLike, renyi_order: float) -> float:
    """Renyi divergence of p from q, one direction: log(sum of p^r q^(1-r)) / (r - 1) for an order r.

    Parameters
    ----------
    p, q : array_like of float, shape (outcomes,)
        As in `privacy_loss`.
    renyi_order : float
        r in [1, inf]; order 1 is the Kullback-Leibler divergence, inf the largest log(p / q), both as limits.

    Returns
    -------
    float
        In nats, in [0, inf]; inf if p has an outcome that q does not have.

    Raises
    ------
    UsageError
        As in `privacy_loss`, or if the order is out of range.

    References
    ----------
    van Erven and Harremoes (2014), equations (5), (7) and (9).

    Examples
    --------
    >>> round(renyi_divergence([0.75, 0.25], [0.25, 0.75], 2.0), 6)  # log(7/3)
    0.847298
    """
    p, q = _pair(p, q)
    order = number("renyi_order", renyi_order, "in [1, inf]", lambda v: v >= 1.0)
    if (p[q == 0.0] > 0.0).any():
        return math.inf
    return _renyi(p[q > 0.0], q[q > 0.0], order)


def zcdp_rho(p: ArrayLike, q: ArrayLike, relative_gap: float = 1e-6) -> float:
    """Least rho for which a pair keeps rho-zCDP, both directions: the supremum over orders r > 1 of D_r / r.

    Found by branch and bound over the orders, and rounded up: (r - 1) D_r is convex in r, so the chord between two
    orders bounds every order between them, and D_r never exceeds D_inf, which bounds all large orders.

    Parameters
    ----------
    p, q : array_like of float, shape (outcomes,)
        As in `privacy_loss`.
    relative_gap : float, optional
        The result is at least the supremum, and at most 1 + relative_gap times it (up to rounding); in [1e-12, 1].
        The work grows as relative_gap**-0.5 where D_r / r is nearly flat, as for discretised normal noise.

    Returns
    -------
    float
        In nats, in [0, inf]; inf if an outcome is possible under one of them only.

    Raises
    ------
    UsageError
        As in `privacy_loss`, or if relative_gap is out of range.

    References
    ----------
    Bun and Steinke (2016), definition 1.1; van Erven and Harremoes (2014), corollary 2 (convexity) and theorem 3.

    Examples
    --------
    >>> round(zcdp_rho([0.75, 0.25], [0.25, 0.75]), 5)  # attained as the order falls to 1: log(3) / 2
    0.54931
    """
    p, q = _pair(p, q)
    gap = number("relative_gap", relative_gap, "in [1e-12, 1]", lambda v: 1e-12 <= v <= 1.0)
    if ((p > 0.0) != (q > 0.0)).any():
        return math.inf
    support = p > 0.0
    return max(_largest_rho(p[support], q[support], gap), _largest_rho(q[support], p[support], gap))


def _stochastic(mechanism: ArrayLike) -> FloatArray:
    """A mechanism as a checked array of shape (inputs, outcomes)."""
    return _distribution("mechanism", mechanism, 2)


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = _distribution("p", p, 1), _distribution("q", q, 1)
    if first.shape != second.shape:
        raise UsageError(f"p and q must have the same number of outcomes, got {first.size} and {second.size}.")
    return first, second


def _distribution(name: str, values: ArrayLike, dimensions: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} must be an array of probabilities, got {values!r}.") from error
    if array.ndim != dimensions or array.size == 0:
        shape = "(outcomes,)" if dimensions == 1 else "(inputs, outcomes)"
        raise UsageError(f"{name} must be of shape {shape} and not empty, got shape {array.shape}.")
    is_bad = ~(np.isfinite(array) & (array >= 0.0))
    if is_bad.any():
        where = tuple(np.argwhere(is_bad)[0].tolist())
        raise UsageError(f"{name} must be probabilities, got {array[where]} at position {where}.")
    totals = np.atleast_1d(array.sum(axis=-1))
    wrong = np.abs(totals - 1.0) > SUM_TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        where_row = f" at row {row}" if dimensions == 2 else ""
        raise UsageError(f"{name} must sum to 1 within {SUM_TOLERANCE:g}, got {totals[row]}{where_row}.")
    return array


def _absolute_log_ratios(p: FloatArray, q: FloatArray) -> FloatArray:
    """|log(p / q)| with 0 where both are 0 and inf where one is; broadcasts."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(p) - np.log(q))
    return np.where((p == 0.0) & (q == 0.0), 0.0, ratios)


def _renyi(p: FloatArray, q: FloatArray, order: float) -> float:
    """Renyi divergence for q > 0. Sums have non-negative terms, so that small divergences keep their digits."""
    with np.errstate(divide="ignore"):
        log_ratio = np.log(p) - np.log(q)  # -inf where p is 0
    if math.isinf(order):
        return max(0.0, float(log_ratio.max()))
    possible = p > 0.0
    if order == 1.0:
        # sum of p log(p/q) = sum of (p log(p/q) - p + q), as both sum to 1; the terms are non-negative.
        terms = q - p
        terms[possible] += p[possible] * log_ratio[possible]
        return max(0.0, math.fsum(terms.tolist()))
    t = order - 1.0
    if t * float(np.abs(log_ratio[possible]).max()) < 0.5:
        # sum of p (p/q)^t - 1 = sum of (p ((p/q)^t - 1) - t (p - q)): Bernoulli's inequality, term by term.
        terms = t * (q - p)
        terms[possible] += p[possible] * np.expm1(t * log_ratio[possible])
        return max(0.0, math.log1p(max(0.0, math.fsum(terms.tolist()))) / t)
    exponents = np.log(p[possible]) + t * log_ratio[possible]
    return max(0.0, float(scipy.special.logsumexp(exponents)) / t)


def _largest_rho(p: FloatArray, q: FloatArray, gap: float) -> float:
    """Supremum of D_r(p || q) / r over r > 1, rounded up by at most the relative gap, for p, q > 0."""
    largest_loss = _renyi(p, q, math.inf)
    best = _renyi(p, q, 1.0)  # the limit of D_r / r as r falls to 1
    if largest_loss <= 0.0 or best <= 0.0:
        return 0.0  # p = q up to rounding

    def cumulant(order: float) -> float:  # (r - 1) D_r: convex in r, 0 at r = 1
        return (order - 1.0) * _renyi(p, q, order)

    def bound(low: float, g_low: float, high: float, g_high: float) -> float:
        """Largest value of (chord of the cumulant) / (r (r - 1)) on [low, high]."""
        slope = (g_high - g_low) / (high - low)
        start = g_low - slope * low
        if low == 1.0:  # the chord passes through (1, 0), and slope / r is largest at 1
            return slope
        orders = [low, high]
        # The derivative of (slope r + start) / (r^2 - r) vanishes where slope r^2 + 2 start r - start = 0.
        if (square := start * start + slope * start) >= 0.0 and slope > 0.0:
            orders += [r for s in (-1.0, 1.0) if low < (r := (-start + s * math.sqrt(square)) / slope) < high]
        return max((slope * r + start) / (r * (r - 1.0)) for r in orders)

    # Beyond `top` every D_r / r is at most D_inf / r <= D_1, so the search is finite.
    top = max(2.0, largest_loss / best)
    g_top = cumulant(top)
    best = max(best, g_top / (top * (top - 1.0)))
    heap = [(-bound(1.0, 0.0, top, g_top), 1.0, 0.0, top, g_top)]
    while -heap[0][0] > best * (1.0 + gap):
        _, low, g_low, high, g_high = heap[0]
        middle = 1.0 + math.sqrt((low - 1.0) * (high - 1.0)) if low > 1.0 else 1.0 + (high - 1.0) / 8.0
        if not low < middle < high:
            break  # two neighbouring floats: what is left of the gap is rounding
        heapq.heappop(heap)
        g_middle = cumulant(middle)
        best = max(best, g_middle / (middle * (middle - 1.0)))
        for a, g_a, b, g_b in ((low, g_low, middle, g_middle), (middle, g_middle, high, g_high)):
            heapq.heappush(heap, (-bound(a, g_a, b, g_b), a, g_a, b, g_b))
    return max(best, -heap[0][0])
