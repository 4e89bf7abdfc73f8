"""Real numbers inside outputs: under the same path for the same output, whatever the form of its batch."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest

from dpaudit.reading.outcomes import from_objects, read_outputs
from dpaudit.reading.real_columns import number_under, path_text, paths_of, read_path

BATCHES = [
    np.array([0.5, 1.25, math.nan]),
    np.arange(12.0).reshape(3, 2, 2) / 8.0,
    np.array([1, 2, 3]),
    np.array([True, False, True]),
    np.array([1.5 + 2j, 0.25j, 3.0]),
    np.array(["2020-01-01", "2020-01-02", "2021-01-01"], dtype="datetime64[D]"),
    np.array([0.1, 0.2, 0.3], dtype=np.float32),
    [(0.5, 1.0), (0.25, 2.0), (0.75, 3.0)],
]


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: f"{getattr(batch, 'dtype', type(batch).__name__)}")
def test_numbers_and_objects_give_the_same_double_under_the_same_path(batch):
    as_numbers = read_outputs(batch, 3)
    as_objects = from_objects(list(batch))
    assert as_numbers.tokens is None
    assert sorted(paths_of(as_numbers)) == sorted(paths_of(as_objects))
    for path in paths_of(as_numbers):
        np.testing.assert_array_equal(read_path(as_numbers, path), read_path(as_objects, path))


def test_dictionaries_ragged_lists_and_what_is_missing():
    outputs = [{"n": 3, "mean": 0.5}, [0.25, [1.5]], "text", None, 0.75, {"mean": "none"}, 10**400, {1, 2}]
    outcomes = from_objects(outputs)
    assert paths_of(outcomes) == [("mean",), (0,), (1, 0), ()]

    def read(path):
        return [None if math.isnan(value) else value for value in read_path(outcomes, path).tolist()]

    assert read(("mean",)) == [0.5] + [None] * 7
    assert read((1, 0)) == [None, 1.5] + [None] * 6
    assert read(()) == [None, None, None, None, 0.75, None, None, None]


def test_a_path_of_another_shape_reads_nothing():
    outcomes = read_outputs(np.zeros((4, 2)), 4)
    for path in [(), (2,), (-1,), ("a",), (0, 0), (True,)]:
        assert np.isnan(read_path(outcomes, path)).all()


def test_dates_among_other_things_are_the_integers_that_a_batch_of_dates_gives():
    day = np.datetime64("2020-01-02")
    assert read_path(from_objects([day, "x"]), ())[0] == read_path(read_outputs(np.array([day]), 1), ())[0]
    assert read_path(from_objects([datetime.date(2020, 1, 2)]), ())[0] == 18263.0


def test_a_number_of_an_input_and_words_for_a_path():
    assert number_under([0.0, [2.5]], (1, 0)) == 2.5 and math.isnan(number_under("text", ()))
    assert path_text(()) == "" and path_text((2, "mean")) == "[2]['mean']"
