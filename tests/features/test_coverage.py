"""What a reader sees of an output: a column that shows it, by its path and what is read there."""

import tracemalloc

import numpy as np
import pytest

from dpaudit.features.outcomes import read_outputs
from dpaudit.features.reader import Reader
from dpaudit.features.visitor import Sink, read_outputs_into
from dpaudit.subjects.plain import seen

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


def test_long_texts_are_looked_at_in_parts():
    rng = np.random.default_rng(1)
    sides = [read_outputs([f"{rng.random():.6f}" + "a" * 10_000 for _ in range(400)], 400) for _ in range(2)]
    tracemalloc.start()
    reader = Reader.learn(sides, ())
    matrix = reader(sides[0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 120 << 20  # 8 million characters took 40 bytes each
    alone = np.concatenate([reader(sides[0].rows(slice(k, k + 1))) for k in range(0, 400, 40)])
    assert np.array_equal(matrix[::40], alone, equal_nan=True)
