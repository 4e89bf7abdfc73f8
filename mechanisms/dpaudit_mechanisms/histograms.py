"""Databases as histograms: enumeration, neighbours, and the budget of two of them under a metric on the universe.

A histogram of n records over a universe of N elements is a vector of counts, shape (N,), with sum n. n is public and
fixed (the bounded model, DX section 3 (f)): two histograms are neighbours where one record changes from element i to
element j, x' = x - e_i + e_j, and their budget is d(i, j). The printed definition DX-D2 also has pairs of different
totals; `neighbours` has them with `bounded=False`.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit_mechanisms.index_metric import Budgets, IndexMetric
from dpaudit_mechanisms.inputs import ArrayLike, Checked, FloatArray, IntArray, table, whole_number
from dpaudit_mechanisms.protocol import Pair, UsageError

MAX_HISTOGRAMS = 1_000_000  # that are enumerated
MAX_COMPARED = 5_000  # histograms whose neighbours are all compared, for pairs: some seconds
MAX_PAIRS = 20  # that a mechanism lists


def histogram_count(elements: int, records: int) -> int:
    """Number of histograms of `records` records over `elements` elements: C(records + elements - 1, records).

    Examples
    --------
    >>> histogram_count(3, 2)
    6
    """
    return math.comb(records + elements - 1, records)


def all_histograms(elements: int, records: int) -> IntArray:
    """Every histogram of `records` records, shape (histogram_count, elements), in decreasing lexicographic order.

    Raises
    ------
    UsageError
        If there are more than a million of them.

    Examples
    --------
    >>> all_histograms(2, 2).tolist()
    [[2, 0], [1, 1], [0, 2]]
    """
    elements, records = whole_number("elements", elements, 1), whole_number("records", records, 0)
    count = histogram_count(elements, records)
    if count > MAX_HISTOGRAMS:
        raise UsageError(f"histograms must be at most {MAX_HISTOGRAMS} to be enumerated, got {count}.")
    rows = np.zeros((count, elements), dtype=np.int64)
    chosen = itertools.combinations_with_replacement(range(elements), records)
    flat = np.fromiter(itertools.chain.from_iterable(chosen), dtype=np.int64, count=count * records)
    np.add.at(rows, (np.repeat(np.arange(count), records), flat), 1)
    return rows


def neighbours(histogram: ArrayLike, bounded: bool = True) -> Iterator[tuple[IntArray, int, int]]:
    """Every x' with x_i != x'_i and x_j != x'_j for one i != j and an l1 distance of at most 2, with that i and j.

    A record moves from i to j; with `bounded=False` also those that add, or that take away, a record of i and one of j.

    Examples
    --------
    >>> [(x.tolist(), i, j) for x, i, j in neighbours([1, 0], bounded=False)]
    [([0, 1], 0, 1), ([2, 1], 0, 1)]
    """
    x = np.asarray(histogram, dtype=np.int64)
    moves = [(-1, 1)] if bounded else [(-1, 1), (1, 1), (-1, -1)]
    for at_i, at_j in moves:
        for i, j in itertools.permutations(range(len(x)), 2):
            if at_i == at_j and i > j:
                continue
            x_prime = x.copy()
            x_prime[i] += at_i
            x_prime[j] += at_j
            if x_prime.min() >= 0:
                yield x_prime, i, j


def spread_pairs(budgets: FloatArray, records: int, gaps: FloatArray, loss: Callable[[Any, Any], float]) -> list[Pair]:
    """Neighbours of every kind, without enumeration: those of the largest loss over budget first, at most 20.

    One record moves between the two elements that are nearest, furthest, typical (of the median budget) and tightest
    (of the largest gap over budget); the others are all beside it, half at either, or spread over all elements.

    Parameters
    ----------
    budgets, gaps : array of float, shape (N, N)
        d(i, j) in nats, and how far queries or scores tell i and j apart.
    records : int
        n, at least 1.
    loss : callable
        Of two histograms, in nats.

    Examples
    --------
    >>> line = np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]))
    >>> [pair.id for pair in spread_pairs(line, 4, line, lambda x, y: float(abs((x - y) @ [0.0, 1.0, 3.0])))][:2]
    ['nearest: 0 to 1, all beside it', 'nearest: 0 to 1, half at either']
    """
    first, second = np.triu_indices(len(budgets), 1)
    asked = np.flatnonzero((budgets[first, second] > 0.0) & np.isfinite(budgets[first, second]))
    if not asked.size:
        return []
    first, second = first[asked], second[asked]
    distance = budgets[first, second]
    by_distance = np.argsort(distance, kind="stable")
    kinds = {"nearest": by_distance[0], "furthest": by_distance[-1], "typical": by_distance[len(by_distance) // 2],
             "tightest": np.argmax(gaps[first, second] / distance)}  # fmt: skip
    found: dict[tuple[bytes, bytes], tuple[float, Pair]] = {}
    for kind, place in kinds.items():
        i, j = int(first[place]), int(second[place])
        rest = np.zeros((3, len(budgets)), dtype=np.int64)
        rest[0, i] = records - 1
        rest[1, i], rest[1, j] = records - 1 - (records - 1) // 2, (records - 1) // 2
        rest[2] = (records - 1) // len(budgets)
        rest[2, : (records - 1) % len(budgets)] += 1
        for others, where in zip(rest, ("all beside it", "half at either", "spread"), strict=True):
            x, x_prime = others.copy(), others.copy()
            x[i] += 1
            x_prime[j] += 1
            pair = Pair(x, x_prime, f"{kind}: {i} to {j}, {where}")
            ratio = loss(x, x_prime) / float(budgets[i, j])
            found.setdefault((x.tobytes(), x_prime.tobytes()), (ratio, pair))
    ranked = sorted(found.values(), key=lambda one: -round(one[0], 9))
    return [pair for _, pair in ranked[:MAX_PAIRS]]


@dataclasses.dataclass(frozen=True, eq=False)
class HistogramMetric(Checked):
    """The budget of two histograms: d(i, j) where one record moves from i to j, 0 for equal ones, else not asked.

    Parameters
    ----------
    budgets : array_like of float, shape (N, N)
        d(i, j) in nats, in [0, inf]; symmetric, 0 on the diagonal.
    name : str, optional
        How a claim prints the metric.

    Examples
    --------
    >>> metric = HistogramMetric([[0.0, 0.5], [0.5, 0.0]])
    >>> metric([3, 1], [2, 2]), metric([3, 1], [1, 3])
    (0.5, inf)
    """

    budgets: Budgets = dataclasses.field(repr=False)
    name: str = "matrix"

    def __call__(self, x: Any, x_prime: Any) -> float:
        elements = len(self.budgets)
        first, second = histogram_of(x, elements), histogram_of(x_prime, elements)
        change = second - first
        if not change.any():
            return 0.0
        if np.abs(change).sum() != 2 or change.sum() != 0:
            return math.inf
        return float(self.budgets[int(np.argmin(change)), int(np.argmax(change))])


class RecordMetric(IndexMetric):
    """The budget of two positions of the record that differs, or of two whole histograms (`HistogramMetric`).

    Examples
    --------
    >>> metric = RecordMetric([[0.0, 0.5], [0.5, 0.0]])
    >>> metric(0, 1), metric([3, 1], [2, 2])
    (0.5, 0.5)
    """

    def __call__(self, x: Any, x_prime: Any) -> float:
        is_position = np.ndim(x) == 0 and np.ndim(x_prime) == 0
        return super().__call__(x, x_prime) if is_position else HistogramMetric(self.budgets, self.name)(x, x_prime)


def histogram_of(data: Any, elements: int, records: int | None = None) -> IntArray:
    """An input that is a histogram, as integers of shape (elements,); with `records` its sum is checked."""
    counts = table("data", data, (elements,))
    if not (np.isfinite(counts).all() and (counts >= 0.0).all() and (counts % 1.0 == 0.0).all()):
        raise UsageError(f"data must be counts, got {counts.tolist()}.")
    if records is not None and counts.sum() != records:
        raise UsageError(f"data must have {records} records, got {counts.sum():g}.")
    return counts.astype(np.int64)
