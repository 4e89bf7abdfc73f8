"""The search for counterexamples: its log, and that it finds one where a statement is false."""

import json
from pathlib import Path

import numpy as np

from dpaudit_mechanisms import counterexamples
from dpaudit_mechanisms.ledger import entry

LOG = Path(__file__).parents[2] / "reports" / "counterexamples.json"


def test_the_log_has_every_target_once_and_no_counterexample():
    logged = json.loads(LOG.read_text(encoding="utf-8"))["claims"]
    assert [record["claim"] for record in logged] == list(counterexamples.TARGETS)
    for record in logged:
        assert record["tried"] >= 1 and record["closest"] <= 1.0 + counterexamples.ROUNDING
        assert not record["is_counterexample"]
        assert entry(record["claim"]).verdict.startswith("verified") and entry(record["claim"]).is_general


def test_the_logged_closest_calls_are_found_again_from_their_numbers():
    for record in json.loads(LOG.read_text(encoding="utf-8"))["claims"]:
        quotient = counterexamples.TARGETS[record["claim"]][2]
        found = quotient(np.array(record["numbers"]))
        assert found <= 1.0 + counterexamples.ROUNDING
        assert abs(found - record["closest"]) <= 1e-3 * (1.0 + record["closest"])


def test_a_false_statement_is_refuted(monkeypatch):
    """The control: half of the bound."""
    _, draw, quotient = counterexamples.TARGETS["CD-T3.9.2"]
    false = {"CD-T3.9.2": ("half of the bound", draw, lambda v: 2.0 * quotient(v))}
    monkeypatch.setattr(counterexamples, "TARGETS", false)
    record = counterexamples.search("CD-T3.9.2", 0.5, np.random.default_rng(1))
    assert record["is_counterexample"] and record["closest"] > 1.5
