"""A query raises on an empty table."""

import numpy as np

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    total = None
    for value in data:
        total = min(max(value, 0.0), 1.0) + (total or 0.0)
    return total + rng.laplace(size=size)  # None of an empty table


def mended(data, size, rng):
    return float(np.clip(data, 0.0, 1.0).sum()) + rng.laplace(size=size)


EXHIBIT = dict(
    kind="exceptions and sizes",
    source="opendp/smartnoise-sdk#75",
    wrong="SUM and COUNT raise a TypeError on an empty database, and return a noisy number on any other one.",
    claim="eps=1",
    domain=DatasetDomain.between(0.0, 1.0),
    pair=([], [1.0]),
)
