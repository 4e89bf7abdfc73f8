"""Refined edges: the run of correct guesses, what is counted for it, and the fixed game that uses it."""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

import dpaudit
from dpaudit.bench.laws import reach_for
from dpaudit.bench.numbers import truncated_laplace
from dpaudit.learning.fitted_scores import FittedScore
from dpaudit.learning.rules import Rule
from dpaudit.learning.scores import Coordinate
from dpaudit.privacy.claims import ApproxDP, PureDP
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.testing import refined_edges
from dpaudit.testing.refined_edges import (
    FINE,
    LAST_SEEN,
    SIZE,
    Edge,
    Edges,
    RefinedGame,
    StageCounts,
    find_edges,
    longest_run,
    run_p_value,
)

ROUNDING = 1e-12
SCORE, READING = Coordinate(0, 1), Reading(1)


def outcomes(values):
    return Outcomes(np.asarray(values, dtype=float).reshape(-1, 1))


def p_value(correct, draws, epsilon, cost):
    return float(run_p_value(correct, draws, np.array([epsilon]), np.array([cost]))[0])


# --- the p-value ---


def best_chance(correct, draws, epsilon, delta):
    """P(R >= correct) of the best order, by enumeration, on the pair that loses the most under the line.

    It guesses `correct` draws with the highest odds, as all labels are independent given the outputs: what is learned
    of one says nothing of another.
    """
    keep = float(special.expit(epsilon))
    chances = [1.0, keep, keep, 1.0]  # that the label of an output's side is its own, of outputs 0, 1, 2, 3
    mass = [delta / 2, (1 - delta) / 2, (1 - delta) / 2, delta / 2]
    total = 0.0
    for counts in itertools.product(range(draws + 1), repeat=4):
        if sum(counts) == draws:
            best = sorted((c for c, n in zip(chances, counts, strict=True) for _ in range(n)), reverse=True)
            total += float(stats.multinomial.pmf(counts, draws, mass)) * math.prod(best[:correct])
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.05, 0.4])
def test_no_order_of_guesses_beats_the_p_value(epsilon, delta):
    # Exact sums: no error rate.
    draws = 7
    for correct in range(draws + 1):
        assert best_chance(correct, draws, epsilon, delta) <= p_value(correct, draws, epsilon, delta) + ROUNDING


def test_without_delta_the_p_value_is_that_of_right_guesses_alone():
    for correct in (0, 1, 17, 400):
        expected = math.exp(correct * special.log_expit(1.2))
        assert p_value(correct, 1_000, 1.2, 0.0) == pytest.approx(expected, rel=1e-12)


def test_the_p_value_is_monotone():
    epsilon = np.linspace(0.0, 9.0, 200)
    for cost in (0.0, 1e-4, 1e-3, 0.01, 0.2):
        values = run_p_value(700, 100_000, epsilon, np.full(200, cost))
        assert np.all(np.diff(values) >= -ROUNDING) and np.all(values <= 1.0)
    for epsilon_at in (0.0, 2.0, 6.0):
        costs = np.linspace(0.0, 0.02, 200)
        assert np.all(np.diff(run_p_value(700, 100_000, np.full(200, epsilon_at), costs)) >= -ROUNDING)
    in_a_row = [p_value(correct, 5_000, 2.0, 0.01) for correct in range(0, 5_001, 50)]
    assert all(b <= a for a, b in itertools.pairwise(in_a_row))
    assert in_a_row[0] == 1.0


# --- what is counted ---

ABOVE = Edge(1, 0, 1.0, 0.01, FINE * LAST_SEEN - 1)
BELOW = Edge(-1, 1, 1.0, 0.01, FINE * LAST_SEEN - 1)  # scores below -1
TWO = Edges(SCORE, READING, (ABOVE, BELOW), 0.0, 0.0, 0.0)


