"""The budget is charged only if the data match the query, and refusals show it."""

import numpy as np

from dpaudit.domains import DatasetDomain


def _session(data, charges, size, rng):
    noisy = data.count("ad") + rng.laplace(size=(size, 2))
    if charges:
        noisy[:, 1] = np.nan  # the second query finds no budget
    return noisy


def faulty(data, size, rng):
    return _session(list(data), "ad" in data, size, rng)


def mended(data, size, rng):
    return _session(list(data), True, size, rng)


EXHIBIT = dict(
    kind="accounting",
    source="w3c/attribution#75",
    wrong="Budget is deducted from the epoch of the matching impression alone; whether a later query is refused tells "
    "whether there was one.",
    claim="eps=1",
    domain=DatasetDomain(values=("ad", "other"), largest=6),
    pair=([], ["ad"]),
)
