"""The optimal noise scales for K linear queries that are answered as they are (problem DX-O5), with a certified gap.

In the rates r = 1/c the problem is convex (DX-L6): minimise a sum of g(r_k) subject to linear constraints, one a pair.
It is solved with Newton's method on a log barrier over the few pairs that bind; the barrier's multipliers prove how far
from the optimum the answer can be.

Losses: "squared" minimises the sum of c_k^2, "l1" the sum of c_k, "improvement" the product of the c_k (so it maximises
the improvement factor IF of the paper). The largest c_k alone is minimised by the rule S2, in closed form: if every
c_k <= c, then the l1 distances of columns are at most c d(i, j).

Letters: Q queries (K, N), d metric (N, N) in nats, u ratios |Q[k, i] - Q[k, j]| / (alone_k d(i, j)) in [0, 1] where
alone_k is the scale of query k alone, y = alone / c in (0, 1] the unknowns.
"""

import dataclasses
from typing import Literal

import numpy as np

from dpaudit_mechanisms.index_metric import budget_matrix
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, table
from dpaudit_mechanisms.protocol import UsageError, check_among
from dpaudit_mechanisms.psa import pair_ratios

ScaleLoss = Literal["squared", "l1", "improvement"]
POWERS = {"squared": 2, "l1": 1, "improvement": 0}  # p of a loss sum w / y^p in y = alone / c; 0 stands for -log y
SCALE_LOSSES = tuple(POWERS)
GAP = 1e-8  # of the loss: where the barrier stops; beyond, rounding of the multipliers costs more than is gained
ROUNDS = 60  # of adding pairs that bind
NEWTON_STEPS = 200
NEAR = 1e-4  # squared Newton decrement from which on whole steps converge


@dataclasses.dataclass(frozen=True, eq=False)
class OptimalScales:
    """Scales, their loss, and a bound that no feasible scales can be below.

    Attributes
    ----------
    scales : numpy.ndarray of float, shape (K,)
        Feasible up to rounding; 0 for constant queries, which enter no loss.
    loss : float
        Sum of c_k^2, sum of c_k, or sum of log c_k, over the queries that are not constant.
    lower_bound : float
        Proved: the loss of all feasible scales is at least this.
    """

    scales: FloatArray
    loss: float
    lower_bound: float


def optimal_scales(queries: ArrayLike, metric: ArrayLike, loss: ScaleLoss = "squared") -> OptimalScales:
    """The noise scales of least loss with c x Q' = Q, within 1e-7 of the optimum (relative; absolute for logarithms).

    Parameters
    ----------
    queries : array_like of float, shape (K, N)
    metric : array_like of float, shape (N, N)
        d(i, j) in nats, in [0, inf].
    loss : {"squared", "l1", "improvement"}, optional

    Raises
    ------
    UsageError
        If the loss is unknown, a value is out of range, or a query tells apart two elements at distance 0.

    Examples
    --------
    >>> best = optimal_scales([[0, 1, 1], [0, 0, 1]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    >>> best.scales.round(6).tolist(), round(best.lower_bound, 6)  # both share the pair (0, 2)
    ([2.0, 2.0], 8.0)
    """
    check_among("loss", loss, SCALE_LOSSES)
    rows = table("queries", queries, (None, None), finite=True)
    pairs = pair_ratios(rows, budget_matrix(metric, rows.shape[1]))
    if pairs.impossible.any():
        first = int(pairs.impossible.argmax())
        raise UsageError(f"metric must be positive where answers differ, got 0.0 where those of query {first} do.")
    return optimum_of_ratios(pairs.ratios, loss)


