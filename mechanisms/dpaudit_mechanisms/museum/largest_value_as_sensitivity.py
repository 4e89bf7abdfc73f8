"""The sensitivity of a sum is the largest value that is there."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published

HIGH = 100.0


def faulty(data, size, rng):
    return sum(data) + rng.laplace(scale=max(abs(min(data)), abs(max(data))), size=size)


def mended(data, size, rng):
    return np.clip(data, 0.0, HIGH).sum() + rng.laplace(scale=HIGH, size=size)


EXHIBIT = dict(
    kind="sensitivity",
    source="diff-priv-laplace-python 1.0.5, DiffPrivStatistics.sum, mean and variance (found by this museum)",
    wrong="The bounds that scale the noise are the least and the largest value of the data: the size of the noise "
    "tells how large the largest is.",
    claim="eps=1",
    domain=DatasetDomain.between(1.0, HIGH, largest=8, smallest=1, adjacency="replace_one"),
    pair=([1.0, 1.0], [1.0, HIGH]),
    releases=(published("diff_priv_laplace_sum", "DiffPrivStatistics.sum(values, epsilon=1)"),),
)
