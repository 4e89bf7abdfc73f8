"""Inputs come back from files as they were, or are not taken for what they were."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from dpaudit.privacy.inputs import identity_of
from dpaudit.results.codec import to_json
from dpaudit.results.saved_inputs import NotHeldError, is_digest, kept, may_be_infinite, restored, types_of

NUMBERS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([np.float32(0.1), np.int64(3)])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
HASHABLE = st.recursive(NUMBERS | TEXTS, lambda inner: st.tuples(inner, inner), max_leaves=4)
ARRAYS = st_numpy.arrays(
    st.sampled_from(["<f8", "<f4", "<f2", ">f8", "<i8", "|i1", "<u4", "|b1", "<U3"]), st_numpy.array_shapes(min_dims=0)
)
VALUES = st.recursive(
    HASHABLE | ARRAYS | st.frozensets(st.integers() | st.text(max_size=3), max_size=4) | st.sets(HASHABLE, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def through_a_file(value):
    saved, types, is_held = kept(value)
    assert is_held
    saved, types = json.loads(json.dumps([saved, types], allow_nan=False))
    return restored(saved, types)


def key(value):
    """The identity of a value; of NaN whatever its bits are, and of sets without their order."""
    if isinstance(value, set | frozenset):
        return (type(value), frozenset(map(key, value)))
    if isinstance(value, list | tuple):
        return (type(value), tuple(map(key, value)))
    if isinstance(value, dict):
        return (dict, tuple((name, key(item)) for name, item in value.items()))
    if isinstance(value, float) and math.isnan(value):
        return (type(value), "nan")
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, tuple(key(item) for item in value.ravel().tolist()))
    return identity_of(value)


@given(VALUES)
def test_an_input_comes_back_from_its_file_with_every_type(value):
    assert key(through_a_file(value)) == key(value)


@pytest.mark.parametrize(
    "value", ["inf", ["-inf"], {"a": "inf"}, math.inf, (math.inf, "inf"), np.array(["inf"])], ids=str
)
def test_an_infinity_is_told_from_a_text(value):
    assert key(through_a_file(value)) == key(value)


@pytest.mark.parametrize("value", [[1, "a", None, 0.5, {"b": [True]}], "text", "\ud83d", 3, []], ids=ascii)
def test_what_json_has_needs_no_types(value):
    assert kept(value) == (value, None, True)


class Text(str):
    """A text that knows more than its characters."""


@pytest.mark.parametrize(
    "value",
    [
        "\ud83d\ude00",
        {"\ud83d\ude00": 1},
        np.array(["\ud83d\ude00"]),
        object(),
        b"ab",
        {1: "a"},
        [{(0, 1): 2}],
        range(3),
        Text("a"),
        np.array([None]),
        np.datetime64("2026-01-01"),
        1j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_said_is_not_held(value):
    with pytest.raises(NotHeldError):
        types_of(value)
    assert kept(value) == (to_json(value), None, False)


def test_a_long_input_is_a_digest():
    saved, types, is_held = kept(tuple(range(20_000)))
    assert is_digest(saved) and types is None and is_held


def test_types_of_many_alike_items_are_said_once():
    assert types_of([("a", 1)] * 1_000) == {"is": "list", "each": {"is": "tuple"}}


@pytest.mark.parametrize(
    ("saved", "types"),
    [
        ("text", {"is": "tuple"}),
        ([1, 2], {"is": "tuple", "of": [None]}),
        ([1], {"is": "tuple", "of": 3}),
        ([1], {"is": "module"}),
        ([1], "tuple"),
        ([1], []),
        ({"a": 1}, {"is": "dict", "of": {"b": {"is": "float"}}}),
        ({"a": 1}, {"is": "dict", "of": None}),
        ("nan", {"is": "float"}),
        (True, {"is": "float"}),
        ([1.5], {"is": "array", "dtype": "<i8", "shape": [1]}),
        ([300], {"is": "array", "dtype": "|u1", "shape": [1]}),
        ([1, 2], {"is": "array", "dtype": "<i8", "shape": [3]}),
        ([1, 2], {"is": "array", "dtype": "<i8", "shape": [10**12]}),
        ([1], {"is": "array", "dtype": "|O", "shape": [1]}),
        ([1], {"is": "array", "dtype": ["<i8"], "shape": [1]}),
        ([1], {"is": "array", "dtype": "<i8", "shape": "a"}),
        ([[1], 2], {"is": "array", "dtype": "<i8", "shape": [2, 1]}),
        ([[1]], {"is": "set"}),
    ],
)
def test_types_that_do_not_fit_are_refused(saved, types):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        restored(saved, types)


@pytest.mark.parametrize(("saved", "is_so"), [("inf", True), ([{"a": "-inf"}], True), (["info", 1.0], False)])
def test_a_text_of_an_older_file_may_be_an_infinity(saved, is_so):
    assert may_be_infinite(saved) == is_so
