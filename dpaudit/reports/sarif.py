"""A dossier as SARIF 2.1.0, for code scanning: one result for each check that found something.

Pairs of one claim make one result, which names the worst and counts the others: its fingerprint is over the subject,
the claim and the check, never over the pair or the witness that a run happened to find, so that an alert stays the
same alert from night to night. Every result is anchored to a file and a line (`dpaudit.reports.anchors`).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from dpaudit.environment import __version__
from dpaudit.reports.anchors import anchor_of
from dpaudit.reports.cases import Case, cases
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.items import status_word
from dpaudit.reports.wording import plural

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HELP = (
    "dpaudit runs the mechanism and tries to break its promise; see the report for the evidence and how to replay it."
)
# Rule, level and sentence of each status that is a result. Others are counted in the run's properties.
RULES: dict[str, tuple[str, str, str]] = {
    "violated": ("dpaudit/violated", "error", "A promise of the mechanism is broken."),
    "error": ("dpaudit/error", "error", "The mechanism or the audit broke."),
    "warning": ("dpaudit/beside-the-claim", "warning", "Something was found beside the claim."),
    "inconclusive": ("dpaudit/inconclusive", "note", "Too little evidence to judge a promise."),
}


def render(dossier: Dossier) -> str:
    """The log, as JSON with a line end."""
    found: dict[tuple[str, str, str, str], list[Case]] = {}
    everything = cases(dossier)
    for case in everything:
        if case.status in RULES:
            subject = str(case.subject.get("target") or case.subject_name)
            found.setdefault((subject, case.claim, case.check, case.status), []).append(case)
    total: dict[str, int] = {}
    for case in everything:
        total[case.status] = total.get(case.status, 0) + 1
    rules = list(RULES)
    driver = {
        "name": "dpaudit",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(status) for status in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "automationDetails": {"id": "dpaudit/"},
        "results": [_result(key, group, rules.index(key[3])) for key, group in found.items()],
        "properties": {"verdict": dossier.verdict, "cases": total},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def fingerprint(subject: str, claim: str, check: str) -> str:
    """The same for the same check of the same claim of the same subject: SHA-256, in hexadecimal."""
    text = json.dumps([subject, claim, check], ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _rule(status: str) -> dict[str, Any]:
    name, level, sentence = RULES[status]
    return {
        "id": name,
        "shortDescription": {"text": sentence},
        "fullDescription": {"text": sentence},
        "help": {"text": HELP},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["privacy"]},
    }


def _unlinked(text: str) -> str:
    """The text without `[words](target)`, which viewers of SARIF show as a link even in plain text."""
    return text.replace("](", "] (")


def _result(key: tuple[str, str, str, str], group: list[Case], rule: int) -> dict[str, Any]:
    subject, claim, check, status = key
    worst = group[0]  # cases of an audit come the worst first
    more = f" And {plural(len(group) - 1, 'more case')} of this check." if len(group) > 1 else ""
    promise = f" ({claim})" if claim else ""
    word = "Found beside the claim" if status == "warning" else status_word(status).capitalize()
    place = anchor_of(worst.subject)
    region = {"startLine": place.line}
    location = {"physicalLocation": {"artifactLocation": {"uri": place.uri}, "region": region}}
    return {
        "ruleId": RULES[status][0],
        "ruleIndex": rule,
        "level": RULES[status][1],
        "message": {"text": _unlinked(f"{word}: {worst.subject_name}{promise}: {worst.name}: {worst.message}{more}")},
        "locations": [location],
        "partialFingerprints": {"dpauditCheck/v1": fingerprint(subject, claim, check)},
    }
