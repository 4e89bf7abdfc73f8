"""The shared partition: atoms, NaN, any output, and cells that depend on one output alone."""

import json

import numpy as np
import pytest

from dpaudit.features.outcomes import Outcomes, from_objects, read_outputs
from dpaudit.learning.partition import SIZES, CellScore, Partition, cell_score_from_dict, fit_partition


def outcomes_of(values):
    return read_outputs(values, len(values))


DRAWS = 16 * SIZES.max_cells  # of each input in the pilot: as many as all leaves take


def plane_parts(seed, inputs=20, draws=500):
    rng = np.random.default_rng(seed)
    return [outcomes_of(rng.normal(size=(draws, 2)) + np.array([k, 0.0])) for k in range(inputs)]


def test_every_output_has_one_cell_and_cells_of_the_tree_hold_about_equally_many_pooled_draws():
    parts = plane_parts(1)
    partition = fit_partition(parts, DRAWS)
    counts = sum(partition.count(part) for part in parts)
    assert counts.sum() == 20 * 500
    assert partition.size == SIZES.max_cells + 1  # no atoms; one cell is for NaN
    leaves = counts[1:]
    # A cut at the median leaves halves that differ by one draw; 10,000 draws over 512 leaves: 16 to 32 each.
    assert leaves.min() >= 16
    assert leaves.max() <= 32


def test_the_cell_of_an_output_does_not_depend_on_the_rest_of_its_batch():
    parts = plane_parts(2)
    partition = fit_partition(parts, DRAWS)
    batch = parts[3]
    together = partition.cells(batch)
    assert [int(partition.cells(batch.rows(slice(k, k + 1)))[0]) for k in range(50)] == together[:50].tolist()
    # Nor on the form that the batch has: the same numbers beside a None are read one by one.
    mixed = from_objects([*batch.numbers[:5].tolist(), None])
    assert partition.cells(mixed)[:5].tolist() == together[:5].tolist()


def test_a_value_that_leaks_has_a_cell_of_its_own_and_nan_too():
    rng = np.random.default_rng(3)
    noise = [rng.normal(size=2_000) for _ in range(5)]
    noise[2][:100] = 0.125
    noise[4][:50] = np.nan
    partition = fit_partition([outcomes_of(values) for values in noise], DRAWS)
    cells = partition.cells(outcomes_of(np.array([0.125, np.nextafter(0.125, 1.0), np.nan, 0.1])))
    assert len(set(cells.tolist())) == 4 or cells[1] == cells[3]
    assert cells[0] not in cells[1:]
    assert cells[2] not in cells[[0, 1, 3]]


def test_integers_and_categories_become_atoms():
    rng = np.random.default_rng(4)
    integers = fit_partition([outcomes_of(rng.integers(0, 6, size=300)) for _ in range(4)], DRAWS)
    assert len(set(integers.cells(outcomes_of(np.arange(6))).tolist())) == 6
    words = fit_partition([outcomes_of(rng.choice(["a", "b", "c"], size=300).tolist()) for _ in range(4)], DRAWS)
    cells = words.cells(outcomes_of(["a", "b", "c", "never seen"]))
    assert len(set(cells.tolist())) == 4


def test_outputs_of_mixed_kinds_are_read_as_objects():
    rng = np.random.default_rng(5)
    values = [[None if u < 0.3 else float(u) for u in rng.random(400)] for _ in range(3)]
    partition = fit_partition([outcomes_of(batch) for batch in values], DRAWS)
    assert partition.columns == 0
    cells = partition.cells(outcomes_of([None, 0.4, 0.9]))
    assert len(set(cells.tolist())) == 3


def test_the_tree_splits_the_columns_that_differ_between_inputs():
    rng = np.random.default_rng(6)
    parts = []
    for k in range(12):
        values = rng.normal(size=(800, 300))
        values[:, 217] += k
        parts.append(outcomes_of(values))
    partition = fit_partition(parts, DRAWS)
    # F statistic of column 217 about 300 * 12 / 1: thousands. Others enter beyond 5 + sqrt(2 log(thousands of views))
    # deviations, about 9; only that 217 is used most is asserted.
    used, counts = np.unique(partition.column[partition.leaf < 0], return_counts=True)
    assert partition.views[used[counts.argmax()]].columns == (217,)


