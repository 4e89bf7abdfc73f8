"""Laplace noise in doubles on the length of a list."""

import numpy as np

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    return len(data) + rng.laplace(size=size)


def mended(data, size, rng):
    p = -np.expm1(-1.0)
    return len(data) + rng.geometric(p, size=size) - rng.geometric(p, size=size)


EXHIBIT = dict(
    kind="floating point",
    source="IBM/differential-privacy-library#19",
    wrong="The attack on the low bits of Laplace noise tells 0 and 1 apart; here they are the lengths of two lists.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1)),
    pair=([], [0]),
    channel="low bits",
)
