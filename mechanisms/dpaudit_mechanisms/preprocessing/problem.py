"""The preprocessing problem: its data, its losses, and the points that are feasible whatever the solver's rounding.

Letters: Q, B queries (K, N), d metric (N, N) in nats, c scales (K,), n records; pairs are i < j of finite budget.
"""

import dataclasses
import itertools
import math
from typing import Any, Literal, Self, get_args

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from dpaudit_mechanisms.index_metric import budget_matrix
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray, table, whole_number
from dpaudit_mechanisms.protocol import UsageError, check_among, number

Loss = Literal["squared", "l1", "linf", "tail"]
LOSSES = get_args(Loss)
MAX_QUERIES = 16  # for "linf": its expectation sums over all sets of queries
NO_NOISE = 1e-300  # of the largest scale: below, 1 / c overflows, and the scale adds nothing to the expectation
Point = tuple[FloatArray, FloatArray]  # what is answered, B (K, N), and the scales c (K,)


def loss_value(
    queries: ArrayLike, answered: ArrayLike, c: ArrayLike, records: int, loss: Loss, delta: float = 0.05
) -> float:
    """The loss of answering `answered` (K, N) with scales c (K,) where `queries` (K, N) were asked, for n records."""
    bias = np.asarray(answered, float) - np.asarray(queries, float)
    scales = np.asarray(c, float)
    if loss == "squared":
        return float(records**2 * (bias**2).sum() + 2.0 * (scales**2).sum())
    if loss == "l1":
        return float(records * np.abs(bias).sum() + scales.sum())
    noise = mean_largest_noise(scales)[0] if loss == "linf" else math.log(len(scales) / delta) * float(scales.max())
    return float(records * np.abs(bias).max() + noise)


def mean_largest_noise(c: FloatArray) -> tuple[float, FloatArray]:
    """E max_k |Y_k| for independent Y_k ~ Lap(c_k), and its gradient in c, shape (K,).

    The |Y_k| are exponential with mean c_k. By inclusion and exclusion the mean of their maximum is the sum over the
    sets S of queries of (-1)^(|S| + 1) / sum over S of 1 / c_k. Convex, and homogeneous of degree 1: gradient * c is
    the value.

    Examples
    --------
    >>> value, gradient = mean_largest_noise(np.array([1.0, 1.0]))
    >>> value, gradient.tolist()
    (1.5, [0.75, 0.75])
    """
    gradient = np.zeros_like(c)
    noisy = np.flatnonzero(c > NO_NOISE * c.max(initial=0.0))
    if len(noisy) > MAX_QUERIES:
        raise UsageError(f"c must have at most {MAX_QUERIES} scales above 0, got {len(noisy)}.")
    # With e = c / max c: the set's term is sign / sum (1 / e_k), its derivative in e_k is sign / (e_k sum)^2.
    e = c[noisy] / c.max() if noisy.size else c[noisy]
    for size in range(1, len(noisy) + 1):
        sets = np.array(list(itertools.combinations(range(len(noisy)), size)))  # (sets, size)
        parts = 1.0 / e[sets]
        total = parts.sum(axis=1, keepdims=True)
        np.add.at(gradient, noisy[sets], (-1.0) ** (size + 1) * (parts / total) ** 2)
    gradient = np.clip(gradient, 0.0, 1.0)  # it lies there; rounding of the alternating sum need not
    return float(gradient @ c), gradient


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """The data of the optimisation, with the pairs of finite budget.

    `cuts` are gradients of E max |Y_k| that were met so far: gradient * c is below it for every c, so each program
    starts with those of the programs before it.
    """

    queries: FloatArray
    metric: FloatArray
    records: int
    loss: Loss
    delta: float
    first: IntArray
    second: IntArray
    limits: FloatArray
    cuts: list[FloatArray] = dataclasses.field(default_factory=list, repr=False)

    @classmethod
    def of(cls, queries: ArrayLike, metric: ArrayLike, records: int, loss: Loss, delta: float) -> Self:
        check_among("loss", loss, LOSSES)
        rows = table("queries", np.atleast_2d(np.asarray(queries, dtype=float)), (None, None), finite=True)
        if loss == "linf" and len(rows) > MAX_QUERIES:
            raise UsageError(f"queries must be at most {MAX_QUERIES} for the loss 'linf', got {len(rows)}.")
        budgets = budget_matrix(metric, rows.shape[1])
        count = whole_number("records", records, 1)
        level = number("delta", delta, "in (0, 1]", lambda v: 0.0 < v <= 1.0)
        first, second = np.triu_indices(rows.shape[1], 1)
        kept = np.isfinite(budgets[first, second])
        first, second = first[kept], second[kept]
        return cls(rows, budgets, count, loss, level, first, second, budgets[first, second])

    def value(self, answered: FloatArray, c: FloatArray) -> float:
        return loss_value(self.queries, answered, c, self.records, self.loss, self.delta)

    def gaps(self, answered: FloatArray) -> FloatArray:
        """|B[k, i] - B[k, j]| over the pairs of finite budget, shape (K, pairs)."""
        return np.abs(answered[:, self.first] - answered[:, self.second])

    @property
    def unit(self) -> float:
        """A length of the size of the scales, for the solver."""
        ratios = self.gaps(self.queries)[:, self.limits > 0.0] / self.limits[self.limits > 0.0]
        largest = float(ratios.max(initial=0.0))
        return largest if largest > 0.0 else 1.0


