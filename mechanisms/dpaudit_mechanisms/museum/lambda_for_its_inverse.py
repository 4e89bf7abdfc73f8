"""Laplace noise of scale lambda, where the analysis has its inverse."""

import numpy as np

from dpaudit.domains import VectorDomain

LAMBDA = 0.5  # two counts change by 1 each: epsilon = 2 * LAMBDA


def _vote(data, scale, size, rng):
    return np.argmax(np.asarray(data) + rng.laplace(scale=scale, size=(size, 2)), axis=1)


def faulty(data, size, rng):
    return _vote(data, LAMBDA, size, rng)


def mended(data, size, rng):
    return _vote(data, 1.0 / LAMBDA, size, rng)


EXHIBIT = dict(
    kind="noise",
    source="vanderschaarlab/mlforhealthlabpub#36",
    wrong="PATE-GAN draws the noise of the teachers' votes with scale lambda instead of 1 / lambda.",
    claim="eps=1",
    domain=VectorDomain(2, 0, 10, change=1, adjacency="moved", integer=True),
    pair=(np.array([5, 5]), np.array([6, 4])),
)
