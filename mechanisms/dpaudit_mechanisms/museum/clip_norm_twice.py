"""Noise is scaled by the square of the clipping norm: a standard deviation is taken for a variance."""

import numpy as np

from dpaudit.domains import DatasetDomain

NORM = 0.5


def faulty(data, size, rng):
    return np.clip(data, -NORM, NORM).sum() + rng.normal(scale=NORM**2, size=size)


def mended(data, size, rng):
    return np.clip(data, -NORM, NORM).sum() + rng.normal(scale=NORM, size=size)


EXHIBIT = dict(
    kind="learning",
    source="greenelab/SPRINT_gan#5",
    wrong="The optimizer's noise has the standard deviation noise * clipnorm ** 2, which is too little for every "
    "clipping norm below 1.",
    claim="mu=1",
    domain=DatasetDomain.between(-1.0, 1.0, largest=8),
    pair=([], [1.0]),
)
