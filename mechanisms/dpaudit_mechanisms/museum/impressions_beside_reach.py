"""Suppression needs a noisy count of users and one of impressions, and the budget is charged for one of them."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain

MIN_USERS, MIN_IMPRESSIONS = 2, 3


def _released(data, size, rng, scale):
    reach = len(set(data)) + rng.laplace(scale=scale, size=size)
    impressions = len(data) + rng.laplace(scale=scale, size=size)
    return np.where((reach >= MIN_USERS) & (impressions >= MIN_IMPRESSIONS), impressions, 0.0)


faulty = functools.partial(_released, scale=1.0)
mended = functools.partial(_released, scale=2.0)

EXHIBIT = dict(
    kind="accounting",
    source="world-federation-of-advertisers/cross-media-measurement#2778",
    wrong="With k-anonymity after the noise a count of impressions also needs the noised reach, which nobody charges.",
    claim="eps=1",
    domain=DatasetDomain(values=("u1", "u2", "u3", "u4"), largest=8),
    pair=([], ["u1"]),
)
