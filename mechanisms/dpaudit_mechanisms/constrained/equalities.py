"""Additive noise conditioned on linear equalities, an event of probability 0 (CD-S6, CD-L3.3).

The invariant is an affine set C = {z : A z = b} in which every true answer lies, so that the noise U is conditioned on
A U = 0: a law on the kernel of A that is the same for all answers. Two answers x and x' differ by an element of that
kernel, and the loss of the pair is what it was without conditioning, |x - x'|_1 / scale for Laplace noise (the log
ratio reaches it along x + t (x - x')). An answer outside of C is refused: its noise would be conditioned on another
set, with another normaliser, and the loss can be nearly twice as large (the ledger has a counterexample for CD-L3.3).

Densities are with respect to Lebesgue measure on C. Outputs are completed from their free variables alone
(`Affine.completed`), so that the last bits of A z - b say nothing of the answer.
"""

import dataclasses
import functools
import math
from typing import Any, Self

import numpy as np

from dpaudit_mechanisms.accuracy import squared_error, sum_of_errors, with_budget
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.laplace_sums import conditional_variance, draw_given_sum, log_density_at_zero
from dpaudit_mechanisms.constrained.lines import directions, step_along
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.inputs import Count, FloatArray, Positive, output_batch, table
from dpaudit_mechanisms.protocol import Claim, Pair, UsageError, UtilityBound
from dpaudit_mechanisms.pure import Pure

EQUAL = 1e-12  # relative: coefficients that differ by less are equal


def answer_in(given: Affine, data: Any) -> FloatArray:
    """A true answer, shape (coordinates,), in the affine set; one outside is refused."""
    point = table("data", data, (given.coordinates,))
    if not np.isfinite(point).all() or not given.contains(point[None])[0]:
        raise UsageError(f"data must satisfy the equalities, got {point.tolist()}.")
    return point


def shifts(given: Affine, length: float, order: int) -> list[Pair]:
    """Two pairs from the set's point nearest to 0, along its kernel, `length` apart in the l1 or l2 norm."""
    start = given.project(np.zeros((1, given.coordinates)))[0]
    step = directions(given)[0]
    step = step * (length / np.linalg.norm(step, order))
    return [Pair(start, start + step), Pair(start, start - step)]


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianOnEqualities:
    """Section 3 of Liu et al. (2023), arXiv:2303.00228, for normal noise.

    Normal noise given that the output lies in an affine set: exactly sigma times a standard normal on its kernel.

    Conditioning and imaging are the same law here (CD-S14).

    Parameters
    ----------
    base : Gaussian
        The noise, with its claim, l2 sensitivity and dimension; conditioning keeps the claim.
    given : Affine
        Of as many coordinates.

    Examples
    --------
    >>> from dpaudit.privacy.claims import GaussianDP
    >>> mechanism = GaussianOnEqualities(Gaussian(GaussianDP(1.0), 1.0, 2), Affine([[1.0, 1.0]], [3.0]))
    >>> mechanism.sample([1.0, 2.0], 2, np.random.default_rng(1)).sum(axis=1).round(9).tolist()
    [3.0, 3.0]
    """

    base: Gaussian
    given: Affine

    def __post_init__(self) -> None:
        if self.base.dimension != self.given.coordinates or self.given.dimension == 0:
            raise UsageError(
                f"given must have {self.base.dimension} coordinates and a free one, got {self.given.coordinates} and "
                f"{self.given.dimension} free."
            )

    @property
    def claim(self) -> Claim:
        """Claim of the noise."""
        return self.base.claim

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, coordinates), all in the set."""
        centre = answer_in(self.given, data)
        noise = rng.normal(size=(size, self.given.dimension)) @ self.given.kernel
        return self.given.completed(centre + self.base.sigma * noise)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density on the set at each output, shape (size,); -inf off the set."""
        centre = answer_in(self.given, data)
        batch = output_batch(outputs, centre.shape)
        inside = np.isfinite(batch).all(axis=1) & self.given.contains(batch)
        reduced = (np.where(inside[:, None], batch, centre) - centre) @ self.given.kernel.T / self.base.sigma
        constant = 0.5 * self.given.dimension * math.log(2.0 * math.pi * self.base.sigma**2)
        return np.where(inside, -0.5 * (reduced**2).sum(axis=1) - constant, -np.inf)

    def with_budget(self, factor: float) -> Self:
        """The same noise with `factor` times its budget."""
        return dataclasses.replace(self, base=with_budget(self.base, factor))

    def utility_bounds(self) -> list[UtilityBound]:
        """The squared error, sigma squared for each free variable: with equality (CD-S14)."""
        free, variance = self.given.dimension, self.base.sigma**2
        deviation = math.sqrt(2.0 * free) * variance
        return [squared_error(lambda data: answer_in(self.given, data), free * variance, "CD-S14", deviation)]

    def mu(self, x: Any, x_prime: Any) -> float:
        """The pair is as hard to tell apart as N(0, 1) and N(mu, 1): |x - x'|_2 / sigma."""
        return float(np.linalg.norm(answer_in(self.given, x) - answer_in(self.given, x_prime)) / self.base.sigma)

    def pairs(self) -> list[Pair]:
        """Two pairs at the full sensitivity along the kernel: the claim is tight on both."""
        return shifts(self.given, self.base.l2_sensitivity, 2)


