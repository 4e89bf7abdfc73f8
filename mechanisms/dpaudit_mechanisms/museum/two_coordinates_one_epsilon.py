"""Latitude and longitude each get noise for the whole epsilon."""

import numpy as np

from dpaudit.domains import VectorDomain

EPSILON, SENSITIVITY = 1.0, 1.0


def faulty(data, size, rng):
    return np.asarray(data) + rng.laplace(scale=SENSITIVITY / EPSILON, size=(size, 2))


def mended(data, size, rng):
    return np.asarray(data) + rng.laplace(scale=2.0 * SENSITIVITY / EPSILON, size=(size, 2))


EXHIBIT = dict(
    kind="metric",
    source="SatyamPandey-07/WorkSphere#1522",
    wrong="Two independent Laplace releases with the same epsilon for the two coordinates spend twice what is charged.",
    claim="eps=1",
    domain=VectorDomain(2, -5.0, 5.0, change=SENSITIVITY),
    pair=(np.zeros(2), np.ones(2)),
)
