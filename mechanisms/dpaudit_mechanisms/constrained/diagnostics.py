"""Has a chain converged, and what are its draws worth: split R-hat and effective sample size.

Draws have the shape (chains, steps) for one quantity. Sources: Gelman et al., Bayesian Data Analysis (2013), section
11.4 (split R-hat); Geyer (1992), Practical Markov Chain Monte Carlo, section 3.3 (initial monotone sequence).
"""

import math
from typing import Any

import numpy as np
from scipy import fft

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import FloatArray, table

MIN_STEPS = 4


def split_r_hat(draws: Any) -> float:
    """Split R-hat: each chain is cut in half; near 1 (below 1.01, say) where all halves agree; inf if they never move.

    Examples
    --------
    >>> apart = np.random.default_rng(1).normal(size=(2, 100)) + [[0.0], [9.0]]
    >>> split_r_hat(apart) > 3.0
    True
    """
    chains = _halves(draws)
    steps = chains.shape[1]
    within = float(chains.var(axis=1, ddof=1).mean())
    between = float(chains.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return 1.0 if between == 0.0 else math.inf
    return math.sqrt((steps - 1.0) / steps + between / within)


def effective_sample_size(draws: Any) -> float:
    """Number of independent draws that estimate the mean as well as all chains together; at most the number of draws.

    Autocorrelations are pooled over the halves of all chains, with the variance between them, and summed along Geyer's
    initial monotone sequence.

    Examples
    --------
    >>> independent = np.random.default_rng(2).normal(size=(8, 1000))
    >>> 6_000 < effective_sample_size(independent) <= 8_000
    True
    """
    chains = _halves(draws)
    count, steps = chains.shape
    centred = chains - chains.mean(axis=1, keepdims=True)
    size = fft.next_fast_len(2 * steps)
    spectrum = np.abs(fft.rfft(centred, size, axis=1)) ** 2
    covariances = fft.irfft(spectrum, size, axis=1)[:, :steps].mean(axis=0) / steps
    within = covariances[0] * steps / (steps - 1.0)
    total = within * (steps - 1.0) / steps + float(chains.mean(axis=1).var(ddof=1))
    if total == 0.0:
        return float(count * steps)
    correlations = 1.0 - (within - covariances) / total
    pairs = correlations[: 2 * (steps // 2)].reshape(-1, 2).sum(axis=1)
    pairs[0] = 1.0 + correlations[1]
    negative = np.flatnonzero(pairs <= 0.0)
    kept = np.minimum.accumulate(pairs[: negative[0] if negative.size else len(pairs)])
    time = max(2.0 * float(kept.sum()) - 1.0, 1.0)
    return count * steps / time


def _halves(draws: Any) -> FloatArray:
    chains = table("draws", draws, (None, None))
    half = chains.shape[1] // 2
    if half < MIN_STEPS:
        raise UsageError(f"draws must have at least {2 * MIN_STEPS} steps, got {chains.shape[1]}.")
    return np.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]])
