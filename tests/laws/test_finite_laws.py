"""Each law on thousands of random finite mechanisms, with both sides computed; a planted fault of each; tightness.

Batches come from a fixed seed: 5 kinds x 400 = 2,000 mechanisms a law, and hypothesis looks for smaller ones. No
statistics enter: an excess above the derived tolerance would be a counterexample. Laws of conditioning have a file of
their own.
"""

import dataclasses
import itertools

import exact_laws
import numpy as np
import pytest
from finite_batches import EACH, KINDS, MEASURES, drawn, on_one_nat

from dpaudit import strategies
from dpaudit.exact import hockey_stick_divergence, privacy_losses, renyi_divergence


def test_the_batched_measures_are_those_of_the_exact_room():
    for kind in strategies.KINDS:
        rows, _ = drawn(1, kind, count=5)
        for one, loss, delta, renyi in zip(
            rows,
            exact_laws.losses(rows),
            exact_laws.deltas(rows, 0.7),
            exact_laws.renyi_divergences(rows, 2.5),
            strict=True,
        ):
            np.testing.assert_allclose(np.maximum(loss, loss.T), privacy_losses(one), rtol=0, atol=1e-13)
            for i, j in itertools.permutations(range(3), 2):
                # 1e-13: logs of up to 28 and their rounding, a few 2**-53 each
                assert delta[i, j] == pytest.approx(hockey_stick_divergence(one[i], one[j], 0.7), abs=1e-13)
                expected = renyi_divergence(one[i], one[j], 2.5)
                assert renyi[i, j] == expected or renyi[i, j] == pytest.approx(expected, abs=1e-12)


def test_a_check_holds_up_to_its_tolerance_and_no_further():
    rows, _ = drawn(41, "dense", count=1)
    check = exact_laws.check_post_processing(rows, np.eye(4))  # nothing is lost: found is what is promised
    assert check.tolerance < 1e-13
    for missing, holds in ((0.0, True), (0.5, True), (2.0, False), (1e6, False)):
        less = dataclasses.replace(check, promised=check.promised - missing * check.tolerance)
        assert less.holds.all() == holds
    one_way = check.promised.copy()
    one_way[0, 1, 0] -= 1e-9
    assert not dataclasses.replace(check, promised=one_way).holds.any()  # every ordered pair counts


# ---- sequential composition ------------------------------------------------------------------------------------------


@pytest.mark.claim("DX-F1.2", "UP-P1")
@KINDS
@pytest.mark.parametrize(
    "measure", [{}, {"order": 1.5}, {"order": 8.0}, {"epsilon": (0.0, 0.3)}, {"epsilon": (1, 0.2)}]
)
def test_sequential_composition_adds_budgets(kind, measure):
    first, _ = drawn(2, kind)
    second, _ = drawn(3, kind)
    check = exact_laws.check_sequential(first, second, **measure)
    assert check.derived.shape == (EACH, 3, 16) and check.holds.all()


@KINDS
def test_sequential_composition_is_an_equality_for_losses_and_renyi_divergences(kind):
    first, second = drawn(4, kind)[0], drawn(5, kind)[0]
    for measure in ({}, {"order": 3.0}):
        check = exact_laws.check_sequential(first, second, **measure)
        is_finite = np.isfinite(check.promised)
        assert np.abs(check.found[is_finite] - check.promised[is_finite]).max() <= check.tolerance
        assert np.array_equal(np.isfinite(check.found), is_finite)


# ---- adaptive composition --------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize(
    "measure", [{}, {"order": 1.5}, {"order": 8.0}, {"epsilon": (0.0, 0.3)}, {"epsilon": (1, 0.2)}]
)
def test_adaptive_composition_adds_the_largest_budget_of_what_may_follow(kind, measure):
    first, rng = drawn(8, kind)
    seconds = strategies.random_mechanisms(rng, EACH * 4, 3, 3, kind).reshape(EACH, 4, 3, 3)
    assert exact_laws.check_adaptive(first, seconds, **measure).holds.all()


def test_adaptive_composition_is_tight_where_the_worst_outcome_is_followed_by_the_worst_mechanism():
    used = [exact_laws.check_adaptive(rows, np.stack([rows] * 3)).used.max() for rows in on_one_nat(11, 50)]
    assert min(used) > 1.0 - 1e-12


