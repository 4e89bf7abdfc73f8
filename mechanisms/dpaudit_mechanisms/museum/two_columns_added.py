"""The sum of two columns gets the sensitivity of one."""

import numpy as np

from dpaudit.domains import DatasetDomain


def _total(data):
    return float(np.clip(np.reshape(data, (-1, 2)), 0.0, 1.0).sum())  # (records, columns)


def faulty(data, size, rng):
    return _total(data) + rng.laplace(scale=1.0, size=size)


def mended(data, size, rng):
    return _total(data) + rng.laplace(scale=2.0, size=size)


EXHIBIT = dict(
    kind="sensitivity",
    source="opendp/smartnoise-sdk#320",
    wrong="SUM(a + b) is noised for the sensitivity of one column, where those of both add up.",
    claim="eps=1",
    domain=DatasetDomain(values=((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))),
    pair=([], [(1.0, 1.0)]),
)
