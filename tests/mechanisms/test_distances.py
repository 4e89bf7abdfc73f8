"""Distance queries by metric structure: statistics, calibrations, mechanisms, embeddings, the errors they raise, and
audits, of which an adaptive analyst is a part. Twins are found in meta/test_power.py.

Every audit has confidence 1 - 1e-6: a sound mechanism is called violated with probability at most 1e-6, for any seed.
"""

import itertools
import math

import numpy as np
import pytest
from sampler_checks import DRAWS, is_drawn_from_outcomes
from scipy import integrate, special, stats
from support.refusals import refusals

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, PureDP
from dpaudit_mechanisms.distances import (
    AverageDistances,
    Calibration,
    EmbeddedDistances,
    FixedQueries,
    Hypothesis,
    InteractiveDistances,
    MetricDistances,
    OfflineDistances,
    RandomProjection,
    SlopeSeeker,
    StableProjection,
    SubsetDistances,
    TangentHypotheses,
    most_updates,
    practical,
    printed,
)
from dpaudit_mechanisms.distances.calibration import largest_rho
from dpaudit_mechanisms.distances.learner import gap_of_updates
from dpaudit_mechanisms.faulty.distances import (
    EmbeddingLooksAtTheData,
    LearnerForgetsTheSlopes,
    SparseVectorNotRefreshed,
    _difference_tail,
    on_the_line,
    worst_pair,
)


def test_hypotheses_of_many_runs_are_the_largest_of_their_lines():
    """Each line goes through its point, with its slope clipped: by the definition, run by run."""
    rng = np.random.default_rng(20_261_631)
    many, widths = TangentHypotheses(5, 20, [1.0, 0.5]), np.array([1.0, 0.5])
    lines = [[] for _ in range(5)]
    for _ in range(12):
        rows = np.flatnonzero(rng.random(5) < 0.5)
        points, values = rng.uniform(size=(2, len(rows), 2)) * widths
        slopes = rng.normal(size=(len(rows), 2))
        many.update(rows, points, values, slopes)
        for row, *line in zip(rows, points, values, np.clip(slopes, -1.0, 1.0), strict=True):
            lines[row].append(line)
        at = rng.uniform(size=(5, 2)) * widths
        expected = [np.max([np.zeros(2), *(v + a * (y - x) for x, v, a in lines[j])], axis=0) for j, y in enumerate(at)]
        assert many.predict(at) == pytest.approx(np.array(expected), abs=1e-12)


def test_a_gap_and_its_number_of_updates_belong_together():
    for widths in ([1.0], [0.5, 0.5], [1.0, 0.2, 0.1]):
        for updates in (len(widths), len(widths) + 1, 10, 57, 1000):
            gap = float(gap_of_updates(updates, widths))
            assert most_updates(gap, widths) == updates
            assert most_updates(gap * 0.99, widths) >= updates
    assert gap_of_updates([1, 2], [0.5, 0.5])[0] == math.inf


