"""The interactive mechanism: a sparse vector watches a tangent learner, which reads the data at its mistakes only.

Queries come one at a time from an analyst, who sees all answers so far; the analyst is part of the subject. At each
query the error of the hypothesis is compared with a threshold, both noisy (`calibration` has the scales). Below: the
answer is the hypothesis, and nothing else of the data is used. Above: noisy values and slopes of all coordinates are
released, the hypothesis is updated, and a new epoch starts, with *fresh* noise of the threshold. After the last update
all answers come from the hypothesis, without a look at the data.

The privacy guarantee covers the transcript: of each query, whether it was above, and what was released then (0 where
nothing was). Queries, hypotheses and answers follow from it. Given the noise r of an epoch's threshold the comparisons
are independent, so the law of a transcript is a product over epochs of an integral over r, which `log_density`
computes.

Open points of MQ-IDC, decided here: all coordinates are read and updated at a mistake (a superfluous tangent does no
harm); answers are clipped to [0, diameter]; the answer at an update is the sum of the released values.

Guarantees are of real numbers. Noise is added in doubles, whose least digits may tell of the sum that they belong to.

Sources: MQ-L3, MQ-L6, MQ-T1, MQ-A2, MQ-D1b.
"""

import dataclasses
import math
from typing import Any, Literal, Self

import numpy as np

from dpaudit_mechanisms.accuracy import log_noise
from dpaudit_mechanisms.distances.analysts import Analyst
from dpaudit_mechanisms.distances.averages import AverageDistances
from dpaudit_mechanisms.distances.calibration import Calibration
from dpaudit_mechanisms.distances.epochs import log_epochs
from dpaudit_mechanisms.distances.learner import TangentHypotheses
from dpaudit_mechanisms.finite_choice import loss_of
from dpaudit_mechanisms.inputs import BoolArray, Checked, Count, FloatArray, IntArray, output_batch, table
from dpaudit_mechanisms.protocol import Claim, Pair, SessionEnded, UsageError, UtilityBound

Release = Literal["answers", "transcript", "position"]


