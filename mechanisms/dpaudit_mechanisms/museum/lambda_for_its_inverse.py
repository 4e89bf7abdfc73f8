"""Laplace noise of scale lambda, where the analysis has its inverse."""

import functools

import numpy as np

from dpaudit.domains import VectorDomain

LAMBDA = 0.5  # two counts change by 1 each: epsilon = 2 * LAMBDA


def _vote(data, size, rng, scale):
    return np.argmax(np.asarray(data) + rng.laplace(scale=scale, size=(size, 2)), axis=1)


faulty = functools.partial(_vote, scale=LAMBDA)
mended = functools.partial(_vote, scale=1.0 / LAMBDA)

EXHIBIT = dict(
    kind="noise",
    source="vanderschaarlab/mlforhealthlabpub#36",
    wrong="PATE-GAN draws the noise of the teachers' votes with scale lambda instead of 1 / lambda.",
    claim="eps=1",
    domain=VectorDomain(2, 0, 10, change=1, adjacency="moved", integer=True),
    pair=(np.array([5, 5]), np.array([6, 4])),
)
