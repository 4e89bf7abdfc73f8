"""The exact binomial test and its lower bound, for many guessing records at once.

The same inequalities as in `dpaudit.testing.binomial`, with all arguments arrays: the number of correct guesses given
the number of guesses is binomial with a success probability of at most expit(epsilon) + k (1 - expit(epsilon)), where
k = delta_cost / P(guess) and a share of the level pays for a lower limit on P(guess) where delta_cost > 0. For one
record and level the line with that limit can be solved for epsilon in closed form.
"""

from __future__ import annotations

import numpy as np
import scipy

from dpaudit.privacy.claims import FloatArray
from dpaudit.testing.binomial import binomial_lower_each

DOWN = 1.0 - 1e-9  # bounds are rounded down by more than the error of the special functions


def epsilon_lower(
    correct: FloatArray, guesses: FloatArray, draws: float, cost: FloatArray, level: FloatArray, mass_share: float
) -> FloatArray:
    """Lower confidence bounds on epsilon, each with P(bound > truth) <= its level; 0 where there is nothing to say."""
    costs = cost > 0.0
    spent = np.where(costs, level * mass_share, 0.0)
    accuracy = DOWN * binomial_lower_each(correct, guesses, level - spent)
    k = _relative_cost(guesses, draws, cost, spent)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(k < 1.0, (accuracy - k) / (1.0 - k), 0.0)
        found = DOWN * scipy.special.logit(np.clip(share, 0.5, 1.0))
    return np.asarray(np.maximum(found, 0.0))


def log_p_values(
    correct: FloatArray,
    guesses: FloatArray,
    draws: float,
    epsilon: FloatArray,
    cost: FloatArray,
    level: FloatArray,
    mass_share: float,
) -> FloatArray:
    """Natural logarithms of the p-values against lines (epsilon, cost), as `binomial.p_value` has them; at most 0."""
    spent = np.where(cost > 0.0, level * mass_share, 0.0)
    k = np.minimum(_relative_cost(guesses, draws, cost, spent), 1.0)
    limit = np.minimum(scipy.special.expit(epsilon) + k * scipy.special.expit(-epsilon), 1.0)
    return log_tails(correct, guesses, limit, spent)


def log_tails(correct: FloatArray, guesses: FloatArray, limit: FloatArray, spent: FloatArray) -> FloatArray:
    """Natural logarithms of P(Binomial(guesses, limit) >= correct) + spent; at most 0.

    A tail below the smallest double is bounded by exp(-n KL) (Chernoff), which it cannot exceed.
    """
    positive = correct > 0
    c, wrong = np.where(positive, correct, 1.0), np.maximum(guesses - correct, 0.0)
    tail = np.where(positive, scipy.special.betainc(c, wrong + 1.0, limit), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.maximum(guesses, 1.0)
        share = np.minimum(c / n, 1.0)
        chernoff = -n * (scipy.special.rel_entr(share, limit) + scipy.special.rel_entr(1.0 - share, 1.0 - limit))
        log_tail = np.where(tail > 1e-290, np.log(tail), np.minimum(chernoff, np.log(1e-290)))
        both = np.where(spent > 0.0, np.logaddexp(log_tail, np.log(spent)), log_tail)
    return np.minimum(both, 0.0)


def _relative_cost(guesses: FloatArray, draws: float, cost: FloatArray, spent: FloatArray) -> FloatArray:
    """Cost over the lower limit of the probability of a guess; 0 where there is no cost."""
    mass = np.where(cost > 0.0, DOWN * binomial_lower_each(guesses, np.full_like(guesses, draws), spent), 1.0)
    with np.errstate(divide="ignore"):
        return np.where(cost > 0.0, cost / mass, 0.0)


def detectable_losses(
    epsilon: FloatArray,
    delta: float | FloatArray,
    draws: int,
    level: float,
    mass_share: float,
    event_mass: float,
    probability: float,
    guesses_quantile: float,
) -> FloatArray:
    """The smallest loss of randomised-response type that the test finds with the given probability, for each epsilon.

    As in `FixedGame.power` for a rule with both events; inf where no such loss would be found.
    """
    guesses = float(int(scipy.special.bdtrik(guesses_quantile, draws, event_mass)))
    if not guesses >= 1.0:
        return np.full_like(epsilon, np.inf)
    n, levels = np.full_like(epsilon, guesses), np.full_like(epsilon, level)
    costs = np.full_like(epsilon, delta)
    low, high = np.full_like(epsilon, -1.0), n + 1.0
    while np.any(high - low > 1.0):
        middle = np.floor((low + high) / 2.0)
        rejects = log_p_values(middle, n, draws, epsilon, costs, levels, mass_share) <= np.log(level)
        low, high = np.where(rejects, low, middle), np.where(rejects, middle, high)
    possible = high <= guesses
    critical = np.minimum(high, guesses)
    accuracy = scipy.special.betaincinv(critical, guesses - critical + 1.0, probability / (1.0 - guesses_quantile))
    return np.where(possible, scipy.special.logit(accuracy), np.inf)
