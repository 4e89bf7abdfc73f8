"""Cells and how they are cut: counts, single outcomes, edges. Nothing here is random, so nothing has an error rate."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.learning import edge_counts
from dpaudit.learning.cells import (
    LARGEST_ATOMS,
    MOST_CELLS,
    MOST_WHOLE,
    SEPARATE_VALUES,
    Cells,
    CellSet,
    Ordered,
    cells_from_dict,
    quantile_edges,
    rare_edges,
    value_edges,
    whole_edges,
)
from dpaudit.learning.scores import Coordinate
from dpaudit.reading.outcomes import Outcomes, Reading, read_outputs

FIXED = settings(derandomize=True, deadline=None, max_examples=80)
LARGEST = float(np.finfo(float).max)

anything = st.one_of(
    st.floats(-4.0, 4.0),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, LARGEST, -LARGEST, 5e-324]),
    st.floats(allow_nan=True, allow_infinity=True),
)
samples = st.lists(anything, max_size=60)
CUTS = {"quantile": quantile_edges, "rare": rare_edges, "whole": whole_edges}


def outcomes(values):
    return Outcomes(np.array(values, dtype=float).reshape(-1, 1))


def cut(edges):
    return Cells(Coordinate(0, 1), np.array(edges, dtype=float), Reading(1))


@st.composite
def some_cells(draw):
    edges = draw(st.lists(anything.filter(lambda v: not math.isnan(v)), max_size=6))
    return cut(np.unique(edges))


# --- counts ---


@FIXED
@given(some_cells(), samples, samples)
def test_a_sample_that_was_sorted_is_cut_and_counted_as_any_other(cells, first, second):
    both = np.array([*first, *second], dtype=float)
    ordered = Ordered.of(np.array(first, dtype=float)).with_others(Ordered.of(np.array(second, dtype=float)))
    assert ordered.counts(cells.edges).tolist() == cells.count(outcomes(both)).tolist()
    for find in (quantile_edges, rare_edges):
        assert find(ordered).tolist() == find(both).tolist()


@FIXED
@given(some_cells(), samples)
def test_index_and_count_agree_and_every_outcome_is_counted_once(cells, values):
    index, counts = cells.index(outcomes(values)), cells.count(outcomes(values))
    assert counts.tolist() == np.bincount(index, minlength=cells.size).tolist()
    assert counts.sum() == len(values) and counts.dtype == np.int64
    assert counts[-1] == sum(math.isnan(value) for value in values)
    assert len(counts) == cells.size == len(cells.zeros())


@FIXED
@given(some_cells(), samples)
def test_a_cell_holds_its_lower_edge(cells, values):
    for value, index in zip(values, cells.index(outcomes(values)).tolist(), strict=True):
        if math.isnan(value):
            assert index == cells.size - 1
        else:
            assert index == sum(edge <= value for edge in cells.edges.tolist())


@FIXED
@given(some_cells(), samples, st.integers(0, 60))
def test_counts_add_up_over_batches(cells, values, at):
    first, second = cells.count(outcomes(values[:at])), cells.count(outcomes(values[at:]))
    assert (first + second).tolist() == cells.count(outcomes(values)).tolist()


@FIXED
@given(some_cells(), samples)
def test_the_cell_of_an_output_is_that_of_the_output_alone(cells, values):
    # Validity: the rest of the batch must not move an output.
    together = cells.index(outcomes(values)).tolist()
    assert together == [int(cells.index(outcomes([value]))[0]) for value in values]


def test_the_cell_of_an_output_is_its_own_among_objects_too():
    cells = cut([0.0, 1.0])
    mixed = [0.5, None, 2.0, "text", [1.0, 2.0], -1.0]
    together = cells.index(read_outputs(mixed, len(mixed))).tolist()
    alone = [int(cells.index(read_outputs([output], 1))[0]) for output in mixed]
    assert together == alone == [1, 3, 2, 3, 3, 0]


def test_blocks_of_a_long_batch_change_nothing(monkeypatch):
    values = np.concatenate([np.linspace(-3.0, 3.0, 1_001), [math.nan, math.inf, -math.inf]])
    cells = cut([-1.0, 0.0, 0.5])
    whole = cells.count(outcomes(values)).tolist()
    monkeypatch.setattr(edge_counts, "BLOCK", 7)
    assert cells.count(outcomes(values)).tolist() == whole


@FIXED
@given(st.lists(some_cells(), min_size=1, max_size=4), samples)
def test_partitions_that_are_counted_together_have_the_counts_they_have_alone(several, values):
    together = CellSet(tuple(several))
    batch = outcomes(values)
    assert together.count(batch).tolist() == [n for cells in several for n in cells.count(batch).tolist()]
    assert together.zeros().tolist() == together.count(batch.rows(slice(0, 0))).tolist()


@FIXED
@given(some_cells(), samples)
def test_cells_are_read_back_as_they_were_written(cells, values):
    back = cells_from_dict(cells.to_dict(), None, 0, 1)
    assert back.edges.tolist() == cells.edges.tolist()
    assert (back.score, back.reading) == (cells.score, cells.reading)
    assert back.count(outcomes(values)).tolist() == cells.count(outcomes(values)).tolist()


@pytest.mark.parametrize("edges", [[1.0, 1.0], [2.0, 1.0], [math.nan], [0.0, math.nan]])
def test_edges_that_do_not_increase_are_refused(edges):
    with pytest.raises(ValueError, match="increasing"):
        cells_from_dict(cut(edges).to_dict(), None, 0, 1)


# --- edges ---


@FIXED
@given(samples, st.sampled_from(sorted(CUTS)), st.integers(1, 6))
def test_edges_increase_lie_within_the_sample_and_leave_no_end_empty(values, name, copies):
    scores = np.array(values * copies)
    edges = CUTS[name](scores)
    known = scores[~np.isnan(scores)]
    assert not np.any(np.isnan(edges)) and np.all(edges[1:] > edges[:-1])
    if len(edges):
        assert known.min() < edges[0] and edges[-1] <= known.max()
        counts = cut(edges).count(outcomes(scores))
        assert counts[0] > 0 and counts[-2] > 0  # the two ends; the last cell is NaN's


@pytest.mark.parametrize("name", sorted(CUTS))
@pytest.mark.parametrize(
    "values", [[], [1.0], [3.0] * 50, [math.nan] * 20, [math.inf] * 20, [-math.inf] * 20, [0.0, -0.0] * 10]
)
def test_scores_that_do_not_differ_have_one_cell(name, values):
    assert len(CUTS[name](np.array(values))) == 0


@pytest.mark.parametrize("pair", [(1.0, 2.0), (1.0, math.nextafter(1.0, 2.0)), (-math.inf, math.inf), (0.0, 5e-324)])
@pytest.mark.parametrize("pair_last", [False, True])
def test_two_values_have_a_cell_each(pair, pair_last):
    values = np.array([*pair, *([pair[pair_last]] * 30)])
    edges = quantile_edges(values)
    low, high = cut(edges).index(outcomes(pair)).tolist()
    assert len(edges) == 1 and (low, high) == (0, 1)


@pytest.mark.parametrize("values", [(LARGEST, -LARGEST), (1e308, 1.5e308), (-math.inf, 0.0), (0.0, math.inf)])
def test_huge_and_infinite_values_are_told_apart(values):
    low, high = sorted(values)
    edges = quantile_edges(np.array([low] * 5 + [high] * 5))
    assert cut(edges).index(outcomes([low, high])).tolist() == [0, 1]


def test_few_different_values_have_a_cell_each():
    values = np.repeat(np.arange(SEPARATE_VALUES, dtype=float), 10)
    index = cut(quantile_edges(values)).index(outcomes(np.arange(SEPARATE_VALUES)))
    assert sorted(index.tolist()) == list(range(SEPARATE_VALUES))
    assert len(rare_edges(values)) == 0  # they have cells of their own already


def test_an_atom_has_a_cell_of_its_own():
    smooth = np.random.default_rng(0).normal(size=2_000)
    for atom in (0.25, 3.0):
        for find in (quantile_edges, rare_edges):
            edges = find(np.concatenate([smooth, np.full(100, atom)]))
            counts = cut(edges).count(outcomes([atom, math.nextafter(atom, -9.0), math.nextafter(atom, 9.0)]))
            assert sorted(counts.tolist())[-3:] == [1, 1, 1]


def test_of_many_atoms_the_most_frequent_have_cells():
    rng = np.random.default_rng(0)
    atoms = np.arange(20) + 0.5
    values = np.concatenate([rng.uniform(0, 20, 4_000), np.repeat(atoms, np.arange(20, 40))])
    edges = set(rare_edges(values).tolist())
    assert [atom in edges for atom in atoms] == [k >= 20 - LARGEST_ATOMS for k in range(20)]


def test_cells_have_about_equal_mass_and_tails_have_rare_ones():
    values = np.random.default_rng(0).normal(size=20_000)
    shares = cut(quantile_edges(values)).count(outcomes(values))[:-1] / 20_000
    inner = shares[5:-5]
    # the outermost two cells of equal mass are cut into tails
    assert np.all(np.abs(inner[1:-1] - 1.0 / MOST_CELLS) < 1e-3)
    assert shares[0] == pytest.approx(0.001, abs=1e-4) and shares[-1] == pytest.approx(0.001, abs=1e-4)


def test_a_small_sample_has_few_cells():
    values = np.random.default_rng(0).normal(size=24)
    assert len(quantile_edges(values)) + 1 <= 4


def test_value_edges_are_between_some_dozens_of_values_that_come_again_and_again():
    values = np.repeat(np.arange(20.0) * 3.0, 12)
    assert value_edges(Ordered.of(values)).tolist() == (np.arange(19.0) * 3.0 + 1.5).tolist()
    assert len(value_edges(Ordered.of(values[:-1]))) == 0  # 12 draws a value
    assert len(value_edges(Ordered.of(np.repeat(np.arange(12.0), 50)))) == 0  # these have cells of their own already
    assert len(value_edges(Ordered.of(np.repeat(np.arange(MOST_WHOLE + 1.0), 50)))) == 0
    assert len(value_edges(Ordered.of(np.repeat(np.arange(float(MOST_WHOLE)), 50)))) == MOST_WHOLE - 1


def test_whole_edges_are_the_integers_within_a_sample_that_is_not_of_integers():
    values = np.array([-1.5, 0.2, 0.7, 2.5])
    assert whole_edges(values).tolist() == [-1.0, 0.0, 1.0, 2.0]
    assert len(whole_edges(np.arange(10.0))) == 0  # integers have cells already
    assert len(whole_edges(values * 1e6)) == 0  # too many
    assert len(whole_edges(np.array([0.1, 0.2, MOST_WHOLE - 0.5]))) == MOST_WHOLE - 1
    assert whole_edges(np.array([*values, math.inf, -math.inf, math.nan])).tolist() == [-1.0, 0.0, 1.0, 2.0]
