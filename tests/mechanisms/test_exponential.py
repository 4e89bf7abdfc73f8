"""The exponential mechanism on a table of scores, and its twin without the factor 2."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampler_checks import DRAWS, MIN_CONTROL_GAP, cdf_gap, is_drawn_from_outcomes
from support.refusals import refusals

from dpaudit.exact import privacy_losses
from dpaudit.privacy.claims import MetricDP, PureDP
from dpaudit_mechanisms.exponential import Exponential
from dpaudit_mechanisms.faulty.exponential import ExponentialWithoutTheTwo

FIXED = settings(max_examples=100)
SCORES = [[0.0, 1.0], [1.0, 0.0]]


@st.composite
def instances(draw, largest=5):
    """A table of scores (inputs, outcomes) and a matrix of positive budgets, symmetric."""
    inputs, outcomes = draw(st.integers(2, largest)), draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    budgets = rng.uniform(0.1, 3.0, size=(inputs, inputs))
    budgets = np.triu(budgets, 1) + np.triu(budgets, 1).T
    scores = rng.normal(scale=draw(st.sampled_from([0.1, 1.0, 100.0])), size=(inputs, outcomes))
    return np.round(scores, draw(st.sampled_from([0, 12]))), budgets


@pytest.mark.claim("DX-D9")
def test_the_sampler_draws_the_weights_of_the_definition():
    scores, c = np.array([[0.0, 1.0, 3.0], [1.0, 1.0, 1.0]]), 2.0
    weights = np.exp(scores[0] / (2.0 * c))
    mechanism = Exponential(scores, metric=1.0, c=c)
    assert mechanism.distribution(0) == pytest.approx(weights / weights.sum(), rel=1e-14)
    samples = mechanism.sample(0, DRAWS, np.random.default_rng(20_261_111))
    assert is_drawn_from_outcomes(samples, mechanism.outcomes, mechanism.distribution(0))  # false alarm rate 1e-10
    twin = ExponentialWithoutTheTwo(scores, metric=1.0, c=c)  # the control: 0.12 away, miss rate below 1e-20
    assert cdf_gap(twin.distribution(0), mechanism.distribution(0)) > MIN_CONTROL_GAP
    assert not is_drawn_from_outcomes(samples, mechanism.outcomes, twin.distribution(0))
    assert not is_drawn_from_outcomes(samples, mechanism.outcomes, mechanism.distribution(1))


@pytest.mark.claim("DX-T3")
@FIXED
@given(instances())
def test_no_pair_loses_more_than_its_budget(instance):
    scores, budgets = instance
    mechanism = Exponential(scores, budgets)
    losses = np.array([[mechanism.privacy_loss(i, j) for j in range(len(scores))] for i in range(len(scores))])
    assert (losses <= budgets * (1.0 + 1e-12)).all()
    assert isinstance(mechanism.claim, MetricDP)
    assert mechanism.claim.for_pair(0, 1) == PureDP(budgets[0, 1])


@FIXED
@given(instances())
def test_the_loss_is_that_of_the_distribution_matrix(instance):
    scores, budgets = instance
    mechanism = Exponential(scores, budgets)
    matrix = np.array([mechanism.distribution(i) for i in range(len(scores))])
    assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-13)
    stated = [[mechanism.privacy_loss(i, j) for j in range(len(scores))] for i in range(len(scores))]
    # Budgets of up to 3 keep the probabilities that matter above e^-30: losses agree to 1e-12.
    assert privacy_losses(matrix / matrix.sum(axis=1, keepdims=True)) == pytest.approx(np.array(stated), abs=1e-12)


def test_pairs_are_those_with_a_budget_the_tightest_first():
    metric = [[0.0, 1.0, math.inf], [1.0, 0.0, 2.0], [math.inf, 2.0, 0.0]]
    mechanism = Exponential([[0.0, 0.0], [1.0, 0.0], [1.0, 0.5]], metric)
    assert [pair.id for pair in mechanism.pairs()] == ["0|1", "1|2"]


def test_large_scores_do_not_overflow():
    mechanism = Exponential([[1e6, 0.0], [1e6, 0.0]], metric=1.0, c=1.0)
    assert mechanism.distribution(0).tolist() == [1.0, 0.0]
    assert mechanism.log_density(0, [0, 1]).tolist() == [0.0, -5e5]


@pytest.mark.claim("DX-D9")
def test_scores_that_ignore_the_input_give_the_uniform_choice_of_the_best():
    mechanism = Exponential([[0.0, 1.0, 1.0]] * 2, metric=1.0)
    assert mechanism.c == 0.0
    assert mechanism.distribution(0) == pytest.approx([0.0, 0.5, 0.5], rel=1e-15)
    assert mechanism.privacy_loss(0, 1) == 0.0


def test_a_budget_of_zero_is_kept_where_the_scores_are_equal():
    metric = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    mechanism = Exponential([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0]], metric)
    assert mechanism.c == 1.0
    assert mechanism.privacy_loss(0, 1) == 0.0


test_what_makes_no_sense_is_refused = refusals(
    (lambda: Exponential(SCORES, 1.0, c=0.5), "c must"),
    (lambda: Exponential(SCORES, 1.0, c=1.0 - 1e-6), "c must"),
    (lambda: Exponential(SCORES, 0.0), "metric must"),
    (lambda: Exponential(SCORES, [[0.0, math.inf], [math.inf, 0.0]]), "c must"),
    (lambda: Exponential(SCORES, [[0.0]]), "metric must"),
    (lambda: Exponential(SCORES, 1.0).distribution(2), "data must"),
    (lambda: Exponential([[0.0, math.inf]], 1.0), "scores must"),
    (lambda: Exponential([], 1.0), "scores must"),
)
