"""Does a sampler draw from the law that its `log_density` states? Distribution checks with a proven error rate.

Both checks compare the empirical distribution function with the true one. By the Dvoretzky-Kiefer-Wolfowitz inequality
with Massart's constant, for any law (atoms included), P(sup |F_n - F| > t) <= 2 exp(-2 n t^2). So a right sampler fails
with probability at most FALSE_ALARM_RATE a call, and a wrong one whose true function is `gap` away passes with
probability at most 2 exp(-2 n (gap - t)^2).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

DRAWS = 50_000
FALSE_ALARM_RATE = 1e-10  # a call; there are fewer than 350 calls in tests/mechanisms, in all below 3.5e-8
THRESHOLD = math.sqrt(math.log(2.0 / FALSE_ALARM_RATE) / (2.0 * DRAWS))  # 0.0154
# A negative control must be at least this far from the truth: then it passes with probability at most 1e-20.
MIN_CONTROL_GAP = THRESHOLD + math.sqrt(math.log(2.0 / 1e-20) / (2.0 * DRAWS))  # 0.0370


def is_drawn_from(samples, cdf):
    """Whether DRAWS numbers fit a continuous distribution function."""
    assert len(samples) == DRAWS
    values = cdf(np.sort(np.asarray(samples, dtype=float)))
    steps = np.arange(DRAWS + 1) / DRAWS
    return max(np.max(steps[1:] - values), np.max(values - steps[:-1])) <= THRESHOLD


def is_drawn_from_outcomes(samples, outcomes, probabilities):
    """Whether DRAWS outputs fit probabilities of increasing outcomes, all other outputs being impossible."""
    assert len(samples) == DRAWS
    counts = np.array([(np.asarray(samples) == outcome).sum() for outcome in outcomes])
    return counts.sum() == DRAWS and cdf_gap(counts / DRAWS, probabilities) <= THRESHOLD


def are_independent(columns):
    """Whether DRAWS rows of uniform numbers have uniform sums and differences, of any two columns and successive rows.

    Of independent numbers they are uniform modulo 1: `is_drawn_from` twice a pair.
    """
    columns = list(np.asarray(columns).T)
    pairs = [*itertools.combinations(columns, 2), *((column, np.roll(column, 1)) for column in columns)]
    return all(is_drawn_from((a + sign * b) % 1.0, lambda u: u) for a, b in pairs for sign in (1.0, -1.0))


def cdf_gap(p, q):
    """Largest difference of the distribution functions of two laws on the same outcomes."""
    return float(np.abs(np.cumsum(p) - np.cumsum(q)).max())
