"""Noise that is scaled for probabilities is added to counts."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain

RECORDS = 6  # public: records are replaced


def _table(data, size, rng, scale):
    return np.bincount(data, minlength=2) + rng.laplace(scale=scale, size=(size, 2))


faulty = functools.partial(_table, scale=2.0 / RECORDS)
mended = functools.partial(_table, scale=2.0)

EXHIBIT = dict(
    kind="noise",
    source="DataResponsibly/DataSynthesizer#34",
    wrong="PrivBayes adds noise of scale 2 / (n epsilon), which is for probabilities, to the counts.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1), largest=RECORDS, smallest=RECORDS, adjacency="replace_one"),
    pair=([0] * RECORDS, [1] + [0] * (RECORDS - 1)),
)
