"""A dossier as JSON (schema `dpaudit.compliance/1`, published in `dpaudit/schemas/`): items, declarations, results."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from dpaudit.reports import answers, cases
from dpaudit.reports.dossier import Dossier, kind_of
from dpaudit.reports.items import items
from dpaudit.reports.scope import SOURCE
from dpaudit.saving import to_json, utf8
from dpaudit.version import __version__

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
            {"question": question, "answer": list(texts)} for question, texts in answers.summary(dossier, found)
        ],
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
    }


def content(dossier: Dossier) -> bytes:
    """The file, in UTF-8."""
    return utf8(json.dumps(record_of(dossier), indent=1, allow_nan=False, ensure_ascii=False) + "\n")
