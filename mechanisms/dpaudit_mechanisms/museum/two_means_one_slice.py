"""Two centres are released, each with the whole slice of the budget."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain

EPSILON = 1.0


def _centres(data, size, rng, scale):
    return np.clip(np.reshape(data, (-1, 2)), 0.0, 1.0).sum(axis=0) + rng.laplace(scale=scale, size=(size, 2))


faulty = functools.partial(_centres, scale=1.0 / EPSILON)
mended = functools.partial(_centres, scale=2.0 / EPSILON)

EXHIBIT = dict(
    kind="accounting",
    source="IBM/differential-privacy-library#104",
    wrong="Linear regression centres X and y privately with one slice of the budget for both: composition is left out.",
    claim="eps=1",
    domain=DatasetDomain(values=((0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0))),
    pair=([], [(1.0, 1.0)]),
)
