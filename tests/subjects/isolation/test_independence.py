"""Noise that is kept between calls is found, as a finding of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.audits import side_channels
from dpaudit.audits.side_channels import STAGE_RATE, independence_finding, independence_tests
from dpaudit.features.outcomes import read_outputs
from dpaudit.privacy.pairs import Pair
from dpaudit.results.model import SideFinding
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.isolation import Isolation, isolated


@pytest.fixture(autouse=True)
def any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, these calls are looked at."""
    monkeypatch.setattr(side_channels, "INDEPENDENCE_SECONDS", 600.0)


KEPT: dict[str, float] = {}


def fresh(data: Any, rng: np.random.Generator) -> float:
    return float(data + rng.laplace())


def kept(data: Any, rng: np.random.Generator) -> float:
    return float(data + KEPT.setdefault("noise", rng.laplace()))


def batch(data: Any, size: int, rng: np.random.Generator) -> Any:
    return data + KEPT.setdefault("noise", rng.laplace()) + 0.1 * rng.laplace(size=size)


def finding(function: Any) -> SideFinding:
    with isolated(as_subject(function), Isolation(seconds_a_call=5.0)) as subject:
        return independence_finding(subject, Pair(0.0, 1.0, "0|1"), 3)


@pytest.mark.parametrize("function", [kept, batch])
def test_noise_that_is_kept_is_found(function: Any) -> None:
    found = finding(function)
    assert found.status == "found" and found.error_rate == STAGE_RATE
    assert found.details["p_value"] < 1e-6
    assert not KEPT  # the auditor's own process has made no call


def test_fresh_noise_is_not_found() -> None:
    assert finding(fresh).status == "nothing_found"  # 1e-3 at most, at this seed


def test_outputs_that_do_not_vary_show_nothing() -> None:
    assert finding(lambda data, rng: 1.0).status == "not_applicable"


def test_independent_calls_alarm_no_more_often_than_is_promised() -> None:
    # 400 lists at level 0.05: at most 20 alarms are expected, more than 39 have probability below 5e-5.
    alarms, rng = 0, np.random.default_rng(17)
    for _ in range(400):
        calls = [read_outputs(np.round(rng.laplace(size=96), 1), 96) for _ in range(3)]
        tests = independence_tests(calls, 32)
        alarms += min(tests)[0] * len(tests) <= 0.05
    assert alarms <= 39
