"""A generator with a fixed default seed: its output is a function of the data."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published


def faulty(data, size, rng):
    return np.full(size, len(data) + np.random.default_rng(0).laplace())


def mended(data, size, rng):
    return len(data) + rng.laplace(size=size)


EXHIBIT = dict(
    kind="noise",
    source="alan-turing-institute/tapas#101",
    wrong="The PrivBayes generator has a seed argument with a fixed default value, which makes it deterministic.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1)),
    pair=([], [1]),
    releases=(published("syndp_laplace", "laplace_mechanism(count, sensitivity=1, epsilon=1)"),),
)
