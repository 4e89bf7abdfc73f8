"""The plain gradient of the batch is added to the private one."""

import numpy as np

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    private = np.clip(data, -1.0, 1.0).sum()
    return private + np.sum(data) / max(len(data), 1) + rng.normal(size=size)


def mended(data, size, rng):
    return np.clip(data, -1.0, 1.0).sum() + rng.normal(size=size)


EXHIBIT = dict(
    kind="learning",
    source="dayu11/Differentially-Private-Deep-Learning#7",
    wrong="backward() accumulates the average gradient into p.grad, where the clipped sum is accumulated too.",
    claim="mu=1",
    domain=DatasetDomain(values=(-4.0, -1.0, 0.0, 1.0, 4.0), largest=8),
    pair=([], [4.0]),
)
