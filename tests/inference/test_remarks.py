"""Warnings about degenerate outputs: one value for all, and calls that raised."""

import math

import numpy as np
import pytest

from dpaudit.features.outcomes import from_objects, read_outputs
from dpaudit.inference.remarks import MIN_EQUAL_OUTPUTS, TEXTS_DIFFER, keys_of, remarks
from dpaudit.results.model import Keys
from dpaudit.subjects.call_outcomes import Ended, Failed


def parts_of(*batches):
    return [read_outputs(batch, len(batch)) for batch in batches]


@pytest.mark.parametrize(
    ("batch", "printed"),
    [
        (np.full(15, 0.25), "0.25"),
        (np.full(15, 5), "5"),
        (np.full(15, math.nan), "nan"),
        (np.full((15, 2), 1), "[1, 1]"),
        ([None] * 15, "None"),
        (["yes"] * 15, "'yes'"),
        ([{"a": [1, None]}] * 15, "{'a': [1, None]}"),
        ([object()] * 15, "one value of the class object"),  # before: Opaque(kind='object', state=None, text=…
    ],
    ids=lambda part: part if isinstance(part, str) else "outputs",
)
def test_one_value_for_all_outputs_is_remarked_in_its_printed_form(batch, printed):
    (text,) = remarks([parts_of(batch), parts_of(batch)])
    question = "does the mechanism return its answer?"
    assert text == f"All 30 outputs that were looked at, on both inputs, read as {printed}: {question}"
    assert remarks([parts_of(batch)]) == ()  # fewer than MIN_EQUAL_OUTPUTS say little
    assert "on all 3 inputs, read as" in remarks([parts_of(batch)] * 3)[0]


@pytest.mark.parametrize(
    ("batch", "other"),
    [
        (np.full(200, 0.25), np.append(np.full(199, 0.25), 0.5)),  # the last one alone
        (np.full(200, 0.25), np.full(200, 0.5)),
        (np.full(200, math.nan), np.full(200, 0.5)),
        (np.full((200, 2), 1.0), np.full((200, 2), [1.0, 2.0])),
        ([None] * 200, [None] * 199 + ["x"]),
        ([None] * 200, np.full(200, 0.0)),
        (["a" * 5_000] * 200, ["a" * 4_999 + "b"] * 200),  # of long outputs the end is not seen
    ],
    ids=str,
)
def test_outputs_that_differ_anywhere_are_not_remarked(batch, other):
    assert MIN_EQUAL_OUTPUTS <= 200
    assert remarks([parts_of(batch), parts_of(other)]) == remarks([parts_of(other, batch), []]) == ()


def test_the_same_value_as_number_and_as_object_is_one():
    assert "read as 1" in remarks([parts_of(np.full(15, 1)), [from_objects([1.0] * 15)]])[0]


def test_exceptions_are_counted_by_their_kinds():
    outputs = [1.5] * 90 + [Failed("KeyError", "k")] * 7 + [Failed("ValueError", "v")] * 3
    (text,) = remarks([[from_objects(outputs)], []])
    assert text == (
        "Of the 100 outcomes that were looked at, on both inputs, 10 were exceptions: 7 raised KeyError, 3 raised "
        "ValueError. The kind of each is an outcome like any other; rules look at its text, too."
    )
    (text,) = remarks([[], [from_objects([*outputs, Ended("time-out", "")])]])
    assert "11 were exceptions or did not come back" in text and "1 ended by time-out" in text
    (text,) = remarks([[from_objects([1.5, *(Failed(f"Kind{k}", "") for k in range(9))])], []])
    assert "9 were exceptions" in text and "and 6 more kinds" in text
    (text,) = remarks([[from_objects([1.5, Failed("KeyError", "")])], []])
    assert "1 was an exception: 1 raised KeyError." in text


def raised(texts):
    return [from_objects([1.5, *(Failed("ValueError", text) for text in texts)])]


def test_texts_of_exceptions_that_name_their_input_are_remarked():
    x, x_prime = raised(["no Ann", "no Bob"] * 20), raised(["no Carl"] * 20)
    assert remarks([x, x_prime])[1:] == (TEXTS_DIFFER,)
    assert len(remarks([x, raised(["no Carl"] * 19)])) == 1  # few
    assert len(remarks([x, raised(["no Carl"] * 20 + ["no Ann"])])) == 1  # one in common
    assert len(remarks([x, raised(f"at {k}" for k in range(40))])) == 1  # a time, or a place
    assert len(remarks([x, x_prime, x_prime])) == 1


def test_nothing_strikes_one_where_there_is_nothing():
    assert remarks([]) == remarks([parts_of(np.empty(0))]) == ()
    assert remarks([parts_of(np.arange(30.0))]) == ()


def test_keys_of_dictionaries_are_counted_and_those_that_some_outputs_lack():
    both = parts_of([{"a": 1, "b": 2}, {"a": 1}, {"a": 0, math.nan: 1}], [{"a": 3, "b": {"c": 1}}])
    assert keys_of(both) == Keys(outputs=4, keys=3, varying=2)
    assert keys_of(parts_of([{"a": 1}, {"a": 2}])) == Keys(2, 1, 0)
    assert keys_of(parts_of([{}, "no dictionary", Failed("ValueError", "no")])) == Keys(1, 0, 0)
    assert keys_of(parts_of(np.zeros(5), ["text"] * 5)) is None
