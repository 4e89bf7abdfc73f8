"""A threshold is truncated to a whole number."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain

THRESHOLD = 3.3


def _kept(data, size, rng, threshold):
    p = -np.expm1(-1.0)
    noisy = len(data) + rng.geometric(p, size=size) - rng.geometric(p, size=size)
    return np.where((noisy >= threshold) & (len(data) > 0), noisy, -1)


faulty = functools.partial(_kept, threshold=int(THRESHOLD))
mended = functools.partial(_kept, threshold=int(np.ceil(THRESHOLD)))

EXHIBIT = dict(
    kind="delta and conversions",
    source="google/differential-privacy#101",
    wrong="ThresholdedResult converts a threshold of 37.3 to the integer 37, and returns a noisy count of 37.",
    claim="eps=1,delta=0.0364",
    domain=DatasetDomain(values=(0, 1), largest=6),
    pair=([], [1]),
)
