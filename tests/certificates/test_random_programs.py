"""No certificate is wrong on random small programs: against laws that are computed without tracing, and all events.

`python tests/certificates/certificate_measurements.py` checks 10,000 others.
"""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction

import pytest
from brute_force import cases, wrong
from random_programs import kinds

BATCH = 50


def faults(first_seed: int, count: int) -> list[str]:
    listed = list(itertools.islice(cases(first_seed), count))
    return [text for k in range(0, count, BATCH) for text in wrong(listed[k : k + BATCH])]


def test_random_programs_have_their_exact_losses():
    assert faults(1_000_000, 200) == []


@pytest.mark.long
def test_more_random_programs_have_their_exact_losses():
    assert faults(2_000_000, 2_000) == []


def test_the_programs_use_every_kind_of_draw_and_loop():
    used = set().union(*(kinds(case.program) for case in itertools.islice(cases(1_000_000), 200)))
    draws = {"coin", "bits", "integers", "choice", "shuffle", "floor", "table", "band", "binomial", "hyper", "pick"}
    assert used >= draws | {"clipped", "sides", "race", "if", "repeat", "walk", "until", "raise", "emit", "add"}


def test_a_wrong_fraction_or_verdict_would_be_told():
    listed = (case for case in cases(1_000_000) if case.delta == 0.0 and case.expected)
    case = next(case for case in listed if case.verdict == "violated")
    assert wrong([case]) == []
    near = dataclasses.replace(case, expected=case.expected + Fraction(1, 10**30))
    assert [text.count("exact") for text in wrong([near])] == [1]
    private = dataclasses.replace(case, expected=Fraction(1))
    (text,) = wrong([private])
    assert "right is kept" in text and "outside of the interval" in text
