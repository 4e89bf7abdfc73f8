"""Laplace noise and a box: conditioned on falling into it (belief revision), and moved onto it (imaging).

The invariant C is a product of intervals; true answers lie in it. Both mechanisms are exact: nothing is rejected, no
chain is run.

Conditioning. A coordinate at x in [l, h] with noise of scale s falls into its interval with probability
c(x) = (1 - e^(-(x-l)/s)) / 2 + (1 - e^(-(h-x)/s)) / 2. For two answers in the interval at distance d the densities'
ratio without conditioning has every value in [e^(-d/s), e^(d/s)] inside it, so that the loss of the pair is exactly
d/s + |log c(x') / c(x)|: the bound (1 + gamma) epsilon of CD-S7 is reached. c is log-concave and symmetric, so the
worst pair of all starts at an end of the interval.

Imaging. The nearest point of a box is a clamp, coordinate by coordinate; its ends become atoms, whose probabilities
have the ratio e^(d/s) again: the loss is that of the noise, no more and no less.
"""

import dataclasses
import math
from typing import Any

import numpy as np
from scipy import optimize

from dpaudit_mechanisms.accuracy import sum_of_errors
from dpaudit_mechanisms.inputs import FloatArray, fixed, output_batch, table
from dpaudit_mechanisms.protocol import Pair, UsageError, UtilityBound
from dpaudit_mechanisms.pure import Pure


