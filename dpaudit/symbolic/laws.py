"""The laws of the primitives: what is known of one number that a generator gives.

A law is that of a noise around 0 (or from 0 on, where it has one side), in the unit of the number itself. Those with a
location and a scale are registered (`FAMILIES`), by what they are in units of the scale. Masses and densities are
computed in doubles, with a relative error of some 1e-14. Whoever compares them with a claim leaves a slack that is far
larger (`dpaudit.symbolic.noise_judging`).
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

FAR = 60.0  # scales from the centre: as far out as ratios of densities are looked at
LAST_BITS = 64.0 * sys.float_info.epsilon  # relative rounding of a few sums: what is larger differs in truth
DISCRETE = ("geometric", "two-sided geometric")


@dataclasses.dataclass(frozen=True)
class Family:
    """A continuous law with a location and a scale, at location 0 and scale 1.

    `below` is P(u <= a), of numbers and of arrays; `above` is P(u > a), as exact in its tail, by default that of a law
    symmetric around 0. Half of the mass is on either side of the `centre`, about. `loss` is the largest log ratio of
    the densities of the law and of itself moved by so many scales; None where it has no bound, or one that depends on
    the direction.
    """

    below: Callable[[Any], Any]
    log_density: Callable[[Any], Any]
    above: Callable[[Any], Any] | None = None
    support: tuple[float, float] = (-math.inf, math.inf)
    centre: float = 0.0
    loss: Callable[[float], float] | None = None


def _gumbel_tail(u: Any) -> Any:
    return np.exp(np.minimum(-u, 700.0))


FAMILIES: dict[str, Family] = {
    "laplace": Family(
        lambda u: np.where(u < 0, 0.5 * np.exp(-abs(u)), 1.0 - 0.5 * np.exp(-abs(u))),
        lambda u: -abs(u) - math.log(2.0),
        loss=lambda gap: gap,
    ),
    "normal": Family(special.ndtr, lambda u: -0.5 * u * u - 0.5 * math.log(2.0 * math.pi)),
    "logistic": Family(special.expit, lambda u: -abs(u) - 2.0 * np.log1p(np.exp(-abs(u))), loss=lambda gap: gap),
    "cauchy": Family(
        lambda u: 0.5 + np.arctan(u) / math.pi,
        lambda u: -np.log1p(u * u) - math.log(math.pi),
        loss=lambda gap: 2.0 * math.asinh(0.5 * gap),
    ),
    "gumbel": Family(
        lambda u: np.exp(-_gumbel_tail(u)), lambda u: -u - _gumbel_tail(u), above=lambda u: -np.expm1(-_gumbel_tail(u))
    ),
    "exponential": Family(
        lambda u: -np.expm1(-np.maximum(u, 0.0)),
        lambda u: np.where(u >= 0, -u, -math.inf),
        above=lambda u: np.exp(-np.maximum(u, 0.0)),
        support=(0.0, math.inf),
        centre=0.5,
    ),
    "uniform": Family(
        lambda u: np.clip(u, 0.0, 1.0),
        lambda u: np.where((u >= 0.0) & (u <= 1.0), 0.0, -math.inf),
        above=lambda u: 1.0 - np.clip(u, 0.0, 1.0),
        support=(0.0, 1.0),
        centre=0.5,
    ),
}


@dataclasses.dataclass(frozen=True)
class Law:
    """The law of one number: a family of `FAMILIES` or `DISCRETE`, and its scale.

    The scale is the standard deviation of normal noise, the width of uniform noise on [0, scale), and of geometric
    noise (on 1, 2, ...) the probability p that a number is the last one.

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
        """Tell whether it is of whole numbers."""
        return self.family in DISCRETE

    @property
    def is_symmetric(self) -> bool:
        """Tell whether noise of the other sign has the same law."""
        return self.family == "two-sided geometric" or (not self.is_discrete and FAMILIES[self.family].above is None)

    def is_close(self, other: Law) -> bool:
        """Tell whether another law is this one, up to the rounding of a few sums."""
        return self.family == other.family and abs(self.scale - other.scale) <= LAST_BITS * self.scale

    @property
    def unit(self) -> float:
        """In which a shift is small or large: the scale, and 1 of whole numbers."""
        return 1.0 if self.is_discrete else self.scale

    def moved_text(self, name: str, gap: float) -> str:
        """A clause on a number with this noise whose noise-free part moves."""
        moves = f"the noise-free part of {name} moves by {gap:.6g}"
        if self.is_discrete:
            return f"{moves} under {self.family} noise"
        unit = "standard deviation" if self.family == "normal" else "scale"
        return f"{moves}, {counted(gap / self.scale, unit)} of its {self.family} noise"

    @property
    def centre(self) -> float:
        """Approximate median of the law."""
        if self.is_discrete:
            return 1.0 if self.family == "geometric" else 0.0
        return FAMILIES[self.family].centre * self.scale

    @property
    def support(self) -> tuple[float, float]:
        """The ends of what noise as a generator gives it can be, of whole numbers without the lower one."""
        if self.is_discrete:
            return 0.0, math.inf
        low, high = FAMILIES[self.family].support
        return low * self.scale, high * self.scale

    def mass(self, low: float, high: float) -> float:
        """P(low < z <= high); of continuous noise the ends do not matter."""
        if high <= low:
            return 0.0
        if low >= self.centre:  # the difference of small numbers, not of those next to 1
            return max(self._above(low) - self._above(high), 0.0)
        return max(self._below(high) - self._below(low), 0.0)

    def _below(self, z: float) -> float:
        if math.isinf(z):
            return 1.0 if z > 0 else 0.0
        return 1.0 - self._above(z) if self.is_discrete else float(FAMILIES[self.family].below(z / self.scale))

    def _above(self, z: float) -> float:
        if math.isinf(z):
            return 0.0 if z > 0 else 1.0
        if self.family == "geometric":
            return math.exp(max(math.floor(z), 0) * math.log1p(-self.scale)) if self.scale < 1.0 else float(z < 1.0)
        if self.family == "two-sided geometric":
            k, a = math.floor(z), self.scale
            return a ** (k + 1) / (1.0 + a) if k >= 0 else 1.0 - a ** (-k) / (1.0 + a)
        family, u = FAMILIES[self.family], z / self.scale
        return float(family.below(-u) if family.above is None else family.above(u))

    def log_density(self, z: float) -> float:
        """The logarithm of the density (of the probability, where the law is discrete); -inf outside the support."""
        if not self.is_discrete:
            return float(FAMILIES[self.family].log_density(z / self.scale)) - math.log(self.scale)
        if z != math.floor(z) or (self.family == "geometric" and z < 1.0):
            return -math.inf
        a = self.scale
        if self.family == "geometric":
            return (z - 1.0) * math.log1p(-a) + math.log(a) if a < 1.0 else 0.0 if z == 1.0 else -math.inf
        return abs(z) * math.log(a) + math.log1p(-a) - math.log1p(a)

    def within(self, low: float, high: float, share: float) -> float:
        """A number of (low, high] that the law can give; NaN where it has no mass there.

        `share` in (0, 1) is where it lies. A drawn one meets no number of a program with a probability above 0.
        """
        if self.mass(low, high) <= 0.0:
            return math.nan
        if self.is_discrete:
            first = max(1.0, math.floor(low) + 1.0) if self.family == "geometric" else math.floor(low) + 1.0
            return first if math.isfinite(low) else min(high, 1.0)
        ends = self.support
        low, high = max(low, ends[0]), min(high, ends[1])
        if math.isinf(low):
            return (high if math.isfinite(high) else 0.0) - share * self.scale
        return low + share * (self.scale if math.isinf(high) else high - low)


def counted(number: float, unit: str) -> str:
    """A number with its unit, which is singular for one of it.

    Examples
    --------
    >>> counted(0.5, "scale"), counted(1.0, "scale")
    ('0.5 scales', '1 scale')
    """
    shown = f"{number:.6g}"
    return f"{shown} {unit}{'s' * (shown != '1')}"


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
