"""Pools: which pairs share a game, what that game reads, and that outputs are moved one by one."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from dpaudit import ApproxDP, MetricDP, PureDP, UsageError, all_pairs
from dpaudit.campaign.label_game import LabelGame
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.pools import Member, MovedDensity, Pool, pool_pairs
from dpaudit.inference.tasks import Request
from dpaudit.privacy.inputs import distinct_inputs
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.protocol import location_of, says_so
from dpaudit_mechanisms.cities import CityLaplaceOpenDP
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.mwem import MWEM
from dpaudit_mechanisms.planar_laplace import PlanarLaplace
from dpaudit_mechanisms.randomised_response import RandomisedResponse
from dpaudit_mechanisms.statistical_queries import StatisticalLaplace

LAPLACE = Laplace(1.0)
DISTANCE = MetricDP(lambda x, y: float(np.abs(np.subtract(x, y)).sum()))


def groups_of(points, claim=DISTANCE, mechanism=LAPLACE, wanted=None, pairs=None):
    pairs = all_pairs(points) if pairs is None else pairs
    data, positions = distinct_inputs(pairs)
    claims = [claim.for_pair(pair.x, pair.x_prime) for pair in pairs]
    return pool_pairs(as_subject(mechanism), data, positions, claims, wanted)


# --- who says so ---

SAYS_SO = [
    (Laplace(1.0), 2.0, 3.5),
    (Laplace(1.0, (1.0, 2.0)), [0.0, 1.0], [5.0, -2.0]),
    (Gaussian(ApproxDP(1.0, 0.01)), 0.0, 1.5),
    (Geometric(1.0), 3, 7),
    (DxLaplace([0.0, 0.5, 3.0], np.ones((3, 3)) - np.eye(3), rule="single"), 0, 2),
    (DxLaplace([[0.0, 0.5, 3.0], [1.0, 0.0, 0.0]], np.ones((3, 3)) - np.eye(3)), 1, 2),
    (PlanarLaplace(10.0), (0.0, 0.0), (30.0, -4.0)),
    (StatisticalLaplace([[0.0], [1.0]], [1.0], [[0.0, 0.5], [0.5, 0.0]], 2), (0, 0), (1, 0)),
]


@pytest.mark.parametrize(
    ("mechanism", "x", "x_prime"), SAYS_SO, ids=[type(m).__name__ + str(i) for i, (m, *_) in enumerate(SAYS_SO)]
)
def test_the_reference_mechanisms_that_say_so_move_their_noise_by_the_location(mechanism, x, x_prime):
    # the same stream on both inputs gives the same noise: exact, but for rounding, so no error rate
    assert says_so(mechanism)
    first, second = (mechanism.sample(data, 200, np.random.default_rng(5)) for data in (x, x_prime))
    where = [location_of(mechanism, data) for data in (x, x_prime)]
    assert where[0].shape == first.shape[1:]
    # Numbers stay well below 1e3, where doubles are 1e-13 apart; adding the noise and taking the place away round once
    # each, a product of coordinates a few times: 1e-12 of 1e3 is a thousand times that.
    np.testing.assert_allclose(first - where[0], second - where[1], rtol=0, atol=1e-12 * 1e3)
    assert np.unique(np.round(first - where[0], 6), axis=0).shape[0] > 3


def test_what_clamps_rounds_or_chooses_does_not_say_so():
    assert not says_so(Geometric(1.0, bounds=(0, 5)))
    assert not says_so(CityLaplaceOpenDP)
    assert not says_so(RandomisedResponse(1.0, categories=2)) and not says_so(MWEM)


@pytest.mark.parametrize("data", ["a", None, True, [1.0, [2.0]], [], math.nan, [math.inf], 2**53, {"x": 1.0}], ids=repr)
def test_what_is_not_finite_numbers_has_no_location(data):
    assert location_of(Laplace(1.0), data) is None


def test_a_location_that_is_refused_is_none():
    assert location_of(PlanarLaplace(1.0), "nowhere") is None


# --- which pairs share a game ---


def test_equidistant_points_have_one_game_a_shift():
    pooling = groups_of([0.1 * k for k in range(10)])  # 0.1 * 3 is not 0.3: shifts agree but for rounding
    assert sorted(map(len, pooling.groups)) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert pooling.pools == 8 and not pooling.note
    assert sorted(k for group in pooling.groups for k in group) == list(range(45))


def test_points_of_different_shifts_or_budgets_are_not_pooled():
    assert groups_of([0.0, 1.0, 3.0, 7.0]).pools == 0
    budgets = MetricDP(lambda x, y: 1.0 + max(x, y))
    assert groups_of([0.0, 1.0, 2.0], budgets).pools == 0
    assert groups_of([0.0, 1.0, 2.0], PureDP(1.0)).pools == 1


def test_a_small_shift_far_from_zero_is_not_taken_for_another():
    points = [1e6, 1e6 + 0.001, 1e6 + 0.003]  # shifts of 0.001 and 0.002, of 9 digits the same as the largest point
    assert groups_of(points, PureDP(1.0)).pools == 0


def test_opposite_shifts_are_two_games():
    assert groups_of([], PureDP(1.0), pairs=all_pairs([0.0, 1.0])[:] + all_pairs([2.0, 1.0])[:]).pools == 0


def test_vectors_are_pooled_by_all_coordinates():
    points = [(x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)]
    pooling = groups_of(points, mechanism=Laplace(1.0, (1.0, 1.0)))
    assert sorted(map(len, pooling.groups)) == [1, 1, 2, 2]


def test_only_a_mechanism_that_says_so_is_pooled_and_only_if_asked():
    class Silent(Laplace):
        translation_family = False

    assert groups_of([0.0, 1.0, 2.0], mechanism=Silent(1.0)).pools == 0
    assert groups_of([0.0, 1.0, 2.0], wanted=False).pools == 0
    with pytest.raises(UsageError, match=r"pool must be False or None for .*, got True"):
        groups_of([0.0, 1.0, 2.0], mechanism=Silent(1.0), wanted=True)


def test_an_input_without_a_location_is_an_error_or_a_note():
    points, claim = [0.0, 1.0, 2.0, "a"], PureDP(1.0)
    pooling = groups_of(points, claim)
    assert pooling.pools == 1 and sorted(map(len, pooling.groups)) == [1, 1, 1, 1, 2]
    assert pooling.note == "1 of 4 inputs are not finite numbers below 2^53: their pairs are not pooled"
    with pytest.raises(UsageError, match=r"pool must be .*, got 'a'"):
        groups_of(points, claim, wanted=True)


# --- what a game reads ---


def chain(points, step):
    return Pool([Member((k, k + step)) for k in range(points - step)])


def test_the_breadth_is_what_the_busiest_input_allows():
    assert Pool.single((3, 5)).breadth == 1.0 and Pool.single((3, 5)).labelled(101) == 101
    assert chain(10, 1).breadth == 4.5 and chain(10, 8).breadth == 2.0 and chain(10, 4).breadth == 3.0


def test_a_single_pair_tosses_the_coins_that_it_always_tossed():
    quotas = Pool.single((0, 1)).quotas(1_000, np.random.default_rng(4))
    ones = np.random.default_rng(4).binomial(1_000, 0.5)
    assert quotas.tolist() == [[ones], [1_000 - ones]]


def test_no_draw_is_read_twice():
    pool = chain(6, 1)
    quotas = pool.quotas(500, np.random.default_rng(2))
    assert quotas.sum() == 500
    for i in pool.inputs:
        reads = sorted((read.start, read.quota) for read in pool.reads(quotas) if read.input == i)
        ends = [start + quota for start, quota in reads]
        assert [start for start, _ in reads] == [0, *ends[:-1]]


def test_members_and_labels_are_uniform_and_independent():
    # Pearson's test of the 10 cells on 40,000 tosses: it fails a right sampler with probability 1e-6
    quotas = chain(6, 1).quotas(40_000, np.random.default_rng(11))
    assert stats.chisquare(quotas.ravel()).pvalue > 1e-6
    coins = [chain(3, 1).quotas(1, np.random.default_rng(seed)).ravel().tolist() for seed in range(64)]
    assert len(set(map(tuple, coins))) == 4


# --- moved outputs ---

MOVES = [
    ([1.5, -2.0, math.inf, -0.0], np.array(0.5)),
    ([3, 5, -7], np.array(3.0)),
    ([True, False], np.array(1.0)),
    ([[1.0, 2.0], [3.0, math.inf]], np.array([1.0, -1.0])),
    (np.array([[1, 2], [3, 4]], dtype=np.uint8), np.array([9.0, 0.0])),
    (np.array([1.25, 2.5], dtype=np.float32), np.array(0.1)),
    (np.array([1 + 2j, 3.0]), np.array([1.0, 2.0])),
    ([(1.0, 2.0), (3.0, 4.0)], np.array(1.0)),  # of another shape: as they are
    (["a", "b"], np.array(1.0)),
]


@pytest.mark.parametrize(("outputs", "by"), MOVES, ids=range(len(MOVES)))
def test_an_output_is_moved_alike_in_a_batch_of_numbers_and_among_objects(outputs, by):
    alone = read_outputs(outputs, len(outputs)).moved(by)
    mixed = read_outputs([*outputs, None], len(outputs) + 1).moved(by)
    assert alone.as_objects().tokens.tolist() == mixed.tokens[:-1].tolist()
    if alone.tokens is None:
        columns = alone.numbers.shape[1]
        np.testing.assert_array_equal(alone.numbers, mixed.as_numbers(columns)[:-1])
    assert mixed.tokens[-1] == "None"


def test_integers_stay_integers_where_they_are_moved_by_one():
    outcomes = read_outputs(np.array([2**51 + 1, 4]), 2)
    moved = outcomes.moved(np.array(2.0**51))
    assert moved.is_integer and moved.numbers.ravel().tolist() == [1.0, 4.0 - 2**51]
    assert not outcomes.moved(np.array(0.5)).is_integer
    assert outcomes.moved(None) is outcomes


def test_integers_beyond_the_doubles_stay_as_they_are():
    big = 2**53 + 1
    assert read_outputs([big, 3], 2).moved(np.array(1.0)).tokens.tolist() == [repr(big), "2.0"]


def test_the_moved_density_is_that_of_the_inputs_themselves():
    seen = []

    def log_density(data, outputs):
        seen.append((data, outputs.dtype.kind))
        return -np.abs(outputs - data).astype(float)

    density = MovedDensity(log_density, 3, 5, np.array(3.0))
    assert density(np.array(0.0), np.array([0, 2])).tolist() == [0.0, -2.0]
    assert density(np.array(2.0), np.array([0.0, 2.0])).tolist() == [-2.0, 0.0]
    assert seen == [(3, "i"), (5, "f")]


def test_what_a_worker_is_sent_of_a_pool_counts_the_same_there():
    game = LabelGame(
        [PureDP(1.0)],
        [Pool([Member((0, 1), np.array(0.0), np.array(1.0)), Member((1, 2), np.array(1.0), np.array(1.0))])],
        samples=200,
        error_rate=0.05,
        mode="fixed",
        draw=WorkerPool().drawer(as_subject(LAPLACE), [0.0, 1.0, 2.0], 1, 0),
        coin=lambda round_, pair: np.random.default_rng([round_, pair]),
        log_density=as_subject(LAPLACE).log_density,
        data=[0.0, 1.0, 2.0],
    )
    game.start()
    request = Request(30, game.pairs[0].main.statistic, 10, np.array(1.0))
    outcomes = read_outputs(LAPLACE.sample(1.0, 64, np.random.default_rng(3)), 64)
    again = pickle.loads(pickle.dumps(request))
    assert request.count(outcomes).tolist() == again.count(outcomes).tolist()
    parts = [request.within(start, 16).count(outcomes.rows(slice(start, start + 16))) for start in range(0, 64, 16)]
    assert np.sum(parts, axis=0).tolist() == request.count(outcomes).tolist()
    of_30 = request.statistic.count(outcomes.rows(slice(10, 40)).moved(np.array(1.0)))
    assert of_30.sum() and request.count(outcomes).tolist() == of_30.tolist()
