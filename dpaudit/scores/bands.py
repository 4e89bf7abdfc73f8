"""Confidence bands for the two laws of a score, and for the trade-off between its errors.

A score is computed on runs with the canary ("in") and on runs without it ("out"), all independent. For a threshold t
let G(t) be the probability of a score below t with the canary out, F(t) with it in. The attack that says "in" from t on
has type I error 1 - G(t) and type II error F(t). The band holds for both at *all* thresholds together.

One law. Let N(u) be the number among n independent uniforms that are at most u. Levels u_1 < ... < u_M are fixed, and
so are a_j <= b_j. If a_j <= N(u_j) <= b_j for all j, then for every u, by monotonicity, N(u) < a_j implies u < u_j and
N(u) > b_j implies u > u_j. Scores are quantiles of uniforms, so with k scores below t, all t at once,

    max{u_j : b_j < k} <= F(t) <= min{u_j : a_j > k}.

The probability of the event is computed, not estimated: given N(1) = n, N is a Poisson process, whose increments are
independent, so it is a chain of convolutions cut off at [a_j, b_j], divided by the Poisson probability of n.
(Truncation of the increments loses mass, which errs on the side of a wider band.)

The shape. a_j and b_j are quantiles of Binomial(n, u_j) at the normal tail of z(u) = z min(1 / (2 sqrt(u (1 - u))),
1.5), with one z for all, found so that the event has the wanted probability. In the middle that is the constant width
of the Dvoretzky-Kiefer-Wolfowitz-Massart band; where the band of constant width would be wasteful, from u = 0.127
outwards, it follows the local standard deviation. A Kolmogorov-Smirnov statistic is nearly always attained in the
middle, so the tails come almost free.

From errors to the trade-off function f, the lower one of the two directions. Each threshold is an attack, so the point
of its upper limits lies on or above the graph of f, and so does that of the opposite guess, (1 - lower, 1 - lower). f
is convex and its own inverse, which gives the reflected points, and the lower convex hull of them all.

There is no lower limit of f from scores: sets that no threshold makes may tell the two laws of the score apart
perfectly, whatever the samples, and another score may tell more. What the lower limits do bound is *tests by a
threshold of this score*: a randomised one is a mixture of thresholds, so its errors lie on or above the lower convex
hull of the points of lower limits (and of the opposite guesses, (1 - upper, 1 - upper), and all reflected). By the
lemma of Neyman and Pearson that is a limit of all tests of the score where its likelihood ratio is monotone.

Any time. With looks after n_1 < n_2 < ... runs a side and the shares of the error rate 1 / ((k + 1)(k + 2)), k = 0, 1,
..., which sum to 1, all looks hold together, whenever one stops.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.scores.order import below_all
from dpaudit.scores.profile_bounds import ProfileBound

IntArray = NDArray[np.int64]
STEPS_PER_DEVIATION = 12  # levels u_j within one standard deviation of N
FILLED, AIM = 0.98, 0.993  # of the error rate that a band spends, at least and about: 2% of it moves a limit by 0.2%
MAX_LEVELS = 3_000
WIDEST = 1.5  # times z, in the tails
MAX_STEPS = 6  # towards that, after which few scores, whose limits are whole numbers, come no nearer
MIN_ERROR_RATE = 1e-8  # below it the rounding error of the probability counts: the band of constant width
FIRST_LOOK, LOOK_FACTOR = 32, 1.5  # runs a side
ROUNDING = 1e-12  # of a convex hull between its corners; limits move outwards by it


@dataclasses.dataclass(frozen=True)
class LawBand:
    """Limits of a distribution function by the number of scores below a threshold: `lower[k] <= F <= upper[k]`."""

    lower: FloatArray
    upper: FloatArray


@functools.lru_cache(maxsize=64)
def law_band(size: int, error_rate: float) -> LawBand:
    """The two-sided band of one law from `size` independent scores, non-coverage at most `error_rate`.

    Examples
    --------
    >>> band = law_band(100, 0.05)
    >>> bool(band.upper[0] < 0.1 and band.lower[100] > 0.9)  # DKW: 0.136 and 0.864
    True
    """
    if error_rate < MIN_ERROR_RATE:
        share, half = np.arange(size + 1) / size, math.sqrt(math.log(2.0 / error_rate) / (2.0 * size))
        return LawBand(np.maximum(share - half, 0.0), np.minimum(share + half, 1.0))
    steps = min(MAX_LEVELS, max(64, int(STEPS_PER_DEVIATION * math.pi * math.sqrt(size))))
    levels = np.sin(np.linspace(0.0, math.pi / 2.0, steps + 2)[1:-1]) ** 2
    shape = np.minimum(0.5 / np.sqrt(levels * (1.0 - levels)), WIDEST)
    increments = _increments(size, levels)
    # The error is about exp(-z^2 / 2): from Massart's constant, steps of z go to where it is just below its rate.
    z = math.sqrt(2.0 * math.log(2.0 / error_rate))
    found: tuple[float, tuple[IntArray, IntArray]] | None = None
    for step in itertools.count():
        limits = _limits(size, levels, z * shape)
        missed = 1.0 - _probability(size, levels[-1], increments, *limits)
        if missed <= error_rate and (found is None or z < found[0]):
            found = z, limits
        if found is not None and (step >= MAX_STEPS or FILLED * error_rate <= missed <= error_rate):
            least, most = found[1]
            break
        moved = z**2 + 2.0 * math.log(max(missed, 1e-12) / (AIM * error_rate))
        z = max(math.sqrt(max(moved, 0.0)), 0.5 * z) if step < MAX_STEPS else 1.02 * z
    counts = np.arange(size + 1)
    # a and b do not decrease in j: the first j with a_j > k, and the last with b_j < k
    above = np.searchsorted(least, counts, side="right")
    below = np.searchsorted(most, counts, side="left") - 1
    upper = np.where(above < len(levels), levels[np.minimum(above, len(levels) - 1)], 1.0)
    lower = np.where(below >= 0, levels[np.maximum(below, 0)], 0.0)
    return LawBand(lower, upper)


def _limits(size: int, levels: FloatArray, z: FloatArray) -> tuple[IntArray, IntArray]:
    """a_j and b_j: quantiles of the binomial at the normal tails of z, made monotone (N is, so nothing is lost)."""
    tail = scipy.special.ndtr(-z)
    least = np.maximum.accumulate(scipy.stats.binom.ppf(tail, size, levels))
    most = np.minimum.accumulate(scipy.stats.binom.isf(tail, size, levels)[::-1])[::-1]
    return least.astype(np.int64), most.astype(np.int64)


def _increments(size: int, levels: FloatArray) -> FloatArray:
    """P(so many more scores from each level to the next), of a Poisson process; shape (levels, counts), cut off."""
    gaps = np.diff(levels, prepend=0.0) * size
    most = int(gaps.max() + 9.0 * math.sqrt(gaps.max()) + 12.0)
    return np.exp(_log_poisson(np.arange(most + 1), gaps[:, None]))


def _probability(size: int, last_level: float, increments: FloatArray, least: IntArray, most: IntArray) -> float:
    """P(a_j <= N(u_j) <= b_j for all j), rounded down by truncation and up by 1e-9 of rounding error at most."""
    state, start = np.ones(1), 0  # P(N = start + i, and within the limits so far)
    for more, low, high in zip(increments, least.tolist(), most.tolist(), strict=True):
        state = np.convolve(state, more)[max(0, low - start) : max(0, high - start + 1)]
        start = max(start, low)
        if not len(state):
            return 0.0
    rest = size * (1.0 - last_level)
    missing = size - start - np.arange(len(state))
    last = np.where(missing >= 0, np.exp(_log_poisson(np.maximum(missing, 0), rest)), 0.0)
    return float(state @ last) / math.exp(float(_log_poisson(np.array([size]), float(size))[0])) - 1e-9


def _log_poisson(counts: IntArray, mean: FloatArray | float) -> FloatArray:
    return np.asarray(counts * np.log(mean) - mean - scipy.special.gammaln(counts + 1.0))


@dataclasses.dataclass(frozen=True)
class Band:
    """A confidence band for the errors of a score's thresholds, valid at all of them together.

    Attributes
    ----------
    type_one_lower, type_one_upper, type_two_lower, type_two_upper : ndarray of float, shape (thresholds,)
        Limits of P(score >= t | out) and P(score < t | in) at each threshold, in increasing order of thresholds.
    """

    type_one_lower: FloatArray
    type_one_upper: FloatArray
    type_two_lower: FloatArray
    type_two_upper: FloatArray

    def upper(self, type_one: FloatArray) -> FloatArray:
        """At each type I error, an upper limit of the mechanism's trade-off function; convex."""
        ones = self.type_one_upper, 1.0 - self.type_one_lower
        limit = _hull_at(type_one, ones, (self.type_two_upper, 1.0 - self.type_two_lower)) + ROUNDING
        return np.asarray(np.minimum(limit, 1.0 - np.asarray(type_one)))  # f(a) <= 1 - a always

    def thresholds_lower(self, type_one: FloatArray) -> FloatArray:
        """At each type I error, a lower limit of the type II error of tests by a threshold of this score; convex.

        Of either side, with either law as the one to be rejected, randomised or not. Other tests of the score may have
        less, and so may other scores.
        """
        ones = self.type_one_lower, 1.0 - self.type_one_upper
        limit = _hull_at(type_one, ones, (self.type_two_lower, 1.0 - self.type_two_upper)) - ROUNDING
        return np.asarray(np.maximum(limit, 0.0))

    @property
    def events(self) -> tuple[FloatArray, FloatArray]:
        """Hull of the events' limits: from below of the probability under one law, from above under the other one."""
        first = [1.0 - self.type_two_upper, 1.0 - self.type_one_upper, self.type_two_lower, self.type_one_lower]
        second = [self.type_one_upper, self.type_two_upper, 1.0 - self.type_one_lower, 1.0 - self.type_two_lower]
        hull = lower_hull(np.concatenate(second), -np.concatenate(first))
        return -hull[:, 1], hull[:, 0]


