"""The noise of measured queries is divided by the number of dimensions of the histogram."""

import numpy as np

from dpaudit.domains import DatasetDomain

QUERIES, DIMENSIONS, EPSILON = 2, 4, 0.5


def _answers(data, scale, size, rng):
    return np.sum(data) + rng.laplace(scale=scale, size=(size, QUERIES))


def faulty(data, size, rng):
    return _answers(data, QUERIES / (EPSILON * DIMENSIONS), size, rng)


def mended(data, size, rng):
    return _answers(data, QUERIES / EPSILON, size, rng)


EXHIBIT = dict(
    kind="noise",
    source="opendp/smartnoise-sdk#472",
    wrong="MWEM divides the scale of the noise of its measurements by the number of dimensions of the data.",
    claim="eps=0.5",
    domain=DatasetDomain(values=(0, 1)),
    pair=([], [1]),
)
