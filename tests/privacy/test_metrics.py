"""Metrics: the papers' formulas by hand, the axioms by brute force, and every violation named."""

import datetime
import itertools
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit.privacy.finite_metrics import GraphMetric, MatrixMetric, TreeMetric, check_metric
from dpaudit.privacy.metrics import (
    EARTH_RADIUS_KM,
    AbsoluteMetric,
    AttributeMetric,
    BlowfishMetric,
    DateMetric,
    DiscreteMetric,
    EuclideanMetric,
    GeoMetric,
    HammingMetric,
    ScaledMetric,
    SmoothBlowfishMetric,
    SumMetric,
    SupNormMetric,
    ValueMetric,
    is_same,
    scaled,
)

bounded = settings(max_examples=40, deadline=None, derandomize=True)
inf = math.inf

PLACES = [(0.0, 0.0), (48.8566, 2.3522), (52.52, 13.405), (-33.87, 151.21), (90.0, 0.0), (-90.0, 77.0), (0.0, 180.0)]
VECTORS = np.random.default_rng(5).normal(size=(7, 3))
ALL_PAIRS = list(itertools.product("MF", "YN", "AB"))  # x_1 .. x_8 of DX-X1: MYA, MYB, MNA, ...
NATIVE = [{"M": 1.0, "F": 1.0}, {"Y": 0.1, "N": 1.0}, {"A": 1.0, "B": 1.0}]  # epsilon_0 = 0.1, epsilon_1 = 1

METRICS = {
    "euclidean": (EuclideanMetric(0.3), VECTORS),
    "sup-norm": (SupNormMetric(0.3), VECTORS),
    "absolute": (AbsoluteMetric(2.0), [0.0, -1.5, 7.0, 1e6]),
    "dates": (DateMetric(1.0, days=7), ["2024-02-28", "2024-03-01", "1969-12-31", "2100-01-01"]),
    "geo": (GeoMetric(0.01), PLACES),
    "hamming": (HammingMetric(0.5), ["karolin", "kathrin", "kerstin", "karolin"]),
    "attributes": (AttributeMetric((0.1, 1.0, inf)), ALL_PAIRS),
    "values, min": (ValueMetric(NATIVE), ALL_PAIRS),
    "values, sum": (ValueMetric(NATIVE, "sum"), ALL_PAIRS),
    "values, max": (ValueMetric(NATIVE, "max"), ALL_PAIRS),
    "values, infinite": (ValueMetric([{"M": inf, "F": inf}, {"Y": 0.1, "N": inf}, {"A": inf, "B": inf}]), ALL_PAIRS),
    "discrete": (DiscreteMetric(0.7), ["a", 1, None, (2, 3)]),
    "smooth blowfish": (SmoothBlowfishMetric(1.0, threshold=1.5), VECTORS),
    "graph": (GraphMetric([(0, 1), (1, 2, 0.0), (2, 0, 5.0), (3, 4)], points=[5]), [0, 1, 2, 3, 4, 5]),
    "tree": (TreeMetric([("r", "a"), ("r", "b", 0.5), ("b", "c", 0.25)]), ["r", "a", "b", "c"]),
    "scaled": (scaled(EuclideanMetric(1.0), 0.5), VECTORS),
    "sum": (SumMetric((EuclideanMetric(1.0), DiscreteMetric(0.5))), VECTORS),
    "matrix": (MatrixMetric([[0, 1, inf], [1, 0, inf], [inf, inf, 0]], "abc"), "abc"),
}


@pytest.mark.parametrize("key", METRICS)
def test_every_metric_satisfies_the_axioms(key):
    metric, points = METRICS[key]
    check_metric(metric.matrix(points))


@pytest.mark.parametrize("key", METRICS)
def test_the_matrix_of_a_metric_is_its_calls(key):
    metric, points = METRICS[key]
    calls = [[metric(x, y) for y in points] for x in points]
    assert metric.matrix(points) == pytest.approx(np.array(calls), rel=1e-12, abs=1e-12)
    assert metric.matrix(points).dtype == float


# One rule says which values are equal: that of neighbours.
EQUAL = [(1, np.float32(1)), (math.nan, np.float64("nan")), ((1, 2), [1, 2]), ([math.nan], np.array([math.nan]))]
DIFFERENT = [(1, Decimal(1)), (0.1, np.float32(0.1)), (np.float64(1), [1, 2]), (b"a", bytearray(b"a")), (1, "1")]


