"""Outputs as the bettor reads them: each by itself, whatever lies beside it; tokens by value; every refusal.

The first part is what validity rests on. An auditor whose reading of an output depended on the rest of its batch
refuted sound mechanisms in 25% to 37% of audits at nominal 5% (measured: 2 x 2 matrices or None with probability 0.03,
the same law on both inputs, 300 audits of 300 samples).
"""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import math
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import (
    MAXIMUM_TOKEN,
    Reading,
    canonical,
    from_objects,
    join,
    number_of,
    read_outputs,
    shortened,
    unseen,
)
from dpaudit.subjects.call_outcomes import Failed, Opaque

FIXED = settings(derandomize=True, deadline=None, max_examples=150)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Tag(enum.StrEnum):
    A = "a"


@dataclasses.dataclass
class Release:
    value: float
    label: str


@dataclasses.dataclass(frozen=True, slots=True)
class SlottedRelease:
    value: float


class Plain:
    """An object without a value of its own."""


class Tensor:
    """An array of a library that nobody knows here, which numpy can read."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


Point = collections.namedtuple("Point", "a b")

KINDS = {
    "int": 1,
    "float": 1.5,
    "bool": True,
    "numpy bool": np.bool_(False),
    "float32": np.float32(0.1),
    "int64": np.int64(-3),
    "longdouble": np.longdouble(1) + np.longdouble(2) ** -60,
    "nan": math.nan,
    "infinity": math.inf,
    "minus zero": -0.0,
    "2^53 + 1": 2**53 + 1,
    "2^64": 2**64,
    "10^400": 10**400,
    "0-d array": np.array(3.0),
    "0-d bool array": np.array(True),
    "vector": np.array([1.0, 2.0]),
    "int vector": np.array([2**53 + 1, 2]),
    "matrix": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "empty vector": np.array([]),
    "text array": np.array(["a", "b"]),
    "complex array": np.array([1j, 2.0]),
    "list": [1.0, 2],
    "empty list": [],
    "tuple": (1.0, 2.0),
    "tuple of bools": (True, False),
    "tuple of int and bool": (1, True),
    "tuple of float32": (np.float32(0.1), 2.0),
    "tuple of large int and float": (2**53 + 1, 0.5),
    "tuple of larger int and int": (2**63 + 1, 1),
    "triple": (1.0, 2.0, 3.0),
    "nested list": [[1, 2], [3, 4]],
    "ragged list": [[1, 2], [3]],
    "list with None": [1.0, None],
    "list with text": [1.0, "a"],
    "named tuple": Point(1.0, 2.0),
    "None": None,
    "text": "1.0",
    "bytes": b"ab",
    "dictionary": {"a": 1.0},
    "set": {1, 2},
    "complex": 1 + 2j,
    "complex64": np.complex64(1j),
    "0-d complex array": np.array(1j),
    "tuple of complex": (1 + 2j, 3.0),
    "datetime64": np.datetime64("2026-11-21"),
    "datetime64 in seconds": np.datetime64("2026-11-21T00:00:01"),
    "not a time": np.datetime64("NaT"),
    "timedelta64": np.timedelta64(5, "s"),
    "masked vector": np.ma.array([1.0, 2.0], mask=[False, True]),
    "unmasked vector": np.ma.array([1.0, 2.0]),
    "masked": np.ma.masked,
    "record": np.array([(1.0, 2)], dtype=[("a", float), ("b", int)])[0],
    "float32 vector": np.array([0.1, 0.2], dtype=np.float32),
    "longdouble vector": np.array([1, 2], dtype=np.longdouble),
    "decimal": decimal.Decimal("0.1"),
    "fraction": fractions.Fraction(1, 3),
    "enum": Colour.RED,
    "int enum": Level.LOW,
    "text enum": Tag.A,
    "dataclass": Release(1.0, "a"),
    "object": Plain(),
    "date": datetime.date(2026, 11, 21),
    "moment": datetime.datetime(2026, 11, 21, 8, 30),
    "moment in a zone": datetime.datetime(2026, 11, 21, 8, 30, tzinfo=datetime.UTC),
    "time of day": datetime.time(8, 30),
    "duration": datetime.timedelta(hours=1),
    "list with dates": [datetime.date(2026, 11, 21), 2.0],
    "pandas moment": pd.Timestamp("2026-11-21T08:30"),
    "no pandas moment": pd.NaT,
    "series": pd.Series([1.0, 2.0]),
    "series with labels": pd.Series({"a": 1.0, "b": 2.0}),
    "table": pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]}),
    "tensor": Tensor([1.0, 2.0]),
    "tensor of one number": Tensor(1.5),
    "failure": Failed("ValueError", "no"),
}


def reading(outcomes, row):
    """Everything that a rule can see of one output: token and features, and the one to four numbers that it is."""
    objects = outcomes.as_objects()
    seen = [objects.tokens[row], objects.numbers[row].tolist()]
    seen += [Reading(columns)(outcomes).numbers[row].tolist() for columns in (1, 2, 3, 4)]
    return repr(seen)  # so that NaN equals NaN and 0.0 differs from -0.0


# --- every output is read by itself ---


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_is_read_the_same_alone_and_beside_any_other(kind):
    alone = reading(read_outputs([KINDS[kind]], 1), 0)
    beside = {other: reading(read_outputs([KINDS[kind], KINDS[other]], 2), 0) for other in KINDS}
    assert beside == dict.fromkeys(KINDS, alone)


@FIXED
@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6))
def test_an_output_is_read_the_same_in_any_batch_and_in_any_slice_of_it(names):
    batch = read_outputs([KINDS[name] for name in names], len(names))
    for row, name in enumerate(names):
        expected = reading(read_outputs([KINDS[name]], 1), 0)
        assert reading(batch, row) == expected
        assert reading(batch.rows(slice(row, row + 1)), 0) == expected


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, -0.0, math.nan]),
        np.array([1, 2, 3]),
        np.array([True, False, True]),
        np.array([0.1, 0.2, 0.3], dtype=np.float32),
        np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        np.arange(12.0).reshape(3, 2, 2),
        np.zeros((3, 0)),
        np.array([2**53 + 1, 1, 2]),
        np.array([2**63 + 1, 1, 2], dtype=np.uint64),
        np.array(["a", "b", "c"]),
        np.array([1.0, None, "a"], dtype=object),
        np.array([1j, 2.0, 3.0]),
        np.array([[1j, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        np.array(["2026-11-21", "NaT", "2026-11-22"], dtype="datetime64[D]"),
        np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]),
        np.ma.array([1.0, 2.0, 3.0]),
        np.ma.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], mask=[[0, 1], [0, 0], [1, 1]]),
        np.array([0.1, 0.2, 0.3], dtype=np.longdouble),
        np.array([datetime.date(2026, 11, day) for day in (1, 2, 4)], dtype=object),
    ],
    ids=str,
)
def test_an_array_is_read_as_the_list_of_its_rows_is(array):
    whole, rows = read_outputs(array, 3), read_outputs([*array], 3)
    for row in range(3):
        assert reading(whole, row) == reading(rows, row)


def test_the_outcomes_of_several_batches_are_those_of_one():
    batches = [[1.0, 2.0], [None, 3.0], [(1.0, 2.0), np.ones((2, 2))]]
    joined = join([read_outputs(batch, 2) for batch in batches])
    whole = read_outputs([output for batch in batches for output in batch], 6)
    assert [reading(joined, row) for row in range(6)] == [reading(whole, row) for row in range(6)]


@pytest.mark.parametrize("other", [[(1.0, 2.0, 3.0)], [None], [0.5]])
def test_a_vector_keeps_its_numbers_where_others_have_another_form(other):
    vectors = read_outputs([(1.0, 2.0), (3.0, 4.0)], 2)
    mixed = read_outputs([(1.0, 2.0), *other], 2)
    assert Reading(2)(vectors).numbers.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert Reading(2)(mixed).numbers[0].tolist() == [1.0, 2.0]
    assert np.isnan(Reading(2)(mixed).numbers[1]).all()


# --- tokens are equal exactly for equal values ---


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 1.0),
        (True, np.int64(1)),
        (np.float64(0.1), 0.1),
        (math.nan, np.float32("nan")),
        ([1.0, None], (1, None)),
        (np.array([1, 2]), [1.0, 2.0]),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1.0}),
        ({3, 1, 2}, frozenset([1, 2, 3])),
        (Release(1.0, "a"), Release(1, "a")),
        (Plain(), Plain()),
        (2**60, float(2**60)),
    ],
)
def test_equal_values_have_equal_tokens(first, second):
    assert canonical(first) == canonical(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 2),
        (0.1, np.float32(0.1)),
        (0.0, -0.0),
        (1.0, "1.0"),
        (None, "None"),
        ("ab", b"ab"),
        ([1, 2], [2, 1]),
        ([1, 2], [[1, 2]]),
        ({"a": 1}, {"a": 2}),
        (Release(1.0, "a"), Release(1.0, "b")),
        (2**53, 2**53 + 1),
        (2**53 + 1, float(2**53)),
        (math.inf, -math.inf),
        (math.inf, math.nan),
        (Colour.RED, Colour.BLUE),
        (Failed("ValueError", ""), Failed("TypeError", "")),
        (Failed("ValueError", ""), "raised ValueError"),
        (decimal.Decimal("0.1"), decimal.Decimal("0.2")),
        (1 + 2j, 1 - 2j),
        (SlottedRelease(1.0), SlottedRelease(2.0)),
    ],
)
def test_different_values_have_different_tokens(first, second):
    assert canonical(first) != canonical(second)


@pytest.mark.parametrize(
    "value",
    [Plain(), [Plain()], {"a": Plain()}, lambda: None, print, Plain],
    ids=["object", "list", "dictionary", "function", "builtin", "class"],
)
def test_no_token_holds_an_address(value):
    assert "0x" not in canonical(value)


class Hidden:
    """No attributes, no items, no printed form."""


class InSlots:
    __slots__ = ("__answer", "value")

    def __init__(self, value):
        self.value, self.__answer = value, -value


class Masked:
    """It keeps its answer to itself in print, as types for secrets do."""

    __slots__ = ("answer",)

    def __init__(self, answer):
        self.answer = answer

    def __repr__(self):
        return "Masked(***)"


class Below(InSlots):
    __slots__ = "more"


def test_what_an_object_keeps_in_slots_is_seen():
    below = Below(2.0)
    assert canonical(below) == "Below{'_InSlots__answer':-2.0,'value':2.0}"
    below.more = "text"
    assert canonical(below) == "Below{'_InSlots__answer':-2.0,'more':'text','value':2.0}"
    assert unseen([below]) == ""
    assert canonical(Masked(1.5)) == "Masked{'answer':1.5}"
    assert canonical(fractions.Fraction(1, 3)) == "Fraction(1, 3)"


def cyclic():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (Hidden(), "Hidden"),
        ((0.5, {"a": [Hidden()]}), "Hidden"),
        ({Hidden(): 1}, "Hidden"),
        (SlottedRelease(Hidden()), "Hidden"),
        (len, ""),
        (lambda: 0, "function"),
        (Opaque("Theirs"), "Theirs"),
        (Opaque("Theirs", text="<theirs>"), ""),
        (Opaque("Theirs", state={"a": Opaque("Inner")}), "Inner"),
        (object(), ""),
        ((0.5, np.random.default_rng(0), threading.Lock(), len, lambda: 0), ""),
        (np.random.default_rng(0), "Generator"),
        (io.BytesIO(b"text"), ""),
        (Opaque("object"), ""),
        (InSlots(1.5), ""),
        ([None, "text", b"", 1, 1.5, Colour.RED, Failed("ValueError", ""), Hidden, np.arange(2), 1j], ""),
        (cyclic(), ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_outputs_of_which_nothing_is_seen_are_named(output, expected):
    assert unseen([1.0, output]) == expected


def test_an_object_that_holds_itself_has_a_token():
    value = []
    value.append(value)
    assert isinstance(canonical(value), str)


def test_a_long_token_keeps_its_start_and_its_length():
    first, second = from_objects(["a" * 10_000, "a" * 10_001]).tokens
    assert first != second and len(first) < MAXIMUM_TOKEN + 40


def test_failures_of_one_kind_are_one_outcome_whatever_their_text():
    first, second = from_objects([Failed("ValueError", "at 0x1"), Failed("ValueError", "at 0x2")]).tokens
    assert first == second == "raised ValueError"


# --- numbers and features ---


def test_a_numeric_batch_keeps_its_numbers_its_shape_and_its_kind():
    outcomes = read_outputs(np.arange(12).reshape(3, 2, 2), 3)
    assert outcomes.numbers.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert (outcomes.shape, outcomes.is_integer, outcomes.tokens) == ((2, 2), True, None)


def test_an_integer_above_the_largest_double_reads_as_infinity():
    assert [number_of(value) for value in (10**400, -(10**400))] == [math.inf, -math.inf]


def test_outputs_without_any_number_are_read_as_objects():
    for batch in (np.zeros((3, 0)), [[], [], []], [(), (), ()]):
        outcomes = read_outputs(batch, 3)
        assert outcomes.tokens.tolist() == ["[]"] * 3
        assert outcomes.numbers.shape[1] > 0


# --- refusals ---


@pytest.mark.parametrize(
    ("outputs", "got"),
    [
        ([1.0, 2.0], "array of shape (2,)"),
        (np.zeros((4, 2)), "array of shape (4, 2)"),
        (np.zeros(()), "array of shape ()"),
        (["a"], "1 outputs"),
        ([], "got"),
        ("abc", "got str"),
        (b"abc", "got bytes"),
        ({"a": 1, "b": 2, "c": 3}, "got dict"),
        (1.0, "got float"),
        (None, "got NoneType"),
    ],
)
def test_another_number_of_outputs_than_asked_for_is_refused(outputs, got):
    with pytest.raises(SubjectError, match=r"must return 3 outputs, batch axis first, ") as error:
        read_outputs(outputs, 3)
    assert got in str(error.value)


def test_any_iterable_of_outputs_is_accepted():
    assert read_outputs(iter([1.0, 2.0]), 2).numbers.ravel().tolist() == [1.0, 2.0]
    assert len(read_outputs({1.0, 2.0}, 2)) == 2


@pytest.mark.parametrize("vector", [[0.0, -0.0, 2.0, 3.5, 4.0], np.arange(6).reshape(2, 3), (True, False, True, True)])
def test_what_is_cut_of_an_output_does_not_depend_on_its_batch(vector):
    alone, mixed = read_outputs([vector] * 2, 2), read_outputs([vector, None], 2)
    assert alone.tokens is None and mixed.tokens is not None
    cut = alone.narrowed(3)
    assert cut.numbers.shape == (2, 3) and cut.numbers.base is None
    assert cut.as_objects().tokens[0] == mixed.narrowed(3).tokens[0] and mixed.narrowed(3).tokens[1] == "None"
    assert alone.narrowed(6) is alone and mixed.narrowed(6) is mixed


def test_keys_that_are_equal_are_one_key():
    alike = [{1: 0.5, "a": 2}, {1.0: 0.5, "a": 2}, {True: 0.5, "a": 2}] * 4
    assert len(set(from_objects(alike).tokens.tolist())) == 1
    long = [{"a": "x" * 5_000 + end} for end in "abc" * 4]
    assert sorted(set(map(len, from_objects(long).tokens))) == [len(shortened("x" * 5_009))]
