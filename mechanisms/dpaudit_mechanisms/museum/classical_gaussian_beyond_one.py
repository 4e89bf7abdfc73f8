"""The classical formula of the Gaussian mechanism, at an epsilon where it does not hold."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain

EPSILON, DELTA = 6.0, 0.4
CLASSICAL = np.sqrt(2.0 * np.log(1.25 / DELTA)) / EPSILON  # 0.2516: delta is 0.587 there
ANALYTIC = 0.2872  # the least sigma is 0.28716 (Balle and Wang 2018, Theorem 8)


def _count(data, size, rng, sigma):
    return len(data) + rng.normal(scale=sigma, size=size)


faulty = functools.partial(_count, sigma=CLASSICAL)
mended = functools.partial(_count, sigma=ANALYTIC)

EXHIBIT = dict(
    kind="delta and conversions",
    source="opendp/smartnoise-sdk#462",
    wrong="sigma = sqrt(2 log(1.25 / delta)) / epsilon is used for epsilon > 1, where its proof does not hold and the "
    "statement is false for large epsilon.",
    claim="eps=6,delta=0.4",
    domain=DatasetDomain(values=(0, 1), largest=6),
    pair=([], [1]),
)
