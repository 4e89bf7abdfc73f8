"""Domains: every pair that they make is adjacent, and the patterns of the literature are among them."""

import dataclasses
import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from dpaudit.errors import UsageError
from dpaudit.privacy.metrics import is_same
from dpaudit.subjects.domains import DatasetDomain, ListedDomain, NumberDomain, VectorDomain, domain_from_dict

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
    (DatasetDomain.between(0.0, 1.0, largest=6, adjacency="replace_one", smallest=1), is_near_dataset),
    (DatasetDomain((0, 1, 2), largest=5, adjacency="replace_one", smallest=1), is_near_dataset),
    (DatasetDomain((0, 1, 2), largest=1, adjacency="replace_one"), is_near_dataset),
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
    pairs += [move for x, y in pairs[:60] for move in (*domain.moves(x, y, rng), *domain.sized(x, y, 0.25))]
    ends = [(x, y) for (x, _), (y, _) in itertools.pairwise(starts)] + [*itertools.pairwise(domain.sweep())]
    for x, y in ends:  # each step of a way, but for whole numbers that are one and the same
        way = [domain.on_way(x, y, step) for step in range(domain.steps(x, y) + 1) if domain.steps(x, y)]
        pairs += [(v, w) for v, w in itertools.pairwise(way) if not is_same(v, w)]
        assert not way or (is_same(way[0], x) and is_same(way[-1], y))
    for x, y in pairs:
        assert is_near(domain, x, y) and domain.is_pair(x, y), (x, y)


def proposals(domain, count=400):
    """Pairs that a search may try: all starts, random ones, and their moves."""
    rng = np.random.default_rng(SEED)
    pairs = [(x, y) for _, x, y in domain.starts()] + [domain.random(rng) for _ in range(count)]
    return pairs + [move for x, y in pairs[-100:] for move in domain.moves(x, y, rng)]


@pytest.mark.parametrize("adjacency", ["each", "one", "moved"])
def test_a_vector_changes_by_any_part_of_its_change_anywhere(adjacency):
    domain = VectorDomain(4, 0, 1, adjacency=adjacency)
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in proposals(domain)]
    sizes = [float(np.abs(y - x).max()) for x, y in pairs]
    for low, high in ((1.0, 1.0), (0.45, 0.55), (0.05, 0.3), (1e-6, 0.01)):
        assert any(low <= size <= high for size in sizes)
    moved = [(v, w) for x, y in pairs for v, w in zip(x, y, strict=True) if v != w]
    assert any(0 < v < 1 and 0 < w < 1 for v, w in moved)  # inside of the range
    assert any(0 < v < 1 and w in (0, 1) for v, w in moved)  # to an end of it
    assert any(0.2 < v < 0.5 < w < 0.8 or 0.2 < w < 0.5 < v < 0.8 for v, w in moved)  # across its middle
    assert any(len(set(x.tolist())) < 4 and min(x) > 0 for x, _ in pairs)  # ties
    changed = [np.flatnonzero(x != y).tolist() for x, y in pairs]
    assert {place for places in changed if len(places) < 3 for place in places} == {0, 1, 2, 3}


def test_a_number_changes_by_any_part_of_its_change():
    pairs = proposals(NumberDomain(0, 10, change=4))
    sizes = [abs(y - x) for x, y in pairs]
    for low, high in ((4, 4), (1.5, 2.5), (1e-6, 0.04)):
        assert any(low <= size <= high for size in sizes)
    assert any(min(pair) < 5 < max(pair) for pair in pairs)


def kinds_of(x, y):
    """What was done to x to get y, for lists of different records: (kind, place, whether the record is new)."""
    shorter, longer = sorted((list(x), list(y)), key=len)
    if len(shorter) == len(longer):
        return {("replaced", k, y[k] in x) for k in range(len(x)) if x[k] != y[k]}
    places = [k for k in range(len(longer)) if shorter == [*longer[:k], *longer[k + 1 :]]]
    return {("removed" if len(x) > len(y) else "added", k, longer[k] in shorter) for k in places}


