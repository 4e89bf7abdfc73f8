"""One key of a pseudorandom generator for the noise of all layers."""

import numpy as np

from dpaudit.domains import VectorDomain

LAYERS = 3


def faulty(data, size, rng):
    return np.asarray(data) + rng.normal(size=(size, 1)) * np.ones(LAYERS)


def mended(data, size, rng):
    return np.asarray(data) + rng.normal(size=(size, LAYERS))


EXHIBIT = dict(
    kind="noise",
    source="jax-ml/jax#3646",
    wrong="The example of DP-SGD draws the noise of every parameter with the same key: differences of layers "
    "have none.",
    claim="mu=1",
    domain=VectorDomain(LAYERS, -1.0, 1.0, change=0.5),
    pair=(np.zeros(LAYERS), np.array([0.5, 0.0, -0.5])),
)
