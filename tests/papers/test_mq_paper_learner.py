"""The paper on metric queries, on the tangent learner: exact and noisy oracles, mistake bounds, its decomposable form.

Functions are averages of |x - .|, which are exactly the piecewise linear ones here; adversaries are exhaustive on small
grids, greedy, and hypothesis. Counterexamples come from the ledger.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit_mechanisms.distances.averages import AverageDistances
from dpaudit_mechanisms.distances.learner import TangentHypotheses, most_updates
from dpaudit_mechanisms.ledger import entry

SEEDS = st.integers(0, 2**32)
ROUNDING = 1e-9
POINTS = st.lists(st.integers(0, 20).map(lambda v: v / 20.0), min_size=1, max_size=8)
TOLERANCES = (1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.9)


def average_of(points):
    return AverageDistances(np.array(points, dtype=float)[:, None], [1.0])


def one(hypotheses, x):
    return float(hypotheses.predict(np.array([[x]]))[0, 0])


def predicted(hypotheses, points):
    """The hypothesis of the only run at any number of points, from (points, l) to (points, l)."""
    lines = zip(hypotheses.slopes[0], hypotheses.intercepts[0], strict=True)
    return np.max([np.zeros(np.shape(points)), *(a * points + b for a, b in lines)], axis=0)


def printed_updates(tolerance):
    """3 / sqrt(alpha_1), the bound of MQ-L4; with a noisy oracle at half of the error (MQ-L5)."""
    return 3.0 / math.sqrt(tolerance)


def mistakes_of(averages, alpha, queries, noise=None):
    """Update points of the learner on a sequence of queries; noise of shape (queries, 2), of values and slopes."""
    hypotheses = TangentHypotheses(1, 100_000, [1.0])
    found = []
    for t, x in enumerate(queries):
        value, slope = (float(part[0, 0]) for part in averages.tangents([[x]]))
        if abs(one(hypotheses, x) - value) > alpha:
            extra = (0.0, 0.0) if noise is None else noise[t]
            noisy = np.array([[value + extra[0]]]), np.array([[slope + extra[1]]])
            hypotheses.update(np.array([0]), np.array([[x]]), *noisy)
            found.append(float(x))
    return found, hypotheses


def greedy(averages, alpha, places, rng=None, noisy=False, worst=True):
    """The adversary that asks where the error is largest, or smallest but a mistake, until there is no mistake."""
    hypotheses, found = TangentHypotheses(1, 100_000, [1.0]), []
    values, slopes = (part[:, 0] for part in averages.tangents(places[:, None]))
    while True:
        errors = np.abs(predicted(hypotheses, places[:, None])[:, 0] - values)
        wrong = np.flatnonzero(errors > alpha * (1.0 + ROUNDING))
        if len(wrong) == 0:
            return found, hypotheses
        j = wrong[np.argmax(errors[wrong]) if worst else np.argmin(errors[wrong])]
        extra = rng.choice([-1.0, 0.0, 1.0], size=2) * alpha / 4.0 if noisy else (0.0, 0.0)
        hypotheses.update(np.array([0]), places[[j], None], np.array([[values[j] + extra[0]]]),
                          np.array([[slopes[j] + extra[1]]]))  # fmt: skip
        found.append(float(places[j]))


# ---- distance queries as convex functions ---------------------------------------------------------------------------


@pytest.mark.claim("MQ-C1")
@pytest.mark.parametrize("order", [1, 1.5, 2, 3, np.inf])
@given(SEEDS)
def test_average_distances_are_convex_and_lipschitz_in_the_query(order, seed):
    rng = np.random.default_rng(seed)
    data, y, z = rng.uniform(size=(5, 3)), rng.uniform(size=3), rng.uniform(size=3)

    def answer(q):
        return np.linalg.norm(data - q, ord=order, axis=1).mean()

    part = rng.uniform()
    assert answer(part * y + (1 - part) * z) <= part * answer(y) + (1 - part) * answer(z) + ROUNDING
    assert abs(answer(y) - answer(z)) <= np.linalg.norm(y - z, ord=order) + ROUNDING


@pytest.mark.claim("MQ-C8", "MQ-D1a", "MQ-L6", "MQ-S5")
@pytest.mark.parametrize("records", [1, 2, 3, 4])
def test_exact_sensitivities_of_values_and_slopes(records):
    """Over all neighbours on a grid: values 1 / n, values of all coordinates together diameter / n, slopes 2 / n."""
    grid, places = np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 9)[:, None]
    largest_value = largest_slope = 0.0
    for data in itertools.combinations_with_replacement(grid, records):
        values, slopes = average_of(data).tangents(places)
        for new in grid:
            other = average_of((new, *data[1:])).tangents(places)
            largest_value = max(largest_value, np.abs(other[0] - values).max())
            largest_slope = max(largest_slope, np.abs(other[1] - slopes).max())
    assert largest_value == pytest.approx(1.0 / records)
    assert largest_slope == pytest.approx(2.0 / records)  # O(1 / n), and not 1 / n


@pytest.mark.claim("MQ-C9")
def test_the_lipschitz_constant_in_the_query_is_one_and_not_one_over_n():
    data = entry("MQ-C9").counterexample
    averages = average_of(data["database"])
    a, b = data["queries"]
    slope = abs(float(averages.value([[b]])[0] - averages.value([[a]])[0])) / abs(b - a)
    assert slope == data["slope"] > 1.0 / len(data["database"])


@pytest.mark.claim("MQ-C9", "MQ-C10", "MQ-C11", "MQ-C12", "MQ-C7")
@given(SEEDS, st.integers(1, 3), st.integers(1, 8))
def test_the_answer_splits_into_convex_lipschitz_functions_of_one_coordinate(seed, dimension, records):
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 6, size=(records, dimension)) / 5.0
    averages = AverageDistances(data, np.ones(dimension))
    y = rng.uniform(size=(20, dimension))
    by_hand = np.abs(data[None] - y[:, None]).sum(axis=2).mean(axis=1)
    assert averages.value(y) == pytest.approx(by_hand, abs=1e-12)
    assert averages.values(y) == pytest.approx(np.abs(data[None] - y[:, None]).mean(axis=1), abs=1e-12)
    kinks = np.unique(np.concatenate([data.ravel(), [0.0, 1.0]]))
    at = averages.values(np.tile(kinks[:, None], dimension))
    slopes = np.diff(at, axis=0) / np.diff(kinks)[:, None]
    assert (np.diff(slopes, axis=0) >= -ROUNDING).all() and (np.abs(slopes) <= 1.0 + ROUNDING).all()
    assert (at >= 0.0).all() and (at <= 1.0).all()
    other = rng.uniform(size=(20, dimension))
    assert (np.abs(averages.value(y) - averages.value(other)) <= np.abs(y - other).sum(axis=1) + ROUNDING).all()
    errors = rng.uniform(-0.3 / dimension, 0.3 / dimension, size=at.shape)
    assert (np.abs(errors.sum(axis=1)) <= 0.3 + ROUNDING).all()  # alpha / l each: alpha in all


@pytest.mark.claim("MQ-V3")
@given(POINTS, SEEDS)
def test_order_reflection_and_doubling_of_the_database(points, seed):
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(10, 1))
    averages = average_of(points)
    assert average_of(rng.permutation(points)).values(places) == pytest.approx(averages.values(places), abs=1e-12)
    assert average_of(points * 2).values(places) == pytest.approx(averages.values(places), abs=1e-12)
    mirrored = average_of([1.0 - x for x in points])
    assert mirrored.values(1.0 - places) == pytest.approx(averages.values(places), abs=1e-12)


# ---- the learner ----------------------------------------------------------------------------------------------------


def learn_by_hand(points, alpha, queries):
    """MQ-A1 in rationals, in plain Python: predictions and lines."""
    lines, predictions = [(Fraction(0), Fraction(0))], []
    for x in queries:
        value = sum((abs(p - x) for p in points), Fraction(0)) / len(points)
        slope = Fraction(sum(1 if p <= x else -1 for p in points), len(points))
        predictions.append(max(a * x + b for a, b in lines))
        if abs(predictions[-1] - value) > alpha:
            lines.append((slope, value - slope * x))
    return predictions, lines


@pytest.mark.claim("MQ-A1", "MQ-D3")
@given(POINTS, st.sampled_from([Fraction(1, 20), Fraction(1, 7), Fraction(1, 3)]),
       st.lists(st.integers(0, 40), min_size=1, max_size=15))  # fmt: skip
def test_the_learner_is_the_algorithm(points, alpha, places):
    exact = [Fraction(round(20 * p), 20) for p in points]
    queries = [Fraction(place, 40) for place in places]
    predictions, lines = learn_by_hand(exact, alpha, queries)
    hypotheses, averages = TangentHypotheses(1, 100, [1.0]), average_of(points)
    for x, prediction in zip(queries, predictions, strict=True):
        at = np.array([[float(x)]])
        assert one(hypotheses, float(x)) == pytest.approx(float(prediction), abs=1e-12)
        value, slope = averages.tangents(at)
        true_value = sum((abs(p - x) for p in exact), Fraction(0)) / len(exact)
        if abs(prediction - true_value) > alpha:
            hypotheses.update(np.array([0]), at, value, slope)
    used = len(lines) - 1
    assert int(hypotheses.updates[0]) == used
    assert hypotheses.slopes[0, :used, 0] == pytest.approx([float(a) for a, _ in lines[1:]], abs=1e-12)
    assert hypotheses.intercepts[0, :used, 0] == pytest.approx([float(b) for _, b in lines[1:]], abs=1e-12)


@pytest.mark.claim("MQ-L4", "MQ-S1", "MQ-S2", "MQ-D4", "MQ-V1")
@given(POINTS, st.sampled_from(TOLERANCES), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40))
def test_hypothesis_as_the_adversary_forces_no_more_mistakes_than_the_bound(points, alpha, queries):
    averages = average_of(points)
    found, hypotheses = mistakes_of(averages, alpha, queries)
    assert len(found) <= math.sqrt(2.0 / alpha) + 1.0 < printed_updates(alpha)
    assert len(found) <= most_updates(alpha, [1.0])
    slopes = dict(zip(found, averages.slopes(np.array(found).reshape(-1, 1))[:, 0] if found else [], strict=True))
    for earlier, later in itertools.combinations(found, 2):  # eq. (1)
        assert (slopes[later] - slopes[earlier]) * (later - earlier) > alpha - ROUNDING
    ordered = sorted(found)
    assert all(slopes[a] < slopes[b] for a, b in itertools.pairwise(ordered))  # strictly increasing
    if ordered:
        product = (slopes[ordered[-1]] - slopes[ordered[0]]) * (ordered[-1] - ordered[0])
        assert 2.0 >= product >= ((len(ordered) - 1) * math.sqrt(alpha)) ** 2 - ROUNDING
    places = np.linspace(0.0, 1.0, 41)[:, None]
    assert (predicted(hypotheses, places) <= averages.values(places) + ROUNDING).all()  # never above the truth


@pytest.mark.claim("MQ-C13")
def test_the_coarse_bound_fails_for_convex_functions_and_is_infinite_for_others():
    for case in entry("MQ-C13").counterexample["cases"]:
        xs, ys = np.array(case["kinks"]), np.array(case["values"])
        assert (np.abs(np.diff(ys) / np.diff(xs)) <= 1.0 + ROUNDING).all()  # 1-Lipschitz, into [0, 1]
        hypotheses, count = TangentHypotheses(1, 1000, [1.0]), 0
        for x in case["queries"] * case["repeated"]:
            j = min(int(np.searchsorted(xs, x, side="right")), len(xs) - 1)
            slope, value = (ys[j] - ys[j - 1]) / (xs[j] - xs[j - 1]), float(np.interp(x, xs, ys))
            if abs(one(hypotheses, x) - value) > case["alpha"]:
                count += 1
                hypotheses.update(np.array([0]), np.array([[x]]), np.array([[value]]), np.array([[slope]]))
        assert count == case["mistakes"] > 1.0 / case["alpha"]


def nearest_tangent_mistakes(xs, ys, alpha, queries):
    """The learner that takes the tangent of the nearest update point, for functions that are not convex."""
    known, count = [], 0
    for x in queries:
        value = float(np.interp(x, xs, ys))
        j = min(max(int(np.searchsorted(xs, x, side="right")), 1), len(xs) - 1)
        slope = (ys[j] - ys[j - 1]) / (xs[j] - xs[j - 1])
        prediction = 0.0
        if known:
            p, v, s = min(known, key=lambda line: abs(line[0] - x))
            prediction = v + s * (x - p)
        if abs(prediction - value) > alpha:
            known.append((x, value, slope))
            count += 1
    return count, [line[0] for line in known]


@pytest.mark.claim("MQ-C13", "MQ-C14")
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2, 0.4])
def test_tangents_of_nearest_points_err_at_most_2_over_alpha_times_and_no_learner_errs_less_than_half_of_1_over_alpha(
    alpha,
):
    rng = np.random.default_rng(20_261_602)
    for _ in range(20):
        xs = np.linspace(0.0, 1.0, 21)
        ys = np.clip(0.5 + np.cumsum(rng.choice([-0.05, 0.05], size=21)), 0.0, 1.0)
        count, places = nearest_tangent_mistakes(xs, ys, alpha, rng.uniform(size=200).tolist())
        gaps = np.diff(sorted(places))
        assert (gaps > alpha / 2.0 - ROUNDING).all() and count <= 2.0 / alpha + 1.0
    # The adversary: at points 2.02 alpha apart the value is 0 or 2.02 alpha, whichever is wrong; both 1-Lipschitz.
    step = 2.02 * alpha
    places = np.arange(0.0, 1.0 + ROUNDING, step)
    learners = (lambda seen: seen[-1] if seen else 0.0, lambda seen: 0.0, lambda seen: float(rng.uniform(0.0, step)))
    for learner in learners:
        values, wrong = [], 0
        for _ in places:
            prediction = learner(values)
            values.append(step if prediction < step / 2.0 else 0.0)
            wrong += abs(values[-1] - prediction) > alpha
        assert (np.abs(np.diff(values)) <= np.diff(places) + ROUNDING).all()
        assert wrong == len(places) >= 0.45 / alpha


# ---- noise ----------------------------------------------------------------------------------------------------------


@pytest.mark.claim("MQ-S3")
@given(POINTS, st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.sampled_from(TOLERANCES))
def test_a_noisy_tangent_is_good_where_the_exact_one_is_good_at_half_the_error(points, x, z, alpha):
    averages = average_of(points)
    (value_x, value_z), (_, slope_z) = averages.value([[x], [z]]), averages.slopes([[x], [z]])[:, 0]
    if value_x - value_z + slope_z * (z - x) <= alpha / 2.0:
        for first, second in itertools.product((-alpha / 4.0, 0.0, alpha / 4.0), repeat=2):
            assert abs(value_z + first + (slope_z + second) * (x - z) - value_x) <= alpha + ROUNDING


@pytest.mark.claim("MQ-S3")
def test_the_printed_condition_on_a_tangent_says_nothing_of_its_error():
    """Its third term has the wrong sign: the condition holds with room, and the tangent errs by the whole diameter."""
    data = entry("MQ-S3").counterexample
    averages, x, z = average_of(data["points"]), data["x"], data["at"]
    (value_x, value_z), slope = averages.value([[x], [z]]), averages.slopes([[z]])[0, 0]
    assert value_x - value_z + slope * (x - z) == data["left_side"] < 0.0
    assert abs(value_z + slope * (x - z) - value_x) == data["error"] == 1.0


@pytest.mark.claim("MQ-L5", "MQ-V2")
@given(POINTS, st.sampled_from(TOLERANCES), SEEDS, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40))
def test_a_noisy_oracle_costs_no_more_mistakes_than_an_exact_one_at_half_the_error(points, alpha, seed, queries):
    noise = np.random.default_rng(seed).choice([-alpha / 4.0, 0.0, alpha / 4.0], size=(len(queries), 2))
    averages = average_of(points)
    found, hypotheses = mistakes_of(averages, alpha, queries, noise)
    assert len(found) <= math.sqrt(2.0 / (alpha / 2.0)) + 1.0 < printed_updates(alpha / 2.0)
    assert len(mistakes_of(averages, alpha / 2.0 - ROUNDING, found)[0]) == len(found)  # mistakes of the exact one too
    places = np.linspace(0.0, 1.0, 41)[:, None]
    assert (predicted(hypotheses, places) <= averages.values(places) + alpha / 2.0 + ROUNDING).all()


# ---- several coordinates --------------------------------------------------------------------------------------------


@pytest.mark.claim("MQ-L6", "MQ-A2", "MQ-S4", "MQ-C2")
@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@settings(max_examples=25)
@given(seed=SEEDS, alpha=st.sampled_from([0.01, 0.1, 0.5]))
def test_the_decomposable_learner_errs_at_most_in_proportion_to_the_dimension(dimension, seed, alpha):
    rng = np.random.default_rng(seed)
    averages = AverageDistances(rng.beta(0.5, 0.5, size=(6, dimension)), np.ones(dimension))
    hypotheses, mistakes = TangentHypotheses(1, 10_000, np.ones(dimension)), 0
    per_coordinate = np.zeros(dimension, dtype=int)
    places = rng.uniform(size=(300, dimension))
    for t in range(300):
        pool = places[[t]] if seed % 2 else places[[int(np.argmax(
            averages.value(places) - predicted(hypotheses, places).sum(axis=1)))]]  # fmt: skip
        value, slope = averages.tangents(pool)
        errors = value - hypotheses.predict(pool)
        if abs(float(errors.sum())) > alpha:
            assert np.abs(errors).max() > alpha / dimension  # some coordinate errs by alpha / l
            per_coordinate += np.abs(errors[0]) > alpha / dimension
            noise = rng.choice([-1.0, 0.0, 1.0], size=(2, 1, dimension)) * alpha / (4.0 * dimension)
            hypotheses.update(np.array([0]), pool, value + noise[0], slope + noise[1])
            mistakes += 1
    assert mistakes <= dimension * (2.0 * math.sqrt(dimension / alpha) + 1.0) <= 3.0 * dimension**1.5 / alpha**0.5
    assert mistakes <= most_updates(alpha / 2.0, np.ones(dimension))
    assert (per_coordinate <= 2.0 * math.sqrt(dimension / alpha) + 1.0).all()


@pytest.mark.claim("MQ-C2")
def test_planes_in_place_of_coordinates_err_exponentially_often():
    """Tangent planes of |y|^2 / (2 l) fail where all update points are over r apart: as many as such points exist."""
    rng, counts = np.random.default_rng(20_261_604), []
    for dimension in (1, 2, 3, 4):
        places, kept = rng.uniform(size=(3_000, dimension)), np.zeros((0, dimension))
        for y in places:
            gaps = ((kept - y) ** 2).sum(axis=1) / (2.0 * dimension)  # error of the tangent plane of each update point
            first = (y**2).sum() / (2.0 * dimension)
            if min([first, *gaps]) > 0.01 / dimension:
                kept = np.vstack([kept, y])
        counts.append(len(kept))
    ratios = np.array(counts[1:]) / np.array(counts[:-1])
    assert (ratios > 2.5).all()  # each dimension multiplies the mistakes
