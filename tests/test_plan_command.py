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


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["m.py:release", "--pairs", "0,1"], 2, "claim must be given: m.py:release states none."),
        (["m.py:release", "--claim", "eps=1"], 2, "pairs must be given: m.py:release has none."),
        (["m.py:releas", "--claim", "eps=1", "--pairs", "0,1"], 2, "releas"),
        (["m.py:own", "--claim", "eps=one"], 2, "eps"),
        (["m.py:own", "--over", "much"], 2, "over must be a share such as 10% or 0.1, got 'much'."),
        (["m.py:own", "--over", "10"], 2, "got '10': write 10% or, as a share, 1000%."),
        (["m.py:own", "--over", "2"], 2, "got '2': write 2% or, as a share, 200%."),
        (["m.py:own", "--over", "nan"], 2, "over must be a share such as 10% or 0.1, got 'nan'."),
        (["m.py:own", "--over", "-10%"], 2, "over must be in (0, 100], a share of the claim (0.1 for 10%), got -0.1."),
        (["m.py:own", "--power", "100%"], 2, "power must be in [0.5, 0.99], got 1.0."),
        (["m.py:own", "--event-mass", "0.5,"], 2, "event-mass must be a share such as 10% or 0.1, got ''."),
        (["m.py:own", "--event-mass", "2"], 2, "event_masses must be numbers in (0, 1], got 2.0."),
        (["m.py:own", "--pilot", "5"], 2, "pilot must be an integer of at least 100, or 0 for none, got 5."),
        (["m.py:own", "--mode", "both"], 2, "--mode"),
        (["m.py:own", "--format", "yaml"], 2, "--format"),
        ([], 2, "target must be given"),
        (["m.py:raises", "--claim", "eps=1", "--pairs", "0,1"], 3, "ValueError: the database is gone in raises ("),
    ],
)
def test_each_mistake_is_one_message(run, arguments, status, message):
    result = run(*arguments)
    assert result.exit_code == status and message in result.stderr and result.stdout == ""
    assert len([line for line in result.stderr.splitlines() if line.startswith("Error: ")]) == 1
