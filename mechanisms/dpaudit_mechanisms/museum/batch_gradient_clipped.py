"""The gradient of a batch is clipped, not that of an example."""

import numpy as np

from dpaudit.domains import DatasetDomain

CLIP = 1.0


def faulty(data, size, rng):
    return np.clip(np.sum(data), -CLIP, CLIP) + rng.normal(scale=CLIP, size=size)


def mended(data, size, rng):
    return np.clip(data, -CLIP, CLIP).sum() + rng.normal(scale=CLIP, size=size)


EXHIBIT = dict(
    kind="learning",
    source="ooples/AiDotNet#1318",
    wrong="The aggregated gradient is clipped once per tensor; one example can turn it from one end to the other.",
    claim="mu=1",
    domain=DatasetDomain(values=(-4.0, -1.0, 0.0, 1.0, 4.0)),
    pair=([-2.0, 1.0], [-2.0, 1.0, 4.0]),
)
