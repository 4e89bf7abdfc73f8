"""The scale of Gaussian noise is squared before it is passed on."""

import numpy as np

from dpaudit.domains import DatasetDomain

SIGMA = 0.5


def faulty(data, size, rng):
    return np.clip(data, 0.0, 1.0).sum() + rng.normal(scale=SIGMA**2, size=size)


def mended(data, size, rng):
    return np.clip(data, 0.0, 1.0).sum() + rng.normal(scale=SIGMA, size=size)


EXHIBIT = dict(
    kind="noise",
    source="opendp/smartnoise-core#316",
    wrong="The standard deviation of the Gaussian mechanism is squared, which makes it smaller where it is below 1.",
    claim="mu=2",
    domain=DatasetDomain.between(0.0, 1.0),
    pair=([], [1.0]),
)
