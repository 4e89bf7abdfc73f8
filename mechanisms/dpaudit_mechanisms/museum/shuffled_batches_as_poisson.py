"""Batches of a shuffled epoch, with the budget of batches that are drawn independently."""

import numpy as np

from dpaudit.domains import DatasetDomain

BATCHES, SIGMA = 4, 0.1  # drawn with probability 1/4 each time: delta at most 1 - (3/4)**4 = 0.684


def _epoch(members, data, size, rng):
    gradients = np.clip(data, 0.0, 1.0)  # (records,)
    sums = np.einsum("srb,r->sb", members, gradients) if len(gradients) else np.zeros((size, BATCHES))
    return sums + rng.normal(scale=SIGMA, size=(size, BATCHES))


def faulty(data, size, rng):
    batch = rng.integers(BATCHES, size=(size, len(data)))
    return _epoch(np.eye(BATCHES)[batch], data, size, rng)


def mended(data, size, rng):
    members = rng.random((size, len(data), BATCHES)) < 1.0 / BATCHES
    return _epoch(members.astype(float), data, size, rng)


EXHIBIT = dict(
    kind="accounting",
    source="meta-pytorch/opacus#128",
    wrong="The accountant assumes Poisson sampling; batches come from shuffling, so that each record is in one "
    "for certain.",
    claim="eps=1,delta=0.69",
    domain=DatasetDomain.between(0.0, 1.0, largest=6),
    pair=([], [1.0]),
)
