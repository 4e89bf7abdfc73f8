"""A variance squares the values and scales the noise by the bounds as they were."""

import numpy as np

from dpaudit.domains import DatasetDomain

HIGH = 50.0


def faulty(data, size, rng):
    return np.square(np.clip(data, 0.0, HIGH)).sum() + rng.laplace(scale=HIGH, size=size)


def mended(data, size, rng):
    return np.square(np.clip(data, 0.0, HIGH)).sum() + rng.laplace(scale=HIGH**2, size=size)


EXHIBIT = dict(
    kind="sensitivity",
    source="opendp/smartnoise-sdk#203",
    wrong="The sum of squares for VARIANCE gets noise for the clamping bounds of the values, not of their squares.",
    claim="eps=1",
    domain=DatasetDomain.between(0.0, HIGH),
    pair=([], [HIGH]),
)
