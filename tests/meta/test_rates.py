"""False alarms and coverage of small audits of mechanisms exactly on their budget: `rates.py` measures them."""

from __future__ import annotations

import pytest
import rates

# A true rate of at most 5% gives a count with a p-value below LEVEL with probability at most LEVEL. 17 sets, two counts
# each, and as many of fewer audits: the false-positive rate of this file is below 68 * 1e-9 = 7e-8. What it can see: at
# 2,000 audits, counts of 164 or more fail, so a true rate of 10% is missed with probability 3e-3, one of 12% with 1e-7
# (binomial sums). The fewer audits of the shorter run (15 of 40 fail, a rate of 38%) see only what is grossly wrong.
LEVEL = 1e-9
SHORTER = 40


@pytest.mark.parametrize("case", list(rates.sets()), ids=lambda case: case.name)
@pytest.mark.parametrize(
    "audits", [pytest.param(SHORTER, marks=pytest.mark.slow), pytest.param(rates.AUDITS, marks=pytest.mark.long)]
)
def test_mechanisms_on_their_budget_are_called_violated_no_more_often_than_promised(
    case: rates.OnBudget, audits: int
) -> None:
    row = rates.measure(case, audits)
    assert rates.p_value(row["false_alarms"], row["audits"]) >= LEVEL, row
    assert rates.p_value(row["bounds_above_truth"], row["audits"]) >= LEVEL, row


def test_the_measurement_itself_fails_an_auditor_that_alarms_twice_as_often_as_promised() -> None:
    # Negative control: 200 alarms in 2,000 audits are what a rate of 10% gives on average.
    assert rates.p_value(200, rates.AUDITS) < LEVEL


def test_an_audit_with_too_little_noise_counts_as_an_alarm_and_as_a_bound_above_the_truth() -> None:
    # Negative control on the path from audit to counts: the same set with a true loss of 3 against the claim of 1.
    case = next(rates.sets())
    leaky = rates.dataclasses.replace(case, mechanism=rates.Laplace(3.0))
    outcomes = [rates.one_audit(leaky, number) for number in range(5)]
    # At a true loss of 3 the median audit of this size needs fewer than 60 draws a side of the 300: each of the five
    # fixed seeds finds it (measured; a seed that does not would be a loss of power of the engine).
    assert outcomes == [(True, True)] * 5