@pytest.mark.parametrize(("x", "y", "budget"), [(*p, 0.0) for p in EQUAL] + [(*p, 1.0) for p in DIFFERENT])
@pytest.mark.parametrize("metric", [HammingMetric(1.0), AttributeMetric((1.0,)), DiscreteMetric(1.0)])
def test_a_matrix_and_a_call_take_the_same_values_for_equal(metric, x, y, budget):
    assert metric([x], [y]) == metric([y], [x]) == metric.matrix([[x], [y]])[0, 1] == budget


@pytest.mark.parametrize("key", METRICS)
def test_every_metric_has_a_short_name_without_an_address(key):
    metric, _ = METRICS[key]
    assert 0 < len(metric.name) < 80 and "0x" not in metric.name


@pytest.mark.parametrize(
    "metric", [EuclideanMetric(), GeoMetric(), HammingMetric(), DiscreteMetric(), AbsoluteMetric()]
)
def test_the_matrix_of_no_points_is_empty(metric):
    assert metric.matrix([]).shape == (0, 0)


# --- formulas, by hand ---


def test_dates_by_hand():
    metric = DateMetric(1.0, days=30)
    assert metric(datetime.date(2024, 2, 1), "2024-03-02") == 1.0
    assert metric(datetime.datetime(2024, 1, 1, 12), np.datetime64("2024-01-01")) == pytest.approx(0.5 / 30)
    east = datetime.datetime(2024, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    assert metric(east, "2024-01-01") == 0.0


def test_great_circles_by_hand():
    metric = GeoMetric(1.0)
    quarter = math.pi / 2 * EARTH_RADIUS_KM
    assert metric((0, 0), (0, 90)) == pytest.approx(quarter, rel=1e-14)
    assert metric((0, 0), (0, 180)) == pytest.approx(2 * quarter, rel=1e-14)  # antipodal
    assert metric((90, 10), (-90, 50)) == pytest.approx(2 * quarter, rel=1e-14)
    assert metric((0, 179.5), (0, -179.5)) == pytest.approx(quarter / 90, rel=1e-12)  # across the date line
    assert metric((10, 20), (10, 20)) == 0.0
    assert metric((50, 8), (50 + 1e-9, 8)) == pytest.approx(quarter / 90 * 1e-9, rel=1e-5)


def test_hamming_counts_positions_and_a_nan_equals_itself():
    assert HammingMetric(0.5)("karolin", "kathrin") == 1.5
    assert HammingMetric(1.0)((1, math.nan), (1, float("nan"))) == 0.0
    assert HammingMetric(inf)((1, 2), (1, 2)) == 0.0  # 0 * inf counts as 0


def test_attributes_add_the_budgets_of_those_that_differ():
    metric = AttributeMetric((0.1, 1.0, 2.0))
    assert metric(("M", "Y", "A"), ("F", "Y", "B")) == pytest.approx(2.1)
    assert metric(("M", "Y", "A"), ("M", "Y", "A")) == 0.0


def test_a_graph_takes_shortest_paths_and_infinity_where_there_is_none():
    metric = GraphMetric([(0, 1), (1, 2, 0.0), (2, 0, 5.0), (0, 1, 2.0), (3, 4)], epsilon=1.0, points=[5])
    assert metric(0, 2) == 1.0  # by way of the free step; the parallel edge of weight 2 is not used
    assert metric(1, 2) == 0.0
    assert metric(0, 3) == metric(5, 0) == inf
    assert metric(5, 5) == 0.0
    assert metric.as_matrix().ids == (0, 1, 2, 3, 4, 5)


def test_a_tree_adds_up_its_path():
    metric = TreeMetric([("r", "a"), ("r", "b", 0.5), ("b", "c", 0.25)], epsilon=2.0)
    assert metric("a", "c") == 2.75


def test_scaling_multiplies_once():
    twice = scaled(scaled(EuclideanMetric(1.0), 2.0), 3.0)
    assert twice == ScaledMetric(EuclideanMetric(1.0), 6.0)
    assert twice(0.0, 1.0) == 6.0
    assert twice.name == "6 * euclidean(1)"
    assert scaled(lambda x, y: abs(x - y), 2.0).matrix([0, 1, 3]).tolist() == [[0, 2, 6], [2, 0, 4], [6, 4, 0]]


def test_values_are_the_same_when_equal_or_both_not_a_number():
    assert is_same(1, 1.0) and is_same(math.nan, float("nan")) and is_same(np.array([1, 2]), [1, 2])
    assert not is_same(1, 2) and not is_same(np.array([1, 2]), np.array([1, 3])) and not is_same(math.nan, 1.0)


# --- the axioms ---


def brute_force_is_metric(d):
    points = range(len(d))
    return all(
        d[i][i] == 0 and d[i][j] == d[j][i] >= 0 and d[i][j] <= d[i][k] + d[k][j]
        for i, j, k in itertools.product(points, repeat=3)
    )


@bounded
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 4.0, inf]), min_size=10, max_size=10))
def test_the_check_agrees_with_brute_force(upper):
    d = np.zeros((5, 5))
    d[np.triu_indices(5, 1)] = upper
    d += d.T
    if brute_force_is_metric(d.tolist()):
        check_metric(d)
    else:
        with pytest.raises(UsageError, match="violates the triangle inequality"):
            check_metric(d)


