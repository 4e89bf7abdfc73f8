"""A sparse vector that adds noise to the threshold alone."""

import numpy as np

from dpaudit.domains import VectorDomain

EPSILON = 1.0


def faulty(data, size, rng):
    thresholds = rng.laplace(scale=2.0 / EPSILON, size=(size, 1))
    return (np.asarray(data) >= thresholds).astype(int)


def mended(data, size, rng):
    count = len(data)  # as many may pass as there are
    thresholds = rng.laplace(scale=2.0 / EPSILON, size=(size, 1))
    return (np.asarray(data) + rng.laplace(scale=4.0 * count / EPSILON, size=(size, count)) >= thresholds).astype(int)


EXHIBIT = dict(
    kind="selection",
    source="arXiv:1603.01699 (Algorithm 5)",
    wrong="Neither the answers have noise nor is there a cutoff: answers of one order never come out in another.",
    claim="eps=1",
    domain=VectorDomain(4, -2.0, 2.0, change=1.0),
    pair=(np.array([0.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])),
)