@dataclasses.dataclass(frozen=True, eq=False)
class BoxLaplace(Pure):
    """Base of both mechanisms: a budget, a box, and the largest distance of adjacent answers in each coordinate.

    Parameters
    ----------
    epsilon : float
        Promised, in nats, in (0, inf).
    lower, upper : array_like of float, shape (coordinates,)
        The box; infinities leave a side open. Each upper end exceeds its lower one.
    coordinate_sensitivity : array_like of float, shape (coordinates,), optional
        In (0, inf), one by default; at most the width of the interval counts.
    """

    lower: Any
    upper: Any
    coordinate_sensitivity: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        lower = table("lower", self.lower, (None,))
        upper = table("upper", self.upper, (len(lower),))
        if not (lower < upper).all() or np.isposinf(lower).any() or np.isneginf(upper).any():
            raise UsageError(f"upper must exceed lower, got {lower.tolist()} and {upper.tolist()}.")
        given = np.ones(len(lower)) if self.coordinate_sensitivity is None else self.coordinate_sensitivity
        reach = table("coordinate_sensitivity", given, (len(lower),), within="in (0, inf)")
        fixed(self, lower=lower, upper=upper, coordinate_sensitivity=np.minimum(reach, upper - lower))

    @property
    def l1_sensitivity(self) -> float:
        """Sum of the coordinates' sensitivities."""
        return math.fsum(self.coordinate_sensitivity.tolist())

    def answer(self, data: Any) -> FloatArray:
        """A true answer, shape (coordinates,); one outside of the box is refused: the invariant does not hold on it."""
        point = table("data", data, (len(self.lower),))
        if not ((point >= self.lower) & (point <= self.upper) & np.isfinite(point)).all():
            raise UsageError(f"data must lie in the box, got {point.tolist()}.")
        return point

    def _sides_error(self, rooms: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """E of |noise| on each side of the answer as far as its room goes, shapes (coordinates,)."""
        shares = [np.minimum(room / self.scale, 700.0) for room in rooms]  # beyond, e^-share is 0 beside 1
        return tuple(0.5 * self.scale * (1.0 - np.exp(-share) * (1.0 + share)) for share in shares)

    def _rooms(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        return point - self.lower, self.upper - point

    def utility_bounds(self) -> list[UtilityBound]:
        """The sum of expected errors of all coordinates: with equality."""
        return [sum_of_errors(self.answer, self.expected_error)]

    def pairs(self) -> list[Pair]:
        """The worst pair: every coordinate moves by its sensitivity away from a finite end of its interval."""
        side = np.where(np.isfinite(self.lower), 1.0, np.where(np.isfinite(self.upper), -1.0, 1.0))
        start = np.where(np.isfinite(self.lower), self.lower, np.where(np.isfinite(self.upper), self.upper, 0.0))
        return [Pair(start, start + side * self.coordinate_sensitivity)]


@dataclasses.dataclass(frozen=True, eq=False)
class ConditionedLaplace(BoxLaplace):
    """Section 3, case 1 of Liu et al. (2023), arXiv:2303.00228.

    p(u | C) = p(u) / c(x) on C, c(x) = P[f(x) + Lap(s) in C].

    Laplace noise given that the output falls into the box; the scale is the least that keeps the promised epsilon.

    Parameters as in `BoxLaplace`. Outputs have the shape (size, coordinates).

    Examples
    --------
    >>> mechanism = ConditionedLaplace(1.0, [0.0], [math.inf])
    >>> pair = mechanism.pairs()[0]
    >>> round(mechanism.privacy_loss(pair.x, pair.x_prime), 9), round(mechanism.gamma, 6)
    (1.0, 0.612605)
    """

    scale: float = dataclasses.field(init=False)  # of the noise that is drawn, the same in every coordinate

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed(self, scale=self._calibrated())

    def _calibrated(self) -> float:
        low, high = self.l1_sensitivity / self.epsilon, 2.0 * self.l1_sensitivity / self.epsilon  # 0 <= gamma <= 1
        if self.worst_loss(low) <= self.epsilon:
            return low
        root = optimize.brentq(lambda s: self.worst_loss(s) - self.epsilon, low, high, xtol=1e-15 * high, rtol=1e-14)
        return float(root) * (1.0 + 1e-13)  # rounded to the private side

    def worst_loss(self, scale: float) -> float:
        """Largest loss of any pair of the claim at this scale of noise, in nats."""
        reach, width = self.coordinate_sensitivity / scale, (self.upper - self.lower) / scale
        open_both = np.isinf(self.lower) & np.isinf(self.upper)
        ratio = (np.expm1(-reach) + np.expm1(reach - width)) / np.where(open_both, 1.0, np.expm1(-width))
        return math.fsum((reach + np.where(open_both, 0.0, np.log(np.where(open_both, 1.0, ratio)))).tolist())

    @property
    def gamma(self) -> float:
        """The exact extra loss of conditioning as a share of the noise's own loss (CD-S7): epsilon s / Delta - 1."""
        return self.epsilon * self.scale / self.l1_sensitivity - 1.0

    def masses(self, data: Any) -> FloatArray:
        """The probability that noise alone leaves each coordinate in its interval, shape (coordinates,)."""
        below, above = self._sides(self.answer(data))
        return below + above

    def _sides(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities of both sides of the answer within the interval, each without cancellation."""
        return tuple(-0.5 * np.expm1(-room / self.scale) for room in self._rooms(point))

    def expected_error(self, data: Any) -> float:
        """The sum over coordinates of E |output - answer|, exact."""
        point = self.answer(data)
        below, above = self._sides_error(self._rooms(point))
        return float(((below + above) / self.masses(point)).sum())

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, coordinates), by the inverse distribution function of each side."""
        point = self.answer(data)
        below, above = self._sides(point)
        goes_below = rng.random((size, len(point))) * (below + above) < below
        mass = 2.0 * np.where(goes_below, below, above)  # of an exponential law, up to the end of the interval
        distances = -self.scale * np.log1p(-rng.random((size, len(point))) * mass)
        return np.clip(np.where(goes_below, point - distances, point + distances), self.lower, self.upper)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density at each output, shape (size,); -inf outside of the box."""
        point = self.answer(data)
        batch = output_batch(outputs, point.shape)
        with np.errstate(invalid="ignore"):
            inside = ((batch >= self.lower) & (batch <= self.upper) & np.isfinite(batch)).all(axis=1)
            each = -np.abs(np.where(np.isfinite(batch), batch, 0.0) - point) / self.scale
        constant = np.log(2.0 * self.scale * self.masses(data)).sum()
        return np.where(inside, each.sum(axis=1) - constant, -np.inf)

    def tails(self, data: Any, values: Any) -> tuple[FloatArray, FloatArray]:
        """P(coordinate <= value) and P(coordinate > value), one value a coordinate, shape (size, coordinates) each."""
        point = self.answer(data)
        at = np.clip(output_batch(values, point.shape), self.lower, self.upper)
        below, above = self._sides(point)
        near = -0.5 * np.expm1(-np.abs(at - point) / self.scale)  # the mass between the answer and the value
        left, right = np.where(at < point, below - near, below + near), np.where(at < point, above + near, above - near)
        return left / (below + above), right / (below + above)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of a pair in nats: sum of |x - x'| / scale, plus the log ratio of the masses."""
        distance = np.abs(self.answer(x) - self.answer(x_prime)).sum() / self.scale
        return float(distance + abs((np.log(self.masses(x)) - np.log(self.masses(x_prime))).sum()))


@dataclasses.dataclass(frozen=True, eq=False)
class ImagedLaplace(BoxLaplace):
    """Equation 5 of Liu et al. (2023), arXiv:2303.00228.

    Pi_C(f(x) + Lap(s)), Pi_C the L2 projection.

    Laplace noise, clamped to the box: the nearest point in L2 (and in every other norm that adds up coordinates).

    Parameters as in `BoxLaplace`; the scale is l1_sensitivity / epsilon. Outputs have the shape (size, coordinates).

    Examples
    --------
    >>> mechanism = ImagedLaplace(1.0, [0.0], [math.inf])
    >>> mechanism.privacy_loss([0.0], [1.0])
    1.0
    >>> mechanism.log_density([1.0], [[0.0], [-1.0]]).round(4).tolist()  # an atom of e^-1 / 2, and nothing below
    [-1.6931, -inf]
    """

    @property
    def scale(self) -> float:
        """Scale of the noise that is drawn, the same in every coordinate."""
        return self.l1_sensitivity / self.epsilon

    def expected_error(self, data: Any) -> float:
        """The sum over coordinates of E |output - answer|, exact: each side adds s (1 - e^(-room / s)) / 2."""
        rooms = self._rooms(self.answer(data))
        return float(sum(-0.5 * self.scale * np.expm1(-room / self.scale) for room in rooms).sum())

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, coordinates)."""
        point = self.answer(data)
        return np.clip(point + rng.laplace(scale=self.scale, size=(size, len(point))), self.lower, self.upper)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Log of the density inside, of the probability where a coordinate is at an end; shape (size,)."""
        point = self.answer(data)
        batch = output_batch(outputs, point.shape)
        known = np.where(np.isfinite(batch), batch, 0.0)
        distances = np.abs(known - point) / self.scale
        at_end = (known == self.lower) | (known == self.upper)
        each = np.where(at_end, -distances - math.log(2.0), -distances - math.log(2.0 * self.scale))
        inside = ((known >= self.lower) & (known <= self.upper) & np.isfinite(batch)).all(axis=1)
        return np.where(inside, each.sum(axis=1), -np.inf)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss of a pair in nats: the l1 distance over the scale, as without the clamp."""
        return float(np.abs(self.answer(x) - self.answer(x_prime)).sum() / self.scale)
