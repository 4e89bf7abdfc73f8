"""The measurement of what a second process is worth."""

from __future__ import annotations

import dataclasses

import pytest

from dpaudit.bench import scaling
from dpaudit.bench.design import QUICK
from dpaudit.errors import DpauditError


def test_the_record_compares_pairs_of_audits_and_says_whether_the_target_is_met(monkeypatch):
    monkeypatch.setattr(scaling, "SAMPLES", 1_000)
    monkeypatch.setattr(scaling, "calibrated", lambda: scaling.Busy(1))
    record = scaling.jobs(dataclasses.replace(QUICK, overhead_repeats=1))
    for mode in scaling.TIMED_MODES:
        ((alone, together),) = record[mode]["seconds"]
        assert record[mode]["speed_up"] == alone / together > 0.0
    assert record["met"] == (min(record[mode]["speed_up"] for mode in scaling.TIMED_MODES) >= scaling.SPEED_UP)
    assert "at 10 microseconds a draw" in record["says"] and record["machine"]["speed_up"] > 0.0


def test_results_that_differ_are_an_error(monkeypatch):
    monkeypatch.setattr(scaling, "SAMPLES", 200)
    steps = iter([1, 2])
    audit = scaling.dpaudit.audit
    monkeypatch.setattr(
        scaling.dpaudit, "audit", lambda subject, *a, **k: audit(scaling.Busy(next(steps)), *a, **k), raising=False
    )
    with pytest.raises(DpauditError, match="must give the result of one"):
        scaling._pair(scaling.Busy(1), "fixed", 3)


def test_the_subject_is_slowed_down_to_about_what_is_asked_for():
    # Steps grow with the time: 100 times as long a draw is at least 5 times as many steps, on the busiest machine.
    assert scaling.calibrated(100.0).steps > 5 * scaling.calibrated(1.0).steps
