"""The radius and the angle are rounded before they are added to the true place."""

import numpy as np

from dpaudit.domains import VectorDomain
from dpaudit.privacy.claims import MetricDP
from dpaudit.privacy.metrics import EuclideanMetric

GRID = 0.5


def faulty(data, size, rng):
    radius = np.round(rng.gamma(2.0, size=size) / GRID) * GRID
    angle = np.round(rng.uniform(0.0, 8.0, size=size)) * np.pi / 4.0
    return np.asarray(data) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def mended(data, size, rng):
    radius, angle = rng.gamma(2.0, size=size), rng.uniform(0.0, 2.0 * np.pi, size=size)
    place = np.asarray(data) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return np.round(place / GRID) * GRID


EXHIBIT = dict(
    kind="metric",
    source="arXiv:1212.1984 (finite precision of polar coordinates)",
    wrong="With radius and angle of finite precision the output lies on a polar grid around the true place.",
    claim=MetricDP(EuclideanMetric(1.0)),
    domain=VectorDomain(2, -5.0, 5.0, change=float("inf")),
    pair=(np.zeros(2), np.array([1.0, 0.25])),
)
