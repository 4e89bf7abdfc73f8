"""SmallDB: d_X-private release of a small database that answers a class of linear queries.

The outcome is a histogram y of m records, chosen by the exponential mechanism with the score u'(x, y) = -c max over q'
of |q'(x) - s q'(y)|, and query q is answered by c s q'(y). As printed (Algorithm 1) s = 1 and m = log|Q'| / alpha^2: y
has m records and x has n, so that the answers of y cannot come near those of x unless m is near n, and the accuracy
statements fail (DX-T9, DX-P1, DX-T6). `rescaled=True` has what holds: s = n / m with m = floor(w^2 log(2 |Q'|) / (2
alpha^2)) + 1, where w is the largest range of a query c q'.

Letters: Q' distorted queries (K, N), d metric (N, N) in nats, c in query units per nat, n records of x, m of y.

Sources: DX-A1 (Algorithm 1), DX-T5 (privacy), DX-T9, DX-P1, DX-T6 (accuracy). Open points of DX-A1: m is rounded up and
at least 1; the logarithm is natural; queries may repeat.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim, MetricDP, number
from dpaudit.privacy.pairs import Pair
from dpaudit.subjects.utility_bounds import UtilityBound
from dpaudit_mechanisms.dx_exponential import Statement, tightest_pairs
from dpaudit_mechanisms.histograms import HistogramMetric, IntArray, all_histograms, histogram_count, histogram_of
from dpaudit_mechanisms.index_metric import budget_matrix
from dpaudit_mechanisms.inputs import FloatArray, output_batch, positive, table, whole_number
from dpaudit_mechanisms.linear_queries import check_queries, error_bounds

MOST_ENUMERATED = 200_000  # histograms y; beyond, draws come from rejection
PROPOSALS = 20_000  # at a time
MOST_PROPOSALS = 20_000_000
SHARE = 0.05  # of draws that may miss the stated error


@dataclasses.dataclass(frozen=True, eq=False)
class SmallDB:
    """Algorithm 1 of Kamalaruban et al. (2018), arXiv:1806.02389.

    P[y] proportional to exp(-max over q' of |q'(x) - s q'(y)| / 2), y a histogram of m records.

    Chooses a small histogram whose answers are close to those of the data.

    Parameters
    ----------
    queries : array_like of float, shape (K, N)
        Q', with |q'_i - q'_j| <= d(i, j) for every row (DX-T5).
    metric : array_like of float, shape (N, N)
        d(i, j) in nats, in [0, inf]; symmetric, 0 on the diagonal.
    c : float
        In (0, inf).
    alpha : float
        The accuracy that m aims at, as a share of n; in (0, inf).
    records : int
        n, the public number of records, at least 1.
    rescaled : bool
        False: as printed. True: with y counted n / m times.

    Raises
    ------
    UsageError
        If a parameter is out of range, or a query breaks the condition of DX-T5.

    Examples
    --------
    >>> metric = [[0.0, 1.0], [1.0, 0.0]]
    >>> mechanism = SmallDB([[0.0, 1.0], [1.0, 0.0]], metric, c=1.0, alpha=0.9, records=4, rescaled=True)
    >>> mechanism.size, mechanism.outcomes.tolist()
    (1, [[1, 0], [0, 1]])
    >>> mechanism.distribution([4, 0]).round(4).tolist()
    [0.8808, 0.1192]
    """

    queries: FloatArray = dataclasses.field(repr=False)
    metric: FloatArray = dataclasses.field(repr=False)
    c: float
    alpha: float
    records: int
    rescaled: bool = False

    def __post_init__(self) -> None:
        queries = table("queries", self.queries, (None, None))
        metric = budget_matrix(self.metric, queries.shape[1])
        check_queries(queries, metric)
        queries.setflags(write=False)
        object.__setattr__(self, "queries", queries)
        object.__setattr__(self, "metric", metric)
        object.__setattr__(self, "c", positive("c", self.c))
        object.__setattr__(self, "alpha", positive("alpha", self.alpha))
        object.__setattr__(self, "records", whole_number("records", self.records, 1))

    @property
    def claim(self) -> Claim:
        """`MetricDP` over neighbouring histograms."""
        return MetricDP(HistogramMetric(self.metric))

    @property
    def size(self) -> int:
        """m, the number of records of y."""
        return database_size(self.queries, self.c, self.alpha, "corrected" if self.rescaled else "printed")

    @property
    def multiplier(self) -> float:
        """s, how often each record of y counts: 1 as printed, n / m where rescaled."""
        return self.records / self.size if self.rescaled else 1.0

    @property
    def divisor(self) -> float:
        """What the scores are divided by in the exponent, as it is drawn: 2 c."""
        return 2.0 * self.c

    @property
    def is_enumerated(self) -> bool:
        """Whether the range is small enough for the exact law."""
        return histogram_count(self.queries.shape[1], self.size) <= MOST_ENUMERATED

    @property
    def outcomes(self) -> IntArray:
        """All y, shape (outcomes, N), in decreasing lexicographic order; refused beyond 200,000."""
        if not self.is_enumerated:
            count = histogram_count(self.queries.shape[1], self.size)
            raise UsageError(f"the range must have at most {MOST_ENUMERATED} histograms to be enumerated, got {count}.")
        return all_histograms(self.queries.shape[1], self.size)

    def scores(self, histograms: ArrayLike, outcomes: ArrayLike) -> FloatArray:
        """u'(x, y), shape (batch, outcomes), for x of shape (batch, N) and y of shape (outcomes, N)."""
        answers = np.asarray(histograms, dtype=float) @ self.queries.T  # (batch, K)
        small = self.multiplier * (np.asarray(outcomes, dtype=float) @ self.queries.T)  # (outcomes, K)
        worst = np.zeros((len(answers), len(small)))
        for of_x, of_y in zip(answers.T, small.T, strict=True):  # one query at a time: (batch, outcomes) memory
            np.maximum(worst, np.abs(of_x[:, None] - of_y), out=worst)
        return -self.c * worst

    def log_probabilities(self, histograms: ArrayLike) -> FloatArray:
        """Natural log of the probability of every outcome, shape (batch, outcomes)."""
        logs: FloatArray = special.log_softmax(self.scores(histograms, self.outcomes) / self.divisor, axis=1)
        return logs

    def distribution(self, data: Any) -> FloatArray:
        """Probabilities of `outcomes` on one histogram, shape (outcomes,)."""
        probabilities: FloatArray = np.exp(self.log_probabilities(self._input(data)[None])[0])
        return probabilities

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> IntArray:
        """`size` histograms y, shape (size, N): from the exact law, or by rejection from it where it is too large."""
        x = self._input(data)
        if not self.is_enumerated:
            return self.sample_by_rejection(x, size, rng)
        probabilities = self.distribution(x)
        return self.outcomes[rng.choice(len(probabilities), size=size, p=probabilities)]

    def sample_by_rejection(self, data: Any, size: int, rng: np.random.Generator) -> IntArray:
        """`size` histograms y of the same law, without enumeration, shape (size, N).

        y is proposed uniformly (a multinomial draw with Dirichlet(1, ..., 1) shares) and kept with probability
        exp((u'(x, y) - b) / (2 c)), where b bounds all scores: exact, up to the rounding of doubles. b is the best
        score of any real vector y with m records, from a linear program, so that about the share of good y is kept. How
        long it takes depends on the data, which nobody but the curator may see.

        Raises
        ------
        UsageError
            If fewer than `size` of 20 million proposals are kept.
        """
        x = self._input(data)
        bound = self.best_score_bound(x)
        kept: list[IntArray] = []
        count = 0
        for _ in range(MOST_PROPOSALS // PROPOSALS):
            shares = rng.dirichlet(np.ones(len(x)), size=PROPOSALS)
            proposals = rng.multinomial(self.size, shares)  # (PROPOSALS, N)
            scores = self.scores(x[None], proposals)[0]
            accepted = proposals[-rng.standard_exponential(PROPOSALS) < (scores - bound) / self.divisor]
            kept.append(accepted)
            count += len(accepted)
            if count >= size:
                return np.concatenate(kept)[:size]
        raise UsageError(
            f"c must leave draws by rejection a chance, got {self.c}: {count} of {MOST_PROPOSALS} were kept."
        )

    def best_score_bound(self, data: Any) -> float:
        """An upper bound of all scores on one histogram: the score of the best real y >= 0 with m records."""
        x = self._input(data)
        queries, elements = self.queries, len(x)  # letters: w weights (K,), t the largest error, in units of q'
        answers, columns = queries @ x, np.full((len(queries), 1), -1.0)
        matrix = np.block([[self.multiplier * queries, columns], [-self.multiplier * queries, columns]])
        total = np.concatenate([np.ones(elements), [0.0]])[None]
        solution = optimize.linprog(
            np.concatenate([np.zeros(elements), [1.0]]),
            A_ub=matrix,
            b_ub=np.concatenate([answers, -answers]),
            A_eq=total,
            b_eq=[self.size],
        )
        if not solution.success:
            raise UsageError(f"queries must be solvable for a bound, got {solution.message}")
        # Validity: a bound below the best score would cut the law off, and the solver's optimum is exact to its
        # tolerances only. So the bound is the dual's: for any signed weights w of the queries with |w|_1 <= 1 the
        # largest error is at least w (s q'(y) - q'(x)), whose minimum over y is at a vertex, whatever the weights.
        prices = np.maximum(-solution.ineqlin.marginals, 0.0)  # of s q'(y) - q'(x) <= t, then of the other sign
        weights = (prices[: len(queries)] - prices[len(queries) :]) / max(float(prices.sum()), 1e-300)
        at_vertices = self.size * self.multiplier * (weights @ queries)
        rounding = 1e-12 * (float(np.abs(at_vertices).max()) + float(np.abs(weights) @ np.abs(answers)))
        return min(0.0, -self.c * (float(at_vertices.min()) - float(weights @ answers) - rounding))

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the probability of each y, shape (size,); -inf where it is impossible."""
        logs = self.log_probabilities(self._input(data)[None])[0]
        places = {row.tobytes(): n for n, row in enumerate(self.outcomes)}
        values = output_batch(outputs, (self.queries.shape[1],))
        whole = np.isfinite(values).all(axis=1) & (values >= 0.0).all(axis=1) & (values % 1.0 == 0.0).all(axis=1)
        found = [
            places.get(row.astype(np.int64).tobytes()) if good else None
            for row, good in zip(values, whole, strict=True)
        ]
        return np.array([-np.inf if n is None else logs[n] for n in found])

    def answers(self, outputs: ArrayLike) -> FloatArray:
        """c s q'(y) for every y and query, shape (size, K)."""
        result: FloatArray = self.c * self.multiplier * (np.asarray(outputs, dtype=float) @ self.queries.T)
        return result

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of two histograms in nats, a maximum over outcomes."""
        logs = self.log_probabilities(np.stack([self._input(x), self._input(x_prime)]))
        return float(np.abs(logs[0] - logs[1]).max())

    @property
    def input_kind(self) -> str:
        """A histogram."""
        return "counts"

    def with_budget(self, factor: float) -> SmallDB:
        """The same queries c q', with `factor` times the metric: q' grows and c shrinks by the factor."""
        queries, metric = self.queries * factor, self.metric * factor
        return dataclasses.replace(self, queries=queries, metric=metric, c=self.c / factor)

    def utility_bounds(self) -> list[UtilityBound]:
        """`error_bound` for the queries c q' that are answered, if that says anything; as printed it is false."""
        if not self.rescaled:
            return []
        return error_bounds(self, self.error_bound(self.c * self.queries, SHARE), SHARE, "DX-P1")

    def pairs(self) -> list[Pair]:
        """The neighbours with the largest loss over budget, at most 20."""
        return tightest_pairs(self.log_probabilities, self.metric, self.records)

    def error_probability(self, data: Any, queries: ArrayLike, bound: float) -> float:
        """Exact probability that max |q(x) - c s q'(y)| exceeds `bound`, for queries Q of shape (K, N)."""
        x = self._input(data)
        truth = table("queries", queries, self.queries.shape) @ x
        errors = np.abs(self.answers(self.outcomes) - truth).max(axis=1)
        return float(self.distribution(x)[errors > bound].sum())

    def error_bound(self, queries: ArrayLike, beta: float) -> float:
        """The bound of DX-P1 on max |q(x) - c s q'(y)| that is to hold with probability 1 - beta.

        As printed where the mechanism is as printed (false: DX-P1). Where rescaled:
        n max |q - c q'| + alpha n + 2 c (m log N + log(1 / beta)).
        """
        rows = table("queries", queries, self.queries.shape)
        distortion = self.records * float(np.abs(rows - self.c * self.queries).max())
        elements, count = math.log(rows.shape[1]), math.log(len(rows))
        size = self.size if self.rescaled else count / self.alpha**2
        return distortion + self.alpha * self.records + 2.0 * self.c * (size * elements - math.log(_share(beta)))

    def _input(self, data: Any) -> IntArray:
        return histogram_of(data, self.queries.shape[1], self.records)


def database_size(queries: ArrayLike, c: float, alpha: float, statement: Statement) -> int:
    """m: ceil(log K / alpha^2) as printed, floor(w^2 log(2 K) / (2 alpha^2)) + 1 corrected; at least 1.

    Corrected: m independent draws of records of x miss the share of one query by more than alpha with probability at
    most 2 exp(-2 m alpha^2 / w^2) (Hoeffding), which K queries sum to less than 1; so some y misses none.
    """
    rows = table("queries", queries, (None, None))
    if statement == "printed":
        return max(1, math.ceil(math.log(len(rows)) / alpha**2))
    width = c * float((rows.max(axis=1) - rows.min(axis=1)).max())
    return math.floor(width**2 * math.log(2 * len(rows)) / (2.0 * alpha**2)) + 1


def gamma(elements: int, queries: int, beta: float, statement: Statement) -> float:
    """gamma of DX-T6, for queries of range at most 1: 16 log N log K + 4 log(1 / beta) as printed.

    Corrected: 4 (2 log(2 K) + 1) log N + 4 log(1 / beta), for the rescaled mechanism at alpha / 2 with alpha <= 1.
    """
    n, k, last = math.log(elements), math.log(queries), -math.log(_share(beta))
    if statement == "printed":
        return 16.0 * n * k + 4.0 * last
    return 4.0 * (2.0 * math.log(2 * queries) + 1.0) * n + 4.0 * last


def cube_root_bound(records: int, c: float, gamma_value: float) -> float:
    """(c n^2 gamma)^(1/3), the second term of DX-T6.1: alpha n at alpha = (c gamma / n)^(1/3)."""
    return float(np.cbrt(c * records**2 * gamma_value))


def _share(beta: float) -> float:
    return number("beta", beta, "in (0, 1]", lambda v: 0.0 < v <= 1.0)
