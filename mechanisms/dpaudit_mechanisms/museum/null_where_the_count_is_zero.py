"""A noisy count that is NULL where the true count is zero."""

import numpy as np

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    count = sum(data)
    return np.full(size, np.nan) if count == 0 else count + rng.normal(size=size)


def mended(data, size, rng):
    return sum(data) + rng.normal(size=size)


EXHIBIT = dict(
    kind="not a number",
    source="facebookincubator/velox#14007",
    wrong="noisy_count_gaussian returns NULL when the true count is 0, as its documentation says: no noise there.",
    claim="mu=1",
    domain=DatasetDomain(values=(0, 1)),
    pair=([0], [1]),
)
