"""`dpaudit evidence`: what it says of a store, and what it changes."""

import io
import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from rich.console import Console

import dpaudit
from dpaudit.cli import main
from dpaudit.reports import terminal
from dpaudit.reports.evidence import explanation, list_blocks
from dpaudit.running.store import Store

SCHEMA = json.loads((Path(dpaudit.__file__).parent / "schemas" / "evidence-1.json").read_text())
CODE = """
import numpy as np

class Release:
    def __init__(self, scale): self.scale = scale
    def __repr__(self): return f"Release({self.scale})"
    def sample(self, data, size, rng): return data + self.scale * rng.integers(-5, 6, size)

release, other = Release(1.0), Release(2.0)
"""


@pytest.fixture
def run(project, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    (project / "m.py").write_text(CODE)

    def invoke(*arguments):
        return CliRunner().invoke(main, list(arguments))

    return invoke


def audited(run, target="m.py:release", store="e.db", seed=1):
    """One session of a mechanism that returns far more than it promises: outputs of one input only, at either end."""
    options = ("--claim", "eps=1", "--pairs", "0,5;0,0.0", "--samples", "40", "--no-floating-point", "-q")
    return run("audit", target, *options, "--store", store, "--seed", str(seed))


def change(text):
    """Another m.py, as the next process would import it."""
    Path("m.py").write_text(text)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).endswith("/m.py"):
            del sys.modules[name]


def exported(run, *arguments, store="e.db"):
    result = run("evidence", "export", *arguments, "--store", store)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_a_store_is_listed_explained_and_exported(run):
    assert [audited(run, seed=seed).exit_code for seed in (1, 1, 2)] == [5, 1, 1]  # one session is too short
    audited(run, "m.py:other")
    listed = run("evidence", "list", "--store", "e.db")
    assert listed.exit_code == 0
    first, second = listed.stdout.split("m.py:")[1:]  # a target is broken behind its colon
    assert "release" in first and "violated" in first and " 3 " in first and "other" in second
    document = exported(run)
    assert [subject["target"] for subject in document["subjects"]] == ["m.py:release", "m.py:other"]
    release = document["subjects"][0]
    assert [(session["seed"], session["number"]) for session in release["nights"]] == [(1, 0), (1, 1), (2, 0)]
    assert release["error_rate"] == pytest.approx(0.05) and release["lives"] == 1 and release["violated"]
    same = next(pair for pair in release["pairs"] if pair["id"] == "0|0.0")
    assert not same["violated"] and [look["number"] for look in same["looks"]] == [0, 1, 0]
    explained = run("evidence", "explain", release["id"][:12], "--store", "e.db")
    assert explained.exit_code == 0
    assert "says that a pair is violated is at most 5%" in " ".join(explained.stdout.split())
    assert "m.py:other" not in explained.stdout and "3 sessions." in explained.stdout
    assert len(exported(run, "m.py:other")["subjects"]) == 1
    assert run("evidence", "export", "--store", "e.db", "--out", "x.json").exit_code == 0
    assert json.loads(Path("x.json").read_text()) == document


def test_stores_are_merged_and_the_same_one_not_twice(run):
    audited(run)
    audited(run, store="f.db", seed=2)
    merged = run("evidence", "merge", "f.db", "--store", "e.db")
    assert merged.exit_code == 0 and "1 session" in merged.stdout
    before = exported(run)
    again = run("evidence", "merge", "f.db", "--store", "e.db")
    assert again.exit_code == 2 and again.stderr.startswith("Error: stores must have no stream in common")
    assert exported(run) == before
    assert run("evidence", "merge", "e.db", "--store", "new.db").exit_code == 0
    assert exported(run, store="new.db")["subjects"] == before["subjects"] or len(before["subjects"]) == 1


def test_a_fingerprint_that_changed_is_forgotten_and_no_other(run):
    audited(run)
    audited(run, "m.py:other")
    change(CODE.replace("Release(1.0)", "Release(1.5)"))
    audited(run)
    forgotten = run("evidence", "forget", "--changed", "m.py:release", "--store", "e.db")
    assert forgotten.exit_code == 0 and forgotten.stdout.count("Forgotten") == 1
    left = [(subject["target"], len(subject["pairs"])) for subject in exported(run)["subjects"]]
    assert left == [("m.py:release", 0), ("m.py:other", 2), ("m.py:release", 2)]
    assert "no evidence" in run("evidence", "list", "--store", "e.db").stdout
    old = exported(run)["subjects"][0]
    assert old["lives"] == 2 and old["nights"][0]["forgotten"]
    assert "Evidence was forgotten 1 time" in run("evidence", "explain", old["id"], "--store", "e.db").stdout
    assert "Nothing to forget" in run("evidence", "forget", "--changed", "m.py:other", "--store", "e.db").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("list", "--store", "missing.db"), "store must be a file that is there, got 'missing.db'."),
        (("explain", "nobody", "--store", "e.db"), "subject must be one that the store has"),
        (("forget", "--store", "e.db"), "subject must be named, or a target by --changed, got neither."),
        (("merge", "m.py", "--store", "e.db"), "store must be an intact store of evidence"),
        (("export", "--store", "e.db", "--out", "m.py/x.json"), "output must be a writable place"),
    ],
    ids=["missing", "subject", "neither", "no store", "out"],
)
def test_each_mistake_is_one_message_and_exits_with_2(run, arguments, words):
    if arguments[0] != "list":
        Store.at("e.db").close()
    result = run("evidence", *arguments)
    assert result.exit_code == 2 and words in result.stderr and result.stderr.count("\n") == 1


def test_a_pair_without_draws_is_not_said_to_be_not_refuted(run):
    audited(run)
    document = exported(run)
    (subject,) = document["subjects"]
    for pair in subject["pairs"]:
        pair |= {"draws": 0, "violated": False}
    subject |= {"draws": 0, "violated": False}
    for shown in map(terminal.show, (list_blocks(document), explanation(subject))):
        console = Console(width=200, file=io.StringIO())
        console.print(shown)
        assert (
            re.search("no evidence|inconclusive", console.file.getvalue()) and "not ref" not in console.file.getvalue()
        )


def test_what_draws_that_depend_on_each_other_seem_to_say_is_withheld(run):
    change("def once(data, size, rng): return data + rng.laplace() + 0.1 * rng.laplace(size=size)")
    options = ("--claim", "eps=1", "--pairs", "0,1", "--samples", "4000", "--seed", "1")
    run("audit", "m.py:once", *options, "--store", "e.db")
    (subject,) = json.loads(run("evidence", "export", "--store", "e.db").stdout)["subjects"]
    jsonschema.validate({"schema": "dpaudit.evidence/1", "subjects": [subject]}, SCHEMA)
    (pair,) = subject["pairs"]
    assert "batches" in pair["change"] and not subject["violated"] and not pair["looks"]
    assert pair["parameter_lower"] == 0.0 and pair["log_wealth"] is None and pair["draws"] > 0
    assert "inconclusive" in run("evidence", "list", "--store", "e.db").stdout
    explained = run("evidence", "explain", "--store", "e.db").stdout
    assert "inconclusive" in explained and pair["change"] in " ".join(explained.split())
