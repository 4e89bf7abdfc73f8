"""Adjacency: neighbours by brute force over small worlds, types kept, and every refusal."""

import itertools
import math

import numpy as np
import pytest
from support.refusals import refusals

from dpaudit.privacy.adjacency import add_remove, explicit, replace_one, within
from dpaudit.privacy.finite_metrics import MatrixMetric
from dpaudit.privacy.metrics import AbsoluteMetric, DiscreteMetric
from dpaudit.privacy.pairs import Pair


def test_replace_one_lists_every_dataset_at_hamming_distance_one():
    domain, dataset = ("a", "b", "c"), ("a", "c", "a")
    neighbours = {
        other
        for other in itertools.product(domain, repeat=3)
        if sum(u != v for u, v in zip(other, dataset, strict=True)) == 1
    }
    pairs = replace_one(dataset, domain)
    assert {pair.x_prime for pair in pairs} == neighbours
    assert len(pairs) == len(neighbours) == 6
    assert all(pair.x is dataset for pair in pairs)


def test_add_remove_lists_every_dataset_with_one_row_fewer_or_one_more():
    pairs = add_remove([0, 1, 1], domain=[0, 1])
    assert [pair.x_prime for pair in pairs] == [[1, 1], [0, 1], [0, 1], [0, 1, 1, 0], [0, 1, 1, 1]]


@pytest.mark.parametrize("relation", [replace_one, add_remove])
def test_neighbours_have_the_type_of_the_dataset(relation):
    assert all(type(pair.x_prime) is list for pair in relation([0, 1], [0, 1]))
    assert all(type(pair.x_prime) is tuple for pair in relation((0, 1), [0, 1]))
    for pair in relation(np.array([0, 1]), [0, 1]):
        assert isinstance(pair.x_prime, np.ndarray) and pair.x_prime.dtype == pair.x.dtype


def test_rows_may_be_vectors():
    dataset, domain = np.array([[0, 0], [0, 1]]), np.array([[0, 0], [0, 1], [1, 1]])
    pairs = replace_one(dataset, domain)
    assert len(pairs) == 4
    assert pairs[0].x_prime.tolist() == [[0, 1], [0, 1]]
    assert add_remove(dataset, domain)[0].x_prime.tolist() == [[0, 1]]


def test_ids_say_what_changed_and_are_unique():
    assert replace_one((0, 1), (0, 1))[0].x_prime_id == "row 0 = 1"
    ids = [pair.id for pair in add_remove((0, 0, 0), (0, 1))]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("at_most", "at_least", "count"), [(1.0, 0.0, 2), (2.0, 1.5, 1), (math.inf, 0.0, 6), (0.0, 0.0, 1)]
)
def test_within_keeps_the_pairs_between_the_bounds(at_most, at_least, count):
    inputs = [0.0, 1.0, 1.0, 3.0]
    pairs = within(AbsoluteMetric(1.0), inputs, at_most=at_most, at_least=at_least)
    expected = [(x, y) for x, y in itertools.combinations(inputs, 2) if at_least <= abs(x - y) <= at_most]
    assert [(pair.x, pair.x_prime) for pair in pairs] == expected
    assert len(pairs) >= count


def test_within_leaves_out_infinite_budgets_unless_it_is_asked_for_them():
    metric = MatrixMetric([[0, 1, math.inf], [1, 0, math.inf], [math.inf, math.inf, 0]], "abc")
    assert [pair.id for pair in within(metric, "abc", at_most=700.0)] == ["'a'|'b'"]
    assert len(within(metric, "abc", at_most=math.inf)) == 3


def test_explicit_pairs_are_the_callers_own():
    own = Pair(0, 1, id="own")
    assert explicit([own, (1, 2)])[0] is own


test_what_has_no_neighbours_is_refused = refusals(
    (lambda: replace_one((), (0, 1)), "dataset must"),
    (lambda: replace_one((0,), (0,)), "domain must"),
    (lambda: replace_one((0,), (0, 1, 1)), "domain must"),
    (lambda: replace_one(5, (0, 1)), "dataset must"),
    (lambda: add_remove((3,), (0, 1)), "dataset must"),
    (lambda: add_remove((), ()), "domain must"),
    (lambda: within(DiscreteMetric(1.0), [0], at_most=1.0), "inputs must"),
    (lambda: within(DiscreteMetric(1.0), [0, 1], at_most=-1.0), "at_most must"),
    (lambda: within(DiscreteMetric(1.0), [0, 1], at_most=1.0, at_least=2.0), "at_least must"),
    (lambda: within(DiscreteMetric(1.0), [0, 1], at_most=0.5), "at_most must"),
    (lambda: within(lambda x, y: math.nan if x + y == 1 else 1.0, [0, 1, 2], at_most=2.0), r"got nan for 0\|1"),
    (lambda: within(DiscreteMetric(1.0), [0, 1], at_most=1.0, ids=["a"]), "ids must"),
    (lambda: within(DiscreteMetric(1.0), [0, 1], at_most=1.0, ids=["a", "a"]), "ids must"),
)
