"""Outputs as the bettor reads them: each by itself, whatever lies beside it; tokens by value; every refusal.

The first part is what validity rests on. An auditor whose reading of an output depended on the rest of its batch
refuted sound mechanisms in 25% to 37% of audits at nominal 5% (measured: 2 x 2 matrices or None with probability 0.03,
the same law on both inputs, 300 audits of 300 samples).
"""

import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import math
import threading

import numpy as np
import pytest

from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import (
    MAXIMUM_TOKEN,
    canonical,
    from_objects,
    join,
    number_of,
    read_outputs,
    shortened,
    unseen,
)
from dpaudit.subjects.call_outcomes import Failed, Opaque


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Release:
    value: float
    label: str


@dataclasses.dataclass(frozen=True, slots=True)
class SlottedRelease:
    value: float


class Plain:
    """An object without a value of its own."""


def reading(outcomes, row):
    """Everything that a rule can see of one output: token and features, and the one to four numbers that it is."""
    objects = outcomes.as_objects()
    seen = [objects.tokens[row], objects.numbers[row].tolist()]
    seen += [outcomes.read_as(columns).numbers[row].tolist() for columns in (1, 2, 3, 4)]
    return repr(seen)  # so that NaN equals NaN and 0.0 differs from -0.0


# --- every output is read by itself ---


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


def test_an_integer_above_the_largest_double_reads_as_infinity():
    assert [number_of(value) for value in (10**400, -(10**400))] == [math.inf, -math.inf]


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


def test_keys_that_are_equal_are_one_key():
    alike = [{1: 0.5, "a": 2}, {1.0: 0.5, "a": 2}, {True: 0.5, "a": 2}] * 4
    assert len(set(from_objects(alike).tokens.tolist())) == 1
    long = [{"a": "x" * 5_000 + end} for end in "abc" * 4]
    assert sorted(set(map(len, from_objects(long).tokens))) == [len(shortened("x" * 5_009))]


@pytest.mark.parametrize("output", [0.5, np.array(0.5), np.zeros(3), "abc", None])
def test_a_batch_of_one_without_its_axis_is_refused_with_what_is_wanted(output):
    # What functions do that squeeze their array: of any other size they are read.
    with pytest.raises(SubjectError, match=r"must return an array or a list of 1 output, as of any other size, got "):
        read_outputs(output, 1)


@pytest.mark.parametrize("outputs", [[1.5, [2.5]], [[1.5], 2.5], [np.zeros((2, 3)), np.zeros(6)], [1, 2.5], [1, "a"]])
def test_outputs_of_many_calls_are_read_as_those_of_one(outputs):
    # A number and a list of it are two outputs, however calls part them.
    whole, parted = read_outputs(outputs, 2), join([read_outputs([output], 1) for output in outputs])
    assert whole.as_objects().tokens.tolist() == parted.as_objects().tokens.tolist()
    assert len(set(parted.as_objects().tokens)) == 2
