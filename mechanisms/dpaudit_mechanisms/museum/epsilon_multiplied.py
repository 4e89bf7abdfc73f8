"""The scale of Laplace noise is the sensitivity times epsilon."""

import numpy as np

from dpaudit.domains import DatasetDomain

EPSILON, BOUND = 0.5, 1.0


def faulty(data, size, rng):
    return np.clip(data, -BOUND, BOUND).sum() + rng.laplace(scale=BOUND * EPSILON, size=size)


def mended(data, size, rng):
    return np.clip(data, -BOUND, BOUND).sum() + rng.laplace(scale=BOUND / EPSILON, size=size)


EXHIBIT = dict(
    kind="noise",
    source="wenzhu23333/Differential-Privacy-Based-Federated-Learning#21",
    wrong="Each client's noise has scale sensitivity * epsilon / times instead of sensitivity * times / epsilon.",
    claim="eps=0.5",
    domain=DatasetDomain.between(-BOUND, BOUND),
    pair=([], [1.0]),
)
