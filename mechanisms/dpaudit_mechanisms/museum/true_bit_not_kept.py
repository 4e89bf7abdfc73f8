"""Unary encoding that does not keep the bit of the true value with its probability."""

import functools

import numpy as np

from dpaudit.domains import ListedDomain
from dpaudit_mechanisms.museum.releases import published

EPSILON, VALUES = 0.5, 4
Q = 1.0 / (np.exp(EPSILON) + 1.0)  # optimal unary encoding: p = 1/2


def _bits(data, size, rng, p):
    keep = np.full(VALUES, Q)
    keep[data] = p
    return (rng.random((size, VALUES)) < keep).astype(int)


faulty = functools.partial(_bits, p=0.5 + 0.5 * Q)  # kept with 1/2, else drawn like every other bit
mended = functools.partial(_bits, p=0.5)

EXHIBIT = dict(
    kind="local and federated",
    source="Samuel-Maddock/pure-LDP#11",
    wrong="The client of unary encoding perturbs the bit of the true value with another probability than p.",
    claim="eps=0.5",
    domain=ListedDomain(tuple(range(VALUES))),
    pair=(0, 1),
    releases=(
        published("pure_ldp_unary", "UEClient(epsilon=0.5, d=4, use_oue=True).privatise(value)"),
        published("pure_ldp_unary", "UEClient(epsilon=0.5, d=4, use_oue=True).privatise(value)", "1.2.0", mended=True),
    ),
)
