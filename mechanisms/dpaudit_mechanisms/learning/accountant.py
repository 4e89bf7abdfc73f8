"""Accountant of DP-SGD: the privacy profile of composed Gaussian noise on Poisson samples.

One step. Each example is in the batch with probability q, of its own; the sum of gradients, each clipped to norm C,
gets Gaussian noise of standard deviation sigma C. For adding or removing one example the dominating pair is, with C =
1,

    P = (1 - q) N(0, sigma^2) + q N(1, sigma^2)   against   Q = N(0, sigma^2),

and the same with the two swapped (Mironov, Talwar and Zhang 2019, arXiv:1908.10530; Zhu, Dong and Wang 2022,
arXiv:2106.08567). T steps compose adaptively: the dominating pair is the T-fold product, in either direction.

The law of the privacy loss is put on a grid, each loss rounded *up*; its T-fold sum is by Fourier transforms. Rounding
up, and counting what lies beyond the grid as certain loss, make the profile an upper bound.
"""

import dataclasses
import functools
import math

import numpy as np
from scipy import fft, special

from dpaudit_mechanisms.inputs import Checked, Count, FloatArray, Positive, Probability
from dpaudit_mechanisms.protocol import UsageError

POINTS = 40_001  # of one step's outputs, from -TAILS sigma to 1 + TAILS sigma
TAILS = 12.0  # standard deviations; beyond them lies less than 4e-33 a step
GRID_STEP = 2e-3  # nats, at most
MAX_PLACES = 2_000_000  # of the grid of one step: half a minute
ROUNDED = 0.1  # nats that rounding up may add to the loss of all steps together, at most
ROUNDING = 1e-12  # of a Fourier transform of masses that sum to 1, added to every delta


@dataclasses.dataclass(frozen=True)
class SampledGaussian(Checked):
    """T steps of Gaussian noise on Poisson samples.

    Parameters
    ----------
    steps : int
        T, at least 1.
    sampling_probability : float
        q, in (0, 1].
    noise_multiplier : float
        sigma, over the clipping norm; above 0.

    Raises
    ------
    dpaudit.errors.UsageError
        If one is out of range.

    Examples
    --------
    >>> one = SampledGaussian(steps=1, sampling_probability=1.0, noise_multiplier=1.0)
    >>> round(one.profile(1.0), 3)  # Gaussian DP of mu 1
    0.127
    """

    steps: Count
    sampling_probability: Probability
    noise_multiplier: Positive

    def profile(self, epsilon: float) -> float:
        """The smallest delta at epsilon >= 0, in the worse direction, rounded up."""
        return min(1.0, max(_delta(losses, epsilon) for losses in self._losses) + ROUNDING)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at a delta in (0, 1), rounded up by at most 1e-6; inf beyond the grid."""
        if self.profile(0.0) <= delta:
            return 0.0
        low, high = 0.0, 1.0
        while self.profile(high) > delta:
            low, high = high, 2.0 * high
            if high > 700.0:
                return math.inf
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.profile(middle) > delta else (low, middle)
        return high

    @functools.cached_property
    def _losses(self) -> tuple[tuple[FloatArray, FloatArray, float], ...]:
        sigma, q = self.noise_multiplier, self.sampling_probability
        edges = np.linspace(-TAILS * sigma, 1.0 + TAILS * sigma, POINTS)
        base = np.diff(special.ndtr(edges / sigma))
        shifted = np.diff(special.ndtr((edges - 1.0) / sigma))
        # in a cell the ratio P / Q = 1 - q + q exp((x - 1/2) / sigma^2) rises: its right end has the largest
        ratios = np.logaddexp(math.log1p(-q) if q < 1.0 else -math.inf, math.log(q) + (edges - 0.5) / sigma**2)
        with_it = (1.0 - q) * base + q * shifted
        return _composed(ratios[1:], with_it, self.steps), _composed(-ratios[:-1], base, self.steps)


def _composed(losses: FloatArray, masses: FloatArray, steps: int) -> tuple[FloatArray, FloatArray, float]:
    """Losses on a grid, their masses after `steps` steps, and the mass of certain loss; all rounded up."""
    step = min(GRID_STEP, ROUNDED / steps)
    places = np.ceil(losses / step).astype(np.int64)
    low, high = int(places.min()), int(places.max())
    if high - low > MAX_PLACES:
        raise UsageError(f"noise_multiplier must be larger, got losses that need {high - low:.2g} places of a grid.")
    one = np.bincount(places - low, weights=masses, minlength=high - low + 1)
    # a window of the sum that holds all but 1e-13 of it, by Chernoff's bound; what wraps counts as certain loss
    grid = step * np.arange(low, high + 1)
    upper = min(
        steps * grid[-1], min((steps * _log_moment(grid, one, t) + 30.0) / t for t in np.geomspace(0.05, 50, 60))
    )
    lower = max(
        steps * grid[0], -min((steps * _log_moment(-grid, one, t) + 30.0) / t for t in np.geomspace(0.05, 50, 60))
    )
    first, last = math.floor(lower / step), math.ceil(upper / step)
    size = fft.next_fast_len(max(last - first + 1, high - low + 1), real=True)
    total = fft.irfft(fft.rfft(one, size) ** steps, size)
    shift = (first - steps * low) % size
    total = np.maximum(np.roll(total, -shift), 0.0)
    missing = steps * max(0.0, 1.0 - float(masses.sum())) + 2e-13
    return step * (first + np.arange(size)), total, missing


def _log_moment(grid: FloatArray, masses: FloatArray, t: float) -> float:
    with np.errstate(divide="ignore"):
        return float(special.logsumexp(t * grid + np.log(masses)))


def _delta(losses: tuple[FloatArray, FloatArray, float], epsilon: float) -> float:
    grid, masses, certain = losses
    above = grid > epsilon
    return float(masses[above] @ -np.expm1(epsilon - grid[above])) + certain
