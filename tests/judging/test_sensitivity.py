"""Sensitivities found without sampling: of functions that have a known one, and where one is known to be hard."""

import math
import time
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import strategies as st
from sensitive_functions import CLAIMS, FUNCTIONS, TRACKS, domain, mechanism

from dpaudit import PureDP, as_subject, judge, parse_claim
from dpaudit.audits import climbing
from dpaudit.audits.climbing import LIMITS, Climb, climb
from dpaudit.audits.noise_free import NoiseFree
from dpaudit.domains import DatasetDomain, ListedDomain, NumberDomain, TableDomain, VectorDomain
from dpaudit.subjects.call_limits import until

SEED = 20_261_128
EPS = PureDP(1.0)


def _climb(function, place, claim=EPS, seed=SEED):
    noise_free = NoiseFree(as_subject(function), claim, seed)
    return climb(noise_free, place, seed)


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 10))])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_the_sensitivity_of_every_function_is_reached(function, n):
    if function.sensitivity(n) == 0.0:
        pytest.skip("a constant function")
    found = _climb(mechanism(function, "laplace", n, 0.5), domain(n))
    # Half of the noise that epsilon = 1 needs: the sensitivity is 2 scales.
    assert found.best[0].distance == pytest.approx(2.0, rel=1e-6)
    assert found.runs <= LIMITS.runs + 100
    assert domain(n).is_pair(found.best[0].x, found.best[0].x_prime)


@pytest.mark.long
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_no_more_than_the_sensitivity_is_ever_found(function):
    """What the bank says of each function is true as far as a search can tell."""
    for n in (2, 5):
        if function.sensitivity(n) > 0.0:
            found = _climb(mechanism(function, "gdp", n), domain(n), parse_claim("mu=1"))
            assert found.best[0].distance <= 1.0 + 1e-6


@pytest.mark.parametrize("track", TRACKS)
def test_every_track_shows_the_difference(track):
    found = _climb(mechanism(FUNCTIONS[0], track, 3, 0.5), domain(3), parse_claim(CLAIMS[track]))
    best = found.best[0]
    assert abs(best.x.sum() - best.x_prime.sum()) == pytest.approx(1.0, rel=1e-3)


def test_a_walk_that_ends_before_its_time_gives_no_pair(monkeypatch):
    monkeypatch.setattr(Climb, "is_over", lambda self, share=1.0: share == 1.0)  # after the ways were measured
    search = Climb(NoiseFree(as_subject(lambda x, rng: sum(x) + rng.laplace()), EPS, SEED), None, LIMITS)
    search._walk(VectorDomain(10, 0.0, 1.0, adjacency="one"))
    assert not search.found


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_a_climb_on_a_slow_machine_is_the_same_unless_a_limit_was_set(seconds, monkeypatch):
    def release(x, rng):
        return abs(x - 0.3) + rng.laplace()

    place = NumberDomain(0.0, 1.0)
    quick = climb(NoiseFree(as_subject(release), EPS, SEED), place, SEED)
    ticks = iter(range(10**9))
    monkeypatch.setattr(climbing.time, "monotonic", lambda: float(next(ticks)))  # a second a look at the clock
    with nullcontext() if seconds is None else until(seconds):
        slow = climb(NoiseFree(as_subject(release), EPS, SEED), place, SEED)
    assert slow.is_cut == (seconds is not None) and not quick.is_cut
    assert (slow.runs == quick.runs and slow.found == quick.found) == (seconds is None)


def test_a_judgement_says_where_its_time_cut_the_search():
    def release(x, rng):
        time.sleep(0.01)
        return abs(x - 0.3) + rng.laplace(scale=0.1)

    found = judge(release, "eps=10", domain=NumberDomain(0.0, 1.0), seconds=0.5, seed=1)
    assert found.searched["is_cut"] and "cut short" in found.scope


def test_a_number_moves_by_less_than_it_may():
    found = _climb(lambda x, rng: abs(x - 0.5) + rng.laplace(scale=0.25), NumberDomain(0.0, 1.0))
    assert found.best[0].distance == pytest.approx(2.0)


def test_a_jump_anywhere_in_a_dataset_is_met():
    def release(rows, rng):  # only between the 12th and the 13th row
        return 5.0 * (len(rows) > 12) + rng.laplace()

    found = _climb(release, DatasetDomain.between(0.0, 1.0))
    assert found.best[0].distance == 5.0
    assert sorted(map(len, (found.best[0].x, found.best[0].x_prime))) == [12, 13]


