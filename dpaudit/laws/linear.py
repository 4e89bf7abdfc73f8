"""Conditioning additive noise on linear equalities: an event of probability zero, and what it costs (nothing)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dpaudit.arguments import check_among
from dpaudit.errors import SubjectError, UsageError
from dpaudit.laws.claims import checked, refuse
from dpaudit.laws.derived import Derived, LogDensity
from dpaudit.privacy.claims import Claim, FloatArray, MetricDP, PureDP, number
from dpaudit.privacy.pairs import as_pairs, short_form

NoiseLaw = Literal["laplace", "gaussian"]
ROUNDING = 1e-9  # relative: an answer or output that misses A z = b by no more than this is on it, but for rounding
ZERO, CLEAR = 1e-12, 1e-6  # singular values, as shares of the largest: up to which one is 0, from which on it is not
RAREST = 1e-4  # an acceptance of the sampler below which it gives up
MAX_FREE = 6  # dimensions of the solutions up to which Laplace noise is sampled; the acceptance is about 1/90 there


@dataclasses.dataclass(frozen=True)
class LinearlyConditioned(Derived):
    """f(x) + U under the condition A (f(x) + U) = b, for independent Laplace or normal noise U.

    Where A f(x) = b the condition is A U = 0, whatever x is. Normal noise: the part of U along the solutions of
    A u = 0 keeps its law. Laplace noise: the density along them is proportional to exp(-|u|_1 / scale), a norm's; so
    u = radius * direction, with a Gamma radius and a direction uniform in the unit ball of that norm (by rejection from
    the Euclidean ball, which contains it).

    `log_density` is with respect to one multiple of the length, area, ... along the solutions, the same for all inputs.
    """

    answer: Callable[[Any], Any]
    noise: NoiseLaw
    scale: float
    matrix: tuple[tuple[float, ...], ...]
    values: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.noise} noise of scale {self.scale:g} given {len(self.values)} linear equalities"

    def centre(self, data: Any) -> FloatArray:
        """f(data), checked to satisfy the equalities; shape (columns,)."""
        a, b = np.array(self.matrix), np.array(self.values)
        point = np.asarray(self.answer(data), dtype=float)
        if point.shape != (a.shape[1],):
            raise UsageError(f"answer must be of shape ({a.shape[1]},), got shape {point.shape} at {short_form(data)}.")
        misfit = np.abs(a @ point - b)
        if np.any(misfit > ROUNDING * (self.scale + np.abs(a) @ np.abs(point) + np.abs(b))):
            raise UsageError(
                f"answer must satisfy the equalities on every input, got a misfit of {misfit.max():g} at "
                f"{short_form(data)}. The condition would depend on the data."
            )
        return point

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, columns), on the equalities up to rounding."""
        centre, basis = self.centre(data), self.basis()
        free = basis.shape[1]
        if self.noise == "gaussian":
            along = rng.normal(scale=self.scale, size=(size, free))
        else:
            radius = rng.gamma(free + 1.0, self.scale, size=(size, 1))
            along = radius * self._directions(basis, size, rng)
        # Sums along the last axis: one order of additions for every row, whatever the batch is.
        return self._completed(centre + (along[:, None] * basis).sum(axis=2))

    def _completed(self, points: FloatArray) -> FloatArray:
        """Points on the equalities: some of their coordinates, and the others as a function of these alone.

        Validity: of centre + noise, what rounding leaves of A z - b is another number for every answer, and gives it
        away. So no digit of an output may come from the answer but through the free coordinates.
        """
        a, b = np.array(self.matrix), np.array(self.values)
        rank = a.shape[1] - self.basis().shape[1]
        others, free = np.split(scipy.linalg.qr(a, mode="r", pivoting=True)[1], [rank])
        inverse = np.linalg.pinv(a[:, others])
        points[:, others] = inverse @ b + (points[:, None, free] * (inverse @ -a[:, free])).sum(axis=2)
        return points

    def basis(self) -> FloatArray:
        """An orthonormal basis of the solutions of A u = 0, shape (columns, free)."""
        return np.asarray(scipy.linalg.null_space(np.array(self.matrix), rcond=ZERO))

    def _density(self) -> LogDensity:
        return self._density_along

    def _density_along(self, data: Any, outputs: Any) -> FloatArray:
        """Log density of each output on its own solutions, up to one constant; -inf off them; shape (size,)."""
        a, b, centre = np.array(self.matrix), np.array(self.values), self.centre(data)
        points = np.asarray(outputs, dtype=float).reshape(len(outputs), len(centre))
        misfit = np.abs(points @ a.T - b)
        bound = ROUNDING * (self.scale + np.abs(points) @ np.abs(a).T + np.abs(b))
        steps = np.abs(points - centre) / self.scale
        inside = -steps.sum(axis=1) if self.noise == "laplace" else -0.5 * (steps**2).sum(axis=1)
        return np.asarray(np.where(np.all(misfit <= bound, axis=1), inside, -np.inf))

    def _directions(self, basis: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        """Points uniform in {w : |basis @ w|_1 <= 1}, shape (size, free)."""
        free = basis.shape[1]
        if free == 1:
            return np.asarray(rng.uniform(-1.0, 1.0, size=(size, 1)) / np.abs(basis).sum())
        # |B w|_1 >= |B w|_2 = |w|_2, so the unit ball of the norm lies in the Euclidean one.
        found: list[FloatArray] = []
        count, tries = 0, 0
        while count < size:
            batch = 4 * size + 64
            points = rng.normal(size=(batch, free))
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            points *= rng.random((batch, 1)) ** (1.0 / free)
            kept = points[np.abs(points @ basis.T).sum(axis=1) <= 1.0]
            found.append(kept)
            count, tries = count + len(kept), tries + batch
            if tries > 100 / RAREST and count < RAREST * tries:
                raise SubjectError(f"equalities must leave few enough free dimensions to sample, got {free}.")
        return np.concatenate(found)[:size]


def linear_conditioning(
    answer: Callable[[Any], Any],
    claim: Claim,
    matrix: Any,
    values: Any,
    *,
    noise: NoiseLaw = "laplace",
    scale: float = 1.0,
    pairs: Iterable[Any] | None = None,
) -> tuple[LinearlyConditioned, Claim]:
    """Conditioning f(x) + U on linear equalities A z = b that hold for f on *every* input: the claim is kept.

    Proof. With A f(x) = b the density of f(x) + U given A z = b at v is p_U(v - f(x)) / K, K the integral of p_U over
    A u = 0: the same for all x. So the ratio of two of them is p_U(v - f(x)) / p_U(v - f(x')), bounded by e^epsilon at
    every v where p_U is continuous. Normal noise of one sigma keeps its law along the solutions: every claim is kept.

    Claims: CD-L3.3, true where f(x) and f(x') both satisfy A z = b. Its proof uses one K for both ("K depends only on C
    and U", CD-S6 d), which is wrong where one of them does not: for Laplace noise of scale 1, answers (0, 0) and (a, 0)
    and z_1 + z_2 = 0 the loss is 2 a - log(1 + a), for a claim of a. CD-S6 prints n' free variables for n' equalities:
    the solutions have n - n' dimensions. CD-S14: for normal noise projection has the same law. Approximate claims of
    other noise are not kept in general, and are refused.

    Tight: the loss along the solutions is that of U itself, as f(x) - f(x') solves A u = 0.

    Parameters
    ----------
    answer : callable
        f: an input to its answer, shape (columns,), with A f(x) = b (checked for every input that is drawn).
    claim : Claim
        What f(x) + U keeps without the condition: pure or metric for Laplace noise, any for normal noise.
    matrix, values : array_like
        A, shape (equalities, columns), and b, shape (equalities,). The solutions must have from 1 to 6 dimensions for
        Laplace noise.
    noise : {"laplace", "gaussian"}
        Independent, of one scale.
    scale : float
        Of Laplace noise, or the standard deviation of normal noise; in (0, inf).
    pairs : iterable, optional
        Pairs to audit.

    Raises
    ------
    UsageError
        If the equalities have no solution or leave no freedom, or nearly depend on each other, or the claim's family is
        not kept.

    Examples
    --------
    >>> move = lambda share: np.array([share, 1.0 - share])  # two counts with a known total of 1
    >>> released, claim = linear_conditioning(move, PureDP(2.0), [[1.0, 1.0]], [1.0], pairs=[(0.0, 1.0)])
    >>> released.sample(0.0, 3, np.random.default_rng(1)).sum(axis=1).round(9).tolist(), str(claim)
    ([1.0, 1.0, 1.0], 'eps=2')
    """
    if not callable(answer):
        raise UsageError(f"answer must be a callable of an input, got {answer!r:.80}.")
    check_among("noise", noise, ("laplace", "gaussian"))
    promise = checked(claim)
    if noise == "laplace" and not isinstance(promise, PureDP | MetricDP):
        raise refuse(promise, "laplace noise keeps on linear equalities")
    a, b = _equalities(matrix, values)
    width = number("scale", scale, "in (0, inf)", lambda value: 0.0 < value < math.inf)
    known, rows = None if pairs is None else tuple(as_pairs(pairs)), tuple(map(tuple, a.tolist()))
    derived = LinearlyConditioned((), answer, noise, width, rows, tuple(b.tolist()), known_pairs=known)
    free = derived.basis().shape[1]
    if free == 0 or (noise == "laplace" and free > MAX_FREE):
        raise UsageError(f"matrix must leave from 1 to {MAX_FREE} free dimensions, got {free}.")
    return derived, promise


def _equalities(matrix: ArrayLike, values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """A of shape (equalities, columns) and b of shape (equalities,), checked: finite, fitting, with a solution.

    The largest coefficient of an equality is made 1, or up to twice that, exactly.

    Validity: how far an answer is from the equalities is read off A z - b, which is small for all answers where the
    coefficients are, of a row or of a sum of rows.
    """
    try:
        a, b = np.atleast_2d(np.asarray(matrix, dtype=float)), np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise UsageError(f"matrix and values must be numbers, got {matrix!r:.40} and {values!r:.40}.") from error
    if a.ndim != 2 or b.ndim != 1 or a.size == 0 or len(a) != len(b):
        raise UsageError(f"values must be one number a row of matrix, got shapes {b.shape} and {a.shape}.")
    powers = 1 - np.frexp(np.abs(a).max(axis=1))[1]  # of two
    with np.errstate(over="ignore"):
        a, b = np.ldexp(a, powers[:, None]), np.ldexp(b, powers)
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        raise UsageError("matrix, values and their ratios must be finite, got an infinity or NaN.")
    singular = np.linalg.svd(a, compute_uv=False)
    if np.any((singular > ZERO * singular.max()) & (singular < CLEAR * singular.max())):
        raise UsageError("matrix must have rows that are clearly independent, or rows that follow from others.")
    residual = a @ (np.linalg.pinv(a) @ b) - b
    # 1e-9 of the size of the terms: pinv itself cuts singular values at 1e-15 of the largest.
    if np.abs(residual).max() > 1e-9 * np.abs(b).max():
        raise UsageError(f"values must have a solution of matrix @ z = values, got {b.tolist()} with none.")
    return a, b
