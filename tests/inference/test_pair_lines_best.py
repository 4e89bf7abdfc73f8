"""Which rule of a pair is chosen on the pilot, and its merit: by brute force over all rules, and anchors of free lines.

Rules are chosen on draws that are not counted, so nothing here has an error rate. What a rule has shown is lowered by
its deviations in the test to come and by two of the pilot's; those are computed here by the law of one draw, or by the
delta method with numerical slopes.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import optimize

import dpaudit
from dpaudit.inference.pair_lines import PairLines, PilotRecords
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.privacy.pair_budgets import PairBudgets

PAIRS, WAYS, STEPS = 5, 3, 6
SIDES = np.array([2.0, 1.0, 1.0])[None, :, None]
TRAINED, LABELLED, QUANTILE = 1_400.0, 3_000.0, -3.5


def with_budgets(claim, budget):
    """The lines of pairs of one claim with a budget each."""
    budget = np.asarray(budget, dtype=float)
    return PairLines(dataclasses.replace(PairBudgets.same(claim, len(budget)), values=budget))


def chosen_by(lines, pairs, seen):
    """The place (over ways and steps) of the rule of each pair, and its merit."""
    way, step, merit = lines.best(pairs, seen)
    return way * STEPS + step, merit


RNG = np.random.default_rng(20_261_126)


def pilots(most_right, most_wrong):
    """Of each pair and rule how many of the draws were guessed right and wrong: whole numbers, some of them 0."""
    right = np.floor(RNG.random((PAIRS, WAYS, STEPS)) ** 2 * most_right * TRAINED * SIDES / 2.0)
    wrong = np.floor(RNG.random((PAIRS, WAYS, STEPS)) ** 3 * most_wrong * TRAINED * SIDES / 2.0)
    return PilotRecords(right / TRAINED, wrong / TRAINED, TRAINED, LABELLED, QUANTILE)


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


def test_what_is_shown_is_lowered_by_the_quantile_in_the_test_and_by_two_deviations_in_the_pilot():
    seen = pilots(0.5, 0.2)
    assert 1.0 - math.sqrt(0.3 * seen.variance) == pytest.approx(lowered(1.0, 0.3), rel=1e-12)


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


def all_expected(claim, seen, rules):
    """Of each rule and anchor: the bound that is expected, its lowered excess, and its deviations over the budget."""
    values = np.geomspace(1e-4, 1e4, 16_001)  # in a ratio of 1.0012
    value = np.array([claim.value])
    for anchor in PAYOFF_SIZES.anchors:
        deltas = claim.lines(values, anchor)[1]
        at_budget = float(claim.lines(value, anchor)[1][0])
        for where, right, wrong, sides in rules:
            wrong += 1.0 / TRAINED
            law = [right, wrong, 1.0 - right - wrong]  # of what one draw adds
            adds = np.array([1.0, -math.exp(anchor), 0.0])
            mean = float(adds @ law)
            variance = max(float((adds - mean) ** 2 @ law), TRAINED**-2)
            shown = 2.0 / sides * lowered(mean, variance)
            broken = np.flatnonzero(deltas < shown)
            bound = values[broken[-1]] if len(broken) else 0.0
            over = (mean - at_budget * sides / 2.0) / math.sqrt(variance / TRAINED)
            yield where, bound, shown, over


@pytest.mark.parametrize("claim", [dpaudit.GaussianDP(1.0), dpaudit.GaussianDP(0.0), dpaudit.GaussianDP(4.0)], ids=str)
def test_free_lines_take_the_rule_with_the_highest_expected_bound_over_all_anchors(claim):
    seen = pilots(0.5, 0.2)
    place, merit = chosen_by(with_budgets(claim, np.full(9, claim.value)), np.arange(PAIRS), seen)
    for pair, rules in places(seen):
        found = list(all_expected(claim, seen, rules))
        most = max(bound for _, bound, _, _ in found)
        assert most > 0.1
        # Neighbouring values that a bound may have differ by 10% at most.
        merits = [over for where, bound, _, over in found if where == place[pair] and bound >= most / 1.1]
        assert merits, (pair, place[pair])
        assert min(abs(merit[pair] - over) for over in merits) < 1e-6 * max(1.0, abs(merit[pair]))


def test_where_no_bound_is_expected_free_lines_take_what_shows_most_of_an_excess():
    claim = dpaudit.GaussianDP(1.0)
    same = np.floor(RNG.random((PAIRS, WAYS, STEPS)) * 0.4 * TRAINED) / TRAINED
    seen = PilotRecords(same, same + 0.01, TRAINED, LABELLED, QUANTILE)
    place, merit = chosen_by(with_budgets(claim, np.full(PAIRS, claim.value)), np.arange(PAIRS), seen)
    for pair, rules in places(seen):
        found = list(all_expected(claim, seen, rules))
        assert max(bound for _, bound, _, _ in found) == 0.0
        where, _, _, over = max(found, key=lambda one: one[2])
        assert place[pair] == where and merit[pair] == pytest.approx(over, rel=1e-9)


def test_a_rule_that_is_never_wrong_is_taken_for_free_lines_too():
    """40 right guesses of 1,400 and none wrong: of a rule with one event, against rules that show nothing."""
    right = np.zeros((1, WAYS, STEPS))
    right[0, 2, 4] = 40 / TRAINED
    seen = PilotRecords(right, np.zeros_like(right), TRAINED, LABELLED, QUANTILE)
    for lines in (with_budgets(dpaudit.GaussianDP(0.3), [0.3]), with_budgets(dpaudit.ApproxDP(1.0, 1e-6), [0.3])):
        place, merit = chosen_by(lines, np.zeros(1, dtype=int), seen)
        assert place[0] == 2 * STEPS + 4 and merit[0] > 2.0