def _components(problem: Problem, links: Any) -> IntArray:
    """A label for each element: those that a chain of the linked pairs joins have the same."""
    count = problem.queries.shape[1]
    ones = np.ones(int(links.sum()))
    graph = coo_matrix((ones, (problem.first[links], problem.second[links])), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1])


def flattened(problem: Problem, row: FloatArray) -> FloatArray:
    """The row made constant on every set of elements that finite budgets join: the constants nearest in the loss."""
    labels = _components(problem, np.ones(len(problem.limits), dtype=bool))
    if problem.loss == "squared":
        return _means(labels, row)
    result = np.empty_like(row)
    for label in range(int(labels.max()) + 1):
        values = row[labels == label]
        nearest = np.median(values) if problem.loss == "l1" else 0.5 * (values.min() + values.max())
        result[labels == label] = nearest
    return result


def merged(problem: Problem, answered: FloatArray) -> FloatArray:
    """The rows made constant on elements at distance 0."""
    labels = _components(problem, problem.limits == 0.0)
    return np.stack([_means(labels, row) for row in answered])


def repaired(problem: Problem, point: Point) -> Point:
    """A feasible point beside a nearly feasible one: equal where the distance is 0, scales times one factor.

    Validity: this is what makes a solver's answer private. The factor is the largest loss over budget of any pair, so
    every pair keeps its budget up to the rounding of this sum.
    """
    answered, c = point[0], np.maximum(point[1], 0.0)
    if (problem.gaps(answered)[:, problem.limits == 0.0] > 0.0).any():
        answered = merged(problem, answered)
    gaps = problem.gaps(answered)
    c = np.where((c == 0.0) & (gaps > 0.0).any(axis=1), 1e-9 * problem.unit, c)
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.where(gaps > 0.0, gaps / c[:, None], 0.0).sum(axis=0)
        factor = float(np.where(used > 0.0, used / problem.limits, 0.0).max(initial=0.0))
    return answered, c * factor


def better(problem: Problem, old: Point, new: Point | None) -> Point:
    """The better of a feasible point and a new one, repaired: as it is, or with its nearly exact rows made constant."""
    if new is None or not (np.isfinite(new[0]).all() and np.isfinite(new[1]).all()):
        return old
    candidates = [old, repaired(problem, new)]
    tiny = np.flatnonzero(new[1] <= 1e-6 * problem.unit)
    if tiny.size:
        answered, c = new[0].copy(), new[1].copy()
        answered[tiny] = [flattened(problem, row) for row in answered[tiny]]
        c[tiny] = 0.0
        candidates.append(repaired(problem, (answered, c)))
    return min(candidates, key=lambda candidate: problem.value(*candidate))


def _means(labels: IntArray, row: FloatArray) -> FloatArray:
    return np.asarray((np.bincount(labels, row) / np.bincount(labels))[labels])
