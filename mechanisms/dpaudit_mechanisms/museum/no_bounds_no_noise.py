"""A column without bounds in the metadata has no sensitivity, and then no noise."""

import numpy as np

from dpaudit.domains import DatasetDomain

BOUND = 10.0  # public; what the mended version asks for before it sums


def faulty(data, size, rng):
    sensitivity = None  # no bounds in the metadata
    noise = rng.laplace(scale=sensitivity, size=size) if sensitivity is not None else np.zeros(size)
    return np.sum(data) + noise


def mended(data, size, rng):
    return np.clip(data, 0.0, BOUND).sum() + rng.laplace(scale=BOUND, size=size)


EXHIBIT = dict(
    kind="sensitivity",
    source="opendp/smartnoise-sdk#317",
    wrong="SUM of a column whose bounds are not given has sensitivity None, and the exact sum is returned.",
    claim="eps=1",
    domain=DatasetDomain.between(0.0, BOUND),
    pair=([], [BOUND]),
)
