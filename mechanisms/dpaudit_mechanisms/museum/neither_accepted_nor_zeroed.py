"""Weights that are neither accepted nor candidates leave the client as they are."""

import functools

import numpy as np

from dpaudit.domains import VectorDomain

GAMMA, WEIGHTS, ACCEPTED = 1.0, 6, 3


def _filtered(data, size, rng, rest):
    chosen = rng.random((size, WEIGHTS)).argsort(axis=1)[:, :ACCEPTED]
    clipped = np.clip(data, -GAMMA, GAMMA)
    noisy = np.clip(clipped + rng.laplace(scale=2.0 * GAMMA * ACCEPTED, size=(size, WEIGHTS)), -GAMMA, GAMMA)
    mask = np.zeros((size, WEIGHTS), dtype=bool)
    np.put_along_axis(mask, chosen, True, axis=1)
    return np.where(mask, noisy, clipped if rest else 0.0)


faulty = functools.partial(_filtered, rest=True)
mended = functools.partial(_filtered, rest=False)

EXHIBIT = dict(
    kind="local and federated",
    source="NVIDIA/NVFlare#343",
    wrong="SVTPrivacy chooses some of the accepted weights; the others are sent clipped, without noise.",
    claim="eps=1",
    domain=VectorDomain(WEIGHTS, -2.0, 2.0, change=float("inf")),
    pair=(np.zeros(WEIGHTS), np.full(WEIGHTS, 0.5)),
)
