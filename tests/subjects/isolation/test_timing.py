"""Time as a side channel: a finding of its own, with an error rate of its own."""

from __future__ import annotations

import time
import types
from typing import Any

import numpy as np
import pytest
from hostile_subjects import clock, time_passes

import dpaudit
from dpaudit.audits.side_channels import STAGE_RATE, timing_finding, timing_test
from dpaudit.results.model import SideFinding
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.isolation import IsolatedSubject, Isolation, isolated, worker


def slower_on_1(data: Any, rng: np.random.Generator) -> float:
    is_long = rng.random() < 0.5  # drawn on either input, so that the sleep is all that differs
    if data == 1.0 and is_long:
        time_passes(0.02)
    return float(data + rng.laplace())


def steady(data: Any, rng: np.random.Generator) -> float:
    return float(data + rng.laplace())


def timed(subject: Any, calls: int, seed: int) -> SideFinding:
    result = dpaudit.audit(
        subject, "eps=1", [(0.0, 1.0)], samples=50, seed=seed, floating_point=False,
        isolation=Isolation(seconds_a_call=5.0, timing=calls),
    )  # fmt: skip
    assert result.verdict != "violated"  # time is no part of the verdict; 5% at most, at this seed
    return next(finding for finding in result.side_findings if finding.kind == "timing")


def test_a_subject_that_is_slower_on_one_input_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of 210 calls a quarter take a time that those on 0 never take: a miss needs that fewer than 10 do (probability
    # below 1e-15, binomial tail). The clock is moved by the subject alone, so that no load makes the others late.
    monkeypatch.setattr(worker, "time", types.SimpleNamespace(monotonic=clock))
    found = timed(slower_on_1, 300, 3)
    assert found.status == "found"
    assert found.error_rate == STAGE_RATE
    assert found.details["pairs"][0]["epsilon_lower"] > 0.0
    assert found.details["conditions"]["processors"]


def test_a_threshold_lies_in_the_gap_between_times() -> None:
    # A quarter of the calls takes 20 ms, the others microseconds, and after the pilot five times as many of these. A
    # threshold at a time of the pilot has most of them above it: that missed 12 of these 20 where quantiles alone were
    # looked at. In the gap a miss needs fewer than 10 of some 52 long calls, below 1e-15.
    missed = 0
    for seed in range(20):
        rng = np.random.default_rng([12, seed])
        labels, drift = rng.random(300) < 0.5, np.repeat([1.0, 5.0], [90, 210])
        seconds = np.where(labels & (rng.random(300) < 0.5), 0.02, 2e-6 * drift * (1.0 + rng.exponential(size=300)))
        missed += timing_test(labels, seconds, 1e-3)["p_value"] > 1e-3
    assert missed <= 4  # each with probability 0.043 (400 runs) where another threshold wins the pilot: 0.1% for five


def test_a_subject_of_the_same_time_is_not_found() -> None:
    assert timed(steady, 300, 3).status == "nothing_found"  # 1e-3 at most, at this seed


def test_where_a_timed_request_begins_does_not_depend_on_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[list[int]] = []
    make = IsolatedSubject.in_random_order

    def noted(self: IsolatedSubject, parts: Any) -> Any:
        requests.append([])
        return make(self, parts)

    def block(self: IsolatedSubject, keys: list[int], of: Any = IsolatedSubject._block) -> int:
        requests[-1].append(of(self, keys))
        return requests[-1][-1]

    monkeypatch.setattr(IsolatedSubject, "in_random_order", noted)
    monkeypatch.setattr(IsolatedSubject, "_block", block)
    with isolated(as_subject(steady), Isolation(seconds_a_call=5.0)) as subject:  # no call was made before
        timing_finding(subject, [dpaudit.Pair(0.0, 1.0, "0|1"), dpaudit.Pair(2.0, 3.0, "2|3")], 100, 1)
    assert requests[1::2] == [[100], [100]]  # behind the calls that look at each input


@pytest.mark.parametrize(("shift", "found"), [(0.0, False), (1.0, True)])
def test_the_rule_is_counted_on_calls_that_it_was_not_fixed_on(shift: float, found: bool) -> None:
    rng = np.random.default_rng(11)
    labels = rng.random(2_000) < 0.5
    load = np.exp(np.linspace(0.0, 3.0, 2_000))  # which the labels do not know
    record = timing_test(labels, load * (1.0 + rng.exponential(size=2_000) + shift * labels), 1e-3)
    assert (record["p_value"] < 1e-3) == found  # alarm: 1e-3, at this seed
    assert record["guesses"] <= 1_400
    assert not found or "median" in record["rule"]


@pytest.mark.long
def test_equal_subjects_alarm_no_more_often_than_is_promised() -> None:
    # 1,500 tests at level 0.05 on labels that are fair coins: at most 75 alarms are expected, and more than 107 have
    # probability below 1e-4 (binomial tail).
    level, alarms = 0.05, 0
    subject = isolated(as_subject(steady), Isolation(seconds_a_call=5.0))
    with subject:
        for seed in range(1_500):
            rng = np.random.default_rng(seed)
            ones = int(rng.binomial(120, 0.5))
            streams = [np.random.default_rng([seed, k]) for k in (0, 1)]
            order, _, seconds = subject.in_random_order([(0.0, ones, streams[0]), (1.0, 120 - ones, streams[1])])
            alarms += timing_test(order == 0, seconds, level)["p_value"] <= level
    print(f"timing alarms: {alarms} of 1,500 at level {level}")
    assert alarms <= 107


def test_a_subject_that_breaks_while_it_is_timed_is_not_applicable() -> None:
    def fails_later(data: Any, rng: np.random.Generator) -> float:
        time.sleep(1.0)
        return 0.0

    limits = Isolation(seconds_a_call=0.05, patience=0.2)
    with isolated(as_subject(fails_later), limits) as subject:
        pair = dpaudit.Pair(0.0, 1.0, "0|1")
        found = timing_finding(subject, [pair], 100, 1)
    assert found.status == "not_applicable"
    assert "patience" in found.summary
