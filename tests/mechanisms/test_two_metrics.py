"""The family between finite spaces: partition and weight, samplers, degenerate cases, and twins that are caught.

That each mechanism's levels are the paper's sets is tested beside the ledger (tests/papers/test_up_paper_sets.py).
"""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_checks import DRAWS, MIN_CONTROL_GAP, cdf_gap, is_drawn_from_outcomes
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit.exact import privacy_loss as finite_loss
from dpaudit.privacy.claims import PureDP
from dpaudit_mechanisms.faulty.two_metrics import (
    PrivacyFirstTooFlat,
)
from dpaudit_mechanisms.two_metrics import (
    FiniteSpaces,
    GlobalSensitivity,
    Ladder,
    PrivacyFirst,
    Staircase,
    WidenedPrivacyFirst,
    WidenedStaircase,
    covered_levels,
    log_probabilities,
    whole_steps,
)

INF = math.inf
PATH = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
VALUES = np.abs(np.subtract.outer([0.0, 1.0, 3.0, 4.0], [0.0, 1.0, 3.0, 4.0]))
SPACES = FiniteSpaces(PATH, [0, 1, 1, 2, 3, 0], VALUES, measure=[1.0, 4.0, 2.0, 1.0])
IMPORTANT = [True, False, True, False]
EVERY = [
    GlobalSensitivity(SPACES, 0.8),
    Staircase(SPACES, 0.8),
    Staircase(SPACES, 0.8, offset=1.0),
    Ladder(SPACES, 0.8),
    PrivacyFirst(SPACES, 0.8),
    WidenedPrivacyFirst(SPACES, 0.8, widths=[1.0, 0.0, 2.0, 0.0, 0.0, 0.0]),
    WidenedPrivacyFirst(SPACES, 0.8, 1.0, IMPORTANT, 0.5),
    WidenedStaircase(SPACES, 0.8, widths=[1.0, 0.0, 0.0, 2.0]),
    WidenedStaircase(SPACES, 0.8, 1.0, IMPORTANT, 0.5),
]


def ids(mechanism):
    return type(mechanism).__name__


# ---- the core -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
def test_costs_that_change_by_at_most_1_make_levels_and_losses_that_do(seed):
    """The one proof of the family, on random anchors: |cost - cost'| <= 1 gives a loss of at most 2 epsilon."""
    rng = np.random.default_rng(seed)
    anchors, outcomes = rng.integers(1, 7, size=2)
    costs = rng.uniform(0.0, 5.0, size=(1, anchors))
    costs = np.concatenate([costs, np.maximum(costs + rng.uniform(-1.0, 1.0, size=(1, anchors)), 0.0)])
    covers = rng.random((anchors, outcomes)) < 0.5
    covers[0] |= ~covers.any(axis=0)
    levels = covered_levels(costs, covers)
    for x, r in itertools.product(range(2), range(outcomes)):
        assert levels[x, r] == min(costs[x, a] for a in range(anchors) if covers[a, r])
    assert np.abs(levels[0] - levels[1]).max() <= 1.0 + 1e-12
    measure = np.exp(rng.normal(scale=3.0, size=outcomes))
    epsilon = float(rng.choice([0.1, 1.0, 5.0]))
    logs = log_probabilities(levels, measure, epsilon)
    assert np.exp(logs).sum(axis=1) == pytest.approx([1.0, 1.0])
    assert np.abs(logs[0] - logs[1]).max() <= 2.0 * epsilon + 1e-9
    alpha = np.exp(-epsilon * levels) @ measure
    assert np.exp(logs) == pytest.approx(np.exp(-epsilon * levels) * measure / alpha[:, None])


def test_no_weight_at_all_and_infinite_weight():
    levels, measure = np.array([[0.0, 1.0, INF], [2.0, 2.0, 3.0]]), np.array([1.0, 3.0, 2.0])
    assert np.exp(log_probabilities(levels, measure, 0.0)) == pytest.approx(
        np.array([[0.25, 0.75, 0.0], [1 / 6, 1 / 2, 1 / 3]])
    )
    assert np.exp(log_probabilities(levels, measure, INF)) == pytest.approx(
        np.array([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0]])
    )
    with pytest.raises(UsageError, match="levels must be finite somewhere on each input, got inf on 1"):
        log_probabilities(np.array([[0.0], [INF]]), np.ones(1), 1.0)
    assert str(PrivacyFirst(SPACES, INF).claim) == str(PureDP(INF))
    assert PrivacyFirst(SPACES, 0.0).epsilon_exact == 0.0


