"""The law of a sparse vector's epoch: comparisons that share one noisy threshold, by quadrature between kinks.

Given the threshold's noise r the comparisons are independent, so that the probability of how they come out is an
integral over r. Gauss-Legendre between the kinks of the integrand: relative error below 1e-9.
"""

import math

import numpy as np

from dpaudit_mechanisms.inputs import FloatArray

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
CHUNK = 2_000  # epochs at a time: memory
REACH = 60.0  # scales beyond the last kink, where an integrand is below exp(-60) of its height at the kink


def log_epochs(excesses: FloatArray, b1: float, b2: float, ends_above: bool) -> FloatArray:
    """Log probability that the comparisons of epochs come out below, and the last one above if `ends_above`.

    From errors minus threshold of shape (epochs, comparisons) to shape (epochs,); b1 and b2 are the scales of the noise
    of the threshold and of a comparison.
    """
    result = np.empty(len(excesses))
    for start in range(0, len(excesses), CHUNK):
        some = excesses[start : start + CHUNK]
        kinks = np.sort(np.append(some, np.zeros((len(some), 1)), axis=1), axis=1)
        gaps = np.diff(kinks, axis=1)
        # The log of an integrand has slopes up to 1 / finest. Between kinks it is concave or nearly linear, and at
        # its height near one of them: intervals double with the distance from the nearer kink, at either end.
        finest = 1.0 / (1.0 / b1 + some.shape[1] / b2)
        longest = max(0.5 * float(gaps.max()), REACH * max(b1, b2))
        far = 4.0 * finest * 2.0 ** np.arange(math.ceil(max(0.0, math.log2(longest / (4.0 * finest)))) + 1)
        reach = far[far < 2.0 * REACH * max(b1, b2)]
        near = far[: 1 + np.searchsorted(far, 0.5 * float(gaps.max()))]
        steps = np.minimum(near, 0.5 * gaps[:, :, None])  # (epochs, gaps, steps): beyond the middle they are empty
        inner = np.concatenate([kinks[:, :-1, None], kinks[:, :-1, None] + steps,
                                kinks[:, 1:, None] - steps[:, :, ::-1]], axis=2)  # fmt: skip
        edges = np.concatenate([kinks[:, :1] - reach[::-1], inner.reshape(len(some), -1), kinks[:, -1:],
                                kinks[:, -1:] + reach], axis=1)  # fmt: skip
        half = np.diff(edges, axis=1)[:, :, None] / 2.0
        r = edges[:, :-1, None] + half * (1.0 + NODES)  # (epochs, intervals, nodes)
        logs = -np.abs(r) / b1 - math.log(2.0 * b1)
        for j in range(some.shape[1]):
            margin = (r - some[:, j, None, None]) / b2  # noise below this is below
            is_last = ends_above and j == some.shape[1] - 1
            logs += log_below(-margin if is_last else margin)
        top = logs.max(axis=(1, 2), keepdims=True)
        sums = (np.exp(logs - top) * WEIGHTS * half).sum(axis=(1, 2))
        result[start : start + CHUNK] = top[:, 0, 0] + np.log(sums)
    return result


def log_below(margins: FloatArray) -> FloatArray:
    """Log of the distribution function of Lap(1)."""
    small = np.minimum(margins, 0.0) - math.log(2.0)
    return np.where(margins < 0.0, small, np.log1p(-0.5 * np.exp(-np.abs(margins))))
