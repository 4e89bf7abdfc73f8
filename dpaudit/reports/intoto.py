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

from dpaudit.reports.cases import cases
from dpaudit.reports.dossier import Dossier, Judged, Result, Source, kind_of, subject_of, subjects_of
from dpaudit.reports.wording import clean
from dpaudit.reports.words import filled, form
from dpaudit.results.model import AuditResult, to_json
from dpaudit.results.saving import json_text

STATEMENT, PREDICATE = (form("intoto.statement")[name] for name in ("_type", "predicateType"))
PAIRS_NAMED = 10  # of which a statement has the names
SIGNED_ON = "dpauditSignedOn"  # when a statement was signed, a field beside those of the predicate
SETTINGS = {  # of a kind of result, beside those that all have
    "audit": ("confidence", "mode", "replayable", "options"), "check": ("error_rate", "samples"),
    "utility": ("confidence", "bounds", "options"),
}  # fmt: skip
# Statuses of cases by what the predicate calls them, the gravest first.
RESULTS = {"failed": ("violated", "error"), "warned": ("inconclusive", "warning", "xfail"), "passed": ("not_refuted",)}


def render(dossier: Dossier) -> str:
    """The statement, as JSON with a line end."""
    named: dict[str, list[str]] = {word: [] for word in RESULTS}
    for case in cases(dossier):
        for word in (word for word, statuses in RESULTS.items() if case.status in statuses):
            named[word].append(f"{case.subject_name}: {case.name}")
    result = next((word for word, of in RESULTS.items() if named[word] or dossier.verdict in of), "passed")
    files = [entry for source in dossier.sources for entry in (_file(source), _settings(source))]
    files += map(_file, dossier.judged)
    facts = {"result": result.upper(), "configuration": files, "subjects": _subjects(dossier)}
    return json_text(filled("intoto.statement", **facts, **named))


def _subjects(dossier: Dossier) -> list[dict[str, Any]]:
    """Subjects that were tested, each once: name, and dpaudit's fingerprint as a digest of its own kind."""
    every = [subject for source in dossier.sources for subject in subjects_of(source.result)]
    every += [one.subject for one in dossier.judged]
    named = [
        (clean(str(one.get("target") or subject_of(one)), 200), clean(str(one.get("fingerprint") or "unknown"), 128))
        for one in every
    ]
    return [filled("intoto.subject", name=name, fingerprint=mark) for name, mark in dict.fromkeys(named)]


def _file(one: Source | Judged) -> dict[str, Any]:
    """A saved result by its digest, which may be keyed."""
    digest, keyed = ("", one.digest) if one.is_keyed else (one.digest, "")
    found: dict[str, Any] = filled("intoto.file", name=clean(one.name, 200), digest=digest, keyed=keyed, content="")
    return found


def _settings(source: Source) -> dict[str, Any]:
    """The settings of a result, with their own digest."""
    text = json.dumps(to_json(settings_of(source.result)), sort_keys=True, ensure_ascii=False, allow_nan=False)
    content = text.encode("utf-8", "backslashreplace")
    facts = {"digest": hashlib.sha256(content).hexdigest(), "content": base64.b64encode(content).decode("ascii")}
    found: dict[str, Any] = filled("intoto.file", name=f"settings of {clean(source.name, 200)}", keyed="", **facts)
    return found


def settings_of(result: Result) -> dict[str, Any]:
    """The settings of a run, and its subjects: mechanism and fingerprint, claim, pairs, confidence, seed, versions."""
    subjects = [
        {key: clean(str(one.get(key) or ""), 200) for key in ("name", "target", "fingerprint")}
        for one in subjects_of(result)
    ]
    asked = {"subjects": subjects, "claim": getattr(result, "claim", None), "pairs": _pairs(result)}
    common = {"kind": kind_of(result), "seed": result.seed, "environment": result.environment, **asked}
    return {**common, **{name: getattr(result, name) for name in SETTINGS[kind_of(result)]}}


def _pairs(result: Result) -> dict[str, Any] | None:
    """The number of pairs, the first names, and a digest of the names of all; None where there are no pairs."""
    if not isinstance(result, AuditResult):
        return None
    names = [finding.id for finding in result.findings]
    digest = hashlib.sha256(json.dumps(names).encode("utf-8", "backslashreplace")).hexdigest()
    count = len(names) if result.universe is None else len(result.universe)
    return {"count": count, "first": [clean(name, 80) for name in names[:PAIRS_NAMED]], "sha256": digest}
