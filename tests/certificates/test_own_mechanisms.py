"""The table of reports/certificates: our own discrete mechanisms have the losses that they state, as fractions."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

import dpaudit

sys.path.insert(0, str(Path(__file__).parents[2] / "mechanisms" / "scripts"))
import certificates_report as report

TOLERANCE = 1e-12  # of losses that the mechanisms compute in doubles: some operations of 2**-53 each, relative to 10


def test_what_a_remembered_function_is_annotated_with_is_seen():
    """The fields of our mechanisms are read by one that returns `list[tuple[str, Callable[..., Any]]]`."""
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
