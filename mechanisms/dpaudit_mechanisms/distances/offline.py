"""The offline mechanism: hypotheses that answer every query afterwards, without the data.

Each of the l coordinates is learned by an interactive mechanism of its own, with 1 / l of the budget, from a grid of
queries that is fixed beforehand; the hypotheses are released, and answer any number of queries. Where the error of
every coordinate on its grid is at most a, and neighbouring grid points are h apart, the error is at most a + h
everywhere: both the hypothesis and the truth are 1-Lipschitz, and some grid point is within h / 2.

All coordinates have the same number of intervals, both ends included: one point more than the paper counts (MQ-S6).
One calibration on [0, 1] serves all of them: everything in it scales with the width.

Sources: MQ-T2, MQ-R2.1, MQ-S6.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

from dpaudit_mechanisms.distances.analysts import FixedQueries
from dpaudit_mechanisms.distances.averages import AverageDistances, Widths
from dpaudit_mechanisms.distances.calibration import Calibration, delta_share, largest_rho, practical
from dpaudit_mechanisms.distances.interactive import InteractiveDistances
from dpaudit_mechanisms.distances.learner import TangentHypotheses
from dpaudit_mechanisms.inputs import (
    ArrayLike,
    Checked,
    Count,
    FloatArray,
    Positive,
    fixed,
    output_batch,
    table,
    whole_number,
)
from dpaudit_mechanisms.protocol import ApproxDP, Claim, Pair, PureDP, UsageError, UtilityBound


@dataclasses.dataclass(frozen=True, eq=False)
class Hypothesis:
    """Release of the offline mechanism: lines of each coordinate, whose maximum with 0 is its average distance.

    Parameters
    ----------
    widths : numpy.ndarray of float, shape (l,)
    slopes, intercepts : numpy.ndarray of float, shape (lines, l)
        Unused places hold the line 0.

    Examples
    --------
    >>> Hypothesis(np.array([1.0]), np.array([[1.0]]), np.array([[-0.25]])).answer([[0.0], [1.0]]).tolist()
    [0.0, 0.75]
    """

    widths: FloatArray
    slopes: FloatArray = dataclasses.field(repr=False)
    intercepts: FloatArray = dataclasses.field(repr=False)

    def values(self, queries: ArrayLike) -> FloatArray:
        """The hypothesis of each coordinate, shape (queries, l)."""
        at = np.clip(table("queries", queries, (None, len(self.widths))), 0.0, self.widths)
        best = np.zeros(at.shape)
        for a, b in zip(self.slopes, self.intercepts, strict=True):
            np.maximum(best, a * at + b, out=best)
        return np.minimum(best, self.widths)

    def answer(self, queries: ArrayLike) -> FloatArray:
        """The average distance to each query, shape (queries,): post-processing, any number of them."""
        return self.values(queries).sum(axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class OfflineDistances(Checked):
    """Theorem 2 of Huang and Roth (2014), arXiv:1211.7302.

    F_i on the grid {0, w_i / g, ..., w_i} for each coordinate i, each with 1 / l of the budget.

    Releases hypotheses of the average l1 distance on a box.

    Parameters
    ----------
    records : int
        n.
    widths : array_like of float, shape (l,)
        Of the box.
    epsilon, delta : float
        The budget of the whole; pure where delta is 0.
    beta : float
        Probability with which the error somewhere may exceed `alpha`.
    intervals : int, optional
        Of the grid of each coordinate; by default the power of two of least `alpha`.

    Examples
    --------
    >>> mechanism = OfflineDistances(10**5, [1.0], 1.0)
    >>> released = mechanism.release(np.linspace(0.0, 1.0, 10**5)[:, None], np.random.default_rng(1))
    >>> released.answer([[0.0], [0.5]]).round(1).tolist(), round(mechanism.alpha, 3)
    ([0.5, 0.2], 0.043)
    """

    records: Count
    widths: Widths
    epsilon: Positive
    delta: Annotated[float, delta_share] = 0.0
    beta: float = 0.05
    intervals: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self._best_intervals() if self.intervals is None else self.intervals
        fixed(self, intervals=whole_number("intervals", given, 1))
        # Validity: the budgets of the coordinates add up, and no calibration may take more than its share.
        if self.cost > self._budget * (1.0 + 1e-9):
            raise UsageError(f"calibrations must keep {self._budget}, got {self.cost}.")

    @functools.cached_property
    def unit_calibration(self) -> Calibration:
        """Of one coordinate of width 1."""
        return self._tuned(int(self.intervals or 1))

    def calibration(self, coordinate: int) -> Calibration:
        """Of one coordinate: the unit calibration, scaled."""
        one, width = self.unit_calibration, float(self.widths[coordinate])
        names = ("threshold", "threshold_scale", "query_scale", "release_scale", "alpha")
        scaled = {name: width * getattr(one, name) for name in names}
        return dataclasses.replace(one, widths=np.array([width]), **scaled)

    def _tuned(self, intervals: int) -> Calibration:
        """On [0, 1], with 1 / l of the budget: of epsilon where pure, of rho where approximate."""
        count = len(self.widths)
        share = self.epsilon / count
        if self.delta > 0.0:
            rho = largest_rho(self.epsilon, self.delta) / count
            share = rho + 2.0 * math.sqrt(rho * -math.log(self.delta))
        return practical(self.records, [1.0], share, self.delta, queries=intervals + 1, beta=self.beta / count)

    def _best_intervals(self) -> int:
        """Doubled as long as the error falls: the calibration depends on it by logarithms."""
        found, least = 1, math.inf
        for doublings in range(1, 21):
            alpha = self._tuned(2**doublings).alpha + 0.5**doublings
            if alpha >= least:
                break
            found, least = 2**doublings, alpha
        return found

    @property
    def _budget(self) -> float:
        return largest_rho(self.epsilon, self.delta) if self.delta > 0.0 else self.epsilon

    @property
    def cost(self) -> float:
        """Privacy cost of all coordinates: zCDP where delta is positive, nats where it is 0."""
        calibrations = [self.calibration(i) for i in range(len(self.widths))]
        return math.fsum(tuned.rho if self.delta > 0.0 else tuned.epsilon for tuned in calibrations)

    @property
    def alpha(self) -> float:
        """Bound on the error of all queries together, which holds with probability at least 1 - beta."""
        return float(self.widths.sum()) * (self.unit_calibration.alpha + 1.0 / int(self.intervals or 1))

    @property
    def queries(self) -> int:
        """Grid points of all coordinates."""
        return (int(self.intervals or 1) + 1) * len(self.widths)

    @property
    def claim(self) -> Claim:
        """`PureDP(epsilon)` or `ApproxDP(epsilon, delta)`."""
        return ApproxDP(self.epsilon, self.delta) if self.delta > 0.0 else PureDP(self.epsilon)

    def grid(self, coordinate: int) -> FloatArray:
        """The queries of one coordinate, both ends included."""
        return np.linspace(0.0, float(self.widths[coordinate]), int(self.intervals or 1) + 1)

    def release(self, data: Any, rng: np.random.Generator) -> Hypothesis:
        """One hypothesis, from a database of shape (n, l)."""
        found = list(self._learn(self._points(data), 1, rng))
        most = max(int(one.updates[0]) for one in found)
        slopes, intercepts = np.zeros((2, most, len(found)))
        for i, one in enumerate(found):
            used = int(one.updates[0])
            slopes[:used, i], intercepts[:used, i] = one.slopes[0, :used, 0], one.intercepts[0, :used, 0]
        return Hypothesis(self.widths, slopes, intercepts)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """The values of `size` releases on all grids, shape (size, queries)."""
        grids = np.stack([self.grid(i) for i in range(len(self.widths))], axis=1)  # (intervals + 1, l)
        return np.concatenate(list(self._values(data, grids, size, rng)), axis=1)

    def answers(self, data: Any, queries: ArrayLike, size: int, rng: np.random.Generator) -> FloatArray:
        """The answers of `size` independent releases to queries of shape (queries, l), shape (size, queries)."""
        at = np.clip(table("queries", queries, (None, len(self.widths))), 0.0, self.widths)
        return self._values(data, at, size, rng).sum(axis=0)

    def _values(self, data: Any, at: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """The hypothesis of each coordinate at its part of each point, shape (l, size, points)."""
        values = np.empty((len(self.widths), size, len(at)))
        for i, found in enumerate(self._learn(self._points(data), max(size, 1), rng)):
            for q, point in enumerate(at[:, i]):
                values[i, :, q] = found.predict(np.full((max(size, 1), 1), point))[:size, 0]
            np.minimum(values[i], self.widths[i], out=values[i])
        return values

    def _learn(self, points: FloatArray, size: int, rng: np.random.Generator) -> Iterator[TangentHypotheses]:
        for i in range(len(self.widths)):
            grid = self.grid(i)
            mechanism = InteractiveDistances(self.calibration(i), FixedQueries(grid[:, None]), len(grid))
            averages = AverageDistances(points[:, i : i + 1], self.widths[i : i + 1])
            yield mechanism.run(averages, size, rng).hypotheses

    def _points(self, data: Any) -> FloatArray:
        points = table("data", data, (None, len(self.widths)))
        if len(points) != self.records:
            raise UsageError(f"data must have {self.records} points, got {len(points)}.")
        return points

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """An upper bound of the loss of two databases in nats: the accounting; inf with delta."""
        moved = int((self._points(x) != self._points(x_prime)).any(axis=1).sum())
        if moved == 0:
            return 0.0
        return math.inf if self.delta > 0.0 else moved * self.cost

    def utility_bounds(self) -> list[UtilityBound]:
        """The error on the grids, coordinate by coordinate and added up: `alpha` less what lies between grid points."""
        total = float(self.widths.sum())
        limit = self.alpha - total / int(self.intervals or 1)
        if limit >= total / 2.0:  # values in [0, width] can err by half of it
            return []

        def errors(data: Any, outputs: Any) -> FloatArray:
            found, grid = self._points(data), [self.grid(i)[:, None] for i in range(len(self.widths))]
            truth = [AverageDistances(found[:, i : i + 1], self.widths[i : i + 1]).value(at)
                     for i, at in enumerate(grid)]  # fmt: skip
            gaps = np.abs(output_batch(outputs, (self.queries,)) - np.concatenate(truth))
            return np.asarray(gaps.reshape(len(gaps), len(grid), -1).max(axis=2).sum(axis=1))

        return [UtilityBound("largest error", errors, limit, failure_probability=self.beta, largest_loss=total,
                             source="MQ-T2")]  # fmt: skip

    def pairs(self) -> list[Pair]:
        """One point at a corner of the box moved to the opposite one."""
        low = np.zeros((self.records, len(self.widths)))
        moved = low.copy()
        moved[0] = self.widths
        return [Pair(low, moved, "one up")]
