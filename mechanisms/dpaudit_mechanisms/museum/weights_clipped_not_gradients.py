"""Weights are clipped, and gradients are not."""

import numpy as np

from dpaudit.domains import DatasetDomain

RATE, BOUND = 0.25, 1.0


def faulty(data, size, rng):
    gradient = np.sum(data) + rng.normal(size=size)
    return np.clip(-RATE * gradient, -BOUND, BOUND)


def mended(data, size, rng):
    gradient = np.clip(data, -BOUND, BOUND).sum() + rng.normal(size=size)
    return np.clip(-RATE * gradient, -BOUND, BOUND)


EXHIBIT = dict(
    kind="learning",
    source="civisanalytics/dpwgan#2",
    wrong="The discriminator's weights are clipped 'for privacy guarantees', which bounds no gradient.",
    claim="mu=1",
    domain=DatasetDomain(values=(-4.0, -1.0, 0.0, 1.0, 4.0)),
    pair=([], [4.0]),
)
