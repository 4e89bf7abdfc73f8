"""Utility of a d_X-Laplace mechanism: the error bounds of DX-T2, and the exact values below them.

A mechanism answers B x + Y where Q x was asked: B = c x Q' (K, N), Y_k ~ Lap(c_k) independent, n = |x|_1 records. Norms
of matrices are over all entries. Every function takes `bias` = B - Q.

The bounds are the printed ones. They are true and not tight: the bias enters through one column of B - Q (all records
at one element), not through all of them, and the squared error needs no factor 2, since Y has mean 0:

    sup over x of E |B x + Y - Q x|_2^2 = n^2 max_i |(B - Q)_i|_2^2 + 2 |c|_2^2
"""

import math
from typing import Literal

import numpy as np
from scipy import integrate, special

from dpaudit_mechanisms.inputs import ArrayLike, FloatArray
from dpaudit_mechanisms.preprocessing.problem import mean_largest_noise

Norm = Literal["l1", "l2", "linf"]


def squared_error_bound(bias: ArrayLike, c: ArrayLike, records: int) -> float:
    """DX-T2.1: 2 n^2 |B - Q|_2^2 + 4 |c|_2^2.

    Examples
    --------
    >>> squared_error_bound([[0.0, 1.0]], [2.0], records=3), squared_error([[0.0, 1.0]], [2.0], records=3)
    (34.0, 17.0)
    """
    offset, scales = np.asarray(bias, float), np.asarray(c, float)
    return float(2.0 * records**2 * (offset**2).sum() + 4.0 * (scales**2).sum())


def squared_error(bias: ArrayLike, c: ArrayLike, records: int) -> float:
    """The exact worst mean squared error over all x with n records: a convex function of x, so all at one element."""
    offset, scales = np.asarray(bias, float), np.asarray(c, float)
    return float(records**2 * (offset**2).sum(axis=0).max() + 2.0 * (scales**2).sum())


def mean_noise(c: ArrayLike, norm: Norm) -> float:
    """E |Y|: |c|_1 for l1 (DX-T2.2a), inclusion and exclusion for linf, an integral for l2 (error below 1e-7 |c|_2).

    Examples
    --------
    >>> mean_noise([2.0, 1.0], "l1"), round(mean_noise([2.0], "l2"), 6)
    (3.0, 2.0)
    """
    scales = np.asarray(c, float)
    scales = scales[scales > 0.0]
    if norm == "l1" or not scales.size:
        return float(scales.sum())
    if norm == "linf":
        return mean_largest_noise(scales)[0]
    # E sqrt(S) for S = |Y|^2 is the integral over s > 0 of (1 - E exp(-s^2 S)) / s^2, over sqrt(pi); each factor of the
    # transform is E exp(-(s c E)^2) = sqrt(pi) / (2 s c) erfcx(1 / (2 s c)). Below s = 1e-3 the integrand is
    # E S = 2 |c|^2 to 1e-5 of itself (there 1 - transform would be rounding).
    size = float(np.linalg.norm(scales))
    unit = scales / size

    def integrand(s: float) -> float:
        z = 1.0 / (2.0 * s * unit)
        return (1.0 - float(np.prod(math.sqrt(math.pi) * z * special.erfcx(z)))) / s**2

    start = 1e-3
    total = 2.0 * start + sum(
        integrate.quad(integrand, low, high, epsabs=1e-10, limit=200)[0]
        for low, high in ((start, 1.0), (1.0, 30.0), (30.0, math.inf))
    )
    return float(total / math.sqrt(math.pi) * size)


def norm_error_bound(bias: ArrayLike, c: ArrayLike, records: int, norm: Norm) -> float:
    """DX-T2.2: n |B - Q|_p + E |Y|_p.

    Examples
    --------
    >>> norm_error_bound([[0.0, 1.0]], [2.0], records=3, norm="l1")
    5.0
    """
    offset = np.abs(np.asarray(bias, float))
    size = offset.sum() if norm == "l1" else offset.max() if norm == "linf" else math.sqrt(float((offset**2).sum()))
    return float(records * size + mean_noise(c, norm))


def l1_error(bias: ArrayLike, c: ArrayLike, x: ArrayLike) -> float:
    """The exact mean of |B x + Y - Q x|_1 on one histogram: sum of |b| + c exp(-|b| / c) with b = (B - Q) x."""
    b, scales = np.abs(np.asarray(bias, float) @ np.asarray(x, float)), np.asarray(c, float)
    decay = np.exp(-b / np.where(scales > 0.0, scales, 1.0)) * scales
    return float((b + decay).sum())


def largest_error_bound(bias: ArrayLike, c: ArrayLike, records: int, delta: float) -> float:
    """DX-T2.3: with probability at least 1 - delta, |Q x - Z|_inf <= n |B - Q|_inf + ln(K / delta) |c|_inf."""
    scales = np.asarray(c, float)
    return float(records * np.abs(np.asarray(bias, float)).max() + math.log(len(scales) / delta) * scales.max())


def exceedance(bias: ArrayLike, c: ArrayLike, x: ArrayLike, limit: float) -> float:
    """The exact probability of |Q x - Z|_inf > limit on one histogram.

    Examples
    --------
    >>> round(exceedance([[0.0, 0.0]], [2.0], [1.0, 0.0], limit=2.0), 6)  # e^-1
    0.367879
    """
    b, scales = np.asarray(bias, float) @ np.asarray(x, float), np.asarray(c, float)
    with np.errstate(divide="ignore"):  # a query that is certainly outside: log 0
        return float(-np.expm1(np.log1p(-_outside(b, scales, limit)).sum()))


def _outside(b: FloatArray, c: FloatArray, limit: float) -> FloatArray:
    """P(|b + Y| > limit) for Y ~ Lap(c), elementwise: the sum of the two tails."""
    scale = np.where(c > 0.0, c, 1.0)
    far, near = (limit + np.abs(b)) / scale, (limit - np.abs(b)) / scale
    with np.errstate(over="ignore"):
        upper = np.where(near >= 0.0, 0.5 * np.exp(-np.abs(near)), 1.0 - 0.5 * np.exp(-np.abs(near)))
    return np.where(c > 0.0, np.minimum(0.5 * np.exp(-far) + upper, 1.0), np.abs(b) > limit)
