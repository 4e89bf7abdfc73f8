"""The laws of the primitives: what is known of one number that a generator gives.

A law is that of a noise around 0 (or from 0 on, where it has one side), in the unit of the number itself. `mass` and
`log_density` are computed in doubles, with a relative error of some 1e-14. Whoever compares them with a claim leaves a
slack that is far larger (`dpaudit.symbolic.noise_judging`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import scipy

CONTINUOUS = ("laplace", "normal", "gumbel", "logistic", "exponential", "uniform", "cauchy")
DISCRETE = ("geometric", "two-sided geometric")
FAR = 60.0  # scales from the centre: as far out as ratios of densities are looked at


@dataclasses.dataclass(frozen=True)
class Law:
    """The law of one number.

    Attributes
    ----------
    family : str
        Of `CONTINUOUS` or `DISCRETE`.
    scale : float
        Positive: the scale, the standard deviation of normal noise, the width of uniform noise on [0, scale). Of
        geometric noise (on 1, 2, ...) the probability p that a number is the last one.

    Examples
    --------
    >>> round(Law("laplace", 2.0).mass(-math.inf, 0.0), 6)
    0.5
    >>> Law("geometric", 0.5).mass(0.0, 2.0)
    0.75
    """

    family: str
    scale: float

    @property
    def is_discrete(self) -> bool:
        """Whether it is of whole numbers."""
        return self.family in DISCRETE

    @property
    def unit(self) -> float:
        """In which a shift is small or large: the scale, and 1 of whole numbers."""
        return 1.0 if self.is_discrete else self.scale

    def mass(self, low: float, high: float) -> float:
        """P(low < z <= high); of continuous noise the ends do not matter."""
        if high <= low:
            return 0.0
        if low >= self.centre:  # the difference of small numbers, not of those next to 1
            return max(self._above(low) - self._above(high), 0.0)
        return max(self._below(high) - self._below(low), 0.0)

    @property
    def centre(self) -> float:
        """Where half of the mass is on either side, about."""
        if self.family in ("exponential", "uniform"):
            return 0.5 * self.scale
        return 1.0 if self.family == "geometric" else 0.0

    def _below(self, z: float) -> float:
        if math.isinf(z):
            return 1.0 if z > 0 else 0.0
        u = z / self.scale
        if self.family == "laplace":
            return 0.5 * math.exp(u) if u < 0 else 1.0 - 0.5 * math.exp(-u)
        if self.family == "normal":
            return float(scipy.special.ndtr(u))
        if self.family == "gumbel":
            return math.exp(-math.exp(min(-u, 700.0)))
        if self.family == "logistic":
            return float(scipy.special.expit(u))
        if self.family == "exponential":
            return -math.expm1(-u) if u > 0 else 0.0
        if self.family == "uniform":
            return min(max(u, 0.0), 1.0)
        if self.family == "cauchy":
            return 0.5 + math.atan(u) / math.pi
        return 1.0 - self._above(z)

    def _above(self, z: float) -> float:
        if math.isinf(z):
            return 0.0 if z > 0 else 1.0
        if self.family == "geometric":
            return math.exp(max(math.floor(z), 0) * math.log1p(-self.scale)) if self.scale < 1.0 else float(z < 1.0)
        if self.family == "two-sided geometric":
            k, a = math.floor(z), self.scale
            return a ** (k + 1) / (1.0 + a) if k >= 0 else 1.0 - a ** (-k) / (1.0 + a)
        if self.family == "gumbel":
            return -math.expm1(-math.exp(min(-z / self.scale, 700.0)))
        if self.family == "exponential":
            return math.exp(-z / self.scale) if z > 0 else 1.0
        if self.family in ("laplace", "normal", "logistic", "cauchy"):
            return self._below(-z)  # symmetric
        return 1.0 - self._below(z)

    def log_density(self, z: float) -> float:
        """The logarithm of the density (of the probability, where the law is discrete); -inf outside the support."""
        u = z / self.scale
        if self.family == "laplace":
            return -abs(u) - math.log(2.0 * self.scale)
        if self.family == "normal":
            return -0.5 * u * u - math.log(self.scale) - 0.5 * math.log(2.0 * math.pi)
        if self.family == "gumbel":
            return -u - math.exp(min(-u, 700.0)) - math.log(self.scale)
        if self.family == "logistic":
            return -abs(u) - 2.0 * math.log1p(math.exp(-abs(u))) - math.log(self.scale)
        if self.family == "exponential":
            return -u - math.log(self.scale) if u >= 0 else -math.inf
        if self.family == "uniform":
            return -math.log(self.scale) if 0.0 <= u <= 1.0 else -math.inf
        if self.family == "cauchy":
            return -math.log1p(u * u) - math.log(math.pi * self.scale)
        if self.family == "geometric":
            inside = z >= 1.0 and z == math.floor(z)
            if self.scale >= 1.0:
                return 0.0 if z == 1.0 else -math.inf
            return (z - 1.0) * math.log1p(-self.scale) + math.log(self.scale) if inside else -math.inf
        a = self.scale
        return abs(z) * math.log(a) + math.log1p(-a) - math.log1p(a) if z == math.floor(z) else -math.inf

    def within(self, low: float, high: float) -> float:
        """Some number of (low, high] that the law can give; NaN where it has no mass there."""
        if self.mass(low, high) <= 0.0:
            return math.nan
        if self.is_discrete:
            first = max(1.0, math.floor(low) + 1.0) if self.family == "geometric" else math.floor(low) + 1.0
            return first if math.isfinite(low) else min(high, 1.0)
        if self.family == "uniform":
            low, high = max(low, 0.0), min(high, self.scale)
        elif self.family == "exponential":
            low = max(low, 0.0)
        if math.isinf(low) and math.isinf(high):
            return 0.0
        if math.isinf(low):
            return high - self.scale
        return low + self.scale if math.isinf(high) else 0.5 * (low + high)


def combined(terms: list[tuple[float, Law]]) -> tuple[float, Law] | None:
    """The law of sum of coefficient * noise, as coefficient and law, where it has a name here; else None.

    Independent normal noises add to one; two exponential noises of one scale with opposite signs are Laplace noise, and
    two geometric ones a two-sided geometric.

    Examples
    --------
    >>> combined([(3.0, Law("normal", 1.0)), (1.0, Law("normal", 4.0))])
    (1.0, Law(family='normal', scale=5.0))
    >>> combined([(1.0, Law("geometric", 0.75)), (-1.0, Law("geometric", 0.75))])
    (1.0, Law(family='two-sided geometric', scale=0.25))
    """
    if len(terms) == 1:
        return terms[0]
    families = {law.family for _, law in terms}
    if families == {"normal"}:
        return 1.0, Law("normal", math.hypot(*(factor * law.scale for factor, law in terms)))
    if len(terms) == 2 and terms[0][1] == terms[1][1] and terms[0][0] == -terms[1][0]:
        law = terms[0][1]
        if law.family == "exponential":
            return abs(terms[0][0]), Law("laplace", law.scale)
        if law.family == "gumbel":
            return abs(terms[0][0]), Law("logistic", law.scale)
        if law.family == "geometric" and law.scale < 1.0:
            return abs(terms[0][0]), Law("two-sided geometric", 1.0 - law.scale)
    return None


def probabilities_of_largest(signals: list[float], factors: list[float], law: Law) -> list[float] | None:
    """P(the k-th of signals + factors * noise is the largest), for independent noise of one law; None if unknown.

    Gumbel noise gives the closed form of the exponential mechanism. Laplace, exponential, normal and logistic noise are
    integrated numerically, with an absolute error below 1e-9 or None.

    Examples
    --------
    >>> [round(p, 6) for p in probabilities_of_largest([0.0, math.log(3.0)], [1.0, 1.0], Law("gumbel", 1.0))]
    [0.25, 0.75]
    """
    if len(set(factors)) != 1 or not all(map(math.isfinite, signals)) or factors[0] == 0.0:
        return None
    factor = factors[0]
    if law.family == "gumbel":
        if factor < 0.0:
            return None
        top = max(signals)
        weights = [math.exp((signal - top) / (factor * law.scale)) for signal in signals]
        total = math.fsum(weights)
        return [weight / total for weight in weights]
    if law.family not in ("laplace", "normal", "logistic", "exponential") or len(signals) > 64:
        return None
    if law.family == "exponential" and factor < 0.0:
        return None
    return _integrated(signals, Law(law.family, law.scale * abs(factor)))


def _integrated(signals: list[float], law: Law) -> list[float] | None:
    from scipy.integrate import quad

    far = 40.0 * law.scale
    ends = sorted({*signals, min(signals) - (0.0 if law.family == "exponential" else far), max(signals) + far})
    found = []
    for k, signal in enumerate(signals):

        def density(t: float, k: int = k, signal: float = signal) -> float:
            others = (law.mass(-math.inf, t - other) for j, other in enumerate(signals) if j != k)
            return math.exp(law.log_density(t - signal)) * math.prod(others)

        parts = [quad(density, a, b, epsabs=1e-13, epsrel=1e-10, limit=200) for a, b in itertools.pairwise(ends)]
        if sum(error for _, error in parts) > 1e-9:
            return None
        found.append(math.fsum(value for value, _ in parts))
    total = math.fsum(found)
    return [value / total for value in found] if abs(total - 1.0) < 1e-8 else None