def _hull_at(type_one: FloatArray, ones: tuple[FloatArray, ...], twos: tuple[FloatArray, ...]) -> FloatArray:
    """At each type I error, the lower convex hull of points of errors and the reflected ones."""
    first, second = np.concatenate([*ones, [0.0]]), np.concatenate([*twos, [1.0]])
    hull = lower_hull(np.concatenate([first, second]), np.concatenate([second, first]))
    return np.asarray(np.interp(type_one, hull[:, 0], hull[:, 1]))


def _largest_excess(first: FloatArray, second: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """epsilon -> max over events of first - e^epsilon second, from its hull."""
    points = lower_hull(second, -first)

    def delta(epsilon: FloatArray) -> FloatArray:
        factor = np.exp(np.minimum(np.asarray(epsilon, dtype=float), 700.0))
        return np.asarray(np.maximum(-points[:, 1] - factor[..., None] * points[:, 0], 0.0).max(axis=-1))

    return delta


def lower_hull(x: FloatArray, y: FloatArray) -> FloatArray:
    """The points (x, y) that minimise y + slope x for some slope >= 0, by increasing x; shape (points, 2)."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    falls = np.concatenate([[True], y[1:] < np.minimum.accumulate(y)[:-1]])  # the others are above some point before
    points = np.stack([x[falls], y[falls]], axis=1)
    while len(points) > 2:  # a point that is not below the line of its neighbours is on no lower hull
        steps = np.diff(points, axis=0)
        below = steps[:-1, 1] * steps[1:, 0] < steps[1:, 1] * steps[:-1, 0]
        if below.all():
            break
        points = points[np.concatenate([[True], below, [True]])]
    return points


@dataclasses.dataclass(frozen=True)
class Bands:
    """Bands that hold together: one from all scores, or one a look; none where there were too few scores to look."""

    parts: tuple[Band, ...]

    def upper(self, type_one: FloatArray) -> FloatArray:
        """The least of the upper limits of the mechanism's trade-off function."""
        limits = [part.upper(type_one) for part in self.parts]
        return np.asarray(np.min([1.0 - np.asarray(type_one, dtype=float), *limits], axis=0))

    def thresholds_lower(self, type_one: FloatArray) -> FloatArray:
        """The largest of the lower limits of this score's threshold tests."""
        limits = [part.thresholds_lower(type_one) for part in self.parts]
        return np.asarray(np.max([np.zeros_like(type_one), *limits], axis=0))

    def profile_bound(self) -> ProfileBound:
        """Lower bounds on the mechanism's profile that hold together."""
        if not self.parts:
            return ProfileBound(())
        first, second = zip(*(part.events for part in self.parts), strict=True)
        return ProfileBound((_largest_excess(np.concatenate(first), np.concatenate(second)),))


def band(scores_in: FloatArray, scores_out: FloatArray, error_rate: float) -> Band:
    """The band from all scores at once: for a number of runs that was decided without looking at scores.

    The two samples are independent, so each law's band holds with probability sqrt(1 - error_rate). NaN counts as below
    everything.
    """
    each = -math.expm1(0.5 * math.log1p(-error_rate))
    kept_in, kept_out = (np.sort(below_all(side)) for side in (scores_in, scores_out))
    thresholds = np.append(np.unique(np.concatenate([kept_in, kept_out])), np.inf)
    below_in = np.searchsorted(kept_in, thresholds, side="left")
    below_out = np.searchsorted(kept_out, thresholds, side="left")
    below_in[-1], below_out[-1] = len(kept_in), len(kept_out)  # above every score, infinite ones too
    law_in, law_out = law_band(len(kept_in), each), law_band(len(kept_out), each)
    return Band(
        1.0 - law_out.upper[below_out], 1.0 - law_out.lower[below_out], law_in.lower[below_in], law_in.upper[below_in]
    )


def looks(size: int) -> list[int]:
    """The numbers of runs a side at which an anytime band looks, up to `size`."""
    found, at = [], float(FIRST_LOOK)
    while at <= size:
        found.append(int(at))
        at *= LOOK_FACTOR
    return found


def anytime_bands(scores_in: FloatArray, scores_out: FloatArray, error_rate: float) -> Bands:
    """One band a look, all valid together and at any time: scores are in the order of their runs.

    Whoever stops when the scores please them still has every look's band at its share of the error rate, which was
    fixed beforehand. Scores after the last look are not used yet.
    `error_rate` is for all looks that there will ever be.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> len(anytime_bands(rng.normal(size=100), rng.normal(size=100), 0.05).parts)
    3
    """
    sizes = enumerate(looks(min(len(scores_in), len(scores_out))))
    return Bands(tuple(band(scores_in[:n], scores_out[:n], error_rate / ((k + 1) * (k + 2))) for k, n in sizes))
