"""A dossier as OSCAL assessment results 1.1 (NIST), in JSON: an observation for each finding, and risks for what broke.

Cases of one check of one claim of one subject make one observation, which counts them and names the worst, as in SARIF.
Identifiers are derived from the results, so that the same results give the same ones. Results carry no date of their
own: times are those of the writing, and say so. A promise that is not refuted has the state that OSCAL knows for it,
"satisfied", with the remark that this is no proof.
"""

from __future__ import annotations

import functools
import json
import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from dpaudit.environment import __version__
from dpaudit.reports.answers import alarm_text, together
from dpaudit.reports.cases import Case, grouped
from dpaudit.reports.deployment import ITEMS
from dpaudit.reports.dossier import Dossier, Source
from dpaudit.reports.first_page import headline, title
from dpaudit.reports.items import SOURCE, items
from dpaudit.reports.rows import line_of
from dpaudit.reports.sign_off import results_digest
from dpaudit.reports.wording import UNDATED, clean, iso_text, status_word
from dpaudit.reports.words import filled, form
from dpaudit.results.saving import json_text

SPACE = uuid.UUID("a3c1f0de-2f56-5d7c-9a55-3d1f6f1f5d10")  # of our name-based identifiers
RISKY = ("violated", "warning", "error", "xfail")


def render(dossier: Dossier) -> str:
    """The document, with a line end."""
    ids, now, rate = functools.partial(_identifier, results_digest(dossier)), iso_text(), together(dossier)
    subjects = dict.fromkeys(clean(name, 120) for name in dossier.subjects)
    common: dict[str, Any] = {name: ids(name) for name in ("tool", "plan", "document", "result")}
    common |= {"version": __version__, "source": SOURCE, "now": now, "undated": UNDATED}
    names = [(one.name, ids("source", one.name)) for one in dossier.sources]
    common["evidence"] = [filled("oscal.evidence", name=_line(name, 200), source=uid) for name, uid in names]
    described = [_described(ids, *group, common) for group in grouped(dossier, form("oscal.states"))]
    found = filled(
        "oscal.document",
        **common,
        **{f"{kind}s": [one[kind] for one in described if kind in one] for kind in ("observation", "risk", "finding")},
        headline=headline(dossier),
        title=title(dossier, 200),
        rate=alarm_text(dossier),
        props=_props(verdict=dossier.verdict, **({} if rate is None else {"false-alarm-rate": f"{rate:.6g}"})),
        components=[
            filled("oscal.tool", **common),
            *(filled("oscal.subject", uuid=ids("subject", one), title=_line(one, 120)) for one in subjects),
        ],
        controls=[{"control-id": control(key)} for key in ITEMS],
        parts=[
            filled(
                "oscal.part",
                name=control(item.key),
                title=_line(f"{item.name}: {item.status}.", 300),
                prose=item.evidence.strip() or "none",
            )
            for item in items(dossier)
        ],
        resources=[filled("oscal.plan", **common), *(_resource(ids, source) for source in dossier.sources)],
    )
    return json_text(found)


def _identifier(*names: str) -> str:
    """An identifier (version 5), the same for the same names: the digest of the results is the first."""
    return str(uuid.uuid5(SPACE, json.dumps(names, ensure_ascii=True)))


def control(key: str) -> str:
    """The identifier of an item of the evaluation, as a token."""
    return f"dp-{key.replace('_', '-')}"


def item_of(case: Case) -> str:
    """The item of the evaluation that a case is about."""
    if case.check.startswith("utility"):
        return "utility"
    if case.check.startswith("law_") and "composition" in case.check:
        return "queries"
    return str(form("oscal.items").get(case.check, "correctness"))


def _line(text: str, width: int) -> str:
    """One line without spaces at its ends and never empty, as OSCAL wants its strings."""
    return clean(" ".join(text.split()), width).strip() or "none"


def _props(**values: str) -> list[dict[str, str]]:
    return [filled("oscal.prop", name=name, value=_line(value, 500)) for name, value in values.items()]


def _described(
    ids: Callable[..., str], key: tuple[str, ...], group: Sequence[Case], more: str, common: dict[str, Any]
) -> dict[str, Any]:
    """The observation of a group of cases, the finding that rests on it, and the risk of what broke."""
    subject, claim, check, status = key
    worst, state = group[0], form("oscal.states")[status]
    facts = {
        **common,
        **{kind: ids(kind, *key) for kind in ("observation", "finding", "risk")},
        "title": _line(f"{status_word(status).capitalize()}: {subject}: {check}", 300),
        "description": _line(f"{worst.name}: {worst.message}", 1500) + more,
        "props": _props(status=status, cases=str(len(group)), **({"claim": claim} if claim else {})),
        "type": "finding" if status in RISKY else "control-objective",
        "subject": ids("subject", subject),
        "control": control(item_of(worst)),
        "status": state,
        "remarks": state["remarks"],
    }
    risks = [{"risk-uuid": facts["risk"]}] if status in RISKY else []
    kinds = ("observation", "finding", "risk") if risks else ("observation", "finding")
    return {kind: filled(f"oscal.{kind}", **facts, risks=risks) for kind in kinds}


def _resource(ids: Callable[..., str], source: Source) -> dict[str, Any]:
    """A saved result: its name and digest, which is keyed and so no checksum where records are redacted."""
    line, links = line_of(source.result), []
    if not source.is_keyed and re.fullmatch("[0-9a-f]{64}", source.digest):
        href = re.sub(r"[^\w./-]", "_", source.name, flags=re.ASCII)
        links = [filled("oscal.link", href=href, digest=source.digest)]
    facts = {"uuid": ids("source", source.name), "title": _line(source.name, 200), "links": links}
    description = _line(f"{line.words}: {line.subject}, {line.kind}. {line.measured}", 600)
    return dict(filled("oscal.resource", **facts, description=description))
