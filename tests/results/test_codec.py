"""Saved forms from types: what is written is read, what is damaged is refused with its place; and the schemas."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from fractions import Fraction
from importlib import resources
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest

from dpaudit.conformance.result import CheckRecord, CheckResult
from dpaudit.judgements.judgement import Judgement
from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import UNSAVED, Form, FormError, Matrix, fields_to_dict, reader_of, to_json
from dpaudit.results.model import (
    AuditResult,
    Finding,
    FloatingPointFinding,
    FloatingPointPair,
    Power,
    SideFinding,
    WitnessRecord,
)
from dpaudit.results.plan_result import EventEstimate, Needed, Plan, PlannedBudget, PlannedPower
from dpaudit.results.utility_result import UtilityFinding, UtilityResult
from dpaudit.scores.result import GuessRecord, IndependentBound, ScoresResult
from dpaudit.symbolic.certificate import CertifiedPair, Event


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


FORMS = [
    ("audit", "", AuditResult, {"schema", "verdict", "epsilon_lower", "ratio_lower"}),
    ("certificate", "pair", CertifiedPair, set()),
    ("certificate", "event", Event, set()),
    ("check", "", CheckResult, {"schema", "verdict", "counts"}),
    ("check", "check", CheckRecord, set()),
    ("judgement", "", Judgement, {"schema", "inputs", "exit_status", "replay"}),
    ("plan", "", Plan, {"schema"}),
    ("plan", "planned_budget", PlannedBudget, set()),
    ("plan", "planned_power", PlannedPower, set()),
    ("plan", "needed", Needed, set()),
    ("plan", "event_estimate", EventEstimate, set()),
    ("scores", "", ScoresResult, {"schema", "verdict"}),
    ("scores", "guesses", GuessRecord, set()),
    ("scores", "independent", IndependentBound, set()),
    ("utility", "", UtilityResult, {"schema", "verdict"}),
    ("utility", "finding", UtilityFinding, {"ratio", "ratio_lower", "ratio_upper", "detectable_ratio"}),
]


def published(name, part):
    """A published schema, and its part of this name."""
    schema = json.loads((resources.files("dpaudit") / "schemas" / f"{name}-1.json").read_text(encoding="utf-8"))
    stated: Any = schema["$defs"].get(part) if part else schema
    stated = stated or schema["properties"][part]
    stated = next((one for one in stated.get("anyOf", stated.get("oneOf", ())) if "properties" in one), stated)
    return schema, stated.get("items", stated)


@pytest.mark.parametrize(("name", "part", "kind", "derived"), FORMS, ids=[f"{one[0]} {one[1]}" for one in FORMS])
def test_a_published_schema_names_the_fields_of_its_type_and_no_other(name, part, kind, derived):
    stated = published(name, part)[1]
    saved = [f for f in dataclasses.fields(kind) if f.metadata.get("saved", True)]
    names = {f.metadata.get("name", f.name) for f in saved}
    assert set(stated["properties"]) == names | derived
    missing = dataclasses.MISSING
    needed = {f.metadata.get("name", f.name) for f in saved if f.default is missing and f.default_factory is missing}
    assert needed <= set(stated["required"]) <= names | derived


def json_types(hint: Any, exact: bool) -> set[str]:
    """Types of JSON that a value of this annotation is saved as; "any" where the annotation does not say."""
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if hint is Any or (not isinstance(origin, type) and origin not in (Literal, typing.Union)):
        return {"any"}
    if origin is Literal:
        return {"string"}
    if origin in (typing.Union, types.UnionType):
        return set().union(*(json_types(part, exact) for part in parts))
    if origin is float:
        return {"string"} if exact else {"number", "integer", "string", "null"}  # infinities are texts, NaN is null
    plain = {str: "string", int: "integer", bool: "boolean", types.NoneType: "null", Fraction: "string"}
    if origin in plain:
        return {plain[origin]}
    return {"object" if dataclasses.is_dataclass(origin) or issubclass(origin, dict) else "array"}


def resolved(schema, root):
    """The schema that a reference leads to."""
    keys = schema["$ref"].split("/")[1:] if "$ref" in schema else ()
    return functools.reduce(lambda part, key: part[key], keys, root) if keys else schema


def stated_types(schema: dict[str, Any], root: dict[str, Any]) -> set[str]:
    """Types that a schema lets through."""
    schema = resolved(schema, root)
    several = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if several:
        return set().union(*(stated_types(one, root) for one in several))
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values is not None:
        return set().union(*(json_types(type(value), False) for value in values))
    stated = schema.get("type", "any")
    return {stated} if isinstance(stated, str) else set(stated)


PARTS = [("audit", "finding", Finding), ("audit", "power", Power), ("audit", "witness", WitnessRecord),
         ("audit", "floating_point", FloatingPointFinding), ("audit", "floating_point_pair", FloatingPointPair),
         ("audit", "side_finding", SideFinding), *(one[:3] for one in FORMS)]  # fmt: skip


@pytest.mark.parametrize(("name", "part", "kind"), PARTS, ids=[f"{one[0]} {one[1]}" for one in PARTS])
def test_a_published_schema_lets_no_other_types_through_than_the_annotations(name, part, kind):
    root, stated = published(name, part)
    hints, compared = typing.get_type_hints(kind, include_extras=True), 0
    for field in dataclasses.fields(kind):
        form = stated["properties"].get(field.metadata.get("name", field.name))
        if form is None or "write" in field.metadata:
            continue
        allowed = json_types(hints[field.name], getattr(kind, "exact", False) and field.metadata.get("exact", True))
        allowed |= {"string"} if field.name == "seed" else set()  # what stands there once it is redacted
        found = stated_types(form, root)
        assert "any" in allowed or found <= allowed, (field.name, found, allowed)
        compared += "any" not in allowed
        if typing.get_origin(hints[field.name]) is Literal:
            form = resolved(form, root)
            values = form.get("enum", [form.get("const")])
            assert set(values) <= set(typing.get_args(hints[field.name])), field.name
    assert compared > len(hints) // 2


def test_fields_are_written_under_their_names():
    assert fields_to_dict(Circle(0.5)) == {"radius": 0.5}
