"""Laplace noise by reparametrisation, from a uniform variable of the wrong range."""

import numpy as np

from dpaudit.domains import NumberDomain

SCALE = 2.0  # of a difference of at most 2


def faulty(data, size, rng):
    u = rng.random(size) * 0.5
    return np.clip(data, -1.0, 1.0) - SCALE * np.sign(u) * np.log1p(-2.0 * np.abs(u) + 2.0**-53)


def mended(data, size, rng):
    u = rng.random(size) - 0.5
    return np.clip(data, -1.0, 1.0) - SCALE * np.sign(u) * np.log1p(-2.0 * np.abs(u) + 2.0**-53)


EXHIBIT = dict(
    kind="metric",
    source="arXiv:2202.12138",
    wrong="The reparametrisation of Laplace noise by the inverse of its distribution function is wrong, and the loss "
    "infinite; here the uniform variable covers one half of its range, so that the noise has one sign.",
    claim="eps=1",
    domain=NumberDomain(-1.0, 1.0, change=float("inf")),
    pair=(-1.0, 1.0),
)