def test_a_distance_that_was_rounded_up_by_arithmetic_counts_as_the_whole_number_that_it_is():
    assert 0.1 + 0.2 > 0.3
    assert whole_steps(np.array([0.1 + 0.2, 0.3, 0.31]), 0.1).tolist() == [3.0, 3.0, 4.0]
    third = FiniteSpaces(PATH[:4, :4], range(4), 0.1 * PATH[:4, :4])
    assert np.array_equal(Staircase(third, 1.0).levels, PATH[:4, :4])


# ---- every member ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", EVERY, ids=ids)
def test_laws_are_laws_and_the_exact_loss_is_theirs(mechanism):
    laws = [mechanism.distribution(x) for x in range(6)]
    worst = max(finite_loss(laws[x], laws[y]) for x, y in SPACES.neighbour_pairs)
    assert mechanism.epsilon_exact == pytest.approx(worst) and worst <= mechanism.claim.value == 1.6
    assert np.exp(mechanism.log_density(2, mechanism.outcomes)) == pytest.approx(laws[2])
    assert np.isneginf(mechanism.log_density(2, [-1, 4, 0.5, math.nan])).all()
    for epsilon in (0.0, INF):  # the density of the family and the law of finite spaces agree at both ends too
        extreme = type(mechanism)(SPACES, epsilon)
        assert np.exp(extreme.log_density(2, extreme.outcomes)) == pytest.approx(extreme.distribution(2))
    first = mechanism.pairs()[0]
    assert mechanism.privacy_loss(first.x, first.x_prime) == pytest.approx(worst)
    assert mechanism.accuracy(INF) == pytest.approx(np.ones(6))


@pytest.mark.parametrize("mechanism", EVERY, ids=ids)
def test_100_000_draws_take_well_under_a_second_and_follow_the_law(mechanism):
    start = time.process_time()
    samples = mechanism.sample(4, 100_000, np.random.default_rng(20_261_123))
    assert time.process_time() - start < 1.0  # measured: 3 ms
    # False alarm rate 1e-10 each (sampler_checks); the control passes with probability 1e-20.
    assert is_drawn_from_outcomes(samples[:DRAWS], mechanism.outcomes, mechanism.distribution(4))
    control = mechanism.distribution(0)
    assert cdf_gap(control, mechanism.distribution(4)) > MIN_CONTROL_GAP
    assert not is_drawn_from_outcomes(samples[:DRAWS], mechanism.outcomes, control)


def test_the_expected_error_is_that_of_the_draws():
    mechanism = WidenedPrivacyFirst(SPACES, 0.8, 1.0)
    samples = mechanism.sample(0, 200_000, np.random.default_rng(20_261_124))
    # Distances are at most 4: by Hoeffding's inequality the mean is 0.04 away with probability below 2e-17.
    assert SPACES.distances[0][samples].mean() == pytest.approx(mechanism.expected_error()[0], abs=0.04)
    assert mechanism.expected_error()[0] > PrivacyFirst(SPACES, 5.0).expected_error()[0]


# ---- degenerate cases -----------------------------------------------------------------------------------------------


def test_a_constant_query_is_released_exactly():
    constant = FiniteSpaces(PATH, [0] * 6, [[0.0]])
    for kind in (GlobalSensitivity, Staircase, Ladder, PrivacyFirst, WidenedPrivacyFirst, WidenedStaircase):
        mechanism = kind(constant, 1.0)
        assert mechanism.distribution(3).tolist() == [1.0] and mechanism.epsilon_exact == 0.0


def test_datasets_without_neighbours_keep_any_promise():
    """Distance 2: sensitivity 0 although the values differ. Utility first releases them; privacy first does not."""
    apart = FiniteSpaces([[0, 2], [2, 0]], [0, 1], [[0, 1], [1, 0]])
    assert apart.sensitivity == 0.0
    for kind in (GlobalSensitivity, Staircase, Ladder):
        assert kind(apart, 1.0).distribution(0).tolist() == [1.0, 0.0]
    assert PrivacyFirst(apart, 1.0).levels.tolist() == [[0.0, 2.0], [2.0, 0.0]]
    assert PrivacyFirst(apart, 1.0).epsilon_exact == 0.0
    with pytest.raises(UsageError, match="spaces must have neighbours for pairs, got none"):
        PrivacyFirst(apart, 1.0).pairs()


def test_datasets_that_no_chain_joins_never_answer_for_each_other():
    parts = FiniteSpaces([[0, 1, INF], [1, 0, INF], [INF, INF, 0]], range(3), [[0, 1, INF], [1, 0, INF], [INF, INF, 0]])
    for kind in (GlobalSensitivity, Staircase, Ladder, PrivacyFirst):
        mechanism = kind(parts, 1.0)
        assert mechanism.distribution(2).tolist() == [0.0, 0.0, 1.0] and mechanism.distribution(0)[2] == 0.0
        assert mechanism.privacy_loss(0, 2) == INF and mechanism.epsilon_exact <= 2.0
        assert np.isfinite(mechanism.expected_error()).all()


