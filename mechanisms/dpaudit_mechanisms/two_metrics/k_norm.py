"""K-norm noise for linear queries, and its discrete form: the privacy-first mechanism of a linear query (UP-X11).

Letters: F the query (d, n), x a dataset in R^n, neighbours at l1 distance at most 1, B the l1 ball of R^n, K = F B the
convex hull of plus and minus the columns of F, |v|_K = min {b >= 0: v in b K} the gauge, in neighbours' steps.

`KNorm` has density exp(-epsilon |r - F x|_K) / beta, `KNorm(..., discrete=True)` exp(-epsilon ceil |r - F x|_K) /
alpha. The level is the same function of r - F x for all x, so the normaliser is constant, and both keep epsilon. With
one row F = [[s]] they are Laplace noise of scale s / epsilon, and the staircase of sensitivity s without offset.

Degenerate: the outputs live in the column space of F, where densities are taken (with respect to its Lebesgue measure);
F = 0 is refused. An integer gauge b has level b.
"""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np
from scipy import special
from scipy.spatial import ConvexHull, Delaunay

from dpaudit_mechanisms.inputs import ArrayLike, Checked, FloatArray, Positive, answer, fixed, output_batch, table
from dpaudit_mechanisms.protocol import Pair, UsageError, UtilityBound
from dpaudit_mechanisms.two_metrics.levels import PartitionAndWeight
from dpaudit_mechanisms.two_metrics.spaces import whole_steps

OFF_SPACE = 1e-9  # relative: an output further from the column space of F than this is impossible


