"""A dossier as SARIF 2.1.0, for code scanning: one result for each check that found something.

Pairs of one claim make one result, which names the worst and counts the others: its fingerprint is over the subject,
the claim and the check, never over the pair or the witness that a run happened to find, so that an alert stays the
same alert from night to night. Every result is anchored to a file and a line (`dpaudit.reports.anchors`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dpaudit.environment import __version__
from dpaudit.reports.anchors import anchor_of
from dpaudit.reports.cases import Case, cases, grouped
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.items import status_word
from dpaudit.reports.words import filled, form, json_text


def render(dossier: Dossier) -> str:
    """The log, as JSON with a line end."""
    rules = form("sarif.rules")  # of the statuses that are a result: others are counted in the run's properties
    groups = grouped(dossier, rules, lambda case: str(case.subject.get("target") or case.subject_name))
    log = filled(
        "sarif.log",
        version=__version__,
        rules=[filled("sarif.rule", **rule) for rule in rules.values()],
        results=[_result(*group) for group in groups],
        verdict=dossier.verdict,
        cases=dict(Counter(case.status for case in cases(dossier))),
    )
    return json_text(log)


def fingerprint(subject: str, claim: str, check: str) -> str:
    """The same for the same check of the same claim of the same subject: SHA-256, in hexadecimal."""
    text = json.dumps([subject, claim, check], ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _result(key: tuple[str, ...], group: Sequence[Case], more: str) -> dict[str, Any]:
    subject, claim, check, status = key
    worst, rules = group[0], form("sarif.rules")
    promise = f" ({claim})" if claim else ""
    word = "Found beside the claim" if status == "warning" else status_word(status).capitalize()
    message = f"{word}: {worst.subject_name}{promise}: {worst.name}: {worst.message}{more}"
    found: dict[str, Any] = filled(
        "sarif.result",
        **rules[status],
        **dataclasses.asdict(anchor_of(worst.subject)),
        index=list(rules).index(status),
        message=message.replace("](", "] ("),  # viewers of SARIF show `[words](target)` as a link even in plain text
        fingerprint=fingerprint(subject, claim, check),
    )
    return found
