"""d_X metrics: how much may be lost between two inputs, or between two records, in nats.

Conventions
-----------
* A metric is called as metric(x, x_prime) and returns a budget in [0, inf]. Zero between different points asks for
  equal laws; infinity asks nothing.
* `matrix(points)` returns the budgets between all points, shape (points, points), vectorised where that is possible.
* `epsilon` is a number of nats, 1 by default: for a unit of distance, in (0, inf), or for a difference, in [0, inf].
* `name` is short, for reports; a metric that is scaled or added keeps the names of its parts.
* The axioms are d(x, x) = 0, symmetry, non-negativity and the triangle inequality (DX-D2). Some families that the
  papers print break the last one (`BlowfishMetric`; `ValueMetric` with "min" on more than two values, DX-X2). Their
  least repair is the shortest-path closure: `MatrixMetric.of(metric, points, check_triangle=False).closure()`.

Source: `dpaudit_mechanisms/papers/dx-linear-queries.toml`, DX-D2, DX-X1 to DX-X8, DX-D-Blow and DX-D-Smooth.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from dpaudit.arguments import check_among
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import FloatArray, number, number_text
from dpaudit.privacy.differences import row_key
from dpaudit.privacy.pairs import short_form

EARTH_RADIUS_KM = 6371.0088  # mean radius of the WGS 84 ellipsoid, (2a + b) / 3


class Metric(ABC):
    """d_X: a budget in nats for two points. Frozen; compare and print freely."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name for reports."""

    @abstractmethod
    def __call__(self, x: Any, x_prime: Any) -> float:
        """The budget between two points, in [0, inf] nats."""

    def matrix(self, points: Sequence[Any]) -> FloatArray:
        """The budgets between all points, shape (points, points); by default one call an unordered pair."""
        return _of_pairs(self, points)


def _of_pairs(distance: Callable[[Any, Any], float], points: Sequence[Any]) -> FloatArray:
    result = np.zeros((len(points), len(points)))
    for i, j in itertools.combinations(range(len(points)), 2):
        result[i, j] = result[j, i] = distance(points[j], points[i])
    return result


def _per_unit(name: str, value: Any) -> float:
    return number(name, value, "in (0, inf)", lambda v: 0.0 < v < math.inf)


def budget_number(name: str, value: Any) -> float:
    """`value` as a budget in [0, inf], or a `UsageError` that names it."""
    return number(name, value, "in [0, inf]", lambda v: v >= 0.0)


def _coordinates(name: str, value: Any) -> FloatArray:
    try:
        result = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be one or more coordinates, got {short_form(value)}.") from None
    if not np.all(np.isfinite(result)):
        raise UsageError(f"{name} must have finite coordinates, got {short_form(value)}.")
    return result


def _checked(check: Callable[[str, Any], float], **default: float) -> Any:
    """A field that is checked, and becomes a float."""
    return dataclasses.field(**default, metadata={"check": check})  # type: ignore[call-overload]


@dataclasses.dataclass(frozen=True)
class _FieldMetric(Metric):
    """A metric that is named by its fields, those that are numbers checked."""

    label: ClassVar[str]  # with the names of fields in braces

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if check := field.metadata.get("check"):
                object.__setattr__(self, field.name, check(field.name, getattr(self, field.name)))

    @property
    def name(self) -> str:
        parts = {
            field.name: (number_text if "check" in field.metadata else metric_name)(getattr(self, field.name))
            for field in dataclasses.fields(self)
        }
        return self.label.format(**parts)


@dataclasses.dataclass(frozen=True)
class _NormMetric(_FieldMetric):
    """epsilon per unit, times a norm of the difference of two coordinate vectors."""

    epsilon: float = _checked(_per_unit, default=1.0)
    norm: ClassVar[Literal["euclidean", "chebyshev"]]

    @property
    def _factor(self) -> float:
        return self.epsilon

    def _vector(self, name: str, value: Any) -> FloatArray:
        return _coordinates(name, value)

    def __call__(self, x: Any, x_prime: Any) -> float:
        u, v = self._vector("x", x), self._vector("x_prime", x_prime)
        if u.shape != v.shape:
            raise UsageError(f"x_prime must have the shape of x, {u.shape}, got {v.shape}.")
        return self._factor * float(np.linalg.norm((u - v).ravel(), 2 if self.norm == "euclidean" else np.inf))

    def matrix(self, points: Sequence[Any]) -> FloatArray:
        if len(points) == 0:
            return np.zeros((0, 0))
        rows = [self._vector(f"points[{i}]", point).ravel() for i, point in enumerate(points)]
        for i, row in enumerate(rows):
            if row.shape != rows[0].shape:
                raise UsageError(f"points must have one shape, got {row.shape} after {rows[0].shape} at position {i}.")
        table = np.stack(rows)  # (points, coordinates)
        from scipy.spatial.distance import cdist  # it takes longer to import than most of the package

        return self._factor * np.asarray(cdist(table, table, self.norm))


