"""Gaussian noise of a statistics library, in doubles."""

import numpy as np

from dpaudit.domains import NumberDomain

GRID = 2.0**-20


def faulty(data, size, rng):
    return data + rng.normal(size=size)


def mended(data, size, rng):
    return (np.round(data / GRID) + np.round(rng.normal(size=size) / GRID)) * GRID


EXHIBIT = dict(
    kind="floating point",
    source="world-federation-of-advertisers/cross-media-measurement#1357",
    wrong="The noisers use the Gaussian and Laplace classes of a statistics library, whose low bits tell the answer.",
    claim="eps=4,delta=0.001",
    domain=NumberDomain(0.0, 1.0, change=1.0),
    pair=(0.0, 1.0),
    channel="low bits",
)
