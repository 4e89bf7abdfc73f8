"""The sparse vector technique as a session: which queries of an analyst are above a threshold, up to a number of them.

Queries come one at a time, each a position of the input: a vector of counts, which change by at most 1 between
neighbours; the analyst sees each answer before the next query. The threshold is noisy, and so is every comparison; a
query above gives True and a fresh noise of the threshold, and after `most` of them the session ends. All of it, of any
length, keeps epsilon: Laplace noise of scale 2 most / epsilon for the threshold and 4 most / epsilon for a comparison
(Dwork and Roth 2014, algorithms 1 and 2 and theorems 3.23 and 3.25).
"""

import dataclasses
import math
from typing import Any

import numpy as np

from dpaudit_mechanisms.accuracy import SHARE
from dpaudit_mechanisms.inputs import Count
from dpaudit_mechanisms.protocol import Pair, SessionEnded, UtilityBound
from dpaudit_mechanisms.pure import Pure


@dataclasses.dataclass(frozen=True)
class SparseVector(Pure):
    """Tells which counts are above a threshold, up to `most` of them.

    Parameters
    ----------
    epsilon : float
        Of the whole session, positive.
    threshold : float
    most : int
        At least 1: the session ends when so many queries were above.

    Examples
    --------
    >>> session = SparseVector(epsilon=10.0, threshold=50.0).start((0, 100), np.random.default_rng(1))
    >>> [session.answer(0), session.answer(1)]
    [False, True]
    """

    threshold: float
    most: Count = 1

    @property
    def threshold_scale(self) -> float:
        """Scale of the noise of the threshold."""
        return 2.0 * self.most / self.epsilon

    @property
    def query_scale(self) -> float:
        """Scale of the noise of a comparison."""
        return 4.0 * self.most / self.epsilon

    def pairs(self) -> list[Pair]:
        """Two counts near the threshold: they change places, and both rise."""
        t = self.threshold
        return [Pair((t, t + 1.0), (t + 1.0, t), "change places"), Pair((t, t), (t + 1.0, t + 1.0), "rise")]

    def utility_bounds(self) -> list[UtilityBound]:
        """P(some answer errs by more than alpha) <= `SHARE`, of sessions that ask every count once, in order.

        An answer errs by how far its count lies on the other side of the threshold. With k counts, all noises of
        comparisons are within q log(2 k / share) and those of `most` thresholds within t log(2 most / share), each with
        probability 1 - share / 2: alpha is their sum (Dwork and Roth 2014, theorem 3.26).
        """

        def loss(data: Any, outputs: Any) -> list[float]:
            over = np.asarray(data, dtype=float) - self.threshold
            wrong = [np.where(answers, -1.0, 1.0) * over[: len(answers)] for answers in outputs]
            return [float(errors.max(initial=0.0)) for errors in wrong]

        def alpha(data: Any) -> float:
            comparisons = self.query_scale * math.log(2.0 * len(data) / SHARE)
            return comparisons + self.threshold_scale * math.log(2.0 * self.most / SHARE)

        far = self.threshold + 1.2 * alpha(range(8)) * np.array([-1.0, -1.0, -1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
        return [
            UtilityBound(
                "error of an answer",
                loss,
                alpha,
                SHARE,
                inputs=[tuple(far.tolist())],
                largest_loss=lambda data: float(np.abs(np.asarray(data) - self.threshold).max()),
                source="Dwork and Roth (2014), theorem 3.26",
            )
        ]

    def start(self, data: Any, rng: np.random.Generator) -> "SparseVectorSession":
        """A session on a vector of counts."""
        return SparseVectorSession(self, np.asarray(data, dtype=float), rng)


class SparseVectorSession:
    """One session; queries are positions of the input."""

    def __init__(self, mechanism: SparseVector, counts: np.ndarray, rng: np.random.Generator) -> None:
        self.mechanism, self.counts, self.rng = mechanism, counts, rng
        self.above = 0
        self.noisy_threshold = self.fresh_threshold()

    def fresh_threshold(self) -> float:
        """The threshold with fresh noise."""
        return self.mechanism.threshold + float(self.rng.laplace(scale=self.mechanism.threshold_scale))

    def answer(self, query: int) -> bool:
        """Tell whether the count at this position is above the threshold, noise on both."""
        if self.above >= self.mechanism.most:
            raise SessionEnded
        noise = float(self.rng.laplace(scale=self.mechanism.query_scale)) if self.mechanism.query_scale else 0.0
        if self.counts[query] + noise < self.noisy_threshold:
            return False
        self.above += 1
        self.noisy_threshold = self.fresh_threshold()
        return True
