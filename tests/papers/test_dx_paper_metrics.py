"""The worked example and the metrics of the paper on d_X-privacy, and the laws about one scale c for one query.

Universe of Example 1, in the order x_1..x_8: MYA, MYB, MNA, MNB, FYA, FYB, FNA, FNB. Counterexamples come from the
ledger.
"""

import datetime
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.errors import UsageError
from dpaudit.privacy.finite_metrics import GraphMetric, MatrixMetric, TreeMetric, check_metric
from dpaudit.privacy.metrics import (
    AttributeMetric,
    BlowfishMetric,
    DateMetric,
    EuclideanMetric,
    SmoothBlowfishMetric,
    SupNormMetric,
    ValueMetric,
)
from dpaudit_mechanisms.dx_laplace import DxLaplace, noise_scales
from dpaudit_mechanisms.histograms import all_histograms
from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.noise_scales import improvement_factor

SEEDS = st.integers(0, 2**32)
ELEMENTS = [tuple(name) for name in ("MYA", "MYB", "MNA", "MNB", "FYA", "FYB", "FNA", "FNB")]
QUERY_Y, QUERY_N, QUERY_M, QUERY_MA, QUERY_MYA = (
    np.array([float(all(value in element for value in name)) for element in ELEMENTS])
    for name in ("Y", "N", "M", "MA", "MYA")
)


def budgets_of(combine, epsilon_0=0.1, epsilon_1=1.0):
    """Eq. (3) on the eight elements, with another combination of two budgets where one is given."""
    values = [{"M": epsilon_1, "F": epsilon_1}, {"Y": epsilon_0, "N": epsilon_1}, {"A": epsilon_1, "B": epsilon_1}]
    return by_hand(combine, values)


def by_hand(combine, values):
    """The sum over attributes that differ, written out; `values` are the budgets of each attribute's values."""

    def distance(i, j):
        return sum(combine(budget[v], budget[w]) for budget, v, w in zip(values, i, j, strict=True) if v != w)

    return np.array([[distance(i, j) for j in ELEMENTS] for i in ELEMENTS])


def is_metric(matrix):
    try:
        check_metric(matrix)
    except UsageError:
        return False
    return True


def scale(query, metric):
    """c = max |q_i - q_j| / d(i, j)."""
    return float(noise_scales([query], metric, "single")[0])


@st.composite
def metrics(draw, most_elements=6):
    """Euclidean distances of random points, no two the same."""
    rng = np.random.default_rng(draw(SEEDS))
    points = rng.uniform(0.0, 10.0, size=(draw(st.integers(2, most_elements)), 2))
    return EuclideanMetric(1.0).matrix(points), points, rng


# ---- the worked example ---------------------------------------------------------------------------------------------


@pytest.mark.claim("DX-E-Fig1")
def test_the_universe_of_the_figure_has_eight_elements_in_the_order_of_the_example():
    assert list(itertools.product("MF", "YN", "AB")) == ELEMENTS


@pytest.mark.claim("DX-X1.1")
def test_the_answer_about_natives_follows_from_the_one_about_others():
    assert (QUERY_Y + QUERY_N).tolist() == [1.0] * 8
    for x in all_histograms(8, 3):
        assert QUERY_Y @ x == 3 - QUERY_N @ x
    # With an infinite budget for all pairs (N) is answered without noise, and so n - (N) is (Y).
    unprotected = np.where(np.eye(8, dtype=bool), 0.0, math.inf)
    mechanism = DxLaplace(QUERY_N, unprotected, "single", base_histogram=[2.0, 1.0, 0.0, 3.0, 0.0, 0.0, 1.0, 0.0])
    released = mechanism.sample(0, 1, np.random.default_rng(1))[0]
    assert 8.0 - released == 4.0 == QUERY_Y @ [3.0, 1.0, 0.0, 3.0, 0.0, 0.0, 1.0, 0.0]


