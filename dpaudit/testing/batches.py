"""Do batches of outcomes differ from each other by more than chance? An e-value of one yes-or-no feature, and a hint.

A vectorised mechanism that draws its noise once a call, or part of it, gives outcomes that are alike within a call.

Validity. Of n outcomes m have a feature, and batches of sizes n_b, fixed beforehand, have k_b of them each. If the
outcomes are independent and of one law, then given m the places of the feature are a random subset, so the table (k_b)
has probability P = prod C(n_b, k_b) / C(n, m). Let Q be the law of beta-binomial numbers of the same sizes, with a mean
of m / n and a concentration c: a function of m. Over the tables with sum m, Q sums to at most 1, so E[Q / P | m] <= 1,
for the average over several c too; and p = P / Q is a p-value (Markov's inequality). In Q / P the binomial coefficients
of the batches cancel: C(n, m) prod B(k_b + a, n_b - k_b + b) / B(a, b), with a = c m / n and b = c - a.

The hint is the test of Kruskal and Wallis (1952, Journal of the American Statistical Association 47, 583-621). Its
p-value is approximate, so it decides only whether more draws are worth taking, and never what is said.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike

# Of the beta law of the rate of a batch: from batches that are all of one kind to rates that differ by a hundredth.
CONCENTRATIONS = np.array([0.5, 2.0, 8.0, 32.0, 128.0, 512.0, 2048.0])


def batch_p_value(counts: ArrayLike, sizes: ArrayLike) -> float:
    """p-value of how a feature is spread over batches, against outcomes that are independent and of one law.

    Parameters
    ----------
    counts : array_like of int, shape (batches,)
        Outcomes of each batch that have the feature.
    sizes : array_like of int, shape (batches,)
        Outcomes of each batch; positive.

    Returns
    -------
    float
        In (0, 1]: 1 where all have the feature, or none has it.

    Examples
    --------
    >>> batch_p_value([8, 0, 8, 0, 0, 8], [8] * 6) < 1e-6
    True
    >>> batch_p_value([4, 5, 3, 4, 4, 4], [8] * 6)
    1.0
    """
    k, n = np.asarray(counts, dtype=float), np.asarray(sizes, dtype=float)
    m, total = k.sum(), n.sum()
    if not 0.0 < m < total:
        return 1.0
    a = CONCENTRATIONS[:, None] * (m / total)
    b = CONCENTRATIONS[:, None] - a
    logs = (scipy.special.betaln(k + a, n - k + b) - scipy.special.betaln(a, b)).sum(axis=1)
    ways = scipy.special.gammaln(total + 1.0) - scipy.special.gammaln(m + 1.0) - scipy.special.gammaln(total - m + 1.0)
    log_e = float(ways + np.logaddexp.reduce(logs) - np.log(len(CONCENTRATIONS)))
    return float(np.exp(-max(log_e, 0.0)))


def batch_hint(values: ArrayLike, sizes: ArrayLike) -> float:
    """Approximate p-value of how the ranks of numbers are spread over batches: no statement rests on it.

    Parameters
    ----------
    values : array_like of float, shape (outcomes,)
        In the order of the batches; NaN ranks above all numbers, and each NaN is equal to the others.
    sizes : array_like of int, shape (batches,)
        Outcomes of each batch, which sum to `outcomes`; empty ones are left out.

    Returns
    -------
    float
        In [0, 1]: 1 where there are fewer than two batches, or all values are equal.

    Examples
    --------
    >>> batch_hint([1, 1, 1, 1, 2, 2, 2, 2], [4, 4]) < 0.01
    True
    >>> batch_hint([1, 2, 3, 4, 2, 1, 4, 3], [4, 4])
    1.0
    """
    every = np.asarray(sizes, dtype=np.int64)
    n = every[every > 0]
    total = int(n.sum())
    _, places, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    if len(n) < 2 or len(counts) < 2:
        return 1.0
    of_batch = np.repeat(np.arange(len(n)), n)
    off = (np.cumsum(counts) - 0.5 * (counts - 1.0))[places] - 0.5 * (total + 1.0)  # mid-ranks less their mean
    sums = np.bincount(of_batch, weights=off)
    statistic = (total - 1.0) * float((sums**2 / n).sum()) / float((off**2).sum())
    return float(scipy.special.chdtrc(len(n) - 1.0, statistic))
