"""One counter of sensitivity zero turns the noise of all counters off."""

import numpy as np

from dpaudit.domains import NumberDomain

SENSITIVITIES = np.array([1.0, 0.0])  # the second counter is public


def _counters(data, sigmas, size, rng):
    return np.array([data, 7.0]) + sigmas * rng.normal(size=(size, 2))


def faulty(data, size, rng):
    sigmas = SENSITIVITIES if SENSITIVITIES.all() else np.zeros(2)  # the allocation fails, and is all zeros
    return _counters(data, sigmas, size, rng)


def mended(data, size, rng):
    return _counters(data, SENSITIVITIES, size, rng)


EXHIBIT = dict(
    kind="noise",
    source="privcount/privcount#400",
    wrong="If one counter has sensitivity 0, the allocation of the budget gives every counter a sigma of 0.",
    claim="mu=1",
    domain=NumberDomain(0.0, 20.0, change=1.0),
    pair=(0.0, 1.0),
)
