"""The sum of canaries' signals, by their ranks: a test of a Gaussian claim, exact at any number of canaries.

A white-box attack has a signal of each canary, such as the inner product of a noisy update with its gradient. Whoever
knows the law of signals adds up those of canaries that are in, and takes off the others. Here nothing is known of the
law, so that a signal counts by its rank. Canaries are in an order of confidence and are guessed on, all of them, as in
`dpaudit.scores.independent`. Step k of this order has m_k canaries and N_k right guesses. The statistic is S = sum over
k of w_k N_k, with weights that fall.

Theorem. If canaries are answered independently, P(S >= s) is at most P(S* >= s), with S* of independent canaries in the
order of their log-likelihood ratios, each guessed the better way.

Proof. Prefix counts are C_k = N_1 + ... + N_k, and S is the sum of (w_k - w_(k+1)) C_k: an increasing function of all
of them, for which the proof in `dpaudit.scores.independent` holds.

The law of S*. In the notation there, the shares U at the ends of steps are sums of exponentials over their total. Given
these, all canaries of a step but its last one are uniform between its two ends, independently, and the last one is no
more often right. So N_k is at most Binomial(m_k, p_k), with p_k the mean accuracy between the ends. S* is drawn
`runs` times. Under a claim that the mechanism sits on, these and S are as if exchangeable (S may be smaller), and the
share of all that are at least S is a p-value (Barnard 1963): no limit law is used.

All values of mu at once. Let every canary of a draw have a uniform of its own, whose guess is right at mu if it is
below p_k(mu). p_k grows in mu, so that S* does too in each draw, and rejected values are an interval. Only numbers of
such uniforms are drawn: between two values of mu whose numbers are known, those of a third one are binomial. The law of
all numbers together does not depend on which are asked for.

Draws are of the seed and of the guesses: of the seed alone, one unlucky set of draws would serve every audit.
"""

from __future__ import annotations

import bisect
import dataclasses
import hashlib

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

IntArray = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class SumSizes:
    """Steps, weights and draws.

    The best weight at mu and share u is d(mu z) / d mu, with z the u-quantile of |Z|, Z ~ N(mu / 2, 1): that is
    z + mu / 2 tanh(mu z / 2). With weights for mu = 2 the standard error of mu is within 1.5% of the best one for mu up
    to 3; that of a number of guesses that is best for each mu is 8 to 18% larger.
    """

    mu: float = 2.0
    steps: int = 16  # equally many canaries each: the standard error of mu is 0.5% larger than with a weight for each
    units: int = 32  # weights are whole numbers of one part of so many, so that sums are exact
    runs: int = 499  # the draws' own chance adds 0.5% to the deviation of a bound
    table: int = 2_048  # points of the Gaussian law; between them accuracies are rounded up, by 1e-5 at most
    least_level: float = 0.006  # below it so few draws tell nothing: no sum is used


SIZES = SumSizes()


def steps_of(canaries: int) -> IntArray:
    """The number of canaries up to the end of each step."""
    steps = min(SIZES.steps, canaries)
    return np.arange(1, steps + 1) * canaries // steps


def weights_of(steps: int) -> IntArray:
    """The weight of a right guess in each step; they fall."""
    z, share, _ = gaussian_law(SIZES.mu)
    middle = np.interp((np.arange(steps) + 0.5) / steps, share, z)
    return np.rint(SIZES.units * (middle + 0.5 * SIZES.mu * np.tanh(0.5 * SIZES.mu * middle))).astype(np.int64)


class RankSum:
    """The sum of one run, tested at a level; `right` are the right guesses up to the end of each step."""

    def __init__(self, right: IntArray, canaries: int, level: float, seed: int) -> None:
        ends = steps_of(canaries)
        sizes = np.diff(ends, prepend=0)
        self.weights = weights_of(len(ends))
        self.level, self.total = level, int(self.weights @ np.diff(right, prepend=0))
        digest = hashlib.sha256(np.append(right, canaries).astype("<i8").tobytes()).digest()
        entropy = [seed, int.from_bytes(digest[:8], "big")]
        self._rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(5,)))
        gaps = self._rng.standard_gamma(np.append(sizes, 1), (SIZES.runs, len(ends) + 1))
        self._shares = np.cumsum(gaps[:, :-1], axis=1) / gaps.sum(axis=1, keepdims=True)
        half = np.full(self._shares.shape, 0.5)
        self._values = [0.0, np.inf]  # of mu, in order: accuracies and numbers of right guesses of each are known
        self._known = [
            (half, self._rng.binomial(sizes, half)),
            (np.ones_like(half), np.broadcast_to(sizes, half.shape)),
        ]

    def rejects(self, mu: float) -> bool:
        """Tell whether mu-Gaussian DP is rejected."""
        as_many = np.count_nonzero(self._right(mu) @ self.weights >= self.total)
        return bool(1 + as_many <= self.level * (1 + SIZES.runs))

    def _right(self, mu: float) -> IntArray:
        """Right guesses of each draw in each step."""
        at = bisect.bisect_left(self._values, mu)
        if self._values[at] != mu:
            (low, fewest), (high, most) = self._known[at - 1 : at + 1]
            accuracy = np.clip(step_accuracies(mu, self._shares), low, high)
            part = (accuracy - low) / np.where(high > low, high - low, 1.0)
            self._values.insert(at, mu)
            self._known.insert(at, (accuracy, fewest + self._rng.binomial(most - fewest, part)))
        return self._known[at][1]


def step_accuracies(mu: float, shares: FloatArray) -> FloatArray:
    """The mean accuracy between two shares of all canaries that follow each other, from above; from 0 to the first."""
    _, share, right = gaussian_law(mu)
    least = np.interp(shares, share, right)  # a concave curve is above its chords
    widths = np.diff(shares, axis=-1, prepend=0.0)
    before = np.concatenate([np.zeros_like(least[..., :1]), least[..., :-1]], axis=-1)
    return np.asarray(np.clip((most_right(mu, shares) - before) / widths, 0.5, 1.0))


def gaussian_law(mu: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A table of mu-Gaussian DP: values z that fall to 0, P(|Z| >= z), and P(|Z| >= z and the guess is right).

    Z is normal around mu / 2 or -mu / 2, and its absolute log-likelihood ratio is mu |Z|.
    """
    z = np.linspace(0.5 * mu + 8.0, 0.0, SIZES.table)
    right = scipy.special.ndtr(0.5 * mu - z)
    return z, right + scipy.special.ndtr(-0.5 * mu - z), right


def most_right(mu: float, shares: FloatArray) -> FloatArray:
    """The probability of a right guess among the most confident share u of all canaries, R(u) = u A(u), from above.

    R is concave with slope sigmoid(mu z), so a tangent at any point is above it.
    """
    z, share, right = gaussian_law(mu)
    slope = scipy.special.expit(mu * z)
    at = np.clip(np.searchsorted(share, shares), 0, len(z) - 1)
    tangents = [right[k] + (shares - share[k]) * slope[k] for k in (at, np.maximum(at - 1, 0))]
    return np.asarray(np.minimum(*tangents))
