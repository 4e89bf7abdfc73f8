"""The family on the real line and in several dimensions: densities, samplers, exact losses, and twins that are
caught."""

import itertools
import math
import time

import numpy as np
import pytest
from sampler_checks import DRAWS, is_drawn_from, is_drawn_from_outcomes
from scipy import spatial, stats
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit_mechanisms.two_metrics import (
    KNorm,
    OnTheLine,
    Profile,
    profiles,
    query_profile,
    staircase_profile,
)
from dpaudit_mechanisms.two_metrics.intervals import difference, is_inside, length, minkowski, union

HOLED = [[0.0, 1.0], [3.0, 4.0]]
PROFILES = {
    "staircase": staircase_profile(2.0),
    "offset": staircase_profile(2.0, 0.7),
    "query": query_profile(HOLED),
    "widened": query_profile(HOLED, 0.6),
}
MATRIX = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]])


def distribution_function(mechanism, far):
    """Of the deviation, by the trapezoid over midpoints between all edges: exact for a constant density on cells."""
    profile = mechanism.profile
    half = np.concatenate([profile.edges, np.arange(profile.edges[-1], far, profile.width)[1:]])
    edges = np.concatenate([-half[::-1], half[1:]])
    masses = np.exp(mechanism.log_density(0.0, (edges[1:] + edges[:-1]) / 2.0)) * np.diff(edges)
    return lambda values: np.interp(values, edges, np.concatenate([[0.0], np.cumsum(masses)]))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_density_has_mass_1_and_the_sampler_follows_it(name, epsilon):
    mechanism = OnTheLine(PROFILES[name], epsilon)
    cdf = distribution_function(mechanism, 150.0 / epsilon)
    assert cdf(1e9) == pytest.approx(1.0, abs=1e-9)
    start = time.process_time()
    samples = mechanism.sample(5.0, 100_000, np.random.default_rng(20_261_125)) - 5.0
    assert time.process_time() - start < 1.0  # measured: 8 ms
    assert is_drawn_from(samples[:DRAWS], cdf)  # false alarm rate 1e-10 each
    assert not is_drawn_from(1.25 * samples[:DRAWS], cdf)
    # Mean error: by the central limit theorem to 6 standard errors, about 2e-9 each.
    error = np.abs(samples)
    assert error.mean() == pytest.approx(mechanism.expected_error(), abs=6.0 * error.std() / math.sqrt(100_000))


@pytest.mark.parametrize("name", PROFILES)
def test_the_exact_loss_is_reached_and_never_exceeded_by_densities(name):
    mechanism = OnTheLine(PROFILES[name], 0.8)
    assert mechanism.epsilon_exact == mechanism.claim.value == 0.8
    points = np.linspace(-60.0, 60.0, 24_001) + 1e-4
    for shift in (0.2, 0.9, 2.0, 3.5, 4.0, 5.5, 4.3, 12.3):
        ratios = np.abs(mechanism.log_density(0.0, points) - mechanism.log_density(shift, points))
        assert ratios.max() == pytest.approx(mechanism.privacy_loss(0.0, shift), abs=1e-9)
    assert np.isneginf(mechanism.log_density(0.0, [np.nan, np.inf])).all()


def test_levels_of_a_query_with_a_hole_by_hand():
    """W = [-4, -3], [-1, 1], [3, 4]. Two steps reach [-2, 2], [2, 5], [6, 8], and all of [-2, 8] but (5, 6)."""
    profile = PROFILES["query"]
    assert profile.level([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 8.5]).tolist() == [1, 2, 2, 1, 2, 3, 2, 3]
    assert profile.level([-0.5, -5.5]).tolist() == [1, 3]
    wide = PROFILES["widened"]
    assert wide.level([0.5, 0.7, 1.7, 2.5, 4.5, 4.7]).tolist() == [0, 1, 2, 1, 1, 2]


def test_a_small_gap_is_a_level_of_its_own():
    profile = query_profile([[0.0, 0.9], [0.95, 1.0]])  # 95% of level 1 are filled, and 0.92 is two neighbours away
    assert profile.level([0.5, 0.92, 0.97, 1.5, 2.5]).tolist() == [1.0, 2.0, 1.0, 2.0, 3.0] and profile.first == 3.0


def test_unions_of_intervals():
    rng = np.random.default_rng(20_261_126)
    points = np.linspace(-3.0, 13.0, 1601) + 1e-3
    for _ in range(50):
        first, second = (union(np.sort(rng.integers(0, 10, size=(3, 2)), axis=1)) for _ in range(2))
        left = difference(first, second)
        expected = is_inside(first, points) & ~is_inside(second, points)
        assert np.array_equal(is_inside(left, points), expected)
        assert length(union(np.concatenate([first, second]))) == pytest.approx(length(left) + length(second))
        total = minkowski(first, second)
        assert total.min() == first.min() + second.min() and total.max() == first.max() + second.max()
    assert union([]).shape == (0, 2) and not is_inside(union([]), [0.0]).any()


