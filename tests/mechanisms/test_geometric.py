"""The two-sided geometric mechanism, with and without a clamp, and its faulty twins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from_outcomes
from support.refusals import refusals

from dpaudit.exact import privacy_losses
from dpaudit.privacy.claims import PureDP
from dpaudit_mechanisms.faulty.geometric import GeometricCountsZeroTwice, GeometricTooLittleNoise
from dpaudit_mechanisms.geometric import Geometric

KINDS = [Geometric, GeometricTooLittleNoise, GeometricCountsZeroTwice]


@pytest.mark.parametrize("kind", KINDS)
def test_the_sampler_draws_what_the_mechanism_states(kind):
    # epsilon 0.4: outcomes beyond 200 have probability below e^-79. False alarm rate 1e-10 a case.
    mechanism, outcomes = kind(epsilon=0.4), np.arange(-200, 201)
    samples = mechanism.sample(3, DRAWS, np.random.default_rng(20_261_106))
    assert samples.dtype == np.int64
    assert is_drawn_from_outcomes(samples, outcomes, np.exp(mechanism.log_density(3, outcomes)))


@pytest.mark.parametrize("kind", KINDS)
@given(st.floats(0.05, 5.0), st.integers(1, 4), st.integers(-10, 10))
def test_probabilities_sum_to_one(kind, epsilon, sensitivity, data):
    mechanism = kind(epsilon, sensitivity)
    reach = math.ceil(45.0 / mechanism.rate)  # the tails beyond have mass below e^-44
    logs = mechanism.log_density(data, np.arange(data - reach, data + reach + 1))
    assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-11)
    clamped = kind(epsilon, sensitivity, bounds=(-10, 10))
    assert clamped.distribution(data).sum() == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@given(st.floats(0.05, 5.0), st.integers(1, 3), st.integers(0, 6), st.integers(0, 6))
def test_the_clamped_law_is_the_plain_law_with_its_tails_swept_in(kind, epsilon, sensitivity, data, width):
    upper = max(data, sensitivity) + width
    outcomes = np.arange(-4000, 4001)  # at epsilon 0.05 / 3 the tails beyond have mass below e^-66
    plain = np.exp(kind(epsilon, sensitivity).log_density(data, outcomes))
    swept = np.bincount(np.clip(outcomes, 0, upper), weights=plain)
    assert kind(epsilon, sensitivity, bounds=(0, upper)).distribution(data) == pytest.approx(swept, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(st.floats(0.05, 3.0), st.integers(1, 3), st.integers(0, 4))
def test_the_loss_is_that_of_the_distribution_matrix(kind, epsilon, sensitivity, extra):
    mechanism = kind(epsilon, sensitivity, bounds=(-1, sensitivity + extra))
    matrix = np.array([mechanism.distribution(data) for data in mechanism.outcomes])
    stated = [[mechanism.privacy_loss(x, y) for y in mechanism.outcomes] for x in mechanism.outcomes]
    # Logarithms of probabilities down to e^-30 and sums of 1: the losses agree to 1e-11.
    assert privacy_losses(matrix / matrix.sum(axis=1, keepdims=True)) == pytest.approx(np.array(stated), abs=1e-11)


@given(st.floats(0.05, 5.0), st.integers(1, 5), st.one_of(st.none(), st.just((-3, 7))))
def test_the_loss_equals_the_claim_on_its_pairs(epsilon, sensitivity, bounds):
    mechanism = Geometric(epsilon, sensitivity, bounds)
    assert mechanism.claim == PureDP(epsilon)
    for pair in mechanism.pairs():
        assert mechanism.privacy_loss(pair.x, pair.x_prime) == pytest.approx(epsilon, rel=1e-14)


def test_outputs_that_are_no_integers_are_impossible():
    logs = Geometric(1.0).log_density(0, [0.5, np.nan, np.inf, -np.inf])
    assert (logs == -np.inf).all()
    assert (Geometric(1.0, bounds=(0, 3)).log_density(0, [-1, 4]) == -np.inf).all()


test_what_makes_no_sense_is_refused = refusals(
    (lambda: Geometric(0.0), "epsilon must"),
    (lambda: Geometric(1.0, 0), "l1_sensitivity must"),
    (lambda: Geometric(1.0, 1.5), "l1_sensitivity must"),
    (lambda: Geometric(1e-13), "epsilon / l1_sensitivity must"),
    (lambda: Geometric(1.0, 3, (0, 2)), "bounds must"),
    (lambda: Geometric(1.0, 1, 5), "bounds must"),
    (lambda: Geometric(1.0).privacy_loss(0, 0.5), "data must"),
    (lambda: Geometric(1.0, 1, (0, 2)).distribution(3), "data must"),
    (lambda: Geometric(1.0).distribution(0), "bounds must"),
)
