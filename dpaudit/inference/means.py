"""Limits for the mean of a loss, and for the probability of an event, that hold at every number of draws.

**The mean from below, for any non-negative loss.** Let X_1, ..., X_n be independent draws of a loss X >= 0 with mean
mu, and m > 0. For a fraction f in (0, 1), fixed beforehand, 1 + f (X_i / m - 1) is at least 1 - f > 0, whatever X_i is,
and has mean 1 + f (mu / m - 1): at most 1 where mu <= m. So the product over the draws, averaged over fractions, is a
wealth W(m) with E W(m) <= 1 where mu <= m, and by Markov's inequality P(W(m) >= 1 / level) <= level. Nothing else is
assumed: no largest loss, no variance, no normal limit. (An infinite loss makes W infinite, rightly: the mean is
infinite.) Each factor falls with m, so the rejected m are an interval from 0, and its end is a lower confidence limit:

    P(lower > mu) <= P(W(mu) >= 1 / level) <= level.

**The mean from above** needs more, since a loss that no draw shows may be as large as it likes. With X <= b for a
stated b, the limit is that of b - X from below. With a stated s that is at least the standard deviation of X (it is
believed, not tested): for psi(y) = log(1 + y + y^2 / 2) where y >= 0, else -log(1 - y + y^2 / 2), exp(psi(y)) is below
1 + y + y^2 / 2 everywhere, so E exp(psi(t (m - X))) <= 1 + t^2 s^2 / 2 at m = mu, and the product over draws divided by
(1 + t^2 s^2 / 2)^n has mean at most 1 there (Catoni 2012, *Challenging the empirical mean and empirical variance*). psi
increases, so the rejected m are an interval up to infinity.

**A probability**: the exact binomial test and the Clopper-Pearson limits.

References: Waudby-Smith and Ramdas (2024), *Estimating means of bounded random variables by betting*, section 4.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from dpaudit.inference.bound_search import MAX_PARAMETER, bisected
from dpaudit.privacy.claims import FloatArray

MAX_FRACTION = 0.96  # keeps a loss of 0 from ruin


def stakes(draws: int, level: float) -> FloatArray:
    """Fractions in (0, 1) over which wealth is averaged, with equal weights; they depend on the plan alone.

    The best fraction against a mean r times the limit is (r - 1) over the squared coefficient of variation. The
    smallest here is for a coefficient of about 7: less than that could not reach 1 / level in so many draws. Each is
    about twice the one before it.
    """
    smallest = min(0.1, 0.15 * math.sqrt(2.0 * max(1.0, -math.log(level)) / max(draws, 1)))
    return np.asarray(np.geomspace(smallest, MAX_FRACTION, 1 + math.ceil(math.log2(MAX_FRACTION / smallest))))


def mean_log_wealth(losses: FloatArray, limit: float, fractions: FloatArray) -> float:
    """Natural log of the e-value of losses in [0, inf] against "the mean is at most `limit`", which is in [0, inf].

    The `fractions` are chosen before the losses were seen: `stakes`.

    Examples
    --------
    >>> losses = np.full(10, 2.0)
    >>> round(mean_log_wealth(losses, 1.0, np.array([0.5])), 6) == round(10 * math.log(1.5), 6)
    True
    """
    if math.isinf(limit) or losses.size == 0:
        return 0.0
    if limit == 0.0:
        return math.inf if (losses > 0.0).any() else 0.0
    if np.isinf(losses).any():
        return math.inf
    with np.errstate(over="ignore"):
        excess = losses / limit - 1.0  # inf where a tiny limit overflows: rejected, rightly
    logs = [np.log1p(fraction * excess).sum() for fraction in fractions]
    return float(np.logaddexp.reduce(logs)) - math.log(len(fractions))


def mean_lower(losses: FloatArray, level: float, fractions: FloatArray) -> float:
    """Lower confidence limit of the mean of a non-negative loss: P(limit > mean) <= level.

    Examples
    --------
    >>> losses = np.random.default_rng(1).exponential(size=10_000)
    >>> 0.95 < mean_lower(losses, 0.05, stakes(10_000, 0.05)) < 1.0
    True
    """
    if losses.size == 0:
        return 0.0
    if np.isinf(losses).any():
        return math.inf
    mean = float(losses.mean())  # there the wealth is at most 1, by Jensen's inequality
    threshold = -math.log(level)
    return bisected(lambda m: mean_log_wealth(losses, m, fractions) >= threshold, 0.0, mean)[0]  # outwards


def mean_upper(
    losses: FloatArray, level: float, fractions: FloatArray, largest: float | None, deviation: float | None
) -> float:
    """Upper confidence limit of the mean: P(limit < mean) <= level; inf where neither assumption is stated.

    `largest` is at least every loss that can occur, `deviation` at least the standard deviation of the loss. Which of
    the two is used depends on what is stated, not on the losses: `largest`, if both are.

    Examples
    --------
    >>> losses = np.random.default_rng(1).uniform(size=10_000)
    >>> 0.5 < mean_upper(losses, 0.05, stakes(10_000, 0.05), 1.0, None) < 0.52
    True
    """
    if losses.size == 0 or np.isinf(losses).any():
        return math.inf
    if largest is not None:
        return largest - mean_lower(np.maximum(largest - losses, 0.0), level, fractions)
    if deviation is None:
        return math.inf
    mean = float(losses.mean())
    if deviation == 0.0:
        return mean
    threshold = -math.log(level)
    tilt = math.sqrt(2.0 * threshold / len(losses)) / deviation
    allowance = len(losses) * math.log1p(0.5 * (tilt * deviation) ** 2)

    def rejected(m: float) -> bool:
        y = tilt * (m - losses)
        size = np.log1p(np.abs(y) + 0.5 * y * y)
        return float((np.sign(y) * size).sum()) - allowance >= threshold

    step = 4.0 * deviation * math.sqrt(max(threshold, 1.0) / len(losses))
    while not rejected(mean + step):
        if math.isinf(step):
            return math.inf
        step *= 2.0
    return mean + bisected(lambda more: not rejected(mean + more), 0.0, step)[1]


def detectable_mean_ratio(losses: FloatArray, level: float, fractions: FloatArray, power: float) -> float:
    """The mean over its limit that so many draws find with this probability, for losses of the shape that was measured.

    An estimate, for the power alone: the law of the losses, scaled to a mean of r limits; its log wealth after n draws
    is taken as normal for each fraction. inf if that is beyond a million, or nothing was measured.
    """
    if losses.size == 0 or not np.isfinite(losses).all():
        return math.inf
    mean = float(losses.mean())
    shape = losses / mean if mean > 0.0 else np.ones_like(losses)
    threshold = math.log(len(fractions)) - math.log(level)
    draws, quantile = len(losses), float(scipy.special.ndtri(power))

    def misses(log_ratio: float) -> bool:
        excess = math.exp(log_ratio) * shape - 1.0
        growth = ((part.mean(), part.std()) for part in (np.log1p(fraction * excess) for fraction in fractions))
        return all(draws * mean - quantile * math.sqrt(draws) * deviation < threshold for mean, deviation in growth)

    largest = math.log(MAX_PARAMETER)
    return math.inf if misses(largest) else math.exp(bisected(misses, 0.0, largest)[1])


def critical_count(trials: int, probability: float, level: float) -> int:
    """The fewest successes k with P(Binomial(trials, probability) >= k) < level; trials + 1 if there are none."""
    counts = np.arange(1.0, trials + 1.0)
    return 1 + int(np.count_nonzero(scipy.special.betainc(counts, trials - counts + 1.0, probability) >= level))


def detectable_probability(trials: int, probability: float, level: float, power: float) -> float:
    """The least probability of an event that the exact test finds above `probability` so often; inf if none is.

    Examples
    --------
    >>> round(detectable_probability(10_000, 0.05, 0.05, 0.9), 4)
    0.0566
    """
    least = critical_count(trials, probability, level)
    if least > trials:
        return math.inf
    return float(scipy.special.betaincinv(least, trials - least + 1.0, power))
