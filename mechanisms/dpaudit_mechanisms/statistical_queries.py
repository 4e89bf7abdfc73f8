"""d_X-private Laplace answers to statistical queries (Appendix C): means over the records of a transformed universe.

The data are n records, each an element u of a finite universe; a query is q(x) = mean of q(x_i), in R^k. Every element
u is replaced by u' first, and the answer is c * mean of q(x_i') + (Lap(c_1), ..., Lap(c_k)). Replacing one record u by
v changes the mean of q' by (q(u') - q(v')) / n, so the guarantee asks for ||q(u') - q(v')||_1 <= n d(u, v).

Letters: d metric (U, U) in nats, c noise scales (k,) in query units per nat, n records. For the marginal query q(u) =
u.

Sources: DX-D10, DX-D11, DX-A4 (eq. (12)), DX-T10, DX-T11, DX-O6, DX-C24, DX-C25, DX-O7.
"""

import dataclasses
import math
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit_mechanisms.accuracy import SHARE, largest_error, log_noise, squared_error
from dpaudit_mechanisms.distortion import Distortion, best_distortion, best_squared_distortion
from dpaudit_mechanisms.dx_exponential import ROUNDING, smallest_scale
from dpaudit_mechanisms.index_metric import IndexMetric, budget_matrix
from dpaudit_mechanisms.inputs import Checked, Count, FloatArray, fixed, output_batch, position, table, whole_number
from dpaudit_mechanisms.protocol import Claim, MetricDP, Pair, UsageError, UtilityBound, number