@dataclasses.dataclass(frozen=True, eq=False)
class Body:
    """K = F B in coordinates of its own space: gauge, volume and uniform points.

    Parameters
    ----------
    columns : array of float, shape (rank, n)
        F in an orthonormal basis of its column space, of full rank, which is at most 8.
    """

    columns: FloatArray = dataclasses.field(repr=False)

    @functools.cached_property
    def corners(self) -> FloatArray:
        """Plus and minus the columns, shape (2 n, rank); K is their convex hull."""
        return np.concatenate([self.columns.T, -self.columns.T])

    @functools.cached_property
    def facets(self) -> FloatArray:
        """Rows w with K = {v: w v <= 1 for all w}, shape (facets, rank)."""
        if self.corners.shape[1] == 1:
            return np.array([[1.0], [-1.0]]) / np.abs(self.corners).max()
        hull = ConvexHull(self.corners)
        return np.asarray(-hull.equations[:, :-1] / hull.equations[:, -1:])

    def gauge(self, points: FloatArray) -> FloatArray:
        """|v|_K of points of shape (size, rank), shape (size,)."""
        return np.asarray((points @ self.facets.T).max(axis=1))

    @functools.cached_property
    def simplices(self) -> tuple[FloatArray, FloatArray]:
        """A triangulation: corners (simplices, rank + 1, rank) and volumes (simplices,)."""
        rank = self.corners.shape[1]
        if rank == 1:
            top = np.abs(self.corners).max()
            return np.array([[[-top], [top]]]), np.array([2.0 * top])
        corners = self.corners[Delaunay(self.corners).simplices]
        volumes = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / math.factorial(rank)
        return corners, volumes

    @functools.cached_property
    def volume(self) -> float:
        """Of K, in units of the answer to the power of the rank."""
        return math.fsum(self.simplices[1].tolist())

    def uniform(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Uniform points of K, shape (size, rank): a simplex by its volume, then Dirichlet weights of its corners."""
        corners, volumes = self.simplices
        chosen = rng.choice(len(volumes), size=size, p=volumes / volumes.sum())
        weights = rng.dirichlet(np.ones(corners.shape[1]), size=size)  # (size, rank + 1)
        return np.asarray((weights[:, :, None] * corners[chosen]).sum(axis=1))


@dataclasses.dataclass(frozen=True, eq=False)
class KNorm(Checked, PartitionAndWeight):
    """Example 11 of Wu, Xia and He (2017), arXiv:1702.02721.

    p(r) = exp(-epsilon |F x - r|_K) / beta, or with the gauge |.|_K rounded up, K = F B the image of the l1 ball.

    Answers F x with noise whose density falls with its gauge.

    Parameters
    ----------
    queries : array_like of float, shape (d, n)
        F, not 0, of rank at most 8.
    epsilon : float
        In nats, in (0, inf): weight of one unit of the gauge, and the claim between datasets at l1 distance 1.
    discrete : bool
        Whether the gauge is rounded up to a level.

    Examples
    --------
    >>> laplace = KNorm([[2.0]], epsilon=1.0)  # scale 2
    >>> np.exp(laplace.log_density([0.0], [[0.0], [2.0]])).round(4).tolist()
    [0.25, 0.092]
    >>> laplace.privacy_loss([0.0], [1.0])
    1.0
    """

    queries: FloatArray = dataclasses.field(repr=False)
    epsilon: Positive
    discrete: bool = False
    has_one_total: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        queries = table("queries", self.queries, (None, None), finite=True)
        if not queries.any():
            raise UsageError("queries must have an entry other than 0, got only zeros.")
        fixed(self, queries=queries)
        if self.basis.shape[1] > 8:
            raise UsageError(f"queries must have rank at most 8, got {self.basis.shape[1]}.")

    @functools.cached_property
    def basis(self) -> FloatArray:
        """Orthonormal columns that span the column space of F, shape (d, rank)."""
        left, values, _ = np.linalg.svd(self.queries, full_matrices=False)
        return left[:, values > values[0] * 1e-12]

    @functools.cached_property
    def body(self) -> Body:
        """K in coordinates of `basis`."""
        return Body(self.basis.T @ self.queries)

    def gauge(self, deviations: ArrayLike) -> FloatArray:
        """|v|_K for deviations of shape (size, d), shape (size,); infinity off the column space."""
        values = np.asarray(deviations, dtype=float)
        inside = values @ self.basis
        with np.errstate(invalid="ignore"):
            off = np.abs(values - inside @ self.basis.T).max(axis=1)
            found = self.body.gauge(inside)
            is_off = ~(off <= OFF_SPACE * (1.0 + np.abs(values).max(axis=1))) | ~np.isfinite(values).all(axis=1)
        return np.where(is_off, np.inf, found)

    def level(self, deviations: ArrayLike) -> FloatArray:
        """The gauge, rounded up where the mechanism is discrete, shape (size,)."""
        found = self.gauge(deviations)
        return whole_steps(found) if self.discrete else found

    @functools.cached_property
    def log_beta(self) -> float:
        """Natural log of the integral of exp(-epsilon level) over the column space."""
        rank = self.basis.shape[1]
        if not self.discrete:  # vol(K) times the integral of rank b^(rank - 1) e^(-epsilon b) over b
            return math.log(self.body.volume) + special.gammaln(rank + 1) - rank * math.log(self.epsilon)
        total = math.log(math.fsum(self._offset_weights.tolist())) - rank * math.log(-math.expm1(-self.epsilon))
        return math.log(self.body.volume) + total - self.epsilon

    @functools.cached_property
    def _offset_weights(self) -> FloatArray:
        """Weights of j = 1..rank such that j plus rank geometric numbers is a level by its mass, shape (rank,).

        The mass of level i is e^(-i epsilon) (i^rank - (i - 1)^rank) of K. By Worpitzky's identity the bracket is the
        sum over j of the Eulerian number A(rank, j - 1) times C(i - j + rank - 1, rank - 1), the number of ways to
        write i - j as a sum of rank numbers. So weights are A(rank, j - 1) e^(-(j - 1) epsilon), for every epsilon.
        """
        numbers = np.ones(1)
        for n in range(2, self.basis.shape[1] + 1):
            k = np.arange(n)
            numbers = (k + 1.0) * np.append(numbers, 0.0) + (n - k) * np.append(0.0, numbers)
        return np.asarray(numbers * np.exp(-self.epsilon * np.arange(len(numbers))))

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one dataset, shape (size, d): a direction of K, and a gauge of its own law."""
        rank = self.basis.shape[1]
        points = self.body.uniform(size, rng)
        directions = points / self.body.gauge(points)[:, None]
        gauges = self.draw_gauges(rank, size, rng)
        noise: FloatArray = (directions * gauges[:, None]) @ self.basis.T
        return self.queries @ answer(data, self.queries.shape[1]) + noise

    def draw_gauges(self, rank: int, size: int, rng: np.random.Generator) -> FloatArray:
        """|noise|_K: Gamma(rank), or a level by its mass and then a point of it by volume; shape (size,)."""
        if not self.discrete:
            return rng.gamma(rank, 1.0 / self.epsilon, size=size)
        weights = self._offset_weights
        steps = np.floor(rng.standard_exponential((size, rank)) / self.epsilon)  # geometric
        i = rng.choice(len(weights), size=size, p=weights / weights.sum()) + 1.0 + steps.sum(axis=1)
        low = (i - 1.0) ** rank
        return np.asarray((low + (i**rank - low) * rng.random(size)) ** (1.0 / rank))

    def level_at(self, data: Any, outputs: Any) -> FloatArray:
        """The level of each output on one dataset, shape (size,); infinity off the column space."""
        values = output_batch(outputs, (len(self.queries),))
        return self.level(values - self.queries @ answer(data, self.queries.shape[1]))

    def log_alpha_of(self, data: Any) -> float:
        """`log_beta`, whatever the dataset."""
        return self.log_beta

    def utility_bounds(self) -> list[UtilityBound]:
        """The expected gauge of the error: rank / epsilon with equality; where it is rounded up, that of the level."""
        rank, steps = self.basis.shape[1], math.exp(-self.epsilon) / -math.expm1(-self.epsilon)  # of a geometric number
        bound = rank / self.epsilon
        if self.discrete:
            weights = self._offset_weights
            bound = float(weights @ np.arange(1.0, len(weights) + 1.0) / weights.sum()) + rank * steps

        def gauge(data: Any, outputs: Any) -> FloatArray:
            values = output_batch(outputs, (len(self.queries),))
            return self.gauge(values - self.queries @ answer(data, self.queries.shape[1]))

        return [UtilityBound("gauge of the error", gauge, bound)]

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of two datasets in nats: epsilon times the level of F (x - x'), attained beyond both."""
        count = self.queries.shape[1]
        difference = self.queries @ (answer(x, count) - answer(x_prime, count))
        return self.epsilon * float(self.level(difference[None])[0])

    @property
    def epsilon_exact(self) -> float:
        """The largest loss of neighbours, in nats: that of the corners of K, whose gauge is 1."""
        return self.epsilon

    def pairs(self) -> list[Pair]:
        """The empty dataset against one unit of each element whose column is a corner of K: tight."""
        nothing = np.zeros(self.queries.shape[1])
        tight = np.flatnonzero(np.isclose(self.gauge(self.queries.T), 1.0))
        return [Pair(nothing, np.eye(len(nothing))[i], x_id="0", x_prime_id=f"e{i}") for i in tight]
