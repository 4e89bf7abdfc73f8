"""The two-sided geometric mechanism on integers, with an optional clamp of the output: pure epsilon-DP.

Noise k has the probability (1 - a) / (1 + a) * a^|k|, a = exp(-epsilon / l1_sensitivity); adjacent inputs are integers
at most `l1_sensitivity` apart. With bounds, inputs lie within them and outputs are clamped to them, which is
post-processing; the clamp keeps the loss of every pair, because clamped outputs at either end tell the two inputs apart
as well as the tails did. Source: Ghosh, Roughgarden and Sundararajan (2009), definition 2.2 and section 2.3.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from dpaudit_mechanisms.inputs import Count, FloatArray, IntArray, fixed, output_batch
from dpaudit_mechanisms.protocol import Pair, UsageError, UtilityBound, number
from dpaudit_mechanisms.pure import Pure

MAX_INPUT = 2.0**53  # integers up to here are exact in double precision
MIN_RATE = 1e-12  # below, the generator's 64-bit integers could overflow


@dataclasses.dataclass(frozen=True)
class Geometric(Pure):
    """Adds two-sided geometric noise to an integer, and clamps the result where bounds are given.

    Parameters
    ----------
    epsilon : float
        In nats, in (0, inf).
    l1_sensitivity : int, optional
        Largest difference of adjacent inputs, at least 1. epsilon / l1_sensitivity must be at least 1e-12.
    bounds : tuple of two int, optional
        (lower, upper), both possible outputs, at least l1_sensitivity apart; None (the default) clamps nothing.

    Examples
    --------
    >>> mechanism = Geometric(epsilon=math.log(2.0), bounds=(0, 2))
    >>> mechanism.distribution(0).round(4).tolist()  # a = 1/2: 2/3, then 1/6, then the rest of the tail
    [0.6667, 0.1667, 0.1667]
    >>> round(mechanism.privacy_loss(0, 2), 4)
    1.3863
    """

    l1_sensitivity: Count = 1
    bounds: tuple[int, int] | None = None
    input_kind = "number"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (rate := self.epsilon / self.l1_sensitivity) < MIN_RATE:
            raise UsageError(f"epsilon / l1_sensitivity must be at least {MIN_RATE:g}, got {rate!r}.")
        if self.bounds is not None:
            if not isinstance(self.bounds, tuple | list) or len(self.bounds) != 2:
                raise UsageError(f"bounds must be two integers (lower, upper), got {self.bounds!r}.")
            lower, upper = (_integer("bounds", value) for value in self.bounds)
            if upper - lower < self.l1_sensitivity:
                raise UsageError(
                    f"bounds must be at least l1_sensitivity = {self.l1_sensitivity} apart, got ({lower}, {upper})."
                )
            fixed(self, bounds=(lower, upper))

    @property
    def rate(self) -> float:
        """-log(a), in nats per unit of the noise that is drawn."""
        return self.epsilon / self.l1_sensitivity

    @property
    def outcomes(self) -> IntArray:
        """All outputs in increasing order, shape (outcomes,); an error where there are no bounds."""
        if self.bounds is None:
            raise UsageError("bounds must be given for a finite set of outcomes, got None.")
        return np.arange(self.bounds[0], self.bounds[1] + 1)

    @property
    def translation_family(self) -> bool:
        """Tell whether the law of an output is that of the noise moved by the input: not where it is clamped."""
        return self.bounds is None

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> IntArray:
        """`size` integer outputs on one input, shape (size,)."""
        outputs = self._input(data) + self._noise(size, rng)
        return outputs if self.bounds is None else np.clip(outputs, *self.bounds)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the probability of each output, shape (size,); -inf where it is impossible."""
        centre, values = self._input(data), output_batch(outputs, ())
        is_possible = np.isfinite(values) & (values == np.floor(values))
        steps = np.where(is_possible, values, centre) - centre
        result = self._log_probability(steps)
        if self.bounds is not None:
            lower, upper = self.bounds
            result = np.where(values == lower, self._log_tail(centre - lower), result)
            result = np.where(values == upper, self._log_tail(upper - centre), result)
            is_possible &= (values >= lower) & (values <= upper)
        return np.where(is_possible, result, -np.inf)

    def distribution(self, data: Any) -> FloatArray:
        """Probabilities of `outcomes` on one input, shape (outcomes,); needs bounds."""
        return np.exp(self.log_density(data, self.outcomes))

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss in nats: epsilon times the difference of the inputs over the sensitivity."""
        return abs(self._input(x) - self._input(x_prime)) * self.rate

    def utility_bounds(self) -> list[UtilityBound]:
        """The tail of the error: P(|error| > t) = 2 a^(t + 1) / (1 + a) with a = e^-rate, less where it is clipped."""
        limit = math.ceil(math.log(20.0) / self.rate)
        failures = 2.0 * math.exp(-(limit + 1) * self.rate) / (1.0 + math.exp(-self.rate))
        return [
            UtilityBound(
                "error",
                lambda data, outputs: np.abs(output_batch(outputs, ()) - self._input(data)),
                float(limit),
                failure_probability=failures,
            )
        ]

    def pairs(self) -> list[Pair]:
        """Two pairs at the full sensitivity: about zero, or at the two ends of the bounds; tight on both."""
        if self.bounds is None:
            return [Pair(0, self.l1_sensitivity), Pair(0, -self.l1_sensitivity)]
        lower, upper = self.bounds
        return [Pair(lower, lower + self.l1_sensitivity), Pair(upper, upper - self.l1_sensitivity)]

    def _input(self, data: Any) -> int:
        value = _integer("data", data)
        if self.bounds is not None and not self.bounds[0] <= value <= self.bounds[1]:
            raise UsageError(f"data must be within the bounds {self.bounds}, got {value}.")
        return value

    def _noise(self, size: int, rng: np.random.Generator) -> IntArray:
        # The difference of two independent one-sided geometric variables is two-sided geometric with the same ratio.
        success = -math.expm1(-self.rate)
        return rng.geometric(success, size) - rng.geometric(success, size)

    def _log_probability(self, steps: FloatArray) -> FloatArray:
        """log P(noise = steps), for whole steps."""
        return math.log(math.tanh(0.5 * self.rate)) - np.abs(steps) * self.rate

    def _log_tail(self, steps: int) -> float:
        """log P(noise >= steps), for whole steps >= 0."""
        return -steps * self.rate - math.log1p(math.exp(-self.rate))


def _integer(name: str, value: Any) -> int:
    return int(number(name, value, "an integer within 2**53", lambda v: abs(v) <= MAX_INPUT and v % 1 == 0))
