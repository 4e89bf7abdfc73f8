"""Amounts in cents, and noise in whole dollars: the last two digits pass through."""

import numpy as np

from dpaudit.domains import DatasetDomain

GRAIN, BOUND = 100, 1_000  # cents


def _noise(scale, size, rng):
    p = -np.expm1(-1.0 / scale)
    return rng.geometric(p, size=size) - rng.geometric(p, size=size)


def faulty(data, size, rng):
    return int(np.clip(data, 0, BOUND).sum()) + GRAIN * _noise(BOUND / GRAIN, size, rng)


def mended(data, size, rng):
    dollars = int(np.clip(data, 0, BOUND).astype(int).sum()) // GRAIN  # rounding down may move it by one dollar more
    return GRAIN * (dollars + _noise(BOUND / GRAIN + 1.0, size, rng))


EXHIBIT = dict(
    kind="post-processing",
    source="google/differential-privacy, common_docs/Secure_Noise_Generation.pdf (the input has to be on the "
    "noise's grid)",
    wrong="The noise is a multiple of a grain that is coarser than the data, and the sum is not rounded to it.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1_000, 500, 1, 437)),
    pair=([], [437]),
)