@dataclasses.dataclass(frozen=True)
class EuclideanMetric(_NormMetric):
    """epsilon times the Euclidean distance of two points (DX-E4.1: locations, histograms, vectors).

    Examples
    --------
    >>> EuclideanMetric(0.1)([0.0, 0.0], [3.0, 4.0])
    0.5
    """

    norm: ClassVar[Literal["euclidean", "chebyshev"]] = "euclidean"
    label: ClassVar[str] = "euclidean({epsilon})"


@dataclasses.dataclass(frozen=True)
class SupNormMetric(_NormMetric):
    """epsilon times the largest absolute difference of two vectors (DX-X6: time series).

    Examples
    --------
    >>> SupNormMetric(0.5)([1.0, 2.0, 3.0], [1.0, 5.0, 2.0])
    1.5
    """

    norm: ClassVar[Literal["euclidean", "chebyshev"]] = "chebyshev"
    label: ClassVar[str] = "sup-norm({epsilon})"


@dataclasses.dataclass(frozen=True)
class AbsoluteMetric(_NormMetric):
    """epsilon times the absolute difference of two numbers.

    Examples
    --------
    >>> AbsoluteMetric(0.5)(1.0, 4.0)
    1.5
    """

    norm: ClassVar[Literal["euclidean", "chebyshev"]] = "chebyshev"
    label: ClassVar[str] = "absolute({epsilon})"

    def _vector(self, name: str, value: Any) -> FloatArray:
        if np.ndim(value) != 0:
            raise UsageError(f"{name} must be one number, got {short_form(value)}.")
        return _coordinates(name, value)


@dataclasses.dataclass(frozen=True)
class DateMetric(_NormMetric):
    """epsilon abs(u - u') / days, for two dates u and u' (DX-X5: generalising dates to periods of `days` days).

    Parameters
    ----------
    epsilon : float
        Nats for two dates that are `days` apart, in (0, inf).
    days : float
        Length of the period in days, in (0, inf).

    Points are `datetime.date`, `datetime.datetime` (with a time zone: taken in UTC), `numpy.datetime64` or ISO text.

    Examples
    --------
    >>> DateMetric(1.0, days=30)("2024-02-01", datetime.date(2024, 3, 2))
    1.0
    """

    days: float = _checked(_per_unit, default=1.0)
    norm: ClassVar[Literal["euclidean", "chebyshev"]] = "chebyshev"
    label: ClassVar[str] = "dates({epsilon} per {days} days)"

    @property
    def _factor(self) -> float:
        return self.epsilon / self.days

    def _vector(self, name: str, value: Any) -> FloatArray:
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        try:
            if not isinstance(value, str | datetime.date | np.datetime64):
                raise ValueError("not a date")
            moment = np.array(value, dtype="datetime64[us]")
        except ValueError:
            raise UsageError(f"{name} must be a date or ISO text, got {short_form(value)}.") from None
        if np.isnat(moment):
            raise UsageError(f"{name} must be a date or ISO text, got {short_form(value)}.")
        microseconds = int(moment.astype(np.int64))
        return np.array([microseconds / 86_400e6])  # days


