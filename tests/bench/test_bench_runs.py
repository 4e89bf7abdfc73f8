"""Runs behind a decision: what the measurement counts, and that it fails where they are too many."""

from dpaudit.bench import runs as measurement
from dpaudit.bench.design import Design
from dpaudit.inference import order


def test_runs_behind_a_decision_are_counted_and_too_many_are_not_met(monkeypatch):
    monkeypatch.setattr(measurement, "CALLS_SAMPLES", 4_000)
    record = measurement.runs(Design(seeds=3))
    assert record["met"] and record["calls"]["leaking"] == record["calls"]["audits"] == 3
    assert record["calls"]["runs"] < 2_300  # 1,000 of each input, but that labels are coins
    assert all(of["decided"] > 40 for of in record["subjects"].values())
    monkeypatch.setattr(order, "SHARE_OF_DRAWN", 1_000.0)
    record = measurement.runs(Design(seeds=3))
    assert not record["met"] and record["subjects"]["0.2"]["behind"] > 512
