"""A Laplace distribution cut off at the range of the answer, and normalised."""

import numpy as np

from dpaudit.domains import DatasetDomain

SCALE, MAX_COUNT = 2.0, 3


def _inverse(data, low, high, scale, size, rng):
    """Laplace noise around the count, conditioned on the range, by its inverse distribution function."""
    centre = float(min(len(data), MAX_COUNT))

    def below(value):
        shifted = (value - centre) / scale
        return 0.5 * np.exp(shifted) if shifted < 0.0 else 1.0 - 0.5 * np.exp(-shifted)

    u = rng.uniform(below(low), below(high), size=size)
    return centre + np.where(u < 0.5, scale * np.log(2.0 * u), -scale * np.log(2.0 * (1.0 - u)))


def faulty(data, size, rng):
    return _inverse(data, 0.0, float(MAX_COUNT), SCALE, size, rng)


def mended(data, size, rng):
    return np.clip(min(len(data), MAX_COUNT) + rng.laplace(scale=SCALE, size=size), 0.0, MAX_COUNT)


EXHIBIT = dict(
    kind="post-processing",
    source="arXiv:1911.00602",
    wrong="Truncating the noise to the valid range and normalising depends on the true answer, and costs up to "
    "twice epsilon.",
    claim="eps=0.5",
    domain=DatasetDomain(values=(0, 1), largest=6),
    pair=([], [1]),
)