@pytest.mark.parametrize("size", [12, 40])
def test_every_row_of_an_example_is_removed_and_a_record_is_added_anywhere(size):
    example = [float(k) for k in range(size)]
    domain = DatasetDomain.of_examples([example, [50.0]])
    kinds = {kind for x, y in proposals(domain, 1500) if list(x) == example for kind in kinds_of(x, y)}
    assert {place for kind, place, _ in kinds if kind == "removed"} == set(range(size))
    for place in (0, size // 2, size):
        assert {("added", place, True), ("added", place, False)} <= kinds
    starts = [next(iter(kinds_of(x, y))) for _, x, y in domain.starts() if list(x) == example]
    assert {0, size // 2, size} <= {place for kind, place, _ in starts if kind == "added"}
    assert {0, size - 1} <= {place for kind, place, _ in starts if kind == "removed"}
    replacing = DatasetDomain.of_examples([example], "replace_one")
    kinds = {kind for x, y in proposals(replacing, 1500) if list(x) == example for kind in kinds_of(x, y)}
    assert {place for _, place, _ in kinds} == set(range(size))


def test_datasets_between_two_ends_have_any_number_and_records_everywhere():
    pairs = proposals(DatasetDomain.between(0.0, 1.0, largest=6))
    assert len({record for pair in pairs for side in pair for record in side}) > 40
    grown = [(list(x), list(y)) for x, y in pairs if len(y) == len(x) + 1 and len(set(y)) > 2]
    assert any(y[1:] == x and y[0] not in x for x, y in grown)
    assert any(y[:-1] == x and y[-1] not in x for x, y in grown)
    assert any(y[1:] != x and y[:-1] != x for x, y in grown)


def test_what_is_no_pair_of_a_domain_is_none():
    vectors = VectorDomain(3, 0, 4, adjacency="one")
    assert vectors.is_pair([0, 1, 2], [0, 1, 3])
    for other in ([0, 1], [0, 2, 3], [0, 1, 3.1], [0, 1, 5], [0, 1, math.inf], [0, 1, math.nan]):
        assert not vectors.is_pair([0, 1, 2], other)
    # Before, an array of another shape was read as a vector.
    assert not VectorDomain(4, 0, 4).is_pair([[0, 0], [0, 0]], [[0, 0], [0, 1]]) and not VectorDomain(1).is_pair(1, 2)
    moved = VectorDomain(3, 0, 4, adjacency="moved")
    assert moved.is_pair([0, 1, 2], [0.3, 0.7, 2]) and not moved.is_pair([0, 1, 2], [0, 1, 2.5])
    assert not VectorDomain(1, 0, 4, integer=True).is_pair([0.5], [1])
    assert NumberDomain(0, 4).is_pair(1, 1.5) and not NumberDomain(0, 4).is_pair(1, 2.5)
    rows = DatasetDomain((0, 1, 2), largest=4)
    assert rows.is_pair([0, 1], [0, 2, 1]) and not rows.is_pair([0, 1], [1, 0, 2]) and not rows.is_pair([1], [1])
    replaced = DatasetDomain((0, 1, 2), adjacency="replace_one")
    assert replaced.is_pair([0, 1], [2, 1]) and not replaced.is_pair([0, 1], [1, 2])
    listed = ListedDomain((0, 1, 5), adjacent=lambda x, y: abs(x - y) == 1)
    assert listed.is_pair(1, 0) and not listed.is_pair(1, 5) and not listed.is_pair(1, 2)


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
    values = DatasetDomain.between(0.0, 1.0, special=(math.nan, math.inf)).values
    assert math.inf in values and any(v != v for v in values)


def test_a_domain_with_another_end_is_made_of_one_of_numbers():
    """Before, `dataclasses.replace` of it raised, as its fields were those of vectors."""
    wider = dataclasses.replace(NumberDomain(0, 5, integer=True), high=7)
    assert repr(wider) == "NumberDomain(low=0, high=7, change=1.0, integer=True)"
    assert wider == domain_from_dict(wider.to_dict())
    with pytest.raises(TypeError, match="high"):
        NumberDomain(0)


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
            r"option of a domain of kind 'number' .*, got 'hi'\. Did you mean 'high'\? They are low, high, change",
        ),
        ({"kind": "number", "low": 0}, r"high must be given for a domain of kind 'number', got low\.$"),
        ({"kind": "dataset"}, "values must be given for a domain of kind 'dataset', got nothing"),
        ({"kind": "dataset", "low": 0}, "high must be given for a domain of kind 'dataset', got low"),
        ({"kind": "dataset", "low": 0, "high": 1, "values": [1]}, "got 'values'.* They are low, high, largest, "),
        ({"kind": "inputs", "inputs": [1, 2], "adjacent": "x"}, r"got 'adjacent'\. They are inputs\."),
        ({"kind": "vector", "length": 2, "as_list": 1}, "as_list must be True or False, got 1"),
        ({"kind": "number", "low": 1, "high": 0}, r"high must be finite and above low \(1\), got 0"),
        ({"kind": "number", "low": 0, "high": 1, "change": 0}, "change must be positive, got 0"),
        ({"kind": "number", "low": 0.5, "high": 2, "integer": True}, "low must be a whole number where .* got 0.5"),
        ({"kind": "number", "low": 0, "high": 2, "change": 0.5, "integer": True}, "change must be at least 1 .* 0.5"),
        ({"kind": "number", "low": 0, "high": 1, "integer": "yes"}, "integer must be True or False, got 'yes'"),
        ({"kind": "dataset", "values": [1, 2], "largest": 3, "smallest": 3}, "smallest must be below largest .3. for"),
        ({"kind": "vector", "length": 0}, "length must be a positive integer, got 0"),
        ({"kind": "vector", "length": 3, "adjacency": "two"}, "adjacency must be 'each', 'one' or 'moved', got 'two'"),
        ({"kind": "vector", "length": 1, "adjacency": "moved"}, "length must be at least 2 .* got 1"),
        ({"kind": "dataset", "values": [1]}, "values must be at least two different records, got 1"),
        ({"kind": "dataset", "values": [1, 2], "smallest": 30}, r"smallest must be at most largest \(20\), got 30"),
        ({"kind": "dataset", "values": [1, 2], "adjacency": "x"}, "adjacency must be 'add_remove' or .* got 'x'"),
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
