"""Synthetic records take their categories from the data."""

import numpy as np

from dpaudit.domains import DatasetDomain

CATEGORIES, ROWS = ("a", "b", "c", "rare"), 6


def _synthetic(domain, data, size, rng):
    counts = np.array([list(data).count(value) for value in domain])
    noisy = np.maximum(counts + rng.laplace(size=(size, len(domain))), 0.0) + 0.05
    picks = [rng.choice(len(domain), p=row / row.sum(), size=ROWS) for row in noisy]
    return [tuple(domain[k] for k in sorted(row.tolist())) for row in picks]


def faulty(data, size, rng):
    return _synthetic(sorted(set(data)) or ["a"], data, size, rng)


def mended(data, size, rng):
    return _synthetic(CATEGORIES, data, size, rng)


EXHIBIT = dict(
    kind="synthetic data",
    source="alan-turing-institute/reprosyn#38",
    wrong="Methods read the domain from the data set that they are given: a rare category can come out only if "
    "it went in.",
    claim="eps=1",
    domain=DatasetDomain(values=CATEGORIES, largest=8),
    pair=(["a", "b"], ["a", "b", "rare"]),
)
