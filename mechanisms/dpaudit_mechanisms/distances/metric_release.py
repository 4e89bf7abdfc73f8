"""Distance queries of any metric space: embed data and queries without a look at the data, then answer in l1.

The answer to a query y estimates the mean of d(x, y) up to the distortion of the embedding, and up to the error of the
l1 mechanism (MQ-A3, MQ-T7). The images of two databases that differ in one point differ in one point, so that what the
l1 mechanism promises holds of the whole (MQ-T8).

`scale` multiplies the answers by a public factor. At 1 they are of images with expansion at most 1; a larger one undoes
part of the contraction, such as that between public reference points and the queries (`typical_scale`).

Sources: MQ-A3, MQ-T7, MQ-T8, MQ-T10, MQ-T15.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

import numpy as np

from dpaudit_mechanisms.accuracy import largest_error
from dpaudit_mechanisms.distances.calibration import Calibration
from dpaudit_mechanisms.distances.embeddings import SubsetDistances
from dpaudit_mechanisms.distances.interactive import InteractiveDistances
from dpaudit_mechanisms.distances.offline import Hypothesis, OfflineDistances
from dpaudit_mechanisms.inputs import Checked, FloatArray, Positive, fixed
from dpaudit_mechanisms.protocol import Claim, Pair, UtilityBound


class Embedding(Protocol):
    """A map from points to a box of l1."""

    @property
    def widths(self) -> FloatArray:
        """Of the box, shape (images,)."""

    def embed(self, points: Any) -> FloatArray:
        """Images, shape (points, images)."""


@dataclasses.dataclass(frozen=True, eq=False)
class MetricDistances(Checked):
    """Figure 2 and theorems 7, 8 and 15 of Huang and Roth (2014), arXiv:1211.7302.

    M(pi(y), pi(D)) for an embedding pi into l1, and M of theorem 2.

    Answers to the average distance of a database to query points in a metric space, offline.

    Parameters
    ----------
    embedding : Embedding
        1-sensitive: chosen without a look at the data.
    queries : sequence
        The query points of `sample`.
    records : int
        n.
    epsilon, delta, beta : float
        As in `OfflineDistances`.
    scale : float
        Public factor of the answers, in (0, inf).
    databases : sequence of pairs, optional
        Pairs of databases to audit.

    Examples
    --------
    >>> from dpaudit_mechanisms.distances.embeddings import RandomProjection
    >>> mechanism = MetricDistances(RandomProjection(2, 8), [[0.0, 0.0]], 10**5, 1.0)
    >>> angles = np.linspace(0.0, 6.283, 10**5)
    >>> circle = 0.5 * np.column_stack([np.cos(angles), np.sin(angles)])
    >>> mechanism.sample(circle, 2, np.random.default_rng(1)).round(1).tolist()
    [[0.3], [0.3]]
    """

    embedding: Embedding = dataclasses.field(repr=False)
    queries: Sequence[Any] = dataclasses.field(repr=False)
    records: int
    epsilon: float
    delta: float = 0.0
    beta: float = 0.05
    scale: Positive = 1.0
    databases: Sequence[tuple[Any, Any]] = ()
    inner: OfflineDistances = dataclasses.field(init=False, repr=False)
    _places: FloatArray = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        inner = OfflineDistances(self.records, self.embedding.widths, self.epsilon, self.delta, self.beta)
        fixed(self, inner=inner, _places=self.embedding.embed(self.queries))

    @property
    def claim(self) -> Claim:
        """Claim of the l1 mechanism."""
        return self.inner.claim

    @property
    def alpha(self) -> float:
        """Error beyond the distortion, in units of the answers, with probability at least 1 - beta."""
        return self.scale * self.inner.alpha

    def images(self, data: Any) -> FloatArray:
        """The database that the l1 mechanism sees, shape (n, images)."""
        return self.embedding.embed(data)

    def noiseless(self, data: Any) -> FloatArray:
        """The answers without noise and learning, shape (queries,): what the embedding alone makes of the data."""
        images = self.images(data)
        means = [float(np.abs(images - place).sum(axis=1).mean()) for place in self._places]
        return self.scale * np.array(means)

    def release(self, data: Any, rng: np.random.Generator) -> Hypothesis:
        """One hypothesis over the images, which answers any query once it is embedded."""
        return self.inner.release(self.images(data), rng)

    def utility_bounds(self) -> list[UtilityBound]:
        """`alpha` on all answers, beyond the distortion of the embedding (MQ-T7, MQ-T15), where it says anything."""
        highest = self.scale * float(self.inner.widths.sum())
        if self.alpha >= highest / 2.0:
            return []
        bound = largest_error(self.noiseless, self.alpha, self.beta, "MQ-T7")
        return [dataclasses.replace(bound, largest_loss=highest)]

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` vectors of answers, shape (size, queries)."""
        return self.scale * self.inner.answers(self.images(data), self._places, size, rng)

    def pairs(self) -> list[Pair]:
        """The databases given."""
        return [Pair(x, x_prime) for x, x_prime in self.databases]


