"""Laplace noise by the inverse of its distribution function, in doubles."""

import numpy as np

from dpaudit.domains import NumberDomain

GRID = 2.0**-20


def faulty(data, size, rng):
    u = rng.random(size) - 0.5
    return data - np.sign(u) * np.log1p(-2.0 * np.abs(u))


def mended(data, size, rng):
    p = -np.expm1(-GRID / (1.0 + GRID))
    steps = rng.geometric(p, size=size) - rng.geometric(p, size=size)
    return (np.round(data / GRID) + steps) * GRID


EXHIBIT = dict(
    kind="floating point",
    source="opendp/smartnoise-core#242",
    wrong="Scaled samples of a library's Laplace generator are added in doubles: most doubles can come from one "
    "input only.",
    claim="eps=1",
    domain=NumberDomain(0.0, 1.0, change=1.0),
    pair=(0.0, 1.0),
    channel="low bits",
)
