"""Unary encoding that does not keep the bit of the true value with its probability."""

import numpy as np

from dpaudit.domains import ListedDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.releases import program

EPSILON, VALUES = 0.5, 4
Q = 1.0 / (np.exp(EPSILON) + 1.0)  # optimal unary encoding: p = 1/2


def _bits(data, p, size, rng):
    keep = np.full(VALUES, Q)
    keep[data] = p
    return (rng.random((size, VALUES)) < keep).astype(int)


def faulty(data, size, rng):
    return _bits(data, 0.5 + 0.5 * Q, size, rng)  # kept with 1/2, else drawn like every other bit


def mended(data, size, rng):
    return _bits(data, 0.5, size, rng)


EXHIBIT = dict(
    kind="local and federated",
    source="Samuel-Maddock/pure-LDP#11",
    wrong="The client of unary encoding perturbs the bit of the true value with another probability than p.",
    claim="eps=0.5",
    domain=ListedDomain(tuple(range(VALUES))),
    pair=(0, 1),
    releases=(
        Release(
            "pure-ldp",
            "1.1.2",
            program=program("pure_ldp_unary"),
            needs=("numpy", "scipy", "xxhash", "bitarray", "bitstring"),
            called="UEClient(epsilon=0.5, d=4, use_oue=True).privatise(value)",
        ),
        Release(
            "pure-ldp",
            "1.2.0",
            program=program("pure_ldp_unary"),
            needs=("numpy", "scipy", "xxhash", "bitarray", "bitstring"),
            called="UEClient(epsilon=0.5, d=4, use_oue=True).privatise(value)",
            mended=True,
        ),
    ),
)