@pytest.mark.claim("DX-X1.2")
@given(st.lists(st.floats(0.01, 5.0), min_size=6, max_size=6))
def test_the_minimum_is_a_metric_for_binary_attributes(budgets):
    values = [dict(zip(names, budgets[2 * k : 2 * k + 2], strict=True)) for k, names in enumerate(("MF", "YN", "AB"))]
    matrix = ValueMetric(values).matrix(ELEMENTS)
    assert is_metric(matrix)
    assert is_metric(budgets_of(min))
    assert matrix == pytest.approx(by_hand(min, values))


@pytest.mark.claim("DX-X1.3")
def test_the_distances_of_the_example():
    matrix = budgets_of(min)
    assert matrix[0, [0, 1, 2, 7]] == pytest.approx([0.0, 1.0, 0.1, 2.1])


@pytest.mark.claim("DX-X1.4", "DX-X1.5")
@pytest.mark.parametrize(
    ("query", "expected", "first"), [(QUERY_N, 10.0, (0, 2)), (QUERY_M, 1.0, (0, 4))], ids=["N", "M"]
)
def test_the_scales_of_the_example_and_the_pairs_that_set_them(query, expected, first):
    matrix = budgets_of(min)
    ratios = np.abs(query[:, None] - query) / np.where(np.eye(8, dtype=bool), 1.0, matrix)
    assert scale(query, matrix) == pytest.approx(expected) == ratios.max()
    reached = [tuple(pair) for pair in np.argwhere(np.isclose(ratios, expected)).tolist()]
    assert first in reached and len(reached) > 2  # not unique


@pytest.mark.claim("DX-X1.6")
def test_an_infinite_budget_is_a_metric_too_and_frees_queries_that_are_not_sensitive():
    matrix = budgets_of(min, 0.1, math.inf)
    assert is_metric(matrix)
    for query, c in ((QUERY_M, 0.0), (QUERY_MA, 0.0), (QUERY_N, 10.0)):
        assert scale(query, matrix) == pytest.approx(c)


# ---- section 5 ------------------------------------------------------------------------------------------------------


@pytest.mark.claim("DX-X2")
@given(st.integers(1, 4), SEEDS)
def test_the_minimum_generalises_to_binary_attributes_and_not_to_three_values(attributes, seed):
    rng = np.random.default_rng(seed)
    values = [dict(zip("ab", rng.uniform(0.01, 3.0, size=2), strict=True)) for _ in range(attributes)]
    assert is_metric(ValueMetric(values).matrix(list(itertools.product("ab", repeat=attributes))))
    three = ValueMetric([{"a": 1.0, "b": 0.1, "c": 1.0}]).matrix([("a",), ("b",), ("c",)])
    assert three[0, 2] == 1.0 > three[0, 1] + three[1, 2] == 0.2
    assert not is_metric(three)


@pytest.mark.claim("DX-X3")
@given(st.integers(1, 3), st.integers(2, 4), SEEDS)
def test_the_sum_is_a_metric_above_the_minimum(attributes, count, seed):
    rng = np.random.default_rng(seed)
    names = "abcd"[:count]
    values = [dict(zip(names, rng.uniform(0.01, 3.0, size=count), strict=True)) for _ in range(attributes)]
    points = list(itertools.product(names, repeat=attributes))
    sums, minima = (ValueMetric(values, combine=how).matrix(points) for how in ("sum", "min"))
    assert is_metric(sums)
    assert (sums >= minima).all()
    same = [{name: value["a"] for name in names} for value in values]  # epsilon_k for all values
    of_attributes = AttributeMetric([value["a"] for value in values]).matrix(points)
    assert ValueMetric(same, combine="sum").matrix(points) == pytest.approx(2.0 * of_attributes)
    closure = MatrixMetric(minima, check_triangle=False).closure().matrix(range(len(points)))
    assert is_metric(closure) and (closure <= minima + 1e-12).all()  # the correction: it asks no less than eq. (3)


@pytest.mark.claim("DX-X3")
def test_the_sum_does_not_meet_the_requirement_of_the_minimum():
    data = entry("DX-X3").counterexample
    low, high = data["epsilon_0"], data["epsilon_1"]
    assert scale(QUERY_N, budgets_of(min, low, high)) == pytest.approx(data["required"])
    assert scale(QUERY_N, budgets_of(lambda a, b: a + b, low, high)) == pytest.approx(data["given"])
    assert data["given"] < data["required"]


