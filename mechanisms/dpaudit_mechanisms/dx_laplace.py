"""d_X-private answers to linear queries over a finite universe: exact answers plus Laplace noise of one scale a query.

The input is a histogram x, as in the paper: the mechanism answers Q x + (Lap(c_1), ..., Lap(c_K)). Two inputs are
histograms at l1 distance 2, and the total number of records is public. The loss of x and x' is exactly
sum over k of |Q_k x - Q_k x'| / c[k], which depends on the record that differs alone.

So there is a second form of an input, for audits of all pairs: the position i of that record, which stands for the
histogram `base_histogram` + e_i.

Letters in this file: Q queries (K, N), d metric (N, N) in nats, c noise scales (K,) in query units per nat.

Sources: DX-A-Lap and DX-T1 (mechanism and guarantee), `dpaudit_mechanisms.noise_scales` (rules for c); degenerate cases
as in "Open points" of DX-A-Lap:

* a pair with equal answers enters no maximum, so 0/0 does not arise (a, b);
* d(i, j) = 0 with different answers: no finite c exists, refused (b);
* d(i, j) = inf asks for nothing: its ratio is 0 (c);
* all ratios of a query 0: c = 0, and that query is answered without noise (d). Under S2 all queries share one c, so a
  constant query gets noise with the others; under S1 it is counted in K.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from dpaudit_mechanisms.accuracy import SHARE, largest_error, log_noise, sum_of_errors
from dpaudit_mechanisms.histograms import RecordMetric, histogram_of
from dpaudit_mechanisms.index_metric import budget_matrix
from dpaudit_mechanisms.inputs import FloatArray, fixed, numbers, output_batch, position, table
from dpaudit_mechanisms.noise_scales import Rule, noise_scales
from dpaudit_mechanisms.protocol import Claim, MetricDP, Pair, UsageError, UtilityBound

FEASIBILITY = 1e-9  # relative: what given scales may lose above a budget, for rounding
NEARLY_TIGHT = 0.9  # `pairs` lists the pairs whose ratio is at least this share of the largest one


@dataclasses.dataclass(frozen=True, eq=False)
class DxLaplace:
    """Theorem 1 of Kamalaruban et al. (2018), arXiv:1806.02389.

    Z = Q x + (Lap(c_1), ..., Lap(c_K)), with sum over k of |Q_ki - Q_kj| / c_k <= d(i, j) for all i, j.

    Laplace noise on K linear queries, with scales that keep d(i, j) for every two elements of the universe.

    Parameters
    ----------
    queries : array_like of float, shape (K, N), or (N,) for one query
        Finite coefficients: query k of a histogram h is sum over i of queries[k, i] h[i].
    metric : array_like of float, shape (N, N)
        d(i, j) in nats, in [0, inf]; symmetric, 0 on the diagonal. The triangle inequality is not needed.
    rule : {"single", "S1", "S2", "PSA", "optimal"}, optional
        "single": K = 1, c = max |q_i - q_j| / d(i, j), outputs of shape (size,). "S1": each query keeps d / K. "S2"
        (default): one c for all queries, from the l1 distance of their columns. "PSA": Algorithm 3. "optimal": least
        sum of c_k^2. All but "single" have outputs (size, K). See `dpaudit_mechanisms.noise_scales`.
    base_histogram : array_like of float, shape (N,), optional
        The records that do not change; non-negative, finite; empty by default.
    ids : sequence of str, optional
        N names of the elements, for the ids of pairs.
    metric_name : str, optional
        How the claim prints the metric.
    scales : array_like of float, shape (K,), optional
        Scales c to use instead of a rule's, as a preprocessing finds them together with `queries`; in [0, inf).

    Raises
    ------
    UsageError
        If a shape or value is out of range, the rule is unknown, a budget of 0 meets different answers, or given scales
        break the condition of DX-T1.1 by more than 1e-9 of a budget.

    Examples
    --------
    >>> metric = [[0.0, 1.0, 3.9], [1.0, 0.0, 3.0], [3.9, 3.0, 0.0]]
    >>> mechanism = DxLaplace([0.0, 0.5, 3.0], metric, rule="single")
    >>> mechanism.c.round(4).tolist()  # the pair (1, 2) decides: 2.5 / 3
    [0.8333]
    >>> mechanism.privacy_loss(1, 2)
    3.0
    >>> mechanism.answers([2, 0, 1]).tolist(), mechanism.privacy_loss([2, 0, 1], [2, 1, 0])
    ([3.0], 3.0)
    >>> [pair.id for pair in mechanism.pairs()]  # the tight ones, then those of least and largest budget
    ['1|2', '0|2', '0|1']
    """

    queries: FloatArray = dataclasses.field(repr=False)
    metric: FloatArray = dataclasses.field(repr=False)
    rule: Rule = "S2"
    base_histogram: FloatArray | None = dataclasses.field(default=None, repr=False)
    ids: Sequence[str] | None = dataclasses.field(default=None, repr=False)
    metric_name: str = "matrix"
    scales: FloatArray | None = dataclasses.field(default=None, repr=False)
    required_c: FloatArray = dataclasses.field(init=False, repr=False)
    base_answers: FloatArray = dataclasses.field(init=False, repr=False)
    translation_family: ClassVar[bool] = True
    input_kind = "position"  # in the universe: what sets of inputs are made of; histograms are inputs too

    def __post_init__(self) -> None:
        queries = table("queries", np.atleast_2d(numbers("queries", self.queries)), (None, None))
        count = queries.shape[1]
        metric = budget_matrix(self.metric, count)
        given = np.zeros(count) if self.base_histogram is None else self.base_histogram
        histogram = table("base_histogram", given, (count,), within="in [0, inf)")
        ids = tuple(str(i) for i in range(count)) if self.ids is None else tuple(self.ids)
        if len(ids) != count or len(set(ids)) != count:
            raise UsageError(f"ids must be {count} different names, got {len(ids)} of which {len(set(ids))} differ.")
        if self.scales is None:
            required_c = noise_scales(queries, metric, self.rule)
        else:
            required_c = table("scales", self.scales, (len(queries),), within="in [0, inf)")
            _check_feasible(queries, metric, required_c)
        fixed(self, queries=queries, metric=metric, base_histogram=histogram, base_answers=queries @ histogram, ids=ids,
              required_c=required_c)  # fmt: skip

    @property
    def claim(self) -> Claim:
        """`MetricDP` over histograms, and over the positions of the record that differs."""
        return MetricDP(RecordMetric(self.metric, self.metric_name))

    @property
    def c(self) -> FloatArray:
        """Scales of the noise that is drawn, shape (K,), in query units per nat; 0 means an exact answer."""
        return self.required_c

    def answers(self, data: Any) -> FloatArray:
        """Exact answers Q x, shape (K,), of a histogram, or of `base_histogram` and a record at a position."""
        if np.ndim(data) == 0:
            return self.base_answers + self.queries[:, position(data, len(self.metric))]
        return self.queries @ histogram_of(data, len(self.metric))

    def location(self, data: Any) -> FloatArray:
        """Location of the noise: the exact answers, of the shape of one output."""
        answers = self.answers(data)
        return answers.reshape(()) if self.rule == "single" else answers

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, K), or (size,) under the rule "single"."""
        outputs: FloatArray = self.answers(data) + rng.laplace(size=(size, len(self.c))) * self.c  # (size, K)
        return outputs[:, 0] if self.rule == "single" else outputs

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density at each output, shape (size,), as `accuracy.log_noise` says."""
        values = output_batch(outputs, () if self.rule == "single" else self.c.shape)
        return log_noise(values.reshape(-1, len(self.c)) - self.answers(data), self.c)

    def losses(self) -> FloatArray:
        """Exact privacy loss of every two inputs, in nats, shape (N, N); O(K N^2) time, O(N^2) memory."""
        return laplace_losses(self.queries, self.c)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of two inputs in nats (attained beyond both answers in every coordinate)."""
        if np.ndim(x) == 0 and np.ndim(x_prime) == 0:  # exact, whatever the base histogram
            i, j = position(x, len(self.metric)), position(x_prime, len(self.metric))
            differences = np.abs(self.queries[:, i] - self.queries[:, j])
        else:
            differences = np.abs(self.answers(x) - self.answers(x_prime))
        exact = np.inf if (differences[self.c == 0.0] > 0.0).any() else 0.0
        return float(exact + (differences[self.c > 0.0] / self.c[self.c > 0.0]).sum())

    def tightness(self) -> FloatArray:
        """Loss over budget of every two inputs, shape (N, N); NaN where the budget is 0 or infinite: no ratio there."""
        has_ratio = (self.metric > 0.0) & np.isfinite(self.metric)
        return np.divide(self.losses(), self.metric, out=np.full_like(self.metric, np.nan), where=has_ratio)

    def with_budget(self, factor: float) -> Self:
        """The same queries with `factor` times the metric; given scales shrink by it."""
        scales = None if self.scales is None else np.asarray(self.scales) / factor
        return dataclasses.replace(self, metric=self.metric * factor, scales=scales)

    def utility_bounds(self) -> list[UtilityBound]:
        """DX-T2.3 for the largest error and DX-T2.2a for their sum (with equality), of the queries as asked."""
        limit = math.log(len(self.c) / SHARE) * float(self.c.max())
        deviation = float(np.linalg.norm(self.c))
        return [
            largest_error(self.location, limit, source="DX-T2.3"),
            sum_of_errors(self.location, float(self.c.sum()), "DX-T2.2a", deviation),
        ]

    def pairs(self) -> list[Pair]:
        """The nearly tight pairs, tightest first, then the pairs of smallest and of largest budget in (0, inf)."""
        first, second = np.triu_indices(len(self.metric), 1)
        ratios, budgets = self.tightness()[first, second], self.metric[first, second]
        asked = np.flatnonzero(~np.isnan(ratios))
        if not asked.size:
            return []
        order = asked[np.argsort(-ratios[asked], kind="stable")]
        tight = order[ratios[order] >= NEARLY_TIGHT * ratios[order[0]]].tolist()
        extremes = [int(asked[np.argmin(budgets[asked])]), int(asked[np.argmax(budgets[asked])])]
        return [self.pair(int(first[n]), int(second[n])) for n in dict.fromkeys(tight + extremes)]

    def pair(self, i: int, j: int) -> Pair:
        """The pair of two positions, with the names of their elements."""
        names = list(self.ids or ())
        return Pair(i, j, x_id=names[i], x_prime_id=names[j])


def laplace_losses(queries: FloatArray, c: FloatArray) -> FloatArray:
    """Exact loss of every two elements, sum over k of |Q[k, i] - Q[k, j]| / c[k] in nats, shape (N, N).

    A query without noise (c = 0) loses inf where it tells two elements apart, and nothing elsewhere.
    """
    total = np.zeros((queries.shape[1],) * 2)
    for row, scale in zip(queries, c, strict=True):
        differences = np.abs(row[:, None] - row)
        total += differences / scale if scale > 0.0 else np.where(differences > 0.0, np.inf, 0.0)
    return total


def _check_feasible(queries: FloatArray, metric: FloatArray, c: FloatArray) -> None:
    """Validity: scales that were not made by a rule keep the metric only if they satisfy DX-T1.1."""
    losses = laplace_losses(queries, c)
    over = losses > metric * (1.0 + FEASIBILITY)
    if over.any():
        i, j = np.argwhere(over)[0].tolist()
        raise UsageError(
            f"scales must keep every budget, got a loss of {losses[i, j]} nats at ({i}, {j}), budget {metric[i, j]}."
        )