def test_cells_are_monotone_and_the_last_one_is_open():
    scores = np.array([-5.0, 1.0, math.nan, 1.001, 1.011, 2.0, 1e300, math.inf])
    cells = ABOVE.cells_of(scores)
    assert cells.tolist() == [0, 1, 99, SIZE - 1, SIZE - 1] or cells.tolist() == [0, 1, 100, SIZE - 1, SIZE - 1]
    assert BELOW.cells_of(-scores).tolist() == cells.tolist()


def test_counts_add_up_over_chunks():
    rule = Rule(SCORE, -1.5, 1.5, -1, READING)
    counted = StageCounts(rule, TWO)
    values = np.random.default_rng(1).normal(scale=3.0, size=1_000)
    parts = sum((counted.count(outcomes(part)) for part in np.split(values, [100, 450])), counted.zeros())
    assert np.array_equal(parts, counted.count(outcomes(values)))
    assert parts[:3].sum() == 1_000
    assert parts[3:].sum() == np.count_nonzero(values > 1.0) + np.count_nonzero(values < -1.0)


# --- the order ---


def one_stage(own, other):
    """Counts of one stage and one edge from {cell: draws}."""
    arrays = np.zeros((2, 1, 1, SIZE), dtype=np.int64)
    for array, cells in zip(arrays, (own, other), strict=True):
        for cell, count in cells.items():
            array[0, 0, cell] = count
    return arrays


def test_a_run_ends_at_the_first_cell_with_a_wrong_guess_from_outside():
    own, other = one_stage({SIZE - 1: 5, 2000: 3, 1900: 7, 1800: 9}, {1900: 1, 1700: 4})
    run = longest_run((ABOVE,), own, other)
    assert run.correct == 8  # the whole cell of the wrong guess is left out
    assert run.ends == (1900,)


def test_labels_that_were_learned_from_are_not_guessed():
    last = ABOVE.last
    own, other = np.zeros((2, 2, 1, SIZE), dtype=np.int64)
    own[0, 0, last + 5], own[1, 0, last + 5] = 11, 13  # just beyond the last score: the first stage learns from it
    own[0, 0, SIZE - 1] = 2
    assert longest_run((ABOVE,), own, other).correct == 15
    other[1, 0, last + 3] = 1
    assert longest_run((ABOVE,), own, other).correct == 15
    other[0, 0, last + 3] = 1  # and where it finds the other label, it goes on from there
    assert longest_run((ABOVE,), own, other).correct == 15


def test_a_far_score_of_the_other_label_leaves_no_run():
    own, other = one_stage({2000: 500}, {SIZE - 1: 1})
    run = longest_run((ABOVE,), own, other)
    assert run.correct == 0
    assert Edges(SCORE, READING, (ABOVE,), 0.0, 0.0, 0.0).rule(run.ends).sides == 0


