"""l_p distances for 1 < p < 2 in l1: a bounded random projection that is chosen without a look at the data.

For g with independent p-stable coordinates E|g . x| is c |x|_p (c = E|g_1|), but single terms have no variance. Drawn
with density proportional to |g|_1 in addition, and divided by |g|_1, they are bounded, and their mean is |x|_p / l:
that law is a mixture over i of "g_i size-biased, the others as they were". So l |g . x| / |g|_1 is at most l |x|_p,
with variance at most l |x|_p^2, and Bernstein's inequality with a net, as for `sufficient_images`, gives 1 +- alpha on
all of R^l from O(l^2 log(1 / alpha) / alpha^2) images (MQ-T10, whose exponent of l would need l of them).

With it `MetricDistances` and `EmbeddedDistances` answer l_p queries: what they promise rests on the box of the images,
which follows from the matrix alone.
"""

import dataclasses
import functools
import math
from typing import Annotated

import numpy as np

from dpaudit_mechanisms.inputs import ArrayLike, Checked, Count, FloatArray, Positive, table, within

Norm = Annotated[float, within("in (1, 2)", lambda v: 1.0 < v < 2.0)]


@dataclasses.dataclass(frozen=True, eq=False)
class StableProjection(Checked):
    """Theorem 10 of Huang and Roth (2014), arXiv:1211.7302, by a construction of our own.

    x -> P x for a bounded P with E|P x|_1 = |x|_p, moved into a box; points in [0, side]^dimension.

    Parameters
    ----------
    p : float
        In (1, 2).
    dimension, images : int
        Of the points, and of their images.
    seed : int
        Of the public random numbers.
    side : float
        Of the cube that points lie in, in (0, inf); others are moved to its surface, each by itself.

    Examples
    --------
    >>> embedding = StableProjection(1.5, 2, 400, seed=1)
    >>> images = embedding.embed([[0.0, 0.0], [1.0, 1.0]])
    >>> images.shape, bool(abs(np.abs(images[0] - images[1]).sum() / 2 ** (1 / 1.5) - 1.0) < 0.2)
    ((2, 400), True)
    """

    p: Norm
    dimension: Count
    images: Count
    seed: int = 0
    side: Positive = 1.0

    @functools.cached_property
    def matrix(self) -> FloatArray:
        """P, shape (images, dimension); entries are at most dimension / images in absolute value."""
        rng = np.random.default_rng(self.seed)
        g = stable_sizes(self.p, self.images * self.dimension, rng).reshape(self.images, self.dimension)
        rows, chosen = np.arange(self.images), rng.integers(self.dimension, size=self.images)
        g[rows, chosen] = size_biased(self.p, self.images, rng)
        signs = rng.choice([-1.0, 1.0], size=g.shape)
        return np.asarray(self.dimension / self.images * signs * g / g.sum(axis=1, keepdims=True))

    @property
    def widths(self) -> FloatArray:
        """Of the box of all images: coordinate j of the cube has the length side |P_j|_1."""
        return np.asarray(self.side * np.abs(self.matrix).sum(axis=1))

    def embed(self, points: ArrayLike) -> FloatArray:
        """Images, shape (points, images), in the box [0, widths]."""
        inside = np.clip(table("points", points, (None, self.dimension), finite=True), 0.0, self.side)
        corner = self.side * np.minimum(self.matrix, 0.0).sum(axis=1)
        return np.asarray(np.clip(inside @ self.matrix.T - corner, 0.0, self.widths))


def stable_sizes(p: float, size: int, rng: np.random.Generator) -> FloatArray:
    """|g| for a symmetric p-stable g with E exp(i t g) = exp(-|t|^p) (Chambers, Mallows, Stuck), shape (size,).

    |g| = h(v) W^((p - 1) / p) for v uniform on (0, pi / 2], W exponential.
    """
    v = math.pi / 2.0 * (1.0 - rng.random(size))
    return np.asarray(_height(p, v) * v ** (-1.0 / p) * rng.exponential(size=size) ** ((p - 1.0) / p))


def size_biased(p: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Draws of |g| with density proportional to |g| times its own, shape (size,).

    v then has a density proportional to h(v), and W is Gamma(1 + (p - 1) / p). h has the singularity v^(-1 / p): v is
    drawn from that power, and accepted in proportion to the rest.
    """
    power = (p - 1.0) / p
    most = (math.pi / 2.0) ** (1.0 / p) / math.cos((p - 1.0) * math.pi / 2.0) ** power  # each factor at its largest
    found = np.empty(0)
    while len(found) < size:
        v = math.pi / 2.0 * rng.random(4 * size) ** (1.0 / power)
        v = v[v > 0.0]
        found = np.append(found, v[rng.random(len(v)) * most < _height(p, v)])
    v = found[:size]
    return np.asarray(_height(p, v) * v ** (-1.0 / p) * rng.gamma(1.0 + power, size=size) ** power)


def _height(p: float, v: FloatArray) -> FloatArray:
    """h(v) v^(1 / p), bounded."""
    u = math.pi / 2.0 - v
    return np.abs(np.sin(p * u)) * (v / np.sin(v)) ** (1.0 / p) / np.cos((p - 1.0) * u) ** ((p - 1.0) / p)


def sufficient_stable_images(dimension: int, alpha: float, beta: float) -> int:
    """Images with which every l_p distance is kept within a factor 1 +- alpha, with probability at least 1 - beta.

    Bernstein's inequality for terms in [0, l / images] of variance at most l / images^2 about 1 / images, on a net of
    theta = alpha / 4, as in `sufficient_images`; for every p in (1, 2), alpha in (0, 1), beta in (0, 1).

    Examples
    --------
    >>> sufficient_stable_images(2, 0.3, 0.1)
    1004
    """
    theta = alpha / 4.0
    t = alpha * (1.0 - theta) - theta
    points = dimension * math.log(1.0 + 2.0 / theta) + math.log(2.0 / beta)
    return math.ceil((2.0 * dimension + 2.0 / 3.0 * dimension * t) * points / t**2)
