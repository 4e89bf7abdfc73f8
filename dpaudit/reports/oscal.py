"""A dossier as OSCAL assessment results 1.1 (NIST), in JSON: an observation for each finding, and risks for what broke.

Cases of one check of one claim of one subject make one observation, which counts them and names the worst, as in SARIF.
Identifiers are derived from the results, so that the same results give the same ones. Results carry no date of their
own: times are those of the writing, and say so. A promise that is not refuted has the state that OSCAL knows for it,
"satisfied", with the remark that this is no proof.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

from dpaudit.environment import __version__
from dpaudit.reports.answers import headline
from dpaudit.reports.cases import Case, cases
from dpaudit.reports.deployment import ITEMS
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.first_page import together
from dpaudit.reports.items import items, status_word
from dpaudit.reports.rows import line_of
from dpaudit.reports.scope import SOURCE
from dpaudit.reports.sign_off import results_digest
from dpaudit.reports.wording import clean, percent_text, plural
from dpaudit.reports.written import UNDATED, iso_text

VERSION = "1.1.3"  # of OSCAL
SPACE = uuid.UUID("a3c1f0de-2f56-5d7c-9a55-3d1f6f1f5d10")  # of our name-based identifiers
NAMES = "urn:dpaudit"  # of properties and characterisations
NO_PROOF = "Not refuted by the test, which is no proof that the promise is kept."
# Status of a case: state and reason of the finding's target, and the remark on it.
STATES: dict[str, tuple[str, str, str]] = {
    "violated": ("not-satisfied", "fail", "The promise is broken."),
    "warning": ("not-satisfied", "other", "Found beside the claim."),
    "error": ("not-satisfied", "other", "The run broke and gave no answer."),
    "inconclusive": ("not-satisfied", "other", "Too little evidence for an answer."),
    "xfail": ("not-satisfied", "fail", "A known failure."),
    "not_refuted": ("satisfied", "other", NO_PROOF),
}
RISKY = ("violated", "warning", "error", "xfail")


def render(dossier: Dossier) -> str:
    """The document, with a line end."""
    return json.dumps({"assessment-results": document(dossier)}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def document(dossier: Dossier) -> dict[str, Any]:
    """The assessment results as JSON values."""
    ids = _Identifiers(results_digest(dossier))
    now, rate = iso_text(), percent_text(together(dossier))
    tool, plan = ids("tool"), ids("plan")
    groups: dict[tuple[str, str, str, str], list[Case]] = {}
    for case in cases(dossier):
        if case.status in STATES:
            groups.setdefault((case.subject_name, case.claim, case.check, case.status), []).append(case)
    evidence = [
        {"href": f"#{ids('source', source.name)}", "description": f"Saved result {_line(source.name, 200)}"}
        for source in dossier.sources
    ]
    described = [_described(ids, key, group) for key, group in groups.items()]
    origin: dict[str, Any] = {"origins": [{"actors": [{"type": "tool", "actor-uuid": tool}]}], "collected": now}
    origin |= {"relevant-evidence": evidence} if evidence else {}
    observations = [{**one["observation"], **origin} for one in described]
    risks, findings = [one["risk"] for one in described if "risk" in one], [one["finding"] for one in described]
    title = clean(dossier.deployment.name, 200) if dossier.deployment is not None and dossier.deployment.name else ""
    title = title or ", ".join(clean(name, 60) for name in dossier.subjects[:3])
    result = {
        "uuid": ids("result"),
        "title": f"Audits by dpaudit {__version__}",
        "description": "What was measured of the promises of privacy, errors and behaviour of the mechanisms.",
        "start": now,
        "end": now,
        "props": _props({"verdict": dossier.verdict, "false-alarm-rate": f"{together(dossier):.6g}"}),
        "local-definitions": {"components": [_tool(tool), *_subjects(ids, dossier)]},
        "reviewed-controls": {
            "description": SOURCE,
            "control-selections": [{"include-controls": [{"control-id": control(key)} for key in ITEMS]}],
        },
        "attestations": [
            {"parts": [_part(item.key, f"{item.name}: {item.status}.", item.evidence) for item in items(dossier)]}
        ],
        "observations": observations,
        **({"risks": risks} if risks else {}),
        **({"findings": findings} if findings else {}),
        "remarks": f"All results together contain a false alarm with probability at most {rate}. Times are those of "
        f"the writing of this file. {UNDATED}",
    }
    if not observations:
        del result["observations"]
    resources = [
        {
            "uuid": plan,
            "title": "Items of the evaluation",
            "description": SOURCE,
            "citation": {
                "text": "NIST SP 800-226, March 2025; section numbers of the initial public draft, December 2023"
            },
        }
    ]
    resources += [_resource(ids, dossier, place) for place in range(len(dossier.sources))]
    return {
        "uuid": ids("document"),
        "metadata": {
            "title": f"{headline(dossier)}. Assessment of {title}",
            "last-modified": now,
            "version": __version__,
            "oscal-version": VERSION,
        },
        "import-ap": {"href": f"#{plan}"},
        "results": [result],
        "back-matter": {"resources": resources},
    }


class _Identifiers:
    """Identifiers (version 5) that are the same for the same results."""

    def __init__(self, digest: str) -> None:
        self._digest = digest

    def __call__(self, *names: str) -> str:
        text = json.dumps([self._digest, *names], ensure_ascii=True)
        return str(uuid.uuid5(SPACE, text))


def control(key: str) -> str:
    """The identifier of an item of the evaluation, as a token."""
    return f"dp-{key.replace('_', '-')}"


def item_of(case: Case) -> str:
    """The item of the evaluation that a case is about."""
    if case.check.startswith("utility"):
        return "utility"
    known = {"claim": "epsilon", "claim_audit": "epsilon", "claim_exact": "epsilon", "floating_point": "floating_point"}
    known |= {"timing": "side_channels", "containment": "side_channels", "independence": "epsilon"}
    known |= {"pair_search": "contribution", "same_randomness": "contribution", "recorded_noise": "contribution"}
    if case.check.startswith("law_") and "composition" in case.check:
        return "queries"
    return known.get(case.check, "correctness")


def _line(text: str, width: int) -> str:
    """One line without spaces at its ends and never empty, as OSCAL wants its strings."""
    return clean(" ".join(text.split()), width).strip() or "none"


def _props(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "ns": NAMES, "value": _line(value, 500)} for name, value in values.items()]


def _tool(identifier: str) -> dict[str, Any]:
    return {
        "uuid": identifier,
        "type": "software",
        "title": f"dpaudit {__version__}",
        "description": "The tool that ran the mechanisms and tested their promises.",
        "status": {"state": "operational"},
    }


def _subjects(ids: _Identifiers, dossier: Dossier) -> list[dict[str, Any]]:
    return [
        {
            "uuid": ids("subject", clean(name, 120)),
            "type": "software",
            "title": _line(name, 120),
            "description": "A mechanism that was tested.",
            "status": {"state": "other", "remarks": "What is deployed was not observed."},
        }
        for name in dict.fromkeys(clean(name, 120) for name in dossier.subjects)
    ]


def _part(key: str, title: str, prose: str) -> dict[str, Any]:
    return {"name": control(key), "ns": NAMES, "title": _line(title, 300), "prose": prose.strip() or "none"}


def _described(ids: _Identifiers, key: tuple[str, str, str, str], group: list[Case]) -> dict[str, dict[str, Any]]:
    """The observation of a group of cases, the finding that rests on it, and the risk of what broke."""
    subject, claim, check, status = key
    state, reason, remark = STATES[status]
    worst = group[0]  # cases of an audit come the worst first
    more = f" And {plural(len(group) - 1, 'more case')} of this check." if len(group) > 1 else ""
    said = {
        "title": _line(f"{status_word(status).capitalize()}: {subject}: {check}", 300),
        "description": _line(f"{worst.name}: {worst.message}", 1500) + more,
    }
    observation = {
        "uuid": ids("observation", *key),
        **said,
        "props": _props({"status": status, "cases": str(len(group)), **({"claim": claim} if claim else {})}),
        "methods": ["TEST"],
        "types": ["finding" if status in RISKY else "control-objective"],
        "subjects": [{"subject-uuid": ids("subject", subject), "type": "component"}],
    }
    related = {"related-observations": [{"observation-uuid": observation["uuid"]}]}
    target = {
        "type": "objective-id",
        "target-id": control(item_of(worst)),
        "status": {"state": state, "reason": reason, "remarks": remark},
    }
    finding = {"uuid": ids("finding", *key), **said, "target": target, **related}
    if status not in RISKY:
        return {"observation": observation, "finding": finding}
    risk = {"uuid": ids("risk", *key), **said, "statement": remark, "status": "open", **related}
    finding["related-risks"] = [{"risk-uuid": risk["uuid"]}]
    return {"observation": observation, "finding": finding, "risk": risk}


def _resource(ids: _Identifiers, dossier: Dossier, place: int) -> dict[str, Any]:
    """A saved result: its name and digest, which is keyed and so no checksum where records are redacted."""
    source = dossier.sources[place]
    line = line_of(source)
    found: dict[str, Any] = {
        "uuid": ids("source", source.name),
        "title": _line(source.name, 200),
        "description": _line(f"{line.words}: {line.subject}, {line.kind}. {line.measured}", 600),
    }
    if source.is_keyed or not re.fullmatch("[0-9a-f]{64}", source.digest):
        return found
    href = re.sub(r"[^\w./-]", "_", source.name, flags=re.ASCII)
    return {**found, "rlinks": [{"href": href, "hashes": [{"algorithm": "SHA-256", "value": source.digest}]}]}
