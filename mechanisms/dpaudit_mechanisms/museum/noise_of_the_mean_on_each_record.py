"""Each record is released with noise for the sensitivity of the mean."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published


def faulty(data, size, rng):
    return np.asarray(data, dtype=float) + rng.laplace(scale=2.0 / len(data), size=(size, len(data)))


def mended(data, size, rng):
    return np.asarray(data, dtype=float) + rng.laplace(size=(size, len(data)))


EXHIBIT = dict(
    kind="sensitivity",
    source="DiffPriv 1.0.3, diff.lapmech (found by this museum)",
    wrong="The sensitivity is estimated for a function of the column, such as its mean; the noise of that size is "
    "added to each record, and the records are written out.",
    claim="eps=1",
    domain=DatasetDomain(values=(0.0, 1.0), largest=8, smallest=4, adjacency="replace_one"),
    pair=([0.0] * 8, [0.0] * 7 + [1.0]),
    releases=(published("diffpriv_laplace", "DiffPriv.diff.lapmech(file, path, epsilon=1, f=mean)"),),
)
