"""The paper on metric queries, on l_p for 1 < p < 2 (the last sentence of MQ-T10): a bounded random projection into l1.

For g with independent p-stable coordinates E|g . x| is c |x|_p (c = E|g_1|), but single terms have no variance. Drawn
with density proportional to |g|_1 in addition, and divided by |g|_1, they are bounded, and their mean is |x|_p / l:
that law is a mixture over i of "g_i size-biased, the others as they were". So l |g . x| / |g|_1 is at most l |x|_p,
with variance at most l |x|_p^2, and Bernstein's inequality with a net as for MQ-L9 gives 1 +- alpha on all of R^l from
O(l^2 log(1 / alpha) / alpha^2) images.
"""

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit_mechanisms.distances import AverageDistances, practical

MISS = 1e-9


def stable(p, rng, size, *, biased=False):
    """|g| for a symmetric p-stable g (Chambers, Mallows, Stuck), or its size-biased law, density proportional to |g|.

    |g| = h(U) W^((p-1)/p), U uniform, W exponential; size-biased, U has density h and W is Gamma(1 + (p-1)/p). h has a
    singularity v^(-1/p) at v = pi/2 - |U| = 0: v is drawn from that power, and accepted in proportion to the rest.
    """
    power = (p - 1.0) / p

    def height(v):  # h v^(1/p), bounded
        u = math.pi / 2.0 - v
        return np.abs(np.sin(p * u)) * (v / np.sin(v)) ** (1.0 / p) / np.cos((p - 1.0) * u) ** power

    if not biased:
        v = math.pi / 2.0 * (1.0 - rng.random(size))
        return height(v) * v ** (-1.0 / p) * rng.exponential(size=size) ** power
    most = (math.pi / 2.0) ** (1.0 / p) / math.cos((p - 1.0) * math.pi / 2.0) ** power  # each factor at its largest
    found = np.empty(0)
    while len(found) < size:
        v = math.pi / 2.0 * rng.random(4 * size) ** (1.0 / power)  # density proportional to v^(-1/p)
        v = v[v > 0.0]
        found = np.append(found, v[rng.random(len(v)) * most < height(v)])
    v = found[:size]
    return height(v) * v ** (-1.0 / p) * rng.gamma(1.0 + power, size=size) ** power


def bounded_projection(p, dimension, images, rng):
    """P, shape (images, dimension), with E|Px|_1 = |x|_p and entries of at most dimension / images."""
    g = stable(p, rng, images * dimension).reshape(images, dimension)
    rows, chosen = np.arange(images), rng.integers(dimension, size=images)
    g[rows, chosen] = stable(p, rng, images, biased=True)
    signs = rng.choice([-1.0, 1.0], size=g.shape)
    return dimension / images * signs * g / g.sum(axis=1, keepdims=True)


def sufficient(dimension, alpha, beta):
    """Images by Bernstein's inequality on a net of theta = alpha / 4; see `sufficient_images` for the net."""
    theta = alpha / 4.0
    t = alpha * (1.0 - theta) - theta
    points = dimension * math.log(1.0 + 2.0 / theta) + math.log(2.0 / beta)
    return math.ceil((2.0 * dimension + 2.0 / 3.0 * dimension * t) * points / t**2)


@pytest.mark.claim("MQ-T10")
@pytest.mark.parametrize("p", [1.2, 1.5, 1.9])
def test_size_biased_draws_have_the_law_of_stable_ones_weighted_by_their_size(p):
    """E[f(g) |g|] = E|g| E_biased[f(g)] for f(g) = 1 / (1 + g^2), so that all terms are bounded.

    g is symmetric stable with E exp(i t g) = exp(-|t|^p), which is tested too, at t = 1. Each mean of 40,000 terms in
    [-1, 1] misses by 0.05 with probability 2 exp(-50) (Hoeffding).
    """
    rng = np.random.default_rng(20_261_671)
    plain, biased = stable(p, rng, 40_000), stable(p, rng, 40_000, biased=True)
    mean = 2.0 / math.pi * math.gamma(1.0 - 1.0 / p)  # E|g|
    assert np.cos(plain).mean() == pytest.approx(math.exp(-1.0), abs=0.05)
    weighted = (plain / (1.0 + plain**2)).mean() / mean
    assert (1.0 / (1.0 + biased**2)).mean() == pytest.approx(weighted, abs=0.1)
    assert abs((1.0 / (1.0 + plain**2)).mean() - weighted) > 0.15  # the control: without the weights


@pytest.mark.claim("MQ-T10")
@pytest.mark.parametrize("p", [1.2, 1.5, 1.9])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_bounded_projections_keep_l_p_distances(p, dimension):
    """20 projections, each of which may miss 1 +- 0.3 in some direction with probability 0.1; 14 do below 1e-9."""
    rng, alpha, beta, runs = np.random.default_rng(20_261_672), 0.3, 0.1, 20
    directions = rng.normal(size=(300, dimension))
    directions /= (np.abs(directions) ** p).sum(axis=1, keepdims=True) ** (1.0 / p)
    images, misses, few = sufficient(dimension, alpha, beta), 0, 0
    for _ in range(runs):
        matrix = bounded_projection(p, dimension, images, rng)
        assert np.abs(matrix).max() <= dimension / images * (1.0 + 1e-12)
        misses += np.abs(np.abs(directions @ matrix.T).sum(axis=1) - 1.0).max() > alpha
        matrix = bounded_projection(p, dimension, 1, rng)
        few += np.abs(np.abs(directions @ matrix.T).sum(axis=1) - 1.0).max() > alpha
    assert misses <= stats.binom.isf(MISS, runs, beta)
    assert dimension == 1 or few == runs  # the control: one image is 0 in some direction
    for small in (0.3, 0.1, 0.01, 0.001):
        assert sufficient(dimension, small, beta) <= 120.0 * dimension**2 * math.log(1.0 / small) / small**2


@pytest.mark.claim("MQ-T10")
def test_images_of_an_l_p_database_differ_in_one_row_and_their_average_is_within_alpha():
    """The box has a diameter fixed by the matrix alone; the l1 mechanism runs on it. One matrix, at 0.1 as above."""
    rng, p = np.random.default_rng(20_261_673), 1.5
    matrix = bounded_projection(p, 2, sufficient(2, 0.3, 0.1), rng)
    widths = np.abs(matrix).sum(axis=1)  # of the images of [0, 1]^2
    corner = np.minimum(matrix, 0.0).sum(axis=1)
    points = rng.uniform(size=(50, 2))
    moved = points.copy()
    moved[7] = rng.uniform(size=2)
    images, others = points @ matrix.T - corner, moved @ matrix.T - corner
    assert np.flatnonzero((images != others).any(axis=1)).tolist() == [7]
    assert (images >= -1e-12).all() and (images <= widths + 1e-12).all()
    query = rng.uniform(size=2)
    truth = ((np.abs(points - query) ** p).sum(axis=1) ** (1.0 / p)).mean()
    found = AverageDistances(images, widths).value([query @ matrix.T - corner])[0]
    assert abs(found - truth) <= 0.3 * truth
    assert practical(50, widths, 1.0, queries=1, beta=0.1).epsilon == pytest.approx(1.0)
