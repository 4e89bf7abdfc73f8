"""Teachers that all see the whole data, with noise for one vote."""

import numpy as np

from dpaudit.domains import DatasetDomain

TEACHERS = 5


def _votes(ones, size, rng):
    return np.array([TEACHERS - ones, ones]) + rng.laplace(scale=2.0, size=(size, 2))


def faulty(data, size, rng):
    says_one = 2 * sum(data) > len(data)  # the same for all: each draws from all records
    return _votes(TEACHERS if says_one else 0, size, rng)


def mended(data, size, rng):
    # Each record belongs to one teacher by a key of its own; here the key is its value, so that at most one vote moves.
    return _votes(min(sum(data), TEACHERS), size, rng)


EXHIBIT = dict(
    kind="learning",
    source="vanderschaarlab/synthcity#275",
    wrong="PATE-GAN's teachers sample a new subset of all data in each round, so that one record moves all votes.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1), largest=9),
    pair=([0, 1], [0, 1, 1]),
)
