"""The mean under addition and removal, with the private number of records in its sensitivity."""

import numpy as np

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    n = max(len(data), 1)
    return np.clip(data, 0.0, 1.0).sum() / n + rng.laplace(scale=1.0 / n, size=size)


def mended(data, size, rng):
    total = np.clip(data, 0.0, 1.0).sum() + rng.laplace(scale=2.0, size=size)
    count = len(data) + rng.laplace(scale=2.0, size=size)
    return np.stack([total, count], axis=1)  # (size, 2)


EXHIBIT = dict(
    kind="neighbours",
    source="opendp/smartnoise-core#356",
    wrong="The sensitivity of the mean under add/remove is taken over neighbours of this dataset alone, (U - L) "
    "/ n, so the scale of the noise tells n.",
    claim="eps=1",
    domain=DatasetDomain.between(0.0, 1.0),
    pair=([0.0], [0.0, 1.0]),
)
