"""Domains: every pair that they make is adjacent, and the patterns of the literature are among them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from dpaudit.errors import UsageError
from dpaudit.subjects.domains import (
    DatasetDomain,
    ListedDomain,
    NumberDomain,
    VectorDomain,
    domain_from_dict,
)

SEED = 20_261_122  # of pairs at random; nothing here is a statistical assertion


def is_near_number(domain, x, y):
    return abs(x - y) <= domain.change * (1 + 1e-12) and all(domain.low <= v <= domain.high for v in (x, y))


def is_near_vector(domain, x, y):
    x, y = np.asarray(x), np.asarray(y)
    change = y - x
    inside = all(domain.low <= v.min() and v.max() <= domain.high for v in (x, y)) and len(x) == len(y) == domain.length
    limit = domain.change * (1 + 1e-9)
    if domain.adjacency == "each":
        return inside and np.abs(change).max() <= limit
    places = np.flatnonzero(change)
    few = len(places) <= (1 if domain.adjacency == "one" else 2)
    balanced = domain.adjacency == "one" or abs(change.sum()) < 1e-9
    return inside and few and balanced and np.abs(change).max() <= limit


def is_near_dataset(domain, x, y):
    sizes = all(domain.smallest <= len(v) <= domain.largest for v in (x, y))
    shorter, longer = sorted((list(x), list(y)), key=len)
    if domain.adjacency == "replace_one":
        return sizes and len(shorter) == len(longer) and sum(a != b for a, b in zip(shorter, longer, strict=True)) <= 1
    return sizes and any(shorter == [*longer[:k], *longer[k + 1 :]] for k in range(len(longer)))


CASES = [
    (NumberDomain(0, 10), is_near_number),
    (NumberDomain(-3, 8, change=2, integer=True), is_near_number),
    (NumberDomain(0, 10, change=1.5, integer=True), is_near_number),
    (NumberDomain(0, 1, change=math.inf), is_near_number),
    (VectorDomain(5, 0, 4), is_near_vector),
    (VectorDomain(5, 0, 4, integer=True), is_near_vector),
    (VectorDomain(1, -1, 1, change=0.5), is_near_vector),
    (VectorDomain(4, 0, 9, integer=True, adjacency="one"), is_near_vector),
    (VectorDomain(4, 0, 9, integer=True, adjacency="moved"), is_near_vector),
    (VectorDomain(4, 0, 9, change=2.5, integer=True, adjacency="one"), is_near_vector),
    (VectorDomain(2, 0, 9, change=math.inf), is_near_vector),
    (DatasetDomain((0, 1)), is_near_dataset),
    (DatasetDomain.between(0.0, 1.0, largest=6), is_near_dataset),
    (DatasetDomain((0, 1, 2), largest=5, adjacency="replace_one", smallest=1), is_near_dataset),
    (DatasetDomain((0, 1), largest=20, smallest=10), is_near_dataset),
    (DatasetDomain.of_examples([[1, 2, 3], [5]]), is_near_dataset),
    (DatasetDomain.of_examples([(1, 2, 3), (5, 7)], "replace_one"), is_near_dataset),
]


@pytest.mark.parametrize(("domain", "is_near"), CASES, ids=[str(k) for k in range(len(CASES))])
def test_every_start_random_pair_and_move_is_adjacent(domain, is_near):
    rng = np.random.default_rng(SEED)
    starts = [(x, y) for _, x, y in domain.starts()]
    assert len(starts) >= 4
    pairs = [*starts, *(domain.random(rng) for _ in range(100))]
    pairs += [move for x, y in pairs[:60] for move in domain.moves(x, y, rng)]
    for x, y in pairs:
        assert is_near(domain, x, y), (x, y)


@pytest.mark.parametrize(("domain", "is_near"), CASES, ids=[str(k) for k in range(len(CASES))])
def test_moves_reach_other_pairs(domain, is_near):
    rng = np.random.default_rng(SEED)
    x, y = next((x, y) for _, x, y in domain.starts())
    seen = {repr((list(np.ravel(a)), list(np.ravel(b)))) for _ in range(10) for a, b in domain.moves(x, y, rng)}
    assert len(seen) >= (2 if isinstance(domain, DatasetDomain) else 3)


def test_the_patterns_of_the_literature_are_starts():
    # Ding et al. 2018, table 1: the changes of five answers, each by 1.
    starts = {(family, *(np.asarray(y) - np.asarray(x)).tolist()) for family, x, y in VectorDomain(5, 0, 8).starts()}
    assert {
        ("one above", 1, 0, 0, 0, 0),
        ("one below", -1, 0, 0, 0, 0),
        ("one above, rest below", 1, -1, -1, -1, -1),
        ("one below, rest above", -1, 1, 1, 1, 1),
        ("half and half", 1, 1, -1, -1, -1),
        ("all above", 1, 1, 1, 1, 1),
        ("all below", -1, -1, -1, -1, -1),
        ("x shape", -1, -1, 1, 1, 1),
    } <= starts


def test_the_empty_dataset_a_single_record_duplicates_and_the_ends_are_starts():
    pairs = [(x, y) for _, x, y in DatasetDomain.between(0.0, 9.0, largest=4).starts()]
    for expected in (([], [0.0]), ([], [9.0]), ([9.0], [9.0, 9.0]), ([0.0], [0.0, 9.0]), ([9.0] * 3, [9.0] * 4)):
        assert expected in pairs


def test_special_values_appear_only_where_they_are_named():
    def has_nan(domain):
        return any(np.isnan(np.ravel(np.asarray(v, dtype=float))).any() for _, x, y in domain.starts() for v in (x, y))

    for kind in (NumberDomain, VectorDomain, lambda *ends, **more: DatasetDomain.between(*ends, **more)):
        ends = (2, 0.0, 1.0) if kind is VectorDomain else (0.0, 1.0)
        assert not has_nan(kind(*ends))
    assert has_nan(NumberDomain(0.0, 1.0, special=(math.nan,)))
    assert has_nan(VectorDomain(2, 0.0, 1.0, special=(math.nan,)))
    values = DatasetDomain.between(0.0, 1.0, special=(math.nan, math.inf)).values
    assert math.inf in values and any(v != v for v in values)


def test_a_special_value_of_a_whole_vector_is_its_only_change():
    domain = VectorDomain(3, 0, 9, integer=True, adjacency="one", special=(math.nan,))
    ((x, y),) = [(x, y) for family, x, y in domain.starts() if family == "special"]
    assert math.isnan(y[0]) and x.tolist()[1:] == y.tolist()[1:] == [4, 4]


def test_neighbours_of_examples_have_their_type_and_their_records():
    arrays = DatasetDomain.of_examples([np.array([3.0, 9.0, 5.0])])
    for _, x, y in arrays.starts():
        assert isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.dtype == y.dtype == float
        assert set(x) | set(y) <= {3.0, 9.0, 5.0}
    assert any(len(x) == 0 or len(y) == 0 for _, x, y in arrays.starts())


def test_a_list_of_inputs_pairs_those_that_are_adjacent():
    domain = ListedDomain((0, 1, 5), adjacent=lambda x, y: abs(x - y) == 1)
    assert [(x, y) for _, x, y in domain.starts()] == [(0, 1)]
    rng = np.random.default_rng(SEED)
    assert set(domain.random(rng)) == {0, 1}
    assert len(list(ListedDomain(range(100)).starts())) == 100  # neighbours in the list, and its ends


def test_json_domains_are_the_classes_with_numbers_by_name():
    assert domain_from_dict({"kind": "dataset", "values": ["a", "nan"]}).values[0] == "a"
    assert math.isnan(domain_from_dict({"kind": "dataset", "values": [1, "nan"]}).values[1])
    assert domain_from_dict({"kind": "dataset", "low": 0, "high": 2, "largest": 3}).values[:2] == (0, 2)
    vector = domain_from_dict({"kind": "vector", "length": 3, "change": "inf"})
    assert vector.change == math.inf and all(isinstance(x, list) for _, x, _ in vector.starts())
    assert domain_from_dict({"kind": "inputs", "inputs": [1, 2]}).inputs == (1, 2)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"kind": "set"}, "kind of a domain must be one of number, vector, dataset, inputs, got 'set'"),
        ({"kind": ["number"]}, r"kind of a domain must be one of .*, got \['number'\]"),
        (
            {"kind": "number", "low": 0, "hi": 1},
            r"parameters of a domain of kind 'number' must be among low, high, change, integer, special, got 'hi'\.$",
        ),
        ({"kind": "number", "low": 0}, r"high must be given for a domain of kind 'number', got low\.$"),
        ({"kind": "dataset"}, "values must be given for a domain of kind 'dataset', got nothing"),
        ({"kind": "dataset", "low": 0}, "high must be given for a domain of kind 'dataset', got low"),
        ({"kind": "dataset", "low": 0, "high": 1, "values": [1]}, "must be among low, high, largest, .*, got 'values'"),
        ({"kind": "inputs", "inputs": [1, 2], "adjacent": "x"}, "must be among inputs, got 'adjacent'"),
        ({"kind": "vector", "length": 2, "as_list": 1}, "as_list must be True or False, got 1"),
        ({"kind": "number", "low": 1, "high": 0}, r"high must be finite and above low \(1\), got 0"),
        ({"kind": "number", "low": 0, "high": 1, "change": 0}, "change must be positive, got 0"),
        ({"kind": "number", "low": 0.5, "high": 2, "integer": True}, "low must be a whole number where .* got 0.5"),
        ({"kind": "number", "low": 0, "high": 2, "change": 0.5, "integer": True}, "change must be at least 1 .* 0.5"),
        ({"kind": "number", "low": 0, "high": 1, "integer": "yes"}, "integer must be True or False, got 'yes'"),
        ({"kind": "dataset", "values": [1, 2], "largest": 3, "smallest": 3}, "smallest must be below largest .3. for"),
        ({"kind": "vector", "length": 0}, "length must be a positive integer, got 0"),
        ({"kind": "vector", "length": 3, "adjacency": "two"}, "adjacency must be one of each, one, moved, got 'two'"),
        ({"kind": "vector", "length": 1, "adjacency": "moved"}, "length must be at least 2 .* got 1"),
        ({"kind": "dataset", "values": [1]}, "values must be at least two different records, got 1"),
        ({"kind": "dataset", "values": [1, 2], "smallest": 30}, r"smallest must be at most largest \(20\), got 30"),
        ({"kind": "dataset", "values": [1, 2], "adjacency": "x"}, "adjacency must be one of .* got 'x'"),
        ({"kind": "dataset", "values": 3}, "values of a domain must be a list, got 3"),
        ({"kind": "inputs", "inputs": [1]}, "inputs must be at least two, got 1"),
    ],
)
def test_domains_that_make_no_sense_are_refused_by_name(record, message):
    with pytest.raises(UsageError, match=message):
        domain_from_dict(record)


def test_examples_that_are_no_datasets_are_refused():
    with pytest.raises(UsageError, match=r"examples must be datasets, .* got 3 at position 1"):
        DatasetDomain.of_examples([[1], 3])


def test_every_domain_that_the_help_and_the_manual_write_as_json_is_one():
    from dpaudit.cli.searching import OPTIONS

    text = OPTIONS[0](lambda: None).__click_params__[0].help
    manual = (Path(__file__).parents[2] / "docs/howto/search-pairs.md").read_text(encoding="utf-8")
    found = re.findall(r'\{"kind".*?\}', text.replace('"each", "one" or', "").replace('"add_remove" or', ""))
    found += re.findall(r'\{"kind".*?\}', manual)
    assert len(found) >= 8
    assert {json.loads(record.replace("[...]", "[1, 2]"))["kind"] for record in found} == {
        "number", "vector", "dataset", "inputs",
    }  # fmt: skip
    for record in found:
        domain_from_dict(json.loads(record.replace("[...]", "[1, 2]")))


def test_beside_as_many_equal_records_as_can_be_there_is_every_other_one():
    starts = [(list(x), list(x_prime)) for _, x, x_prime in DatasetDomain((0.0, 1.0, 2.0), largest=10).starts()]
    for base in (0.0, 1.0, 2.0):
        for value in (0.0, 1.0, 2.0):
            assert ([base] * 9, [base] * 9 + [value]) in starts