@pytest.mark.claim("DX-X4")
@given(st.integers(1, 3), st.integers(2, 5), SEEDS)
def test_weighted_attributes_and_sums_of_personal_budgets_are_metrics(attributes, count, seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.01, 3.0, size=attributes)
    points = list(itertools.product("ab", repeat=attributes))
    by_attribute = AttributeMetric(weights.tolist()).matrix(points)
    assert is_metric(by_attribute)
    personal = rng.uniform(0.01, 3.0, size=count)
    by_element = (personal[:, None] + personal) * (1.0 - np.eye(count))
    assert is_metric(by_element)
    # Lower budgets for more sensitive attributes and elements never lower the noise of any query.
    for matrix, lower in (
        (by_attribute, AttributeMetric([weights[0] / 2.0, *weights[1:].tolist()]).matrix(points)),
        (by_element, by_element - np.where(np.eye(count, dtype=bool), 0.0, personal.min() / 2.0)),
    ):
        query = rng.normal(size=len(matrix))
        assert scale(query, lower) >= scale(query, matrix)


@pytest.mark.claim("DX-X5")
@given(st.lists(st.dates(datetime.date(1990, 1, 1), datetime.date(2030, 1, 1)), min_size=2, max_size=5, unique=True))
def test_dates_are_a_metric_in_days(dates):
    matrix = DateMetric(0.5, days=30).matrix(dates)
    assert is_metric(matrix)
    assert matrix[0, 1] == pytest.approx(0.5 * abs((dates[0] - dates[1]).days) / 30.0)


@pytest.mark.claim("DX-X6")
@given(st.integers(2, 5), st.integers(1, 6), SEEDS)
def test_the_largest_difference_of_time_series_is_a_metric(count, length, seed):
    series = np.random.default_rng(seed).normal(size=(count, length))
    matrix = SupNormMetric(2.0).matrix(list(series))
    assert is_metric(matrix)
    assert matrix[0, 1] == pytest.approx(2.0 * max(abs(a - b) for a, b in zip(series[0], series[1], strict=True)))


@pytest.mark.claim("DX-X7")
@given(st.integers(2, 6), SEEDS)
def test_shortest_paths_in_graphs_and_trees_are_metrics(count, seed):
    rng = np.random.default_rng(seed)
    weights = {(int(rng.integers(0, k)), k): float(rng.uniform(0.1, 2.0)) for k in range(1, count)}
    tree = TreeMetric([(i, j, w) for (i, j), w in weights.items()])
    extra = [(0, count - 1, 0.05)] if (0, count - 1) not in weights else []
    graph = GraphMetric([(i, j, w) for (i, j), w in weights.items()] + extra)
    for metric in (tree, graph, TreeMetric(list(weights))):
        assert is_metric(metric.matrix(range(count)))
    for (i, j), weight in weights.items():
        assert tree(i, j) == pytest.approx(weight)
        assert graph(i, j) <= weight


@pytest.mark.claim("DX-X8")
def test_the_maximum_is_a_metric_that_does_not_protect():
    matrix = budgets_of(max)
    assert is_metric(matrix)
    assert scale(QUERY_N, matrix) == 1.0 < scale(QUERY_N, budgets_of(min))


@pytest.mark.claim("DX-X9")
def test_a_correlated_query_has_less_noise():
    matrix = budgets_of(min)
    assert scale(QUERY_MA, matrix) == 1.0
    assert scale(QUERY_MYA, matrix) == 10.0
    assert 0.9 * scale(QUERY_MA, matrix) < scale(QUERY_MYA, matrix)
    assert QUERY_MA.tolist() == (QUERY_MYA + np.eye(8)[2]).tolist()  # (MA) = MYA + MNA


# ---- Blowfish -------------------------------------------------------------------------------------------------------