def test_what_is_uncovered_later_does_not_change_what_was_guessed_before():
    """Labels nearer to the edge than the end of the run: any exchange of them leaves the run as it is."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        own, other = rng.poisson(0.02, (2, 1, 2, SIZE))
        other[..., 1700:] = 0
        other[0, 0, 1700] = 1
        run = longest_run((ABOVE, BELOW), own, other)
        moved = own.copy(), other.copy()
        for k, end in enumerate(run.ends):
            for array in moved:
                array[0, k, : end + 1] = rng.permutation(array[0, k, : end + 1])
            moved[1][0, k, max(end, 0)] += 1
        assert longest_run((ABOVE, BELOW), *moved).correct == run.correct


# --- which edges ---


def fitted(first, second):
    first, second = (np.sort(np.asarray(side, dtype=float)) for side in (first, second))
    return FittedScore("coordinate", SCORE, READING, first, second)


def cut_laplace(size, seed, delta=0.005):
    rng = np.random.default_rng(seed)
    return [truncated_laplace(x, size, rng, epsilon=1.0, reach=reach_for(1.0, delta)) for x in (0.0, 1.0)]


def speaks(edges):
    return edges.ending >= refined_edges.LEAST_ENDING and edges.jump >= refined_edges.LEAST_JUMP


def test_both_ends_of_truncated_noise_are_found():
    # The seed is fixed; with others the pilot of 10,000 shows it in 9 of 10.
    edges = find_edges(fitted(*cut_laplace(5_000, 3)))
    assert [len(found.sides) for found in edges] == [1, 1, 2]
    assert speaks(edges[-1])
    assert [(side.sign, side.guess) for side in edges[-1].sides] == [(1, 0), (-1, 1)]


@pytest.mark.parametrize("kind", ["laplace", "normal"])
def test_noise_without_an_end_is_seldom_taken_for_it(kind):
    # At most 1.3% were in 1,000 others: at that rate more than 12 of 200 have a probability of 3e-6.
    taken = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        noise = [getattr(rng, kind)(size=5_000) + x for x in (0.0, 1.0)]
        taken += any(speaks(edges) for edges in find_edges(fitted(*noise)))
    assert taken <= 12


def test_atoms_and_short_pilots_have_no_edges():
    first, second = cut_laplace(5_000, 3)
    assert find_edges(fitted(np.round(first, 1), np.round(second, 1))) == []
    assert find_edges(fitted(first[:500], second[:500])) == []
    assert find_edges(fitted(np.full(5_000, math.nan), second)) == []


# --- the game ---


def staged(claim, edges, rule, stages, level=0.05):
    """A game that refines these edges, with the counts of (draws of x, draws of x_prime) of each stage."""
    game = RefinedGame(claim, sum(len(x) + len(y) for x, y in stages))
    game.set_rule(rule, 0.0)
    game._edges = edges
    game.start(level)
    for x, y in stages:
        game.add(game.statistic.count(outcomes(x)), game.statistic.count(outcomes(y)))
    game.update()
    return game


def labelled(draw, sizes, rng):
    """Draws of x and of x_prime for each stage, labels by fair coins."""
    ones = [int(rng.binomial(size, 0.5)) for size in sizes]
    return [(draw(0.0, n, rng), draw(1.0, size - n, rng)) for size, n in zip(sizes, ones, strict=True)]


def rare_response(data, size, rng, *, epsilon, rare):
    """Uniform noise on both; rarely a uniform one beyond 1 or below -1, told the truth at log-odds epsilon: pure DP."""
    speaks, truth = rng.random(size) < rare, rng.random(size) < special.expit(epsilon)
    side = np.where(truth == (data > 0.5), 1.0, -1.0)
    return np.where(speaks, side * (1.0 + 20.0 * rng.random(size)), rng.uniform(-0.9, 0.9, size))


SOUND = {
    "truncated laplace": (
        ApproxDP(1.0, 0.02),
        functools.partial(truncated_laplace, epsilon=1.0, reach=reach_for(1.0, 0.02)),
        reach_for(1.0, 0.02),
    ),
    "rare response": (PureDP(3.0), functools.partial(rare_response, epsilon=3.0, rare=0.2), 1.0),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_subject_on_its_line_is_seldom_refused(name):
    # P(false alarm) <= 0.05 each; more than 87 of 1,000 has a probability of 4e-7 at that rate. With a delta the
    # p-value is a Chernoff bound, and the rate 0.02 at most (0.01 to 0.018, exact, of sizes about these): more than 45
    # of 1,000 has a probability of 3e-7.
    claim, draw, place = SOUND[name]
    sides = [Edge(1, 0, place - 0.4, 0.4 / (FINE * LAST_SEEN), FINE * LAST_SEEN - 1)]
    sides.append(dataclasses.replace(sides[0], sign=-1, guess=1, start=place - 1.4 if place > 1.0 else place - 0.4))
    edges, rule = Edges(SCORE, READING, tuple(sides), 0.0, 0.0, 0.0), Rule(SCORE, -place, place, -1, READING)
    refused = 0
    for seed in range(1_000):
        rng = np.random.default_rng([seed, 7])
        game = staged(claim, edges, rule, labelled(draw, (200, 300, 1_500), rng))
        assert game.is_rejected == (game.p_value <= 0.05)
        refused += game.is_rejected
    assert refused <= (87 if claim.delta == 0.0 else 45)


def test_a_few_far_scores_of_the_other_label_leave_the_bound_to_the_rule_of_the_pilot():
    rng = np.random.default_rng(5)

    def draw(data, size, rng):
        outside = rng.random(size) < (0.2 if data > 0.5 else 2e-3)
        return np.where(outside, 1.5 + 0.1 * rng.random(size) + 1e6 * (data < 0.5), rng.uniform(-0.9, 0.9, size))

    edge = Edge(1, 0, 0.5, 0.4 / (FINE * LAST_SEEN), FINE * LAST_SEEN - 1)
    edges, rule = Edges(SCORE, READING, (edge,), 0.0, 0.0, 0.0), Rule(SCORE, -math.inf, 1.0, -1, READING)
    game = staged(PureDP(1.0), edges, rule, labelled(draw, (1_000, 9_000), rng))
    correct, wrong, _ = game.counts
    assert wrong > 0 and correct > 800
    assert game.is_rejected and 2.0 < game.lower < math.log(100.0)  # the rule's loss is log(0.2 / 0.002)
    assert game.rule == rule and refined_edges.HOW_IT_ENDED not in game.describe("x", "y")


def test_before_the_end_there_is_no_p_value():
    game = RefinedGame(PureDP(1.0), 10_000)
    game.set_rule(Rule(SCORE, -1.0, 1.0, -1, READING), 0.0)
    game._edges = TWO
    game.start(0.05)
    game.add(game.statistic.zeros(), game.statistic.zeros())
    assert game.p_value is None and game.lower == 0.0


# --- audits ---


def cut_too_early(data, size, rng):
    return truncated_laplace(data, size, rng, epsilon=1.0, reach=reach_for(1.0, 0.005))


def audited(**options):
    return dpaudit.audit(
        cut_too_early, ApproxDP(1.0, 1e-3), [(0.0, 1.0)], samples=100_000, mode="fixed", seed=11, **options
    )


@pytest.fixture(scope="module")
def result():
    return audited()


def test_an_audit_says_what_its_run_was(result):
    # With the thresholds known the bound is 5.58, with a standard error of 0.03; a truth of 0.005 has no upper limit.
    (finding,) = result.findings
    assert finding.verdict == "violated" and finding.p_value < 1e-20
    assert 5.3 < finding.parameter_lower < 5.7
    witness = finding.witness
    assert refined_edges.HOW_IT_ENDED in witness.description
    assert witness.wrong == 0 and 750 < witness.correct < 1_000
    assert witness.correct + witness.abstained in (200_000 - 4_000, 200_000 - 10_000)


def test_it_is_replayed_with_the_rule_of_its_end(result):
    again = dpaudit.replay(result, cut_too_early, ApproxDP(1.0, 1e-3), samples=100_000, seed=12)
    assert again.wrong <= 10  # the thresholds are off by about 1e-5 of the mass a side: one wrong guess is expected
    assert again.correct > 800


def test_the_same_bits_for_any_number_of_jobs(result):
    other = audited(jobs=2)
    assert other.findings[0].parameter_lower == result.findings[0].parameter_lower
    assert other.findings[0].witness.rule == result.findings[0].witness.rule
    assert other.findings[0].witness.correct == result.findings[0].witness.correct


def test_several_pairs_have_no_stages():
    pairs = [(0.0, 1.0), (0.0, 0.5)]
    found = dpaudit.audit(cut_too_early, ApproxDP(1.0, 1e-3), pairs, samples=20_000, mode="fixed", seed=11)
    assert all(refined_edges.HOW_IT_ENDED not in finding.witness.description for finding in found.findings)
