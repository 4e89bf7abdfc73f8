"""The published schema of audit.json: every result that we write follows it, and what it forbids it refuses."""

import copy
import json
from importlib import resources

import jsonschema
import pytest

from dpaudit.results.model import AuditResult


@pytest.fixture(scope="module")
def validator():
    schema = json.loads((resources.files("dpaudit") / "schemas" / "audit-1.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_result_follows_the_schema(any_result, validator):
    validator.validate(json.loads(any_result.to_bytes()))


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
