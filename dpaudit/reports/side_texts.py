"""Side findings in reports: what was looked at beside the claim, each with an error rate of its own.

A kind that is not known here is shown under its own name, so that a new one needs no change of any format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from dpaudit.reports import wording
from dpaudit.reports.wording import clean
from dpaudit.reports.words import words
from dpaudit.results.side_findings import SideFinding

TITLES: Mapping[str, str] = words("sides.titles")
FOUND: Mapping[str, str] = words("sides.found")
COLUMNS = ("looked at", "status", "what was seen", "error rate", "details")
APART: str = words("sides.apart")
DETAILS = 600  # characters of the details of one finding


def title(finding: SideFinding) -> str:
    """The name of what was looked at."""
    known = TITLES.get(finding.kind)
    return known if known is not None else clean(finding.kind.replace("_", " "), 40)


def status_text(finding: SideFinding) -> str:
    """Say what came of it, in words that stand behind its name."""
    known = FOUND if finding.status == "found" else {}
    return known.get(finding.kind, wording.status_word(finding.status))


def rate_text(finding: SideFinding) -> str:
    """The error rate, or that chance has no part in it."""
    return "no statistics" if finding.error_rate is None else wording.rate_text(finding.error_rate)


def line(finding: SideFinding) -> str:
    """One line on what was looked at, and what came of it."""
    return f"{title(finding)}: {status_text(finding)}. {clean(finding.summary, 300)}"


def row(finding: SideFinding) -> list[str]:
    """A row of `COLUMNS`."""
    details = clean(json.dumps(finding.details, ensure_ascii=False, default=str), DETAILS) if finding.details else ""
    return [title(finding), status_text(finding), clean(finding.summary, 600), rate_text(finding), details]
