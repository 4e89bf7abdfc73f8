"""A sparse vector that releases the noisy answer that passed the threshold."""

import numpy as np

from dpaudit.domains import VectorDomain

THRESHOLD, EPSILON = 0.0, 1.0


def _until_above(noisy, thresholds, shown):
    """The place of the first answer above its threshold, and what `shown` has there; -1 and 0 where there is none."""
    above = noisy >= thresholds
    first, found = np.argmax(above, axis=1), above.any(axis=1)
    return np.stack([np.where(found, first, -1), np.where(found, shown[np.arange(len(first)), first], 0.0)], axis=1)


def faulty(data, size, rng):
    thresholds = THRESHOLD + rng.laplace(scale=2.0 / EPSILON, size=(size, 1))
    noisy = np.asarray(data) + rng.laplace(scale=2.0 / EPSILON, size=(size, len(data)))
    return _until_above(noisy, thresholds, noisy)


def mended(data, size, rng):
    thresholds = THRESHOLD + rng.laplace(scale=2.0 / EPSILON, size=(size, 1))
    noisy = np.asarray(data) + rng.laplace(scale=4.0 / EPSILON, size=(size, len(data)))
    return _until_above(noisy, thresholds, np.zeros_like(noisy))


EXHIBIT = dict(
    kind="selection",
    source="arXiv:1603.01699 (Algorithm 3)",
    wrong="The variant outputs the noisy answer itself when it passes the threshold, with noise for one answer: "
    "no finite epsilon for all.",
    claim="eps=1",
    domain=VectorDomain(8, 0.0, 2.0, change=1.0),
    pair=(np.zeros(8), np.array([1.0] * 7 + [0.0])),
)