@dataclasses.dataclass(frozen=True)
class GeoMetric(_FieldMetric):
    """Nats per kilometre, times the great-circle distance of two places (DX-E4.3, on the sphere and not on degrees).

    Parameters
    ----------
    nats_per_km : float
        In (0, inf).

    Points are (latitude, longitude) in degrees, latitude in [-90, 90]; the Earth is a sphere of radius 6371.0088 km.

    Examples
    --------
    >>> round(GeoMetric(0.01)((48.8566, 2.3522), (52.52, 13.405)), 2)  # Paris to Berlin, 877 km
    8.77
    """

    nats_per_km: float = _checked(_per_unit, default=1.0)
    label: ClassVar[str] = "geo({nats_per_km} per km)"

    def __call__(self, x: Any, x_prime: Any) -> float:
        u, v = self._radians("x", x), self._radians("x_prime", x_prime)
        return float(self._distances(u[None], v[None])[0, 0])

    def matrix(self, points: Sequence[Any]) -> FloatArray:
        rows = np.array([self._radians(f"points[{i}]", point) for i, point in enumerate(points)]).reshape(-1, 2)
        distances = self._distances(rows, rows)
        distances = np.maximum(distances, distances.T)  # equal but for the last bit
        np.fill_diagonal(distances, 0.0)
        return distances

    @staticmethod
    def _radians(name: str, place: Any) -> FloatArray:
        result = _coordinates(name, place)
        if result.shape != (2,) or abs(result[0]) > 90.0:
            condition = "(latitude, longitude) in degrees, latitude in [-90, 90]"
            raise UsageError(f"{name} must be {condition}, got {short_form(place)}.")
        return np.asarray(np.radians(result))

    def _distances(self, u: FloatArray, v: FloatArray) -> FloatArray:
        # The angle as atan2(|cross product|, dot product): accurate for near, far and antipodal places alike.
        lat, other = u[:, None, 0], v[None, :, 0]  # (points, 1) and (1, points)
        turn = v[None, :, 1] - u[:, None, 1]
        east = np.cos(other) * np.sin(turn)
        north = np.cos(lat) * np.sin(other) - np.sin(lat) * np.cos(other) * np.cos(turn)
        along = np.sin(lat) * np.sin(other) + np.cos(lat) * np.cos(other) * np.cos(turn)
        return np.asarray(self.nats_per_km * EARTH_RADIUS_KM * np.arctan2(np.hypot(east, north), along))


class _PositionMetric(Metric):
    """A sum over the positions at which two records differ."""

    per_attribute: ClassVar[str] = ""  # the field with an entry for each position, if there is one

    @abstractmethod
    def _cost(self, position: int, value: Any, value_prime: Any) -> float:
        """Cost of a difference at one position, in nats."""

    def _check(self, name: str, record: Any) -> Any:
        if not isinstance(record, Sequence | np.ndarray) or (isinstance(record, np.ndarray) and record.ndim == 0):
            raise UsageError(f"{name} must be a sequence of attribute values, got {short_form(record)}.")
        if self.per_attribute and len(record) != (many := len(getattr(self, self.per_attribute))):
            raise UsageError(f"{name} must have {many} attributes, got {len(record)}.")
        return record

    def __call__(self, x: Any, x_prime: Any) -> float:
        u, v = self._check("x", x), self._check("x_prime", x_prime)
        if len(u) != len(v):
            raise UsageError(f"x_prime must have the length of x, {len(u)}, got {len(v)}.")
        costs = (self._cost(i, a, b) for i, (a, b) in enumerate(zip(u, v, strict=True)) if not is_same(a, b))
        return float(sum(costs, start=0.0))

    def matrix(self, points: Sequence[Any]) -> FloatArray:
        records = [self._check(f"points[{i}]", point) for i, point in enumerate(points)]
        for i, record in enumerate(records):
            if len(record) != len(records[0]):
                raise UsageError(f"points must have one length, {len(records[0])}, got {len(record)} at position {i}.")
        result = np.zeros((len(records), len(records)))
        for position in range(len(records[0]) if records else 0):
            keys = [row_key(record[position]) for record in records]
            values = {key: record[position] for key, record in zip(keys, records, strict=True)}
            places = {key: place for place, key in enumerate(values)}
            codes = [places[key] for key in keys]
            costs = _of_pairs(functools.partial(self._cost, position), list(values.values()))  # (values, values)
            result += costs[np.ix_(codes, codes)]
        return result


def is_same(value: Any, other: Any) -> bool:
    """Tell whether two values are equal: as rows of neighbours are, so that a list is equal to a tuple or an array."""
    return value is other or row_key(value) == row_key(other)


@dataclasses.dataclass(frozen=True)
class HammingMetric(_FieldMetric, _PositionMetric):
    """epsilon for each position at which two sequences differ.

    Examples
    --------
    >>> HammingMetric(0.5)("karolin", "kathrin")
    1.5
    """

    epsilon: float = _checked(budget_number, default=1.0)
    label: ClassVar[str] = "hamming({epsilon})"

    def _cost(self, position: int, value: Any, value_prime: Any) -> float:
        return self.epsilon


