"""The additive Gaussian mechanism, its exact calibration and its faulty twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from
from scipy import stats
from support.refusals import refusals

from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit_mechanisms.gaussian import Gaussian, largest_mu

CLAIMS = [ApproxDP(1.0, 1e-5), ApproxDP(0.0, 0.1), GaussianDP(0.7), ZeroConcentratedDP(0.3), RenyiDP(4.0, 0.5)]


def delta_by_cdf(mu, epsilon):
    """The profile of N(0, 1) against N(mu, 1), from scipy's normal distribution function."""
    first, second = stats.norm.cdf([mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu])
    return first - math.exp(epsilon) * second


def test_the_sampler_draws_normal_noise_about_the_answer():
    mechanism = Gaussian(GaussianDP(0.5), l2_sensitivity=2.0)  # sigma 4 by definition
    samples = mechanism.sample(10.0, DRAWS, np.random.default_rng(20_261_104))
    assert is_drawn_from(samples, stats.norm(10.0, 4.0).cdf)  # false alarm rate 1e-10
    for sigma in (3.2, 5.0):  # negative controls: functions 0.054 apart, miss rate below 1e-20
        assert not is_drawn_from(samples, stats.norm(10.0, sigma).cdf)


@pytest.mark.claim("CD-D2.6")
def test_the_vector_sampler_draws_normal_noise_in_every_coordinate():
    samples = Gaussian(GaussianDP(1.0), dimension=2).sample([1.0, -1.0], DRAWS, np.random.default_rng(20_261_105))
    assert samples.shape == (DRAWS, 2)
    assert is_drawn_from(samples[:, 0], stats.norm(1.0).cdf)  # false alarm rate 1e-10 each
    assert is_drawn_from(samples[:, 1], stats.norm(-1.0).cdf)
    assert is_drawn_from(samples.sum(axis=1), stats.norm(0.0, math.sqrt(2.0)).cdf)  # and they are independent
    assert not is_drawn_from(2.0 * samples[:, 0] - 2.0, stats.norm(0.0, math.sqrt(2.0)).cdf)  # control: one used twice


@given(st.floats(0.0, 10.0), st.floats(-9.0, -0.3).map(lambda power: 10.0**power))
def test_the_calibration_uses_all_of_delta_and_no_more(epsilon, delta):
    mu = largest_mu(ApproxDP(epsilon, delta))
    # Two differences of normal probabilities at a loss of up to three digits: 1e-13 absolute, 1e-9 relative.
    assert delta_by_cdf(mu, epsilon) == pytest.approx(delta, rel=1e-6, abs=1e-11)
    # It is a difference of probabilities, each rounded to 1e-16: 1e-15 beside what is relative.
    assert Gaussian(ApproxDP(epsilon, delta)).privacy_profile(0.0, 1.0, epsilon) <= delta * (1.0 + 1e-9) + 1e-15
    assert Gaussian(ApproxDP(epsilon, delta)).privacy_profile(0.0, 1.001, epsilon) > delta


@pytest.mark.parametrize(("delta", "most"), [(1e-12, 2.5066282746310006e-12), (1e-16, 2.5066282746310006e-16)])
def test_noise_for_a_tiny_delta_is_never_too_small(delta, most):
    """At epsilon 0 mu is sqrt(2 pi) delta, but for its cube. By differences it was 11% too large at 1e-16."""
    assert most * (1.0 - 1e-11) < largest_mu(ApproxDP(0.0, delta)) <= most


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("dimension", [None, 1, 3])
def test_every_claim_is_tight_on_the_mechanisms_pairs(claim, dimension):
    mechanism = Gaussian(claim, 2.0, dimension)
    for pair in mechanism.pairs():
        mu = mechanism.mu(pair.x, pair.x_prime)
        assert mu == pytest.approx(largest_mu(claim), rel=1e-14)
        if isinstance(claim, ZeroConcentratedDP):
            assert mechanism.rho(pair.x, pair.x_prime) == pytest.approx(claim.rho, rel=1e-14)
        if isinstance(claim, ApproxDP):
            delta = mechanism.privacy_profile(pair.x, pair.x_prime, claim.epsilon)
            assert delta == pytest.approx(claim.delta, rel=1e-9)


def test_the_density_is_scipys():
    mechanism = Gaussian(GaussianDP(0.5), dimension=2)
    outputs = np.array([[0.0, 1.0], [2.0, -3.0], [np.nan, 0.0], [np.inf, 0.0]])
    logs = mechanism.log_density([1.0, 1.0], outputs)
    assert logs[:2] == pytest.approx(stats.norm(1.0, 2.0).logpdf(outputs[:2]).sum(axis=1), rel=1e-14)
    assert (logs[2:] == -np.inf).all()


def test_equal_inputs_lose_nothing_and_others_have_no_finite_loss():
    mechanism = Gaussian(GaussianDP(1.0))
    assert mechanism.privacy_loss(1.0, 1.0) == 0.0 == mechanism.privacy_profile(1.0, 1.0, 0.0)
    assert mechanism.privacy_loss(1.0, 1.5) == math.inf


test_what_makes_no_sense_is_refused = refusals(
    (lambda: Gaussian(PureDP(1.0)), "delta must"),
    (lambda: Gaussian(ApproxDP(1.0, 1.0)), "delta must"),
    (lambda: Gaussian(ApproxDP(math.inf, 0.1)), "epsilon must"),
    (lambda: Gaussian(GaussianDP(0.0)), "mu must"),
    (lambda: Gaussian(ZeroConcentratedDP(math.inf)), "rho must"),
    (lambda: Gaussian("eps=1"), "claim must"),
    (lambda: Gaussian(GaussianDP(1.0), 0.0), "l2_sensitivity must"),
    (lambda: Gaussian(GaussianDP(1.0), 1.0, 0), "dimension must"),
    (lambda: Gaussian(GaussianDP(1.0)).privacy_profile(0.0, 1.0, -1.0), r"must be in \[0, inf\), got -1\.0\."),
)
