"""A sparse vector whose noise does not know how many answers may pass."""

import numpy as np

from dpaudit.domains import VectorDomain

EPSILON, MAX_ANSWERS = 1.0, 4


def _stopped(above):
    """1 above, 0 below, and -1 behind the answer number `MAX_ANSWERS` that passed."""
    passed = np.cumsum(above, axis=1) - above  # before this one
    return np.where(passed >= MAX_ANSWERS, -1, above.astype(int))


def _above(data, threshold_scale, scale, size, rng):
    thresholds = rng.laplace(scale=threshold_scale, size=(size, 1))
    return np.asarray(data) + rng.laplace(scale=scale, size=(size, len(data))) >= thresholds


def faulty(data, size, rng):
    return _stopped(_above(data, 4.0 / EPSILON, 4.0 / (3.0 * EPSILON), size, rng))


def mended(data, size, rng):
    return _stopped(_above(data, 2.0 / EPSILON, 4.0 * MAX_ANSWERS / EPSILON, size, rng))


EXHIBIT = dict(
    kind="selection",
    source="arXiv:1603.01699 (Algorithm 4)",
    wrong="The noise of the answers lacks the factor 2c for c answers that pass: (1 + 6c) / 4 times epsilon in truth.",
    claim="eps=1",
    domain=VectorDomain(8, -2.0, 2.0, change=1.0),
    pair=(np.array([1.0] * 4 + [0.0] * 4) - 0.5, np.array([0.0] * 4 + [1.0] * 4) - 0.5),
)