@dataclasses.dataclass(frozen=True)
class AttributeMetric(_PositionMetric):
    """The sum of epsilon_k over the attributes k at which two records differ (introduction, DX-X4).

    Parameters
    ----------
    epsilons : sequence of float
        One budget an attribute, in [0, inf]: smaller for more sensitive attributes.

    Examples
    --------
    >>> AttributeMetric((0.25, 2.0))(("M", 30), ("F", 30))
    0.25
    """

    epsilons: Sequence[float]
    per_attribute: ClassVar[str] = "epsilons"

    def __post_init__(self) -> None:
        checked = tuple(budget_number(f"epsilons[{k}]", value) for k, value in enumerate(self.epsilons))
        object.__setattr__(self, "epsilons", checked)

    @property
    def name(self) -> str:
        return f"attributes({', '.join(map(number_text, self.epsilons))})"

    def _cost(self, position: int, value: Any, value_prime: Any) -> float:
        return self.epsilons[position]


@dataclasses.dataclass(frozen=True, eq=False)
class ValueMetric(_PositionMetric):
    """Budgets per attribute *value*: at each differing attribute the two values' budgets, combined.

    Parameters
    ----------
    budgets : sequence of mappings
        For each attribute, each of its values with its budget in [0, inf].
    combine : {"min", "sum", "max"}
        "min" is eq. (3) of the paper: what is asked of a sensitive value holds against every other value. A metric for
        binary attributes only (DX-X2); with more values take the closure. "sum" (DX-X3) and "max" (DX-X8) are metrics
        for any number of values, and "max" does not protect the sensitive value.

    Examples
    --------
    Gender, native speaker and age of DX-X1, of which only "not being anonymous as a native" is sensitive:

    >>> metric = ValueMetric([{"M": 1.0, "F": 1.0}, {"Y": 0.125, "N": 1.0}, {"A": 1.0, "B": 1.0}])
    >>> metric(("M", "Y", "A"), ("F", "N", "B"))
    2.125
    """

    budgets: Sequence[Mapping[Any, float]]
    combine: Literal["min", "sum", "max"] = "min"
    per_attribute: ClassVar[str] = "budgets"

    def __post_init__(self) -> None:
        check_among("combine", self.combine, ("min", "sum", "max"))
        checked = tuple(
            {value: budget_number(f"budgets[{k}][{value!r}]", budget) for value, budget in values.items()}
            for k, values in enumerate(self.budgets)
        )
        object.__setattr__(self, "budgets", checked)

    @property
    def name(self) -> str:
        return f"values({self.combine}, {len(self.budgets)} attributes)"

    def _check(self, name: str, record: Any) -> Any:
        record = super()._check(name, record)
        for k, (value, known) in enumerate(zip(record, self.budgets, strict=True)):
            if value not in known:
                raise UsageError(f"{name}[{k}] must be one of {sorted(map(repr, known))}, got {value!r}.")
        return record

    def _cost(self, position: int, value: Any, value_prime: Any) -> float:
        both = (self.budgets[position][value], self.budgets[position][value_prime])
        return min(both) if self.combine == "min" else max(both) if self.combine == "max" else sum(both)


@dataclasses.dataclass(frozen=True)
class DiscreteMetric(_FieldMetric):
    """epsilon for any two different points: ordinary epsilon-DP (DX-C1).

    Examples
    --------
    >>> DiscreteMetric(0.5)("a", "b")
    0.5
    """

    epsilon: float = _checked(budget_number, default=1.0)
    label: ClassVar[str] = "discrete({epsilon})"

    def __call__(self, x: Any, x_prime: Any) -> float:
        return 0.0 if is_same(x, x_prime) else self.epsilon