def test_a_jump_of_records_that_are_no_numbers_is_met():
    def release(rows, rng):
        return 3.0 * (rows.count("b") >= 4) + rng.laplace()

    found = _climb(release, DatasetDomain(("a", "b", "c"), 10, "replace_one", 10))
    assert found.best[0].distance == 3.0


def test_a_narrow_band_of_one_number_among_many_is_met():
    def release(x, rng):  # 1 in 33 of the range
        return float(sum(0.71 < v < 0.74 for v in x)) + rng.laplace()

    assert _climb(release, VectorDomain(20, 0.0, 1.0, adjacency="one")).best[0].distance == 1.0


def test_a_higher_hill_than_that_of_the_best_start_is_climbed():
    # The best start leads to 95% of the sensitivity: no function of the bank tells one climb from several.
    rng = np.random.default_rng(5)
    count = int(rng.integers(2, 7))
    places, widths, heights = rng.uniform(size=(count, 2)), rng.uniform(0.08, 0.4, count), rng.normal(size=count)

    def hills(x):
        gaps = ((np.asarray(x)[..., None, :] - places) ** 2).sum(-1)
        return (heights * np.exp(-gaps / (2.0 * widths**2))).sum(-1)

    grid = np.linspace(0.0, 1.0, 201)
    on_grid = hills(np.stack(np.meshgrid(grid, grid), axis=-1))
    sensitivity = max(np.ptp(on_grid, axis=axis).max() for axis in (0, 1))
    found = _climb(lambda x, rng: float(hills(x)) + rng.laplace(), VectorDomain(2, 0.0, 1.0, adjacency="one"), seed=5)
    assert found.best[0].distance == pytest.approx(sensitivity, rel=1e-3)


def test_several_numbers_move_together_where_each_may():
    def release(x, rng):
        return float(np.abs(np.asarray(x) - 2.0).sum()) + rng.laplace(scale=3.0)

    found = _climb(release, VectorDomain(3, 0.0, 10.0))
    assert found.best[0].distance == pytest.approx(1.0)


def test_one_number_goes_up_where_another_one_goes_down():
    def release(x, rng):
        return x[0] - x[2] + rng.laplace()

    found = _climb(release, VectorDomain(3, 0.0, 10.0, adjacency="moved"))
    assert found.best[0].distance == pytest.approx(2.0)


def test_a_table_is_searched_by_rows():
    table = TableDomain.of_example([{"age": 30, "pay": 1.0}, {"age": 40, "pay": 2.0}])

    def release(rows, rng):
        return sum(row["age"] for row in rows) + rng.laplace()

    assert _climb(release, table).best[0].distance >= 400.0  # ten times the largest age that the example shows


def test_listed_inputs_are_pairs_of_the_list():
    found = _climb(lambda x, rng: len(x) + rng.laplace(), ListedDomain(("a", "bcd", "ef")))
    assert found.best[0].distance == 2.0 and {found.best[0].x, found.best[0].x_prime} == {"a", "bcd"}


def test_a_strategy_of_structured_pairs_is_searched_and_shrunk():
    graphs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)
    pairs = st.tuples(graphs, st.tuples(st.integers(0, 3), st.integers(0, 3))).map(lambda p: (p[0], [*p[0], p[1]]))

    def loops(edges, rng):  # an edge to oneself counts five times
        return sum(5.0 if a == b else 1.0 for a, b in edges) + rng.laplace()

    found = _climb(loops, pairs)
    assert found.best[0].distance == pytest.approx(5.0, rel=1e-6)
    assert (found.best[0].x, found.best[0].x_prime) == ([], [(0, 0)])


def test_what_cannot_be_followed_is_counted_and_said():
    def release(x, rng):
        return type("Answer", (), {})(), rng.laplace()

    found = _climb(release, NumberDomain(0.0, 1.0))
    assert not found.best and found.lost > 0 and found.problem


def test_an_input_that_only_one_side_raises_on_is_infinitely_far():
    def release(rows, rng):
        return 1.0 / len(rows) + rng.laplace()

    assert math.isinf(_climb(release, DatasetDomain.between(0.0, 1.0)).best[0].distance)


def test_the_same_seed_gives_the_same_pairs():
    first, second = (_climb(mechanism(FUNCTIONS[7], "laplace", 6), domain(6)) for _ in range(2))
    assert [one.distance for one in first.best] == [one.distance for one in second.best]
    assert first.runs == second.runs
