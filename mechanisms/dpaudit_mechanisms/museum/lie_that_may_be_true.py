"""Randomised response whose lie may be the truth, with the epsilon of one that never is."""

import numpy as np

from dpaudit.domains import ListedDomain

P = np.exp(1.0) / (1.0 + np.exp(1.0))


def faulty(data, size, rng):
    coin = rng.random(size) < P
    return np.where(rng.random(size) < P, data, coin == data).astype(int)


def mended(data, size, rng):
    return np.where(rng.random(size) < P, data, 1 - data)


EXHIBIT = dict(
    kind="local and federated",
    source="opendp/opendp#480",
    wrong="The answer is the truth with p + (1 - p) p instead of p, as the lie is drawn from all values.",
    claim="eps=1",
    domain=ListedDomain((0, 1)),
    pair=(0, 1),
)