@dataclasses.dataclass(frozen=True)
class BlowfishMetric(_FieldMetric):
    """epsilon for two points within a threshold of each other, infinity beyond (DX-D-Blow).

    As printed it breaks the triangle inequality wherever two short steps make a long one; the closure, which is then
    epsilon times the least number of steps, asks the same of every mechanism and is a metric.

    Parameters
    ----------
    epsilon : float
        In (0, inf).
    threshold : float
        Largest protected distance, in the unit of `base`; in (0, inf).
    base : Metric
        What measures the distance: Euclidean with one nat per unit, by default.

    Examples
    --------
    >>> BlowfishMetric(1.0, threshold=5.0)([0.0, 0.0], [3.0, 4.0])
    1.0
    """

    epsilon: float = _checked(_per_unit)
    threshold: float = _checked(_per_unit)
    base: Metric = dataclasses.field(default_factory=EuclideanMetric)
    label: ClassVar[str] = "blowfish({epsilon}, within {threshold} of {base})"

    def __call__(self, x: Any, x_prime: Any) -> float:
        return float(self._budgets(np.array([self.base(x, x_prime)]))[0])

    def matrix(self, points: Sequence[Any]) -> FloatArray:
        return self._budgets(self.base.matrix(points))

    def _budgets(self, distances: FloatArray) -> FloatArray:
        far = self._beyond(distances)
        return np.where(distances == 0.0, 0.0, np.where(distances <= self.threshold, self.epsilon, far))

    def _beyond(self, distances: FloatArray) -> FloatArray:
        return np.full_like(distances, np.inf)


@dataclasses.dataclass(frozen=True)
class SmoothBlowfishMetric(BlowfishMetric):
    """epsilon within a threshold, epsilon times distance over threshold beyond (DX-D-Smooth); a metric.

    Parameters
    ----------
    epsilon, threshold, base
        As for `BlowfishMetric`.

    Examples
    --------
    >>> SmoothBlowfishMetric(1.0, threshold=2.0)([0.0, 0.0], [3.0, 4.0])
    2.5
    """

    label: ClassVar[str] = f"smooth {BlowfishMetric.label}"

    def _beyond(self, distances: FloatArray) -> FloatArray:
        return self.epsilon * (distances / self.threshold)


@dataclasses.dataclass(frozen=True)
class ScaledMetric(_FieldMetric):
    """Another metric times a factor; `scaled` builds it.

    Parameters
    ----------
    metric : Metric
        Any callable (x, x_prime) -> budget.
    factor : float
        In (0, inf).
    """

    metric: Any
    factor: float = _checked(_per_unit)
    label: ClassVar[str] = "{factor} * {metric}"

    def __call__(self, x: Any, x_prime: Any) -> float:
        return self.factor * float(self.metric(x, x_prime))

    def matrix(self, points: Sequence[Any]) -> FloatArray:
        return self.factor * budget_matrix(self.metric, points)


@dataclasses.dataclass(frozen=True)
class SumMetric(Metric):
    """The sum of metrics on the same points, as composition spends them (DX-F1.2).

    Parameters
    ----------
    metrics : sequence of Metric
        At least one callable (x, x_prime) -> budget.

    Examples
    --------
    >>> SumMetric((AbsoluteMetric(0.5), DiscreteMetric(1.0)))(1.0, 4.0)
    2.5
    """

    metrics: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", tuple(self.metrics))
        if not self.metrics:
            raise UsageError("metrics must be at least one, got none.")

    @property
    def name(self) -> str:
        return " + ".join(metric_name(metric) for metric in self.metrics)

    def __call__(self, x: Any, x_prime: Any) -> float:
        return float(sum((metric(x, x_prime) for metric in self.metrics), start=0.0))

    def matrix(self, points: Sequence[Any]) -> FloatArray:
        return sum((budget_matrix(metric, points) for metric in self.metrics), start=np.zeros((len(points),) * 2))


def scaled(metric: Any, factor: float) -> ScaledMetric:
    """A metric times a factor; a metric that is scaled already is scaled once, by the product.

    Parameters
    ----------
    metric : Metric
        Any callable (x, x_prime) -> budget in nats.
    factor : float
        In (0, inf).

    Examples
    --------
    >>> scaled(AbsoluteMetric(0.5), 4)(1.0, 2.0)
    2.0
    """
    if isinstance(metric, ScaledMetric):
        return ScaledMetric(metric.metric, metric.factor * _per_unit("factor", factor))
    return ScaledMetric(metric, factor)


def metric_name(metric: Any) -> str:
    """A metric's `name`, or its function's or type's name where it has none."""
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", None) or type(metric).__name__)


def budget_matrix(metric: Any, points: Sequence[Any]) -> FloatArray:
    """The budgets between all points, shape (points, points), of a `Metric` or of any callable on two points."""
    if isinstance(metric, Metric):
        return metric.matrix(points)
    return np.array([[float(metric(x, y)) for y in points] for x in points]).reshape((len(points),) * 2)
