"""Sentences of the five papers that stand outside of their numbered items: costs, comparisons, reasons."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.privacy.claims import MetricDP, PureDP
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.boxes import ConditionedLaplace
from dpaudit_mechanisms.constrained.equalities import LaplaceOnEqualities
from dpaudit_mechanisms.constrained.laplace_sums import conditional_variance, projected_variance
from dpaudit_mechanisms.datacubes import (
    DatacubeRelease,
    Domain,
    FourierStrategy,
    HaarStrategy,
    Workload,
    all_and_half,
    base_counts,
    workload_itself,
)
from dpaudit_mechanisms.datacubes.convex import convex_budgets
from dpaudit_mechanisms.distances import practical
from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.noise_scales import improvement_factor, single_scales
from dpaudit_mechanisms.reproductions.taxi import PRINTED
from dpaudit_mechanisms.reproductions.up_linear_sets import SETS, best_staircase_error
from dpaudit_mechanisms.two_metrics import (
    FiniteSpaces,
    GlobalSensitivity,
    Ladder,
    PrivacyFirst,
    Staircase,
    WidenedStaircase,
)
from dpaudit_mechanisms.two_metrics.line import query_mechanism

SEEDS = st.integers(0, 2**32)


@pytest.mark.claim("DX-N2")
def test_the_nearest_pair_sets_the_improvement_whatever_the_correlation_is():
    data = entry("DX-N2").counterexample
    for places, expected in zip((data["places"], data["nearer"]), data["improvements"], strict=True):
        metric = np.abs(np.subtract.outer(places, places))
        queries = np.array([places])
        assert np.corrcoef(np.abs(np.subtract.outer(queries[0], queries[0])).ravel(), metric.ravel())[0, 1] > 1 - 1e-12
        assert improvement_factor(queries, metric, single_scales(queries, metric)) == pytest.approx(expected)


@pytest.mark.claim("DX-N3")
@given(SEEDS, st.lists(st.integers(2, 4), min_size=1, max_size=3))
def test_range_queries_and_contingency_tables_are_linear_queries(seed, sizes):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(sizes))
    records = np.stack([rng.integers(size, size=20) for size in sizes], axis=1)
    cells = np.ravel_multi_index(records.T, sizes)
    histogram = np.bincount(cells, minlength=domain.cells).astype(float)
    low, high = sorted(rng.integers(domain.cells, size=2).tolist())
    row = ((np.arange(domain.cells) >= low) & (np.arange(domain.cells) <= high)).astype(float)
    assert row @ histogram == ((cells >= low) & (cells <= high)).sum()
    table = Workload(domain, [(0,)])
    assert (table.matrix() @ histogram).tolist() == np.bincount(records[:, 0], minlength=sizes[0]).tolist()
    assert set(np.unique(table.matrix())) <= {0.0, 1.0}


def line_spaces(positions, masses):
    """Datasets and values alike, at positions on a line; neighbours are at most 1 apart."""
    metric = np.abs(np.subtract.outer(positions, positions))
    return FiniteSpaces(metric, range(len(positions)), metric, measure=masses)


@pytest.mark.claim("UP-N3")
def test_a_larger_penalty_may_lower_the_accuracy_of_a_dataset_with_an_important_value():
    data = entry("UP-N3").counterexample
    spaces = line_spaces(data["positions"], data["masses"])
    found = [WidenedStaircase(spaces, data["epsilon"], 0.0, data["important"], t).accuracy(data["within"])[0]
             for t in data["penalties"]]  # fmt: skip
    assert [round(float(value), 2) for value in found] == [0.93, 0.63]


@pytest.mark.claim("UP-N4")
@given(SEEDS, st.integers(2, 7), st.floats(0.1, 3.0))
def test_the_ladder_keeps_twice_the_weight_of_a_level(seed, count, epsilon):
    rng = np.random.default_rng(seed)
    datasets, values = rng.integers(0, 6, size=count).astype(float), np.cumsum(rng.uniform(0.2, 2.0, size=count))
    spaces = FiniteSpaces(np.abs(np.subtract.outer(datasets, datasets)), range(count),
                          np.abs(np.subtract.outer(values, values)))  # fmt: skip
    assert Ladder(spaces, epsilon).epsilon_exact <= 2.0 * epsilon * (1.0 + 1e-12)


@pytest.mark.claim("CD-N3")
def test_the_denominator_of_conditioning_depends_on_the_data_but_for_equalities_that_hold_on_all_of_it():
    half_line = ConditionedLaplace(1.0, [0.0], [math.inf])
    at_the_end, inside = (float(half_line.masses([place])[0]) for place in (0.0, half_line.scale))
    assert at_the_end == 0.5 and inside == pytest.approx(1.0 - 0.5 / math.e)
    given_sum, rng = LaplaceOnEqualities(1.0, Affine([[1.0, 1.0, 1.0]], [6.0])), np.random.default_rng(1)
    answers = given_sum.given.project(rng.normal(size=(20, 3)))
    peaks = [float(given_sum.log_density(answer, answer[None])[0]) for answer in answers]  # minus the log normaliser
    assert np.ptp(peaks) < 1e-12


@pytest.mark.claim("DC-N6")
def test_bits_for_nine_values_cost_cells_that_no_record_can_be_in():
    data = entry("DC-N6").counterexample
    native = Domain((data["values"],))
    encoded = native.encoded()
    assert (encoded.cells, encoded.attributes) == (data["cells"], data["attributes"])
    own, bits = Workload(native, [(0,)]), Workload(native, [(0,)]).encoded()
    assert FourierStrategy(own).rows == data["values"] and FourierStrategy(bits).rows == data["cells"]
    assert Domain((8,)).encoded().cells == 8  # nothing is lost


@pytest.mark.claim("DC-N7")
@pytest.mark.parametrize("levels", [1, 2, 3, 6])
def test_wavelets_and_fourier_coefficients_are_products_of_sparse_matrices(levels):
    size = 2**levels
    haar, entries = np.eye(size), 0
    for level in range(levels):  # sums and differences of neighbours, of the sums so far
        width = size >> level
        factor = np.eye(size)
        factor[:width, :width] = 0.0
        for k in range(width // 2):
            factor[k, [2 * k, 2 * k + 1]] = 1.0, 1.0
            factor[width // 2 + k, [2 * k, 2 * k + 1]] = 1.0, -1.0
        haar, entries = factor @ haar, entries + 2 * width
    assert entries <= 4 * size
    assert sorted(map(tuple, np.abs(haar).tolist())) == sorted(
        map(tuple, np.abs(HaarStrategy(Domain.binary(levels)).matrix()).tolist())
    )
    hadamard, entries = np.eye(1), 0
    for _ in range(levels):  # one attribute after the other: two entries a row each
        hadamard, entries = np.kron(hadamard, [[1.0, 1.0], [1.0, -1.0]]), entries + 2 * size
    assert entries <= 2 * size * levels
    fourier = FourierStrategy(Workload(Domain.binary(levels), [range(levels)])).matrix() * math.sqrt(size)
    assert sorted(map(tuple, np.round(fourier, 9).tolist())) == sorted(map(tuple, hadamard.tolist()))


@pytest.mark.claim("MQ-N5")
def test_the_promised_error_falls_faster_than_that_of_generic_mechanisms_from_some_size_on():
    sizes = 10 ** np.arange(4, 13)
    alphas = [practical(int(n), [1.0], 1.0, 1e-6, queries=1_000, beta=0.05).alpha for n in sizes]
    over = np.array(alphas) * np.sqrt(sizes)
    assert (np.diff(over) < 0.0).all() and over[4] > 1.0 > over[5]  # n = 10^8 and 10^9


@pytest.mark.claim("DC-N8")
@given(SEEDS, st.integers(1, 12), st.integers(1, 40), st.sampled_from([1, 2]))
def test_the_program_of_the_budgets_is_convex_and_a_barrier_ends_at_its_optimum(seed, rows, columns, order):
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0.1, 10.0, size=rows)
    changes = np.hstack([rng.integers(0, 3, size=(rows, columns)), np.eye(rows)])
    one, other = rng.uniform(0.01, 1.0, size=(2, rows))

    def total(budgets):
        return float((costs / budgets**2).sum())

    assert total((one + other) / 2.0) <= (total(one) + total(other)) / 2.0 * (1.0 + 1e-12)
    found = convex_budgets(costs, changes, order)
    assert ((changes**order).T @ found.budgets**order <= 1.0 + 1e-9).all()  # linear in b^p
    assert found.lower_bound <= found.value * (1.0 + 1e-9) <= found.lower_bound * (1.0 + 1e-8)


@pytest.mark.claim("DC-N9")
@pytest.mark.parametrize("strategy", [workload_itself, FourierStrategy, lambda workload: base_counts(workload.domain)])
def test_optimal_budgets_take_less_than_a_second_more_than_uniform_ones(strategy):
    workload = all_and_half(Domain.binary(16), 2)
    rows = strategy(workload)

    def seconds(budgets):
        start = time.process_time()
        DatacubeRelease(workload, rows, PureDP(1.0), budgets)
        return time.process_time() - start

    assert seconds("optimal") - seconds("uniform") < 1.0


@pytest.mark.claim("UP-N5")
def test_a_concave_set_is_better_than_the_staircase_and_a_convex_one_is_worse():
    data = entry("UP-N5").counterexample
    rates = [
        query_mechanism(SETS[data[name]], data["epsilon"]).expected_error() / best_staircase_error(data["epsilon"])
        for name in ("concave", "convex")
    ]
    assert [round(rate, 3) for rate in rates] == data["rates"] and rates[0] < 1.0 < rates[1]
    assert [len(SETS[data[name]]) for name in ("concave", "convex")] == [2, 1]


@pytest.mark.claim("UP-N6")
@given(SEEDS, st.integers(2, 7), st.floats(0.1, 3.0))
def test_where_datasets_are_as_far_apart_as_their_values_both_theorems_give_one_law(seed, count, epsilon):
    rng = np.random.default_rng(seed)
    values = np.cumsum([0.0, 1.0, *rng.integers(1, 4, size=count - 1)])  # a pair at 1 has the sensitivity
    steps = np.abs(np.subtract.outer(values, values))
    spaces = FiniteSpaces(steps, range(count + 1), 0.7 * steps)
    utility, privacy, plain = (kind(spaces, epsilon) for kind in (Staircase, PrivacyFirst, GlobalSensitivity))
    assert np.allclose(utility.log_laws, privacy.log_laws, atol=1e-9)
    assert np.allclose(np.ceil(plain.levels - 1e-9), utility.levels)


@pytest.mark.claim("CD-N4")
def test_conditioning_has_the_smaller_errors_in_both_scenarios():
    assert all(conditional_variance(n) < projected_variance(n) for n in range(2, 271))
    table = np.array([PRINTED[epsilon] for epsilon in sorted(PRINTED)])  # budgets, levels, (M_MH, TopDown)
    for axis in (0, 1):
        chains, top_down = table.sum(axis=axis).T
        assert (chains < top_down).all()


@pytest.mark.claim("DX-N4")
def test_a_budget_for_each_value_of_a_record_cannot_be_one_for_each_pair():
    metric = MetricDP(lambda x, x_prime: abs(x - x_prime))
    of_pairs = [metric.for_pair(0.0, other).value for other in (1.0, 2.0)]
    assert of_pairs == [1.0, 2.0]  # one record of value 0, two budgets
