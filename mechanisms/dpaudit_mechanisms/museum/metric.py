"""Bugs of claims on a metric: noise on places and on vectors."""

import numpy as np

from dpaudit.domains import NumberDomain, VectorDomain
from dpaudit.privacy.claims import MetricDP
from dpaudit.privacy.metrics import EuclideanMetric
from dpaudit_mechanisms.museum.bugs import Bugs
from dpaudit_mechanisms.museum.releases import published

bug = Bugs("metric")
PLANAR = MetricDP(EuclideanMetric(1.0))
ANY_PLACE, NEAR_PLACE = VectorDomain(2, -5.0, 5.0, change=float("inf")), VectorDomain(2, -5, 5, change=2.0)
ORIGIN = np.zeros(2)


def _step(radius, angle):
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


@bug(
    "ret1s/trajectory-privacy-protection",
    "The radius of planar Laplace noise has density r exp(-r): a Gamma distribution of shape 2, not exponential.",
    PLANAR,
    ANY_PLACE,
    (ORIGIN, np.array([1.0, 0.0])),
)
def exponential_radius(data, size, rng, mended):
    """Planar noise whose radius is exponential instead of Gamma of shape 2."""
    if mended:
        radius = rng.gamma(2.0, size=size)
    else:
        radius = rng.exponential(size=size)
    return np.asarray(data) + _step(radius, rng.uniform(0.0, 2.0 * np.pi, size=size))


@bug(
    "arXiv:2109.03175",
    "ADePT clips the encoding of a text by its l2 norm and takes this for its l1 sensitivity.",
    "eps=1",
    VectorDomain(16, -1.0, 1.0, change=float("inf")),
    (np.full(16, -1.0), np.full(16, 1.0)),
    faulty=2.0,
    mended=2.0 * np.sqrt(16),
)
def l2_clip_laplace_noise(data, size, rng, scale):
    """Vectors are clipped in the l2 norm, and Laplace noise is scaled by that norm in many dimensions."""
    vector = np.asarray(data, dtype=float)
    return vector / max(1.0, float(np.linalg.norm(vector))) + rng.laplace(scale=scale, size=(size, len(vector)))


@bug(
    "trasgoDP 2.1.0, geoindis.metric_privacy (found by this museum)",
    "The seed has a default value, 42: whoever knows the library takes the same vector off again.",
    PLANAR,
    NEAR_PLACE,
    (ORIGIN, np.array([0.0, 1.0])),
    releases=(published("trasgodp_places", "metric_privacy(table, 'lat', 'lon', epsilon of 1 a degree)"),),
)
def one_seed_for_all_places(data, size, rng, mended):
    """Planar noise from a seed that is fixed by default: all users move by the same vector."""
    draws = size
    if not mended:
        rng, draws = np.random.default_rng(42), 1
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, draws), rng.gamma(2.0, size=draws)
    return np.asarray(data) + np.broadcast_to(_step(radius, angle), (size, 2))


@bug(
    "arXiv:1212.1984 (finite precision of polar coordinates)",
    "With radius and angle of finite precision the output lies on a polar grid around the true place.",
    PLANAR,
    ANY_PLACE,
    (ORIGIN, np.array([1.0, 0.25])),
)
def polar_grid(data, size, rng, mended):
    """The radius and the angle are rounded before they are added to the true place."""
    grid, radius = 0.5, rng.gamma(2.0, size=size)
    if mended:
        place = np.asarray(data) + _step(radius, rng.uniform(0.0, 2.0 * np.pi, size=size))
        return np.round(place / grid) * grid
    angle = np.round(rng.uniform(0.0, 8.0, size=size)) * np.pi / 4.0
    return np.asarray(data) + _step(np.round(radius / grid) * grid, angle)


@bug(
    "trasgoDP 2.1.0, geoindis.metric_privacy, column radius_m (found by this museum)",
    "The result has the drawn radius in a column: the true place is on a circle that is known exactly, which rules out "
    "nearly every other place.",
    PLANAR,
    NEAR_PLACE,
    (ORIGIN, np.array([0.0, 1.0])),
    releases=(published("trasgodp_radius", "metric_privacy(table, 'lat', 'lon', epsilon of 1 a degree, seed=fresh)"),),
)
def radius_beside_the_place(data, size, rng, mended):
    """The drawn distance is released beside the place that was moved by it."""
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, size), rng.gamma(2.0, size=size)
    told = radius
    if mended:
        told = np.zeros(size)
    return np.column_stack([np.asarray(data) + _step(radius, angle), told])


@bug(
    "ret1s/trajectory-privacy-protection (cap)",
    "The radius is cut at a largest value, so that a circle around the true place has positive mass.",
    PLANAR,
    ANY_PLACE,
    (ORIGIN, np.array([1.0, 0.0])),
    faulty=3.0,
    mended=np.inf,
)
def radius_with_a_cap(data, size, rng, cap):
    """Planar noise whose radius has a cap."""
    radius = np.minimum(rng.gamma(2.0, size=size), cap)
    return np.asarray(data) + _step(radius, rng.uniform(0.0, 2.0 * np.pi, size=size))


@bug(
    "SatyamPandey-07/WorkSphere#1522",
    "Two independent Laplace releases with the same epsilon for the two coordinates spend twice what is charged.",
    "eps=1",
    VectorDomain(2, -5.0, 5.0, change=1.0),
    (ORIGIN, np.ones(2)),
    faulty=1.0,
    mended=2.0,
)
def two_coordinates_one_epsilon(data, size, rng, scale):
    """Latitude and longitude each get noise for the whole epsilon."""
    return np.asarray(data) + rng.laplace(scale=scale, size=(size, 2))


@bug(
    "arXiv:2202.12138",
    "The reparametrisation of Laplace noise by the inverse of its distribution function is wrong, and the loss "
    "infinite; here the uniform variable covers one half of its range, so that the noise has one sign.",
    "eps=1",
    NumberDomain(-1.0, 1.0, change=float("inf")),
    (-1.0, 1.0),
)
def uniform_of_one_half(data, size, rng, mended):
    """Laplace noise by reparametrisation, from a uniform variable of the wrong range."""
    scale, u = 2.0, rng.random(size)  # of a difference of at most 2
    if mended:
        u = u - 0.5
    else:
        u = u * 0.5
    return np.clip(data, -1.0, 1.0) - scale * np.sign(u) * np.log1p(-2.0 * np.abs(u) + 2.0**-53)
