"""The standard deviation grows with the root of the sensitivity."""

import numpy as np

from dpaudit.domains import NumberDomain
from dpaudit_mechanisms.museum.releases import published

SENSITIVITY, DELTA = 100.0, 1e-5


def faulty(data, size, rng):
    return data + rng.normal(scale=np.sqrt(SENSITIVITY * np.log(1.25 / DELTA)), size=size)


def mended(data, size, rng):
    return data + rng.normal(scale=SENSITIVITY * np.sqrt(2.0 * np.log(1.25 / DELTA)), size=size)


EXHIBIT = dict(
    kind="delta and conversions",
    source="ornl-presto 0.1.29, applyDPGaussian (found by this museum)",
    wrong="The formula of the Gaussian mechanism has the sensitivity under the root, and the factor 2 is left out.",
    claim="eps=1,delta=1e-05",
    domain=NumberDomain(0.0, SENSITIVITY, change=SENSITIVITY),
    pair=(0.0, SENSITIVITY),
    releases=(published("ornl_presto_gaussian", "applyDPGaussian([value], sensitivity=100, epsilon=1, delta=1e-5)"),),
)
