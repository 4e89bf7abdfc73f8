"""`dpaudit plan` on the command line: what is said, strict JSON, and one message for each mistake."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from dpaudit.cli import main

CODE = """
from dpaudit import MetricDP, PureDP

def release(data, size, rng): return data + rng.laplace(size=size)
def raises(data, rng): raise ValueError("the database is gone")

class Own:
    claim = PureDP(1.0)
    def sample(self, data, size, rng): return data + rng.laplace(size=size)
    def pairs(self): return [(0.0, 1.0), (2.0, 1.0)]

own = Own()

class Moves(Own):
    translation_family = True
    def pairs(self): return [(0.0, 1.0), (1.0, 2.0), (2.0, 1.0)]

moves = Moves()
"""


@pytest.fixture
def run(project):
    """Run `dpaudit plan` in a project with mechanisms in m.py; never a traceback, never an unexpected error."""
    (project / "m.py").write_text(CODE)

    def run(*arguments):
        result = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["plan", *arguments], prog_name="dpaudit")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output and "unexpected" not in result.stderr
        assert all(len(line) <= 80 for line in result.stdout.splitlines()) or "json" in arguments
        return result

    return run


def ask(run, *arguments, claim="eps=1"):
    return run("m.py:release", "--claim", claim, "--pairs", "0,1", "--seed", "3", *arguments)


def test_a_plan_says_that_it_does_not_count_on_pools(run):
    text = " ".join(run("m.py:moves", "--seed", "3").stdout.split())
    assert "together (1 pool). This plan does not count on that: its figures are those of --no-pool." in text
    planned = json.loads(run("m.py:moves", "--seed", "3", "--format", "json").stdout)
    assert planned["pools"] == 1 and planned["pairs"] == 3
    assert "pool" not in run("m.py:own", "--seed", "3").stdout


def test_a_plan_says_what_is_found_what_is_needed_and_what_it_costs(run):
    result = ask(run)
    assert result.exit_code == 0 and result.stderr == ""
    for words in (
        "m.py:release, claim eps=1: 1 pair of 2 inputs, 95% confidence",
        "Found with probability 90% in 100,000 samples (sequential mode):",
        "Samples that find 10% over the claim with probability 90%:",
        "Each pair has at least 5%",
        "200,000 runs, at most, in",
        "runs a second in a pilot of",
        "seed 3",
    ):
        assert words in " ".join(result.stdout.split()), words


def test_json_is_strict_and_alone_on_stdout(run):
    result = ask(run, "--format", "json", "--event-mass", "0.5")
    record = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert record["schema"] == "dpaudit.plan/1" and record["seed"] == 3
    assert record["budgets"][0]["powers"][0]["event_mass"] == 0.5 and result.stderr == ""


def test_claim_and_pairs_are_the_mechanisms_own_by_default_and_options_those_of_the_project(run, project):
    (project / "pyproject.toml").write_text("[tool.dpaudit]\nsamples = 3000\nmode = 'fixed'\n")
    assert "2 pairs of 3 inputs" in run("m.py:own").stdout
    assert "in 3,000 samples (fixed mode)" in run("m.py:own").stdout
    (project / "pyproject.toml").write_text("[tool.dpaudit]\nsamples = 3\n")
    result = run("m.py:own")
    assert result.exit_code == 2 and "samples must be" in result.stderr and "pyproject.toml" in result.stderr
