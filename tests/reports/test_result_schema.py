"""The published schema of audit.json: every result that we write follows it, and what it forbids it refuses."""

from __future__ import annotations

import copy
import dataclasses
import json
from importlib import resources
from typing import get_args

import jsonschema
import pytest

from dpaudit.results.model import (
    SCHEMA,
    VERDICTS,
    AuditResult,
    Finding,
    FloatingPointFinding,
    FloatingPointPair,
    FloatingPointVerdict,
    Power,
    SideFinding,
    WitnessRecord,
)


@pytest.fixture(scope="module")
def validator():
    schema = json.loads((resources.files("dpaudit") / "schemas" / "audit-1.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_result_follows_the_schema(any_result, validator):
    validator.validate(json.loads(any_result.to_bytes()))


def test_the_schema_has_the_name_of_the_results(validator):
    assert validator.schema["properties"]["schema"]["const"] == SCHEMA == validator.schema["title"]
    assert validator.schema["$defs"]["verdict"]["enum"] == list(VERDICTS)
    doubles = validator.schema["$defs"]["floating_point"]["properties"]["verdict"]["enum"]
    assert doubles == list(get_args(FloatingPointVerdict))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Finding, "finding"),
        (Power, "power"),
        (WitnessRecord, "witness"),
        (FloatingPointFinding, "floating_point"),
        (FloatingPointPair, "floating_point_pair"),
        (SideFinding, "side_finding"),
    ],
)
def test_the_schema_names_every_field_and_no_other(validator, kind, name):
    fields = {field.name for field in dataclasses.fields(kind)} - ({"traceback"} if kind is Finding else set())
    stated = validator.schema["$defs"][name]
    of_findings = {"pool", "printed", "notes", "keys", "severity", "verdict_share"}
    of_power = {"learned", "cells", "planted_draws", "by_mass", "samples_needed"}
    later = {FloatingPointPair: {"rule"}, Power: of_power, Finding: of_findings, WitnessRecord: {"sketch"}}.get(
        kind, set()
    )
    of_inputs = {"types"} if kind is Finding else set()  # that x and x_prime have once they are read
    # `later` are not in older files.
    assert set(stated["properties"]) - of_inputs == fields == set(stated["required"]) | later


def test_the_schema_names_every_field_of_a_result(validator, synthetic):
    # of audits of very many pairs only, see tests/test_all_pairs_table.py; where a band was asked for, see test_band.py
    optional = {"universe", "trade_off"}
    assert set(validator.schema["properties"]) - optional == set(synthetic.make("single").to_dict())
    later = {"floating_point", "side_findings"}  # files of older versions have neither
    assert set(validator.schema["required"]) == set(validator.schema["properties"]) - optional - later


FORBIDDEN = [
    ("verdict", "passed"), ("schema", "dpaudit.audit/2"), ("confidence", 1), ("epsilon_lower", "Infinity"),
    ("ratio_lower", -0.5), ("samples", 10.5), ("seed", None), ("subject", {"name": None}), ("unknown", 1),
    ("pairs.verdict", "safe"), ("pairs.budget", {"epsilon": "-inf", "delta": 0.0}), ("pairs.p_value", 1.5),
    ("pairs.looks", [[0.5, 0.0, 0.0]]), ("pairs.witness", {"description": "x"}), ("pairs.unknown", 1),
    ("floating_point", {}), ("side_findings", [{}]),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value"), FORBIDDEN)
def test_the_schema_refuses(synthetic, validator, place, value):
    record = copy.deepcopy(synthetic.make("single").to_dict())
    validator.validate(record)
    target = record["pairs"][0] if place.startswith("pairs.") else record
    target[place.removeprefix("pairs.")] = value
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(record)


def test_a_loaded_result_is_written_as_it_was(any_result, tmp_path):
    record = any_result.to_dict()
    assert AuditResult.from_dict(json.loads(any_result.to_bytes())).to_dict() == record