def test_the_saved_partition_has_the_same_cells_and_so_has_a_score_on_it():
    parts = plane_parts(7)
    partition = fit_partition(parts, DRAWS)
    saved = json.loads(json.dumps(partition.to_dict()))
    again = Partition.from_dict(saved)
    assert np.array_equal(again.cells(parts[0]), partition.cells(parts[0]))
    score = CellScore(partition, (3, 4), (7,))
    record = {**json.loads(json.dumps(score.to_dict())), "partition": saved}
    assert np.array_equal(cell_score_from_dict(record)(parts[0]), score(parts[0]))
    assert set(np.unique(score(parts[0])).tolist()) <= {-1.0, 0.0, 1.0}


def test_a_broken_record_is_refused():
    saved = fit_partition(plane_parts(8), DRAWS).to_dict()
    with pytest.raises(ValueError, match="children follow their parents"):
        Partition.from_dict({**saved, "child": [0] * len(saved["child"])})
    with pytest.raises(ValueError, match="needs the partition"):
        cell_score_from_dict({"kind": "cells", "plus": [1], "minus": [2]})
    with pytest.raises(ValueError, match="different ones"):
        cell_score_from_dict({"kind": "cells", "plus": [1], "minus": [1], "partition": saved})


def test_outputs_without_any_variation_are_one_cell():
    partition = fit_partition([Outcomes(np.zeros((50, 1))) for _ in range(3)], DRAWS)
    assert partition.count(Outcomes(np.zeros((9, 1)))).max() == 9


def test_a_number_inside_of_objects_has_cells():
    """An object was one token: where nearly all differ, nothing was told."""
    rng = np.random.default_rng(9)
    parts = [outcomes_of([{"a": float(v), "b": [1, 2]} for v in rng.normal(size=400) + k]) for k in range(4)]
    partition = fit_partition(parts, DRAWS)
    cells = [partition.cells(part) for part in parts]
    assert partition.size > 50
    shares = [np.bincount(one, minlength=partition.size) / 400 for one in cells]
    # Normal laws three deviations apart have a distance of 0.87; 400 draws in 50 cells and more add to it.
    assert 0.5 * np.abs(shares[0] - shares[3]).sum() > 0.8


def test_what_is_worked_out_is_split_where_it_tells_much_more_than_the_numbers():
    rng = np.random.default_rng(10)
    parts = []
    for k in range(4):  # two numbers whose sum tells, and each of which tells nothing
        first = rng.normal(size=1_000) * 50.0
        parts.append(outcomes_of(np.stack([first, 3.0 * k + rng.normal(size=1_000) - first], axis=1)))
    partition = fit_partition(parts, DRAWS)
    assert partition.reader is not None
    shares = [partition.count(part) / 1_000 for part in parts]
    # Normal laws 9 deviations apart.
    assert 0.5 * np.abs(shares[0] - shares[3]).sum() > 0.95


def test_a_partition_that_was_saved_before_views_is_read():
    numbers = np.random.default_rng(11).normal(size=(50, 3))
    record = {
        "columns": 3,
        "atoms": [],
        "column": [2, 0, 0, 0, 0],
        "threshold": [(0.0).hex()] * 5,
        "child": [1, 3, 2, 3, 4],
    }
    cells = Partition.from_dict(record).cells(Outcomes(numbers))
    # Cell 0 is for NaN; leaves are counted in the order of their nodes.
    expected = np.where(numbers[:, 2] > 0.0, 1, np.where(numbers[:, 0] > 0.0, 3, 2))
    assert np.array_equal(cells, expected)


def test_there_are_no_more_leaves_than_the_draws_of_an_input_can_fill():
    for draws, leaves in ((160, 10), (1_600, 100), (10**6, SIZES.max_cells)):
        assert fit_partition(plane_parts(1), draws).size == leaves + 1  # one cell is for NaN
