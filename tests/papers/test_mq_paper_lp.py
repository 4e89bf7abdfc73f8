"""The paper on metric queries, on l_p for 1 < p < 2 (the last sentence of MQ-T10): a bounded random projection into l1.

`mechanisms.distances.stable_projection` has the construction and its proof.
"""

import math

import numpy as np
import pytest
from scipy import stats
from support.refusals import refusals

from dpaudit_mechanisms.distances import AverageDistances, MetricDistances, StableProjection, sufficient_stable_images
from dpaudit_mechanisms.distances.stable_projection import size_biased, stable_sizes

MISS = 1e-9


@pytest.mark.claim("MQ-N3", "MQ-T10")
@pytest.mark.parametrize("p", [1.2, 1.5, 1.9])
def test_size_biased_draws_have_the_law_of_stable_ones_weighted_by_their_size(p):
    """E[f(g) |g|] = E|g| E_biased[f(g)] for f(g) = 1 / (1 + g^2), so that all terms are bounded.

    g is symmetric stable with E exp(i t g) = exp(-|t|^p), which is tested too, at t = 1. Each mean of 40,000 terms in
    [-1, 1] misses by 0.05 with probability 2 exp(-50) (Hoeffding).
    """
    rng = np.random.default_rng(20_261_671)
    plain, biased = stable_sizes(p, 40_000, rng), size_biased(p, 40_000, rng)
    mean = 2.0 / math.pi * math.gamma(1.0 - 1.0 / p)  # E|g|
    assert np.cos(plain).mean() == pytest.approx(math.exp(-1.0), abs=0.05)
    weighted = (plain / (1.0 + plain**2)).mean() / mean
    assert (1.0 / (1.0 + biased**2)).mean() == pytest.approx(weighted, abs=0.1)
    assert abs((1.0 / (1.0 + plain**2)).mean() - weighted) > 0.15  # the control: without the weights


@pytest.mark.claim("MQ-N3", "MQ-T10")
@pytest.mark.parametrize("p", [1.2, 1.5, 1.9])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_bounded_projections_keep_l_p_distances(p, dimension):
    """20 projections, each of which may miss 1 +- 0.3 in some direction with probability 0.1; 14 do below 1e-9."""
    rng, alpha, beta, runs = np.random.default_rng(20_261_672), 0.3, 0.1, 20
    directions = rng.normal(size=(300, dimension))
    directions /= (np.abs(directions) ** p).sum(axis=1, keepdims=True) ** (1.0 / p)
    images, misses, few = sufficient_stable_images(dimension, alpha, beta), 0, 0
    for seed in range(runs):
        matrix = StableProjection(p, dimension, images, seed).matrix
        assert np.abs(matrix).max() <= dimension / images * (1.0 + 1e-12)
        misses += np.abs(np.abs(directions @ matrix.T).sum(axis=1) - 1.0).max() > alpha
        matrix = StableProjection(p, dimension, 1, seed).matrix
        few += np.abs(np.abs(directions @ matrix.T).sum(axis=1) - 1.0).max() > alpha
    assert misses <= stats.binom.isf(MISS, runs, beta)
    assert dimension == 1 or few == runs  # the control: one image is 0 in some direction
    for small in (0.3, 0.1, 0.01, 0.001):
        assert sufficient_stable_images(dimension, small, beta) <= 120 * dimension**2 * math.log(1 / small) / small**2


@pytest.mark.claim("MQ-N3", "MQ-T10")
def test_images_of_an_l_p_database_differ_in_one_row_and_their_average_is_within_alpha():
    """One matrix, which misses 1 +- 0.3 with probability 0.1 as above; points outside of the cube are moved onto it."""
    rng, p = np.random.default_rng(20_261_673), 1.5
    embedding = StableProjection(p, 2, sufficient_stable_images(2, 0.3, 0.1), seed=7)
    points = rng.uniform(size=(50, 2))
    moved = points.copy()
    moved[7] = rng.uniform(size=2)
    images, others = embedding.embed(points), embedding.embed(moved)
    assert np.flatnonzero((images != others).any(axis=1)).tolist() == [7]
    assert (images >= 0.0).all() and (images <= embedding.widths).all()
    query = rng.uniform(size=2)
    truth = ((np.abs(points - query) ** p).sum(axis=1) ** (1.0 / p)).mean()
    found = AverageDistances(images, embedding.widths).value(embedding.embed([query]))[0]
    assert abs(found - truth) <= 0.3 * truth
    assert (embedding.embed([[-3.0, 9.0]]) == embedding.embed([[0.0, 1.0]])).all()


@pytest.mark.claim("MQ-N3")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_l_p_release_keeps_its_error(delta):
    """Utility: each run misses with probability at most 0.05; 12 misses of 20 have probability below 1e-9."""
    rng, p = np.random.default_rng(20_261_674), 1.5
    data, queries = rng.beta(0.5, 0.5, size=(50_000, 2)), [[0.0, 0.0], [0.5, 0.5], [1.0, 0.0]]
    embedding = StableProjection(p, 2, 6, seed=3)
    mechanism = MetricDistances(embedding, queries, 50_000, 5.0, delta)
    answers, exact = mechanism.sample(data, 20, rng), mechanism.noiseless(data)
    assert (np.abs(answers - exact).max(axis=1) > mechanism.alpha).sum() <= stats.binom.isf(MISS, 20, 0.05)
    assert mechanism.alpha < 1.0
    truth = np.array([((np.abs(data - q) ** p).sum(axis=1) ** (1.0 / p)).mean() for q in np.array(queries)])
    many = MetricDistances(StableProjection(p, 2, 4_000, seed=3), queries, 50_000, 5.0, delta).noiseless(data[:2_000])
    assert np.abs(many / truth - 1.0).max() < 0.1  # the distortion alone, of more images


test_what_makes_no_sense_is_refused = refusals(
    (lambda: StableProjection(2.0, 1, 1), "p must"),
    (lambda: StableProjection(1.5, 0, 1), "dimension must"),
    (lambda: StableProjection(1.5, 1, 1, side=0.0), "side must"),
    (lambda: StableProjection(1.5, 1, 1).embed([[math.inf]]), "points must"),
)
