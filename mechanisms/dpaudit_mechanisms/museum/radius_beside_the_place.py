"""The drawn distance is released beside the place that was moved by it."""

import functools

import numpy as np

from dpaudit.domains import VectorDomain
from dpaudit.privacy.claims import MetricDP
from dpaudit.privacy.metrics import EuclideanMetric
from dpaudit_mechanisms.museum.releases import published


def _moved(data, size, rng, told):
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, size), rng.gamma(2.0, size=size)
    step = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return np.column_stack([np.asarray(data) + step, radius if told else np.zeros(size)])


faulty = functools.partial(_moved, told=True)
mended = functools.partial(_moved, told=False)

EXHIBIT = dict(
    kind="metric",
    source="trasgoDP 2.1.0, geoindis.metric_privacy, column radius_m (found by this museum)",
    wrong="The result has the drawn radius in a column: the true place is on a circle that is known exactly, which "
    "rules out nearly every other place.",
    claim=MetricDP(EuclideanMetric(1.0)),
    domain=VectorDomain(2, -5, 5, change=2.0),
    pair=(np.array([0.0, 0.0]), np.array([0.0, 1.0])),
    releases=(published("trasgodp_radius", "metric_privacy(table, 'lat', 'lon', epsilon of 1 a degree, seed=fresh)"),),
)
