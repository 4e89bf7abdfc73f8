"""The seed of the noise is a fingerprint of the data, without a key."""

import zlib

import numpy as np

from dpaudit.domains import DatasetDomain


def faulty(data, size, rng):
    seed = zlib.crc32(repr(sorted(data)).encode())
    return np.full(size, len(data) + np.random.default_rng(seed).laplace())


def mended(data, size, rng):
    return len(data) + rng.laplace(size=size)


EXHIBIT = dict(
    kind="noise",
    source="world-federation-of-advertisers/cross-media-measurement#4387",
    wrong="The noise is seeded by a keyless fingerprint of the data: whoever guesses the data can compute the "
    "release, and test the guess.",
    claim="eps=1",
    domain=DatasetDomain(values=(0, 1)),
    pair=([], [1]),
)
