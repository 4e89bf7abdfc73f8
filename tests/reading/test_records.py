"""Records: what rows hold together is read of one output at a time, whatever their form."""

import itertools
import math

import numpy as np
import pytest

from dpaudit.reading.expanded import expanded
from dpaudit.reading.records import of_records

RNG = np.random.default_rng


def test_the_order_of_each_field_is_read():
    rows = [{"age": 60, "town": "a"}, {"age": 45, "town": "b"}, {"age": 45, "town": "a"}]
    fields = of_records(rows)["fields"]
    assert fields["age"] == {"falls": 1, "rises": 0, "repeated": 1, "sum": 150.0, "smallest": 45, "largest": 60}
    assert fields["town"] == {"falls": 1, "rises": 1, "repeated": 1}
    assert expanded(rows)["rows"]["fields"] == fields
    assert of_records([[60, "a"], [45, "b"]])["fields"]["position 0"]["falls"] == 1


def test_paths_have_steps_and_may_be_closed():
    square = [(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 0.0)]
    assert of_records(square)["steps"] == [2.0, 1.0, pytest.approx(math.sqrt(5.0), abs=1e-8)]
    assert of_records(square)["closed"] == 1
    assert (of_records(square[:3])["closed"], of_records(square[:3])["from end to end"]) == (0, 2.23606798)
    assert "steps" not in of_records([(0.0, "a"), (1.0, "b")])
    assert "steps" not in of_records([(0.0, math.nan), (1.0, 1.0)])
    assert "steps" not in of_records([(0.0, 1e200), (1.0, 1.0)])


@pytest.mark.parametrize("seed", range(5))
def test_triangles_are_counted_as_by_trying_all_threes(seed):
    edges = [tuple(pair) for pair in RNG(seed).integers(8, size=(20, 2)).tolist()]
    joined = {frozenset(pair) for pair in edges if pair[0] != pair[1]}
    threes = itertools.combinations(range(8), 3)
    triangles = sum(all(frozenset(pair) in joined for pair in itertools.combinations(three, 2)) for three in threes)
    found = of_records(edges)["edges"]
    degrees = [sum(node in pair for pair in joined) for node in range(8)]
    assert found["triangles"] == triangles
    assert found["largest degree"] == max(degrees)
    assert found["nodes"] == sum(degree > 0 for degree in degrees)
    assert found["nodes of odd degree"] == sum(degree % 2 for degree in degrees)
    assert found["loops"] == sum(a == b for a, b in edges)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"a": 1}],
        [{"a": 1}, {"b": 1}],
        [{"a": 1}, [1]],
        [[1, 2], [1]],
        [[], []],
        [1, 2],
        ["ab", "cd"],
        [{k: 0 for k in range(9)}] * 2,
        [None, None],
    ],
)
def test_what_is_no_table_is_none(rows):
    assert of_records(rows) is None


def test_enormous_numbers_and_missing_ones_are_no_error():
    fields = of_records([(10**400, math.nan), (-(10**400), math.inf)])["fields"]
    assert fields["position 0"] == {"falls": 1, "rises": 0, "repeated": 0}
    assert fields["position 1"] == {"falls": 0, "rises": 0, "repeated": 0}
