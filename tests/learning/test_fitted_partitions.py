"""Partitions fitted on a pair's earlier draws: their counts, their kinds, and what they see.

The draws come from fixed seeds; what is asserted of them holds for every draw, so no assertion has an error rate,
except where a comment says so.
"""

import math

import numpy as np
import pytest

from dpaudit.learning.fitted_partitions import Partition, fit_partitions
from dpaudit.learning.hints import Hints
from dpaudit.learning.scores import LogRatio
from dpaudit.reading.outcomes import Outcomes, read_outputs


def numbers(rng, size, shift):
    return rng.normal(size=size) + shift


def integers(rng, size, shift):
    return rng.poisson(3.0 + shift, size=size)


def vectors(rng, size, shift):
    return rng.normal(size=(size, 5)) + shift * np.eye(5)[2]


def texts(rng, size, shift):
    return [("a", "bb", "ccc")[k] for k in np.minimum(rng.poisson(1.0 + shift, size=size), 2)]


def rows(rng, size, shift):
    return [{"count": int(k), "noise": float(rng.normal())} for k in rng.poisson(3.0 + shift, size=size)]


def mixed(rng, size, shift):
    return [None if rng.uniform() < 0.2 else float(rng.normal() + shift) for _ in range(size)]


def vague(rng, size, shift):
    return np.where(rng.uniform(size=size) < 0.1, np.nan, rng.normal(size=size) + shift)


KINDS = [numbers, integers, vectors, texts, rows, mixed, vague]


def both(law, seed, size=400, shift=0.7):
    rng = np.random.default_rng(seed)
    return tuple(read_outputs(law(rng, size, s), size) for s in (shift, 0.0))


@pytest.mark.parametrize("law", KINDS)
@pytest.mark.parametrize("size", [12, 400])
def test_the_counts_are_those_of_the_draws_that_were_given(law, size):
    first, second = both(law, 1, size)
    partitions = fit_partitions(first, second)
    assert partitions
    for partition in partitions:
        assert partition.counts[1].tolist() == partition.cells.count(first).tolist()
        assert partition.counts[0].tolist() == partition.cells.count(second).tolist()
        assert partition.counts.shape == (2, partition.cells.size)


@pytest.mark.parametrize("law", KINDS)
def test_names_are_unique_within_a_fit_and_the_same_for_like_draws(law):
    fits = [[p.name for p in fit_partitions(*both(law, seed, 3_000))] for seed in (1, 2)]
    assert all(len(set(names)) == len(names) for names in fits)
    # What a partition has won finds it again: the simplest, at least, are the same in both.
    assert fits[0][0] == fits[1][0]
    assert len(set(fits[0]) & set(fits[1])) >= 0.6 * min(map(len, fits))


def test_kinds_of_a_growing_sample_find_each_other():
    first, second = both(numbers, 1, 2_000)
    kinds = [
        {p.kind for p in fit_partitions(first.rows(slice(0, n)), second.rows(slice(0, n)))}
        for n in (400, 600, 1_000, 2_000)
    ]
    assert kinds[0] == kinds[1] == kinds[2] == kinds[3]


def test_a_number_is_looked_at_in_several_ways_and_the_simplest_comes_first():
    partitions = fit_partitions(*both(numbers, 1, 2_000))
    free = [p for p in partitions if p.order == "free"]
    assert [p.kind.split()[-1] for p in free] == ["coarse", "rare", "fine", "whole", "remainder"]
    assert [p.is_rough for p in free] == [False, True, False, True, True]


def test_coarse_partitions_have_twins_behind_them_and_that_of_the_first_score_has_two():
    partitions = fit_partitions(*both(vectors, 1, 2_000))
    kinds = list(dict.fromkeys(p.kind for p in partitions))
    assert len(kinds) > 2
    orders = [[p.order for p in partitions if p.kind == kind] for kind in kinds]
    assert orders[0] == ["free", "mirrored", "monotone"]
    assert [p.kind for p in partitions] == [kind for kind, own in zip(kinds, orders, strict=True) for _ in own]
    for kind, own in zip(kinds[1:], orders[1:], strict=True):
        assert own == (["free", "mirrored"] if kind.endswith("coarse") else ["free"])
    assert all(p.cells is q.cells for p in partitions for q in partitions if p.kind == q.kind)


def test_too_few_cells_have_no_order():
    for values, orders in (([1.0], ["free"]), ([0.0, 1.0], ["free", "mirrored"])):
        outcomes = read_outputs(values * 20, 20 * len(values))
        partitions = fit_partitions(outcomes, outcomes)
        assert [p.order for p in partitions if p.kind == partitions[0].kind] == orders


def test_the_log_ratio_of_the_mechanism_comes_first():
    def log_density(data, outputs):
        return -0.5 * (outputs - data) ** 2

    first, second = both(numbers, 1, 200)
    assert fit_partitions(first, second, Hints(LogRatio(log_density, 0.7, 0.0)))[0].kind == "LogRatio 1 coarse"


@pytest.mark.parametrize("values", [[1.0] * 20, [float("nan")] * 20, [float("inf")] * 20, [[]] * 20, [None] * 20])
def test_outputs_that_are_all_alike_have_a_partition_all_the_same(values):
    outcomes = read_outputs(values, 20)
    for partition in fit_partitions(outcomes, outcomes):
        assert partition.counts.sum() == 40
        assert np.count_nonzero(partition.counts[0]) == 1


def test_outputs_of_different_forms_on_the_two_sides_are_compared_as_objects():
    first, second = read_outputs([1.0, 2.0] * 20, 40), read_outputs([[1.0, 2.0]] * 40, 40)
    partitions = fit_partitions(first, second)
    # in one of them, no cell holds draws of both sides
    assert any(not np.any(np.minimum(p.counts[0], p.counts[1])) for p in partitions)


@pytest.mark.parametrize("law", KINDS)
def test_the_cell_of_an_output_does_not_depend_on_its_batch(law):
    # Validity: see `dpaudit.reading.outcomes`.
    first, second = both(law, 1, 400)
    fresh = law(np.random.default_rng(7), 25, 0.3)
    for partition in fit_partitions(first, second):
        together = partition.cells.index(read_outputs(fresh, 25)).tolist()
        assert together == [int(partition.cells.index(read_outputs([v], 1))[0]) for v in fresh]


def test_evidence_is_what_cells_told_of_the_labels_less_what_many_cells_tell_by_chance():
    cells = fit_partitions(Outcomes(np.zeros((4, 1))), Outcomes(np.ones((4, 1))))[0].cells
    clear, even = (
        Partition(cells, np.array(counts), "k") for counts in ([[12, 0, 0], [0, 12, 0]], [[6, 6, 0], [6, 6, 0]])
    )
    assert clear.evidence == pytest.approx(24 * math.log(2.0) - 0.5 * math.log(24.0))  # empty cells are none
    assert even.evidence == pytest.approx(-0.5 * math.log(24.0))
    assert Partition(cells, np.zeros((2, 3), dtype=int), "k").evidence == 0.0
