"""Exact losses of additive noise, against quadrature of scipy's densities."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from support.refusals import refusals

from dpaudit import exact
from dpaudit.privacy.claims import GaussianDP, ZeroConcentratedDP

FIXED = settings(derandomize=True, deadline=None, max_examples=60)
SHIFTS, SCALES = st.floats(0.01, 5.0), st.floats(0.2, 5.0)


def integral(function, points):
    """Quadrature over the pieces between points, where the integrand is smooth."""
    pieces = itertools.pairwise(points)
    return sum(integrate.quad(function, low, high, epsabs=1e-13, epsrel=1e-11, limit=200)[0] for low, high in pieces)


@pytest.mark.claim("DX-T1")
@FIXED
@given(st.lists(st.tuples(st.floats(-5.0, 5.0), SCALES), min_size=1, max_size=4))
def test_the_laplace_loss_is_the_log_ratio_beyond_both_answers(coordinates):
    shift, scale = np.array(coordinates).T
    beyond = np.where(shift > 0.0, -1.0, 1.0)
    ratio = (stats.laplace.logpdf(beyond, 0.0, scale) - stats.laplace.logpdf(beyond, shift, scale)).sum()
    assert exact.laplace_privacy_loss(shift, scale) == pytest.approx(ratio, rel=1e-12, abs=1e-13)


@FIXED
@given(SHIFTS, SCALES, st.floats(0.0, 6.0))
def test_the_laplace_profile_is_the_integral_of_the_excess(shift, scale, epsilon):
    first, second = stats.laplace(0.0, scale), stats.laplace(shift, scale)
    switch = 0.5 * (shift - epsilon * scale)  # the log ratio falls through epsilon here, if at all
    points = sorted({-45.0 * scale, *[z for z in (0.0, switch) if -45.0 * scale < z < shift], shift})
    expected = integral(lambda z: max(first.pdf(z) - math.exp(epsilon) * second.pdf(z), 0.0), points)
    assert exact.laplace_privacy_profile(shift, scale, epsilon) == pytest.approx(expected, rel=1e-8, abs=1e-11)
    assert exact.laplace_privacy_profile(-shift, scale, epsilon) == exact.laplace_privacy_profile(shift, scale, epsilon)


@FIXED
@given(SHIFTS, st.floats(0.5, 5.0), st.floats(0.0, 6.0))
def test_the_gaussian_profile_is_the_integral_of_the_excess(shift, sigma, epsilon):
    first, second = stats.norm(0.0, sigma), stats.norm(shift, sigma)
    switch = 0.5 * shift - epsilon * sigma**2 / shift  # the log ratio falls through epsilon here
    expected = integral(lambda z: first.pdf(z) - math.exp(epsilon) * second.pdf(z), [switch - 15.0 * sigma, switch])
    assert exact.gaussian_privacy_profile(shift, sigma, epsilon) == pytest.approx(expected, rel=1e-7, abs=1e-11)
    assert exact.gaussian_privacy_profile(shift, sigma, epsilon) == GaussianDP(shift / sigma).profile(epsilon)


@FIXED
@given(st.floats(0.1, 3.0), st.floats(0.5, 3.0), st.floats(1.05, 8.0))
def test_renyi_divergences_are_the_integrals_of_powers(shift, noise, order):
    for law, divergence, points in (
        (stats.laplace, exact.laplace_renyi_divergence, [-60.0 * noise, 0.0, shift, shift + 60.0 * noise]),
        (stats.norm, exact.gaussian_renyi_divergence, np.array([-12.0, 0.0, 12.0]) * noise - (order - 1.0) * shift),
    ):

        def power(z, law=law):
            return math.exp(order * law.logpdf(z, 0.0, noise) + (1.0 - order) * law.logpdf(z, shift, noise))

        expected = math.log(integral(power, points)) / (order - 1.0)
        assert divergence(shift, noise, order) == pytest.approx(expected, rel=1e-7, abs=1e-8)


@FIXED
@given(SHIFTS, SCALES)
def test_renyi_divergences_of_laplace_noise_grow_from_order_one_to_the_loss(shift, scale):
    values = [exact.laplace_renyi_divergence(shift, scale, r) for r in (1.0, 1.0001, 1.5, 2.0, 10.0, 1e6, math.inf)]
    assert (np.diff(values) >= -1e-11).all()
    assert values[1] == pytest.approx(values[0], rel=1e-3)
    assert values[-1] == exact.laplace_privacy_loss(shift, scale)
    assert values[-2] == pytest.approx(values[-1], rel=1e-2)


@FIXED
@given(st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=4), SCALES, st.floats(1.01, 10.0))
def test_vectors_add_their_coordinates(shift, noise, order):
    each = [exact.laplace_renyi_divergence(s, noise, order) for s in shift]
    assert exact.laplace_renyi_divergence(shift, noise, order) == pytest.approx(math.fsum(each), rel=1e-9, abs=1e-12)
    rho = exact.gaussian_rho(shift, noise)
    assert rho == pytest.approx(sum(exact.gaussian_rho(s, noise) for s in shift), rel=1e-12, abs=1e-15)
    assert exact.gaussian_renyi_divergence(shift, noise, order) == pytest.approx(rho * order, rel=1e-12)
    claimed = ZeroConcentratedDP(rho).renyi_epsilons(np.array([rho]), order)[0]
    assert exact.gaussian_renyi_divergence(shift, noise, order) == pytest.approx(claimed, rel=1e-12)


def test_the_same_law_on_a_fine_grid_has_nearly_the_same_losses():
    # Geometric noise on a grid of step 0.01 is Laplace noise of scale 1 rounded: delta agrees to the step.
    steps = np.arange(-4000, 4101)
    p, q = (np.exp(-0.01 * np.abs(steps - shift)) for shift in (0, 100))
    p, q = p / p.sum(), q / q.sum()
    assert exact.privacy_loss(p, q) == pytest.approx(exact.laplace_privacy_loss(1.0, 1.0), rel=1e-9)
    for epsilon in (0.0, 0.5, 0.9):
        expected = exact.laplace_privacy_profile(1.0, 1.0, epsilon)
        assert exact.privacy_profile(p, q, epsilon) == pytest.approx(expected, abs=0.01)
    assert exact.renyi_divergence(p, q, 2.0) == pytest.approx(exact.laplace_renyi_divergence(1.0, 1.0, 2.0), abs=1e-3)


def test_no_shift_loses_nothing_and_no_noise_loses_everything():
    assert exact.laplace_privacy_loss([0.0, 0.0], [1.0, 0.0]) == 0.0
    assert exact.laplace_privacy_loss([0.0, 1.0], [1.0, 0.0]) == math.inf
    assert exact.laplace_privacy_profile(0.0, 0.0, 0.0) == 0.0
    assert exact.laplace_privacy_profile(1.0, 0.0, 5.0) == 1.0
    assert exact.laplace_renyi_divergence(0.0, 1.0, 1.0) == 0.0
    assert exact.laplace_renyi_divergence(1.0, 0.0, 2.0) == math.inf
    assert exact.gaussian_privacy_loss(0.0, 0.0) == exact.gaussian_privacy_profile(0.0, 0.0, 0.0) == 0.0
    assert exact.gaussian_privacy_loss(1e-9, 1.0) == math.inf
    assert exact.gaussian_privacy_profile(1.0, 0.0, 3.0) == 1.0
    assert exact.gaussian_renyi_divergence(0.0, 1.0, math.inf) == 0.0
    assert exact.gaussian_renyi_divergence(1.0, 1.0, math.inf) == exact.gaussian_rho(1.0, 0.0) == math.inf


test_what_makes_no_sense_is_refused = refusals(
    (lambda: exact.laplace_privacy_loss(1.0, -1.0), "scale must"),
    (lambda: exact.laplace_privacy_loss(math.inf, 1.0), "shift must"),
    (lambda: exact.laplace_privacy_loss([1.0, 2.0, 3.0], [1.0, 2.0]), "scale must"),
    (lambda: exact.laplace_privacy_loss("a", 1.0), "shift must"),
    (lambda: exact.laplace_privacy_profile([1.0, 2.0], 1.0, 0.0), "shift must"),
    (lambda: exact.laplace_privacy_profile(1.0, 1.0, -1.0), "epsilon must"),
    (lambda: exact.laplace_renyi_divergence(1.0, 1.0, 0.9), "renyi_order must"),
    (lambda: exact.gaussian_rho(1.0, math.nan), "sigma must"),
    (lambda: exact.gaussian_rho(1.0, -2.0), "sigma must"),
)
