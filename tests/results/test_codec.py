"""Saved forms from types: what is written is read, what is damaged is refused with its place."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
import pytest

from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import OMITTED, UNSAVED, Form, FormError, Matrix, fields_to_dict, reader_of, to_json


class Point(NamedTuple):
    name: str
    place: int


@dataclasses.dataclass(frozen=True)
class Circle(Form):
    radius: float

    tag = "circle"


@dataclasses.dataclass(frozen=True)
class Square(Form):
    side: float

    tag = "square"


@dataclasses.dataclass(frozen=True, eq=False)
class Whole(Form):
    number: float
    count: int
    said: Literal["yes", "no"]
    pairs: tuple[tuple[float, str], ...]
    point: Point
    shape: Circle | Square | None
    array: FloatArray
    matrix: Matrix
    part: Fraction = Fraction(1, 3)
    by_name: dict[str, float | None] = dataclasses.field(default_factory=dict)
    apart: float = dataclasses.field(default=7.0, metadata=UNSAVED)
    other: str = dataclasses.field(default="", metadata={"name": "another name"})


class Exact(Whole):
    exact = True


def whole(kind=Whole):
    return kind(
        number=math.inf,
        count=3,
        said="yes",
        pairs=((-math.inf, "inf"), (0.1, "a")),
        point=Point("a", 1),
        shape=Square(2.0),
        array=np.array([0.1, math.inf]),
        matrix=np.array([[1.0, 2.0]]),
        by_name={"a": None, "b": 1e-300},
        apart=1.0,
        other="x",
    )


@pytest.mark.parametrize("kind", [Whole, Exact])
def test_what_is_written_is_read(kind):
    value = whole(kind)
    record = json.loads(json.dumps(value.to_dict(), allow_nan=False))
    again = kind.from_dict(record)
    assert again.apart == 7.0 and "apart" not in record and record["another name"] == "x"
    for field in dataclasses.fields(kind):
        if field.name != "apart":
            np.testing.assert_equal(getattr(again, field.name), getattr(value, field.name))
    assert record["point"] == ["a", 1] and record["shape"]["kind"] == "square" and record["part"] == "1/3"


@dataclasses.dataclass(frozen=True)
class Sparse(Form):
    found: int = dataclasses.field(default=0, metadata=OMITTED)
    shape: Circle | None = dataclasses.field(default=None, metadata=OMITTED)

    derived = ("is_round",)

    @property
    def is_round(self):
        return self.shape is not None


@pytest.mark.parametrize(
    ("value", "record"),
    [
        (Sparse(), {"is_round": False}),
        (Sparse(2, Circle(1.0)), {"found": 2, "shape": {"kind": "circle", "radius": 1.0}, "is_round": True}),
    ],
)
def test_what_says_nothing_is_left_out_and_what_is_derived_is_written(value, record):
    assert value.to_dict() == record and Sparse.from_dict(record) == value


def test_an_exact_form_has_hexadecimal_digits():
    record = whole(Exact).to_dict()
    assert record["array"] == [(0.1).hex(), "inf"] and record["number"] == "inf" and record["count"] == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": "3"}, "count must be int, got '3'"),
        ({"count": True}, "count must be int, got True"),
        ({"number": "much"}, "number must be float, got 'much'"),
        ({"number": 10**400}, "number must be float, got an integer beyond the doubles"),
        ({"said": "perhaps"}, "said must be one of yes, no, got 'perhaps'"),
        ({"pairs": [[1.0, "a"], [1.0, 2]]}, "pairs[1][1] must be str, got 2"),
        ({"pairs": [[1.0]]}, "pairs[0] must be tuple[float, str], got [1.0]"),
        ({"pairs": "ab"}, "pairs must be tuple[tuple[float, str], ...], got 'ab'"),
        ({"point": ["a", None]}, "point[1] must be int, got None"),
        ({"shape": {"kind": "os.system"}}, "shape.kind must be one of circle, square, got 'os.system'"),
        ({"shape": {"kind": "circle"}}, "shape must be complete, got one without radius"),
        ({"shape": []}, "shape.kind must be one of circle, square, got []"),
        ({"array": [[1.0]]}, "array must be float, got [1.0]"),
        ({"array": 1.0}, "array must be a list, got 1.0"),
        ({"matrix": [[1.0], [1.0, 2.0]]}, "matrix must be lists of one shape, got "),
        ({"part": "1/0"}, "part must be a fraction, got '1/0'"),
        ({"by_name": {"a": []}}, "by_name.a must be float, got []"),
    ],
)
def test_what_is_damaged_is_refused_with_its_place(change, message):
    with pytest.raises(FormError) as caught:
        Whole.from_dict({**whole().to_dict(), **change})
    assert str(caught.value).startswith(message)


def test_what_is_missing_is_named_and_what_is_unknown_passed_over():
    record = whole().to_dict()
    with pytest.raises(FormError, match="record must be complete, got one without number, said"):
        Whole.from_dict({name: value for name, value in record.items() if name not in ("number", "said", "part")})
    del record["part"]
    assert Whole.from_dict({**record, "from a later version": 1}).part == Fraction(1, 3)


@pytest.mark.parametrize("value", [None, 1, "record", [], [["number", 1.0]]])
def test_what_is_no_record_is_refused(value):
    with pytest.raises(FormError, match="record must be Whole, got"):
        Whole.from_dict(value)


@pytest.mark.parametrize("text", ["much", "", "0x", 0.5, None, "0x1p+9999", []])
def test_a_number_that_is_to_be_exact_is_hexadecimal(text):
    with pytest.raises(FormError, match="must be the hexadecimal digits of a float"):
        reader_of(float, True)(text)


def test_dataclasses_among_inputs_are_shown_and_not_taken_apart():
    assert to_json(Point("a", 1)) == ["a", 1] and to_json(Circle(1.0)) == "Circle(radius=1.0)"


def test_fields_are_written_under_their_names():
    assert fields_to_dict(Circle(0.5)) == {"radius": 0.5}
