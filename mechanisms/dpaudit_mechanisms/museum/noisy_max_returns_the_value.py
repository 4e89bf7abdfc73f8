"""Report noisy max that returns the largest value instead of its place."""

import numpy as np

from dpaudit.domains import VectorDomain

EPSILON = 1.0


def faulty(data, size, rng):
    return np.max(np.asarray(data) + rng.laplace(scale=2.0 / EPSILON, size=(size, len(data))), axis=1)


def mended(data, size, rng):
    return np.argmax(np.asarray(data) + rng.laplace(scale=2.0 / EPSILON, size=(size, len(data))), axis=1)


EXHIBIT = dict(
    kind="selection",
    source="arXiv:1805.10277",
    wrong="The proof is for the index of the largest noisy answer; the value itself leaks with the number of answers.",
    claim="eps=1",
    domain=VectorDomain(6, 0.0, 5.0, change=1.0),
    pair=(np.zeros(6), np.ones(6)),
)
