"""The exact least and largest value are written into the description of the release."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.releases import program


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
    releases=(
        Release(
            "datasynthesizer",
            "0.1.13",
            program=program("datasynthesizer_range"),
            needs=("numpy", "pandas", "scikit-learn", "python-dateutil"),
            called="describe_dataset_in_independent_attribute_mode(file, epsilon=1)",
        ),
    ),
)
