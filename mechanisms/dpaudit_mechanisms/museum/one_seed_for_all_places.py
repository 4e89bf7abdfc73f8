"""Planar noise from a seed that is fixed by default: all users move by the same vector."""

import numpy as np

from dpaudit.domains import VectorDomain
from dpaudit.privacy.claims import MetricDP
from dpaudit.privacy.metrics import EuclideanMetric
from dpaudit_mechanisms.museum.releases import published


def _planar(size, rng):
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, size), rng.gamma(2.0, size=size)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def faulty(data, size, rng):
    return np.asarray(data) + np.repeat(_planar(1, np.random.default_rng(42)), size, axis=0)


def mended(data, size, rng):
    return np.asarray(data) + _planar(size, rng)


EXHIBIT = dict(
    kind="metric",
    source="trasgoDP 2.1.0, geoindis.metric_privacy (found by this museum)",
    wrong="The seed has a default value, 42: whoever knows the library takes the same vector off again.",
    claim=MetricDP(EuclideanMetric(1.0)),
    domain=VectorDomain(2, -5, 5, change=2.0),
    pair=(np.array([0.0, 0.0]), np.array([0.0, 1.0])),
    releases=(published("trasgodp_places", "metric_privacy(table, 'lat', 'lon', epsilon of 1 a degree)"),),
)
