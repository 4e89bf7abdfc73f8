"""The epsilon of a round is divided by the number of rounds so far."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain

ROUNDS = 4


def _rounds(data, size, rng, sigma):
    return np.clip(data, -1.0, 1.0).sum() + rng.normal(scale=sigma, size=(size, ROUNDS))


faulty = functools.partial(_rounds, sigma=1.0)
mended = functools.partial(_rounds, sigma=np.sqrt(ROUNDS))

EXHIBIT = dict(
    kind="accounting",
    source="raptor7197/caamas#36",
    wrong="epsilon_used grows by noise_multiplier / rounds, which is no accountant: each round spends as much "
    "as the first.",
    claim="mu=1",
    domain=DatasetDomain.between(-1.0, 1.0),
    pair=([], [1.0]),
)
