"""What a failed check says of a bound does not contradict itself where the bound is just above its limit."""

from __future__ import annotations

import pytest

from dpaudit.conformance import promises
from dpaudit.conformance.outcomes import CheckFailed
from dpaudit.privacy.claims import Budget
from dpaudit.results.model import AuditResult, Finding, FloatingPointPair


def result_of(finding):
    return AuditResult("eps=1", 0.95, "fixed", 1, True, (finding,), (), 0.0, 100, 0.1, {}, {})


def finding(parameter="epsilon", lower=1.00004, budget=1.0):
    return Finding("a|b", "a", "b", 0, 1, Budget(1.0, 0.0), parameter, budget, "violated",
                   1.00004, lower, lower / budget, samples=100)  # fmt: skip


def test_a_bound_just_above_its_limit_is_not_rounded_to_it():
    with pytest.raises(CheckFailed, match=r"got epsilon of at least 1\.00004 where 1 is allowed \(100 runs\)"):
        promises._judge_audit(result_of(finding()), "the claim")


def test_a_claim_with_a_parameter_of_its_own_is_compared_in_it():
    with pytest.raises(CheckFailed, match=r"got rho of at least 0\.7 where 0\.5 is allowed"):
        promises._judge_audit(result_of(finding("rho", 0.7, 0.5)), "the claim")


def test_low_bits_are_said_in_the_same_way():
    pair = FloatingPointPair("a|b", "a", "b", Budget(1.0, 0.0), "leaks", 1.00004, 1e-9, 1e-3, 10, 0, 0, 0.1, "")
    assert promises._excess(pair) == "epsilon of at least 1.00004 where 1 is allowed"
