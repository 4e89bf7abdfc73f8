"""Distance queries with a planted fault each: four break their privacy, one its accuracy."""

import dataclasses
from typing import Any

import numpy as np

from dpaudit_mechanisms.distances.averages import AverageDistances
from dpaudit_mechanisms.distances.embeddings import SubsetDistances
from dpaudit_mechanisms.distances.interactive import InteractiveDistances, Run
from dpaudit_mechanisms.distances.metric_release import EmbeddedDistances, Embedding
from dpaudit_mechanisms.faulty.broken import Broken, BrokenSomewhere, Twin
from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, IntArray


class SparseVectorNotRefreshed(BrokenSomewhere, InteractiveDistances):
    """The noise of the comparisons is drawn at the first query and kept: then all of them are one noisy threshold.

    Of two queries whose errors move in opposite directions, one input can be below at the first and above at the second
    one, and its neighbour cannot. (The noise of the threshold could be kept at no cost: see the tests.)
    """

    what = "the noise of the comparisons is not refreshed: loss inf nats where two errors change places"

    def comparison_noise(self, run: Run, rng: np.random.Generator) -> FloatArray:
        return run.comparisons if run.asked else super().comparison_noise(run, rng)

    def log_distribution(self, data: Any) -> FloatArray:
        """One variable Z = threshold + its noise - the kept noise decides: the first error above Z."""
        errors, tuned = self.first_errors(data), self.calibration
        highest = np.maximum.accumulate(errors)
        tails = _difference_tail(highest - tuned.threshold, tuned.threshold_scale, tuned.query_scale)
        before = np.concatenate([[1.0], tails])  # P(Z >= the highest error so far)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.append(before[:-1] - before[1:], before[-1])))


class LearnerReadsWithoutMistakes(BrokenSomewhere, InteractiveDistances):
    """Also where the learner makes no mistake its hypothesis gets the tangent, exact as no noise was paid for.

    Its transcript does not say what was read, so `release` has to be "answers".
    """

    what = "the data are read where there was no mistake: loss inf nats at the next query of that point"

    @property
    def most_lines(self) -> int:
        return self.calibration.updates + self.queries

    def between_mistakes(
        self, run: Run, rows: IntArray, values: FloatArray, slopes: FloatArray, rng: np.random.Generator
    ) -> None:
        others = np.setdiff1d(np.arange(len(values)), rows)
        run.hypotheses.update(others, run.points[others], values[others], slopes[others])


class EmbeddingLooksAtTheData(Broken, EmbeddedDistances):
    """Bourgain's own embedding: subsets of the data, not of the queries. One point changes the images of all others."""

    what = "the subsets are drawn from the data"

    def embedding_of(self, data: Any) -> Embedding:
        """Of the data in place of the queries; of the same number of images for all databases."""
        given = self.embedding
        assert isinstance(given, SubsetDistances)
        return SubsetDistances(given.distance, list(data), given.sets, given.seed, "corrected", given.diameter)

    def sensitivity(self, x: Any, x_prime: Any) -> float:
        """Largest difference of the average image distances of two databases over the queries, times n."""
        both = []
        for data in (x, x_prime):
            used, answers = self.embedding_of(data), np.zeros((1, 0))
            for _ in range(self.queries):
                place = used.embed(self.analyst(answers))
                found = np.abs(used.embed(data) - place).sum(axis=1).mean()
                answers = np.append(answers, [[found]], axis=1)
            both.append(answers)
        return float(np.abs(both[0] - both[1]).max() * len(x))

    @property
    def fault(self) -> str:
        """Description of the fault, by the first pair."""
        (x, x_prime), *_ = self.databases
        found = self.sensitivity(x, x_prime)
        return f"{self.what}: a query changes by {found:.3g} / n, at most 1 / n is promised and paid for"


class ProjectionScaledToTheData(BrokenSomewhere, EmbeddedDistances):
    """Images are stretched about the middle of the box until those of the data fill it: one point moves all others."""

    what = "images are scaled by their own spread: a query changes by the images of all records"

    def embedding_of(self, data: Any) -> Embedding:
        """The embedding with its images multiplied by what the spread of this database leaves room for."""
        spread = float((np.ptp(self.embedding.embed(data), axis=0) / self.embedding.widths).max())
        return _Stretched(self.embedding, 1.0 / max(spread, 0.1))


@dataclasses.dataclass(frozen=True, eq=False)
class _Stretched:
    """An embedding with its images stretched about the middle of the box by a factor, and cut to it."""

    embedding: Embedding
    factor: float

    @property
    def widths(self) -> FloatArray:
        return self.embedding.widths

    def embed(self, points: Any) -> FloatArray:
        middle = self.widths / 2.0
        return np.clip(middle + self.factor * (self.embedding.embed(points) - middle), 0.0, self.widths)


class LearnerForgetsTheSlopes(Twin, InteractiveDistances):
    """Hypotheses get horizontal lines: private, and more mistakes than the calibration allows for."""

    fault = "tangents have slope 0: private, with more mistakes than were accounted for"

    def run(self, averages: AverageDistances, size: int, rng: np.random.Generator) -> Run:
        return super().run(_Flat(averages.points, averages.widths), size, rng)


class _Flat(AverageDistances):
    """Averages whose slopes are said to be 0."""

    def tangents(self, queries: ArrayLike) -> tuple[FloatArray, FloatArray]:
        values, slopes = super().tangents(queries)
        return values, np.zeros_like(slopes)


def worst_pair(records: int) -> tuple[FloatArray, FloatArray]:
    """Two databases on the line that differ in their first point: all at 0, and one of them at 1; shape (n, 1)."""
    low = np.zeros((records, 1))
    moved = low.copy()
    moved[0] = 1.0
    return low, moved


def on_the_line(a: Any, b: Any) -> FloatArray:
    """Distances of two sequences of points of the line, shape (a, b)."""
    first, second = (np.asarray(points, dtype=float).reshape(-1) for points in (a, b))
    return np.asarray(np.abs(first[:, None] - second))


def _difference_tail(at: FloatArray, b1: float, b2: float) -> FloatArray:
    """P(Lap(b1) - Lap(b2) >= at), by partial fractions of the characteristic function; their limit where b1 = b2."""
    far = np.abs(at)
    if abs(b1 - b2) <= 1e-6 * b2:  # the fractions cancel: an error of 1e-6 is better than theirs
        upper = 0.5 * (1.0 + 0.5 * far / b2) * np.exp(-far / b2)
    else:
        upper = (b1**2 * np.exp(-far / b1) - b2**2 * np.exp(-far / b2)) / (2.0 * (b1**2 - b2**2))
    return np.asarray(np.where(at >= 0.0, upper, 1.0 - upper))
