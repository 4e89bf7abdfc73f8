"""A dossier as an in-toto statement of the predicate type test-result v0.1: unsigned, for a CI job to sign.

`result` is FAILED where a promise is broken or an audit broke, WARNED where a case is inconclusive, is a known failure,
or was found apart from the verdict, and else PASSED: the words are the predicate's own, and PASSED means "not refuted".
`configuration` names the saved results by their digests and carries the options of each run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from dpaudit.conformance.result import CheckResult
from dpaudit.reports.cases import Case, cases
from dpaudit.reports.dossier import Dossier, Result, Source, kind_of, subject_of, subjects_of
from dpaudit.reports.wording import clean
from dpaudit.results.model import AuditResult, to_json

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
PAIRS_NAMED = 10  # of which a statement has the names
SIGNED_ON = "dpauditSignedOn"  # when a statement was signed, a field beside those of the predicate
FAILED, WARNED = ("violated", "error"), ("inconclusive", "warning", "xfail")


def render(dossier: Dossier) -> str:
    """The statement, as JSON with a line end."""
    found = cases(dossier)
    status = {case.status for case in found}
    failed = not status.isdisjoint(FAILED) or dossier.verdict in FAILED
    warned = not status.isdisjoint(WARNED) or dossier.verdict in WARNED
    statement = {
        "_type": STATEMENT,
        "subject": _subjects(dossier),
        "predicateType": PREDICATE,
        "predicate": {
            "result": "FAILED" if failed else "WARNED" if warned else "PASSED",
            "configuration": [entry for source in dossier.sources for entry in _configuration(source)]
            + [
                {
                    "name": clean(one.name, 200),
                    "digest": {"dpauditKeyedSha256" if one.is_keyed else "sha256": one.digest},
                    "mediaType": "application/json",
                }
                for one in dossier.attachments
                if one.judged is not None
            ],
            "passedTests": _names(found, ("not_refuted",)),
            "warnedTests": _names(found, WARNED),
            "failedTests": _names(found, FAILED),
        },
    }
    return json.dumps(statement, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _names(found: tuple[Case, ...], statuses: tuple[str, ...]) -> list[str]:
    return [f"{case.subject_name}: {case.name}" for case in found if case.status in statuses]


def _subjects(dossier: Dossier) -> list[dict[str, Any]]:
    """What was tested, each once: its name, and dpaudit's fingerprint of it as a digest of its own kind."""
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    every = [subject for source in dossier.sources for subject in subjects_of(source.result)]
    for subject in [*every, *(one.subject for one in dossier.judged)]:
        name = clean(str(subject.get("target") or subject_of(subject)), 200)
        mark = clean(str(subject.get("fingerprint") or "unknown"), 128)
        seen.setdefault((name, mark), {"name": name, "digest": {"dpauditFingerprint": mark}})
    return list(seen.values())


def _configuration(source: Source) -> list[dict[str, Any]]:
    kind = "dpauditKeyedSha256" if source.is_keyed else "sha256"
    text = json.dumps(to_json(settings_of(source.result)), sort_keys=True, ensure_ascii=False, allow_nan=False)
    content = text.encode("utf-8", "backslashreplace")
    name = clean(source.name, 200)
    return [
        {"name": name, "digest": {kind: source.digest}, "mediaType": "application/json"},
        {
            "name": f"settings of {name}",
            "digest": {"sha256": hashlib.sha256(content).hexdigest()},
            "content": base64.b64encode(content).decode("ascii"),
            "mediaType": "application/json",
        },
    ]


def settings_of(result: Result) -> dict[str, Any]:
    """What a run was asked to do, and of what: mechanism and fingerprint, claim, pairs, confidence, seed, versions."""
    subjects = [
        {key: clean(str(one.get(key) or ""), 200) for key in ("name", "target", "fingerprint")}
        for one in subjects_of(result)
    ]
    asked = {"subjects": subjects, "claim": getattr(result, "claim", None), "pairs": _pairs(result)}
    common = {"kind": kind_of(result), "seed": result.seed, "environment": result.environment, **asked}
    if isinstance(result, AuditResult):
        return {**common, "confidence": result.confidence, "mode": result.mode, "options": result.options}
    if isinstance(result, CheckResult):
        return {**common, "error_rate": result.error_rate, "samples": result.samples}
    return {**common, "confidence": result.confidence, "bounds": list(result.bounds), "options": result.options}


def _pairs(result: Result) -> dict[str, Any] | None:
    """How many pairs were tested, the first names, and a digest of the names of all; None of what has no pairs."""
    if not isinstance(result, AuditResult):
        return None
    names = [finding.id for finding in result.findings]
    digest = hashlib.sha256(json.dumps(names).encode("utf-8", "backslashreplace")).hexdigest()
    count = len(names) if result.universe is None else len(result.universe)
    return {"count": count, "first": [clean(name, 80) for name in names[:PAIRS_NAMED]], "sha256": digest}
