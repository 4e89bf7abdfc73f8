"""Planar noise whose radius has a cap."""

import numpy as np

from dpaudit.domains import VectorDomain
from dpaudit.privacy.claims import MetricDP
from dpaudit.privacy.metrics import EuclideanMetric

CAP = 3.0


def _moved(data, radius, rng):
    angle = rng.uniform(0.0, 2.0 * np.pi, size=len(radius))
    return np.asarray(data) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def faulty(data, size, rng):
    return _moved(data, np.minimum(rng.gamma(2.0, size=size), CAP), rng)


def mended(data, size, rng):
    return _moved(data, rng.gamma(2.0, size=size), rng)


EXHIBIT = dict(
    kind="metric",
    source="ret1s/trajectory-privacy-protection (cap)",
    wrong="The radius is cut at a largest value, so that a circle around the true place has positive mass.",
    claim=MetricDP(EuclideanMetric(1.0)),
    domain=VectorDomain(2, -5.0, 5.0, change=float("inf")),
    pair=(np.zeros(2), np.array([1.0, 0.0])),
)