@bounded
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0, inf]), min_size=10, max_size=10))
def test_the_closure_is_the_largest_metric_below(upper):
    d = np.zeros((5, 5))
    d[np.triu_indices(5, 1)] = upper
    d += d.T
    closure = MatrixMetric(d, check_triangle=False).closure().entries
    # by enumeration of all paths; sums of halves are exact
    for i, j in itertools.permutations(range(5), 2):
        others = [k for k in range(5) if k not in (i, j)]
        paths = [p for size in range(4) for p in itertools.permutations(others, size)]
        least = min(sum(d[a, b] for a, b in itertools.pairwise((i, *p, j))) for p in paths)
        assert closure[i, j] == least


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (
            [[0, 1, 3], [1, 0, 1], [3, 1, 0]],
            r"^metric violates the triangle inequality: d\('a', 'c'\) = 3\.0 > 2\.0 = d\('a', 'b'\) \+ d\('b', 'c'\)\. "
            r"Use metric\.closure\(\) to repair it\.$",
        ),
        ([[0, 0, 3], [0, 0, 1], [3, 1, 0]], r"d\('a', 'c'\) = 3\.0 > 1\.0 = d\('a', 'b'\) \+ d\('b', 'c'\)"),
        ([[0, 1, inf], [1, 0, 1], [inf, 1, 0]], r"d\('a', 'c'\) = inf > 2\.0 = d\('a', 'b'\) \+ d\('b', 'c'\)"),
        ([[0, 1, 1], [2, 0, 1], [1, 1, 0]], r"violates symmetry: d\('b', 'a'\) = 2\.0 but d\('a', 'b'\) = 1\.0\."),
        ([[0, inf, 1], [2, 0, 1], [1, 1, 0]], r"violates symmetry: d\('a', 'b'\) = inf but d\('b', 'a'\) = 2\.0\."),
        ([[0, -1, 1], [-1, 0, 1], [1, 1, 0]], r"violates non-negativity: d\('a', 'b'\) = -1\.0 < 0\."),
        ([[0, 1, 1], [1, 0.5, 1], [1, 1, 0]], r"violates d\(x, x\) = 0: d\('b', 'b'\) = 0\.5\."),
        ([[0, 1, 1], [1, inf, 1], [1, 1, 0]], r"violates d\(x, x\) = 0: d\('b', 'b'\) = inf\."),
        (
            [[0, math.nan, 1], [math.nan, 0, 1], [1, 1, 0]],
            r"must be a number in \[0, inf\] for every two points, got d\('a', 'b'\) = nan\.",
        ),
        ([[math.nan, 1, 1], [1, 0, 1], [1, 1, 0]], r"got d\('a', 'a'\) = nan\.$"),
        ([[0, -inf, 1], [-inf, 0, 1], [1, 1, 0]], r"violates non-negativity: d\('a', 'b'\) = -inf < 0\."),
    ],
)
def test_each_axiom_is_named_with_the_points_that_violate_it(matrix, message):
    with pytest.raises(UsageError, match=message):
        check_metric(matrix, ids="abc")
    with pytest.raises(UsageError, match=message):
        MatrixMetric(matrix, "abc")


def test_without_the_triangle_check_the_other_axioms_still_hold():
    assert MatrixMetric([[0, 1, 3], [1, 0, 1], [3, 1, 0]], check_triangle=False)(0, 2) == 3.0
    with pytest.raises(UsageError, match="violates symmetry"):
        MatrixMetric([[0, 1], [2, 0]], check_triangle=False)


def test_rounding_is_tolerated_and_the_tolerance_is_an_argument():
    steps = np.abs(np.subtract.outer(np.arange(10) * 0.1, np.arange(10) * 0.1))  # sums of 0.1 round
    check_metric(steps)
    with pytest.raises(UsageError, match="triangle inequality"):
        check_metric(steps, tolerance=0.0)
    check_metric([[0, 1, 2.1], [1, 0, 1], [2.1, 1, 0]], tolerance=0.1)
    with pytest.raises(UsageError, match=r"tolerance must be in \[0, 1\), got 1\."):
        check_metric(steps, tolerance=1)


