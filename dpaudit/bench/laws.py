"""Exact output laws that several problems share: shifts of Laplace and normal noise, randomised response, bits.

On a grid of 4,000 cells between two answers the loss varies by less than 0.003 nats within a cell, per nat of loss.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special, stats

from dpaudit.bench.problem import CELLS, SAME, Law, finite_law, grid_law, product_law, union_law
from dpaudit.privacy.claims import FloatArray, gaussian_profile

GRID = f"{CELLS:,} cells"


@functools.cache
def laplace_law(loss: float) -> Law:
    """Laplace noise of scale 1/loss, answers 0 and 1: constant loss outside [0, 1], a grid within."""
    return grid_law(stats.laplace(0.0, 1.0 / loss), stats.laplace(1.0, 1.0 / loss), np.linspace(0, 1, CELLS + 1), GRID)


@functools.cache
def gaussian_law(mu: float) -> Law:
    """N(0, 1) against N(mu, 1), on 9 standard deviations on either side."""
    edges = np.linspace(-9.0, 9.0 + mu, CELLS + 1)
    return grid_law(stats.norm(0.0, 1.0), stats.norm(mu, 1.0), edges, GRID)


@functools.cache
def geometric_law(rate: float) -> Law:
    """Two-sided geometric noise of this rate on the integers 0 and 1: every loss is `rate` or -`rate`."""
    high = 1.0 / (1.0 + math.exp(-rate))  # P(noise <= 0)
    return finite_law([high, 1.0 - high], [1.0 - high, high])


def event_law(p: float, q: float) -> Law:
    """An event of these probabilities on the two inputs, and nothing else that tells."""
    return finite_law([p, 1.0 - p], [q, 1.0 - q])


def response_law(epsilon: float, categories: int = 2) -> Law:
    """Randomised response between two of several categories."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
    other = (1.0 - truth) / (categories - 1)
    return finite_law([truth, other, 1.0 - truth - other], [other, truth, 1.0 - truth - other])


def bits_law(epsilon: float, differing: int) -> Law:
    """Independent randomised response on bits of which so many differ: the true answers among them are counted."""
    truth, count = special.expit(epsilon), np.arange(differing + 1)
    return finite_law(stats.binom.pmf(count, differing, truth), stats.binom.pmf(count, differing, 1.0 - truth))


def truncated_laplace_law(epsilon: float, reach: float) -> Law:
    """Laplace noise of scale 1/epsilon cut off at +-reach, answers 0 and 1."""
    total = -math.expm1(-epsilon * reach)  # twice the mass on one side

    edges = np.array([-reach, 1.0 - reach, *np.linspace(0.0, 1.0, CELLS + 1).tolist(), reach, 1.0 + reach])

    def masses(centre: float) -> FloatArray:
        far = np.clip(edges - centre, -reach, reach)
        below = 0.5 + 0.5 * np.sign(far) * -np.expm1(-epsilon * np.abs(far)) / total
        return np.diff(np.concatenate([[0.0], below, [1.0]]))

    p, q = masses(0.0), masses(1.0)
    inner = slice(2, -2)  # beyond the other input's support a mass is exactly 0, not the rounding of a difference
    p[:1], q[:2], p[-2:], q[-1:] = 0.0, 0.0, 0.0, 0.0
    assert p[inner].all() and q[inner].all()
    return finite_law(p / p.sum(), q / q.sum(), GRID)


def reach_for(epsilon: float, delta: float) -> float:
    """Truncation point of Laplace noise of scale 1/epsilon at which a shift of 1 costs exactly delta."""
    # delta = (e^(-(A-1) epsilon) - e^(-A epsilon)) / (2 (1 - e^(-A epsilon))), solved for e^(-A epsilon)
    tail = 2.0 * delta / (math.expm1(epsilon) + 2.0 * delta)
    return -math.log(tail) / epsilon


def exact_or_laplace_law(leak: float, loss: float) -> Law:
    """Publishes the answer itself with probability `leak`, else with Laplace noise."""
    return union_law([(leak, 0.0, SAME), (0.0, leak, SAME), (1.0 - leak, 1.0 - leak, laplace_law(loss))])


def spread_law() -> Law:
    """N(0, 1) against N(0, 1.5 squared)."""
    edges = np.linspace(-14.0, 14.0, CELLS + 1)
    return grid_law(stats.norm(0.0, 1.0), stats.norm(0.0, 1.5), edges, GRID)


@functools.cache
def tight_mu(epsilon: float, delta: float) -> float:
    """The largest mu of normal noise that keeps (epsilon, delta), rounded down."""
    low, high = 0.0, 100.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        is_kept = float(gaussian_profile(np.array([middle]), epsilon)[0]) <= delta
        low, high = (middle, high) if is_kept else (low, middle)
    return low


def laplace_sum_law(loss: float, count: int) -> Law:
    """Laplace noise in so many coordinates, with the same loss in each."""
    return product_law([laplace_law(loss)] * count)


def coupled_law(correlation: float) -> Law:
    """(a + b) / sqrt 2 and (a - b) / sqrt 2 are independent, of variance 1 + r and 1 - r: exchanged for -r."""
    wide, narrow = stats.norm(0.0, math.sqrt(1.0 + correlation)), stats.norm(0.0, math.sqrt(1.0 - correlation))
    # Above 20 nats the value of a loss changes nothing: for r = 0.6 that is from 5 on, one cell on either side.
    edges = np.linspace(-5.0, 5.0, CELLS + 1)
    return product_law([grid_law(wide, narrow, edges, GRID), grid_law(narrow, wide, edges, GRID)])
