"""A generator scales the data by their own least and largest values, and scales back."""

import numpy as np

from dpaudit.domains import DatasetDomain


def _generated(low, high, data, size, rng):
    scaled = (np.clip(data, low, high) - low) / (high - low) if high > low else np.zeros(len(data))
    total = scaled.sum() + rng.laplace(size=size)  # what the model learns, privately
    return low + (high - low) / (1.0 + np.exp(-total))


def faulty(data, size, rng):
    return _generated(min(data, default=0.0), max(data, default=1.0), data, size, rng)


def mended(data, size, rng):
    return _generated(0.0, 100.0, data, size, rng)


EXHIBIT = dict(
    kind="synthetic data",
    source="vanderschaarlab/synthcity#278",
    wrong="PATE-GAN extracts the minimum and maximum of each column from the data without privacy.",
    claim="eps=1",
    domain=DatasetDomain.between(0.0, 100.0, largest=8),
    pair=([10.0, 20.0], [10.0, 20.0, 100.0]),
)
