"""`dpaudit check` on the command line: the table, strict JSON, exit statuses, and one message for each mistake."""

import json
from importlib import resources

import jsonschema
import pytest
from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.conformance import check_names

CODE = """
import numpy as np
from dpaudit import PureDP

def release(data, size, rng): return data + rng.laplace(size=size)
def once(data, rng): return float(data + rng.laplace())
def unpaired(data, rng): return data
def keyed(data, key): return data

class Response:
    claim = PureDP(1.0)
    input_kind = "position"
    def __init__(self, epsilon=1.0):
        if not 0 < epsilon < 100: raise ValueError("epsilon")
        self.epsilon = epsilon
    def pairs(self): return [(0, 1)]
    def sample(self, data, size, rng):
        if type(data) is not int or data not in (0, 1): raise ValueError("data")
        return np.where(rng.random(size) < 1 / (1 + np.exp(-self.epsilon)), data, 1 - data)

class Two(Response):
    @classmethod
    def examples(cls): return [cls(1.0), cls(0.5)]

class Needs:
    def __init__(self, epsilon): self.epsilon = epsilon
    def sample(self, data, size, rng): return data

class NoExamples(Response):
    @classmethod
    def examples(cls): return []

class OddClaim(Response):
    claim = 1.0

class OddKind(Response):
    input_kind = "table"

class NoPairs(Response):
    def pairs(self): raise OSError("no such file")

class Broken(Response):
    def sample(self, data, size, rng): raise ConnectionError("the database is gone")

class NoBatch(Response):
    def sample(self, data, size, rng): return 1.0

def gone(data): raise ConnectionError("the database is gone")

odd_claim, odd_kind = OddClaim(), OddKind()
response = Response()
number = 3
"""
# Statistical checks share 1e-3 a call over seeds; each seed here is fixed and below it: 6 calls of sound mechanisms.


@pytest.fixture
def run(project):
    """Run `dpaudit check` in a project with mechanisms in m.py; never a traceback, never an unexpected error."""
    (project / "m.py").write_text(CODE)

    def run(*arguments):
        result = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["check", *arguments], prog_name="dpaudit")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output and "unexpected" not in result.stderr
        assert all(len(line) <= 80 for line in result.stdout.splitlines()) or "json" in arguments
        return result

    return run


@pytest.fixture(scope="module")
def validator():
    schema = json.loads((resources.files("dpaudit") / "schemas" / "check-1.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def words(result):
    return " ".join(result.stdout.split())


def test_a_sound_mechanism_is_not_refuted_and_every_check_is_in_the_table(run):
    result = run("m:response", "--seed", "3")
    assert result.exit_code == 0 and result.stderr == ""
    assert "m:response (Response), claim eps=1" in words(result)
    assert all(name in result.stdout for name in check_names())
    assert "the mechanism does not" in words(result) and "'counts'" in words(result)
    assert f"{len(check_names())} checks: " in words(result)
    assert "Error rate 0.1% for the list of one mechanism" in words(result)


def test_what_fails_is_said_in_full(run):
    result = run("m:release", "--claim", "eps=1", "--pairs", "0,1", "--seed", "3", "--only", "refuses_nan,pickling")
    assert result.exit_code == 1
    assert "failed refuses_nan: data must be refused where it makes no sense, got outputs [nan, nan] for nan." in (
        words(result)
    )
    assert "2 checks: 1 failed (refuses_nan), 1 passed." in words(result) and "violated" not in words(result)


def test_one_cause_is_told_with_what_follows_from_it_behind_it(run, project):
    """Half of the noise: the claim's audit fails with probability above 1 - 1e-6, at 10,000 samples."""
    arguments = ("m:release", "--claim", "eps=0.5", "--pairs", "0,1", "--seed", "3", "--out", "found")
    result = run(*arguments)
    laws = [name for name in check_names() if name.startswith("law_")]
    told = words(result)
    assert result.exit_code == 1 and told.count("violated claim_audit: ") == 1 and "violated law_" not in told
    assert f"{len(laws)} laws that would follow: left out." in told
    assert told.index("Privacy") < told.index("claim_audit") < told.index("Hygiene") < told.index("failed refuses_nan")
    record = json.loads((project / "found" / "check.json").read_text())
    left = {one["name"]: one for one in record["checks"] if "follows from claim_audit" in one["message"]}
    assert sorted(left) == sorted(laws) and {one["status"] for one in left.values()} == {"skipped"}
    alone = run("m:release", "--claim", "eps=0.5", "--pairs", "0,1", "--seed", "3", "--only", "law_mixture")
    assert "violated law_mixture" in words(alone)  # it was asked for, and nothing before it has failed


def test_a_broken_claim_is_found(run):
    result = run("m:release", "--claim", "eps=0.3", "--pairs", "0,1", "--seed", "3", "--only", "claim_audit")
    assert result.exit_code == 1 and "pair 0|1 must keep the claim eps=0.3, got epsilon of at least" in words(result)


def test_json_follows_its_schema_and_is_the_same_twice(run, validator, project):
    arguments = ("m:Two", "--seed", "3", "--only", "claim_audit,input_unchanged", "--format", "json", "--out", "found")
    result = run(*arguments)
    record = json.loads(result.stdout)
    validator.validate(record)
    assert result.exit_code == 0 and record["verdict"] == "not_refuted"
    assert [entry["name"] for entry in record["mechanisms"]] == ["Two", "Two#2"]
    assert [(entry["name"], entry["status"]) for entry in record["checks"]] == [
        ("input_unchanged", "skipped"), ("claim_audit", "not_refuted")
    ] * 2  # fmt: skip
    assert json.loads((project / "found" / "check.json").read_text()) == record
    again = json.loads(run(*arguments).stdout)
    for entry in (record, again, *record["checks"], *again["checks"]):
        del entry["seconds"]
    assert again == record
    record["checks"][0]["status"] = "passed"
    assert not validator.is_valid(record)


def test_a_known_failure_does_not_count_and_one_that_is_none_is_an_error(run):
    known = ("m:release", "--seed", "3", "--pairs", "0,1", "--only", "refuses_nan,pickling", "--xfail")
    result = run(*known, "refuses_nan=by design")
    assert result.exit_code == 0 and "known failure refuses_nan:" in words(result) and "by design" in words(result)
    result = run(*known, "pickling=never tried", "--xfail", "refuses_nan=by design")
    assert result.exit_code == 3
    assert "expected_failures must name checks that fail, got pickling, which does not. Remove it." in words(result)


def test_a_function_that_is_called_once_a_draw_is_checked_too(run):
    result = run("m:once", "--claim", "eps=1", "--pairs", "0,1", "--seed", "3", "--only",
                 "seeded_determinism,batch_contract,independent_calls,claim_audit")  # fmt: skip
    assert result.exit_code == 0 and "the mechanism is called once a draw" in words(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("m:Broken",),
            "Broken: a call for 2 outputs must return them, got ConnectionError: the database is gone in sample "
            "(m.py, line 43).",
        ),
        (("m:NoBatch",), "sample(data, size=2, rng) must return 2 outputs, batch axis first, got float."),
        (
            ("m:gone", "--pairs", "0,1"),
            "gone must return an output, got ConnectionError: the database is gone in gone (m.py, line 48).",
        ),
    ],
)
def test_a_mechanism_that_breaks_on_its_own_input_is_said_once_with_status_3(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 3 and result.stderr == f"Error: {message}\n" and result.stdout == ""
