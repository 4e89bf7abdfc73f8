"""Bets on scores: what they stake on, and how the wealth of several bettors adds up."""

import numpy as np
import pytest

import dpaudit
from dpaudit.scores import bets
from dpaudit.scores.bets import labelled, play
from dpaudit.scores.profile_bounds import just_above


def test_a_fit_has_grown_on_the_scores_that_it_was_fitted_on():
    """To stake nothing is one of its choices, so the sum of logs is at least 0, whatever lies above and below.

    Events that are chosen one by one may overlap. A bet on the lower event was moved to where the upper one began, also
    where nothing was staked on that: 37 of these 300 fits had lost more than 0.3 nats on their own scores, up to 5.
    """
    values = np.array([just_above(1.73)])
    epsilon, delta = bets.lines_of(dpaudit.GaussianDP(1.73), values)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, 8 + seed % 40)
        scores = rng.normal(size=len(labels)) + 2.45 * labels
        whole = bets.PARTS.index(1.0)
        assert bets._fit(scores, labels, epsilon, delta).growths(scores, labels)[whole].sum() >= 0.0


def test_the_two_events_of_a_fit_are_disjoint():
    values = bets.values_of(dpaudit.GaussianDP(1.0))
    epsilon, delta = bets.lines_of(dpaudit.GaussianDP(1.0), values)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, 60)
        found = bets._fit(rng.normal(size=60) + labels, labels, epsilon, delta)
        assert np.all(found.bottom <= found.top)
        assert np.all(found.stake_top >= 0.0) and np.all(found.stake_bottom >= 0.0)


def test_two_events_are_the_best_pair_that_does_not_overlap():
    """By trying every pair."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        below, above = np.maximum(rng.normal(size=(2, 3, 2, 6)), 0.0)
        found = bets._disjoint((below + 1.0, below), (above + 1.0, above))
        pairs = [below[..., i] + above[..., j] for i in range(6) for j in range(i, 6)]
        assert found.growth == pytest.approx(np.max(pairs, axis=0))
        assert np.all(found.bottom <= found.top)


def test_the_wealth_is_the_mean_of_what_the_bettors_have(monkeypatch):
    rng = np.random.default_rng(2)
    scores, labels = labelled(rng.normal(1.5, 1.0, 60), rng.normal(size=60), rng)
    claim, values = dpaudit.PureDP(0.5), np.array([just_above(0.5)])
    together = play(scores, labels, claim, values)
    alone = []
    for part in bets.PARTS:
        monkeypatch.setattr(bets, "PARTS", (part,))
        alone.append(np.exp(play(scores, labels, claim, values).at_budget))
    assert np.exp(together.at_budget) == pytest.approx(np.mean(alone, axis=0))


DRAWS, PLAYS, LEVEL = 40, 150, 0.05
FALSE_ALARM_RATE = 2e-6  # P(binomial(150, 0.05) >= 23) = 1.8e-6


@pytest.mark.slow
def test_a_claim_that_is_kept_exactly_is_rejected_no_more_often_than_the_level_says():
    """The law sits on the line of every epsilon at once: randomised response, and a Gaussian with its whole profile."""
    from scipy import special, stats

    assert stats.binom.sf(22, PLAYS, LEVEL) < FALSE_ALARM_RATE
    rng = np.random.default_rng(20_261_126)
    for claim, draw in (
        (dpaudit.PureDP(1.0), lambda e: (rng.random(DRAWS) < special.expit(e)) + 0.0),
        (dpaudit.GaussianDP(1.73), lambda e: rng.normal(0.865 * e, 1.0, DRAWS)),
    ):
        values, rejected = np.array([just_above(claim.value)]), 0
        for _ in range(PLAYS):
            found = play(*labelled(draw(1.0), draw(-1.0), rng), claim, values)
            rejected += found.decided_at(LEVEL) is not None
        assert rejected < 23
