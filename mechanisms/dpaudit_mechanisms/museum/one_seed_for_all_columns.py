"""One seed for the mechanisms of all columns: their noise is the same."""

import numpy as np

from dpaudit.domains import DatasetDomain


def _sums(data):
    return np.clip(np.reshape(data, (-1, 2)), 0.0, 1.0).sum(axis=0)


def faulty(data, size, rng):
    seeds = rng.integers(2**32, size=size)
    noise = np.array([[np.random.default_rng(seed).laplace() for _ in range(2)] for seed in seeds.tolist()])
    return _sums(data) + noise


def mended(data, size, rng):
    return _sums(data) + rng.laplace(size=(size, 2))


EXHIBIT = dict(
    kind="noise",
    source="IBM/differential-privacy-library#31",
    wrong="The same seed for several mechanisms gives the sums of all columns the same noise: their difference "
    "is exact.",
    claim="eps=2",
    domain=DatasetDomain(values=((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))),
    pair=([], [(1.0, 0.0)]),
)
