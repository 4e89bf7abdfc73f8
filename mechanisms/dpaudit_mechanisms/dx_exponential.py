"""The exponential mechanism on histograms, for any utility and any metric: d_X-private selection among finitely many.

On the histogram x the outcome r is chosen with probability proportional to exp(u'(x, r) / (2 c)). It is d-private where
Delta u'(i, j) <= c d(i, j) for all i != j: the largest change of a score when one record moves from element i to j
(DX-D5, DX-D9, DX-T3). `dpaudit_mechanisms.exponential` has the same law for inputs that are rows of a table of scores.

How good the choice is, DX-T4.2: with probability at least 1 - e^-t the chosen one of K has a score above the best one
less 2 c (log K + t). The printed statement about another utility u adds the discrepancy max |u - u'|, where it has to
be subtracted.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from scipy import special

from dpaudit_mechanisms import histograms
from dpaudit_mechanisms.finite_choice import ChoiceByScores
from dpaudit_mechanisms.index_metric import Budgets
from dpaudit_mechanisms.inputs import ArrayLike, Checked, Count, FloatArray, IntArray, fixed, table
from dpaudit_mechanisms.protocol import Claim, MetricDP, Pair, UsageError, number

Utility = Callable[[FloatArray], FloatArray]
Statement = Literal["printed", "corrected"]
ROUNDING = 1e-12  # relative slack where a given c is checked against the smallest one: two divisions and a maximum


@dataclasses.dataclass(frozen=True, eq=False)
class DxExponential(Checked, ChoiceByScores):
    """Theorem 3 of Kamalaruban et al. (2018), arXiv:1806.02389.

    P[r] proportional to exp(u'(x, r) / (2 c)), with Delta u'(i, j) <= c d(i, j) for all i, j.

    Chooses one outcome on a histogram, with weights exp(u'(x, r) / (2 c)).

    Parameters
    ----------
    utility : callable
        From histograms of shape (batch, N) to finite scores of shape (batch, outcomes); the larger, the better.
    metric : array_like of float, shape (N, N)
        d(i, j) in nats, in [0, inf]; symmetric, 0 on the diagonal.
    records : int
        n, the public number of records, at least 1.
    c : float, optional
        Units of the score per nat, in (0, inf); by default the smallest that DX-T3 allows.
    sensitivities : array_like of float, shape (N, N), optional
        Upper bounds of Delta u'(i, j), believed; by default they are found by enumeration of all histograms.

    Raises
    ------
    UsageError
        If a parameter is out of range, there are too many histograms to enumerate, c is smaller than DX-T3 allows, or a
        score changes between elements of budget 0, or nowhere (then c has to be given).

    Examples
    --------
    >>> mode = DxExponential(lambda x: x, metric=[[0.0, 1.0], [1.0, 0.0]], records=3)  # the most frequent element
    >>> mode.c
    1.0
    >>> mode.distribution([3, 0]).round(4).tolist()
    [0.8176, 0.1824]
    """

    utility: Utility = dataclasses.field(repr=False)
    metric: Budgets = dataclasses.field(repr=False)
    records: Count
    c: float | None = None
    sensitivities: FloatArray | None = dataclasses.field(default=None, repr=False)
    input_kind = "counts"

    def __post_init__(self) -> None:
        super().__post_init__()
        metric = self.metric
        if self.sensitivities is None:
            gaps = score_sensitivities(self.utility, len(metric), self.records)
        else:
            gaps = table("sensitivities", self.sensitivities, metric.shape, within="in [0, inf)")
            gaps = np.maximum(gaps, gaps.T) * ~np.eye(len(gaps), dtype=bool)  # d is symmetric: the larger one counts
        smallest = smallest_scale(gaps, metric)
        c = smallest if self.c is None else number("c", self.c, "in (0, inf)", lambda v: 0.0 < v < math.inf)
        if c == 0.0:
            raise UsageError("c must be given where no finite budget limits a score, got None.")
        if c < smallest * (1.0 - ROUNDING):
            raise UsageError(f"c must be at least {smallest!r} (sensitivity over budget, DX-T3), got {c!r}.")
        fixed(self, sensitivities=gaps, c=c)

    @property
    def claim(self) -> Claim:
        """`MetricDP` over neighbouring histograms."""
        return MetricDP(histograms.HistogramMetric(self.metric))

    @property
    def outcomes(self) -> IntArray:
        """All outputs in increasing order, shape (outcomes,)."""
        one = np.zeros((1, len(self.metric)))
        one[0, 0] = self.records
        return np.arange(self.scores(one).shape[1])

    def scores(self, histograms: ArrayLike) -> FloatArray:
        """u'(x, r), shape (batch, outcomes), for histograms of shape (batch, N)."""
        found = np.asarray(self.utility(np.asarray(histograms, dtype=float)), dtype=float)
        if found.ndim != 2 or not np.isfinite(found).all():
            raise UsageError(f"utility must return finite scores of shape (batch, outcomes), got shape {found.shape}.")
        return found

    def log_probabilities(self, histograms: ArrayLike) -> FloatArray:
        """Natural log of the probability of every outcome, shape (batch, outcomes)."""
        scores = self.scores(histograms)
        return special.log_softmax((scores - scores.max(axis=1, keepdims=True)) / self.divisor, axis=1)

    def scores_on(self, data: Any) -> FloatArray:
        return np.asarray(self.scores(self._input(data))[0])

    def log_law(self, data: Any) -> FloatArray:
        return np.asarray(self.log_probabilities(self._input(data))[0])

    def _input(self, data: Any) -> IntArray:
        """One histogram, shape (1, N)."""
        return histograms.histogram_of(data, len(self.metric), self.records)[None]

    def with_budget(self, factor: float) -> Self:
        """The same scores, with `factor` times the metric and 1 / `factor` of c."""
        return dataclasses.replace(self, metric=self.metric * factor, c=float(self.c or 0.0) / factor)

    def pairs(self) -> list[Pair]:
        """The neighbours with the largest loss over budget, at most 20; where there are many, of `spread_pairs`."""
        if histograms.histogram_count(len(self.metric), self.records) > histograms.MAX_COMPARED:
            gaps = np.asarray(self.sensitivities)
            return histograms.spread_pairs(self.metric, self.records, gaps, self.privacy_loss)
        return tightest_pairs(self.log_probabilities, self.metric, self.records)


def score_sensitivities(utility: Utility, elements: int, records: int) -> FloatArray:
    """Delta u'(i, j) of DX-D5 over all neighbouring histograms of `records` records, shape (N, N); 0 on the diagonal.

    Examples
    --------
    >>> score_sensitivities(lambda x: x @ [[0.0], [1.0], [3.0]], elements=3, records=2).tolist()
    [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]
    """
    gaps = np.zeros((elements, elements))
    # x and x' share the records - 1 that stay: one row a rest, one column a choice of the last record.
    rests = histograms.all_histograms(elements, records - 1)
    scores = np.stack([np.asarray(utility((rests + row).astype(float))) for row in np.eye(elements, dtype=int)])
    if not np.isfinite(scores).all():  # Validity: a NaN would compare as no change, and c would be too small
        raise UsageError(f"utility must return finite scores, got {scores[~np.isfinite(scores)][0]}.")
    for i in range(elements):
        for j in range(i):
            gaps[i, j] = gaps[j, i] = np.abs(scores[i] - scores[j]).max()
    return gaps


def query_gaps(queries: FloatArray) -> FloatArray:
    """The largest |q'_i - q'_j| of a query, shape (N, N)."""
    gaps = np.zeros((queries.shape[1],) * 2)
    for row in queries:  # one query at a time: (N, N) memory
        np.maximum(gaps, np.abs(row[:, None] - row), out=gaps)
    return gaps


def smallest_scale(gaps: FloatArray, metric: FloatArray) -> float:
    """max over i != j of gap / d(i, j); pairs without a gap, and of infinite budget, ask for nothing."""
    differs = gaps > 0.0
    if (differs & (metric == 0.0)).any():
        i, j = np.argwhere(differs & (metric == 0.0))[0].tolist()
        raise UsageError(f"metric must be positive where scores differ, got 0.0 at ({i}, {j}).")
    return float(np.divide(gaps, metric, out=np.zeros_like(gaps), where=differs).max())


def tightest_pairs(
    log_probabilities: Callable[[ArrayLike], FloatArray], metric: FloatArray, records: int
) -> list[Pair]:
    """The neighbouring histograms with the largest loss over budget of a finite law, at most 20."""
    inputs = histograms.all_histograms(len(metric), records)
    logs = log_probabilities(inputs)
    places = {row.tobytes(): n for n, row in enumerate(inputs)}
    ratios = []
    for n, x in enumerate(inputs):
        for x_prime, i, j in histograms.neighbours(x):
            other = places[x_prime.tobytes()]
            if n < other and 0.0 < metric[i, j] < math.inf:
                ratios.append((-float(np.abs(logs[n] - logs[other]).max() / metric[i, j]), n, other))
    return [
        Pair(tuple(inputs[n].tolist()), tuple(inputs[m].tolist())) for _, n, m in sorted(ratios)[: histograms.MAX_PAIRS]
    ]
