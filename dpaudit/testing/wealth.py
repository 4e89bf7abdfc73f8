"""Bets on guesses: the e-value of a guessing record against a hockey-stick line, at any time.

The game. Each labelled draw shows an output whose label is a fair coin (1: drawn from x, 0: from x_prime). A rule fixed
beforehand guesses 1 on one event, 0 on a disjoint one, and abstains elsewhere. Under the line P(S) <= e^epsilon Q(S) +
delta, asked in both directions,

    P(correct) - e^epsilon P(wrong) <= delta_cost,    delta_cost = delta * (number of non-empty guessing events) / 2,

given everything before, since P(correct) = (P(S1) + Q(S0)) / 2 and P(wrong) = (Q(S1) + P(S0)) / 2. So the payoff
1{correct} - e^epsilon 1{wrong} - delta_cost has mean at most 0, is at least -(e^epsilon + delta_cost), and

    1 + stake * payoff,    stake = fraction / (e^epsilon + delta_cost),  0 <= fraction < 1,

is a non-negative factor of mean at most 1. Products over successive draws are supermartingales whatever rule was used
for each draw, provided it was fixed before; an average over fractions is one too. By Ville's inequality the wealth
reaches 1/a with probability at most a, ever. The wealth depends on the record only through three counts, which
therefore add up over rules, rounds, chunks and workers.

Monotone in the parameter. A wrong guess costs the factor 1 - fraction whatever the line; the factors of a correct guess
and of an abstention decrease in delta_cost, and that of a correct guess decreases in epsilon. With delta_cost = 0, or
along a family of lines at one epsilon, wealth therefore decreases in the claim's parameter and the rejected parameters
are an interval from 0: bisection finds its end. (Approximate DP is the exception: its stakes follow the line.)
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

# Smallest and largest stake as log-odds of the fraction of the largest legal stake. The upper end keeps one wrong guess
# from ruin; a smaller stake than the lower end could not reach 1/a within the draws of the audit (see `fractions`).
LARGEST_LOGIT = 3.2
LOGIT_STEP = 0.8


def fractions(draws: int, log_threshold: float) -> FloatArray:
    """Fractions of the largest legal stake over which wealth is averaged, with equal weights.

    A bet of fraction f on `draws` draws gains at most about draws * f^2 / 2 where it is the best bet, so fractions
    far below sqrt(2 log_threshold / draws) cannot reach the threshold and are left out. The grid depends on the plan
    alone (draws, threshold), never on outcomes.

    Parameters
    ----------
    draws : int
        Labelled draws the audit may take.
    log_threshold : float
        log(1/a) of the pair.

    Returns
    -------
    ndarray of float, shape (fractions,)
        In (0, 1), increasing.
    """
    smallest = min(0.25, 0.7 * math.sqrt(2.0 * max(log_threshold, 1.0) / max(draws, 1)))
    lowest = math.log(smallest / (1.0 - smallest))
    count = 1 + max(1, math.ceil((LARGEST_LOGIT - lowest) / LOGIT_STEP))
    return np.asarray(scipy.special.expit(np.linspace(lowest, LARGEST_LOGIT, count)))


def log_wealth(
    record: FloatArray | NDArray[np.int64],
    epsilon: FloatArray,
    delta: FloatArray,
    fraction: FloatArray,
) -> FloatArray:
    """Natural logarithm of the e-value of a guessing record against lines (epsilon, delta).

    Parameters
    ----------
    record : ndarray, shape (2, 3)
        Labelled draws guessed correctly, wrongly and not at all, under rules with one guessing event (row 0; the line
        costs them delta / 2 a draw) and with two (row 1; delta a draw).
    epsilon, delta : ndarray of float, shape (lines,)
        The lines.
    fraction : ndarray of float, shape (fractions,)
        From `fractions`.

    Returns
    -------
    ndarray of float, shape (lines,)
        0 for an empty record.
    """
    epsilon, delta = np.asarray(epsilon, dtype=float), np.asarray(delta, dtype=float)
    logs = np.zeros((len(epsilon), len(fraction)))
    for (correct, wrong, abstained), cost in zip(record, (0.5 * delta, delta), strict=True):
        if correct + wrong + abstained == 0:
            continue
        # stake = fraction / (e^epsilon + cost), in logarithms for large epsilon
        scale = np.logaddexp(epsilon, np.log(np.maximum(cost, 1e-300)))
        stake = fraction * np.exp(-scale)[:, None]  # (lines, fractions)
        logs += correct * np.log1p(stake * (1.0 - cost[:, None])) + wrong * np.log1p(-fraction)
        logs += abstained * np.log1p(-stake * cost[:, None])
    return np.asarray(np.logaddexp.reduce(logs, axis=1) - math.log(len(fraction)))


def critical_correct(
    guesses: int, draws: int, epsilon: float, delta: float, fraction: FloatArray, log_threshold: float
) -> int:
    """The fewest correct guesses among `guesses` of a two-sided rule that reach the threshold; guesses + 1 if none.

    Wealth increases with the number of correct guesses, so this is found by bisection.
    """

    def reaches(correct: int) -> bool:
        record = np.array([[0, 0, 0], [correct, guesses - correct, draws - guesses]])
        return bool(log_wealth(record, np.array([epsilon]), np.array([delta]), fraction)[0] >= log_threshold)

    if not reaches(guesses):
        return guesses + 1
    low, high = -1, guesses
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
