"""The best split of each feature is found without noise, and a private draw is made among these."""

import numpy as np

from dpaudit.domains import VectorDomain

EPSILON, FEATURES, POINTS = 1.0, 2, 3


def faulty(data, size, rng):
    scores = np.reshape(np.asarray(data, dtype=float), (FEATURES, POINTS))
    best = scores.argmax(axis=1)
    drawn = np.argmax(scores.max(axis=1) * EPSILON / 2.0 + rng.gumbel(size=(size, FEATURES)), axis=1)
    return drawn * POINTS + best[drawn]


def mended(data, size, rng):
    scores = np.asarray(data, dtype=float)
    return np.argmax(scores * EPSILON / 2.0 + rng.gumbel(size=(size, FEATURES * POINTS)), axis=1)


EXHIBIT = dict(
    kind="selection",
    source="sarus-tech/dp-xgboost#3",
    wrong="The exponential mechanism chooses among candidates that a search without noise proposed for each feature.",
    claim="eps=1",
    domain=VectorDomain(FEATURES * POINTS, 0.0, 10.0, change=1.0),
    pair=(np.array([5.0, 4.5, 0, 0, 0, 0]), np.array([4.5, 5.0, 0, 0, 0, 0])),
)
