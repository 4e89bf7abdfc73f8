"""Vectors are clipped in the l2 norm, and Laplace noise is scaled by that norm in many dimensions."""

import numpy as np

from dpaudit.domains import VectorDomain

DIMENSION, CLIP, EPSILON = 16, 1.0, 1.0


def _clipped(data):
    vector = np.asarray(data, dtype=float)
    return vector / max(1.0, float(np.linalg.norm(vector)) / CLIP)


def faulty(data, size, rng):
    return _clipped(data) + rng.laplace(scale=2.0 * CLIP / EPSILON, size=(size, DIMENSION))


def mended(data, size, rng):
    return _clipped(data) + rng.laplace(scale=2.0 * CLIP * np.sqrt(DIMENSION) / EPSILON, size=(size, DIMENSION))


EXHIBIT = dict(
    kind="metric",
    source="arXiv:2109.03175",
    wrong="ADePT clips the encoding of a text by its l2 norm and takes this for its l1 sensitivity.",
    claim="eps=1",
    domain=VectorDomain(DIMENSION, -1.0, 1.0, change=float("inf")),
    pair=(np.full(DIMENSION, -1.0), np.full(DIMENSION, 1.0)),
)
