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

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

from dpaudit_mechanisms.accuracy import SHARE
from dpaudit_mechanisms.dx_exponential import Statement, query_gaps, tightest_pairs
from dpaudit_mechanisms.finite_choice import ChoiceByScores
from dpaudit_mechanisms.histograms import MAX_COMPARED, all_histograms, histogram_count, spread_pairs
from dpaudit_mechanisms.inputs import ArrayLike, Count, FloatArray, IntArray, Positive, output_batch, probability, table
from dpaudit_mechanisms.linear_queries import AnswersQueries, error_bounds
from dpaudit_mechanisms.protocol import Pair, UsageError, UtilityBound

MAX_ENUMERATED = 200_000  # histograms y; beyond, draws are ends of chains
SWEEPS = 200  # of a chain; from 100 on the scores of runs from both starts agree at N = 50 and 741
MAX_NATS = 64.0  # that a record of y may count for
CELLS = 4_000_000  # numbers of one step of all chains: memory


@dataclasses.dataclass(frozen=True, eq=False)
class SmallDB(AnswersQueries, ChoiceByScores):
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
    c: Positive
    alpha: Positive
    records: Count
    rescaled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.size  # refuses what is too large to draw

    @property
    def size(self) -> int:
        """m, the number of records of y."""
        return database_size(self.queries, self.c, self.alpha, "corrected" if self.rescaled else "printed")

    @property
    def multiplier(self) -> float:
        """s, how often each record of y counts: 1 as printed, n / m where rescaled."""
        return self.records / self.size if self.rescaled else 1.0

    @property
    def is_enumerated(self) -> bool:
        """Tell whether the range is small enough for the exact law."""
        return histogram_count(self.queries.shape[1], self.size) <= MAX_ENUMERATED

    @property
    def outcomes(self) -> IntArray:
        """All y, shape (outcomes, N), in decreasing lexicographic order; refused beyond 200,000."""
        if not self.is_enumerated:
            count = histogram_count(self.queries.shape[1], self.size)
            raise UsageError(f"the range must have at most {MAX_ENUMERATED} histograms to be enumerated, got {count}.")
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
        return special.log_softmax(self.scores(histograms, self.outcomes) / self.divisor, axis=1)

    def scores_on(self, data: Any) -> FloatArray:
        return np.asarray(self.scores(self._input(data)[None], self.outcomes)[0])

    def log_law(self, data: Any) -> FloatArray:
        return np.asarray(self.log_probabilities(self._input(data)[None])[0])

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> IntArray:
        """`size` histograms y, shape (size, N): from the exact law, or the ends of chains where it is too large.

        Raises
        ------
        UsageError
            At once, if chains would not forget their starts: where a record of y counts for more than 64 nats.
        """
        x = self._input(data)
        if self.is_enumerated:
            return self.outcomes[super().sample(x, size, rng)]
        chains = max(1, min(size, CELLS // (len(self.queries) * (self.size + 1))))
        starts = range(0, size, chains)
        return np.concatenate([self._ends(x, min(chains, size - start), rng) for start in starts] or [x[None][:0]])

    def _ends(self, x: IntArray, count: int, rng: np.random.Generator) -> IntArray:
        y = self.uniform(count, rng)
        for _ in self.chains(x, y, rng):
            pass
        return y

    def uniform(self, count: int, rng: np.random.Generator) -> IntArray:
        """`count` histograms of m records, all equally likely, shape (count, N): where chains start, whatever x is."""
        return rng.multinomial(self.size, rng.dirichlet(np.ones(self.queries.shape[1]), size=count))

    def chains(
        self, data: Any, y: IntArray, rng: np.random.Generator, sweeps: int = SWEEPS, heated: bool = True
    ) -> Iterator[FloatArray]:
        """Moves histograms y of shape (chains, N) in place, and yields their scores after each sweep, shape (chains,).

        A Gibbs sampler: for the two elements of a pair, how their records are split is drawn from its law given the
        rest. A sweep takes every element in one pair; the pairs are fixed by the number of the sweep, so that chains
        know nothing of each other. The first half of a heated run goes from the uniform law to this one. The promise is
        that of the law, so what a chain has not forgotten of its start is not covered: look at scores of runs from
        other starts, and at `constrained.diagnostics`.

        Raises
        ------
        UsageError
            If a record of y counts for more than 64 nats. At 54 nats 200 sweeps forget where they started (N = 50 and
            741, 20 queries: the scores of runs from uniform y and from y like x agree), at 160 they do not.
        """
        x, queries = self._input(data), self.multiplier * self.queries
        ranges = float((queries.max(axis=1) - queries.min(axis=1)).max())
        nats = 2.0 * self.c / self.divisor * ranges
        if nats > MAX_NATS:
            raise UsageError(
                f"a record of y must count for at most {MAX_NATS:g} nats for chains to mix, got {nats:.3g}. Use a "
                "smaller alpha, for a y of more records, or another mechanism, such as MWEM."
            )
        gaps = y @ queries.T - self.queries @ x  # (chains, K), in units of q'
        for sweep in range(sweeps):
            order = np.random.default_rng(sweep).permutation(len(x))
            weight = self.c / self.divisor * (min(1.0, 2.0 * (sweep + 1) / sweeps) if heated else 1.0)
            for i, j in zip(order[0::2], order[1::2], strict=False):
                _split_again(y, gaps, int(i), int(j), queries[:, i] - queries[:, j], weight, rng)
            yield -self.c * np.abs(gaps).max(axis=1)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the probability of each y, shape (size,); -inf where it is impossible."""
        logs = self.log_law(data)
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
        return self.c * self.multiplier * (np.asarray(outputs, dtype=float) @ self.queries.T)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of two histograms in nats, a maximum over outcomes; beyond enumeration an upper bound.

        The bound is max over q' of |q'(x) - q'(x')|, as scores and the normaliser each change by at most half of it.
        """
        first, second = self._input(x), self._input(x_prime)
        if not self.is_enumerated:
            return 2.0 * self.c / self.divisor * float(np.abs(self.queries @ (first - second)).max())
        return super().privacy_loss(first, second)

    def utility_bounds(self) -> list[UtilityBound]:
        """`error_bound` for the queries c q' that are answered, if that says anything; as printed it is false."""
        if not self.rescaled:
            return []
        return error_bounds(self, self.error_bound(self.c * self.queries, SHARE), SHARE, "DX-P1")

    def pairs(self) -> list[Pair]:
        """The neighbours with the largest loss over budget, at most 20; where there are many, of `spread_pairs`."""
        if self.is_enumerated and histogram_count(len(self.metric), self.records) <= MAX_COMPARED:
            return tightest_pairs(self.log_probabilities, self.metric, self.records)
        return spread_pairs(self.metric, self.records, query_gaps(self.queries), self.privacy_loss)

    def error_bound(self, queries: ArrayLike, beta: float) -> float:
        """The bound of DX-P1 on max |q(x) - c s q'(y)| that is to hold with probability 1 - beta.

        As printed where the mechanism is as printed (false: DX-P1). Where rescaled:
        n max |q - c q'| + alpha n + 2 c (m log N + log(1 / beta)).
        """
        rows = table("queries", queries, self.queries.shape)
        distortion = self.records * float(np.abs(rows - self.c * self.queries).max())
        elements, count = math.log(rows.shape[1]), math.log(len(rows))
        nats = elements * (self.size if self.rescaled else count / self.alpha / self.alpha) - math.log(
            probability("beta", beta)
        )
        return distortion + self.alpha * self.records + 2.0 * self.c * nats


def _split_again(
    y: IntArray, gaps: FloatArray, i: int, j: int, difference: FloatArray, weight: float, rng: np.random.Generator
) -> None:
    """Draw anew how the records of i and j are split, given the rest of each y, in place."""
    totals = y[:, i] + y[:, j]
    rows = np.flatnonzero(totals)
    choices = np.arange(totals.max(initial=0) + 1)
    without = gaps[rows] - y[rows, i][:, None] * difference  # (rows, K)
    logs = -weight * np.abs(without[:, None] + choices[:, None] * difference).max(axis=2)  # (rows, choices)
    logs[choices > totals[rows, None]] = -np.inf
    chosen = (logs + rng.gumbel(size=logs.shape)).argmax(axis=1)
    y[rows, i], y[rows, j] = chosen, totals[rows] - chosen
    gaps[rows] = without + chosen[:, None] * difference


def database_size(queries: ArrayLike, c: float, alpha: float, statement: Statement) -> int:
    """m: ceil(log K / alpha^2) as printed, floor(w^2 log(2 K) / (2 alpha^2)) + 1 corrected; at least 1.

    Corrected: m independent draws of records of x miss the share of one query by more than alpha with probability at
    most 2 exp(-2 m alpha^2 / w^2) (Hoeffding), which K queries sum to less than 1; so some y misses none. Refused where
    one step of a chain would have more than 10 `CELLS` numbers.
    """
    rows = table("queries", queries, (None, None))
    is_printed, count = statement == "printed", len(rows)
    units = (1.0 if is_printed else c * float((rows.max(axis=1) - rows.min(axis=1)).max())) / alpha
    needed = units * units * (math.log(count) if is_printed else 0.5 * math.log(2 * count))
    most = 10 * CELLS // count
    if not needed < most:
        raise UsageError(f"alpha must be larger for a y of at most {most:,} records, got {alpha!r} for {needed:.3g}.")
    return max(1, math.ceil(needed)) if is_printed else math.floor(needed) + 1
