"""The sensitivity of a layer's gradient is divided by the batch size once too often."""

import numpy as np

from dpaudit.domains import DatasetDomain

CLIP, BATCH = 1.0, 4


def faulty(data, size, rng):
    return np.clip(data, -CLIP, CLIP).sum() + rng.normal(scale=CLIP / BATCH, size=size)


def mended(data, size, rng):
    return np.clip(data, -CLIP, CLIP).sum() + rng.normal(scale=CLIP, size=size)


EXHIBIT = dict(
    kind="learning",
    source="arXiv:2202.12219",
    wrong="An implementation of backpropagation clipping has the sensitivity of a gradient wrong by the size of "
    "the batch.",
    claim="mu=1",
    domain=DatasetDomain.between(-1.0, 1.0, largest=8),
    pair=([], [1.0]),
)
