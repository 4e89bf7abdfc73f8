"""The documentation of an interface has the scale of the noise upside down."""

import numpy as np

from dpaudit.domains import NumberDomain

EPSILON, BUDGET = 2.0, 10.0  # of contributions of one browser, l1


def faulty(data, size, rng):
    return data + rng.laplace(scale=EPSILON / BUDGET, size=size)


def mended(data, size, rng):
    return data + rng.laplace(scale=BUDGET / EPSILON, size=size)


EXHIBIT = dict(
    kind="noise",
    source="WICG/attribution-reporting-api#1329",
    wrong="The text says that Laplace(epsilon / L1) noise gives epsilon: somebody who implements it divides the "
    "wrong way.",
    claim="eps=2",
    domain=NumberDomain(0.0, 100.0, change=BUDGET),
    pair=(0.0, np.float64(10.0)),
)
