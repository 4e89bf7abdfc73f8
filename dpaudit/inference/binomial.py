"""The fixed-size test: one exact binomial test on guesses, both directions together.

With the guessing rule fixed beforehand and a fair coin for every label, the number of correct guesses among G guesses
is binomial with a success probability r of at most

    (e^epsilon + delta_cost / s) / (1 + e^epsilon)

where s is the probability of guessing at all: P(correct) + P(wrong) = s and P(correct) <= e^epsilon P(wrong) +
delta_cost. With delta_cost = 0 the bound is free of s and the test is exact at its full level. Otherwise a share of the
level pays for a Clopper-Pearson lower limit on s (the number of guesses is binomial too, and the number of correct ones
is tested given it): by the union bound the level of the whole is still the sum.
"""

from __future__ import annotations

import numpy as np
import scipy

from dpaudit.numerals import no_zero
from dpaudit.privacy.claims import FloatArray


def binomial_lower(successes: float, trials: float, level: float) -> float:
    """Clopper-Pearson lower confidence limit of a binomial probability: exact, non-coverage at most `level`.

    Examples
    --------
    >>> round(binomial_lower(8, 10, 0.05), 6)
    0.493099
    """
    if successes <= 0 or level <= 0.0:
        return 0.0
    return float(scipy.special.betaincinv(successes, trials - successes + 1.0, level))


def binomial_lower_each(successes: FloatArray, trials: FloatArray, level: FloatArray) -> FloatArray:
    """The same, elementwise.

    Examples
    --------
    >>> binomial_lower_each(np.array([8.0, 0.0]), np.array([10.0, 10.0]), np.array([0.05, 0.05])).round(6).tolist()
    [0.493099, 0.0]
    """
    positive = successes > 0
    failures = np.maximum(trials - successes, 0.0)
    found = scipy.special.betaincinv(np.where(positive, successes, 1.0), failures + 1.0, level)
    return np.where(positive, found, 0.0)


def binomial_upper(successes: float, trials: float, level: float) -> float:
    """Clopper-Pearson upper confidence limit of a binomial probability: exact, non-coverage at most `level`.

    Examples
    --------
    >>> round(binomial_upper(2, 10, 0.05), 6)
    0.506901
    """
    if successes >= trials:
        return 1.0
    return float(scipy.special.betaincinv(successes + 1.0, trials - successes, 1.0 - level))


def binomial_upper_tail(successes: float, trials: float, probability: FloatArray) -> FloatArray:
    """P(Binomial(trials, probability) >= successes), for each probability in [0, 1]."""
    probability = np.clip(np.asarray(probability, dtype=float), 0.0, 1.0)
    if successes <= 0:
        return np.ones_like(probability)
    return np.asarray(scipy.special.betainc(successes, trials - successes + 1.0, probability))


def largest_accuracy(epsilon: FloatArray, delta_cost: FloatArray, guess_probability: float | FloatArray) -> FloatArray:
    """The largest probability of a correct guess, given a guess, that lines (epsilon, delta_cost) allow; at most 1."""
    epsilon, delta_cost = np.asarray(epsilon, dtype=float), np.asarray(delta_cost, dtype=float)
    extra = np.where(delta_cost > 0.0, delta_cost / np.maximum(guess_probability, 1e-300), 0.0)
    return np.asarray(np.minimum(1.0, scipy.special.expit(epsilon) + extra * scipy.special.expit(-epsilon)))


def p_value(
    correct: float, guesses: float, draws: float, epsilon: float, delta_cost: float, level: float, mass_share: float
) -> float:
    """p-value of a guessing record against one line; at most 1, and never 0.

    `level` and `mass_share` fix the part of the level (level * mass_share) that is spent on the probability of a guess
    when delta_cost > 0; that part is added, so comparing the result with `level` is a test of that level.
    """
    spent = level * mass_share if delta_cost > 0.0 else 0.0
    mass = binomial_lower(guesses, draws, spent) if delta_cost > 0.0 else 1.0
    limit = largest_accuracy(np.array([epsilon]), np.array([delta_cost]), mass)
    return min(1.0, no_zero(spent + float(binomial_upper_tail(correct, guesses, limit)[0])))
