"""The violations and the harness of arXiv:2602.17454: each is proved, with its line; no mended twin is accused."""

import inspect

import pytest
import recorded_libraries
from recorded_libraries import HARNESS, VIOLATIONS

import dpaudit

LINES = inspect.getsource(recorded_libraries).splitlines()


def lines_of(mark):
    return {f"recorded_libraries.py:{k}" for k, line in enumerate(LINES, 1) if line.rstrip().endswith(mark)}


def test_there_are_as_many_as_were_published():
    assert len(VIOLATIONS) == 13 and len(HARNESS) == 24


@pytest.mark.parametrize("case", [*VIOLATIONS, *HARNESS], ids=lambda case: case.name)
def test_a_published_violation_is_proved_with_the_line_that_is_to_blame(case):
    result = dpaudit.record_noise(case.version(True), [case.pair], case.claim, seed=5)
    assert result.grade == "proved", result.side_finding().summary
    assert lines_of(case.blame) & set(result.pairs[0].places), result.pairs[0].statement
    assert result.side_finding().status == "found"


@pytest.mark.parametrize("case", [*VIOLATIONS, *HARNESS], ids=lambda case: case.name)
def test_no_mended_version_is_accused(case):
    result = dpaudit.record_noise(case.version(False), [case.pair], case.claim, seed=5)
    assert result.grade in ("same", "hint", "implied") and result.side_finding().status == "nothing_found"
    assert result.grade != "implied", result.pairs[0].statement
