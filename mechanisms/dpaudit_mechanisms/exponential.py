"""The exponential mechanism on finitely many outcomes: d_X-private selection by a table of scores.

Inputs and outcomes are positions: row i of the table has the scores u'(x_i, r) of all outcomes r on input i. On input i
outcome r is chosen with probability proportional to exp(scores[i, r] / (2 c)). It is d-private if every two inputs i
and j have max over r of |scores[i, r] - scores[j, r]| <= c d(i, j). Source: DX-D9 (mechanism), DX-T3 (guarantee).
"""

import dataclasses
import math
import numbers
from typing import Any, Self

import numpy as np
from scipy import special

from dpaudit_mechanisms.dx_exponential import ROUNDING, query_gaps, smallest_scale
from dpaudit_mechanisms.finite_choice import ChoiceByScores
from dpaudit_mechanisms.index_metric import IndexMetric, budget_matrix
from dpaudit_mechanisms.inputs import FloatArray, IntArray, fixed, position, positive, table
from dpaudit_mechanisms.protocol import Claim, MetricDP, Pair, PureDP, UsageError, number


@dataclasses.dataclass(frozen=True, eq=False)
class Exponential(ChoiceByScores):
    """Chooses one outcome, with weights exp(score / (2 c)).

    Parameters
    ----------
    scores : array_like of float, shape (inputs, outcomes)
        Finite; the larger, the better. Copied and made read-only.
    metric : float or array_like of float, shape (inputs, inputs)
        The budgets d(i, j) in nats, in [0, inf]; a number in (0, inf) is that budget for every two inputs (ordinary
        epsilon-DP, DX-C1).
    c : float, optional
        Units of the score per nat; the smallest that keeps the promise by default. 0 only where the scores do not
        depend on the input: then one of the best outcomes is chosen uniformly.

    Raises
    ------
    UsageError
        If a parameter is out of range, c is smaller than DX-T3 allows, scores differ between two inputs of budget 0, or
        c would be 0 although scores differ (which happens where only pairs of infinite budget differ).

    Examples
    --------
    >>> mechanism = Exponential([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], metric=1.0)
    >>> mechanism.c
    1.0
    >>> mechanism.distribution(1).round(4).tolist()
    [0.4519, 0.2741, 0.2741]
    >>> round(mechanism.privacy_loss(0, 1), 4)
    0.6636
    """

    scores: FloatArray = dataclasses.field(repr=False)
    metric: FloatArray | float = dataclasses.field(repr=False)
    c: float | None = None
    budgets: FloatArray = dataclasses.field(init=False, repr=False)
    input_kind = "position"

    def __post_init__(self) -> None:
        scores = table("scores", self.scores, (None, None), finite=True)
        if isinstance(self.metric, numbers.Real):
            epsilon = positive("metric", self.metric)
            budgets = np.where(np.eye(len(scores), dtype=bool), 0.0, epsilon)
        else:
            budgets = budget_matrix(self.metric, len(scores))
        fixed(self, scores=scores, budgets=budgets)
        fixed(self, c=self._checked_c())

    def _checked_c(self) -> float:
        gaps = query_gaps(self.scores.T)
        smallest = smallest_scale(gaps, self.budgets)
        c = smallest if self.c is None else number("c", self.c, "in [0, inf)", lambda v: 0.0 <= v < math.inf)
        if c < smallest * (1.0 - ROUNDING):
            i, j = np.unravel_index(np.argmax(gaps > c * self.budgets * (1.0 + ROUNDING)), gaps.shape)
            raise UsageError(
                f"c must be at least {smallest!r} (score gap over budget), got {c!r}: "
                f"the scores of inputs {i} and {j} differ by {gaps[i, j]}, their budget is {self.budgets[i, j]}."
            )
        if c == 0.0 and gaps.any():
            raise UsageError("c must be positive where scores depend on the input, got 0.0. Give c.")
        return c

    @property
    def claim(self) -> Claim:
        """`PureDP` where the metric is a number, else `MetricDP` over positions."""
        if isinstance(self.metric, numbers.Real):
            return PureDP(float(self.metric))
        return MetricDP(IndexMetric(self.budgets))

    @property
    def outcomes(self) -> IntArray:
        """All outputs in increasing order, shape (outcomes,)."""
        return np.arange(self.scores.shape[1])

    def log_probabilities(self) -> FloatArray:
        """Natural log of the probability of every outcome on every input, shape (inputs, outcomes)."""
        above = self.scores - self.scores.max(axis=1, keepdims=True)
        if self.divisor == 0.0:
            return np.where(above == 0.0, -np.log((above == 0.0).sum(axis=1, keepdims=True)), -np.inf)
        return special.log_softmax(above / self.divisor, axis=1)

    def scores_on(self, data: Any) -> FloatArray:
        return self.scores[position(data, len(self.scores))]

    def log_law(self, data: Any) -> FloatArray:
        return np.asarray(self.log_probabilities()[position(data, len(self.scores))])

    def with_budget(self, factor: float) -> Self:
        """The same scores, with `factor` times the metric and 1 / `factor` of c."""
        metric = self.metric * factor if isinstance(self.metric, numbers.Real) else self.budgets * factor
        return dataclasses.replace(self, metric=metric, c=float(self.c or 0.0) / factor)

    def pairs(self) -> list[Pair]:
        """All pairs with a budget in (0, inf), the one with the largest loss over budget first."""
        upper = zip(*np.triu_indices(len(self.scores), 1), strict=True)
        asked = [(int(i), int(j)) for i, j in upper if 0.0 < self.budgets[i, j] < math.inf]
        asked.sort(key=lambda ij: -self.privacy_loss(*ij) / self.budgets[ij])
        return [Pair(i, j) for i, j in asked]
