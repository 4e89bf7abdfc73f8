"""The distance from a centre: when it is tried, what it is, and what it is worth."""

import math

import numpy as np
import pytest

import dpaudit
from dpaudit.learning.pilots import MOST_SORTED, CountedPilot, DrawnPilot, pilot_of
from dpaudit.learning.rules import Rule
from dpaudit.learning.scores import score_from_dict
from dpaudit.reading.distances import FEWEST, Distance, find_distance
from dpaudit.reading.outcomes import Outcomes


def outcomes(values):
    return Outcomes(np.array(values, dtype=float).reshape(-1, 1))


def test_a_distance_is_that_of_each_number_and_comes_back_from_data():
    distance = Distance(0.5)
    values = [0.5, -1.0, 2.0, math.inf, -math.inf, math.nan, 1.7e308]
    assert distance(outcomes(values)).tolist()[:5] == [0.0, 1.5, 1.5, math.inf, math.inf]
    assert math.isnan(distance(outcomes(values))[5])
    assert Distance(-1.7e308)(outcomes([1.7e308])).tolist() == [math.inf]
    assert score_from_dict(distance.to_dict(), None, 0.0, 1.0) == distance
    assert distance.describe() == "the distance of the output from 0.5"
    with pytest.raises(ValueError, match="centre must be finite, got inf"):
        score_from_dict({"kind": "distance", "centre": "inf"}, None, 0.0, 1.0)


def test_it_is_tried_where_both_tails_speak_for_the_same_input():
    # Fixed seed; by chance both tails of alike laws speak for one input by two deviations each in one case of 1,000.
    rng = np.random.default_rng(20_261_123)
    noise = rng.laplace(size=4_000), rng.laplace(size=4_000)
    found = find_distance(noise[0], 1.5 * noise[1])
    # The median's standard error is about 1 / sqrt(8,000): five of them.
    assert found is not None and abs(found.centre) < 0.06
    assert find_distance(1.5 * noise[0], noise[1]) is not None
    assert find_distance(noise[0], noise[1]) is None
    assert find_distance(noise[0], 1.0 + noise[1]) is None  # tails speak for different inputs
    assert find_distance(noise[0], np.where(noise[1] > 2.0, 9.0, noise[1])) is None  # one of them speaks for none
    few = FEWEST // 2 - 1
    assert find_distance(noise[0][:few], 9.0 * noise[1][:few]) is None


@pytest.mark.parametrize("values", [[], [math.nan] * 600, [math.inf] * 600, [1.0] * 600, [-math.inf, 2.0] * 300])
def test_numbers_without_tails_have_no_distance(values):
    assert find_distance(np.array(values), np.array(values)) is None
    assert find_distance(np.array(values), np.array([])) is None


@pytest.mark.parametrize("size", [2_000, MOST_SORTED + 1])
def test_both_kinds_of_pilots_try_it_and_know_how_distances_lie(size):
    rng = np.random.default_rng(20_261_123)
    first, second = rng.normal(size=size), 1.5 * rng.normal(size=size)
    pilot = pilot_of(outcomes(first), outcomes(second))
    assert isinstance(pilot, DrawnPilot if size <= MOST_SORTED else CountedPilot)
    (score,) = [score for score in pilot.scores() if score.kind == "Distance 1"]
    assert score.draws == 2 * size
    for edge in score.edges()[::20].tolist():  # a cell holds its lower edge
        rule = score.rule_like(Rule(score.score, -math.inf, 1.0, -1, score.reading), (0.0, 0.1))
        below, above = score.guessed_masses(Rule(score.score, edge, math.inf, -1, score.reading))
        far = np.concatenate([score.score.of(first), score.score.of(second)])
        assert below == pytest.approx(np.mean(far < edge), abs=1e-12) and above == 0.0
        assert np.mean(far > rule.high) == pytest.approx(0.1, abs=0.01)  # one cell of many
    moved = pilot_of(outcomes(first), outcomes(first + 1.0))
    assert all(score.kind != "Distance 1" for score in moved.scores())


@pytest.mark.parametrize("size", [MOST_SORTED, MOST_SORTED + 1])
def test_counted_pilots_see_what_drawn_ones_see(size):
    # Of ten fixed samples: noise larger by 8%, which both find in 19 of 20, and by nothing, in one of 1,000.
    rng = np.random.default_rng(20_261_123)
    found = {}
    for scale in (1.08, 1.0):
        pilots = [
            pilot_of(outcomes(rng.laplace(size=size)), outcomes(scale * rng.laplace(size=size))) for _ in range(10)
        ]
        found[scale] = sum("Distance 1" in {score.kind for score in pilot.scores()} for pilot in pilots)
    assert found[1.08] >= 8 and found[1.0] <= 1


@pytest.mark.parametrize("values", [[math.nan], [math.inf, 0.0], [1.0], [-math.inf, 2.0], [0.0, 1.0], [math.inf]])
def test_counted_numbers_without_tails_have_no_distance(values):
    first, second = np.resize(values, MOST_SORTED + 1), np.resize(values[::-1], MOST_SORTED + 1)
    pilot = pilot_of(outcomes(first), outcomes(second))
    assert isinstance(pilot, CountedPilot) and pilot.distance is None
    assert all(score.kind != "Distance 1" for score in pilot.scores())


def test_noise_of_another_size_is_bounded_by_both_tails():
    # Fixed seeds. Without the distance the median of these five is 2.46, by bins that know the tails less finely.
    def release(data, size, rng):
        return rng.normal(scale=data, size=size)

    found = [
        dpaudit.audit(
            release, "eps=0.5,delta=0.01", [(1.0, 1.5)], samples=100_000, mode="fixed", seed=seed, floating_point=False
        ).findings[0]
        for seed in range(5)
    ]
    assert sum("distance of the output from" in finding.witness.description for finding in found) >= 4
    assert sorted(finding.parameter_lower for finding in found)[2] > 2.5
