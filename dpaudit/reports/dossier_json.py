"""A dossier as JSON (schema `dpaudit.compliance/1`, published in `dpaudit/schemas/`): items, declarations, results."""

from __future__ import annotations

import dataclasses
from typing import Any

from dpaudit.environment import __version__
from dpaudit.reports import cases, first_page
from dpaudit.reports.answers import answers, together
from dpaudit.reports.dossier import Dossier, Judged, Result, Source, kind_of
from dpaudit.reports.items import SOURCE, items
from dpaudit.reports.rows import ranked
from dpaudit.results.codec import to_json
from dpaudit.results.saving import Saved, json_text, utf8
from dpaudit.scores.result import ScoresResult

SCHEMA = "dpaudit.compliance/1"
UNSAID_ITEM = ("part", "w3c")  # of an item, what its record leaves out; below, of a row: the answers say it
UNSAID = ("word", "sentence", "tested", "remark", "rarest", "is_boundless", "headline", "beside")


def record_of(dossier: Dossier) -> dict[str, Any]:
    """The dossier as strict JSON values, the saved results included."""
    declared, found, lines = dossier.deployment, items(dossier), ranked(dossier)
    return {
        "schema": SCHEMA,
        "dpaudit": __version__,
        "verdict": dossier.verdict,
        "headline": first_page.headline(dossier),
        "summary": [{"question": question, "answer": [text]} for question, text in answers(dossier, to_sign=True).rows],
        "promises": [_fields(line, *UNSAID) for line in lines],
        "false_alarm_rate": together(dossier),
        "sign_off": None if dossier.sign_off is None else dataclasses.asdict(dossier.sign_off),
        "sections_of": SOURCE,
        "items": [_fields(item, *UNSAID_ITEM) for item in found],
        "deployment": None if declared is None else _fields(declared),
        "is_redacted": dossier.is_redacted,
        "cases": cases.counts(dossier),
        "results": [_file(one, kind_of(one.result), one.result) for one in dossier.sources],
        "attachments": [_file(one, one.kind, one.result) for one in dossier.judged],
    }


def _fields(one: Any, *unsaid: str) -> dict[str, Any]:
    """The fields of a dataclass as strict JSON, without these; ratios are multiples of the promise."""
    found: dict[str, Any] = to_json(dataclasses.asdict(one))
    return {name: value for name, value in found.items() if name not in unsaid}


def _file(one: Source | Judged, kind: str, result: Saved) -> dict[str, Any]:
    """A saved result with its digest."""
    facts = {"name": one.name, "kind": kind, "digest": one.digest, "digest_is_keyed": one.is_keyed}
    return {**facts, "result": result.to_dict()}


def render(result: Result | Dossier | ScoresResult, profile: str) -> bytes:
    """The file, in UTF-8: of one result the result as it is saved; else a dossier's record."""
    alone = result.sources[0].result if isinstance(result, Dossier) and len(result.sources) == 1 else result
    if profile == "plain" and not isinstance(alone, Dossier):
        return alone.to_bytes()
    from dpaudit.reports.compliance import dossier_of

    return utf8(json_text(record_of(dossier_of(result))))
