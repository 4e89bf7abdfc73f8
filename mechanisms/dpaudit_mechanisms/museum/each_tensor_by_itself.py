"""Each tensor of an update is clipped by itself, with noise for the whole update."""

import numpy as np

from dpaudit.domains import VectorDomain

TENSORS = 4


def faulty(data, size, rng):
    return np.clip(data, -1.0, 1.0) + rng.normal(size=(size, TENSORS))


def mended(data, size, rng):
    update = np.asarray(data, dtype=float)
    return 0.5 * update / max(1.0, float(np.linalg.norm(update))) + rng.normal(size=(size, TENSORS))


EXHIBIT = dict(
    kind="local and federated",
    source="fedbiomed/fedbiomed#1443",
    wrong="Central privacy clips each parameter to the norm that the whole update may have.",
    claim="mu=1",
    domain=VectorDomain(TENSORS, -3.0, 3.0, change=float("inf")),
    pair=(np.full(TENSORS, -1.0), np.full(TENSORS, 1.0)),
)
