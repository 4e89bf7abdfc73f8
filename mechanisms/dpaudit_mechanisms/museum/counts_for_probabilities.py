"""Noise that is scaled for probabilities is added to counts."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit.exhibits.exhibit import Exhibit

RECORDS = 6  # public: records are replaced


def _table(data, scale, size, rng):
    return np.bincount(data, minlength=2) + rng.laplace(scale=scale, size=(size, 2))


def faulty(data, size, rng):
    return _table(data, 2.0 / RECORDS, size, rng)


def mended(data, size, rng):
    return _table(data, 2.0, size, rng)


EXHIBIT = Exhibit(
    name="counts-for-probabilities",
    kind="noise",
    source="DataResponsibly/DataSynthesizer#34",
    wrong="PrivBayes adds noise of scale 2 / (n epsilon), which is for probabilities, to the counts.",
    claim="eps=1",
    faulty=faulty,
    mended=mended,
    domain=DatasetDomain(values=(0, 1), largest=RECORDS, smallest=RECORDS, adjacency="replace_one"),
    pair=([0] * RECORDS, [1] + [0] * (RECORDS - 1)),
)
