"""The clipping norm that was asked for never reaches the clipping."""

import numpy as np

from dpaudit.domains import DatasetDomain

ASKED, DEFAULT = 0.1, 1.0


def faulty(data, size, rng):
    return np.clip(data, -DEFAULT, DEFAULT).sum() + rng.normal(scale=ASKED, size=size)


def mended(data, size, rng):
    return np.clip(data, -ASKED, ASKED).sum() + rng.normal(scale=ASKED, size=size)


EXHIBIT = dict(
    kind="learning",
    source="meta-pytorch/opacus#664",
    wrong="Fast gradient clipping does not use the max_grad_norm of the engine, by which the noise is scaled.",
    claim="mu=1",
    domain=DatasetDomain.between(-2.0, 2.0),
    pair=([], [1.0]),
)