test_what_makes_no_sense_is_refused = refusals(
    (lambda: staircase_profile(0.0), "sensitivity must"),
    (lambda: staircase_profile(1.0, 1.0), "offset must"),
    (lambda: OnTheLine(PROFILES["query"], 0.0), "epsilon must"),
    (lambda: query_profile([[0.0, 0.0]]), "neighbouring_set must"),
    (lambda: query_profile("all"), "neighbouring_set must"),
    (lambda: query_profile([[2.0, 1.0]]), "intervals must"),
    (lambda: query_profile(HOLED, -1.0), "width must"),
    (lambda: Profile([0.0, 0.0], [1.0], 1.0, 1.0, [[0.0, 1.0]]), "edges must"),
    (lambda: Profile([0.0, 1.0], [-1.0], 1.0, 1.0, [[0.0, 1.0]]), "levels must"),
    (lambda: KNorm([[0.0, 0.0]], 1.0), "queries must"),
    (lambda: KNorm(np.eye(9), 1.0), "queries must"),
    (lambda: KNorm([[1.0]], 1.0).sample([1.0, 2.0], 1, np.random.default_rng(0)), "data must"),
)


@pytest.mark.parametrize("epsilon", [1e-12, 1e4])
@pytest.mark.parametrize("discrete", [False, True])
def test_tiny_and_huge_budgets_neither_underflow_nor_take_memory(epsilon, discrete):
    """Levels begin at 1 on most profiles: e^(-level epsilon) is 0 in doubles from 745 on, ratios of weights are not."""
    rng = np.random.default_rng(20_261_540)
    noises = {KNorm([[1.0]], epsilon, discrete): ([0.0], 1.0)}
    if discrete:  # the same law in another form, and the query with a hole
        noises[OnTheLine(staircase_profile(1.0), epsilon)] = (0.0, 1.0)
        noises[OnTheLine(PROFILES["query"], epsilon)] = (0.0, 4.0)
    for noise, (data, top) in noises.items():
        draws = noise.sample(data, 1_000, rng)
        assert np.isfinite(noise.log_density(data, draws)).all()
        # Far levels: an exponential variable of mean top / epsilon. Level 1 alone: a uniform point of it.
        median = np.median(np.abs(draws))
        if epsilon < 1.0 or not discrete:
            assert median == pytest.approx(math.log(2.0) * top / epsilon, rel=0.25)  # more than 5 standard errors
        else:
            assert (noise.level(draws) if isinstance(noise, KNorm) else noise.profile.level(draws)).max() == 1.0


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_the_constant_of_discrete_k_norm_noise_is_the_sum_over_levels(rank, epsilon):
    mechanism = KNorm(np.eye(rank), epsilon, discrete=True)
    levels = np.arange(1.0, 2.0 + (60.0 + 20.0 * rank) / epsilon)
    total = math.fsum(np.exp(-epsilon * (levels - 1.0)) * (levels**rank - (levels - 1.0) ** rank))
    assert mechanism.log_beta == pytest.approx(math.log(mechanism.body.volume) + math.log(total) - epsilon, rel=1e-12)


def test_a_query_whose_levels_fill_the_line_too_late_is_given_up(monkeypatch):
    """A billion levels, which 20,000 of them took minutes to find out; in 5,000,000 intervals some seconds."""
    monkeypatch.setattr(profiles, "MAX_INTERVALS", 10_000)
    with pytest.raises(UsageError, match=r"must make levels that fill the line, got \[\[0\.0, 1e-09\]"):
        query_profile([[0.0, 1e-9], [1.0, 1.0]])