def optimum_of_ratios(every: FloatArray, loss: ScaleLoss) -> OptimalScales:
    """`optimal_scales` on ratios (K, pairs): c with sum over k of ratio / c_k <= 1 for every pair."""
    varying = np.asarray(every.any(axis=1))
    scales = np.zeros(len(varying))
    if not varying.any():
        return OptimalScales(scales, 0.0, 0.0)
    ratios = every[varying]
    alone = ratios.max(axis=1)
    u = np.ascontiguousarray((ratios / alone[:, None]).T)  # (pairs, K)
    p = POWERS[loss]
    weights = (alone / alone.max()) ** p  # of order one
    binding = np.unique(np.concatenate([u.argmax(axis=0), [u.sum(axis=1).argmax()]]))
    y, dual = np.zeros(len(alone)), 0.0
    # Balanced unknowns y / size: with one pair that binds, the optimum is y in proportion to size.
    size = weights ** (1.0 / (p + 1)) / (weights ** (1.0 / (p + 1))).sum()
    for _ in range(ROUNDS):
        z, dual = _least(u[binding] * size, weights / size**p, loss)
        y = z * size
        used = u @ y
        if used.max() <= 1.0 + GAP / 10.0:
            break
        worst = np.argsort(-used)[: 20 * len(y)]
        binding = np.union1d(binding, worst[used[worst] > 1.0])
    y /= (u @ y).max()  # exactly feasible; a little more if no pair was quite used up
    scales[varying] = alone / y
    lower = dual * float((alone**p).max()) if p else dual + float(np.log(alone / size).sum())
    value = scale_loss(scales[varying], loss)
    return OptimalScales(scales, value, min(lower, value))


def scale_loss(scales: FloatArray, loss: ScaleLoss) -> float:
    """Sum of c_k^2, of c_k, or of log c_k."""
    if loss == "squared":
        return float(scales @ scales)
    return float(scales.sum() if loss == "l1" else np.log(scales).sum())


def _least(u: FloatArray, weights: FloatArray, loss: ScaleLoss) -> tuple[FloatArray, float]:
    """Minimiser of the loss over u y <= 1 and a lower bound of it: barrier method on t loss(y) - sum log(1 - u y)."""
    pairs, count = u.shape
    y, t, p = np.full(count, 0.9 / max(1.0, float(u.sum(axis=1).max()))), 1.0, POWERS[loss]

    def derivatives(y: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value = (weights / y**p).sum() if p else -np.log(y).sum()
        return float(value), -max(p, 1) * weights / y ** (p + 1), max(p, 1) * (p + 1) * weights / y ** (p + 2)

    def barrier(y: FloatArray) -> float:
        slack = 1.0 - u @ y
        return np.inf if (y <= 0.0).any() or (slack <= 0.0).any() else t * derivatives(y)[0] - np.log(slack).sum()

    while True:
        before = np.inf
        for _ in range(NEWTON_STEPS):
            _, gradient, curvature = derivatives(y)
            inverse = 1.0 / (1.0 - u @ y)
            slope = t * gradient + u.T @ inverse
            scaled = u * inverse[:, None]
            hessian = scaled.T @ scaled + np.diag(t * curvature)
            # Weights may be so uneven that the curvature of some unknowns is rounding of that of others. In units of
            # its own curvature each unknown counts, and what is singular then is flat.
            units = 1.0 / np.sqrt(np.diag(hessian))
            step = units * np.linalg.lstsq(hessian * units * units[:, None], -slope * units)[0]
            decrement = float(-slope @ step)
            if decrement < NEAR:
                # The barrier is so large here that its rounding hides a descent, which a line search would wait for,
                # and the multipliers, whose error enters the dual bound, need more steps than the point does. So whole
                # steps, as long as they shrink.
                whole = y + step
                if decrement > before / 2.0 or decrement <= 1e-20 or (whole <= 0.0).any() or (u @ whole >= 1.0).any():
                    break
                y, before = whole, decrement
                continue
            length, here = 1.0, barrier(y)
            while barrier(y + length * step) > here - 0.25 * length * decrement and length > 1e-12:
                length /= 2.0
            if length <= 1e-12:  # rounding: no further descent can be seen
                break
            y = y + length * step
        value = derivatives(y)[0]
        size = 1.0 if loss == "improvement" else value
        if pairs / t <= GAP * size / 4.0 or t > 1e15:
            return y, _dual(weights, loss, u.T @ (1.0 / (t * (1.0 - u @ y))), float((1.0 / (t * (1.0 - u @ y))).sum()))
        t *= 20.0


def _dual(weights: FloatArray, loss: ScaleLoss, price: FloatArray, total: float) -> float:
    """The Lagrangian's minimum at multipliers m >= 0: price = u' m, total = sum m. A lower bound for any such m."""
    # min over y > 0 of w / y^2 + p y is 3 (w p^2 / 4)^(1/3); of w / y + p y, 2 (w p)^(1/2); of -log y + p y, 1 + log p
    if loss == "squared":
        least = 3.0 * np.cbrt(weights * price**2 / 4.0)
    elif loss == "l1":
        least = 2.0 * np.sqrt(weights * price)
    else:
        least = 1.0 + np.log(price)
    return float(least.sum() - total)