# ---- post-processing and projection ----------------------------------------------------------------------------------


@pytest.mark.claim("DX-F1.1", "CD-L3.4.1")
@KINDS
@pytest.mark.parametrize("measure", MEASURES)
def test_post_processing_never_increases_anything(kind, measure):
    rows, rng = drawn(13, kind)
    randomised = strategies.random_mechanisms(rng, EACH, 4, 3, kind)
    deterministic = np.eye(3)[rng.integers(0, 3, size=(EACH, 4))]
    for kernel in (randomised, deterministic):
        assert exact_laws.check_post_processing(rows, kernel, **measure).holds.all()


@pytest.mark.claim("CD-L3.7")
@KINDS
@pytest.mark.parametrize("measure", MEASURES)
def test_projection_on_a_fixed_set_never_increases_anything(kind, measure):
    rows, rng = drawn(16, kind)
    points = rng.normal(size=(4, 2))
    targets = rng.normal(size=(3, 2))
    check = exact_laws.check_projection(rows, points, targets, **measure)
    assert check.derived.shape == (EACH, 3, 3) and check.holds.all()


# ---- group privacy ---------------------------------------------------------------------------------------------------

PATH = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) == 1


@KINDS
@pytest.mark.parametrize("epsilon", [None, 0.0, 0.3, 1.0])
def test_group_privacy_adds_up_along_chains(kind, epsilon):
    rows, rng = drawn(18, kind, inputs=4)
    adjacent = rng.random((4, 4)) < 0.5
    for graph in (PATH, adjacent | adjacent.T):
        assert exact_laws.check_group(rows, graph & ~np.eye(4, dtype=bool), epsilon=epsilon).holds.all()


# ---- mixture and convexity -------------------------------------------------------------------------------------------


@pytest.mark.claim("CD-T3.9.2")
@KINDS
@pytest.mark.parametrize("measure", MEASURES)
def test_mixtures_keep_what_their_parts_keep_and_average_what_averages(kind, measure):
    parts = [drawn(19 + k, kind)[0] for k in range(3)]
    shares = np.random.default_rng(22).dirichlet(np.ones(3), size=EACH)
    assert exact_laws.check_mixture(parts, shares, **measure).holds.all()


@KINDS
def test_mixtures_with_weights_that_depend_on_the_input_pay_for_the_choice(kind):
    parts = [drawn(23 + k, kind)[0] for k in range(2)]
    shares = strategies.random_mechanisms(np.random.default_rng(25), EACH, 3, 2)
    assert exact_laws.check_mixture(parts, shares, by_input=True).holds.all()


def test_mixtures_are_tight_where_the_parts_can_be_told_apart():
    rows = on_one_nat(26, 50)
    empty = np.zeros_like(rows)
    parts = [np.concatenate([rows, empty], axis=-1), np.concatenate([empty, rows[::-1]], axis=-1)]
    for measure in ({}, {"epsilon": 0.2}, {"order": 2.0}):
        used = exact_laws.check_mixture(parts, [0.3, 0.7], **measure).used
        assert used.min() > 1.0 - 1e-12


# ---- parallel composition --------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("changed_pieces", [1, 2])
def test_parallel_composition_costs_the_pieces_that_change(kind, changed_pieces):
    first, second = drawn(35, kind)[0], drawn(36, kind)[0]
    check = exact_laws.check_parallel(first, second, changed_pieces=changed_pieces)
    assert check.derived.shape == (EACH, 9, 16) and check.holds.all()


def test_parallel_composition_with_one_changed_piece_costs_the_largest_loss():
    first, second = drawn(37, "dense")[0], drawn(38, "dense")[0]
    check = exact_laws.check_parallel(first, second, changed_pieces=1)
    largest = np.maximum(exact_laws.losses(first).max(axis=(1, 2)), exact_laws.losses(second).max(axis=(1, 2)))
    asked = np.where(np.isfinite(check.promised), check.found, 0.0).max(axis=(1, 2))
    np.testing.assert_allclose(asked, largest, rtol=0, atol=1e-12)


def test_parallel_composition_where_a_record_moves_costs_both_pieces():
    rows = on_one_nat(39, 50)
    check = exact_laws.check_parallel(rows, rows, changed_pieces=2)
    assert check.found.max() == pytest.approx(2.0, abs=1e-9)  # twice the largest loss of a piece
