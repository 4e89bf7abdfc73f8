"""Which rule of a pair is chosen on the pilot, and its merit: by brute force over all rules, and anchors of free lines.

Rules are chosen on draws that are not counted, so nothing here has an error rate. What a rule has shown is lowered by
its deviations in the test to come and by two of the pilot's; those are computed here by the delta method, with
numerical slopes for lines of their own.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import optimize, stats

import dpaudit
from dpaudit.inference.pair_lines import PairLines
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.privacy.pair_budgets import PairBudgets

PAIRS, WAYS, STEPS = 5, 3, 6
SIDES = np.array([2.0, 1.0, 1.0])[None, :, None]
TRAINED, LABELLED, QUANTILE = 1_400.0, 3_000.0, -3.5


class Pilot(NamedTuple):
    """Right and wrong guesses of every rule, as shares of the draws, shape (pairs, ways, steps)."""

    correct: np.ndarray
    wrong: np.ndarray


def with_budgets(claim, budget):
    """The lines of pairs of one claim with a budget each."""
    budget = np.asarray(budget, dtype=float)
    return PairLines(dataclasses.replace(PairBudgets.same(claim, len(budget)), values=budget))


def chosen_by(lines, pairs, seen):
    """The place (over ways and steps) of the rule of each pair, and its merit."""
    way, step, merit = lines.best(pairs, *seen, TRAINED, LABELLED, stats.norm.cdf(QUANTILE))
    return way * STEPS + step, merit


RNG = np.random.default_rng(20_261_126)


def pilots(most_right, most_wrong):
    """Of each pair and rule how many of the draws were guessed right and wrong: whole numbers, some of them 0."""
    right = np.floor(RNG.random((PAIRS, WAYS, STEPS)) ** 2 * most_right * TRAINED * SIDES / 2.0)
    wrong = np.floor(RNG.random((PAIRS, WAYS, STEPS)) ** 3 * most_wrong * TRAINED * SIDES / 2.0)
    return Pilot(right / TRAINED, wrong / TRAINED)


def places(seen):
    """Each pair, and each of its rules with its place, shares of right and wrong guesses, and events."""
    for pair in range(len(seen.correct)):
        rules = [
            (way * STEPS + step, seen.correct[pair, way, step], seen.wrong[pair, way, step], SIDES[0, way, 0])
            for way in range(WAYS)
            for step in range(STEPS)
        ]
        yield pair, rules


def lowered(value, variance):
    """Less what the test to come takes at its level, and two deviations of the pilot, as one deviation."""
    return value - math.hypot(QUANTILE * math.sqrt(variance / LABELLED), 2.0 * math.sqrt(variance / TRAINED))


@pytest.mark.parametrize("delta", [0.0, 0.04])
def test_a_line_of_its_own_takes_the_rule_with_the_highest_lowered_odds(delta):
    seen = pilots(0.5, 0.2)
    seen.correct[0] = np.minimum(seen.correct[0], delta / 2.0)  # one pair of which delta allows everything
    budget = np.array([0.0, 0.3, 1.0, 2.0, 0.5, 9.0])
    asked = np.array([1, 0, 4, 3, 2])
    place, merit = chosen_by(with_budgets(dpaudit.ApproxDP(1.0, delta), budget), asked, seen)
    for pair, rules in places(seen):
        found = {}
        for where, right, wrong, sides in rules:
            wrong += 1.0 / TRAINED  # one more than was seen: what was lucky does not win
            cost = delta * sides / 2.0
            if right > cost:

                def odds(at, cost=cost):
                    return math.log((at[0] - cost) / at[1])

                slopes = optimize.approx_fprime([right, wrong], odds, [1e-9, 1e-9])
                variance = slopes[0] ** 2 * right + slopes[1] ** 2 * wrong  # counts that are nearly Poisson
                value = odds([right, wrong])
                found[where] = (
                    lowered(value, variance),
                    (value - budget[asked[pair]]) / math.sqrt(variance / TRAINED),
                )
        if found:
            best = max(found, key=lambda where: found[where][0])
            assert found[int(place[pair])][0] == pytest.approx(found[best][0], abs=1e-4)
            assert merit[pair] == pytest.approx(found[int(place[pair])][1], rel=1e-4, abs=1e-4)
        else:
            assert merit[pair] == -math.inf
    assert (merit == -math.inf).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("claim", [dpaudit.GaussianDP(1.0), dpaudit.GaussianDP(0.0), dpaudit.GaussianDP(4.0)], ids=str)
def test_free_lines_take_the_clearest_of_the_best_rules_at_each_anchor(claim):
    """By hand, a rule and an anchor at a time: log odds less the anchor, lowered as those of a line of its own."""
    seen = pilots(0.5, 0.2)
    place, merit = chosen_by(with_budgets(claim, np.full(9, claim.value)), np.arange(PAIRS), seen)
    for pair, rules in places(seen):
        best = []
        for anchor in PAYOFF_SIZES.anchors:
            at_budget, found = float(claim.lines(np.array([claim.value]), anchor)[1][0]), []
            for where, right, wrong, sides in rules:
                wrong, over = wrong + 1.0 / TRAINED, right - at_budget * sides / 2.0
                if over > 0.0:
                    value, variance = math.log(over / wrong) - anchor, right / over**2 + 1.0 / wrong
                    found.append((lowered(value, variance), value / math.sqrt(variance / TRAINED), where))
            best += [max(found)[1:]] if found else []
        assert (merit[pair], place[pair]) == pytest.approx(max(best), rel=1e-9)


def test_a_rule_that_is_never_wrong_is_taken_for_free_lines_too():
    """40 right guesses of 1,400 and none wrong: of a rule with one event, against rules that show nothing."""
    right = np.zeros((1, WAYS, STEPS))
    right[0, 2, 4] = 40 / TRAINED
    seen = Pilot(right, np.zeros_like(right))
    for lines in (with_budgets(dpaudit.GaussianDP(0.3), [0.3]), with_budgets(dpaudit.ApproxDP(1.0, 1e-6), [0.3])):
        place, merit = chosen_by(lines, np.zeros(1, dtype=int), seen)
        assert place[0] == 2 * STEPS + 4 and merit[0] > 2.0
