"""A clamp by two comparisons lets NaN through."""

import math

from dpaudit.domains import DatasetDomain


def _clamped(value):
    if value > 1.0:
        return 1.0
    return 0.0 if value < 0.0 else value


def faulty(data, size, rng):
    return sum(_clamped(value) for value in data) + rng.laplace(size=size)


def mended(data, size, rng):
    return sum(0.0 if math.isnan(value) else _clamped(value) for value in data) + rng.laplace(size=size)


EXHIBIT = dict(
    kind="not a number",
    source="google/differential-privacy#405",
    wrong="Comparisons with NaN are false, so ClampFloat64 returns it: one record makes the bounded sum NaN.",
    claim="eps=1",
    domain=DatasetDomain.between(-1.0, 2.0, special=(math.nan,)),
    pair=([0.5], [0.5, math.nan]),
)
