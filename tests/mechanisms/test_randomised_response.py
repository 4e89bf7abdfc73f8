"""k-ary randomised response and its faulty twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from_outcomes
from support.refusals import refusals

from dpaudit.exact import privacy_losses, privacy_profile
from dpaudit.privacy.claims import PureDP
from dpaudit_mechanisms.faulty.randomised_response import RandomisedResponseWrongNormaliser
from dpaudit_mechanisms.randomised_response import RandomisedResponse


@pytest.mark.parametrize("kind", [RandomisedResponse, RandomisedResponseWrongNormaliser])
@pytest.mark.parametrize("data", [0, 2])
def test_the_sampler_draws_what_the_mechanism_states(kind, data):
    mechanism = kind(epsilon=1.0, categories=4)
    samples = mechanism.sample(data, DRAWS, np.random.default_rng(20_261_109))
    assert is_drawn_from_outcomes(samples, mechanism.outcomes, mechanism.distribution(data))  # 1e-10 a case


@given(st.floats(0.01, 10.0), st.integers(2, 8))
def test_the_law_is_the_one_printed_and_the_loss_equals_the_claim_for_all_inputs(epsilon, categories):
    mechanism = RandomisedResponse(epsilon, categories)
    truth = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
    matrix = np.array([mechanism.distribution(data) for data in range(categories)])
    assert np.diag(matrix) == pytest.approx(truth, rel=1e-13)
    assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-13)
    expected = epsilon * (1.0 - np.eye(categories))
    assert privacy_losses(matrix / matrix.sum(axis=1, keepdims=True)) == pytest.approx(expected, abs=1e-12)
    for pair in mechanism.pairs():
        assert mechanism.privacy_loss(pair.x, pair.x_prime) == mechanism.claim.value == epsilon
    assert mechanism.privacy_loss(1, 1) == 0.0


@given(st.floats(0.01, 10.0), st.floats(0.0, 10.0))
def test_two_categories_use_the_whole_profile_of_the_claim(epsilon, anchor):
    mechanism = RandomisedResponse(epsilon)
    p, q = mechanism.distribution(0), mechanism.distribution(1)
    # p - e^anchor q: two products of numbers up to e^10, rounding below 1e-11
    assert privacy_profile(p, q, anchor) == pytest.approx(PureDP(epsilon).profile(anchor), abs=1e-11)


def test_pairs_are_the_nearest_and_the_farthest_category():
    assert [(pair.x, pair.x_prime) for pair in RandomisedResponse(1.0, 5).pairs()] == [(0, 1), (0, 4)]
    assert [(pair.x, pair.x_prime) for pair in RandomisedResponse(1.0).pairs()] == [(0, 1)]


def test_other_outputs_are_impossible():
    assert (RandomisedResponse(1.0).log_density(0, [-1.0, 2.0, 0.5, np.nan, np.inf]) == -np.inf).all()


test_what_makes_no_sense_is_refused = refusals(
    (lambda: RandomisedResponse(-1.0), "epsilon must"),
    (lambda: RandomisedResponse(1.0, 1), "categories must"),
    (lambda: RandomisedResponse(1.0, True), "categories must"),
    (lambda: RandomisedResponse(1.0).distribution(2), "data must"),
    (lambda: RandomisedResponse(1.0).distribution(0.5), "data must"),
    (lambda: RandomisedResponseWrongNormaliser(1.0, 2), "categories must"),
)
