"""Each local step is clipped, and the sum of the steps is sent."""

import numpy as np

from dpaudit.domains import NumberDomain

STEPS, NORM = 5, 1.0


def faulty(data, size, rng):
    update = STEPS * np.clip(data, -NORM, NORM)
    return update + rng.laplace(scale=2.0 * NORM, size=size)


def mended(data, size, rng):
    update = np.clip(STEPS * data, -NORM, NORM)
    return update + rng.laplace(scale=2.0 * NORM, size=size)


EXHIBIT = dict(
    kind="local and federated",
    source="APPFL/APPFL#151",
    wrong="clip_norm bounds the gradient of a step; the weights that are sent move by that in each local step.",
    claim="eps=1",
    domain=NumberDomain(-3.0, 3.0, change=float("inf")),
    pair=(-1.0, 1.0),
)
