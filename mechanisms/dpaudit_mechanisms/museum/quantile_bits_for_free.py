"""The bits that adapt the clipping norm are released beside the gradients, and are not charged."""

import numpy as np

from dpaudit.domains import DatasetDomain


def _round(data, sigma, sigma_bits, size, rng):
    norms = np.asarray(data, dtype=float)
    total = np.minimum(norms, 1.0).sum()
    bits = np.where(norms <= 1.0, 0.5, -0.5).sum()
    noise = rng.normal(size=(size, 2)) * [sigma, sigma_bits]
    return np.array([total, bits]) + noise


def faulty(data, size, rng):
    return _round(data, 1.0, 0.5, size, rng)


def mended(data, size, rng):
    return _round(data, np.sqrt(2.0), np.sqrt(0.5), size, rng)  # mu**2 = 1/2 + (1/2)**2 / (1/2)


EXHIBIT = dict(
    kind="accounting",
    source="google-parfait/tensorflow-federated#1080",
    wrong="The noise multiplier of adaptive clipping is not raised for the noisy count of clipped updates.",
    claim="mu=1",
    domain=DatasetDomain.between(0.0, 2.0),
    pair=([], [1.0]),
)