@pytest.mark.claim("DX-D-Blow")
def test_the_printed_blowfish_distance_is_no_metric_and_its_closure_is():
    data = entry("DX-D-Blow").counterexample
    points = [[value] for value in data["points"]]
    matrix = BlowfishMetric(data["epsilon"], threshold=data["threshold"]).matrix(points)
    assert matrix[0, 2] == math.inf > matrix[0, 1] + matrix[1, 2]
    assert not is_metric(matrix)
    closure = MatrixMetric(matrix, check_triangle=False).closure().matrix(range(3))
    assert closure[0, 2] == data["closure"] and is_metric(closure)
    for query in ([0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]):
        assert scale(query, closure) == scale(query, matrix)


@pytest.mark.claim("DX-D-Smooth", "DX-C17")
@given(metrics(), st.floats(0.5, 12.0), st.floats(0.1, 3.0))
def test_the_smooth_form_is_a_metric_and_asks_at_least_what_blowfish_asks(instance, threshold, epsilon):
    distances, points, rng = instance
    smooth = SmoothBlowfishMetric(epsilon, threshold=threshold).matrix(list(points))
    blow = BlowfishMetric(epsilon, threshold=threshold).matrix(list(points))
    off = ~np.eye(len(points), dtype=bool)
    expected = np.where(distances <= threshold, epsilon, epsilon * distances / threshold)
    assert smooth[off] == pytest.approx(expected[off])
    assert is_metric(smooth)
    assert (smooth <= blow).all()
    query = rng.uniform(size=len(points))
    assert scale(query, smooth) >= scale(query, blow)  # DX-C17, the ordering, query by query


@pytest.mark.claim("DX-C16")
@given(metrics(), st.floats(0.5, 12.0), st.floats(1.0, 3.0))
def test_a_larger_threshold_never_needs_less_noise(instance, threshold, factor):
    _, points, rng = instance
    query = rng.uniform(size=len(points))
    for kind in (BlowfishMetric, SmoothBlowfishMetric):
        near, far = (kind(1.0, threshold=t).matrix(list(points)) for t in (threshold, factor * threshold))
        assert (far <= near * (1.0 + 1e-12)).all()
        assert scale(query, far) >= scale(query, near) * (1.0 - 1e-12)


# ---- one scale for one query, and the improvement factor ------------------------------------------------------------


@pytest.mark.claim("DX-D-IF1", "DX-D-IFK")
def test_improvement_factors_by_hand():
    metric = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 4.0], [3.0, 4.0, 0.0]])
    assert improvement_factor([[0.0, 0.0, 3.0]], metric, [scale([0.0, 0.0, 3.0], metric)]) == pytest.approx(
        3.0
    )  # (3 / 1) / 1
    queries = np.array([[0.0, 0.0, 3.0], [0.0, 1.0, 0.0]])
    # Delta_1 = max over pairs of l1 distances of columns: (0,0)-(0,1): 1, (0,0)-(3,0): 3, (0,1)-(3,0): 4
    assert improvement_factor(queries, metric, [2.0, 8.0]) == pytest.approx(math.sqrt(4.0 / 2.0 * 4.0 / 8.0))


@pytest.mark.claim("DX-C11")
@pytest.mark.parametrize("factor", [0.1, 1.0, 7.0])
@given(metrics())
def test_the_improvement_factor_does_not_depend_on_epsilon(factor, instance):
    metric, _, rng = instance
    query = rng.uniform(size=len(metric))
    expected = improvement_factor([query], metric, [scale(query, metric)])
    assert improvement_factor([query], factor * metric, [scale(query, factor * metric)]) == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.claim("DX-C15")
def test_the_improvement_factor_grows_without_bound_as_two_points_meet():
    query = [0.0, 0.0, 1.0]
    factors, scales = [], []
    for gap in (1.0, 0.1, 1e-3, 1e-6):
        metric = EuclideanMetric(1.0).matrix([[0.0, 0.0], [gap, 0.0], [0.0, 5.0]])
        scales.append(scale(query, metric))
        factors.append(improvement_factor([query], metric, [scales[-1]]))
    assert scales == pytest.approx([0.2] * 4)  # the noise that is needed stays
    assert factors == pytest.approx([5.0 / gap for gap in (1.0, 0.1, 1e-3, 1e-6)])


