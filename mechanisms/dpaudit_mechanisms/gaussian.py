"""The additive Gaussian mechanism, calibrated exactly to an (epsilon, delta), Gaussian, zCDP or Renyi claim.

The input is the true answer, a number or a vector; adjacent inputs are at most `l2_sensitivity` apart in l2. The whole
mechanism is one number: mu = l2_sensitivity / sigma, since its worst pair is N(0, 1) against N(mu, 1). Each claim gives
the largest mu that it allows. Sources: Balle and Wang (2018), arXiv:1805.06530, theorem 8 (epsilon and delta); Dong,
Roth and Su (2019), theorem 2.7 (mu); Bun and Steinke (2016), proposition 1.6 (rho); Mironov (2017), proposition 7.
"""

import dataclasses
import functools
import math
from typing import Annotated, Any, ClassVar

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, GaussianDP, RenyiDP, ZeroConcentratedDP, gaussian_profile, number
from dpaudit.privacy.pairs import Pair
from dpaudit.subjects.utility_bounds import UtilityBound
from dpaudit_mechanisms.accuracy import log_noise, squared_error
from dpaudit_mechanisms.inputs import Checked, FloatArray, Positive, answer, output_batch, positive, whole_number

Dimension = Annotated[int | None, lambda name, value: None if value is None else whole_number(name, value, 1)]


@dataclasses.dataclass(frozen=True)
class Gaussian(Checked):
    """Adds independent normal noise of one standard deviation to each coordinate.

    Parameters
    ----------
    claim : ApproxDP, GaussianDP, ZeroConcentratedDP or RenyiDP
        What is promised; the noise is the least that keeps it. An `ApproxDP` needs a delta in (0, 1), every claim a
        value in (0, inf), save that `ApproxDP` may have epsilon 0.
    l2_sensitivity : float, optional
        Largest l2 distance of adjacent inputs, in units of the answer, in (0, inf).
    dimension : int, optional
        Number of coordinates; None (the default) for scalar inputs.

    Raises
    ------
    UsageError
        If a parameter is out of range, or no normal noise can keep the claim.

    Examples
    --------
    >>> mechanism = Gaussian(ApproxDP(1.0, 1e-5))
    >>> round(mechanism.sigma, 4)
    3.7306
    >>> mechanism.privacy_profile(0.0, 1.0, epsilon=1.0) <= 1e-5
    True
    >>> Gaussian(ZeroConcentratedDP(0.5), l2_sensitivity=2.0).sigma
    2.0
    """

    claim: Claim
    l2_sensitivity: Positive = 1.0
    dimension: Dimension = None
    translation_family: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("sigma", self.sigma)  # refuses a claim that no normal noise can keep

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise that is drawn, in units of the answer."""
        return self.l2_sensitivity / largest_mu(self.claim)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size,) or (size, coordinates)."""
        centre = answer(data, self.dimension)
        return centre + rng.normal(scale=self.sigma, size=(size, *centre.shape))

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density at each output, shape (size,); -inf where an output is not finite."""
        centre = answer(data, self.dimension)
        return log_noise(output_batch(outputs, centre.shape) - centre, self.sigma, order=2)

    def mu(self, x: Any, x_prime: Any) -> float:
        """l2 distance of two inputs in units of sigma: their output laws are N(0, 1) and N(mu, 1) up to a rotation."""
        difference = np.atleast_1d(answer(x, self.dimension) - answer(x_prime, self.dimension))
        return float(np.linalg.norm(difference)) / self.sigma

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Supremum of the privacy loss in nats: infinite unless the inputs are equal (it grows along the tails)."""
        return math.inf if self.mu(x, x_prime) > 0.0 else 0.0

    def privacy_profile(self, x: Any, x_prime: Any, epsilon: float) -> float:
        """Exact least delta for which the pair keeps (epsilon, delta), in [0, 1]; the same in both directions.

        `epsilon` is in nats, in [0, inf). Its error is that of `gaussian_profile`.
        """
        epsilon = number("epsilon", epsilon, "in [0, inf)", lambda v: 0.0 <= v < math.inf)
        return float(gaussian_profile(np.array([self.mu(x, x_prime)]), epsilon)[0])

    def rho(self, x: Any, x_prime: Any) -> float:
        """Exact zCDP parameter of the pair, mu squared over 2: the Renyi divergence of order r is r times that."""
        return 0.5 * self.mu(x, x_prime) ** 2

    @property
    def input_kind(self) -> str:
        """A number, or a vector of fixed length."""
        return "number" if self.dimension is None else "vector"

    def utility_bounds(self) -> list[UtilityBound]:
        """The expected squared error, sigma squared a coordinate: with equality."""
        count = self.dimension or 1
        deviation = math.sqrt(2.0 * count) * self.sigma**2
        return [squared_error(lambda data: answer(data, self.dimension), count * self.sigma**2, deviation=deviation)]

    def pairs(self) -> list[Pair]:
        """Two pairs at the full sensitivity, one above and one below zero; the claim is tight on both."""
        if self.dimension is None:
            return [Pair(0.0, self.l2_sensitivity), Pair(0.0, -self.l2_sensitivity)]
        axis = np.zeros(self.dimension)
        axis[0] = self.l2_sensitivity
        diagonal = np.full(self.dimension, -self.l2_sensitivity / math.sqrt(self.dimension))
        return [Pair(np.zeros(self.dimension), axis), Pair(np.zeros(self.dimension), diagonal)]


@functools.lru_cache(maxsize=256)
def largest_mu(claim: Claim) -> float:
    """The largest mu for which telling N(0, 1) from N(mu, 1) is within the claim; rounded down.

    For (epsilon, delta) by bisection on the profile until two neighbouring floats; closed forms otherwise. Validity:
    the profile as computed and its error are at most delta together, so that the noise is never too small.

    Examples
    --------
    >>> largest_mu(RenyiDP(2.0, 1.0))
    1.0
    """
    if isinstance(claim, GaussianDP):
        return positive("mu", claim.mu)
    if isinstance(claim, ZeroConcentratedDP):
        return math.sqrt(2.0 * positive("rho", claim.rho))
    if isinstance(claim, RenyiDP):
        return math.sqrt(2.0 * positive("epsilon", claim.epsilon) / claim.order)
    if not isinstance(claim, ApproxDP):
        raise UsageError(f"claim must be an ApproxDP, GaussianDP, ZeroConcentratedDP or RenyiDP, got {claim!r}.")
    number("delta", claim.delta, "in (0, 1) for normal noise", lambda v: 0.0 < v < 1.0)
    number("epsilon", claim.epsilon, "in [0, inf)", lambda v: 0.0 <= v < math.inf)

    def exceeds(mu: float) -> bool:
        return float(gaussian_profile(np.array([mu]), claim.epsilon)[0]) * (1.0 + 1e-12 + 1e-14 * mu) > claim.delta

    low, high = 0.0, 1.0
    while not exceeds(high):
        low, high = high, 2.0 * high
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if exceeds(middle) else (middle, high)
    return low