@pytest.mark.parametrize("ends_above", [False, True])
def test_an_epoch_has_the_probability_of_its_integral(ends_above):
    tuned = Calibration(1, [1.0], 1, 0.0, 0.8, 0.5, 1.0)
    mechanism = InteractiveDistances(tuned, FixedQueries([[0.0]]), 1, release="transcript")
    for excesses in ([0.3, -2.0, 0.1, 0.9], [5.0], [-1.0, 1.0], [0.0, 0.0]):

        def integrand(r, excesses=excesses):
            below = stats.laplace.cdf(r - np.array(excesses), scale=0.5)
            if ends_above:
                below[-1] = stats.laplace.sf(r - excesses[-1], scale=0.5)
            return stats.laplace.pdf(r, scale=0.8) * below.prod()

        edges = sorted({-40.0, 0.0, 40.0, *excesses})
        expected = sum(integrate.quad(integrand, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(edges))
        found = mechanism._epochs(np.array([excesses]), ends_above)[0]
        assert found == pytest.approx(math.log(expected), abs=1e-8)


@pytest.mark.parametrize(("b1", "b2"), [(1.0, 1e3), (1.0, 1e4), (1e4, 1.0), (1e-3, 1.0), (1.0, 1e-3)])
def test_epochs_of_unequal_scales_have_probabilities_that_sum_to_one_and_keep_the_accounting(b1, b2):
    """One comparison has a closed form: P(Lap(b1) - Lap(b2) >= at). Fixed nodes missed scales 150-fold apart."""
    tuned = Calibration(2, [1.0], 1, 0.5, b1, b2, 6.0)
    mechanism = InteractiveDistances(tuned, FixedQueries([[0.0], [1.0], [0.5]]), 3, "position")
    for pair in mechanism.pairs():
        assert mechanism.distribution(pair.x).sum() == pytest.approx(1.0, abs=1e-12)
        assert mechanism.privacy_loss(pair.x, pair.x_prime) <= tuned.comparison_epsilon
    for excess in (-0.7, 0.0, 0.3, 5.0):
        below = float(_difference_tail(np.array(excess), b1, b2))  # noise of the threshold - of the query >= excess
        found = mechanism._epochs(np.array([[excess]]), False)[0]
        assert found == pytest.approx(math.log(below), abs=1e-9)


def test_losses_of_positions_are_finite_where_probabilities_are_too_small_for_a_double():
    tuned = Calibration(2, [1.0], 1, 0.5, 1e-2, 1e-5, 6.0)
    mechanism = InteractiveDistances(tuned, FixedQueries([[0.0], [1.0], [0.5]]), 3, "position")
    loss = mechanism.privacy_loss([[0.0], [1.0]], [[0.0], [0.0]])
    assert 1_000.0 < loss <= tuned.comparison_epsilon


@pytest.mark.parametrize("epsilon", [1e-16, 1e-14, 1e-12, 1e-6, 1.0])
def test_the_budget_in_zcdp_gives_back_no_more_than_epsilon(epsilon):
    """A difference of square roots overspent epsilon = 1e-12 by 0.03 percent, and gave 0 at 1e-16."""
    rho = largest_rho(epsilon, 1e-6)
    assert rho + 2.0 * math.sqrt(rho * math.log(1e6)) == pytest.approx(epsilon, rel=1e-12)
    assert practical(10, [1.0], epsilon, 1e-6, queries=1, beta=0.1).epsilon == pytest.approx(epsilon, rel=1e-9)


def test_the_position_of_the_first_flag_has_its_law_and_its_exact_loss_is_below_the_accounting():
    tuned = Calibration(2, [1.0], 1, 0.3, 0.7, 0.9, 6.0)
    for analyst in (FixedQueries([[0.0], [1.0], [0.5]]), SlopeSeeker(1.0, 1.0)):
        mechanism = InteractiveDistances(tuned, analyst, 3, "position")
        for pair in mechanism.pairs():
            law = mechanism.distribution(pair.x)
            assert law.sum() == pytest.approx(1.0, abs=1e-12)
            drawn = mechanism.sample(pair.x, DRAWS, np.random.default_rng(20_261_634))
            assert is_drawn_from_outcomes(drawn, np.arange(4), law)  # false alarm rate 1e-10
            assert not is_drawn_from_outcomes(drawn, np.arange(4), law[::-1])  # the control
            assert np.exp(mechanism.log_density(pair.x, [0, 3, 7, 0.5])) == pytest.approx([law[0], law[3], 0.0, 0.0])
            loss = mechanism.privacy_loss(pair.x, pair.x_prime)
            assert 0.0 < loss <= tuned.comparison_epsilon


def test_kept_comparison_noise_has_the_law_of_one_variable():
    equal = Calibration(1, [1.0], 1, 0.5, 1.0, 1.0, 6.0)
    law = SparseVectorNotRefreshed(equal, FixedQueries([[0.0]]), 1, "position").distribution([[0.0]])
    assert law[1] == pytest.approx(1.0 - 0.5 * 1.25 * math.exp(-0.5), abs=1e-12)  # equal scales
    tuned = Calibration(1, [1.0], 1, 0.5, 0.5, 1.0, 6.0)
    twin = SparseVectorNotRefreshed(tuned, FixedQueries([[0.0], [1.0], [0.0]]), 3, "position")
    pair = twin.pairs()[0]
    for data in (pair.x, pair.x_prime):
        drawn = twin.sample(data, DRAWS, np.random.default_rng(20_261_635))
        assert is_drawn_from_outcomes(drawn, np.arange(4), twin.distribution(data))  # false alarm rate 1e-10
    assert twin.privacy_loss(pair.x, pair.x_prime) == math.inf


def test_impossible_transcripts_have_no_density_and_answers_none_at_all():
    tuned = Calibration(1, [1.0], 1, 0.5, 1.0, 1.0, 1.0)
    mechanism = InteractiveDistances(tuned, FixedQueries([[0.0], [1.0]]), 2, release="transcript")
    impossible = [[1, 0, 0, 1, 0, 0], [0.5, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [np.nan, 0, 0, 0, 0, 0]]
    assert (mechanism.log_density([[0.0]], impossible) == -np.inf).all()
    assert np.isfinite(mechanism.log_density([[0.0]], [[0, 0, 0, 1, 3, -9]])).all()
    with pytest.raises(UsageError, match="release must be 'transcript' for a density, got 'answers'"):
        InteractiveDistances(tuned, FixedQueries([[0.0]]), 1).log_density([[0.0]], [[0.0]])


def test_after_the_last_update_nothing_of_the_data_is_read():
    """Two databases, one seed: with all updates spent at the first query the later answers differ by nothing new."""
    tuned = Calibration(1, [1.0], 1, -100.0, 0.1, 0.1, 1e-9)
    mechanism = InteractiveDistances(tuned, FixedQueries([[0.0], [1.0], [0.5]]), 3)
    answers = mechanism.sample([[0.5]], 10, np.random.default_rng(1))
    assert answers[:, 1:] == pytest.approx(np.zeros((10, 2)), abs=1e-6)  # tangent at 0 has slope -1
    assert answers[:, 0] == pytest.approx(0.5, abs=1e-6)


def test_claims_are_of_the_accounting():
    assert Calibration(2, [1.0], 1, 0.5, 2.0, 4.0, 3.0).claim == PureDP(1.0)
    gaussian = Calibration(2, [1.0], 3, 0.5, 2.0, 4.0, 3.0, "gaussian", 1e-5)
    assert isinstance(gaussian.claim, ApproxDP) and gaussian.claim.delta == 1e-5
    assert largest_rho(gaussian.epsilon, 1e-5) == pytest.approx(gaussian.rho, rel=1e-9)
    assert gaussian.release_epsilon == math.inf
    assert OfflineDistances(10, [1.0], 0.5).claim == PureDP(0.5)
    assert OfflineDistances(10, [1.0], 0.5, 1e-3).claim == ApproxDP(0.5, 1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_budgets_of_all_coordinates_add_up(delta):
    mechanism = OfflineDistances(1000, [0.5, 0.25, 0.25], 1.0, delta)
    budget = largest_rho(1.0, delta) if delta else 1.0
    assert mechanism.cost == pytest.approx(budget, rel=1e-9)
    for i, width in enumerate((0.5, 0.25, 0.25)):
        tuned = mechanism.calibration(i)
        assert tuned.threshold_scale == pytest.approx(width * mechanism.unit_calibration.threshold_scale)
        assert tuned.comparison_epsilon == pytest.approx(mechanism.unit_calibration.comparison_epsilon)
    data, other = np.zeros((1000, 3)), np.zeros((1000, 3))
    other[0] = 1.0
    assert mechanism.privacy_loss(data, data) == 0.0
    assert mechanism.privacy_loss(data, other) == (math.inf if delta else pytest.approx(1.0))


def test_the_practical_calibration_is_the_least_over_the_updates():
    best = practical(10**6, [1.0], 1.0, queries=100, beta=0.1)
    for updates in (1, 5, best.updates - 1, best.updates + 1, 200):
        assert practical(10**6, [1.0], 1.0, queries=100, beta=0.1, updates=updates).alpha > best.alpha
    assert printed(10**6, [1.0], 1.0, queries=100, beta=0.1).alpha > 50.0 * best.alpha


@pytest.mark.claim("MQ-T1")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    ("widths", "queries", "beta"), [([1.0], 1, 0.2), ([0.3, 1], 1_000, 0.05), ([1.0] * 4, 40, 0.9)]
)
def test_noise_exceeds_what_the_promised_error_allows_for_with_probability_at_most_beta(widths, queries, beta, delta):
    """The exact probabilities, of all draws of each kind together, of what alpha and the threshold leave for noise."""
    tuned = practical(10**6, widths, 1.0, delta, queries=queries, beta=beta)
    updates, count = tuned.updates, len(widths)
    gamma = tuned.alpha - tuned.threshold
    eta = tuned.threshold - gamma - float(gap_of_updates(updates, widths))
    of_comparisons = np.linspace(0.0, gamma, 20_001)  # the largest |Lap(b2)|; its cells are counted at their upper ends
    below = -np.expm1(-of_comparisons / tuned.query_scale)
    above = -np.expm1(updates * np.log1p(-np.exp(-(gamma - of_comparisons[1:]) / tuned.threshold_scale - 1e-15)))
    too_far = np.diff(below**queries) @ above + 1.0 - below[-1] ** queries
    reach = eta / count / tuned.release_scale
    one = stats.gamma.sf(reach, 2.0) if delta == 0.0 else 1.0 - special.erf(reach / 2.0) ** 2
    assert too_far <= 2.0 / 3.0 * beta and -np.expm1(updates * count * np.log1p(-one)) <= beta / 3.0


@pytest.mark.claim("MQ-T1")
@pytest.mark.parametrize("widths", [[1.0], [0.3, 2.0], [1.0, 0.5, 0.1]])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_values_and_slopes_move_by_at_most_what_is_accounted_and_by_that_on_a_line(widths, noise):
    far, order, records = np.array(widths), 1 if noise == "laplace" else 2, 5
    tuned = Calibration(records, far, 1, 0.5, 1e9, 1e9, 1.0, noise, 0.0 if order == 1 else 1e-6)
    rho = tuned.rho - 0.5 * tuned.comparison_epsilon**2
    accounted = tuned.release_epsilon if order == 1 else math.sqrt(2.0 * rho)
    rest = np.random.default_rng(1).uniform(size=(records - 1, len(far))) * far
    moved = []
    for query in itertools.product(*([0.0, 0.4 * w, w] for w in widths)):
        both = [AverageDistances([*rest, end], far).tangents([query]) for end in (0.0 * far, far)]
        change = [np.concatenate([values, slopes * far], axis=None) for values, slopes in both]
        moved.append(np.linalg.norm(change[0] - change[1], order))
    assert max(moved) <= accounted * (1.0 + 1e-12)
    if len(widths) == 1 or order == 1:
        assert max(moved) == pytest.approx(accounted, rel=1e-9)


def test_a_learner_without_slopes_makes_more_mistakes_than_were_accounted_for():
    """The twin that breaks no privacy: its updates run out, and then it answers wrongly."""
    n = 10**6
    tuned = practical(n, [1.0], 1.0, queries=200, beta=0.05)
    averages = AverageDistances(np.linspace(0.0, 1.0, n)[:, None], [1.0])
    places = np.random.default_rng(1).permutation(np.linspace(0.0, 1.0, 200))[:, None]
    errors = {}
    for kind in (InteractiveDistances, LearnerForgetsTheSlopes):
        run = kind(tuned, FixedQueries(places), 200).run(averages, 10, np.random.default_rng(2))
        errors[kind] = np.abs(run.answers - averages.value(places)).max(axis=1)
    assert (errors[InteractiveDistances] <= tuned.alpha).all()  # each misses with probability 0.05 at most
    assert (errors[LearnerForgetsTheSlopes] > tuned.alpha).all()
    assert "slope 0" in LearnerForgetsTheSlopes(tuned, FixedQueries(places), 200).fault


def test_a_hypothesis_stays_in_the_range_of_distances():
    high = Hypothesis(np.array([1.0]), np.array([[1.0]]), np.array([[3.0]]))
    assert high.answer([[0.5], [7.0]]).tolist() == [1.0, 1.0]


def asked(analyst, queries):
    """One run of an analyst."""
    tuned = Calibration(1, [1.0], 1, 0.5, 1.0, 1.0, 1.0)
    return InteractiveDistances(tuned, analyst, queries).sample([[0.0]], 1, np.random.default_rng(0))


def test_a_query_outside_of_the_box_is_answered_as_its_nearest_point_everywhere():
    outside, inside, widths = [[-3.0, 0.2], [9.0, 0.7]], [[0.0, 0.2], [1.0, 0.5]], [1.0, 0.5]
    data = np.random.default_rng(1).uniform(size=(50, 2)) * widths
    steep = Hypothesis(np.array(widths), np.array([[0.5, -1.0]]), np.array([[0.1, 0.8]]))
    offline = OfflineDistances(50, widths, 100.0, intervals=4)
    tuned = Calibration(50, widths, 2, 0.1, 0.01, 0.01, 0.01)
    ways = (
        steep.answer,
        lambda points: offline.release(data, np.random.default_rng(2)).answer(points),
        lambda points: offline.answers(data, points, 3, np.random.default_rng(2)),
        lambda points: InteractiveDistances(tuned, FixedQueries(points), 2).sample(data, 3, np.random.default_rng(2)),
    )
    for way in ways:
        assert np.array_equal(way(outside), way(inside))


def test_a_query_of_one_coordinate_is_not_taken_for_one_of_all_coordinates():
    tuned = Calibration(1, [1.0, 1.0], 1, 0.5, 1.0, 1.0, 1.0)
    with pytest.raises(UsageError, match=r"queries must be of shape \(3, 2\), got shape \(3, 1\)"):
        InteractiveDistances(tuned, FixedQueries([[0.3]]), 1).sample([[0.0, 0.0]], 3, np.random.default_rng(0))


def test_points_however_far_are_moved_onto_the_ball_in_their_direction():
    images = RandomProjection(2, 5, seed=1).embed([[3.0, 3.0], [1e200, 1e200], [1e308, 1e308], [1.0, 1.0]])
    assert images == pytest.approx(np.tile(images[0], (4, 1)), abs=1e-12)
    tiny = RandomProjection(2, 5, seed=1).embed([[0.0, 0.0], [1e-310, 0.0]])
    assert tiny[0] == pytest.approx(tiny[1], abs=1e-12)


test_what_makes_no_sense_is_refused = refusals(
    (lambda: AverageDistances([[0.0]], [0.0]), "widths must"),
    (lambda: AverageDistances([[math.inf]], [1.0]), "points must"),
    (lambda: TangentHypotheses(0, 1, [1.0]), "runs must"),
    (lambda: Calibration(0, [1.0], 1, 0.0, 1.0, 1.0, 1.0), "records must"),
    (lambda: Calibration(1, [1.0], 1, 0.0, 0.0, 1.0, 1.0), "threshold_scale must"),
    (lambda: Calibration(1, [1.0], 1, 0.0, 1.0, 1.0, 1.0, "uniform"), "noise must"),
    (lambda: Calibration(1, [1.0], 1, 0.0, 1.0, 1.0, 1.0, "gaussian"), "delta must"),
    (lambda: practical(10, [1.0], 1.0, queries=1, beta=0.0), "beta must"),
    (lambda: practical(10, [1.0, 1.0], 1.0, queries=1, beta=0.1, updates=1), "updates must"),
    (lambda: OfflineDistances(2, [1.0], 0.0), "epsilon must"),
    (lambda: OfflineDistances(2, [1.0], 1.0).sample([[0.0]], 1, np.random.default_rng(0)), "data must"),
    (lambda: SubsetDistances(on_the_line, [[0.0]], 1, statement="printed"), "queries must"),
    (lambda: SubsetDistances(on_the_line, [], 1), "queries must"),
    (lambda: SubsetDistances(on_the_line, [[0.0]], 1, statement="new"), "statement must"),
    (lambda: SubsetDistances(on_the_line, [[0.0]], 1, diameter=0.0), "diameter must"),
    (lambda: SubsetDistances(on_the_line, [[0.0]], 1).embed([[math.nan]]), "distances must"),
    (lambda: RandomProjection(2, 1, radius=-1.0), "radius must"),
    (lambda: RandomProjection(1, 1, centre=[math.inf]), "centre must"),
    (lambda: RandomProjection(1, 1).embed([[math.inf]]), "points must"),
    (lambda: Calibration(1, [1e308, 1e308], 1, 0.0, 1.0, 1.0, 1.0), "widths must"),
    (lambda: Calibration(1, [1.0], 1, 0.0, 1.0, 1.0, 1.0, alpha=math.nan), "alpha must"),
    (lambda: Calibration(1, [1.0], 1, 0.0, 1.0, 1.0, 1.0, beta=0.0), "beta must"),
    (lambda: practical(10, [1.0], 1.0, queries=1, beta=0.1, updates=2.5), "updates must"),
    (lambda: printed(10, [1.0], 0.0, queries=1, beta=0.1), "epsilon must"),
    (lambda: printed(10, [1.0], 1.0, 5.0, queries=1, beta=0.1), "delta must"),
    (lambda: printed(10, [1.0], 1.0, queries=0, beta=0.1), "queries must"),
    (lambda: OfflineDistances(2, [1.0], 1.0, 1.5), "delta must"),
    (lambda: asked(FixedQueries([[0.0]]), 2), "queries must"),
    (lambda: asked(lambda answers: np.full((1, 1), math.nan), 1), "queries must"),
    (lambda: RandomProjection(2, 1, scaling="none"), "scaling must"),
    (
        lambda: InteractiveDistances(practical(1, [1.0], 1.0, queries=1, beta=0.1), FixedQueries([[0.0]]), 1, "all"),
        "release must",
    ),
)


@pytest.mark.parametrize("dimension", [1, 2, 4])
@pytest.mark.parametrize("kind", ["certified", "mean", "stable"])
def test_the_box_of_the_images_is_the_least_that_moves_none_of_them(kind, dimension):
    if kind == "stable":
        embedding = StableProjection(1.5, dimension, 9, side=2.0)
        corners = np.array(list(itertools.product([0.0, 2.0], repeat=dimension)))
    else:
        embedding = RandomProjection(dimension, 9, scaling=kind, radius=2.0)
        ends = 2.0 * embedding.matrix / np.linalg.norm(embedding.matrix, axis=1, keepdims=True)
        corners = np.concatenate([ends, -ends])  # where a coordinate is at either end
    images = embedding.embed(corners)
    assert images - images[0] == pytest.approx((corners - corners[0]) @ embedding.matrix.T, abs=1e-12)
    assert np.ptp(images, axis=0) == pytest.approx(embedding.widths, rel=1e-12)


def test_two_ways_to_the_same_images():
    projection = RandomProjection(2, 4, seed=1)
    tuned = Calibration(3, projection.widths, 1, 0.5, 1.0, 1.0, 1.0)
    data, query = [[0.1, 0.2], [0.0, 0.0], [-0.3, 0.1]], [[0.5, 0.0]]
    mechanism = EmbeddedDistances(projection, tuned, FixedQueries(query), 1, [(data, data)])
    direct = InteractiveDistances(tuned, FixedQueries(projection.embed(query)), 1)
    rngs = [np.random.default_rng(4) for _ in range(2)]
    assert (mechanism.sample(data, 9, rngs[0]) == direct.sample(projection.embed(data), 9, rngs[1])).all()
    assert mechanism.claim == tuned.claim and len(mechanism.pairs()) == 1
    offline = MetricDistances(projection, query, 3, 1.0, scale=2.0, databases=[(data, data)])
    assert offline.noiseless(data)[0] == pytest.approx(
        2.0 * np.abs(projection.embed(data) - projection.embed(query)).sum(axis=1).mean()
    )
    assert offline.alpha == 2.0 * offline.inner.alpha and len(offline.pairs()) == 1
    outside = projection.embed([[3.0, 0.0], [0.5, 0.0]])
    assert outside[0] == pytest.approx(outside[1])  # moved onto the ball


# ---- audits ----------------------------------------------------------------------------------------------------------


CONFIDENCE = 1.0 - 1e-6
SEED = 20_261_641
ENDS = FixedQueries([[0.0], [1.0], [0.0], [1.0]])
TUNED = Calibration(1, [1.0], 1, 0.5, 2.0, 4.0, 6.0)  # 1.5 nats
TWICE = Calibration(2, [1.0], 2, 0.3, 1.0, 2.0, 1.5)
GAUSSIAN = Calibration(2, [1.0], 2, 0.3, 1.0, 2.0, 1.5, "gaussian", 1e-2)


def audited(mechanism, samples, **options):
    return dpaudit.audit(mechanism, samples=samples, confidence=CONFIDENCE, seed=SEED, floating_point=False, **options)


def low_and_moved(records, dimension):
    low = np.zeros((records, dimension))
    moved = low.copy()
    moved[0] = 0.5
    return low, moved


PROJECTION = RandomProjection(2, 3, seed=1)
STABLE = StableProjection(1.5, 2, 3, seed=1)
NEAR_THE_MIDDLE = FixedQueries([[0.6, 0.6], [0.4, 0.4]])
MIDDLE = np.full((200, 2), 0.5)
ONE_MOVED = np.where(np.arange(200)[:, None] == 0, 1.0, MIDDLE)
SOUND = [
    InteractiveDistances(TUNED, ENDS, 4),
    InteractiveDistances(TUNED, SlopeSeeker(1.0, 1.0), 4),
    InteractiveDistances(TWICE, SlopeSeeker(1.0, 1.0), 6),
    InteractiveDistances(TWICE, SlopeSeeker(1.0, 1.0), 3, release="transcript"),
    InteractiveDistances(GAUSSIAN, SlopeSeeker(1.0, 1.0), 6),
    InteractiveDistances(Calibration(2, [0.5, 0.5], 2, 0.3, 1.0, 2.0, 1.5), FixedQueries([[0.0, 0.0], [0.5, 0.5]]), 2),
    OfflineDistances(2, [0.5, 0.5], 1.0, intervals=2),
    EmbeddedDistances(PROJECTION, Calibration(3, PROJECTION.widths, 1, 0.1, 1.0, 1.0, 1.0),
                      FixedQueries([[0.5, 0.0], [-0.5, 0.0]]), 2, [low_and_moved(3, 2)]),
    EmbeddedDistances(SubsetDistances(on_the_line, [[0.0], [1.0]], 2, seed=1),
                      Calibration(20, [0.25] * 4, 1, 0.3, 0.1, 0.2, 0.3), FixedQueries([[0.0], [1.0], [0.0]]), 3,
                      [worst_pair(20)]),
    MetricDistances(SubsetDistances(on_the_line, [[0.0], [1.0]], 2, seed=1), [[0.0], [1.0]], 20, 2.0,
                    databases=[worst_pair(20)]),
    LearnerForgetsTheSlopes(TUNED, ENDS, 4),
    EmbeddedDistances(STABLE, Calibration(200, STABLE.widths, 1, 0.3, 0.1, 0.2, 0.3), NEAR_THE_MIDDLE, 2,
                      [(MIDDLE, ONE_MOVED)]),
    MetricDistances(STABLE, [[0.0, 0.0], [1.0, 1.0]], 200, 2.0, databases=[(MIDDLE, ONE_MOVED)]),
]  # fmt: skip


@pytest.mark.claim("MQ-L3", "MQ-T1", "MQ-T2", "MQ-T8", "MQ-D1b", "MQ-N3")
@pytest.mark.parametrize("mechanism", SOUND, ids=[f"{type(m).__name__}-{i}" for i, m in enumerate(SOUND)])
def test_a_distance_release_is_not_refuted(mechanism):
    result = audited(mechanism, 300 if getattr(mechanism, "release", "") == "transcript" else 2_500)
    assert result.verdict != "violated"
    assert result.epsilon_lower <= mechanism.claim.value


def test_the_embedding_of_the_data_is_over_twelve_times_too_sensitive():
    subsets = SubsetDistances(on_the_line, np.zeros((20, 1)), 1, seed=2)
    tuned = Calibration(20, subsets.widths, 1, 0.3, 0.1, 0.2, 0.3)
    twin = EmbeddingLooksAtTheData(subsets, tuned, FixedQueries([[0.0], [1.0], [0.0]]), 3, [worst_pair(20)])
    assert twin.sensitivity(*worst_pair(20)) > 12.0
