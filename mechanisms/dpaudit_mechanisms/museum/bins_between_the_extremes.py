"""The bins of a synthesiser lie between the least and the largest value of the data."""

import numpy as np

from dpaudit.domains import DatasetDomain

BINS = 4


def _synthetic(low, high, data, size, rng):
    edges = np.linspace(low, high, BINS + 1)
    counts = np.histogram(np.clip(data, low, high), edges)[0] if high > low else np.zeros(BINS)
    noisy = np.maximum(counts + rng.laplace(size=(size, BINS)), 0.0) + 0.1
    chosen = [rng.choice(BINS, p=row / row.sum()) for row in noisy]
    return (edges[chosen] + edges[np.add(chosen, 1)]) / 2.0  # one synthetic value


def faulty(data, size, rng):
    return _synthetic(min(data, default=0.0), max(data, default=0.0), data, size, rng)


def mended(data, size, rng):
    return _synthetic(0.0, 100.0, data, size, rng)


EXHIBIT = dict(
    kind="synthetic data",
    source="hazy/dpart#6",
    wrong="PrivBayes was not given the bounds of the data and took them from the data.",
    claim="eps=1",
    domain=DatasetDomain.between(0.0, 100.0, largest=8),
    pair=([10.0, 20.0], [10.0, 20.0, 100.0]),
)