# ---- K-norm ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gauges_and_directions_of_draws_follow_their_laws(rank, discrete):
    queries = np.vstack([MATRIX, [0.3, 0.0, 1.0]])[:rank] if rank < 3 else np.array(
        [[1.0, 0.5, 0.0, 1.0], [0.0, 1.0, 2.0, 0.0], [0.3, 0.0, 1.0, -1.0]])  # fmt: skip
    mechanism, x = KNorm(queries, 0.9, discrete), np.arange(1.0, queries.shape[1] + 1.0)
    assert mechanism.basis.shape[1] == rank
    start = time.process_time()
    noise = mechanism.sample(x, 100_000, np.random.default_rng(20_261_127))[:DRAWS] - queries @ x
    assert time.process_time() - start < 2.0  # measured: 60 ms
    gauges = mechanism.gauge(noise)
    if discrete:
        levels = np.arange(1.0, 200.0)
        weights = np.exp(-0.9 * levels) * (levels**rank - (levels - 1.0) ** rank)
        found = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])

        def cdf(values):  # uniform by volume within a level
            i = np.ceil(values)
            inner = (values**rank - (i - 1.0) ** rank) / (i**rank - (i - 1.0) ** rank)
            return found[i.astype(int) - 1] + inner * np.diff(found)[i.astype(int) - 1]

    else:
        cdf = stats.gamma(rank, scale=1.0 / 0.9).cdf
    assert is_drawn_from(gauges, cdf) and not is_drawn_from(1.2 * gauges, cdf)  # false alarm rate 1e-10 each
    # The facet that the noise points to: in proportion to the volume of K under it.
    facets, corners = mechanism.body.facets, mechanism.body.corners
    if rank == 1:
        shares = np.array([0.5, 0.5])
    else:
        shares = np.abs(np.linalg.det(corners[spatial.ConvexHull(corners).simplices]))  # in the order of `facets`
        shares /= shares.sum()
    pointed = ((noise @ mechanism.basis) @ facets.T).argmax(axis=1)
    assert is_drawn_from_outcomes(pointed, np.arange(len(facets)), shares)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_body_is_the_hull_of_its_columns(rank):
    rng = np.random.default_rng([20_261_128, rank])
    queries = rng.normal(size=(rank, rank + 2))
    body = KNorm(queries, 1.0).body
    assert body.gauge(body.corners).max() == pytest.approx(1.0)
    low, high = body.corners.min(axis=0), body.corners.max(axis=0)
    box = rng.uniform(low, high, size=(200_000, rank))
    share = (body.gauge(box) <= 1.0).mean()  # a share of 200,000: to 6 standard errors, about 2e-9
    error = 6.0 * 0.5 / math.sqrt(200_000)
    assert body.volume == pytest.approx(share * np.prod(high - low), abs=error * np.prod(high - low))
    points = body.uniform(20_000, rng)
    assert (body.gauge(points) <= 1.0 + 1e-9).all()
    mean_gauge = (body.gauge(points)).mean()  # of a uniform point rank / (rank + 1), standard deviation below 0.3
    assert mean_gauge == pytest.approx(rank / (rank + 1.0), abs=6.0 * 0.3 / math.sqrt(20_000))


def test_a_matrix_of_lower_rank_answers_in_its_column_space():
    mechanism = KNorm([[1.0, 2.0], [2.0, 4.0]], 1.0)
    samples = mechanism.sample([1.0, 0.0], 1000, np.random.default_rng(3))
    assert samples[:, 1] == pytest.approx(2.0 * samples[:, 0])
    assert np.isfinite(mechanism.log_density([1.0, 0.0], samples)).all()
    assert np.isneginf(mechanism.log_density([1.0, 0.0], [[1.0, 2.5], [np.nan, 0.0], [np.inf, np.inf]])).all()
    for rows in itertools.permutations([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]):  # the last two answers are equal
        off = 0.5 * np.eye(3)[[row[1] == 1.0 for row in rows]]
        assert np.isneginf(KNorm(rows, 1.0).log_density([1.0, 0.0], np.array(rows)[:, 0] + off)).all()


def test_the_pairs_of_k_norm_noise_are_those_of_corners():
    inside = KNorm([[1.0, 0.3, 0.0], [0.0, 0.2, 1.0]], 0.5)  # the second column is in the interior of K
    assert [pair.id for pair in inside.pairs()] == ["0|e0", "0|e2"]
    assert [inside.privacy_loss(pair.x, pair.x_prime) for pair in inside.pairs()] == pytest.approx([0.5, 0.5])
    assert inside.privacy_loss(np.zeros(3), np.eye(3)[1]) == pytest.approx(0.25)


@pytest.mark.parametrize("discrete", [False, True])
def test_exact_losses_of_k_norm_noise(discrete):
    mechanism = KNorm(MATRIX, 0.5, discrete)
    rng = np.random.default_rng(5)
    points = rng.normal(scale=30.0, size=(50_000, 2))
    cases = [([0.0, 0.0, 0.0], [0.0, 1.0, 0.0]), ([0.0, 0.0, 0.0], [0.4, 0.0, 0.3]), ([1.0, 1.0, 1.0], [3.0, 0.0, 1.0])]
    for x, y in cases:
        ratios = np.abs(mechanism.log_density(x, points) - mechanism.log_density(y, points))
        exact = mechanism.privacy_loss(x, y)
        assert ratios.max() <= exact + 1e-9 and ratios.max() >= 0.95 * exact
        assert np.abs(np.subtract(x, y)).sum() > 1.0 or exact <= 0.5 + 1e-12
    losses = [mechanism.privacy_loss(pair.x, pair.x_prime) for pair in mechanism.pairs()]
    assert losses == pytest.approx([0.5] * len(losses)) and mechanism.epsilon_exact == 0.5


def test_bounds_of_a_large_epsilon_do_not_overflow():
    for discrete in (False, True):
        (bound,) = KNorm([[1.0]], 1e4, discrete=discrete).utility_bounds()
        assert bound.bound == (1.0 if discrete else 1e-4)