def test_an_infinite_sensitivity_is_refused_where_it_is_used():
    torn = FiniteSpaces([[0, 1], [1, 0]], [0, 1], [[0, INF], [INF, 0]])
    for kind in (GlobalSensitivity, Staircase, Ladder):
        with pytest.raises(UsageError, match="spaces must have a finite sensitivity, got inf"):
            kind(torn, 1.0).levels  # noqa: B018
    assert PrivacyFirst(torn, 1.0).levels.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_datasets_at_distance_0_have_one_law_where_privacy_comes_first():
    same = FiniteSpaces([[0, 0, 1], [0, 0, 1], [1, 1, 0]], range(3), PATH[:3, :3])
    mechanism = PrivacyFirst(same, 1.0)
    assert mechanism.levels[0].tolist() == mechanism.levels[1].tolist() == [0.0, 0.0, 1.0]
    assert same.neighbour_pairs.tolist() == [[0, 1], [0, 2], [1, 2]]  # neighbours, who must be told apart least
    alone = FiniteSpaces([[0, 0], [0, 0]], range(2), PATH[:2, :2], [9.0, 1.0])
    assert Staircase(alone, 1.0).epsilon_exact == Staircase(alone, 1.0).privacy_loss(0, 1) > 1.0
    assert mechanism.privacy_loss(0, 1) == 0.0 < Staircase(same, 1.0).privacy_loss(0, 1) <= 2.0


def test_a_rung_of_height_0_is_an_empty_level():
    flat = FiniteSpaces(PATH[:4, :4], [0, 0, 1, 2], VALUES[:3, :3])
    assert flat.local_sensitivities(0)[0] == 0.0
    assert Ladder(flat, 1.0).levels[0].tolist() == [0.0, 2.0, 3.0]


test_what_makes_no_sense_is_refused = refusals(
    (lambda: PrivacyFirst("spaces", 1.0), "spaces must"),
    (lambda: WidenedStaircase(SPACES, 1.0, "wide"), "widths must"),
    (lambda: WidenedStaircase(SPACES, 1.0, 0.0, ["a"] * 4), "important must"),
    (lambda: FiniteSpaces([[0, 1], [1, 0]], [0, 2], [[0, 1], [1, 0]]), "values must"),
    (lambda: FiniteSpaces([[0, 3, 1], [3, 0, 1], [1, 1, 0]], [0, 0, 0], [[0]]), r"violates the triangle inequality"),
    (lambda: FiniteSpaces([[0, 1], [1, 0]], [0, 1], [[0, 1], [1, 0]], [1.0, 0.0]), "measure must"),
    (lambda: PrivacyFirst(SPACES, -1.0), "epsilon must"),
    (lambda: Staircase(SPACES, 1.0, offset=4.0), "offset must"),
    (lambda: WidenedPrivacyFirst(SPACES, 1.0, [1.0, 2.0]), "widths must"),
    (lambda: WidenedStaircase(SPACES, 1.0, -1.0), "widths must"),
    (lambda: WidenedStaircase(SPACES, 1.0, 0.0, IMPORTANT, -1.0), "penalty must"),
    (lambda: WidenedStaircase(SPACES, 1.0, penalty=1.0), "penalty must"),
    (lambda: WidenedStaircase(SPACES, 1.0, 0.0, [2, 0, 0, 0]), "important must"),
    (lambda: WidenedPrivacyFirst(SPACES, 1.0, distortion=np.ones((6, 4))), "distortion must"),
    (lambda: PrivacyFirst(SPACES, 1.0).distribution(6), "data must"),
    (lambda: PrivacyFirst(SPACES, 1.0).accuracy(-1.0), "within must"),
)


# ---- twins ----------------------------------------------------------------------------------------------------------


def test_a_flatter_law_is_private_and_has_a_larger_error():
    spaces = FiniteSpaces(PATH, range(6), PATH)
    sound, twin = PrivacyFirst(spaces, 1.0), PrivacyFirstTooFlat(spaces, 1.0)
    assert twin.epsilon_exact < sound.epsilon_exact
    assert (twin.expected_error() > 1.1 * sound.expected_error()).all() and "error" in twin.fault


def test_an_expected_distance_that_is_infinite_is_not_stated():
    """A chain joins datasets whose values are infinitely far apart; a bound of inf is refused where it is read."""
    spaces = FiniteSpaces([[0.0, 1.0], [1.0, 0.0]], [0, 1], [[0.0, math.inf], [math.inf, 0.0]])
    mechanism = PrivacyFirst(spaces, 1.0)
    assert np.isinf(mechanism.expected_error()).all()
    assert [bound.name for bound in mechanism.utility_bounds()] == ["false value"]
