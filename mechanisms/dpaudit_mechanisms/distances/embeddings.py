"""Embeddings into l1 that are chosen without a look at the data: random projections, and Bourgain's with random
subsets.

An embedding maps a point to a vector of a box. It is 1-sensitive: the image of a point depends on that point, on the
queries and on public random numbers alone, so that databases that differ in one point have images that differ in one.

* `RandomProjection` takes Euclidean distances in a ball to l1: Gaussian coordinates, scaled by a bound on the expansion
  that is computed from the projection, never from the data. With "mean" scaling distances are right on average instead.
  The bound is within a factor of 1.004 of the truth in three dimensions, 1.006 in four, 1.06 in five and 1.16 in six;
  from seven on it is sqrt(images) times the largest singular value, which for many images is sqrt(pi / 2) = 1.25 times
  the truth, so that distances come out a fifth too small there. "mean" is the other side of the trade: distances are
  neither too small nor certain to be no larger, and the expansion may exceed 1 by the alpha of `sufficient_images`.
  Neither touches the privacy, which rests on the box of the images.
* `SubsetDistances` takes any metric to l1: coordinates d(x, S) for random sets S of query points, with sampling
  probabilities 1, 1/2, 1/4, ... As printed there are log2 k of them (index 0 has no sets), which is one too few: at k
  = 2 two points at distance 1 have one image (MQ-T11). Corrected: L = floor(log2 k) + 1, each set weighted 1 / (K L),
  for which the expansion is at most 1 and the contraction at most 64 L with the printed K.

Sources: MQ-D5, MQ-D6, MQ-L9, MQ-A4, MQ-T11 to MQ-C18, MQ-C4.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from scipy import optimize

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import ArrayLike, BoolArray, Checked, Count, FloatArray, Positive, fixed, table

Statement = Literal["printed", "corrected"]
NET_POINTS, MAX_CELLS = 20_000, 16  # directions of the certified stretch; cells a side of a face


def expansion_and_contraction(distances: ArrayLike, images: ArrayLike) -> tuple[float, float]:
    """max d' / d and max d / d' over pairs, from two arrays of one shape (MQ-D5); pairs with d = d' = 0 are left out.

    d = 0 < d' is an infinite expansion, d' = 0 < d an infinite contraction. Without a pair both are 1.

    Examples
    --------
    >>> expansion_and_contraction([1.0, 0.5, 0.0], [0.5, 0.5, 0.0])
    (1.0, 2.0)
    """
    d, mapped = np.asarray(distances, dtype=float).ravel(), np.asarray(images, dtype=float).ravel()
    kept = (d > 0.0) | (mapped > 0.0)
    if not kept.any():
        return 1.0, 1.0
    with np.errstate(divide="ignore"):
        return float((mapped[kept] / d[kept]).max()), float((d[kept] / mapped[kept]).max())


@dataclasses.dataclass(frozen=True, eq=False)
class RandomProjection(Checked):
    """Lemma 9 of Huang and Roth (2014), arXiv:1211.7302.

    x -> (g_j . x) for Gaussian vectors g_j, scaled and moved into a box; points within `radius` of `centre`.

    Parameters
    ----------
    dimension, images : int
        Of the points, and of their images.
    seed : int
        Of the public random numbers.
    scaling : {"certified", "mean"}
        By an upper bound on sup |Px|_1 / |x|_2, so that the expansion is at most 1; or so that the mean over
        projections of |Px|_1 is |x|_2.
    centre : array_like of float, shape (dimension,), optional
        Of the ball that points lie in; 0 by default. Others are moved onto its surface, each by itself.
    radius : float
        Of the ball, in (0, inf).

    Examples
    --------
    >>> embedding = RandomProjection(2, 200, seed=1)
    >>> images = embedding.embed([[0.5, 0.0], [-0.5, 0.0]])
    >>> images.shape, bool(0.8 < np.abs(images[0] - images[1]).sum() <= 1.0)
    ((2, 200), True)
    """

    dimension: Count
    images: Count
    seed: int = 0
    scaling: Literal["certified", "mean"] = "certified"
    centre: ArrayLike | None = None
    radius: Positive = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        given = np.zeros(self.dimension) if self.centre is None else self.centre
        fixed(self, centre=table("centre", given, (self.dimension,), finite=True))

    @functools.cached_property
    def matrix(self) -> FloatArray:
        """P, shape (images, dimension)."""
        drawn = np.random.default_rng(self.seed).normal(size=(self.images, self.dimension))
        if self.scaling == "mean":
            return math.sqrt(math.pi / 2.0) / self.images * drawn
        return drawn / largest_stretch(drawn)

    @property
    def widths(self) -> FloatArray:
        """Of the box of all images: coordinate j of the ball has the length 2 radius |g_j|."""
        return 2.0 * self.radius * np.linalg.norm(self.matrix, axis=1)

    def embed(self, points: ArrayLike) -> FloatArray:
        """Images, shape (points, images), in the box [0, widths]."""
        moved = table("points", points, (None, self.dimension)) - np.asarray(self.centre)
        largest = np.abs(moved).max(axis=1, keepdims=True)
        if not np.isfinite(largest).all():
            raise UsageError("points must be finite and within the range of doubles of the centre, got inf.")
        # In units of the largest coordinate no square overflows: each point keeps its direction, however far it is.
        units = np.where(largest > 0.0, largest, 1.0)
        norms = np.maximum(np.linalg.norm(moved / units, axis=1, keepdims=True), 1.0)  # below 1 only at the centre
        with np.errstate(over="ignore"):
            inside = moved * np.minimum(1.0, self.radius / units / norms)
        return np.asarray(np.clip(inside @ self.matrix.T + self.widths / 2.0, 0.0, self.widths))


def largest_stretch(matrix: FloatArray) -> float:
    """An upper bound on |Px|_1 over unit vectors x: exact in one and two dimensions, else from a net or a norm.

    In two dimensions |Px|_1 is linear between the directions orthogonal to the rows: its maximum is the norm of a
    signed sum of rows. In more, the smaller one of sqrt(rows) sigma_max and of the bound of `net_stretch`.
    """
    if matrix.shape[1] == 1:
        return float(np.abs(matrix).sum())
    if matrix.shape[1] == 2:
        angles = np.sort(np.arctan2(matrix[:, 1], matrix[:, 0]) % math.pi) + math.pi / 2.0
        middles = (angles + np.roll(angles, -1)) / 2.0
        middles[-1] += math.pi / 2.0
        signs = np.sign(matrix @ np.stack([np.cos(middles), np.sin(middles)]))  # (rows, middles)
        return float(np.linalg.norm(signs.T @ matrix, axis=1).max()) * (1.0 + 1e-12)
    by_norm = math.sqrt(len(matrix)) * float(np.linalg.norm(matrix, 2)) * (1.0 + 1e-12)
    return min(by_norm, net_stretch(matrix))


def net_stretch(matrix: FloatArray, points: int = NET_POINTS) -> float:
    """An upper bound on |Px|_1 over unit vectors x from its values at directions through a grid on the cube's surface.

    On a face (one coordinate is 1) let p be a point of a grid cell of side h with corners p_c, and w_c its multilinear
    weights, so that p is the mean of the corners. |P p|_1 is convex: at most the mean of |P p_c|_1 <= M |p_c|_2, with M
    the largest value over the directions p_c / |p_c|. The mean of |p_c| exceeds |p| by at most (l - 1) h^2 / 8, as
    second derivatives of |p| are at most 1 where |p| >= 1. So |P p|_1 / |p| <= M (1 + (l - 1) h^2 / 8) in l dimensions;
    every direction or its negative goes through a face.

    Parameters
    ----------
    matrix : array of float, shape (rows, l)
    points : int
        At most so many directions; the bound is infinite where not even the corners of the faces are as few.
    """
    dimension = matrix.shape[1]
    cells = min(math.floor((points / dimension) ** (1.0 / (dimension - 1)) + 1e-9) - 1, MAX_CELLS)
    if cells < 1:
        return math.inf
    axis = np.linspace(-1.0, 1.0, cells + 1)
    face = np.stack(np.meshgrid(*[axis] * (dimension - 1), indexing="ij"), axis=-1).reshape(-1, dimension - 1)
    largest = 0.0
    for i in range(dimension):
        through = np.insert(face, i, 1.0, axis=1)
        through /= np.linalg.norm(through, axis=1, keepdims=True)
        for part in np.array_split(through, math.ceil(len(through) * len(matrix) / 4_000_000)):
            largest = max(largest, float(np.abs(part @ matrix.T).sum(axis=1).max()))
    return largest * (1.0 + (dimension - 1) * (2.0 / cells) ** 2 / 8.0) * (1.0 + 1e-12)


def sufficient_images(dimension: int, alpha: float, beta: float) -> int:
    """Images with which "mean" scaling keeps every distance within a factor 1 +- alpha, with probability 1 - beta.

    |Px|_1 is a Lipschitz function of the Gaussian numbers with constant sqrt(pi / (2 images)), so it misses its mean 1
    by more than t with probability at most 2 exp(-t^2 images / pi), on each of (1 + 2 / theta)^dimension directions of
    a theta-net, and elsewhere by (t + theta) / (1 - theta) at most, on either side. O(l log(1 / alpha) / alpha^2) for
    alpha <= 1/2 (MQ-L9); the least over theta is taken.

    Examples
    --------
    >>> sufficient_images(2, 0.25, 0.01)
    885
    """

    def images(theta: float) -> float:
        t = alpha * (1.0 - theta) - theta  # then (t + theta) / (1 - theta) is alpha
        if t <= 0.0:
            return math.inf
        return math.pi * (dimension * math.log(1.0 + 2.0 / theta) + math.log(2.0 / beta)) / t**2

    found = optimize.minimize_scalar(images, bounds=(1e-9, alpha), method="bounded")
    return math.ceil(float(found.fun))


@dataclasses.dataclass(frozen=True, eq=False)
class SubsetDistances(Checked):
    """Figure 3 and theorem 11 of Huang and Roth (2014), arXiv:1211.7302.

    x -> distances to random subsets of the query points, weighted; the variant of Bourgain's embedding (MQ-A4).

    Parameters
    ----------
    distance : callable
        From two sequences of points (a) and (b) to their distances, shape (a, b), in [0, diameter].
    queries : sequence
        The k query points, a multiset: repeated ones count as often as they occur.
    sets : int
        K, the number of sets of each scale.
    seed : int
        Of the public random numbers.
    statement : {"corrected", "printed"}
        Number of scales: floor(log2 k) + 1, or as printed floor(log2 k), with weight 1 / (K log2 k).
    diameter : float
        Of the space, which is also the distance to an empty set.

    Raises
    ------
    UsageError
        If a parameter is out of range; as printed, if there is one query point only.

    Examples
    --------
    >>> embedding = SubsetDistances(lambda a, b: np.abs(np.subtract.outer(a, b)), [0.0, 1.0], sets=4)
    >>> embedding.embed([0.0, 0.25]).shape, embedding.widths.sum()
    ((2, 8), np.float64(1.0))
    """

    distance: Callable[[Sequence[Any], Sequence[Any]], FloatArray] = dataclasses.field(repr=False)
    queries: Sequence[Any] = dataclasses.field(repr=False)
    sets: Count
    seed: int = 0
    statement: Statement = "corrected"
    diameter: Positive = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        fewest = 2 if self.statement == "printed" else 1
        if len(self.queries) < fewest:
            raise UsageError(f"queries must be at least {fewest}, got {len(self.queries)}.")

    @property
    def scales(self) -> int:
        """L, the number of sampling probabilities."""
        return scales(len(self.queries), self.statement)

    @property
    def weight(self) -> float:
        """Of one coordinate."""
        logs = math.log2(len(self.queries)) if self.statement == "printed" else float(self.scales)
        return 1.0 / (self.sets * logs)

    @functools.cached_property
    def members(self) -> BoolArray:
        """Membership of query points in sets, shape (L K, k): all sets of probability 1, then of 1/2, ..."""
        rng = np.random.default_rng(self.seed)
        chances = np.repeat(0.5 ** np.arange(self.scales), self.sets)
        return rng.random((len(chances), len(self.queries))) < chances[:, None]

    @property
    def widths(self) -> FloatArray:
        """Of the box of all images."""
        return np.full(len(self.members), self.weight * self.diameter)

    def embed(self, points: Sequence[Any]) -> FloatArray:
        """Images, shape (points, L K), in the box [0, widths]."""
        return self.images_of(self.distance(points, self.queries))

    def images_of(self, distances: FloatArray) -> FloatArray:
        """Images from the distances to the query points, shape (points, k)."""
        distances = table("distances", distances, (None, len(self.queries)))
        result = np.full((len(distances), len(self.members)), self.diameter)
        for j, inside in enumerate(self.members):
            if inside.any():
                result[:, j] = distances[:, inside].min(axis=1)
        return np.asarray(self.weight * np.clip(result, 0.0, self.diameter))


def scales(queries: int, statement: Statement = "corrected") -> int:
    """The number of sampling probabilities for k query points."""
    return math.floor(math.log2(queries) + 1e-12) + (1 if statement == "corrected" else 0)
