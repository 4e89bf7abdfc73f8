"""A dossier as a draft for the public registry of deployments (opendp/deployments-registry-data), as YAML.

A record describes one deployment. What was measured fills the fields that ask for it: parameters, mechanisms and how
they were validated. What is declared fills others (`dpaudit.reports.deployment`). A field that a record must have and
that nobody declared gets a placeholder, and the comments at the head of the file list all that is left to fill in. The
facts of the schema were read on 2026-11-25 at its revision 3e9c812; `dpaudit/schemas/registry-record.json` states them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.environment import __version__
from dpaudit.privacy.neighbours import one_step
from dpaudit.privacy.parsing import parse_claim
from dpaudit.reports.answers import alarm_text
from dpaudit.reports.deployment import REGISTRY, TEXTS, Deployment
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.first_page import headline
from dpaudit.reports.items import Item, items
from dpaudit.reports.replay_command import is_readable
from dpaudit.reports.rows import ranked
from dpaudit.reports.wording import clean
from dpaudit.reports.words import fill, form, words
from dpaudit.reports.words import said as phrase
from dpaudit.results.model import AuditResult

LINE = 4000  # characters of a line of a text
LIMITS = words("registry.limits")


def render(dossier: Dossier) -> str:
    """The record, with what is left to fill in as comments at its head."""
    record, missing = record_of(dossier)
    head = [f"# Draft of a registry record, written by dpaudit {__version__}. Review every field before you file it."]
    head += [f"# What the tests found: {headline(dossier)}."]
    head += [f"# To be filled in: {name}" for name in missing]
    return "\n".join([*head, *_yaml(record, 0)]) + "\n"


def record_of(dossier: Dossier) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The record and the names of its fields that are left to fill in."""
    declared = dossier.deployment if dossier.deployment is not None else Deployment("")
    found = {item.key: item for item in items(dossier)}
    name = declared.name or ", ".join(clean(one, 60) for one in dossier.subjects[:3])
    facts, said = declared.registry, {key: item.declared for key, item in found.items()}
    variant, parameters = _promise(dossier.audits)
    curator, author = facts.get("curator", "") or declared.owner, facts.get("author", "")
    values = {
        **dict.fromkeys(REGISTRY, ""),
        **{key: getattr(declared, key) for key in (*TEXTS, "published")},
        **facts,
        "name": name,
        "curators": [curator] if curator else "",
        "authors": [author] if author else "",
        "variant": variant,
        "parameters": parameters,
        "unit": said["unit"],
        "tested": _unit(found["unit"]),
        "measured": _measured(dossier),
        "trust": said["trust"],
        "composition": _composition(declared, found["queries"]),
        "mechanisms": _mechanisms(dossier, found),
        "validated": _validated(dossier),
        "version": __version__,
        "limits": LIMITS,
    }
    # Field, what is stated, and what stands there where nothing is; a field that needs no statement has no third entry.
    fields = [(field, fill(value, values), *otherwise) for field, value, *otherwise in form("registry.fields")]
    deployment: dict[str, dict[str, Any]] = {}
    for field, value, *otherwise in fields:
        part, _, key = field.partition(".")
        shown = _shown(value or (otherwise[0] if otherwise else value))
        deployment.setdefault(part, {}).update({key: shown} if shown not in ("", {}, []) else {})
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "deployment"
    whole = {part: table for part, table in deployment.items() if table}
    missing = tuple(field for field, value, *otherwise in fields if otherwise and not value)
    return {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": whole}, missing


def _shown(value: Any) -> Any:
    """The value with texts whose lines are printable and at most 4,000 characters long."""
    if isinstance(value, list):
        return [_shown(one) for one in value]
    if not isinstance(value, str):
        return value
    return "\n".join(clean(line, LINE) for line in value.split("\n"))


def _promise(audits: Sequence[AuditResult]) -> tuple[str, dict[str, float]]:
    """The variant and its parameters, where all audits are of one promise; "Custom" where the registry has no name."""
    claims = {result.claim for result in audits}
    if len(claims) != 1:
        return ("Custom" if claims else "", {})
    text = claims.pop()
    claim = one_step(parse_claim(text)) if is_readable(text) else None
    name, of = form("registry.variants").get(type(claim).__name__, ("Custom", ()))
    values = {key: float(getattr(claim, key)) for key in of}
    return name, {key: value for key, value in values.items() if math.isfinite(value)}


def _unit(item: Item) -> str:
    return f"Pairs that were tested: {item.evidence}" if item.status.startswith("tested") else ""


def _measured(dossier: Dossier) -> str:
    """Every promise of privacy with what was measured of it, and the limits of that."""
    lines = [
        phrase("registry.measured", line=line, word=line.words[2:], promised="; ".join(line.promised.splitlines()))
        for line in ranked(dossier)
        if line.kind == "privacy"
    ]
    return "\n".join([*(f"- {line.rstrip('.')}." for line in lines), LIMITS]) if lines else ""


def _composition(declared: Deployment, queries: Item) -> str:
    parts = [queries.declared] if queries.declared else []
    if declared.budget is not None:
        parts.append(f"Declared: releases of this data set spent {declared.budget.parameter} = {declared.budget}.")
    if queries.status.startswith("tested"):
        parts.append(f"Tested: {queries.evidence}")
    return "\n".join(parts)


def _mechanisms(dossier: Dossier, found: Mapping[str, Item]) -> str:
    """The registry's questions on mechanisms, floating point, timing and security, each with its status."""
    subjects = ", ".join(clean(name, 80) for name in dossier.subjects[:10])
    lines = [f"- Mechanisms: {subjects}."]
    for key, question in (
        ("floating_point", "Floating point"),
        ("side_channels", "Timing channels, errors and platform"),
        ("security", "Security and access control"),
    ):
        item = found[key]
        lines.append(f"- {question} ({item.status}): {' '.join(item.evidence.split())}")
    return "\n".join(lines)


def _validated(dossier: Dossier) -> str:
    """Say by which runs the process was tested, and what each of them says."""
    kinds = Counter(line.kind for line in ranked(dossier))
    done = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.items())
    lines = [f"- {line.subject}, {line.kind}: {line.words[2:].lower()}; {line.measured}" for line in ranked(dossier)]
    opening = phrase("registry.tested", version=__version__, kinds=done, probability=alarm_text(dossier))
    return "\n".join([opening, *(f"{line.rstrip('.')}." for line in lines[:20])])


def _yaml(value: Mapping[str, Any], depth: int) -> list[str]:
    """A table in block style; texts are quoted as in JSON, which YAML reads."""
    lines, pad = [], "  " * depth
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            lines += [f"{pad}{key}:", *_yaml(entry, depth + 1)]
        elif isinstance(entry, list):
            lines += [f"{pad}{key}:", *(f"{pad}  - {_scalar(one)}" for one in entry)]
        else:
            lines.append(f"{pad}{key}: {_scalar(entry)}")
    return lines


def _scalar(value: str | float) -> str:
    """A text in double quotes or a number with a point, which every reader of YAML takes for one."""
    if isinstance(value, float):
        text = repr(value)
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return json.dumps(value, ensure_ascii=False)
