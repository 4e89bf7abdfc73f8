"""What a reader sees of two outputs that look alike: each pair is told apart by some column, in batches of any form."""

from __future__ import annotations

import collections
import gzip
import json

import numpy as np
import pandas as pd
import pytest

from dpaudit.features.identity import identity
from dpaudit.features.outcomes import canonical
from dpaudit.features.visitor import Sink, read_outputs_into
from dpaudit.subjects.iterators import read_whole
from dpaudit.subjects.plain import PlainWriter, packed, seen, unpacked

Row = collections.namedtuple("Row", "a b")


class Label(str):
    """A text of somebody's own class."""


def answers(value):
    yield 1.5
    return value


def frame(**changes):
    table = pd.DataFrame({"n": [1, 2], "t": ["x", "y"]})
    for name, value in changes.items():
        setattr(table.index if name == "name" else table, name, value)
    return table


def series(categories=("a", "b"), ordered=False, **options):
    return pd.Series(["a", "b"], dtype=pd.CategoricalDtype(categories, ordered), **options)


def masked(*under):
    return np.ma.array(under, mask=[True, False, False])


# Beside an output of each pair nothing differs but what is named: canonical tokens are equal, or differ as numbers do.
PAIRS = {
    "values under a mask": (masked(1, 2, 3), masked(7, 2, 3)),
    "rows under a mask": (np.ma.array([[1.0, 2.0]], mask=[[1, 0]]), np.ma.array([[5.0, 2.0]], mask=[[1, 0]])),
    "a level that does not occur": (series(), series(("a", "b", "c"))),
    "ordered levels": (series(), series(ordered=True)),
    "attributes of a table": (frame(), frame(attrs={"n": 3})),
    "name of the index": (frame(), frame(name="id")),
    "name of a series": (pd.Series([1.0]), pd.Series([1.0], name="v")),
    "nullable numbers": (pd.Series([1, 2]), pd.Series([1, 2], dtype="Int64")),
    "int or float inside": ({"n": 1}, {"n": 1.0}),
    "int or float in a list": ({"n": [1, 2]}, {"n": [1.0, 2]}),
    "int or float in rows": ([[1, 2], [3, 4]], [[1, 2], [3.0, 4]]),
    "single precision inside": ({"v": np.float32([0.5])}, {"v": np.float64([0.5])}),
    "a shape": (np.ones(3), np.ones((1, 3))),
    "a shape inside": ({"v": np.ones(3)}, {"v": np.ones((1, 3))}),
    "a class of text": (Label("a"), "a"),
    "a class of text inside": (["x", Label("a")], ["x", "a"]),
    "a class of tuple inside": ([Row(1, 2), None], [(1, 2), None]),
    "a class of dictionary inside": ([collections.Counter("a")], [{"a": 1}]),
    "what a generator returns": (read_whole(answers(1)), read_whole(answers(2))),
    "a large integer": ({"n": 2**60}, {"n": 2**60 + 1}),
    "a long double": ({"n": np.longdouble("0.1")}, {"n": np.longdouble(0.1)}),
    "order of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "order in JSON": (json.dumps({"a": 1, "b": 2}), json.dumps({"b": 2, "a": 1})),
    "compressed": (gzip.compress(b"a,1", mtime=0), gzip.compress(b"a,2", mtime=0)),
    "clockwise": ([(0.0, 0.0), (0.0, 1.0), (1.0, 0.0)], [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]),
    "what an exception says": ([ValueError("a")], [ValueError("b")]),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_what_differs_is_another_outcome_to_certificates_and_crosses_from_a_worker(name):
    first, second = map(seen, PAIRS[name])
    assert identity(first) != identity(second)
    if name == "a long double":  # crosses as its printed form
        return
    for value in PAIRS[name]:
        assert identity(seen(seen(value))) == identity(seen(value))
        crossed = unpacked(packed(PlainWriter(1 << 20).plain(value)))
        assert (canonical(crossed), identity(crossed)) == (canonical(seen(value)), identity(seen(value)))


def test_notes_are_no_part_of_a_token():
    for name in ("values under a mask", "attributes of a table", "name of the index", "a class of text"):
        first, second = PAIRS[name]
        assert canonical(seen(first)) == canonical(seen(second))
    assert seen(frame(attrs={"n": 3})) == {"n": [1, 2], "t": ["x", "y"]}


# What stands in outputs, and a column that shows it, by its path and what is read there.
SHOWN = [
    ({"a": [1.5, "x"]}, ("['a'][0]", ""), 1.5),
    ('{"n": 7}', (" as JSON['n']", ""), 7.0),
    ("2026-11-21", (" as date['weekday']", ""), 5.0),
    ("0x1f", (" as hexadecimal['number']", ""), 31.0),
    ("one two", (" as words['first']['two']", ""), 1.0),
    (b"\x05\x00", (" number", ""), 5.0),
    ({3: "a", 4: "b"}, ("[4]", "length"), 1.0),
    ({"a", "b"}, (" length", ""), 2.0),
    ([("a", "b"), ("b", "c"), ("a", "c")], (" graph", "triangles"), 1.0),
    ([(0.0, 0.0), (2.0, 0.0), (0.0, 2.0)], (" area", ""), 2.0),
    ([(0.0, 0.0), (4.0, 0.0), (1.0, 1.0), (0.0, 4.0)], (" turns", ""), 3.0),  # of four to the left: it is not convex
    ([{"n": 1}, {"n": 2}, "x"], ("[1]['n']", ""), 2.0),
    (3 + 4j, (" size", ""), None),  # held as two numbers
    ({"z": 3 + 4j}, ("['z'] size", ""), 5.0),
]


@pytest.mark.parametrize(("output", "key", "number"), SHOWN, ids=[str(key) for _, key, _ in SHOWN])
def test_what_is_shown_of_an_output(output, key, number):
    sink = Sink()
    read_outputs_into(sink, [seen(output)])
    found = [numbers.tolist() for _, numbers in sink.found.get(key, ())]
    assert found == ([] if number is None else [[number]])
