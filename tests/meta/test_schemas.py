"""The published schemas are what the types of results say."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema
import numpy as np
import pytest
import schemas
from numpy.typing import NDArray

from dpaudit.results.codec import UNSAVED
from dpaudit.results.saving import Saved


@pytest.mark.parametrize("name", sorted(schemas.written()))
def test_a_published_schema_is_what_the_types_say(name):
    content = (schemas.FOLDER / name).read_text(encoding="utf-8")
    assert content == schemas.written()[name], f"{name} must be what the types say: run `make schemas`"
    jsonschema.Draft202012Validator.check_schema(json.loads(content))


def test_every_exception_is_of_a_field():
    """No name of a class or a field that has gone stays in a list of what types do not say."""
    texts = "".join(schemas.written().values())
    listed = schemas.SHARES | schemas.SIGNED | schemas.UNKNOWN | schemas.OPTIONAL
    fields = {name.rpartition(".")[2] for name in listed}
    assert all(f'"{name}": {{' in texts for name in fields)
    assert all(f'"{name}": {{' in texts for name in schemas.DEFINITIONS if name != "confidence")


@dataclasses.dataclass(frozen=True)
class Inner:
    """A part."""

    p_value: float
    bound: float | None = None


@dataclasses.dataclass(frozen=True)
class Outer(Saved):
    """A file.

    Attributes
    ----------
    mode : {"slow", "fast"}
        How it went.
    parts, others : tuple of Inner
    """

    mode: str
    parts: tuple[Inner, ...]
    table: NDArray[np.int64]
    pair: tuple[str, int] = dataclasses.field(metadata={"name": "both"})
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    hidden: str = dataclasses.field(default="", metadata=UNSAVED)

    schema = "dpaudit.outer/2"


GOOD = {"schema": "dpaudit.outer/2", "mode": "fast", "parts": [{"p_value": 0.5}], "table": [1, 2], "both": ["a", 1]}


def test_a_schema_says_what_may_stand_in_a_field_and_what_has_to():
    schema = schemas.schema_of(Outer)
    assert schema["$id"] == "urn:dpaudit:outer:2" and schema["properties"]["mode"]["description"] == "How it went."
    check = jsonschema.Draft202012Validator(schema)
    check.validate(
        {**GOOD, "details": {"any": 1}, "parts": [{"p_value": 0.5, "bound": "inf"}, {"p_value": 1, "bound": None}]}
    )
    for name in GOOD:
        assert not check.is_valid({key: value for key, value in GOOD.items() if key != name})
    for change in (
        {"mode": "other"}, {"parts": [{"p_value": 1.5}]}, {"parts": [{"p_value": "inf"}]}, {"table": [0.5]},
        {"parts": [{"p_value": 0.5, "bound": -1.0}]}, {"both": ["a", 1, 2]}, {"both": ["a"]}, {"pair": ["a", 1]},
        {"hidden": ""}, {"schema": "dpaudit.outer/1"},
    ):  # fmt: skip
        assert not check.is_valid({**GOOD, **change})
