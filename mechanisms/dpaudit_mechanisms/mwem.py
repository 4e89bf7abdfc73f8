"""MWEM: d_X-private multiplicative weights for a class of linear queries, vectorised over runs.

In each of T rounds the exponential mechanism chooses a query on which the current histogram y errs much, its answer is
measured with Laplace noise, and y is multiplied by weights that bring its answer nearer. The output is the average of
the histograms before the T updates. Two forms of the update are here:

* "printed" (Algorithm 2): exponent q'_i (m - q'(y)) / (2 n). The measurement m is one of c q'(x), so the difference
  mixes two units unless c = 1, and DX-T8 fails.
* "corrected": exponent c q'_i (m - c q'(y)) / (2 n). With it DX-T8 holds for queries whose c q' has a range of at most
  2 (log of the mean of e^(h z) is at most h E z + h^2 w^2 / 8 for z in an interval of length w).

Letters: Q' distorted queries (K, N), d metric (N, N) in nats, c in query units per nat, T rounds, n records.

Sources: DX-A2 (Algorithm 2), DX-T7 (privacy), DX-T8 (accuracy). Open points of DX-A2: "t < T" includes y^0, so that the
last update is not used; a query may be chosen again.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy import special

from dpaudit_mechanisms import histograms
from dpaudit_mechanisms.dx_exponential import query_gaps
from dpaudit_mechanisms.inputs import ArrayLike, Count, FloatArray, IntArray, Positive, output_batch, table
from dpaudit_mechanisms.linear_queries import AnswersQueries, error_bounds
from dpaudit_mechanisms.protocol import Pair, UsageError, UtilityBound

Update = Literal["printed", "corrected"]
Release = Literal["histogram", "transcript"]


@dataclasses.dataclass(frozen=True, eq=False)
class MWEM(AnswersQueries):
    """Algorithm 2 of Kamalaruban et al. (2018), arXiv:1806.02389.

    y_i times exp(c q'_i (m - c q'(y)) / (2 n)), m = c q'(x) + Lap(2 c T), for a query of large error, T times.

    Releases a histogram with the answers of the data, up to an error that shrinks with the number of records.

    Parameters
    ----------
    queries : array_like of float, shape (K, N)
        Q', with |q'_i - q'_j| <= d(i, j) for every row (DX-T7).
    metric : array_like of float, shape (N, N)
        d(i, j) in nats, in [0, inf]; symmetric, 0 on the diagonal.
    c : float
        In (0, inf).
    rounds : int
        T, at least 1.
    records : int
        n, the public number of records, at least 1.
    update : {"corrected", "printed"}
        See above.
    release : {"histogram", "transcript"}
        What `sample` returns: the average of the histograms, shape (size, N); or what all of them follow from, the
        chosen queries and their measurements in turn, shape (size, 2 T). The privacy guarantee covers the transcript.

    Raises
    ------
    UsageError
        If a parameter is out of range, or a query breaks the condition of DX-T7.

    Examples
    --------
    >>> mechanism = MWEM([[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], c=1.0, rounds=2, records=100)
    >>> mechanism.sample([90, 10], 3, np.random.default_rng(1)).round(1).tolist()
    [[53.1, 46.9], [52.4, 47.6], [52.5, 47.5]]
    """

    queries: FloatArray = dataclasses.field(repr=False)
    metric: FloatArray = dataclasses.field(repr=False)
    c: Positive
    rounds: Count
    records: Count
    update: Update = "corrected"
    release: Release = "histogram"

    @property
    def choice_scale(self) -> float:
        """The parameter of the exponential mechanism of one round, as it is drawn: 2 c T."""
        return 2.0 * self.c * self.rounds

    @property
    def noise_scale(self) -> float:
        """The scale of the Laplace noise of one measurement, as it is drawn: 2 c T."""
        return 2.0 * self.c * self.rounds

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` releases on one histogram, shape (size, N) or (size, 2 T)."""
        transcripts, averages = self._run(self._input(data), size, rng)
        return averages if self.release == "histogram" else transcripts

    def _run(self, x: IntArray, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Transcripts (size, 2 T) and averages (size, N) of independent runs."""
        truth = self.queries @ x  # (K,)
        transcripts, total = np.empty((size, 2 * self.rounds)), np.zeros((size, len(x)))
        for t, (y, answers) in enumerate(self._rounds(transcripts)):
            total += y
            chances = np.cumsum(special.softmax(self._choice_exponents(answers, truth), axis=1), axis=1)
            # The first query whose cumulative chance exceeds a uniform number; the last sum may be 1 - 2**-53, and the
            # product may be rounded up to it.
            uniform = rng.random((size, 1)) * chances[:, -1:]
            chosen = np.minimum((chances <= uniform).sum(axis=1), len(truth) - 1)
            measured = self.c * truth[chosen] + rng.laplace(scale=self.noise_scale, size=size)
            transcripts[:, 2 * t], transcripts[:, 2 * t + 1] = chosen, measured
        return transcripts, total / self.rounds

    def _rounds(self, transcripts: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Histogram of each round, shape (size, N), and its answers (size, K); reads a round once the next is asked."""
        logs = np.zeros((len(transcripts), self.queries.shape[1]))
        for t in range(self.rounds):
            y = self._histograms(logs)
            answers = y @ self.queries.T
            yield y, answers
            logs = self._updated(logs, answers, transcripts[:, 2 * t].astype(int), transcripts[:, 2 * t + 1])

    def _choice_exponents(self, answers: FloatArray, truth: FloatArray) -> FloatArray:
        """c |q'(y) - q'(x)| / (2 * choice_scale), shape (size, K)."""
        return self.c * np.abs(answers - truth) / (2.0 * self.choice_scale)

    def _updated(self, logs: FloatArray, answers: FloatArray, chosen: IntArray, measured: FloatArray) -> FloatArray:
        """Log weights after one update, shape (size, N)."""
        own = answers[np.arange(len(logs)), chosen]
        unit = self.c if self.update == "corrected" else 1.0
        step = unit * (measured - unit * own) / (2.0 * self.records)
        moved: FloatArray = logs + self.queries[chosen] * step[:, None]
        return moved - moved.max(axis=1, keepdims=True)

    def _histograms(self, logs: FloatArray) -> FloatArray:
        shares: FloatArray = special.softmax(logs, axis=1)
        return self.records * shares

    def averages(self, transcripts: ArrayLike) -> FloatArray:
        """The released histograms that follow from transcripts of shape (size, 2 T), shape (size, N)."""
        return sum(y for y, _ in self._rounds(self._transcripts(transcripts))) / self.rounds

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density of each transcript, shape (size,); -inf where it is impossible.

        The law of the averages has no closed form: with release="histogram" this is refused.
        """
        if self.release == "histogram":
            raise UsageError("release must be 'transcript' for a density, got 'histogram'.")
        truth = self.queries @ self._input(data)
        values = output_batch(outputs, (2 * self.rounds,))
        chosen = values[:, 0::2]
        is_possible = np.isfinite(values).all(axis=1) & np.isin(chosen, np.arange(len(truth))).all(axis=1)
        values = np.where(is_possible[:, None], values, 0.0)
        density = np.zeros(len(values))
        rows = np.arange(len(values))
        for t, (_, answers) in enumerate(self._rounds(values)):
            query, measured = values[:, 2 * t].astype(int), values[:, 2 * t + 1]
            density += special.log_softmax(self._choice_exponents(answers, truth), axis=1)[rows, query]
            density -= np.abs(measured - self.c * truth[query]) / self.noise_scale + math.log(2.0 * self.noise_scale)
        return np.where(is_possible, density, -np.inf)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Privacy loss of the transcripts of two histograms in nats: exact for one round, an upper bound for more.

        The averages that `release="histogram"` gives follow from the transcript, and lose at most as much. A round
        loses the log ratio of its choice, exactly known for the first round, where y is uniform, and at most
        c max |q'(x) - q'(x')| / choice_scale later; and c |q'(x) - q'(x')| / noise_scale for its measurement, reached
        beyond both answers.
        """
        first, second = self.queries @ self._input(x), self.queries @ self._input(x_prime)
        uniform = self._histograms(np.zeros((1, self.queries.shape[1]))) @ self.queries.T
        choices = [special.log_softmax(self._choice_exponents(uniform, truth), axis=1)[0] for truth in (first, second)]
        measurement = self.c * np.abs(first - second) / self.noise_scale
        of_first = float((np.abs(choices[0] - choices[1]) + measurement).max())
        later = self.c * float(np.abs(first - second).max()) * (1.0 / self.choice_scale + 1.0 / self.noise_scale)
        return of_first + (self.rounds - 1) * later

    def utility_bounds(self) -> list[UtilityBound]:
        """DX-T8.1 for the queries c q' that are answered, where its conditions hold and it says anything.

        At the paper's scale (N = 50, K = 200, T = 10) it is above 1.25 n for every c, more than any histogram can err,
        and so it is not stated: its first term alone asks for T above 16 log N, and K has to be far above 2 T.
        """
        own = self.c * self.queries
        failures = 2.0 * self.rounds / len(own)
        ranges = float((own.max(axis=1) - own.min(axis=1)).max())
        if self.release != "histogram" or self.update != "corrected" or failures >= 1.0 or ranges > 2.0:
            return []
        return error_bounds(self, self.error_bound(own), failures, "DX-T8.1")

    def pairs(self) -> list[Pair]:
        """The neighbours with the largest `privacy_loss` over budget, at most 20; where many, of `spread_pairs`."""
        if histograms.histogram_count(self.queries.shape[1], self.records) > histograms.MAX_COMPARED:
            return histograms.spread_pairs(self.metric, self.records, query_gaps(self.queries), self.privacy_loss)
        ratios = []
        for x in histograms.all_histograms(self.queries.shape[1], self.records):
            for x_prime, i, j in histograms.neighbours(x):
                if x.tobytes() > x_prime.tobytes() and 0.0 < self.metric[i, j] < math.inf:
                    loss = self.privacy_loss(x, x_prime) / self.metric[i, j]
                    ratios.append((-loss, tuple(x.tolist()), tuple(x_prime.tolist())))
        return [Pair(x, x_prime) for _, x, x_prime in sorted(ratios)[: histograms.MAX_PAIRS]]

    def answers(self, outputs: ArrayLike) -> FloatArray:
        """c q'(y) for every released histogram and query, shape (size, K)."""
        return self.c * (np.asarray(outputs, dtype=float) @ self.queries.T)

    def error_bound(self, queries: ArrayLike) -> float:
        """DX-T8.1: 2 n sqrt(log N / T) + 10 T c log K + n max |c q' - q|.

        It holds with probability at least 1 - 2 T / K for the corrected update and ranges of c q' of at most 2.
        """
        rows = table("queries", queries, self.queries.shape)
        count, elements = rows.shape
        distortion = self.records * float(np.abs(rows - self.c * self.queries).max())
        learning = 2.0 * self.records * math.sqrt(math.log(elements) / self.rounds)
        return learning + 10.0 * self.rounds * self.c * math.log(count) + distortion

    def _transcripts(self, transcripts: ArrayLike) -> FloatArray:
        values = output_batch(transcripts, (2 * self.rounds,))
        if not (np.isfinite(values).all() and np.isin(values[:, 0::2], np.arange(len(self.queries))).all()):
            raise UsageError(
                f"transcripts must hold positions below {len(self.queries)} and finite measurements in turn, "
                f"got {values[0].tolist()} first."
            )
        return values
