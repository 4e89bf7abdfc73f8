"""Histograms of n records: enumeration, neighbours and budgets."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refusals

from dpaudit_mechanisms.histograms import HistogramMetric, all_histograms, histogram_count, histogram_of, neighbours


@given(st.integers(1, 4), st.integers(0, 6))
def test_every_histogram_is_listed_once(elements, records):
    rows = all_histograms(elements, records)
    by_hand = [row for row in itertools.product(range(records + 1), repeat=elements) if sum(row) == records]
    assert sorted(map(tuple, rows.tolist())) == sorted(by_hand)
    assert len(rows) == histogram_count(elements, records)
    assert rows.tolist() == sorted(rows.tolist(), reverse=True)


@pytest.mark.claim("DX-D2")
@pytest.mark.parametrize("bounded", [True, False])
@given(st.integers(2, 3), st.lists(st.integers(0, 3), min_size=2, max_size=3))
def test_neighbours_are_those_of_the_definition(bounded, elements, counts):
    x = np.array([*counts, 0][:elements])
    found = {(tuple(x_prime.tolist()), frozenset((i, j))) for x_prime, i, j in neighbours(x, bounded)}
    expected = set()
    for other in itertools.product(range(int(x.max()) + 3), repeat=elements):
        differs = np.flatnonzero(np.array(other) != x)
        is_near = np.abs(np.array(other) - x).sum() <= 2 and len(differs) == 2  # x_i and x_j differ, i != j
        if is_near and (not bounded or sum(other) == x.sum()):
            expected.add((other, frozenset(differs.tolist())))
    assert found == expected


@pytest.mark.claim("DX-D2")
def test_the_budget_of_neighbours_is_that_of_the_two_elements():
    metric = HistogramMetric([[0.0, 1.0, 2.0], [1.0, 0.0, 1.5], [2.0, 1.5, 0.0]])
    assert metric((1, 1, 0), (0, 1, 1)) == 2.0 == metric((0, 1, 1), (1, 1, 0))
    assert metric((1, 1, 0), (1, 1, 0)) == 0.0
    assert metric((2, 0, 0), (0, 2, 0)) == math.inf  # two records change: not asked
    assert metric((1, 0, 0), (1, 1, 0)) == metric((1, 0, 0), (2, 1, 0)) == math.inf  # n is public


test_what_makes_no_sense_is_refused = refusals(
    (lambda: all_histograms(30, 30), "histograms must"),
    (lambda: all_histograms(0, 3), "elements must"),
    (lambda: histogram_of([0.5, 1.0], 2), "data must"),
    (lambda: histogram_of([1, 1], 2, 3), "data must"),
)
