"""Noise without holes is added to the answer, and the sum has the precision of the larger one."""

import numpy as np

from dpaudit.domains import NumberDomain
from dpaudit.exhibits.exhibit import Release

GRID = 2.0**-20


def faulty(data, size, rng):
    scale = 1.0
    return (rng.laplace(size=size) + data / scale) * scale


def mended(data, size, rng):
    p = -np.expm1(-GRID / (1.0 + GRID))
    return (np.round(data / GRID) + rng.geometric(p, size=size) - rng.geometric(p, size=size)) * GRID


def _diffprivlib():
    from diffprivlib.mechanisms import Laplace

    def release(data, rng):
        return Laplace(epsilon=1.0, sensitivity=1.0, random_state=int(rng.integers(2**31))).randomise(float(data))

    return release


EXHIBIT = dict(
    kind="floating point",
    source="opendp/opendp#414",
    wrong="The precision of a sum is that of its less precise summand, whatever the noise itself looks like.",
    claim="eps=1",
    domain=NumberDomain(0.0, 1.0, change=1.0),
    pair=(0.0, 1.0),
    channel="low bits",
    releases=(Release("diffprivlib", "0.6.6", _diffprivlib),),
)
