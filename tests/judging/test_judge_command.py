"""`dpaudit judge`: exit statuses, JSON, the replay command, and what users type wrong."""

import json
import re
import shlex

import pytest
from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.judgements import load_judgement

CODE = """
import numpy as np

def spread(x, rng):
    return sum(abs(v - 0.5) for v in x) + rng.laplace(scale=0.25)

def enough(x, rng):
    return sum(abs(v - 0.5) for v in x) + rng.laplace(scale=0.5)

def broken(x, rng):
    raise RuntimeError("no table")

def of_arrays(x, rng):
    return 3.0 * x.sum() + rng.laplace()

def touches(x, rng):
    open("touched", "w").close()

calls = []

def stops(x, rng):
    calls.append(x)
    if len(calls) > 150:
        calls.clear()
        raise KeyboardInterrupt
    return 0.1 * round(10.0 * (sum(x) + rng.laplace()))

def box():
    from dpaudit.domains import VectorDomain
    return VectorDomain(2, 0.0, 1.0, adjacency="one")
"""
BOX = '{"kind": "vector", "length": 4, "low": 0, "high": 1, "adjacency": "one"}'


@pytest.fixture
def run(project):
    (project / "code_under_judgement.py").write_text(CODE)
    (project / "examples.json").write_text("[[0.5, 1.0], [0.25]]")

    def call(name, *options, claim="eps=1"):
        stated = [] if claim is None else ["--claim", claim]
        time = [] if "--seconds" in options else ["--seconds", "20"]
        words = ["judge", f"code_under_judgement.py:{name}", *stated, "--seed", "7", *time, *options]
        return CliRunner().invoke(main, words)

    return call


def test_the_answer_has_the_line_the_next_step_and_a_command_that_finds_it_again(run):
    found = run("spread", "--domain", BOX)
    assert found.exit_code == 1, found.output
    assert found.output.startswith("Refuted (recorded noise): eps=1.")
    assert "Line: code_under_judgement.py:5" in found.output and "Next: " in found.output
    again = next(line for line in found.output.splitlines() if line.startswith("Again: "))
    words = shlex.split(again.removeprefix("Again: dpaudit "))
    assert CliRunner().invoke(main, words).exit_code == 1


def test_a_folder_that_is_made_for_a_file_is_said(run):
    said = "Note: the folder reprots was not there, and was made.\n"
    assert said in run("spread", "--domain", BOX, "--out", "reprots/deep/judgement.json").stderr
    assert said not in run("spread", "--domain", BOX, "--out", "reprots/deep/judgement.json").stderr


@pytest.mark.parametrize("command", ["judge", "certify"])
def test_a_place_that_cannot_be_written_is_refused_before_the_first_call(run, project, command):
    (project / "afile").write_text("")
    words = [command, "code_under_judgement.py:touches", "--claim", "eps=1", "--pairs", "0,1", "--out", "afile/j.json"]
    found = CliRunner().invoke(main, words)
    assert (found.exit_code, found.stdout) == (2, "") and "got 'afile' (a file is in the way)" in found.stderr
    assert not (project / "touched").exists()


def test_what_was_known_is_said_where_a_command_is_interrupted(run):
    found = run("stops", "--pairs", "[0],[1]")
    assert found.exit_code == 130
    assert re.search(
        r"Interrupted\..*\nNothing is decided yet, after .* s and \d+ runs \(seed 7\)\.", found.stderr, re.S
    )
    words = ["--claim", "eps=1", "--pairs", "[0],[1]", "--seed", "7", "--only", "input_unchanged,claim_audit"]
    found = CliRunner().invoke(main, ["check", "code_under_judgement.py:stops", *words])
    assert found.exit_code == 130 and "Checks by then: input_unchanged " in found.stderr


def test_a_right_one_ends_with_status_0(run):
    found = run("enough", "--domain", BOX)
    assert found.exit_code == 0 and found.output.startswith("Not refuted"), found.output
    assert run("enough", "--pairs", "[0.0],[0.5]").output.startswith("Not refuted (recorded noise)")


def test_json_is_the_saved_form(run, project):
    found = run("spread", "--domain", BOX, "--json", "--out", "judgement.json", "--quiet")
    record = json.loads(found.stdout)
    assert record["verdict"] == "refuted" and record["exit_status"] == found.exit_code == 1
    assert record == json.loads((project / "judgement.json").read_text())
    assert record["replay"].startswith("dpaudit judge code_under_judgement.py:spread --claim eps=1 --pairs ")


def test_a_saved_judgement_gives_its_pair(run, project):
    first = run("of_arrays", "--domain", "code_under_judgement.py:box", "--out", "judgement.json")
    assert first.exit_code == 1 and "--pairs judgement.json" in first.output
    assert run("of_arrays", "--pairs", "judgement.json").exit_code == 1
    load_judgement(project / "judgement.json")


def test_a_broken_function_ends_with_status_3(run):
    found = run("broken", "--pairs", "[0.0],[1.0]")
    assert found.exit_code == 3 and "no table" in found.output


def test_examples_are_read_from_a_file(run):
    assert run("spread", "--examples", "examples.json").exit_code == 1
