"""A released count may equal the threshold, and delta counts those above it."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit.exhibits.exhibit import Release

THRESHOLD = 3


def _noise(size, rng):
    p = -np.expm1(-1.0)
    return rng.geometric(p, size=size) - rng.geometric(p, size=size)


def faulty(data, size, rng):
    noisy = len(data) + _noise(size, rng)
    return np.where((noisy >= THRESHOLD) & (len(data) > 0), noisy, -1)


def mended(data, size, rng):
    noisy = len(data) + _noise(size, rng)
    return np.where((noisy > THRESHOLD) & (len(data) > 0), noisy, -1)


def _count_by():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    counts = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
    release = counts >> dp.m.then_laplace_threshold(scale=1.0, threshold=THRESHOLD)  # reports delta 0.036397

    def counted(data):
        return tuple(sorted(release(list(data)).items()))

    return counted


EXHIBIT = dict(
    kind="delta and conversions",
    source="opendp/opendp#2922",
    wrong="Counts at the threshold are released, and the reported delta is the tail above it: e times too small here.",
    claim="eps=1,delta=0.0364",  # P(1 + noise >= 4) = exp(-3) / (1 + exp(-1)) = 0.03640; P(1 + noise >= 3) = 0.09893
    domain=DatasetDomain(values=(0, 1), largest=6),
    pair=([], [1]),
    releases=(Release("opendp", "0.16.0", _count_by),),
)
