"""One record is replaced, and the noise is that of a record which is added: the clipping norm, once."""

import numpy as np

from dpaudit.domains import DatasetDomain

NORM = 1.0


def _sum(data):
    return np.clip(data, -NORM, NORM).sum()


def faulty(data, size, rng):
    return _sum(data) + rng.normal(scale=NORM, size=size)


def mended(data, size, rng):
    return _sum(data) + rng.normal(scale=2.0 * NORM, size=size)


EXHIBIT = dict(
    kind="neighbours",
    source="google/differential-privacy#464",
    wrong="The accountant takes noise over the clipping norm for noise over the sensitivity under replace-one "
    "adjacency, where two clipped records differ by twice the norm.",
    claim="mu=1",
    domain=DatasetDomain.between(-NORM, NORM, largest=6, smallest=1, adjacency="replace_one"),
    pair=([-1.0], [1.0]),
)
