"""Noise on linear equalities: sums of Laplace variables, affine sets, exact draws, chains along lines, normal noise."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from
from scipy import integrate, stats
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.diagnostics import effective_sample_size, split_r_hat
from dpaudit_mechanisms.constrained.equalities import GaussianOnEqualities, LaplaceOnEqualities
from dpaudit_mechanisms.constrained.imaging import Imaged
from dpaudit_mechanisms.constrained.laplace_sums import (
    conditional_marginal,
    conditional_variance,
    draw_given_sum,
    log_density_at_zero,
    projected_variance,
    relative_density,
)
from dpaudit_mechanisms.constrained.lines import directions, step_along
from dpaudit_mechanisms.faulty.constrained import LaplaceOnAnyTotal
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.laplace import Laplace

SEEDS = st.integers(0, 2**32)
SUM = Affine([[1.0, 1.0, 1.0]], [6.0])


def three_cdf(values):
    """The distribution function of CD-U2 at scale 1: (1 + |u|) e^(-2|u|) / (3/2), integrated by hand."""
    u = np.abs(values)
    tail = np.exp(-2.0 * u) * (0.5 + u / 3.0)
    return np.where(values < 0.0, tail, 1.0 - tail)


def table_cdf(density, low, high):
    """A distribution function from a density, on a grid of 20,001 points; its error is below 1e-6."""
    grid = np.linspace(low, high, 20_001)
    total = integrate.cumulative_simpson(density(grid), x=grid, initial=0.0)
    return lambda values: np.interp(values, grid, total / total[-1])


def sum_density(count, sums, scale=1.0):
    """Density of the sum of `count` Laplace variables, at each of `sums`."""
    return math.exp(log_density_at_zero(count)) / scale * relative_density(count, np.asarray(sums) / scale)


# ---- sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_the_density_of_a_sum_is_the_convolution_of_its_parts(count):
    if count == 1:
        assert sum_density(1, [-1.0, 0.0, 3.0]) == pytest.approx(stats.laplace.pdf([-1.0, 0.0, 3.0]))
        return
    for s in (0.0, 1.5, -4.0):
        kinks = sorted([-60.0, 0.0, s, 60.0])
        found = sum(
            integrate.quad(lambda u, s=s: stats.laplace.pdf(u) * float(sum_density(count - 1, s - u)), a, b)[0]
            for a, b in itertools.pairwise(kinks)
            if b > a
        )
        assert float(sum_density(count, s)) == pytest.approx(found, rel=1e-7)
    wide = integrate.quad(lambda u: float(sum_density(count, u, 2.0)), 0.0, 400.0, limit=200)[0]
    assert 2.0 * wide == pytest.approx(1.0, abs=1e-7)


def test_the_density_at_zero_neither_overflows_nor_loses_digits():
    assert log_density_at_zero(3) == pytest.approx(math.log(math.comb(4, 2) / 2**5), rel=1e-14)
    assert math.exp(log_density_at_zero(100_000)) == pytest.approx(1.0 / math.sqrt(4.0 * math.pi * 1e5), rel=1e-4)
    assert np.isfinite(sum_density(270, [0.0, 50.0, 700.0])).all() and sum_density(270, 1e4) == 0.0


@pytest.mark.parametrize(("count", "total"), [(2, 0.0), (2, 2.0), (5, -3.0), (5, 25.0), (40, 8.0)])
def test_variables_given_any_sum_have_the_right_marginal(count, total):
    draws = draw_given_sum(count, np.full(DRAWS, total), np.random.default_rng(20_261_523))
    assert draws.sum(axis=1) == pytest.approx(np.full(DRAWS, total), abs=1e-9)
    span = 30.0 + abs(total)
    cdf = table_cdf(lambda u: stats.laplace.pdf(u) * sum_density(count - 1, total - u), -span, span)
    assert is_drawn_from(draws[:, -1], cdf)  # false alarm rate 1e-10 each
    if count == 2 and total == 2.0:  # flat between 0 and 2: by hand
        assert cdf(np.array([0.0, 1.0, 2.0])) == pytest.approx([1.0 / 6.0, 0.5, 5.0 / 6.0], abs=1e-5)


@pytest.mark.claim("CD-P4.1", "CD-U3", "CD-E0")
def test_both_variances_are_kept_and_those_of_a_larger_scale_are_not():
    """Means of 200,000 squares. Fourth moments at n = 3: 8 projected, 7/2 conditioned; 7 standard errors as limits."""
    rng, size = np.random.default_rng(20_261_524), 200_000
    mechanism = LaplaceOnEqualities(1.0, SUM)
    projected = Imaged(Laplace(1.0, (1.0 / 3.0,) * 3), SUM)
    found = {
        "conditioned": ((mechanism.sample([1.0, 2.0, 3.0], size, rng) - [1.0, 2.0, 3.0])[:, 0] ** 2).mean(),
        "projected": ((projected.sample([1.0, 2.0, 3.0], size, rng) - [1.0, 2.0, 3.0])[:, 0] ** 2).mean(),
    }
    spreads = {"conditioned": 3.5 - 25.0 / 36.0, "projected": 8.0 - 16.0 / 9.0}
    limits = {name: 7.0 * math.sqrt(spread / size) for name, spread in spreads.items()}
    expected = {"conditioned": conditional_variance(3), "projected": projected_variance(3)}
    for name, value in found.items():
        assert abs(value - expected[name]) < limits[name]
        assert abs(1.05**2 * value - expected[name]) > limits[name]  # control: a scale 5% too large


# ---- affine sets ----------------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-S9")
@given(SEEDS, st.integers(2, 6))
def test_projections_onto_affine_sets(seed, coordinates):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, coordinates + 1))
    given_set = Affine(rng.normal(size=(rows, coordinates)), rng.normal(size=rows))
    x, y = rng.normal(size=(2, 5, coordinates)) * 10.0
    px, py = given_set.project(x), given_set.project(y)
    assert given_set.contains(px).all()
    assert px @ given_set.matrix.T == pytest.approx(np.tile(given_set.offsets, (5, 1)), abs=1e-6)
    assert given_set.project(px) == pytest.approx(px, abs=1e-8)  # idempotent
    assert (np.linalg.norm(px - py, axis=1) <= np.linalg.norm(x - y, axis=1) + 1e-9).all()
    printed = x - (x @ given_set.matrix.T - given_set.offsets) @ np.linalg.pinv(given_set.matrix).T
    assert px == pytest.approx(printed, abs=1e-6)  # y - A' (A A')^-1 (A y - b)


def test_rows_that_follow_from_others_are_dropped_and_rows_that_contradict_refused():
    twice = Affine([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0]], [1.0, 2.0, 0.0])
    assert (twice.rank, twice.dimension) == (1, 2)
    with pytest.raises(UsageError, match="rows that contradict"):
        Affine([[1.0, 1.0], [2.0, 2.0]], [1.0, 3.0])
    with pytest.raises(UsageError, match="rows that contradict"):
        Affine([[0.0, 0.0]], [1.0])
    with pytest.raises(UsageError, match="must determine the others"):
        Affine([[1.0, 0.0, 0.0]]).solved([[1.0, 1.0]], (0, 1))


# ---- Laplace noise --------------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-L3.3")
@given(st.floats(0.05, 10.0), SEEDS, st.integers(2, 5))
def test_the_loss_is_the_claim_on_the_pairs_and_no_more_elsewhere(epsilon, seed, coordinates):
    rng = np.random.default_rng(seed)
    mechanism = LaplaceOnEqualities(epsilon, Affine(rng.normal(size=(1, coordinates))), 2.0, sweeps=2)
    assert mechanism.claim == PureDP(epsilon)
    for pair in mechanism.pairs():
        assert mechanism.privacy_loss(pair.x, pair.x_prime) == pytest.approx(epsilon, rel=1e-9)
    x, x_prime = mechanism.given.project(rng.normal(size=(2, coordinates)))
    outputs = mechanism.sample(x, 20, rng)
    ratios = mechanism.log_density(x, outputs) - mechanism.log_density(x_prime, outputs)
    assert np.abs(ratios).max() <= mechanism.privacy_loss(x, x_prime) * (1.0 + 1e-9) + 1e-9
    assert (mechanism.log_density(x, outputs + 1.0) == -np.inf).all() or abs(mechanism.given.normals.sum()) < 1e-6


@pytest.mark.claim("CD-S6")
def test_groups_of_equal_coefficients_have_exact_draws_and_others_a_chain():
    both = Affine([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 3.0, 3.0]], [1.0, 2.0])
    exact = [Affine([[1.0, 1.0]]), Affine([[2.0, -2.0, 0.0]]), both]
    chained = [Affine([[1.0, 2.0]]), Affine([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])]
    assert all(LaplaceOnEqualities(1.0, given_set).is_exact for given_set in exact)
    assert not any(LaplaceOnEqualities(1.0, given_set).is_exact for given_set in chained)
    signed = LaplaceOnEqualities(1.0, exact[1]).sample([1.0, 1.0, 0.0], DRAWS, np.random.default_rng(20_261_525))
    assert signed[:, 0] == pytest.approx(signed[:, 1])
    assert is_drawn_from(signed[:, 0] - 1.0, stats.laplace(scale=0.5).cdf)  # false alarm rate 1e-10 each
    assert is_drawn_from(signed[:, 2], stats.laplace.cdf)  # a coordinate that no equality has is free


@pytest.mark.claim("CD-S6")
@pytest.mark.parametrize("matrix", [[[1.0, 1.0, 1.0]], [[1.0, 2.0]]], ids=["three equal", "two unequal"])
def test_the_chain_along_lines_has_the_law_of_the_exact_draws(matrix):
    """One free variable, or the sum of three: with unequal coefficients (2t, -t) has the density e^-3|t|."""
    mechanism = LaplaceOnEqualities(1.0, Affine(matrix), sweeps=10)
    noise = mechanism._ends(DRAWS, np.random.default_rng(20_261_526))
    cdf = three_cdf if len(matrix[0]) == 3 else stats.laplace(scale=2.0 / 3.0).cdf
    assert is_drawn_from(noise[:, 0], cdf)  # false alarm rate 1e-10 each, the chain's own error being far below
    assert mechanism.given.contains(noise).all()


def test_a_step_along_a_line_is_exact_whatever_the_state():
    """A single step along the only line forgets the state: the density there is e^-(|u| + |9 - u| / 2)."""
    noise = np.tile([13.0, -4.0], (DRAWS, 1))
    step_along(noise, np.array([1.0, -1.0]), np.array([1.0, 2.0]), np.random.default_rng(20_261_527))
    assert noise.sum(axis=1) == pytest.approx(np.full(DRAWS, 9.0))
    cdf = table_cdf(lambda u: np.exp(-np.abs(u) - np.abs(9.0 - u) / 2.0), -40.0, 60.0)
    assert is_drawn_from(noise[:, 0], cdf)  # false alarm rate 1e-10


def test_the_chain_on_overlapping_equalities_has_converged():
    mechanism = LaplaceOnEqualities(1.0, Affine([[1.0, 2.0, 3.0, 0.0], [0.0, 1.0, 1.0, 1.0]]))
    noise = mechanism.chains(100, 200, np.random.default_rng(20_261_528))
    for i in range(4):
        assert split_r_hat(noise[:, :, i]) < 1.01
        assert effective_sample_size(noise[:, :, i]) > 5_000  # of 20,000
    # Its second moments are those of the density on the plane, by a grid in the kernel's coordinates.
    grid = np.linspace(-25.0, 25.0, 801)
    first, second = np.meshgrid(grid, grid)
    points = np.column_stack([first.ravel(), second.ravel()]) @ mechanism.given.kernel
    weights = np.exp(-np.abs(points).sum(axis=1))
    expected = (weights[:, None] * points**2).sum(axis=0) / weights.sum()
    # Standard errors of 5,000 draws of a square are at most 4% (kurtosis below 9); the limit is 6 of them and a bit.
    assert (noise**2).mean(axis=(0, 1)) == pytest.approx(expected, rel=0.25)
    assert len(directions(mechanism.given)) == 4


@pytest.mark.parametrize("matrix", [[[1.0, 1.0]], [[1.0, 1.0, 0.0]], [[2.0, -2.0]]])
def test_the_density_is_normalised_where_draws_are_exact(matrix):
    mechanism = LaplaceOnEqualities(2.0, Affine(matrix), 3.0)
    axes = [np.linspace(-30.0, 30.0, 601)] * mechanism.given.dimension
    mesh = np.meshgrid(*axes)
    points = np.column_stack([m.ravel() for m in mesh]) @ mechanism.given.kernel
    density = np.exp(mechanism.log_density(np.zeros(len(matrix[0])), points))
    assert density.sum() * 0.1 ** len(axes) == pytest.approx(1.0, rel=5e-3)  # kinks on a grid of 0.1


@pytest.mark.parametrize("count", [2, 3])
def test_the_twin_off_the_set_loses_more_than_it_promises(count):
    twin = LaplaceOnAnyTotal(1.0, 0.0, count)
    pair = twin.pairs()[0]
    assert twin.privacy_loss(pair.x, pair.x_prime) > 1.1 * twin.claim.value and "promised 1" in twin.fault
    assert twin.sample(pair.x_prime, 5, np.random.default_rng(1)).sum(axis=1) == pytest.approx(np.zeros(5), abs=1e-12)
    sound = LaplaceOnEqualities(1.0, Affine(np.ones((1, count))))
    points = sound.sample(np.zeros(count), 9, np.random.default_rng(2))
    assert twin.log_density(np.zeros(count), points) == pytest.approx(sound.log_density(np.zeros(count), points))


# ---- normal noise ---------------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-S14")
@pytest.mark.parametrize("claim", [GaussianDP(0.5), ApproxDP(1.0, 1e-5)], ids=str)
def test_normal_noise_given_a_sum_keeps_its_claim_and_is_the_projected_noise(claim):
    base = Gaussian(claim, 2.0, 3)
    mechanism, truth = GaussianOnEqualities(base, SUM), np.array([1.0, 2.0, 3.0])
    assert mechanism.claim == claim
    for pair in mechanism.pairs():
        assert mechanism.mu(pair.x, pair.x_prime) == pytest.approx(2.0 / base.sigma)
    spread = base.sigma * math.sqrt(2.0 / 3.0)  # sigma^2 (1 - 1/3)
    rng = np.random.default_rng(20_261_529)
    for draws in (mechanism.sample(truth, DRAWS, rng), Imaged(base, SUM).sample(truth, DRAWS, rng)):
        assert draws.sum(axis=1) == pytest.approx(np.full(DRAWS, 6.0))
        assert is_drawn_from(draws[:, 1], stats.norm(2.0, spread).cdf)  # false alarm rate 1e-10 each
    points = mechanism.sample(truth, 5, rng)
    full = base.log_density(truth, points)  # of three coordinates: relative densities are unchanged
    given_set = mechanism.log_density(truth, points)
    assert full - full[0] == pytest.approx(given_set - given_set[0])
    assert given_set == pytest.approx(stats.norm(0.0, base.sigma).logpdf((points - truth) @ SUM.kernel.T).sum(axis=1))


@pytest.mark.parametrize(
    "matrix",
    [[[1.0, 1.0, 1.0]], [[1.0, 2.0, -3.0]], [[1.0, 0.0, 0.0]], [[1.0, 1.0, 0.0], [0.0, 1.0, 3.0]]],
    ids=["sum", "weights", "one fixed", "two rows"],
)
def test_the_last_bits_of_an_output_are_a_function_of_its_free_variables(matrix):
    """Else A z - b would tell the answer, however large the noise: to 1e-9 an answer may miss the set itself."""
    given, rng = Affine(matrix, np.full(len(matrix), 0.3)), np.random.default_rng(20_261_542)
    x = given.project([[0.1, 1.7, -0.9]])[0] + 1e-10
    for mechanism in (LaplaceOnEqualities(1.0, given, sweeps=2),
                      GaussianOnEqualities(Gaussian(GaussianDP(1.0), 1.0, 3), given)):  # fmt: skip
        draws = mechanism.sample(x, 500, rng)
        free = list(given.free_variables())
        others = [i for i in range(3) if i not in free]
        forgotten = draws.copy()
        forgotten[:, others] = 0.0
        assert (given.completed(forgotten) == draws).all()
        assert (given.completed(forgotten[7:8]) == draws[7:8]).all()  # whatever else is in the batch
        assert given.contains(draws).all() and np.abs(draws @ np.array(matrix).T - 0.3).max() < 1e-13


def test_no_row_is_dropped_for_the_units_of_another():
    given = Affine([[1e12, 0.0, 0.0], [0.0, 1e-3, 0.0]], [0.0, 5e-3])
    assert given.rank == 2 and given.contains([[0.0, 5.0, 1.0], [0.0, 7.0, 1.0]]).tolist() == [True, False]


def test_far_sums_of_many_variables_have_a_density():
    """By the central limit theorem; e^-s alone underflows at 1,000, which is 2.2 standard deviations."""
    found = sum_density(100_000, [0.0, 699.0, 701.0, 1_000.0])
    assert found == pytest.approx(stats.norm(scale=math.sqrt(2e5)).pdf([0.0, 699.0, 701.0, 1_000.0]), rel=1e-4)


test_what_makes_no_sense_is_refused = refusals(
    (lambda: LaplaceOnEqualities(1.0, SUM).sample([1.0, 2.0, 4.0], 1, None), "must satisfy the equalities"),
    (lambda: LaplaceOnEqualities(1.0, SUM).privacy_loss([1.0, 2.0, 3.0], [1.0, 2.0, 2.0]), "must satisfy"),
    (lambda: draw_given_sum(3, [0.0, np.inf], None), "sums must"),
    (lambda: Affine([[1e12, 0.0], [1e12, 0.0]], [0.0, 5e12]), "rows that contradict"),
    (lambda: LaplaceOnEqualities(1.0, [[1.0, 1.0]]), "given must"),
    (lambda: LaplaceOnEqualities(0.0, SUM), "epsilon must"),
    (lambda: LaplaceOnEqualities(1.0, Affine(np.eye(2))), "must leave a free variable"),
    (lambda: LaplaceOnEqualities(1.0, SUM, sweeps=0), "sweeps must"),
    (lambda: GaussianOnEqualities(Gaussian(GaussianDP(1.0)), SUM), "given must"),
    (lambda: conditional_marginal(1, 0.0), "count must"),
    (lambda: split_r_hat(np.zeros((2, 7))), "at least 8 steps, got 7"),
)


# ---- diagnostics ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_effective_sample_size_of_an_autoregression_is_the_known_one(correlation):
    rng = np.random.default_rng(20_261_530)
    chains, steps = 50, 2_000
    draws = rng.normal(size=(chains, steps))
    for i in range(1, steps):
        draws[:, i] = correlation * draws[:, i - 1] + math.sqrt(1.0 - correlation**2) * draws[:, i]
    expected = chains * steps * (1.0 - correlation) / (1.0 + correlation)
    assert effective_sample_size(draws) == pytest.approx(expected, rel=0.1)
    assert split_r_hat(draws) < 1.02
    draws[:25] += 3.0  # control: chains that disagree
    assert split_r_hat(draws) > 1.5 and effective_sample_size(draws) < 200


def test_chains_that_never_move_are_no_samples():
    assert split_r_hat(np.ones((3, 20))) == 1.0 and split_r_hat(np.tile([[0.0], [1.0]], (1, 20))) == math.inf
