"""`dpaudit audit --search` and `--examples`, and `dpaudit greybox`."""

from __future__ import annotations

import json
import re
import sys

import pytest
from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.results.model import load

CODE = """
import numpy as np
from dpaudit.subjects.domains import DatasetDomain

def total(data, rng):
    return float(np.sum(data)) + (rng.laplace() if len(data) else 0.0)

def vector(data, size, rng):
    return np.asarray(data) + rng.laplace(scale=2.0, size=(size, len(data)))

def domain():
    return DatasetDomain.between(0.0, 1.0)

number = 3
"""
QUICK = ["--claim", "eps=1", "--samples", "300", "--seed", "7", "--no-floating-point", "--quiet"]
DATASETS = json.dumps({"kind": "dataset", "low": 0, "high": 1})


@pytest.fixture
def code(project):
    (project / "code_under_audit.py").write_text(CODE)
    (project / "domain.json").write_text(DATASETS)
    (project / "header.csv").write_text("age,city\n")
    (project / "examples.json").write_text("[[0.5, 1.0], [0.25]]")
    return project


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    "place",
    [
        ("--search", DATASETS),
        ("--search", "domain.json"),
        ("--search", "code_under_audit.py:domain"),
        ("--examples", "examples.json"),
    ],
)
def test_pairs_are_searched_for_and_the_result_says_where_they_come_from(code, place):
    status, output = run(
        "audit", "code_under_audit.py:total", *QUICK, *place, "--search-budget", 1000, "--search-pairs", 2,
        "--out", "out", "--report", "json",
    )  # fmt: skip
    assert status == 1 and re.search("(1 pair was|2 pairs were) chosen of", output)
    assert "same randomness on both inputs: found" in output
    saved = load("out/audit.json")
    kinds = [finding.kind for finding in saved.side_findings]
    assert kinds == ["pair_search", "same_randomness", "recorded_noise", "shrunk_pair"]
    assert len(saved.findings) in (1, 2)  # one where only one stands out


def test_greybox_says_what_differs_and_its_exit_status_says_whether_it_is_more_than_a_hint(code):
    status, output = run("greybox", "code_under_audit.py:total", "--claim", "eps=1", "--pairs", "[],[1]", "--seed", 1)
    assert status == 1 and "[]|[1]: definite." in output and "branches, on 16 of 16" in output
    sound = ("greybox", "code_under_audit.py:vector", "--claim", "eps=1", "--pairs", "[0,0],[1,1]", "--seed", 1)
    assert run(*sound)[0] == 0
    assert run(*sound[:3], "eps=0.9", *sound[4:])[1].count("claimed 0.9") == 1
    status, output = run(*sound[:3], "eps=0.9", *sound[4:], "--format", "json")
    record = json.loads(output)
    assert status == 1 and record["details"]["pairs"][0]["implied_loss"] == 1.0 and record["details"]["seed"] == 1


PROGRAM = """
import json, random, sys
for line in sys.stdin:
    r = json.loads(line)
    noise = random.Random(r.get("seed")).uniform(-1, 1) * (len(sys.argv) > 1)
    reply = {"type": "hello", "protocol": 1, "seeds": True}
    if r["type"] != "hello":
        reply = {"id": r["id"], "outputs": [r["input"] + noise] * r["size"]}
    print(json.dumps(reply), flush=True)
"""


def test_greybox_says_that_only_the_outputs_of_a_program_can_be_compared(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = f"exec:{sys.executable} -S {tmp_path / 'program.py'}"
    asked = ("--pairs", "0,1", "--seed", 1)
    status, output = run("greybox", f"{command} noise", *asked)
    assert status == 5 and "Only the outputs of" in output and "same." not in output
    status, output = run("greybox", f"{command} noise", *asked, "--format", "json")
    assert status == 5 and json.loads(output)["status"] == "not_applicable"
    # Sixteen equal outputs do not prove that it has no noise, as it does where nothing is taken from a generator.
    status, output = run("greybox", command, *asked)
    assert status == 0 and "0|1: hint." in output and "Only outputs could be compared." in output


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("--example", "header.csv"), "example must have at least one row, got none at 'header.csv'."),
        (("--examples", "header.csv"), "examples must be a JSON list, got a table at 'header.csv'. Give a table with"),
    ],
)
@pytest.mark.parametrize("has_pandas", [True, False])
def test_a_table_that_is_no_example_is_told_what_it_lacks(code, place, message, has_pandas, monkeypatch):
    if has_pandas:
        pytest.importorskip("pandas", reason="needs pandas (extra tables)")
    else:
        monkeypatch.setitem(sys.modules, "pandas", None)
    status, output = run("audit", "code_under_audit.py:total", *QUICK, *place)
    assert status == 2 and output.startswith(f"Error: {message}")
