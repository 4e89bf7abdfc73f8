"""The domain of a histogram is the largest value in the data, plus one."""

import numpy as np

from dpaudit.domains import DatasetDomain

CELLS = 6


def _histogram(data, cells, size, rng):
    return np.bincount(np.asarray(data, dtype=int), minlength=cells)[:cells] + rng.laplace(size=(size, cells))


def faulty(data, size, rng):
    return list(_histogram(data, max(data, default=0) + 1, size, rng))


def mended(data, size, rng):
    return list(_histogram(data, CELLS, size, rng))


EXHIBIT = dict(
    kind="neighbours",
    source="sassoftware/dpmm#18",
    wrong="Where no domain is given it is inferred as max + 1 of each column, so that the shape of the release "
    "tells the largest value.",
    claim="eps=1",
    domain=DatasetDomain(values=tuple(range(CELLS))),
    pair=([0], [0, 5]),
)
