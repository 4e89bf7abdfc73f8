"""The table of reports/certificates: our own discrete mechanisms have the losses that they state, as fractions."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dpaudit

sys.path.insert(0, str(Path(__file__).parents[2] / "mechanisms" / "scripts"))
import certificates_report as report

TOLERANCE = 1e-12  # of losses that the mechanisms compute in doubles: some operations of 2**-53 each, relative to 10


Rule = Callable[[int], int]


def flipped(bit, rng):
    return bit if Rule is not None and rng.random() < 0.75 else 1 - bit


def test_an_alias_of_callables_is_no_state_that_is_not_seen():
    assert dpaudit.certify(flipped, "eps=1.1", pairs=[(0, 1)]).verdict == "kept"  # its loss is log 3


def test_our_own_mechanisms_are_proved_after_whatever_ran_before():
    """Each is among the slow ones below; `typing` holds types of the tests that ran before this one."""
    row = report.rows()[0]
    assert dpaudit.certify(row.mechanism, pairs=[tuple(row.inputs[:2])]).verdict == "kept"


@pytest.mark.slow
@pytest.mark.parametrize("row", report.rows(), ids=lambda row: row.name)
def test_a_sound_mechanism_is_proved_on_all_pairs_with_the_loss_it_states(row):
    result = report.certified(row)
    assert result.verdict == "kept"
    assert result.mass_left == 0.0
    inputs = {str(x): x for x in row.inputs}
    for pair in result.pairs:
        stated = row.mechanism.privacy_loss(inputs[pair.x_id], inputs[pair.x_prime_id])
        assert pair.epsilon_lower - TOLERANCE <= stated <= pair.epsilon_upper + TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("row", report.faulty_rows(), ids=lambda row: row.name)
def test_a_faulty_mechanism_is_disproved_with_the_loss_it_states(row):
    result = report.certified(row)
    assert result.verdict == "violated"
    worst, inputs = result.worst, {str(x): x for x in row.inputs}
    stated = row.mechanism.privacy_loss(inputs[worst.x_id], inputs[worst.x_prime_id])
    assert math.isclose(worst.epsilon_lower, stated, rel_tol=0.0, abs_tol=TOLERANCE)
