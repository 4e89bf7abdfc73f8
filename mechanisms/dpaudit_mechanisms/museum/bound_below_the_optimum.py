"""Truncated Laplace noise whose bound is too small for its sensitivity and epsilon."""

import functools

import numpy as np

from dpaudit.domains import NumberDomain

EPSILON, DELTA, SENSITIVITY = 4.0, 0.01, 10.0
SCALE = SENSITIVITY / EPSILON
RULE = SCALE * np.log(1.0 / DELTA) + 1.0
OPTIMUM = SCALE * np.log1p(np.expm1(EPSILON) / (2.0 * DELTA))


def _truncated(data, size, rng, bound):
    u = rng.uniform(-1.0, 1.0, size=size)
    return data - np.sign(u) * SCALE * np.log1p(-np.abs(u) * -np.expm1(-bound / SCALE))


faulty = functools.partial(_truncated, bound=RULE)
mended = functools.partial(_truncated, bound=OPTIMUM)

EXHIBIT = dict(
    kind="delta and conversions",
    source="world-federation-of-advertisers/cross-media-measurement#4333",
    wrong="The truncation bound (sensitivity / epsilon) ln(1 / delta) + 1 is below the optimal one for large "
    "epsilon and a sensitivity above 1, as the review of the pull request says.",
    claim="eps=4,delta=0.01",
    domain=NumberDomain(0.0, 100.0, change=SENSITIVITY),
    pair=(0.0, 10.0),
)
