"""A sparse vector without a cutoff."""

import numpy as np

from dpaudit.domains import VectorDomain

EPSILON = 1.0


def _passes(data, scale, size, rng):
    thresholds = rng.laplace(scale=2.0 / EPSILON, size=(size, 1))
    return (np.asarray(data) + rng.laplace(scale=scale, size=(size, len(data))) >= thresholds).astype(int)


def faulty(data, size, rng):
    return _passes(data, 2.0 / EPSILON, size, rng)


def mended(data, size, rng):
    return _passes(data, 4.0 * len(data) / EPSILON, size, rng)


EXHIBIT = dict(
    kind="selection",
    source="arXiv:1603.01699 (Algorithm 6)",
    wrong="However many answers pass, the noise stays that of one: the loss grows with their number.",
    claim="eps=1",
    domain=VectorDomain(10, -2.0, 2.0, change=1.0),
    pair=(np.array([1.0] * 5 + [0.0] * 5) - 0.5, np.array([0.0] * 5 + [1.0] * 5) - 0.5),
)
