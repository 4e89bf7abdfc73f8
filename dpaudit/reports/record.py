"""A dossier as JSON (schema `dpaudit.compliance/1`, published in `dpaudit/schemas/`): items, declarations, results."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from dpaudit.environment import __version__
from dpaudit.reports import answers, cases, first_page
from dpaudit.reports.dossier import Dossier, Line, Result, kind_of
from dpaudit.reports.items import items
from dpaudit.reports.rows import ranked
from dpaudit.reports.scope import SOURCE
from dpaudit.results.codec import to_json
from dpaudit.results.saving import utf8
from dpaudit.scores.result import ScoresResult

SCHEMA = "dpaudit.compliance/1"


def record_of(dossier: Dossier) -> dict[str, Any]:
    """The dossier as strict JSON values, the saved results included."""
    found = items(dossier)
    deployment = dossier.deployment
    return {
        "schema": SCHEMA,
        "dpaudit": __version__,
        "verdict": dossier.verdict,
        "headline": answers.headline(dossier),
        "summary": [
            {"question": question, "answer": [text]}
            for question, text in first_page.statements(dossier, ranked(dossier), found)
        ],
        "promises": [_promise(line) for line in ranked(dossier)],
        "false_alarm_rate": to_json(first_page.together(dossier)),
        "sign_off": None if dossier.sign_off is None else dataclasses.asdict(dossier.sign_off),
        "sections_of": SOURCE,
        "items": [
            {
                "key": item.key,
                "name": item.name,
                "sections": item.sections,
                "status": item.status,
                "evidence": item.evidence,
                "declared": item.declared,
            }
            for item in found
        ],
        "deployment": None if deployment is None else to_json(dataclasses.asdict(deployment)),
        "is_redacted": dossier.is_redacted,
        "cases": cases.counts(dossier),
        "results": [
            {
                "name": source.name,
                "kind": kind_of(source.result),
                "digest": source.digest,
                "digest_is_keyed": source.is_keyed,
                "result": source.result.to_dict(),
            }
            for source in dossier.sources
        ],
        "attachments": [
            {
                "name": one.name,
                "kind": one.kind,
                "digest": one.digest,
                "digest_is_keyed": one.is_keyed,
                "result": one.result.to_dict(),
            }
            for one in dossier.attachments
            if one.result is not None
        ],
    }


def _promise(line: Line) -> dict[str, Any]:
    """A row of page one; ratios as multiples of the promise."""
    found: dict[str, Any] = to_json(dataclasses.asdict(line))
    return {name: value for name, value in found.items() if name not in ("word", "sentence")}


def render(result: Result | Dossier | ScoresResult, profile: str) -> str | bytes:
    """The file, in UTF-8: of one result, and of scores, the result as it is saved; else a dossier's record."""
    if isinstance(result, ScoresResult):
        return result.to_text()
    alone = result.sources[0].result if isinstance(result, Dossier) and len(result.sources) == 1 else result
    if profile == "plain" and not isinstance(alone, Dossier):
        return alone.to_bytes()
    dossier = result if isinstance(result, Dossier) else Dossier.of(result)
    return utf8(json.dumps(record_of(dossier), indent=1, allow_nan=False, ensure_ascii=False) + "\n")