@dataclasses.dataclass(frozen=True, eq=False)
class InteractiveDistances(Checked):
    """Theorem 1 of Huang and Roth (2014), arXiv:1211.7302.

    F(y) = (1/n) sum over x of |x - y|_1, learned by tangents (Lemma 6) through a sparse vector (Lemma 3).

    Answers to the average l1 distance of a database on a box, query by query.

    Parameters
    ----------
    calibration : Calibration
        Noise, threshold, updates, number of records and the box.
    analyst : Analyst
        Asks; any deterministic function of the answers so far.
    queries : int
        How many are asked in `sample`, at least 1.
    release : {"answers", "transcript", "position"}
        What `sample` returns: answers, shape (size, queries); or the transcript, shape (size, queries (1 + 2 l)), of
        each query: 1.0 where it was above, then l released values and l released slopes.

    Examples
    --------
    >>> from dpaudit_mechanisms.distances import FixedQueries, practical
    >>> tuned = practical(10**6, [1.0], 1.0, queries=3, beta=0.05)
    >>> mechanism = InteractiveDistances(tuned, FixedQueries([[0.0], [0.5], [1.0]]), 3)
    >>> data = np.linspace(0.0, 1.0, 10**6)[:, None]
    >>> mechanism.sample(data, 1, np.random.default_rng(1)).round(2).tolist()
    [[0.5, 0.25, 0.5]]
    """

    calibration: Calibration
    analyst: Analyst = dataclasses.field(repr=False)
    queries: Count
    release: Release = "answers"

    @property
    def dimension(self) -> int:
        """l."""
        return len(self.calibration.widths)

    @property
    def most_lines(self) -> int:
        """Largest number of lines of a hypothesis: one an update."""
        return self.calibration.updates

    @property
    def claim(self) -> Claim:
        """Claim that the calibration accounts for: `PureDP` or `ApproxDP`."""
        return self.calibration.claim

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` independent runs on one database of shape (n, l)."""
        run = self.run(self.averages(data), max(size, 1), rng)  # an analyst needs a run to ask
        if self.release == "answers":
            return run.answers[:size]
        if self.release == "transcript":
            return run.transcripts.reshape(len(run.transcripts), -1)[:size]
        return np.argmax(np.insert(run.transcripts[:size, :, 0], self.queries, 1.0, axis=1), axis=1)

    def distribution(self, data: Any) -> FloatArray:
        """Probabilities of the positions 0 .. queries: the first query above the threshold, `queries` if there is none.

        For release="position". Before the first update the hypothesis is 0, so that queries and errors are known.
        """
        return np.exp(self.log_distribution(data))

    def log_distribution(self, data: Any) -> FloatArray:
        """The logs of these probabilities, also where they are too small for a double."""
        errors = self.first_errors(data) - self.calibration.threshold
        logs = [float(self._epochs(errors[None, : j + 1], True)[0]) for j in range(self.queries)]
        return np.array([*logs, float(self._epochs(errors[None], False)[0])])

    def first_errors(self, data: Any) -> FloatArray:
        """Errors of the hypothesis 0 at the queries that are asked as long as there is no update, shape (queries,)."""
        averages, run, found = self.averages(data), Run.start(self, 1), []
        nothing = np.zeros((0, self.dimension))
        for _ in range(self.queries):
            points, _ = run.ask()
            found.append(float(averages.value(points)[0]))
            run.tell(np.array([False]), nothing, nothing)
        return np.array(found)

    def averages(self, data: Any) -> AverageDistances:
        """The statistics of a database, once its shape is as the calibration says."""
        found = data if isinstance(data, AverageDistances) else AverageDistances(data, self.calibration.widths)
        if found.records != self.calibration.records:
            raise UsageError(f"data must have {self.calibration.records} points, got {found.records}.")
        return found

    def run(self, averages: AverageDistances, size: int, rng: np.random.Generator) -> "Run":
        """`size` runs, with the hypotheses that they end with."""
        run, thresholds = Run.start(self, size), self.fresh_thresholds(size, rng)
        for _ in range(self.queries):
            self.step(run, thresholds, averages, rng)
        return run

    def start(self, data: Any, rng: np.random.Generator) -> "DistanceSession":
        """A session whose queries, points of shape (l,), come from outside; it answers `queries` of them.

        What `sample` does with its own analyst, one run at a time: a session of `dpaudit.subjects.protocol`.
        """
        return DistanceSession(self, self.averages(data), rng)

    def fresh_thresholds(self, size: int, rng: np.random.Generator) -> FloatArray:
        """The thresholds of so many epochs, shape (size,)."""
        return self.calibration.threshold + rng.laplace(scale=self.calibration.threshold_scale, size=size)

    def step(self, run: "Run", thresholds: FloatArray, averages: AverageDistances, rng: np.random.Generator) -> None:
        """Answer the next query of each run; `thresholds` of the epochs that end are drawn anew."""
        tuned = self.calibration
        points, predicted = run.ask()
        values, slopes = averages.tangents(points)
        errors = np.abs(predicted.sum(axis=1) - values.sum(axis=1))
        run.comparisons = self.comparison_noise(run, rng)
        noisy = errors + run.comparisons
        above = (noisy > thresholds) & (run.hypotheses.updates < tuned.updates)
        rows = np.flatnonzero(above)
        # Validity: the next epoch's threshold is fresh, also where an earlier one happened to be low.
        thresholds[rows] = self.fresh_thresholds(len(rows), rng)
        released = np.stack([values[rows], slopes[rows] * tuned.widths], axis=1)  # (above, 2, l)
        released += self._release_noise(released.shape, rng)
        run.tell(above, released[:, 0], released[:, 1] / tuned.widths)
        self.between_mistakes(run, rows, values, slopes, rng)

    def comparison_noise(self, run: "Run", rng: np.random.Generator) -> FloatArray:
        """The noise of the comparison of each run, fresh at each query, shape (runs,)."""
        return rng.laplace(scale=self.calibration.query_scale, size=len(run.transcripts))

    def between_mistakes(
        self, run: "Run", rows: IntArray, values: FloatArray, slopes: FloatArray, rng: np.random.Generator
    ) -> None:
        """Hook of a run for queries on which the learner made no mistake: does nothing."""

    def _release_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        draw = rng.laplace if self.calibration.noise == "laplace" else rng.normal
        return draw(scale=self.calibration.release_scale, size=shape)

    def _log_release(self, deviations: FloatArray) -> FloatArray:
        """Log density of the noise of releases, shape (releases,)."""
        return log_noise(deviations, self.calibration.release_scale, 1 if self.calibration.noise == "laplace" else 2)

    def _epochs(self, excesses: FloatArray, ends_above: bool) -> FloatArray:
        """`epochs.log_epochs` with the noise of the calibration."""
        tuned = self.calibration
        return log_epochs(excesses, tuned.threshold_scale, tuned.query_scale, ends_above)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density of each transcript, shape (size,); -inf where it is impossible.

        By Gauss-Legendre quadrature between the kinks of each integrand: relative error below 1e-9 of each integral.
        Of positions it is the log of their probabilities. Answers alone have no closed form: with release="answers"
        this is refused.
        """
        if self.release == "position":
            places = output_batch(outputs, ())
            logs = np.append(self.log_distribution(data), -np.inf)
            known = np.isin(places, np.arange(self.queries + 1))
            return logs[np.where(known, places, self.queries + 1).astype(int)]
        if self.release != "transcript":
            raise UsageError("release must be 'transcript' for a density, got 'answers'.")
        averages, tuned, width = self.averages(data), self.calibration, 1 + 2 * self.dimension
        values = output_batch(outputs, (self.queries * width,)).reshape(-1, self.queries, width)
        flags, released = values[:, :, 0], values[:, :, 1:]
        is_possible = np.isfinite(values).all(axis=(1, 2)) & np.isin(flags, (0.0, 1.0)).all(axis=1)
        is_possible &= flags.sum(axis=1) <= tuned.updates
        is_possible &= ((flags == 1.0)[:, :, None] | (released == 0.0)).all(axis=(1, 2))
        values = np.where(is_possible[:, None, None], values, 0.0)
        flags, released = values[:, :, 0] == 1.0, values[:, :, 1:]
        run, density = Run.start(self, len(values)), np.zeros(len(values))
        excesses = np.empty((len(values), self.queries))  # error minus threshold
        first = np.zeros(len(values), dtype=np.int64)  # of each run's epoch
        for t in range(self.queries):
            points, predicted = run.ask()
            true_values, slopes = averages.tangents(points)
            excesses[:, t] = np.abs(predicted.sum(axis=1) - true_values.sum(axis=1)) - tuned.threshold
            rows = np.flatnonzero(flags[:, t])
            for start in np.unique(first[rows]):
                same = rows[first[rows] == start]
                density[same] += self._epochs(excesses[same, start : t + 1], True)
            first[rows] = t + 1
            at, scaled = released[rows, t], slopes[rows] * tuned.widths
            truth = np.concatenate([true_values[rows], scaled], axis=1)
            noisy = np.concatenate([at[:, : self.dimension], at[:, self.dimension :] * tuned.widths], axis=1)
            # The slope is released in units of slopes: its density has the widths as a factor.
            density[rows] += self._log_release(noisy - truth) + np.log(tuned.widths).sum()
            run.tell(flags[:, t], at[:, : self.dimension], at[:, self.dimension :])
        rows = np.flatnonzero((run.hypotheses.updates < tuned.updates) & (first < self.queries))
        for start in np.unique(first[rows]):
            same = rows[first[rows] == start]
            density[same] += self._epochs(excesses[same, start:], False)
        return np.where(is_possible, density, -np.inf)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """An upper bound of the loss of two databases in nats: the accounting, 0 where they agree, inf with delta.

        Exact for release="position".
        """
        if self.release == "position":
            return loss_of(self.log_distribution(x), self.log_distribution(x_prime))
        first, second = self.averages(x).points, self.averages(x_prime).points
        moved = np.flatnonzero((first != second).any(axis=1))
        if self.calibration.noise == "gaussian":
            return math.inf if len(moved) else 0.0
        return len(moved) * self.calibration.epsilon

    def with_budget(self, factor: float) -> Self:
        """The same queries with the noise of `factor` times the budget (`Calibration.with_budget`)."""
        return dataclasses.replace(self, calibration=self.calibration.with_budget(factor))

    def utility_bounds(self) -> list[UtilityBound]:
        """(alpha, beta)-accuracy of all answers (MQ-D2) as calibrated, where it says anything.

        An answer in [0, diameter] can err by half of the diameter, so a larger alpha says nothing and is not stated.
        """
        alpha, beta, diameter = self.calibration.alpha, self.calibration.beta, self.calibration.diameter
        if self.release != "answers" or alpha >= diameter / 2.0:
            return []

        def errors(data: Any, outputs: Any) -> FloatArray:
            averages, answers = self.averages(data), output_batch(outputs, (self.queries,))
            points = [table("queries", self.analyst(answers[:, :t]), (None, None)) for t in range(self.queries)]
            truth = [averages.value(np.clip(at, 0.0, self.calibration.widths)) for at in points]
            return np.asarray(np.abs(answers - np.stack(truth, axis=1)).max(axis=1))

        return [UtilityBound("largest error", errors, alpha, failure_probability=beta, largest_loss=diameter,
                             source="MQ-T1")]  # fmt: skip

    def pairs(self) -> list[Pair]:
        """One point at a corner of the box moved to the opposite one, the others at either corner."""
        n, far = self.calibration.records, self.calibration.widths
        low, high = np.zeros((n, self.dimension)), np.tile(far, (n, 1))
        moved, back = low.copy(), high.copy()
        moved[0], back[0] = far, 0.0
        return [Pair(low, moved, "one up"), Pair(high, back, "one down")]


@dataclasses.dataclass(eq=False)
class Run:
    """The state of many runs: what an analyst has seen, and the hypotheses.

    Attributes
    ----------
    mechanism : InteractiveDistances
    hypotheses : TangentHypotheses
    transcripts : numpy.ndarray of float, shape (runs, queries, 1 + 2 l)
    all_answers : numpy.ndarray of float, shape (runs, queries)
        `answers` has those that were given.
    asked : int
        Queries so far.
    points, predicted : numpy.ndarray of float, shape (runs, l)
        The query that is being answered, and its prediction.
    comparisons : numpy.ndarray of float, shape (runs,)
        The noise of its comparison.
    """

    mechanism: InteractiveDistances
    hypotheses: TangentHypotheses
    transcripts: FloatArray
    all_answers: FloatArray
    asked: int = 0
    points: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    predicted: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    comparisons: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))

    @classmethod
    def start(cls, mechanism: InteractiveDistances, size: int) -> Self:
        """Before the first query."""
        tuned, wide = mechanism.calibration, 1 + 2 * mechanism.dimension
        return cls(
            mechanism,
            TangentHypotheses(size, mechanism.most_lines, tuned.widths),
            np.zeros((size, mechanism.queries, wide)),
            np.zeros((size, mechanism.queries)),
        )

    @property
    def answers(self) -> FloatArray:
        """All answers so far."""
        return self.all_answers[:, : self.asked]

    def ask(self) -> tuple[FloatArray, FloatArray]:
        """The next query of each run, moved onto the box, and its prediction; both of shape (runs, l)."""
        # One shape only: a query of one coordinate would be broadcast to all of them.
        shape = len(self.transcripts), self.mechanism.dimension
        points = table("queries", self.mechanism.analyst(self.answers), shape)
        self.points = np.clip(points, 0.0, self.mechanism.calibration.widths)
        self.predicted = self.hypotheses.predict(self.points)
        return self.points, self.predicted

    def tell(self, above: BoolArray, values: FloatArray, slopes: FloatArray) -> None:
        """Update the runs that were above with what was released (of these only, shape (above, l)), and answer."""
        rows = np.flatnonzero(above)
        dimension = self.mechanism.dimension
        self.transcripts[rows, self.asked, 0] = 1.0
        self.transcripts[rows, self.asked, 1 : 1 + dimension] = values
        self.transcripts[rows, self.asked, 1 + dimension :] = slopes
        self.hypotheses.update(rows, self.points[rows], values, slopes)
        total = self.predicted.sum(axis=1)
        total[rows] = values.sum(axis=1)
        self.all_answers[:, self.asked] = np.clip(total, 0.0, self.mechanism.calibration.diameter)
        self.asked += 1


class DistanceSession:
    """One run of an interactive mechanism on one database, query by query."""

    def __init__(self, mechanism: InteractiveDistances, averages: AverageDistances, rng: np.random.Generator) -> None:
        self.mechanism = dataclasses.replace(mechanism, analyst=lambda answers: self.point)
        self.averages, self.rng = averages, rng
        self.point: FloatArray = np.zeros((1, mechanism.dimension))
        self.run = Run.start(self.mechanism, 1)
        self.thresholds = mechanism.fresh_thresholds(1, rng)

    def answer(self, query: Any) -> float:
        """The answer at a point; `SessionEnded` after the last one."""
        if self.run.asked >= self.mechanism.queries:
            raise SessionEnded
        self.point = np.asarray(query, dtype=float)[None]
        self.mechanism.step(self.run, self.thresholds, self.averages, self.rng)
        return float(self.run.answers[0, -1])
