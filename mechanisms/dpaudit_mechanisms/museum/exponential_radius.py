"""Planar noise whose radius is exponential instead of Gamma of shape 2."""

import numpy as np

from dpaudit.domains import VectorDomain
from dpaudit.privacy.claims import MetricDP
from dpaudit.privacy.metrics import EuclideanMetric


def _moved(data, radius, rng):
    angle = rng.uniform(0.0, 2.0 * np.pi, size=len(radius))
    return np.asarray(data) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def faulty(data, size, rng):
    return _moved(data, rng.exponential(size=size), rng)


def mended(data, size, rng):
    return _moved(data, rng.gamma(2.0, size=size), rng)


EXHIBIT = dict(
    kind="metric",
    source="ret1s/trajectory-privacy-protection",
    wrong="The radius of planar Laplace noise has density r exp(-r): a Gamma distribution of shape 2, not exponential.",
    claim=MetricDP(EuclideanMetric(1.0)),
    domain=VectorDomain(2, -5.0, 5.0, change=float("inf")),
    pair=(np.zeros(2), np.array([1.0, 0.0])),
)
