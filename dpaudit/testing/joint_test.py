"""The fixed-size test of rare wrong guesses against a line with a delta: correct and wrong guesses are tested together.

Correct guesses C and wrong guesses W of n labelled draws are multinomial with probabilities c and w, and a line allows
c <= e^epsilon w + cost (`dpaudit.testing.wealth`). The test of C given C + W (`dpaudit.testing.binomial`) has to put
a lower limit on the probability of a guess first, which costs much where guesses are few and nearly all correct: many
of them may be what delta allows. Here the statistic is T = C - weight * W, with a weight that was fixed beforehand, and
its tail is computed for every law that the line allows:

    p = spent + sup { P(T >= t) : c <= e^epsilon w + cost, c + w <= most },

where `most` is the Clopper-Pearson upper limit at level `spent` on the probability of a guess (Berger and Boos 1994: by
the union bound p is a p-value). Without it laws that guess far more often than was seen would count.

Validity of the supremum. More correct guesses in place of abstentions can only raise T, more wrong ones can only lower
it (couple the draws: the one that changes its kind changes C or W by one). So P(T >= t) increases in c and decreases in
w; the supremum is on c = min(e^epsilon w + cost, most), and over an interval [w1, w2] it is at most the probability at
c of w2 and at w1. The maximum of these over a grid of intervals is an upper bound of the supremum, at most as loose as
the grid is wide. What has more than `largest` wrong guesses counts as if it had T >= t.

Monotone. The allowed laws grow with epsilon and with cost, and T does not depend on them: p increases in both, so the
rejected values of the parameter are an interval from 0.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from dpaudit.privacy.claims import FloatArray
from dpaudit.testing.binomial import binomial_upper, binomial_upper_tail

INTERVALS = 256  # of the grid over w: c is off by 1/256 of its range, some tenth of a standard deviation
LEFT_OUT = 1e-12  # probability of more wrong guesses than are summed over, about
NEGLIGIBLE = 1e-18  # probability of one number of wrong guesses; there are at most as many numbers as draws
UPPER_SHARE = 0.02  # of the level, for the upper limit on the probability of a guess


def joint_p_value(
    correct: int, wrong: int, draws: int, epsilon: float, cost: float, weight: float, level: float
) -> float:
    """p-value of a record of guesses against one line; at most 1.

    Parameters
    ----------
    correct, wrong, draws : int
        Of `draws` labelled draws so many were guessed correctly and wrongly.
    epsilon, cost : float
        The line allows P(correct) <= e^epsilon P(wrong) + cost.
    weight : float
        Non-negative, fixed before the draws: correct guesses that one wrong guess weighs up.
    level : float
        The level of the test that the p-value serves; `UPPER_SHARE` of it is part of the p-value.

    Examples
    --------
    >>> [joint_p_value(1000, 0, 200_000, epsilon, 0.001, 280.0, 0.05) <= 0.05 for epsilon in (5.5, 5.8)]
    [True, False]
    """
    spent = UPPER_SHARE * level
    guesses = correct + wrong
    most = binomial_upper(guesses, draws, spent)
    statistic = correct - weight * wrong
    if statistic <= 0.0 or cost >= most:
        return 1.0
    factor = math.exp(min(epsilon, 700.0))
    ends = np.linspace(0.0, (most - cost) / (1.0 + factor), INTERVALS + 1)
    low, high = ends[:-1], np.minimum(factor * ends[1:] + cost, most)
    largest = _largest(draws, float(ends[-1]))
    total = binomial_upper_tail(largest + 1.0, draws, low)
    for count in range(largest + 1):
        least = math.ceil(statistic + weight * count - 1e-9 * max(1.0, abs(statistic)))
        if least > draws - count:
            break
        mass = _mass(count, draws, low)
        seen = mass > NEGLIGIBLE  # elsewhere so many wrong guesses count as if they had T >= t: the tails cost most
        mass[seen] *= binomial_upper_tail(least, draws - count, high[seen] / (1.0 - low[seen]))
        total = total + mass
    return min(1.0, spent + float(total.max()))


def weight_of_wrong(correct: float, wrong: float, cost: float) -> float:
    """A good weight for these expected numbers of guesses, of which the line pays for `cost` correct ones; at least 1.

    That of a line which one can just hope to reject: e^epsilon times an upper limit on the wrong guesses makes up for
    the correct ones.
    """
    return max(1.0, (correct - cost) / (wrong + 2.0 * math.sqrt(wrong) + 3.0))


def _largest(draws: int, probability: float) -> int:
    """A number of wrong guesses that is exceeded with a probability of about `LEFT_OUT` at most."""
    mean = draws * probability
    return min(draws, math.ceil(mean + 8.0 * math.sqrt(mean) - math.log(LEFT_OUT)))


def _mass(count: int, draws: int, probability: FloatArray) -> FloatArray:
    """P(Binomial(draws, probability) = count)."""
    log_factorial = scipy.special.gammaln
    choices = log_factorial(draws + 1.0) - log_factorial(count + 1.0) - log_factorial(draws - count + 1.0)
    logs = scipy.special.xlogy(count, probability) + scipy.special.xlog1py(draws - count, -probability)
    return np.asarray(np.exp(choices + logs))
