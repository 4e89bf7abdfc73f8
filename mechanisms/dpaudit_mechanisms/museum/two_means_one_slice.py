"""Two centres are released, each with the whole slice of the budget."""

import numpy as np

from dpaudit.domains import DatasetDomain

EPSILON = 1.0


def _centres(data, scale, size, rng):
    return np.clip(np.reshape(data, (-1, 2)), 0.0, 1.0).sum(axis=0) + rng.laplace(scale=scale, size=(size, 2))


def faulty(data, size, rng):
    return _centres(data, 1.0 / EPSILON, size, rng)


def mended(data, size, rng):
    return _centres(data, 2.0 / EPSILON, size, rng)


EXHIBIT = dict(
    kind="accounting",
    source="IBM/differential-privacy-library#104",
    wrong="Linear regression centres X and y privately with one slice of the budget for both: composition is left out.",
    claim="eps=1",
    domain=DatasetDomain(values=((0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0))),
    pair=([], [(1.0, 1.0)]),
)
