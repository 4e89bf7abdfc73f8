"""Ledgers: what an entry must have, how a file is read, and how the ledgers of packages come together."""

import importlib.metadata

import pytest

from dpaudit.errors import UsageError
from dpaudit.ledgers import Entry, Ledger, entries, load_ledgers, read_ledger

SOUND = {
    "id": "AB-1",
    "kind": "law",
    "locator": "Sec. 1",
    "statement": "One is one.",
    "verdict": "verified",
    "how": ("exact",),
    "evidence": "Looked at.",
}
REFUTED = {
    **SOUND,
    "id": "AB-2",
    "verdict": "refuted as printed",
    "counterexample": {"n": 1},
    "corrected": "Two is two.",
    "severity": "slip",
    "printed": ("1=2",),
}
FILE = """
paper = "ab"
title = "A and B"
[[claim]]
id = "AB-1"
kind = "law"
locator = "Sec. 1"
statement = '''One
  is one.'''
verdict = "verified"
how = ["exact"]
evidence = "Looked at."
"""


def test_a_file_becomes_entries_with_texts_on_one_line(tmp_path):
    (tmp_path / "ab.toml").write_text(FILE)
    ledger = read_ledger(tmp_path / "ab.toml", ["AB-1"])
    assert ledger == Ledger("ab", "A and B", ("AB-1",), (Entry(**SOUND),))
    assert ledger.is_written and not Ledger("ab", "A and B", ("AB-1",)).is_written


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "true"}, r"verdict must be one of verified, verified in part, .*, not checkable, got 'true' in"),
        ({"severity": "slip"}, r"severity must be one of .*, of what is refuted, got 'slip' in the entry"),
        ({"how": ("looked",)}, r"how must name some of exact, property-based, statistical, reading, got \['looked'\]"),
        ({"how": ()}, r"how must name some of .*, got \[\]"),
        ({"statement": " "}, r"statement must be given, got an empty text in the entry 'AB-1'\."),
        ({"how": ("statistical",)}, r"error_rate must be given for this verdict and method, got ''"),
        ({"error_rate": "0.1"}, r"error_rate must be empty for this verdict and method, got '0\.1'"),
        ({"verdict": "verified in part"}, r"unchecked must be given for this verdict and method, got ''"),
        ({"unchecked": "A half."}, r"unchecked must be empty for this verdict and method, got 'A half\.'"),
        ({"locator": "Lemma 3"}, r"scope must set what is stated beside what was checked, got an empty text in the"),
        ({"verdict": "not checkable"}, r"reason must be given for this verdict and method, got ''"),
        ({"counterexample": {"n": 1}}, r"counterexample must be empty for this verdict and method, got \{'n': 1\}"),
        ({"verdict": "refuted as printed"}, r"counterexample must be given for this verdict and method, got \{\}"),
        (
            {"verdict": "refuted as printed", "counterexample": {"n": 1}},
            r"corrected must say what holds instead, got an empty text in the entry 'AB-1'\.",
        ),
    ],
)
def test_an_entry_that_says_too_little_or_too_much_is_refused(change, message):
    with pytest.raises(UsageError, match=message):
        Entry(**{**SOUND, **change})


@pytest.mark.parametrize(
    ("ids", "found", "message"),
    [
        (("AB-1", "AB-2"), ("AB-1",), r"entries must cover all ids of 'ab', got none for AB-2\."),
        (("AB-1",), ("AB-1", "AB-2"), r"entries must have ids of 'ab', got 'AB-2'\."),
        (("AB-1",), ("AB-1", "AB-1"), r"entries must have different ids, got 'AB-1' twice in 'ab'\."),
        (("AB-1", "AB-1"), (), r"ids must differ, got 'AB-1' twice in 'ab'\."),
    ],
)
def test_a_ledger_has_one_entry_an_id(ids, found, message):
    made = {"AB-1": Entry(**SOUND), "AB-2": Entry(**REFUTED)}
    with pytest.raises(UsageError, match=message):
        Ledger("ab", "A and B", ids, tuple(made[name] for name in found))


def stated(monkeypatch, *ledgers):
    """Let the ledgers be those of installed packages, one a package."""

    class EntryPoint:
        def __init__(self, number, ledger):
            self.name, self.value, self.load = f"package {number}", "package:ledgers", lambda: lambda: [ledger]

    points = [EntryPoint(*item) for item in enumerate(ledgers)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points if group == entries.GROUP else [])


def test_ledgers_that_are_missing_or_meet_are_refused(monkeypatch):
    stated(monkeypatch)
    with pytest.raises(UsageError, match=r"ledgers must be given through the entry-point group 'dpaudit\.ledger', got"):
        load_ledgers()
    stated(monkeypatch, Ledger("ab", "A and B", ("AB-1",)), Ledger("ab", "A and B", ("AB-2",)))
    with pytest.raises(UsageError, match=r"papers of ledgers must differ, got 'ab' twice\."):
        load_ledgers()
    stated(monkeypatch, Ledger("ab", "A and B", ("AB-1",)), Ledger("cd", "C and D", ("AB-1",)))
    with pytest.raises(UsageError, match=r"ids of ledgers must differ, got 'AB-1' twice\."):
        load_ledgers()