@pytest.mark.claim("DX-C14")
def test_strategy_one_may_gain_as_much_as_one_likes_on_a_binary_query():
    data = entry("DX-C14").counterexample
    metric, queries = np.array(data["metric"]), np.array(data["queries"])
    assert is_metric(metric) and set(queries.ravel().tolist()) == {0.0, 1.0}
    c = noise_scales(queries, metric, "S1")
    off = ~np.eye(len(metric), dtype=bool)
    assert improvement_factor(queries, metric, c) == pytest.approx(data["improvement"])
    assert data["improvement"] > 1.5
    assert c[0] < len(queries) / metric[off].min() / 9.0  # far below "essentially K / min d"


@pytest.mark.claim("DX-C14")
@given(metrics(), st.integers(1, 4))
def test_strategy_one_never_needs_more_than_k_over_the_least_budget_on_binary_queries(instance, count):
    metric, _, rng = instance
    queries = rng.integers(0, 2, size=(count, len(metric))).astype(float)
    scales = noise_scales(queries, metric, "S1")
    nearest = np.unravel_index(np.argmin(metric + np.diag(np.full(len(metric), np.inf))), metric.shape)
    largest = count / metric[nearest]
    assert (scales <= largest * (1.0 + 1e-12)).all()
    differs = queries[:, nearest[0]] != queries[:, nearest[1]]  # reached where the nearest pair differs
    assert scales[differs] == pytest.approx(np.full(differs.sum(), largest))


@pytest.mark.claim("DX-L1")
@given(metrics(), st.integers(1, 4))
def test_the_improvement_factor_is_at_least_one(instance, count):
    metric, _, rng = instance
    queries = rng.uniform(size=(count, len(metric)))
    assert improvement_factor(queries[:1], metric, [scale(queries[0], metric)]) >= 1.0 - 1e-12
    assert improvement_factor(queries, metric, noise_scales(queries, metric, "S2")) >= 1.0 - 1e-12


@pytest.mark.claim("DX-L3")
@given(st.integers(2, 5), SEEDS, st.booleans())
def test_the_scale_is_that_of_the_closure(count, seed, has_infinite):
    rng = np.random.default_rng(seed)
    budgets = rng.uniform(0.1, 3.0, size=(count, count))
    if has_infinite:
        budgets[0, -1] = math.inf
    budgets = np.triu(budgets, 1) + np.triu(budgets, 1).T
    closure = MatrixMetric(budgets, check_triangle=False).closure().matrix(range(count))
    query = rng.normal(size=count)
    assert scale(query, closure) == pytest.approx(scale(query, budgets), rel=1e-12)


@pytest.mark.claim("DX-L5")
@given(metrics(), st.integers(1, 4))
def test_larger_budgets_never_need_more_noise(instance, count):
    metric, _, rng = instance
    rise = rng.uniform(0.0, 1.0, size=metric.shape)
    larger = metric + (rise + rise.T) * ~np.eye(len(metric), dtype=bool)
    queries = rng.uniform(size=(count, len(metric)))
    for rule in ("S1", "S2"):
        assert (noise_scales(queries, metric, rule) >= noise_scales(queries, larger, rule) * (1.0 - 1e-12)).all()
    assert scale(queries[0], metric) >= scale(queries[0], larger) * (1.0 - 1e-12)


@pytest.mark.claim("DX-C6")
@pytest.mark.parametrize("elements", range(3, 11))
def test_the_number_of_constraints_is_quadratic(elements):
    pairs = list(itertools.combinations(range(elements), 2))
    assert len(pairs) == elements * (elements - 1) // 2 < 2**elements
    data = entry("DX-C6").counterexample
    if elements == data["elements"]:
        assert len(pairs) == data["constraints"] != data["printed"] == 2**elements
    # As linear constraints of K queries: one for each vector of signs, whose largest left side is the l1 norm.
    rng = np.random.default_rng(elements)
    columns = rng.normal(size=(3, elements))
    for i, j in pairs:
        rows = [np.dot(signs, columns[:, i] - columns[:, j]) for signs in itertools.product((-1.0, 1.0), repeat=3)]
        assert len(rows) == 2**3 and max(rows) == pytest.approx(np.abs(columns[:, i] - columns[:, j]).sum())