@dataclasses.dataclass(frozen=True, eq=False)
class LaplaceOnEqualities(Pure):
    """Lemma 3.3 of Liu et al. (2023), arXiv:2303.00228.

    f(x) + U given A U = 0, U independent Laplace variables.

    Independent Laplace noise of one scale given that the output lies in an affine set.

    Where the equalities have no coordinate in common and each has coefficients of one size (a sum, say), draws are
    exact and in closed form. Elsewhere each draw is the end of a Gibbs chain of its own, which starts at the projection
    of noise without the condition and takes `sweeps` turns along all lines of `lines.directions`; its law is that of
    the claim up to what the chain has not forgotten (diagnostics: `chains`).

    Parameters
    ----------
    epsilon : float
        In nats, in (0, inf).
    given : Affine
        With at least one free variable.
    l1_sensitivity : float, optional
        Largest l1 distance of adjacent answers, in (0, inf).
    sweeps : int, optional
        Of each chain, at least 1.

    Examples
    --------
    >>> mechanism = LaplaceOnEqualities(1.0, Affine([[1.0, 1.0, 1.0]], [6.0]))
    >>> mechanism.is_exact, mechanism.scale
    (True, 1.0)
    >>> mechanism.sample([1.0, 2.0, 3.0], 2, np.random.default_rng(1)).sum(axis=1).round(9).tolist()
    [6.0, 6.0]
    """

    given: Affine
    l1_sensitivity: Positive = 1.0
    sweeps: Count = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.given.dimension == 0:
            raise UsageError("given must leave a free variable, got a single point.")

    @property
    def scale(self) -> float:
        """Scale of the noise before conditioning, l1_sensitivity / epsilon."""
        return self.l1_sensitivity / self.epsilon

    @property
    def groups(self) -> list[tuple[np.ndarray[Any, np.dtype[np.intp]], FloatArray]] | None:
        """For each equality its coordinates and the signs of their coefficients; None where there is no closed form.

        That is where equalities share a coordinate, or one of them has coefficients of different sizes.
        """
        given = self.given.matrix[np.abs(self.given.matrix).max(axis=1) > 0.0]
        for rows in (given, self.given.normals):  # the rows as given, if they are independent, and orthonormal ones
            sizes = np.abs(rows)
            uses = sizes > EQUAL * sizes.max(axis=1, keepdims=True, initial=0.0)
            if len(rows) == self.given.rank and (uses.sum(axis=0) <= 1).all():
                found = [np.flatnonzero(use) for use in uses]
                if all(np.ptp(size[group]) <= 1e-9 * size.max() for size, group in zip(sizes, found, strict=True)):
                    return [(group, np.sign(row[group])) for row, group in zip(rows, found, strict=True)]
        return None

    @property
    def is_exact(self) -> bool:
        """Tell whether draws are exact."""
        return self.groups is not None

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, coordinates), all in the set."""
        centre = answer_in(self.given, data)
        noise = self._exact(size, rng) if self.is_exact else self._ends(size, rng)
        return self.given.completed(centre + self.scale * noise)

    def _exact(self, size: int, rng: np.random.Generator) -> FloatArray:
        noise = rng.laplace(size=(size, self.given.coordinates))
        for group, signs in self.groups or []:
            # sum of a_i u_i = 0 with |a_i| = a: the numbers sign(a_i) u_i are Laplace variables with the sum 0
            noise[:, group] = signs * draw_given_sum(len(group), np.zeros(size), rng)
        return noise

    def _ends(self, size: int, rng: np.random.Generator) -> FloatArray:
        noise = rng.laplace(size=(size, self.given.coordinates)) @ self.given.projector
        self._run(noise, self.sweeps, rng)
        return noise

    def _run(self, noise: FloatArray, sweeps: int, rng: np.random.Generator) -> None:
        lines, scales = directions(self.given), np.ones(self.given.coordinates)
        for _ in range(sweeps):
            for line in lines:
                step_along(noise, line, scales, rng)
        noise[:] = noise @ self.given.projector  # rounding does not carry it out of the set

    def chains(self, count: int, steps: int, rng: np.random.Generator) -> FloatArray:
        """The noise of `count` chains after each of `steps` sweeps, for diagnostics: (count, steps, coordinates)."""
        noise = rng.laplace(size=(count, self.given.coordinates)) @ self.given.projector
        found = np.empty((count, steps, self.given.coordinates))
        for i in range(steps):
            self._run(noise, 1, rng)
            found[:, i] = self.scale * noise
        return found

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density on the set at each output, shape (size,); -inf off the set.

        Normalised where draws are exact; elsewhere up to one constant, the same for all inputs.
        """
        centre = answer_in(self.given, data)
        batch = output_batch(outputs, centre.shape)
        inside = np.isfinite(batch).all(axis=1) & self.given.contains(batch)
        logs = -np.abs(np.where(inside[:, None], batch, centre) - centre).sum(axis=1) / self.scale
        return np.where(inside, logs - self.log_normaliser(), -np.inf)

    def log_normaliser(self) -> float:
        """Log of the integral of exp(-|u|_1 / scale) over the kernel where it is known in closed form, else 0.

        The integral over {u : sum of n coordinates = 0} is sqrt(n) (2 scale)^n times the density of the sum at 0.
        """
        groups = self.groups
        if groups is None:
            return 0.0
        alone = self.given.coordinates - sum(len(group) for group, _ in groups)
        total = alone * math.log(2.0 * self.scale)
        for group, _ in groups:
            n = len(group)
            total += 0.5 * math.log(n) + n * math.log(2.0 * self.scale) - math.log(self.scale) + log_density_at_zero(n)
        return total

    def utility_bounds(self) -> list[UtilityBound]:
        """The sum of errors and, where draws are exact, their squares (CD-U3): both with equality.

        On d free variables the density is proportional to e^(-|u|_1 / scale), so that |u|_1 / scale has the law
        Gamma(d). Each of n coordinates with a given sum has the variance (2 n - 1) (n - 1) / (n (n + 1)) scale^2.
        """
        free, scale = self.given.dimension, self.scale
        truth = functools.partial(answer_in, self.given)
        found = [sum_of_errors(truth, free * scale, deviation=math.sqrt(free) * scale)]
        if (groups := self.groups) is not None:
            sizes = [len(group) for group, _ in groups]
            alone = self.given.coordinates - sum(sizes)
            units = 2.0 * alone + sum(n * conditional_variance(n) for n in sizes)
            found.append(squared_error(truth, units * scale**2, "CD-U3"))
        return found

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss in nats: the l1 distance over the scale, reached along the line through both answers."""
        return float(np.abs(answer_in(self.given, x) - answer_in(self.given, x_prime)).sum() / self.scale)

    def pairs(self) -> list[Pair]:
        """Two pairs at the full sensitivity along the kernel: the loss equals epsilon on both."""
        return shifts(self.given, self.l1_sensitivity, 1)
