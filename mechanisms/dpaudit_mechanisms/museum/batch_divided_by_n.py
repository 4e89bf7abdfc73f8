"""A gradient sum is divided by the sampling rate times the number of records, rounded down."""

import numpy as np

from dpaudit.domains import DatasetDomain

RATE, DIMENSION = 0.5, 8


def _noisy_sum(data, size, rng):
    gradient = np.full(DIMENSION, np.clip(data, 0.0, 1.0).sum() / np.sqrt(DIMENSION))
    return gradient + rng.normal(size=(size, DIMENSION))  # l2 sensitivity 1


def faulty(data, size, rng):
    return _noisy_sum(data, size, rng) / max(int(RATE * len(data)), 1)


def mended(data, size, rng):
    return _noisy_sum(data, size, rng) / 4.0  # a public expected batch


EXHIBIT = dict(
    kind="neighbours",
    source="meta-pytorch/opacus#571",
    wrong="The noisy sum is divided by floor(rate * n): the scale of all coordinates tells whether n is odd "
    "(also #819).",
    claim="mu=1",
    domain=DatasetDomain.between(0.0, 1.0, largest=8, smallest=2),
    pair=([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
)
