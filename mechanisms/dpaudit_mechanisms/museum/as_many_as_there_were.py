"""Synthetic records, as many as there were real ones."""

import numpy as np

from dpaudit.domains import DatasetDomain


def _synthetic(data, rows, rng):
    counts = np.maximum(np.bincount(np.asarray(data, dtype=int), minlength=2) + rng.laplace(size=2), 0.0) + 1e-9
    return [int(value) for value in rng.choice(2, p=counts / counts.sum(), size=rows)]


def faulty(data, size, rng):
    return [tuple(_synthetic(data, len(data), rng)) for _ in range(size)]


def mended(data, size, rng):
    return [tuple(_synthetic(data, 5, rng)) for _ in range(size)]


EXHIBIT = dict(
    kind="exceptions and sizes",
    source="diffix/syndiffix#31",
    wrong="The synthetic table has as many rows as the original one; the pull request adds noise to their number.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1), largest=8),
    pair=([0, 1], [0, 1, 1]),
)
