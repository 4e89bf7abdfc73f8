"""The fixed game's test in numbers: p-values and bounds by scipy.stats, and what a pilot has to show.

Nothing here is random, but for the draws of pilots with a fixed seed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.learning.cross_validation import Shown
from dpaudit.learning.fitted_scores import FittedRule
from dpaudit.learning.rules import ABSTAIN, Rule
from dpaudit.learning.scores import Coordinate
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.testing import binomial, fixed_game
from dpaudit.testing.fixed_game import MASS_SHARE, FixedGame
from dpaudit.testing.joint_test import joint_p_value

BOTH = Rule(Coordinate(0, 1), -0.5, 0.5, 1, Reading(1), ABSTAIN)
ONE = Rule(Coordinate(0, 1), -math.inf, 0.5, 1, Reading(1), ABSTAIN)
DRAWS = 80
LINES = {
    "pure": (PureDP(0.6), 0.0, lambda value: (value, 0.0)),
    "approximate": (ApproxDP(0.6, 0.03), 0.0, lambda value: (value, 0.03)),
    # Balle and Wang (2018), theorem 8: the profile of noise of mu = 1 / sigma.
    "gaussian": (GaussianDP(0.6), 0.5, lambda value: (0.5, profile(value, 0.5))),
}


def profile(mu, epsilon):
    if mu == 0.0:
        return 0.0
    return stats.norm.cdf(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2.0 - epsilon / mu)


def p_value(correct, wrong, sides, level, epsilon, delta, has_delta):
    """Of the binomial test: what was spent on the limit of s, and the tail at the largest accuracy on the line."""
    guesses = correct + wrong
    spent = level * MASS_SHARE if has_delta else 0.0
    extra = 0.0
    if has_delta:
        s_lower = stats.beta.ppf(spent, guesses, DRAWS - guesses + 1) if guesses else 0.0
        extra = delta * sides / 2.0 / s_lower if s_lower else (math.inf if delta else 0.0)
    accuracy = min(1.0, (math.exp(epsilon) + extra) / (1.0 + math.exp(epsilon)))
    return min(1.0, spent + stats.binom.sf(correct - 1, guesses, accuracy))


@pytest.mark.parametrize("rule", [BOTH, ONE], ids=["both", "one"])
@pytest.mark.parametrize("name", sorted(LINES))
@pytest.mark.parametrize("level", [0.05, 0.003])
def test_p_value_and_bound_are_those_of_the_binomial_test_at_the_line(name, rule, level):
    claim, anchor, line_of = LINES[name]
    verdicts = set()
    for correct, wrong in ((0, 0), (0, 9), (3, 0), (14, 2), (25, 5), (40, 20), (40, 40), (60, 1), (80, 0)):
        game = FixedGame(claim, DRAWS)
        game.set_rule(rule, anchor)
        game.start(level)
        abstained = DRAWS - correct - wrong
        # Right on x or on x_prime, in any split: here a third of each is of x_prime.
        right, missed, none = correct // 3, wrong // 3, abstained // 3
        game.add(np.array([wrong - missed, correct - right, abstained - none]), np.array([right, missed, none]))
        game.update()
        assert game.counts == (correct, wrong, abstained)
        epsilon, delta = line_of(claim.value)
        assert game.line == {"epsilon": pytest.approx(epsilon), "delta": pytest.approx(delta)}
        expected = p_value(correct, wrong, rule.sides, level, epsilon, delta, name != "pure")
        assert game.p_value == pytest.approx(expected, rel=1e-9)
        assert game.is_rejected == (game.lower > claim.value) == (game.p_value <= level)
        verdicts.add(game.is_rejected)
        if game.lower > 0.0:
            for by, is_rejected in ((1.0 - 1e-5, True), (1.0 + 1e-5, False)):
                at = p_value(correct, wrong, rule.sides, level, *line_of(game.lower * by), name != "pure")
                # 80 right of 80 with one event refute the fair coin, and so every value of free lines.
                assert (at <= level) == is_rejected or (game.lower > 1e5 and correct == DRAWS)
        else:
            assert p_value(correct, wrong, rule.sides, level, *line_of(1e-6), name != "pure") > level
    assert verdicts == {True, False}


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("guesses", [1, 30, 200])
def test_the_power_asks_for_the_fewest_right_guesses_that_reject(guesses, delta):
    game = FixedGame(ApproxDP(0.5, delta), 1_000)
    game.start(0.05)
    rejecting = [
        right
        for right in range(guesses + 1)
        if binomial.p_value(right, guesses, 1_000, 0.5, delta, 0.05, MASS_SHARE) <= 0.05
    ]
    assert game._critical(guesses, 0.5, delta) == min(rejecting, default=guesses + 1)


@pytest.mark.parametrize("rule", [BOTH, ONE], ids=["both", "one"])
def test_the_joint_test_pays_half_of_delta_for_each_event(rule):
    game = FixedGame(ApproxDP(1.0, 0.02), 2_000)
    game.set_rule(rule, 0.0)
    game._weight = 6.0  # as a pilot with rare wrong guesses fixes it
    game.start(0.05)
    game.add(np.array([1, 60, 939]), np.array([40, 1, 959]))
    game.update()
    level = 0.05 * (1.0 - fixed_game.BINOMIAL_SHARE)
    cost = 0.02 * rule.sides / 2.0
    p_values = [joint_p_value(100, 2, 2_000, game.lower * by, cost, 6.0, level) for by in (1.0 - 1e-4, 1.0 + 1e-4)]
    assert game.lower > 1.0 and p_values[0] <= level < p_values[1]


def test_the_level_is_fixed_by_start_and_lets_the_trial_go():
    game = FixedGame(PureDP(1.0), 100)
    assert math.isnan(game.level)
    game.trial = "of the pilot"
    game.start(0.01)
    assert (game.level, game.trial) == (0.01, None)
    game.set_rule(ONE, 0.0)
    assert game.counts == (0, 0, 0) and game.p_value == 1.0 and game.log_wealth is None and game.lower == 0.0


# --- what a record on the pilot has to show ---


@pytest.mark.parametrize(
    ("right", "wrong", "something", "enough", "hopeful"),
    [
        (30, 30, True, True, False),  # 60 guesses
        (30, 29, False, True, False),
        (12, 0, True, True, True),  # 12 right ones, none wrong
        (11, 0, False, False, True),
        (12, 1, False, True, True),
        (5, 0, False, False, True),  # 5 right ones are hope
        (4, 0, False, False, False),
        (40, 10, False, True, True),  # of 5% of the draws
        (40, 11, False, True, False),
    ],
)
def test_records_show_something_by_how_often_they_guess(right, wrong, something, enough, hopeful):
    record = Shown(right / 1_000, wrong / 1_000, 2, 1_000)
    assert fixed_game._shows_something(record) == something
    assert fixed_game._has_enough_right(record) == enough
    assert fixed_game._is_hopeful(record) == hopeful


class Score:
    """A score that notes for which masses it was asked for a rule."""

    def __init__(self, rule):
        self.rule, self.asked = rule, []

    def rule_like(self, rule, masses):
        self.asked.append(masses)
        return self.rule


@pytest.mark.parametrize(
    ("shown", "is_alike"), [(0.10, True), (0.149, True), (0.151, False), (0.067, True), (0.066, False), (0.5, False)]
)
def test_a_rule_guesses_about_as_often_as_what_was_shown_or_takes_its_masses(shown, is_alike):
    fitted = FittedRule(BOTH, 0.08, 0.02, 500)
    score = Score(ONE)
    record = Shown(0.8 * shown, 0.2 * shown, 2, 400, masses=(0.03, 0.04, 1))
    found = fixed_game._as_shown(fitted, record, score)
    if is_alike:
        assert found is fitted and not score.asked
    else:
        assert score.asked == [(0.03, 0.04)]
        assert (found.rule, found.correct, found.wrong, found.draws) == (ONE, record.correct, record.wrong, 500)


def test_a_record_of_something_else_leaves_the_rule():
    fitted = FittedRule(BOTH, 0.08, 0.02, 500)
    for record in (Shown(0.4, 0.1, 2, 400), Shown(0.4, 0.1, 2, 400, masses=(0.03, 0.04, -1))):
        assert fixed_game._as_shown(fitted, record, Score(ONE)) is fitted
    of_nan = FittedRule(Rule(Coordinate(0, 1), -0.5, 0.5, 1, Reading(1), 1), 0.08, 0.02, 500)
    record = Shown(0.4, 0.1, 2, 400, masses=(0.03, 0.04, 1))
    assert fixed_game._as_shown(of_nan, record, Score(ONE)) is of_nan
    never = Rule(Coordinate(0, 1), -math.inf, math.inf, 1, Reading(1), ABSTAIN)
    assert fixed_game._as_shown(fitted, record, Score(never)) is fitted  # a rule that never guesses is none


# --- fits ---


def column(values):
    return Outcomes(np.asarray(values, dtype=float)[:, None])


def test_a_fit_for_sureness_needs_no_rule_and_forgets_an_earlier_one():
    rng = np.random.default_rng(20_261_130)
    game = FixedGame(PureDP(1.0), 1_000)
    told = column(np.ones(200)), column(-np.ones(200))
    game.fit(*told, 0.05, aim="sureness")
    assert game.is_sure and game.rule.guess(column([1.0, -1.0])).tolist() == [1, 0]
    same = column(rng.normal(size=200)), column(rng.normal(size=200))
    game.fit(*same, 0.05, aim="sureness")
    assert not game.is_sure
    with pytest.raises(AssertionError, match="fit comes before counting"):
        _ = game.rule
    few = column(np.ones(29)), column(-np.ones(29))  # 58 right guesses: 30 are sure, of both sides together
    game.fit(*few, 0.05, aim="sureness")
    assert game.is_sure
    game.fit(column(np.ones(14)), column(-np.ones(15)), 0.05, aim="sureness")
    assert not game.is_sure


@pytest.mark.parametrize("budget", [0.5, 3.0])
def test_the_fitted_rule_of_noise_is_at_least_as_strong_as_half_of_what_the_best_threshold_gives(budget):
    """Normal noise, moved by 1: of all thresholds on 4,000 draws a side, by the normal law."""
    rng = np.random.default_rng(20_261_131)
    game = FixedGame(PureDP(budget), 8_000)
    game.fit(column(1.0 + rng.normal(size=2_000)), column(rng.normal(size=2_000)), 0.05)
    game.start(0.05)
    at = np.linspace(-3.0, 5.0, 400_001)
    guesses = game.rule.guess(column(at))
    density = {1: stats.norm.pdf(at - 1.0), 0: stats.norm.pdf(at)}

    def loss_of(guess):
        right = sum(density[k][guess == k].sum() for k in (0, 1)) * 2e-5 / 2.0
        wrong = sum(density[1 - k][guess == k].sum() for k in (0, 1)) * 2e-5 / 2.0
        count = 8_000 * (right + wrong)
        share = right / (right + wrong)
        lowest = share - 1.645 * math.sqrt(share * (1.0 - share) / count)
        return math.log(lowest / (1.0 - lowest))

    at_thresholds = (np.where(at >= 0.5 + t, 1, np.where(at <= 0.5 - t, 0, ABSTAIN)) for t in np.linspace(0.0, 2.5, 26))
    best = max(loss_of(guess) for guess in at_thresholds)
    assert loss_of(guesses) >= 0.5 * best > 0.5
