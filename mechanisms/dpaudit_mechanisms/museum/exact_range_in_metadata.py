"""The exact least and largest value are written into the description of the release."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published


def _described(low, high, data, size, rng):
    return [(low, high, count) for count in len(data) + rng.laplace(size=size)]


def faulty(data, size, rng):
    return _described(float(np.min(data)), float(np.max(data)), data, size, rng)


def mended(data, size, rng):
    return _described(0.0, 10.0, data, size, rng)


EXHIBIT = dict(
    kind="neighbours",
    source="google/dpsynth#34",
    wrong="Quantiles are private, but the exact minimum and maximum they start from are returned in the descriptor.",
    claim="eps=1",
    domain=DatasetDomain.between(0.0, 10.0, smallest=1),
    pair=([5.0, 5.0], [5.0, 5.0, 10.0]),
    releases=(published("datasynthesizer_range", "describe_dataset_in_independent_attribute_mode(file, epsilon=1)"),),
)
