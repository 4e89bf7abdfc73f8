"""An outlier widens the grid on which all synthetic values lie."""

import numpy as np

from dpaudit.domains import DatasetDomain

STEPS = 10


def _values(low, high, data, size, rng):
    counts = np.histogram(np.clip(data, low, high), np.linspace(low, high, STEPS + 1))[0]
    noisy = counts + rng.laplace(size=(size, STEPS))
    return low + (high - low) * np.argmax(noisy, axis=1) / (STEPS - 1)


def faulty(data, size, rng):
    return _values(0.0, max([*data, 1.0]), data, size, rng)


def mended(data, size, rng):
    return _values(0.0, 50.0, data, size, rng)


EXHIBIT = dict(
    kind="synthetic data",
    source="arXiv:2011.07018",
    wrong="PATE-GAN and PrivBayes implementations learn ranges and categories from the raw data: an outlier "
    "shows in the synthetic data, whatever the noise.",
    claim="eps=1",
    domain=DatasetDomain(values=(0.0, 1.0, 2.0, 50.0), largest=8),
    pair=([1.0, 2.0], [1.0, 2.0, 50.0]),
)
