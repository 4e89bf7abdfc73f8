"""The accountant charges less for less noise."""

import numpy as np

from dpaudit.domains import DatasetDomain

BUDGET = 1.0  # of mu
REQUESTED = 0.05  # sigma


def _answer(data, sigma, size, rng):
    return np.clip(data, 0.0, 1.0).sum() + rng.normal(scale=sigma, size=size)


def faulty(data, size, rng):
    return _answer(data, REQUESTED, size, rng) if REQUESTED <= BUDGET else np.full(size, np.nan)


def mended(data, size, rng):
    return _answer(data, REQUESTED, size, rng) if 1.0 / REQUESTED <= BUDGET else np.full(size, np.nan)


EXHIBIT = dict(
    kind="accounting",
    source="OpenMined/PySyft#6914",
    wrong="publish(sigma=...) with less noise spends less of the budget, so that the most accurate answers are "
    "allowed.",
    claim="mu=1",
    domain=DatasetDomain.between(0.0, 1.0),
    pair=([], [1.0]),
)