@pytest.mark.parametrize(
    ("matrix", "ids", "message"),
    [
        ([[0, 1, 2], [1, 0, 1]], None, r"matrix must be square with at least one point, got shape \(2, 3\)\."),
        ([0, 1], None, r"matrix must be square with at least one point, got shape \(2,\)\."),
        (np.zeros((0, 0)), None, r"got shape \(0, 0\)\."),
        ([[0, "far"], [1, 0]], None, r"matrix must be a square matrix of numbers, got \[\[0, 'far'\]"),
        ([[0, 1], [1]], None, r"matrix must be a square matrix of numbers, got \[\[0, 1\], \[1\]\]\."),
        ([[0, 1], [1, 0]], ["a"], r"ids must be as many as points, got 1 ids for 2 points\."),
        ([[0, 1], [1, 0]], ["a", "a"], r"ids must be unique, got 'a' at positions 0 and 1\."),
        ([[0, 1], [1, 0]], [{}, "a"], r"ids must be hashable, got \{\} at position 0\."),
    ],
)
def test_a_matrix_that_is_not_square_or_ids_that_do_not_fit_are_refused(matrix, ids, message):
    with pytest.raises(UsageError, match=message):
        MatrixMetric(matrix, ids)
    with pytest.raises(UsageError, match=message):
        check_metric(matrix, ids)


# --- refusals ---


@pytest.mark.parametrize("epsilon", [0.0, -1.0, inf, math.nan, "1"])
@pytest.mark.parametrize("build", [EuclideanMetric, SupNormMetric, AbsoluteMetric, GeoMetric, DateMetric])
def test_nats_per_unit_must_be_positive_and_finite(build, epsilon):
    with pytest.raises(UsageError, match=r"(epsilon|nats_per_km) must be in \(0, inf\), got "):
        build(epsilon)


test_what_makes_no_metric_or_no_point_is_refused = refusals(
    (lambda: HammingMetric(-1.0), "epsilon must"),
    (lambda: DiscreteMetric(math.nan), "epsilon must"),
    (lambda: AttributeMetric((1.0, -2.0)), r"epsilons\[1\] must"),
    (lambda: AttributeMetric((1.0, 2.0))("a", "b"), "x must"),
    (lambda: ValueMetric([{"a": -1}]), r"budgets\[0\]\['a'\] must"),
    (lambda: ValueMetric(NATIVE, "mean"), "combine must"),
    (lambda: ValueMetric(NATIVE)("MYA", "MYC"), r"x_prime\[2\] must"),
    (lambda: ValueMetric(NATIVE)("MYA", "MY"), "x_prime must"),
    (lambda: BlowfishMetric(1.0, 0.0), "threshold must"),
    (lambda: DateMetric(1.0, days=-1), "days must"),
    (lambda: DateMetric(1.0)("soon", "2024-01-01"), "x must"),
    (lambda: DateMetric(1.0)("2024-01-01", 5), "x_prime must"),
    (lambda: DateMetric(1.0)("2024-01-01", "NaT"), "x_prime must"),
    (lambda: EuclideanMetric(1.0)([0, 1], [0]), "x_prime must"),
    (lambda: EuclideanMetric(1.0)([0, 1], "ab"), "x_prime must"),
    (lambda: EuclideanMetric(1.0)([0, inf], [0, 1]), "x must"),
    (lambda: EuclideanMetric(1.0).matrix([[0, 1], [0]]), "points must"),
    (lambda: AbsoluteMetric(1.0)([1, 2], 3), "x must"),
    (lambda: GeoMetric(1.0)((91, 0), (0, 0)), "x must"),
    (lambda: GeoMetric(1.0)((0, 0), (0, 0, 0)), "x_prime must"),
    (lambda: HammingMetric(1.0)("abc", "ab"), "x_prime must"),
    (lambda: HammingMetric(1.0)(3, "ab"), "x must"),
    (lambda: HammingMetric(1.0).matrix(["ab", "a"]), "points must"),
    (lambda: scaled(DiscreteMetric(1.0), 0.0), "factor must"),
    (lambda: SumMetric(()), "metrics must"),
    (lambda: GraphMetric([]), "edges must"),
    (lambda: GraphMetric([(0, 1), (2,)]), r"edges\[1\] must"),
    (lambda: GraphMetric(["ab"]), r"edges\[0\] must"),
    (lambda: GraphMetric([(0, 0)]), r"edges\[0\] must"),
    (lambda: GraphMetric([(0, 1, -1)]), r"weight of edges\[0\] must"),
    (lambda: GraphMetric([(0, 1)])(0, 7), "x_prime must"),
    (lambda: TreeMetric([(0, 1), (1, 2), (2, 0)]), "edges must"),
    (lambda: TreeMetric([(0, 1)], points=[9]), "edges must"),
)
