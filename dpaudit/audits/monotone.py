"""Upper confidence limits on the loss of one pair, under an assumption: its ratio is monotone in a named number.

Draws alone bound no loss from above, since a rare event may leak that no draw showed. They do where the likelihood
ratio of the pair rises or falls with one number T of the output that is named beforehand: the mechanism's own log
density ratio, or the output itself. That is the assumption. Nothing of it enters the verdict or the bounds.

Limit. Let P and Q be the laws of the outputs on the two inputs, either one as P. For a mass m, how large can
log(P(S) / Q(S)) be over the events S with P(S) >= m? By the lemma of Neyman and Pearson the least Q(S) is that of a
threshold of T, randomised where T has an atom: of T > t, where P / Q rises. Let B(m) be that least mass. B is convex
and B(0) = 0, so that B(m) / m does not fall, and the limit is log(m / B(m)) with a lower limit in the place of B(m):

* of a threshold event with P(T > t) = a <= m, B(m) >= m B(a) / a = m Q(T > t) / a;
* of an atom v with a = P(T > v), b = P(T >= v) and a <= m <= b, B is linear between a and b, where it is Q(T > v) and
  Q(T >= v). It lies above the line through two points to the right of and below these two, from the one to the other.

Both hold with upper limits of the masses under P and lower ones of those under Q. T < t is treated in the same way, and
the largest of the four limits (either law as P, either end of T) is one whether the ratio rises or falls.

Rate. Thresholds are values of T, and their next doubles, at fixed ranks of the draws that fit the band's score. The
draws behind the limit are others, and `band_of_bins` (`dpaudit.audits.band`) bounds the masses at all thresholds
together: under the assumption, all limits, at all masses and for both laws, hold with probability at least 1 - level.

Test of the assumption. Under it, let T be the larger one of two draws, one of each input: the odds that it is the one
of x are at least even, where the ratio rises. So where a predictor that was fitted on other draws has it the other way
round, a bet on the predictor wins nothing on average, whatever the predictor is. Draws are paired by their outputs
alone, in blocks of neighbours by T, so that given these and which pairs have a draw of each input the labels of the
pairs are independent. The bets of several stakes and sizes of blocks are averaged, which keeps their mean; they are
made for a ratio that rises and for one that falls, and the smaller wealth counts. Under the assumption that is 1 / rate
or more with probability at most rate (Markov). Then the limit is withheld. To withhold one makes no statement false, so
that these may be the draws of the limit.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.density import LogRatio
from dpaudit.features.outcomes import Outcomes
from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.pairs import Pair
from dpaudit.results.trade_off import LossLimit, MonotoneLimits
from dpaudit.scores.bands import Band
from dpaudit.subjects.callables import Subject


@dataclasses.dataclass(frozen=True)
class MonotoneSizes:
    """Settings of the thresholds, and of the test that the likelihood ratio is monotone."""

    masses: tuple[float, ...] = (0.1, 0.01, 0.001)  # of the events that are spoken of
    # Of a mass: an upper limit on a threshold's mass must be below it, and ranks of 3,000 draws are off by 5 to 60%.
    shares: tuple[float, ...] = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
    draws: int = 100_000  # of each input, at most, of a subject that draws batches: a hundred beyond the least mass
    level_share: float = 0.5  # of the band's level; the band has the rest
    test_rate: float = 0.01  # of withholding a limit whose assumption holds
    stakes: tuple[float, ...] = (0.9, 0.5, 0.2)  # of the predictor's own odds, which may be too bold
    blocks: int = 4  # times as many at each step, from one of all draws to some of two
    largest_odds: float = 12.0  # nats: the last edge of bins
    rounding: float = 1e-9  # nats, that limits are rounded up by: own ratios have as many decimals


SIZES = MonotoneSizes()
DENSITY, VALUE = "the mechanism's own log density ratio", "the output's number"
NO_NUMBER = "Some outputs have no such number."
FAILS = (
    "Given that number, another score of the outputs still tells the inputs apart "
    f"(a test at {100.0 * SIZES.test_rate:g}%)."
)
TOO_FEW = "The draws are too few."


@dataclasses.dataclass(frozen=True)
class Number:
    """A number of an output: its name, and the ratio that it is, or None for the output itself."""

    name: str
    ratio: LogRatio | None

    def read(self, outcomes: Outcomes) -> FloatArray:
        """The number of each outcome, shape (draws,); NaN where there is none."""
        if outcomes.tokens is not None or (self.ratio is None and outcomes.numbers.shape[1] != 1):
            return np.full(len(outcomes), math.nan)
        if self.ratio is None:
            return outcomes.numbers[:, 0].astype(float)
        return self.ratio.fitting(outcomes, outcomes)(outcomes)


def number_of(subject: Subject, pair: Pair, monotone: str) -> Number | None:
    """The number that the ratio is assumed to be monotone in; None where that is a density that is not given."""
    if monotone == "value":
        return Number(VALUE, None)
    return Number(DENSITY, LogRatio(subject.log_density, pair.x, pair.x_prime)) if subject.has_log_density else None


def limits_of(
    number: str,
    fitted: Sequence[FloatArray],
    counted: Sequence[FloatArray],
    predicted: Sequence[FloatArray],
    level: float,
    bound: Callable[[NDArray[np.int64], NDArray[np.int64], float], Band],
) -> MonotoneLimits:
    """The limits on the loss of one pair, wrong with probability at most `level`, or why they are withheld.

    `fitted` and `counted` have the number (of this name) of the draws on x and x_prime that fix the thresholds, and of
    those that the limits rest on; `predicted` the probability of x that a predictor, which was fitted on other draws,
    gives to each of the latter. `bound` is `band_of_bins`. See the module.
    """
    if not all(np.isfinite(side).all() for side in (*fitted, *counted)):
        return MonotoneLimits(number, reason=NO_NUMBER)
    if wealth(counted, predicted) >= 1.0 / SIZES.test_rate:
        return MonotoneLimits(number, reason=FAILS)
    edges = thresholds(*fitted)
    first, second = (np.bincount(np.digitize(side, edges), minlength=len(edges) + 1) for side in counted)
    found = bound(first, second, level)
    losses = [loss_upper(found, edges, mass) for mass in SIZES.masses]
    losses = np.minimum.accumulate(losses[::-1])[::-1].tolist()  # events of a mass are events of all lesser ones
    limits = tuple(LossLimit(*one) for one in zip(SIZES.masses, losses, strict=True) if math.isfinite(one[1]))
    return MonotoneLimits(number, limits, reason="" if limits else TOO_FEW)


def thresholds(first: FloatArray, second: FloatArray) -> FloatArray:
    """Values at ranks of either side, from either end, and their next doubles; increasing."""
    found = []
    for side in map(np.sort, (first, second)):
        ranks = np.outer(SIZES.masses, SIZES.shares).ravel() * len(side)
        places = np.ceil(ranks[ranks >= 1.0]).astype(int) - 1
        found += [side[places], side[-1 - places]]
    values = np.concatenate(found)
    return np.unique(np.concatenate([values, np.nextafter(values, math.inf)]))


def loss_upper(band: Band, edges: FloatArray, mass: float) -> float:
    """The upper limit, in nats, on the loss of events of at least this mass, from limits at these edges; inf for none.

    Examples
    --------
    >>> one, two = np.array([1.0, 1.0, 0.27, 0.27, 0.0, 0.0]), np.array([0.0, 0.0, 0.27, 0.27, 1.0, 1.0])
    >>> band = Band(one, one, two, two)  # randomised response, as if its laws were known
    >>> edges = np.array([0.0, np.nextafter(0.0, 1.0), 1.0, np.nextafter(1.0, 2.0)])
    >>> round(loss_upper(band, edges, 0.1), 3), round(math.log(0.73 / 0.27), 3)
    (0.995, 0.995)
    """
    is_atom = np.concatenate([[False], edges[1:] == np.nextafter(edges[:-1], math.inf), [False]])
    of_ends = (
        (1.0 - band.type_two_lower[::-1], band.type_one_lower[::-1], is_atom[::-1]),  # T >= t: x over x_prime
        (band.type_one_upper[::-1], 1.0 - band.type_two_upper[::-1], is_atom[::-1]),  # x_prime over x
        (band.type_two_upper, 1.0 - band.type_one_upper, is_atom),  # T < t: x over x_prime
        (1.0 - band.type_one_lower, band.type_two_lower, is_atom),
    )
    return max(0.0, *(_of_end(*end, mass) for end in of_ends)) + SIZES.rounding


def _of_end(above: FloatArray, below: FloatArray, is_atom: NDArray[np.bool_], mass: float) -> float:
    """The limit from upper limits of threshold events' masses under P and lower ones under Q, both increasing."""
    within = (above <= mass) & (above > 0.0)
    shares = [0.0, *(below[within] / above[within])]  # of B(m) / m
    for k in np.flatnonzero(is_atom & (above[:-1] <= mass) & (above[1:] >= mass) & (above[1:] > above[:-1])):
        shares.append(float(np.interp(mass, above[k : k + 2], below[k : k + 2])) / mass)
    return -math.log(max(shares)) if max(shares) > 0.0 else math.inf


