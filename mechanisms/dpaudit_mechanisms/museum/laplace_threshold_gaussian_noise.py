"""Gaussian counts, with the threshold of Laplace ones."""

import functools

import numpy as np
from scipy.stats import norm

from dpaudit.domains import DatasetDomain

EPSILON, DELTA, SIGMA = 1.0, 0.02, 3.0
HALF = DELTA / 2.0  # one half for the noise: at SIGMA it is 0.0002 at epsilon = 1; one for the threshold
LAPLACE = 1.0 - np.log(2.0 * HALF) / EPSILON
GAUSSIAN = 1.0 + SIGMA * norm.isf(HALF)


def _kept(data, size, rng, threshold):
    noisy = len(data) + rng.normal(scale=SIGMA, size=size)
    return np.where((noisy > threshold) & (len(data) > 0), noisy, -1.0)


faulty = functools.partial(_kept, threshold=LAPLACE)
mended = functools.partial(_kept, threshold=GAUSSIAN)

EXHIBIT = dict(
    kind="delta and conversions",
    source="opendp/smartnoise-sdk#204",
    wrong="tau is computed from a Laplace formula, and the noise of the counts is Gaussian, whose mass beyond "
    "tau is larger.",
    claim="eps=1,delta=0.02",
    domain=DatasetDomain(values=(0, 1), largest=6),
    pair=([], [1]),
)