@dataclasses.dataclass(frozen=True, eq=False)
class EmbeddedDistances:
    """Figure 2 of Huang and Roth (2014), arXiv:1211.7302, with M of theorem 1.

    M(pi(y), pi(D)) for an embedding pi into l1.

    The interactive mechanism on images: an analyst asks for points of the metric space, one by one.

    Not for embeddings that are chosen with the queries: these need all of them before the first answer (MQ-R8.2).

    Parameters
    ----------
    embedding : Embedding
        1-sensitive: chosen without a look at the data.
    calibration : Calibration
        For the box of the images.
    analyst : callable
        The next query of each run, a sequence of points, from the answers so far, shape (runs, queries so far).
    queries : int
        How many are asked.
    databases : sequence of pairs, optional
        Pairs of databases to audit.

    Examples
    --------
    >>> from dpaudit_mechanisms.distances import FixedQueries, RandomProjection
    >>> embedding = RandomProjection(2, 3)
    >>> tuned = Calibration(10, embedding.widths, 1, 0.1, 0.1, 0.1, 0.1)
    >>> mechanism = EmbeddedDistances(embedding, tuned, FixedQueries([[0.5, 0.0]]), 1)
    >>> mechanism.sample(np.zeros((10, 2)), 4, np.random.default_rng(1)).shape
    (4, 1)
    """

    embedding: Embedding = dataclasses.field(repr=False)
    calibration: Calibration
    analyst: Callable[[FloatArray], Any] = dataclasses.field(repr=False)
    queries: int
    databases: Sequence[tuple[Any, Any]] = ()

    @property
    def claim(self) -> Claim:
        """Claim of the l1 mechanism."""
        return self.calibration.claim

    def embedding_of(self, data: Any) -> Embedding:
        """The embedding that serves a database: the same for all of them."""
        return self.embedding

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` vectors of answers, shape (size, queries)."""
        used = self.embedding_of(data)
        return self._inner(used).sample(used.embed(data), size, rng)

    def _inner(self, used: Embedding) -> InteractiveDistances:
        return InteractiveDistances(self.calibration, lambda answers: used.embed(self.analyst(answers)), self.queries)

    def with_budget(self, factor: float) -> Self:
        """The same queries with the noise of `factor` times the budget (`Calibration.with_budget`)."""
        return dataclasses.replace(self, calibration=self.calibration.with_budget(factor))

    def utility_bounds(self) -> list[UtilityBound]:
        """Bounds of the l1 mechanism: the error beyond the distortion of the embedding."""
        return [
            dataclasses.replace(
                bound, loss=lambda data, outputs, of=bound.loss: of(self.embedding.embed(data), outputs)
            )
            for bound in self._inner(self.embedding).utility_bounds()
        ]

    def pairs(self) -> list[Pair]:
        """The databases given."""
        return [Pair(x, x_prime) for x, x_prime in self.databases]


def typical_scale(embedding: SubsetDistances, reference: Sequence[Any]) -> float:
    """The factor that makes distances from public reference points to the queries right on average.

    From public things alone: never from the data. Query points themselves are a poor reference, as the sets of
    probability 1 tell none of them apart.
    """
    distances = np.asarray(embedding.distance(reference, embedding.queries), dtype=float)
    images, places = embedding.embed(reference), embedding.embed(embedding.queries)
    mapped = np.stack([np.abs(images - place).sum(axis=1) for place in places])
    return float(distances.sum() / mapped.sum()) if mapped.sum() > 0.0 else 1.0
