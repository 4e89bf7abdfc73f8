"""Base of SmallDB and MWEM: linear queries with a metric on the universe, and statements on their largest error.

Letters: Q' distorted queries (K, N), d metric (N, N) in nats, c in query units per nat, n records. A released histogram
y of total n answers query k by c q'_k(y), somewhere between n min and n max of c q'_k; so no release errs by more than

    largest(x) = max over k of max(n max_i c q'_ki - c q'_k(x), c q'_k(x) - n min_i c q'_ki),

which is between half of n times the largest range of a query, and all of it. An error bound of at least half of it says
nothing on some histogram, and is not stated.
"""

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from dpaudit_mechanisms.dx_exponential import ROUNDING, query_gaps, smallest_scale
from dpaudit_mechanisms.histograms import HistogramMetric, histogram_of
from dpaudit_mechanisms.index_metric import budget_matrix
from dpaudit_mechanisms.inputs import ArrayLike, Checked, Count, FloatArray, IntArray, Positive, fixed, table
from dpaudit_mechanisms.protocol import Claim, MetricDP, UsageError, UtilityBound


class AnswersQueries(Checked, ABC):
    """A mechanism on histograms of n records whose output answers queries c q'; a frozen dataclass."""

    queries: FloatArray
    metric: FloatArray
    c: Positive
    records: Count
    input_kind = "counts"

    @abstractmethod
    def answers(self, outputs: ArrayLike) -> FloatArray:
        """c q' of what is released, shape (size, K)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        queries = table("queries", self.queries, (None, None), finite=True)
        metric = budget_matrix(self.metric, queries.shape[1])
        check_queries(queries, metric)
        fixed(self, queries=queries, metric=metric)

    @property
    def claim(self) -> Claim:
        """`MetricDP` over neighbouring histograms."""
        return MetricDP(HistogramMetric(self.metric))

    def with_budget(self, factor: float) -> Self:
        """The same queries c q', with `factor` times the metric: q' grows and c shrinks by the factor."""
        changed = {"queries": self.queries * factor, "metric": self.metric * factor, "c": self.c / factor}
        return dataclasses.replace(self, **changed)  # type: ignore[type-var]

    def _input(self, data: Any) -> IntArray:
        return histogram_of(data, self.queries.shape[1], self.records)


def check_queries(queries: FloatArray, metric: FloatArray) -> None:
    """Refuse queries with |q'_i - q'_j| > d(i, j) somewhere (the condition of DX-T5 and DX-T7)."""
    gaps = query_gaps(queries)
    if smallest_scale(gaps, metric) > 1.0 + ROUNDING:
        i, j = np.argwhere(gaps > metric * (1.0 + ROUNDING))[0].tolist()
        raise UsageError(
            f"queries must differ by at most the metric, got {gaps[i, j]} over {metric[i, j]} at ({i}, {j})."
        )


def error_bounds(mechanism: AnswersQueries, limit: float, failures: float, source: str) -> list[UtilityBound]:
    """P(largest error of the answers c q' > limit) <= failures, where that says something on every histogram."""
    own, records = mechanism.c * mechanism.queries, mechanism.records
    highest, lowest = records * own.max(axis=1), records * own.min(axis=1)
    if limit >= 0.5 * float((highest - lowest).max()):
        return []

    def truth(data: Any) -> FloatArray:
        return own @ histogram_of(data, own.shape[1], records)

    def largest_error(data: Any, outputs: Any) -> FloatArray:
        return np.abs(mechanism.answers(outputs) - truth(data)).max(axis=1)

    def largest(data: Any) -> float:
        answers = truth(data)
        return float(np.maximum(highest - answers, answers - lowest).max()) * (1.0 + ROUNDING)

    bound = UtilityBound(
        "largest error", largest_error, limit, failure_probability=failures, largest_loss=largest, source=source
    )
    return [bound]
