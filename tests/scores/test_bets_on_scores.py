"""Bets on scores: cells of a tree, an order of play, and how often a claim that is kept exactly is rejected."""

import numpy as np
import pytest
from scipy import special, stats

import dpaudit
from dpaudit.scores.bets import ScoreBets, labelled


def test_leaves_of_a_tree_are_cells_of_what_was_predicted():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 400)
    bets = ScoreBets(rng.normal(size=400) + 2.0 * labels, labels, dpaudit.PureDP(1.0))
    assert sum(len(stage.cells) for stage in bets._stages) == 400 - 6
    for stage in bets._stages:
        assert stage.predicted.mass.sum() == pytest.approx(1.0) and np.all(stage.predicted.mass > 0.0)
        assert np.all(np.diff(stage.predicted.q) > 0.0)
        assert stage.cells.max() < 2 * len(stage.predicted.q)
    cells = np.concatenate([stage.cells // len(stage.predicted.q) for stage in bets._stages])
    assert np.array_equal(cells, labels[6:])


def test_the_wealth_is_that_of_all_scores_so_far_and_the_bound_is_below_it():
    rng = np.random.default_rng(2)
    bets = ScoreBets(*labelled(rng.normal(1.5, 1.0, 200), rng.normal(size=200), rng), dpaudit.GaussianDP(0.5))
    need = -np.log(0.05)
    course = bets.log_wealth(0.5 * (1.0 + 1e-7) + 1e-12)
    assert bets.decided_at(0.05) == 7 + int(np.argmax(course >= need)) and bets.largest() == course.max()
    lower = bets.lower(0.05)
    assert 0.5 < lower < 1.5 and bets.rejects(lower * 0.8, 0.05) and not bets.rejects(1.15 * lower, 0.05)


DRAWS, PLAYS, LEVEL = 40, 150, 0.05
FALSE_ALARM_RATE = 2e-6  # P(binomial(150, 0.05) >= 23) = 1.8e-6


@pytest.mark.slow
def test_a_claim_that_is_kept_exactly_is_rejected_no_more_often_than_the_level_says():
    """The law sits on the line of every epsilon at once: randomised response, and a Gaussian with its whole profile."""
    assert stats.binom.sf(22, PLAYS, LEVEL) < FALSE_ALARM_RATE
    rng = np.random.default_rng(20_261_126)
    for claim, draw in (
        (dpaudit.PureDP(1.0), lambda e: (rng.random(DRAWS) < special.expit(e)) + 0.0),
        (dpaudit.GaussianDP(1.73), lambda e: rng.normal(0.865 * e, 1.0, DRAWS)),
    ):
        rejected = 0
        for _ in range(PLAYS):
            rejected += ScoreBets(*labelled(draw(1.0), draw(-1.0), rng), claim).decided_at(LEVEL) is not None
        assert rejected < 23
