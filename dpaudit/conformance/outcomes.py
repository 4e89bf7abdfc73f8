"""Outcomes of a check that does not simply end: a failure, a reason to skip, or too little power."""

from __future__ import annotations

import unittest


class CheckFailed(AssertionError):
    """The mechanism fails the check; the message says what was demanded and what was seen."""


class CheckSkipped(unittest.SkipTest):
    """The check does not apply, with the reason (pytest reports it as skipped)."""


class CheckInconclusive(Exception):
    """The check found nothing, and could not have found much."""
