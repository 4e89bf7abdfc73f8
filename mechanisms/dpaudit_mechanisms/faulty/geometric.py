"""Geometric mechanisms with a planted fault."""

import math
from typing import Any, ClassVar

import numpy as np

from dpaudit_mechanisms.faulty.broken import Broken
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.inputs import FloatArray, IntArray


class GeometricTooLittleNoise(Broken, Geometric):
    """Two-sided geometric noise that falls off 1.2 times too fast; parameters as in `Geometric`.

    Examples
    --------
    >>> round(GeometricTooLittleNoise(epsilon=1.0).privacy_loss(0, 1), 6)
    1.2
    """

    what = "the noise falls off 1.2 times too fast"
    changes: ClassVar[Any] = {"rate": lambda self, rate: rate * 1.2}


class GeometricCountsZeroTwice(Broken, Geometric):
    """A random sign times a one-sided geometric number from 0 on: both signs of 0 are 0, so 0 is twice as likely.

    Noise 0 has probability 1 - a, noise k != 0 has (1 - a) a^|k| / 2: right in the tails, wrong by a factor 2 at 0.
    Parameters as in `Geometric`.

    Examples
    --------
    >>> round(GeometricCountsZeroTwice(epsilon=1.0).privacy_loss(0, 1), 4)  # 1 + log 2
    1.6931
    """

    what = "noise 0 is counted with both signs"

    def _noise(self, size: int, rng: np.random.Generator) -> IntArray:
        magnitude = rng.geometric(-math.expm1(-self.rate), size) - 1
        return magnitude * (2 * rng.integers(2, size=size) - 1)

    def _log_probability(self, steps: FloatArray) -> FloatArray:
        start = math.log(-math.expm1(-self.rate))
        return start - np.abs(steps) * self.rate - math.log(2.0) * (steps != 0.0)

    def _log_tail(self, steps: int) -> float:
        if steps == 0:
            return math.log1p(-0.5 * math.exp(-self.rate))
        return -steps * self.rate - math.log(2.0)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss in nats; with bounds, the larger of the clamped ends and of the two inputs themselves."""
        first, second = sorted((self._input(x), self._input(x_prime)))
        if first == second:
            return 0.0
        if self.bounds is None:
            return (second - first) * self.rate + math.log(2.0)
        # The ratio is largest at one of these: everywhere else the outputs lie in tails that keep the sound ratio.
        corners = np.array([first, second, *self.bounds])
        return float(np.abs(self.log_density(first, corners) - self.log_density(second, corners)).max())