def wealth(counted: Sequence[FloatArray], predicted: Sequence[FloatArray]) -> float:
    """Wealth, from 1 on, of bets on a predictor against a ratio that is monotone in the number: see the module.

    Where the ratio is, the probability that it is w or more is at most 1 / w.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x, second = rng.normal(size=500), rng.normal(size=500)
    >>> wealth((x, second), (np.where(abs(x) < 0.5, 0.7, 0.4), np.where(abs(second) < 0.5, 0.7, 0.4))) < 1.0
    True
    """
    numbers = np.concatenate(counted)
    odds = np.clip(scipy.special.logit(np.concatenate(predicted)), -SIZES.largest_odds, SIZES.largest_odds)
    is_x = np.repeat([1, 0], list(map(len, counted)))
    # Validity: draws come side by side, so ties must not be broken by their places.
    shuffled = np.random.default_rng(20_261_128).permutation(len(is_x))
    numbers, odds, is_x = numbers[shuffled], odds[shuffled], is_x[shuffled]
    return min(_rising(np.argsort(sign * numbers, kind="stable"), odds, is_x) for sign in (1.0, -1.0))


def _rising(order: NDArray[np.intp], odds: FloatArray, is_x: NDArray[np.int64]) -> float:
    """The mean wealth of bets that draws lower in this order are of x, each with a higher one of less odds."""
    found, blocks = [], 1
    while 2 * blocks <= len(order):
        half = len(order) // (2 * blocks)
        lower, higher = order[: 2 * blocks * half].reshape(blocks, 2, half).swapaxes(0, 1)
        lower = np.take_along_axis(lower, np.argsort(-odds[lower], axis=1, kind="stable"), axis=1)
        higher = np.take_along_axis(higher, np.argsort(odds[higher], axis=1, kind="stable"), axis=1)
        edge = np.tanh(np.maximum(odds[lower] - odds[higher], 0.0) / 2.0)
        won = is_x[lower] - is_x[higher]
        found += [math.exp(min(float(np.log1p(stake * edge * won).sum()), 700.0)) for stake in SIZES.stakes]
        blocks *= SIZES.blocks
    return float(np.mean(found))
