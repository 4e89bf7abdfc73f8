"""A bound on the scale of a profile that no scale covers is no ratio of losses, in words or in numbers."""

from __future__ import annotations

import math

import dpaudit
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.rows import line_of
from dpaudit.reports.severity import severity_of
from dpaudit.reports.words import said


def flips(data, size, rng):
    """A bit whose laws differ by 0.4 in total variation, where 0.1 is allowed; the loss itself is ln(7 / 3)."""
    return (rng.random(size) < 0.3 + 0.4 * data).astype(int)


def test_what_no_larger_epsilon_covers_has_no_ratio():
    claim = dpaudit.FDP([(0.0, 0.9), (0.9, 0.0), (1.0, 0.0)])
    # False alarm 5%, fixed seed; the claim is broken, and found by nearly all audits of this size.
    result = dpaudit.audit(flips, claim, [(0, 1)], samples=8_000, mode="fixed", seed=1, severity=False)
    assert result.verdict == "violated"
    graded = severity_of(result)
    assert (graded.grade, graded.ratio, graded.reason) == ("clear", math.inf, said("severity.unscaled"))
    assert line_of(Dossier.of(result).sources[0]).severity.words in ("clear", "at least clear")
