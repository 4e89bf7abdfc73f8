"""Permute-and-flip with the concentrated budget of the exponential mechanism."""

import numpy as np

from dpaudit.domains import VectorDomain
from dpaudit_mechanisms.museum.releases import published

SCALE = 1.0  # two changes of 1: epsilon = 2, and rho = epsilon**2 / 8 = 0.5


def faulty(data, size, rng):
    return np.argmax(np.asarray(data) + rng.exponential(scale=SCALE, size=(size, len(data))), axis=1)


def mended(data, size, rng):
    return np.argmax(np.asarray(data) + rng.gumbel(scale=SCALE, size=(size, len(data))), axis=1)


EXHIBIT = dict(
    kind="selection",
    source="opendp/opendp#2911",
    wrong="Noisy max runs permute-and-flip, which is not of bounded range, and reports rho = epsilon**2 / 8.",
    claim="rho=0.5",
    domain=VectorDomain(2, -2, 2, change=1, integer=True),
    pair=(np.array([0, 0]), np.array([1, -1])),
    releases=(published("opendp_noisy_max", "make_noisy_max(..., zero_concentrated_divergence(), scale=1)"),),
)