@dataclasses.dataclass(frozen=True, eq=False)
class StatisticalLaplace(Checked):
    """Theorem 10 of Kamalaruban et al. (2018), arXiv:1806.02389.

    Mean over the records of q(u') + (Lap(c_1), ..., Lap(c_k)) / n.

    Laplace noise on means of a query over transformed records.

    Parameters
    ----------
    transformed : array_like of float, shape (U, k)
        q(u') for every element u of the universe.
    c : array_like of float, shape (k,)
        Scales of the noise, in (0, inf).
    metric : array_like of float, shape (U, U)
        d(u, v) in nats, in [0, inf]; symmetric, 0 on the diagonal.
    records : int
        n, at least 1.

    Raises
    ------
    UsageError
        If a parameter is out of range, or two elements break the condition of DX-T10.

    Examples
    --------
    >>> mechanism = StatisticalLaplace([[0.0], [1.0]], c=[1.0], metric=[[0.0, 0.5], [0.5, 0.0]], records=2)
    >>> mechanism.privacy_loss((0, 1), (1, 1))
    0.5
    """

    transformed: FloatArray = dataclasses.field(repr=False)
    c: FloatArray
    metric: FloatArray = dataclasses.field(repr=False)
    records: Count
    translation_family: ClassVar[bool] = True
    input_kind = "records"  # a list of n positions in the universe

    def __post_init__(self) -> None:
        super().__post_init__()
        transformed = table("transformed", self.transformed, (None, None), finite=True)
        c = table("c", self.c, (transformed.shape[1],), within="in (0, inf)")
        metric = budget_matrix(self.metric, len(transformed))
        ratio = smallest_scale(sensitivities(transformed, self.records), metric)
        if ratio > 1.0 + ROUNDING:
            raise UsageError(f"transformed must change by at most n d(u, v), got {ratio!r} times that (DX-T10).")
        fixed(self, transformed=transformed, c=c, metric=metric)

    @property
    def claim(self) -> Claim:
        """`MetricDP` on records: the budget of replacing u by v is d(u, v)."""
        return MetricDP(IndexMetric(self.metric), on="records")

    @property
    def noise_scales(self) -> FloatArray:
        """Scales of the noise that is drawn, shape (k,)."""
        return self.c

    def means(self, data: Any) -> FloatArray:
        """c * mean of q(x_i'), shape (k,)."""
        return self.c * self.transformed[self._rows(data)].mean(axis=0)

    location = means  # of the noise

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one list of n positions, shape (size, k)."""
        noise: FloatArray = rng.laplace(size=(size, len(self.c))) * self.noise_scales
        return self.means(data) + noise

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density at each output, shape (size,); -inf where it is impossible."""
        return log_noise(output_batch(outputs, self.c.shape) - self.means(data), self.noise_scales)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of two lists of records in nats, attained beyond both answers in every coordinate."""
        return float((np.abs(self.means(x) - self.means(x_prime)) / self.noise_scales).sum())

    def with_budget(self, factor: float) -> Self:
        """The same queries c q(u'), with `factor` times the metric and 1 / `factor` of the noise."""
        transformed, metric = self.transformed * factor, self.metric * factor
        return dataclasses.replace(self, transformed=transformed, metric=metric, c=self.c / factor)

    def utility_bounds(self) -> list[UtilityBound]:
        """DX-T11.3 and DX-T11.1 for the query that is answered, q(u) = c q(u'), which has no distortion."""
        own = self.c * self.transformed
        deviation = math.sqrt(20.0) * float(np.linalg.norm(self.c**2))
        return [
            largest_error(self.means, self.error_bound(own, SHARE), source="DX-T11.3"),
            squared_error(self.means, self.squared_error_bound(own), "DX-T11.1", deviation),
        ]

    def pairs(self) -> list[Pair]:
        """One record u against v beside n - 1 records of u, for every u and v with a budget, the tightest first."""
        gaps = sensitivities(self.transformed, self.records)
        elements = range(len(self.metric))
        asked = [(u, v) for u in elements for v in elements if u < v and 0.0 < self.metric[u, v] < math.inf]
        asked.sort(key=lambda uv: -gaps[uv] / self.metric[uv])
        return [Pair((u,) * self.records, (v, *(u,) * (self.records - 1))) for u, v in asked]

    def error_bound(self, values: ArrayLike, delta: float) -> float:
        """DX-T11.3: max over u of |c q(u') - q(u)| + log(k / delta) max c, in the largest coordinate.

        It bounds the largest error with probability at least 1 - delta, for q(u) in `values` of shape (U, k).
        """
        rows = table("values", values, self.transformed.shape)
        share = number("delta", delta, "in (0, 1]", lambda v: 0.0 < v <= 1.0)
        bias = float(np.abs(self.c * self.transformed - rows).max())
        return bias + math.log(len(self.c) / share) * float(self.c.max())

    def squared_error_bound(self, values: ArrayLike) -> float:
        """DX-T11.1: 2 (max over u of |c q(u') - q(u)|_2^2 + 2 |c|_2^2), a bound on the expected squared error."""
        rows = table("values", values, self.transformed.shape)
        bias = float(((self.c * self.transformed - rows) ** 2).sum(axis=1).max())
        return 2.0 * (bias + 2.0 * float((self.c**2).sum()))

    def _rows(self, data: Any) -> list[int]:
        rows = [position(row, len(self.transformed)) for row in data]
        if len(rows) != self.records:
            raise UsageError(f"data must have {self.records} records, got {len(rows)}.")
        return rows


def sensitivities(values: ArrayLike, records: int) -> FloatArray:
    """Delta_1^q(u, v) = |q(u) - q(v)|_1 / n of every two elements (DX-C21), shape (U, U)."""
    rows = table("values", values, (None, None))
    return np.abs(rows[:, None] - rows[None]).sum(axis=2) / whole_number("records", records, 1)


def undistorted(values: ArrayLike, metric: ArrayLike, records: int) -> StatisticalLaplace:
    """The mechanism without distortion, c q(u') = q(u), with one scale for all coordinates: the smallest one.

    Examples
    --------
    >>> undistorted([[0.0], [1.0]], [[0.0, 0.5], [0.5, 0.0]], records=4).c.tolist()
    [0.5]
    """
    rows = table("values", values, (None, None))
    budgets = budget_matrix(metric, len(rows))
    scale = smallest_scale(sensitivities(rows, records), budgets)
    if scale == 0.0:
        raise UsageError("values must change somewhere where the budget is finite, got constant ones.")
    return StatisticalLaplace(rows / scale, np.full(rows.shape[1], scale), budgets, records)


def best_marginal(values: ArrayLike, metric: ArrayLike, records: int) -> Distortion:
    """The exact optimum of DX-O7 for one coordinate: min of max |c u' - u| + c with |u' - v'| <= n d(u, v).

    Parameters
    ----------
    values : array_like of float, shape (U,)
        The values u that the coordinate takes.
    metric : array_like of float, shape (U, U)
        d(u, v) in nats, with the triangle inequality.
    records : int
        n.

    Examples
    --------
    >>> best_marginal([-1.0, 1.0], [[0.0, 0.5], [0.5, 0.0]], records=10).cost  # 2 / (n epsilon)
    0.4
    """
    budgets = budget_matrix(metric) * whole_number("records", records, 1)
    return best_distortion(table("values", values, (None,))[None], budgets, lambda distortion, c: distortion + c)


def best_squared_query(values: ArrayLike, metric: ArrayLike, records: int) -> Distortion:
    """The exact optimum of DX-O6 for one query: min of max |c q(u') - q(u)|^2 + 2 c^2, |q(u') - q(v')| <= n d(u, v).

    Parameters as in `best_marginal`, with q(u) for u.

    Examples
    --------
    >>> round(best_squared_query([-1.0, 1.0], [[0.0, 0.5], [0.5, 0.0]], records=10).c, 6)  # 5 / (25 / 2 + 4)
    0.30303
    """
    budgets = budget_matrix(metric) * whole_number("records", records, 1)
    return best_squared_distortion(table("values", values, (None,))[None], budgets)
