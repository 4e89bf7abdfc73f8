"""Side findings in reports: what was looked at beside the claim, each with an error rate of its own.

A kind that is not known here is shown under its own name, so that a new one needs no change of any format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from dpaudit.reports.wording import clean, percent_text
from dpaudit.results.side_findings import SideFinding, SideStatus

TITLES: Mapping[str, str] = {
    "timing": "Running time",
    "containment": "What calls do beside their output",
    "independence": "Noise shared between calls",
    "call_order": "Draws that depend on each other",
    "claim_metadata": "The library's own promise",
    "pair_search": "Search for worse pairs of inputs",
    "shrunk_pair": "The broken pair made small",
    "same_randomness": "The same randomness on both inputs",
    "recorded_noise": "Recorded noise",
    "memory": "The limit of memory",
    "time_limit": "The limit of time",
    "working_directory": "The working directory",
}
WORDS: Mapping[SideStatus, str] = {
    "found": "found",
    "nothing_found": "nothing found",
    "not_applicable": "not applicable",
}
FOUND: Mapping[str, str] = {"pair_search": "a violated pair found", "shrunk_pair": "a smaller pair found"}
COLUMNS = ("looked at", "status", "what was seen", "error rate", "details")
APART = "None of this is a part of the verdict or of its bounds; each line has an error rate of its own."
DETAILS = 600  # characters of the details of one finding


def title(finding: SideFinding) -> str:
    """The name of what was looked at."""
    known = TITLES.get(finding.kind)
    return known if known is not None else clean(finding.kind.replace("_", " "), 40)


def status_text(finding: SideFinding) -> str:
    """Say what came of it, in words that stand behind its name."""
    return FOUND.get(finding.kind, WORDS["found"]) if finding.status == "found" else WORDS[finding.status]


def rate_text(finding: SideFinding) -> str:
    """The error rate, or that chance has no part in it."""
    return "no statistics" if finding.error_rate is None else percent_text(finding.error_rate)


def details_text(finding: SideFinding) -> str:
    """The details as one line of JSON, cut where it is long."""
    return clean(json.dumps(finding.details, ensure_ascii=False, default=str), DETAILS) if finding.details else ""


def line(finding: SideFinding) -> str:
    """One line on what was looked at, and what came of it."""
    return f"{title(finding)}: {status_text(finding)}. {clean(finding.summary, 300)}"


def row(finding: SideFinding) -> list[str]:
    """A row of `COLUMNS`."""
    summary = clean(finding.summary, 600)
    return [title(finding), status_text(finding), summary, rate_text(finding), details_text(finding)]
