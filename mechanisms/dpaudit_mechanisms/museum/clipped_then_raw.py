"""The data are clipped, and then the statistic is computed from the data as they were."""

import numpy as np

from dpaudit.domains import DatasetDomain


def _products(pairs):
    return float(np.prod(np.reshape(pairs, (-1, 2)), axis=1).sum()) if len(pairs) else 0.0


def faulty(data, size, rng):
    np.clip(np.reshape(data, (-1, 2)), 0.0, 1.0)  # the result is dropped
    return _products(data) + rng.laplace(size=size)


def mended(data, size, rng):
    return _products(np.clip(np.reshape(data, (-1, 2)), 0.0, 1.0)) + rng.laplace(size=size)


EXHIBIT = dict(
    kind="sensitivity",
    source="opendp/smartnoise-sdk#622",
    wrong="The covariance is computed from the data before clipping: the clipped copy is never used.",
    claim="eps=1",
    domain=DatasetDomain(values=((0.0, 0.0), (1.0, 1.0), (0.5, 1.0), (4.0, 4.0), (-4.0, 4.0))),
    pair=([], [(4.0, 4.0)]),
)
