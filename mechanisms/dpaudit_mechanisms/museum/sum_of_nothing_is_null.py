"""SUM over no rows is NULL, which is passed on as it is."""

import numpy as np

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    if not len(data):
        return np.full(size, np.nan)
    return np.clip(data, 0.0, 1.0).sum() + rng.laplace(size=size)


def mended(data, size, rng):
    return np.clip(data, 0.0, 1.0).sum() + rng.laplace(size=size)


EXHIBIT = dict(
    kind="not a number",
    source="opendp/smartnoise-sdk#92",
    wrong="One record against none: the sum of an empty table is NULL instead of noise around 0.",
    claim="eps=1",
    domain=DatasetDomain.between(0.0, 1.0),
    pair=([], [1.0]),
)
