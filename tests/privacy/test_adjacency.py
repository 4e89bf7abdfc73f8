"""Adjacency: neighbours by brute force over small worlds, types kept, and every refusal."""

import itertools

import numpy as np
import pytest
from support.refusals import refusals

from dpaudit.privacy.adjacency import add_remove, replace_one


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


test_what_has_no_neighbours_is_refused = refusals(
    (lambda: replace_one((), (0, 1)), "dataset must"),
    (lambda: replace_one((0,), (0,)), "domain must"),
    (lambda: replace_one((0,), (0, 1, 1)), "domain must"),
    (lambda: replace_one(5, (0, 1)), "dataset must"),
    (lambda: add_remove((3,), (0, 1)), "dataset must"),
    (lambda: add_remove((), ()), "domain must"),
)
