"""Small components are set to zero and large ones truncated, which is called privacy; there is no noise."""

import numpy as np

from dpaudit.domains import VectorDomain

WEIGHTS, MAX_WEIGHT, CHANGE = 6, 0.5, 0.5


def _released(weights):
    limit = np.percentile(np.abs(weights), 50, axis=-1, keepdims=True)
    return np.where(np.abs(weights) >= limit, np.clip(weights, -MAX_WEIGHT, MAX_WEIGHT), 0.0)


def faulty(data, size, rng):
    return np.broadcast_to(_released(np.asarray(data, dtype=float)), (size, WEIGHTS)).copy()


def mended(data, size, rng):
    return _released(np.asarray(data, dtype=float) + rng.laplace(scale=WEIGHTS * CHANGE, size=(size, WEIGHTS)))


EXHIBIT = dict(
    kind="local and federated",
    source="londonaicentre/FLIP#1146",
    wrong="A client's update goes through a filter that zeroes the components of least magnitude and truncates the "
    "others, and adds no noise.",
    claim="eps=1",
    domain=VectorDomain(WEIGHTS, -1.0, 1.0, change=CHANGE),
    pair=(np.zeros(WEIGHTS), np.full(WEIGHTS, 0.5)),
)
