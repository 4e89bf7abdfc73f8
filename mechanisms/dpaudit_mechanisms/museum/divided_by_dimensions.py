"""The noise of measured queries is divided by the number of dimensions of the histogram."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain

QUERIES, DIMENSIONS, EPSILON = 2, 4, 0.5


def _answers(data, size, rng, scale):
    return np.sum(data) + rng.laplace(scale=scale, size=(size, QUERIES))


faulty = functools.partial(_answers, scale=QUERIES / (EPSILON * DIMENSIONS))
mended = functools.partial(_answers, scale=QUERIES / EPSILON)

EXHIBIT = dict(
    kind="noise",
    source="opendp/smartnoise-sdk#472",
    wrong="MWEM divides the scale of the noise of its measurements by the number of dimensions of the data.",
    claim="eps=0.5",
    domain=DatasetDomain(values=(0, 1)),
    pair=([], [1]),
)
