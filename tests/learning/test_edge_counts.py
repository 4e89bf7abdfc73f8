"""Counts between edges: four ways to count, one result. Nothing here is random, so nothing has an error rate."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.learning import edge_counts, histograms
from dpaudit.learning.cells import Cells, CellSet
from dpaudit.learning.edge_counts import EdgeCounter
from dpaudit.learning.histograms import Coordinate, Remainder
from dpaudit.reading.outcomes import Outcomes, Reading

FIXED = settings(derandomize=True, deadline=None, max_examples=150)
LARGEST = float(np.finfo(float).max)
SMALLEST = 5e-324

anything = st.one_of(
    st.integers(-6, 6).map(lambda k: k / 2),
    st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, LARGEST, -LARGEST, SMALLEST, -SMALLEST]),
    st.floats(-4.0, 4.0),
    st.floats(allow_nan=True, allow_infinity=True),
)
numbers = st.lists(anything, max_size=60)
edge_lists = st.lists(anything.filter(lambda v: not math.isnan(v)), max_size=12).map(np.unique)


@pytest.fixture
def always_by_grid(monkeypatch):
    monkeypatch.setattr(edge_counts, "FEW_NUMBERS", 0)
    monkeypatch.setattr(edge_counts, "FEW_EDGES", {0: -1})
    monkeypatch.setattr(edge_counts, "BLOCK", 7)
    monkeypatch.setattr(edge_counts, "PLACES", 8)


def expected(edges, values):
    """One by one: the number of edges at or below each number."""
    counts = [0] * (len(edges) + 2)
    for value in values:
        counts[-1 if math.isnan(value) else sum(edge <= value for edge in edges.tolist())] += 1
    return counts


@FIXED
@given(edge_lists, numbers)
def test_counts_of_few_numbers_are_those_of_comparisons(edges, values):
    assert EdgeCounter(edges).count(np.array(values, dtype=float)).tolist() == expected(edges, values)


@FIXED
@given(edge_lists, numbers)
def test_all_ways_to_count_agree(edges, values):
    counter, array = EdgeCounter(edges), np.array(values, dtype=float)
    assert counter._by_comparison(array).tolist() == expected(edges, values)
    assert counter._by_search(array).tolist() == expected(edges, values)
    assert counter._by_sorting(array).tolist() == expected(edges, values)


@FIXED
@given(edge_lists, numbers)
def test_numbers_sorted_in_blocks_are_counted_as_in_one(edges, values):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_counts, "BLOCK", 7)
        assert EdgeCounter(edges)._by_sorting(np.array(values, dtype=float)).tolist() == expected(edges, values)


@pytest.mark.usefixtures("always_by_grid")
def test_the_grid_counts_as_comparisons_do():
    grids = []

    @FIXED
    @given(edge_lists, numbers)
    def check(edges, values):
        counter = EdgeCounter(edges)
        assert counter.count(np.array(values, dtype=float)).tolist() == expected(edges, values)
        grids.append(counter._grid is not None)

    check()
    assert sum(grids) > 50, "the grid has to be what is tested"


@pytest.mark.parametrize(
    "edges",
    [np.linspace(-3.0, 3.0, 90), np.linspace(-3.0, 3.0, 400), np.array([-math.inf, *np.arange(30.0), math.inf])],
)
@pytest.mark.parametrize("size", [500, 5_000, 40_000])
def test_many_numbers_and_many_edges_are_counted_as_by_search(edges, size):
    values = np.random.default_rng(size).standard_cauchy(size)
    values[::7], values[3::50], values[4::50] = np.round(values[::7]), math.nan, math.inf
    values[5::100], values[6::100] = edges[1], np.nextafter(edges[-2], 0.0)
    counter = EdgeCounter(edges)
    assert counter.count(values).tolist() == counter._by_search(values).tolist()
    assert counter.count(values[::3]).tolist() == counter._by_search(values[::3]).tolist()  # not contiguous


@FIXED
@given(st.lists(st.tuples(edge_lists, st.booleans(), st.booleans()), min_size=1, max_size=5), numbers)
def test_partitions_of_several_scores_are_counted_together_as_alone(parts, values):
    remainder = Remainder(2.0)  # one object, and coordinates that are equal: both ways of sharing a score
    several = [
        Cells(remainder if is_remainder else Coordinate(0, 1), edges, Reading(2 if is_wide else 1))
        for edges, is_remainder, is_wide in parts
    ]
    batch = Outcomes(np.array(values, dtype=float).reshape(-1, 1))
    alone = [n for cells in several for n in cells.count(batch).tolist()]
    assert CellSet(tuple(several)).count(batch).tolist() == alone
    assert alone == [n for cells in several for n in np.bincount(cells.index(batch), minlength=cells.size).tolist()]


@FIXED
@given(numbers)
def test_remainders_modulo_two_are_the_general_ones(values):
    array = np.array([*values, 5.0, -5.0, -1e-17, -3 * SMALLEST, -2 * SMALLEST], dtype=float)
    with np.errstate(invalid="ignore"):
        general = np.mod(array, 2.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histograms, "BLOCK", 7)
        assert np.array_equal(Remainder(2.0)(Outcomes(array[:, None])), general, equal_nan=True)


def test_the_cell_of_a_number_on_the_grid_is_that_of_a_search(monkeypatch):
    monkeypatch.setattr(edge_counts, "FEW_NUMBERS", 0)
    monkeypatch.setattr(edge_counts, "BLOCK", 7)
    monkeypatch.setattr(edge_counts, "PLACES", 8)
    grids = []

    @FIXED
    @given(edge_lists, numbers)
    def check(edges, values):
        counter = EdgeCounter(edges)
        index = counter.index(np.array(values, dtype=float)).tolist()
        known = [len(edges) + 1 if math.isnan(v) else sum(edge <= v for edge in edges.tolist()) for v in values]
        assert index == known
        grids.append(counter._grid is not None)

    check()
    assert sum(grids) > 50, "the grid has to be what is tested"


def test_partitions_that_have_counted_are_sent_as_short_as_others():
    edges = np.linspace(-1.0, 1.0, 40)
    several = CellSet(tuple(Cells(Coordinate(0, 1), edges[::step], Reading(1)) for step in (1, 2)))
    batch = Outcomes(np.linspace(-2.0, 2.0, 3_000)[:, None])
    short = pickle.dumps(several)
    counts = several.count(batch)
    assert pickle.dumps(several) == short
    assert pickle.loads(short).count(batch).tolist() == counts.tolist()


def test_a_counter_is_sent_without_its_grid_and_counts_the_same():
    numbers = np.random.default_rng(20_262_108).normal(size=5_000)
    counter = EdgeCounter(np.linspace(-2.0, 2.0, 100))
    counts = counter.count(numbers)
    sent = pickle.dumps(counter)
    assert len(sent) < 2 * counter.edges.nbytes and pickle.loads(sent).count(numbers).tolist() == counts.tolist()
