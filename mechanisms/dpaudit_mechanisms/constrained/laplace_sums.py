"""Sums of independent Laplace variables of one scale, and the variables given their sum: densities and exact draws.

A Laplace variable is the difference of two exponential ones of its scale. So n of them with the sum s are E - F, where
E and F are n exponentials each with sum(E) - sum(F) = s. Given sum(F) = t and sum(E) = t + s, both are uniform on their
simplices, and t has the density proportional to (t (t + s))^(n-1) e^(-2t) for s >= 0, from which `draw_given_sum` takes
exact draws by rejection: no chain, and no error but rounding.

Variances of one coordinate, for n variables of scale 1 whose sum is 0 (CD-U3, CD-U4, CD-P4.1)
----------------------------------------------------------------------------------------------
* conditioned: with the characteristic function 1 / (1 + w^2) of one variable and J_k the integral of (1 + w^2)^(-k),
  J_(k+1) / J_k = (2k - 1) / (2k), it is (8 J_(n+2) - 6 J_(n+1)) / J_n = (2n - 1)(n - 1) / (n (n + 1));
* projected: 2 (1 - 1/n).

Their ratio is (2n - 1) / (2n + 2) < 1 for every n: what the paper conjectures (CD-U4) is a theorem.
"""

import math

import numpy as np
from scipy import special

from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, positive, table, whole_number

FAR = 700.0  # e^-700 is still a normal number


def log_density_at_zero(count: int) -> float:
    """Log density at 0 of the sum of `count` variables of scale 1: log of C(2n - 2, n - 1) / 2^(2n - 1)."""
    count = whole_number("count", count, 1)
    return float(special.gammaln(2 * count - 1) - 2.0 * special.gammaln(count) - (2 * count - 1) * math.log(2.0))


def relative_density(count: int, sums: ArrayLike) -> FloatArray:
    """The density of the sum of `count` variables of scale 1 over its value at 0, in [0, 1], one for each of `sums`.

    It is e^-s times a polynomial in s = |sum| with positive coefficients; each term is made from the one before. From
    s = 700 on, where e^-s is about to underflow and the terms of many variables are not, logarithms are added up.
    """
    count = whole_number("count", count, 1)
    s = np.abs(np.asarray(sums, dtype=float))
    near = np.minimum(s, FAR)
    far = s[s > FAR]
    term, log_term = np.exp(-near), -far
    total, log_total = term.copy(), log_term.copy()
    for j in range(1, count):
        ratio = 2.0 * (count - j) / ((2.0 * count - 1.0 - j) * j)
        term *= near * ratio
        total += term
        if far.size:
            log_term = log_term + np.log(far * ratio)
            log_total = np.logaddexp(log_total, log_term)
    total = np.asarray(total)
    total[s > FAR] = np.exp(log_total)
    return np.minimum(total, 1.0)


def draw_given_sum(count: int, sums: ArrayLike, rng: np.random.Generator, scale: float = 1.0) -> FloatArray:
    """Independent Laplace variables given their sum: one exact draw for each entry of `sums`.

    Parameters
    ----------
    count : int
        Number of variables, at least 1.
    sums : array_like of float, shape (size,)
        Finite.
    rng : numpy.random.Generator
    scale : float
        Of each variable, in (0, inf).

    Returns
    -------
    numpy.ndarray of float, shape (size, count)
        Each row sums to its entry of `sums` up to rounding.

    Examples
    --------
    >>> draws = draw_given_sum(3, np.zeros(5), np.random.default_rng(1))
    >>> draws.shape, bool(np.abs(draws.sum(axis=1)).max() < 1e-12)
    ((5, 3), True)
    """
    count, scale = whole_number("count", count, 1), positive("scale", scale)
    totals = table("sums", sums, (len(sums),), finite=True) / scale if len(sums) else np.zeros(0)
    s = np.abs(totals)
    t = _smaller_totals(count, s, rng)
    first, second = (_simplex(count, len(s), rng) for _ in range(2))
    noise = (t + s)[:, None] * first - t[:, None] * second
    return np.asarray(scale * np.where(totals < 0.0, -1.0, 1.0)[:, None] * noise)


def conditional_variance(count: int, scale: float = 1.0) -> float:
    """Variance of one of `count` Laplace variables given that their sum is 0: (2n - 1)(n - 1) / (n (n + 1)) scale^2.

    Examples
    --------
    >>> conditional_variance(2), round(conditional_variance(3), 6)  # u and -u: half the scale; 5/6
    (0.5, 0.833333)
    """
    n = whole_number("count", count, 1)
    return (2 * n - 1) * (n - 1) / (n * (n + 1)) * positive("scale", scale) ** 2


def projected_variance(count: int, scale: float = 1.0) -> float:
    """Variance of one of `count` Laplace variables minus their mean: 2 (1 - 1/n) scale^2 (CD-P4.1)."""
    return 2.0 * (1.0 - 1.0 / whole_number("count", count, 1)) * positive("scale", scale) ** 2


def conditional_marginal(count: int, values: ArrayLike, scale: float = 1.0) -> FloatArray:
    """Density of one of `count` >= 2 Laplace variables given that their sum is 0, at each of `values` (CD-U2 for 3)."""
    count, scale = whole_number("count", count, 2), positive("scale", scale)
    u = np.asarray(values, dtype=float) / scale
    constant = log_density_at_zero(1) + log_density_at_zero(count - 1) - log_density_at_zero(count)
    return math.exp(constant) / scale * relative_density(1, u) * relative_density(count - 1, u)


def _smaller_totals(count: int, s: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draws of t with density proportional to (t (t + s))^(n-1) e^(-2t), one for each s >= 0.

    log(t + s) is below its tangent at the mode t0, so a gamma variable of shape n and rate 2 - (n - 1) / (t0 + s) is a
    proposal; it is accepted with probability above a half for every n and s that were tried.
    """
    n = count
    mode = 0.5 * ((n - 1.0 - s) + np.hypot(n - 1.0, s))
    slope = np.divide(n - 1.0, mode + s, out=np.zeros_like(s), where=mode + s > 0.0)
    rate = 2.0 - slope
    found = np.empty_like(s)
    waiting = np.arange(len(s))
    while waiting.size:
        proposals = rng.standard_gamma(n, size=waiting.size) / rate[waiting]
        at, start = proposals + s[waiting], (mode + s)[waiting]
        # n = 1 has mode 0 and a flat factor; a slope of 0 says so
        ratio = np.divide(at, start, out=np.ones_like(at), where=start > 0.0)
        log_chance = (n - 1.0) * np.log(ratio) - slope[waiting] * (at - start)
        accepted = -rng.standard_exponential(waiting.size) <= log_chance
        found[waiting[accepted]] = proposals[accepted]
        waiting = waiting[~accepted]
    return found


def _simplex(count: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Uniform draws on the simplex, shape (size, count)."""
    exponentials = rng.standard_exponential((size, count))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))
