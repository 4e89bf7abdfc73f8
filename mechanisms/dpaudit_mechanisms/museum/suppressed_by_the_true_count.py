"""A minimum size is asked of the true count, and the noisy one is returned."""

import numpy as np

from dpaudit.domains import DatasetDomain

MIN_COUNT = 5


def faulty(data, size, rng):
    noisy = len(data) + rng.laplace(size=size)
    return np.zeros(size) if len(data) < MIN_COUNT else noisy


def mended(data, size, rng):
    noisy = len(data) + rng.laplace(size=size)
    return np.where(noisy < MIN_COUNT, 0.0, noisy)


EXHIBIT = dict(
    kind="post-processing",
    source="world-federation-of-advertisers/cross-media-measurement#2767",
    wrong="The k-anonymity threshold compares the raw number of impressions, so that a zero is certain below it.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1), largest=12),
    pair=([0] * 4, [0] * 5),
)
