"""The same draw of noise is added to every coordinate of a mean."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published

WIDTH = 2


def _mean(data, size, rng, coordinates):
    vectors = np.clip(np.asarray(data, dtype=float), 0.0, 1.0)  # (records, WIDTH)
    noise = rng.laplace(scale=WIDTH, size=(size, coordinates))
    return (vectors.sum(axis=0) + noise) / len(vectors)


faulty = functools.partial(_mean, coordinates=1)
mended = functools.partial(_mean, coordinates=WIDTH)

EXHIBIT = dict(
    kind="noise",
    source="eeprivacy 0.0.5, PrivateVectorClampedMeanLaplace (found by this museum)",
    wrong="The mechanism for a single number is given a vector: one draw of noise is added to all coordinates, and "
    "their differences are exact.",
    claim="eps=1",
    domain=DatasetDomain(
        values=((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)), largest=6, smallest=1, adjacency="replace_one"
    ),
    pair=([(0.0, 0.0)], [(1.0, 0.0)]),
    releases=(published("eeprivacy_vector_mean", "PrivateVectorClampedMeanLaplace(...).execute(vectors, epsilon=1)"),),
)
