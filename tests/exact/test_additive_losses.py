"""Renyi divergences of additive noise, against quadrature of scipy's densities."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from support.refusals import refusals

from dpaudit.exact.additive import gaussian_renyi_divergence, laplace_renyi_divergence
from dpaudit.exact.finite import renyi_divergence
from dpaudit.privacy.claims import ZeroConcentratedDP

FIXED = settings(derandomize=True, deadline=None, max_examples=60)
SHIFTS, SCALES = st.floats(0.01, 5.0), st.floats(0.2, 5.0)


def integral(function, points):
    """Quadrature over the pieces between points, where the integrand is smooth."""
    pieces = itertools.pairwise(points)
    return sum(integrate.quad(function, low, high, epsabs=1e-13, epsrel=1e-11, limit=200)[0] for low, high in pieces)


@FIXED
@given(st.floats(0.1, 3.0), st.floats(0.5, 3.0), st.floats(1.05, 8.0))
def test_renyi_divergences_are_the_integrals_of_powers(shift, noise, order):
    for law, divergence, points in (
        (stats.laplace, laplace_renyi_divergence, [-60.0 * noise, 0.0, shift, shift + 60.0 * noise]),
        (stats.norm, gaussian_renyi_divergence, np.array([-12.0, 0.0, 12.0]) * noise - (order - 1.0) * shift),
    ):

        def power(z, law=law):
            return math.exp(order * law.logpdf(z, 0.0, noise) + (1.0 - order) * law.logpdf(z, shift, noise))

        expected = math.log(integral(power, points)) / (order - 1.0)
        assert divergence(shift, noise, order) == pytest.approx(expected, rel=1e-7, abs=1e-8)
        assert divergence(-shift, noise, order) == divergence(shift, noise, order)


@FIXED
@given(SHIFTS, SCALES)
def test_renyi_divergences_of_laplace_noise_grow_from_order_one_to_the_loss(shift, scale):
    values = [laplace_renyi_divergence(shift, scale, r) for r in (1.0, 1.0001, 1.5, 2.0, 10.0, 1e6, math.inf)]
    assert (np.diff(values) >= -1e-11).all()
    assert values[1] == pytest.approx(values[0], rel=1e-3)
    assert values[-1] == shift / scale
    assert values[-2] == pytest.approx(values[-1], rel=1e-2)


@pytest.mark.parametrize("order", [1.0, 1.0 + 1e-9, 1.01, 2.0, 50.0])
@pytest.mark.parametrize("shift", [1e-12, 1e-6])
def test_small_divergences_of_laplace_noise_keep_their_digits(shift, order):
    # The expansion at 0: r s^2 / 2 less terms of relative size r s.
    assert laplace_renyi_divergence(shift, 1.0, order) == pytest.approx(0.5 * order * shift**2, rel=order * shift)


@pytest.mark.parametrize(("shift", "order"), [(1.0, 1e308), (1e-300, 1e308), (10.0, 1e308), (1e300, 1e10)])
def test_divergences_of_orders_and_shifts_near_the_largest_doubles_are_no_errors(shift, order):
    # log(r / (2r - 1)) / (r - 1) is lost beside s.
    assert laplace_renyi_divergence(shift, 1.0, order) == pytest.approx(shift, rel=1e-7)
    assert gaussian_renyi_divergence(1e200, 1.0, order) == math.inf


@FIXED
@given(SHIFTS, SCALES, st.floats(1.01, 10.0))
def test_normal_noise_uses_its_zcdp_claim_up(shift, noise, order):
    rho = gaussian_renyi_divergence(shift, noise, 1.0)
    claimed = ZeroConcentratedDP(rho).renyi_epsilons(np.array([rho]), order)[0]
    assert gaussian_renyi_divergence(shift, noise, order) == pytest.approx(claimed, rel=1e-12)


def test_the_same_law_on_a_fine_grid_has_nearly_the_same_divergence():
    # Geometric noise on a grid of step 0.01 is Laplace noise of scale 1 rounded: they agree to the step.
    steps = np.arange(-4000, 4101)
    p, q = (np.exp(-0.01 * np.abs(steps - shift)) for shift in (0, 100))
    found = renyi_divergence(p / p.sum(), q / q.sum(), 2.0)
    assert found == pytest.approx(laplace_renyi_divergence(1.0, 1.0, 2.0), abs=1e-3)


def test_no_shift_loses_nothing_and_no_noise_loses_everything():
    assert laplace_renyi_divergence(0.0, 1.0, 1.0) == laplace_renyi_divergence(0.0, 0.0, 2.0) == 0.0
    assert laplace_renyi_divergence(1.0, 0.0, 2.0) == gaussian_renyi_divergence(1.0, 0.0, 2.0) == math.inf
    assert gaussian_renyi_divergence(0.0, 1.0, math.inf) == 0.0
    assert gaussian_renyi_divergence(1.0, 1.0, math.inf) == math.inf


test_what_makes_no_sense_is_refused = refusals(
    (lambda: laplace_renyi_divergence(1.0, -1.0, 2.0), "scale must"),
    (lambda: laplace_renyi_divergence(math.inf, 1.0, 2.0), "shift must"),
    (lambda: laplace_renyi_divergence("a", 1.0, 2.0), "shift must"),
    (lambda: laplace_renyi_divergence(1.0, 1.0, 0.9), "renyi_order must"),
    (lambda: gaussian_renyi_divergence(1.0, math.nan, 2.0), "scale must"),
)


def test_normal_noise_has_an_infinite_divergence_of_order_inf_however_small_the_shift():
    """The square of a shift of 1e-170 underflows, and the divergence of order inf was 0."""
    assert gaussian_renyi_divergence(1e-170, 1.0, math.inf) == math.inf
    assert gaussian_renyi_divergence(1e-170, 1.0, 1e300) == pytest.approx(0.5e-40)
    assert gaussian_renyi_divergence(0.0, 1.0, math.inf) == 0.0
