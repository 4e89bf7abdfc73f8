"""Attachments of a dossier beside results with a verdict: plans, replays on the same randomness, sessions of tests.

An attachment has a chapter of its own. Those that judge a promise (`dpaudit.reports.judged`) have a row on page one and
are redacted; redaction leaves the others out, as they may quote data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.reports import beside
from dpaudit.reports.document import Block, Facts, Paragraph, Section, Table
from dpaudit.reports.dossier import Attachment
from dpaudit.reports.wording import clean, name_text, number_text, percent_text, plural, some
from dpaudit.results.codec import from_json
from dpaudit.results.side_findings import SideFinding

ROWS = 200  # of a table


def sections(attachments: Sequence[Attachment]) -> tuple[Section, ...]:
    """A chapter for each attachment."""
    return tuple(
        Section(f"a{place}", one.title, (*one.blocks, Paragraph(f"From {clean(one.name, 200)}.", "note")))
        for place, one in enumerate(attachments, 1)
    )


def plan_attachment(name: str, digest: str, record: Mapping[str, Any]) -> Attachment:
    """Say what an audit would cost and could find, of a plan's file (dpaudit.plan/1)."""
    subject = clean(record["subject"].get("name") or record["subject"].get("target") or "unnamed subject", 80)
    text = (
        f"An audit of the claim {clean(record['claim'], 120)} with {plural(record['samples'], 'sample')} was planned: "
        f"{plural(record['pairs'], 'pair')}, about {plural(record['runs'], 'run')}, at "
        f"{percent_text(record['confidence'])} confidence. It is a plan: nothing was found by it."
    )
    rows = [
        (
            name_text(budget["id"], 60),
            number_text(from_json(budget["budget"])),
            number_text(from_json(power["event_mass"]), 3),
            number_text(from_json(power["known_value"])),
            number_text(from_json(power["learned_value"])),
        )
        for budget in record["budgets"]
        for power in budget["powers"]
    ]
    columns = ("pair", "budget", "share of answers that show it", "would find, if known where", "would find")
    table = Table.first("What the planned audit would find", columns, rows, ROWS)
    return Attachment(name, digest, "plan", f"{subject}: a plan", (Paragraph(text), table))


def side_attachment(name: str, digest: str, record: Mapping[str, Any]) -> Attachment:
    """A side finding of its own, as `dpaudit greybox --format json` writes it."""
    finding = SideFinding.from_dict(record)
    table = Table("Looked at beside the claim", beside.COLUMNS, (tuple(beside.row(finding)),))
    return Attachment(name, digest, "side finding", f"{beside.title(finding)}: {beside.status_text(finding)}", (table,))


def session_attachment(
    name: str, digest: str, record: Mapping[str, Any], without: Sequence[str], subjects: Sequence[str]
) -> Attachment:
    """A session of tests as a whole (dpaudit.session/1); `without` names tests whose audit is not at hand."""
    session, audits, checks = record["session"], record["audits"], record.get("checks", ())
    facts = [("Audits", _ended([audit["verdict"] for audit in audits]))]
    facts.append(("Tests", f"{len({audit['test'] for audit in audits}):,}"))
    facts.append(("Subjects", f"{len(set(subjects)):,}"))
    if "confidence" in session:
        rate, sure = percent_text(float(session["error_rate"])), percent_text(session["confidence"])
        facts.append(("Confidence", f"{sure}: a false alarm in at most {rate} of sessions"))
    if "profile" in session:
        facts.append(("Profile", clean(str(session["profile"]), 60)))
    if checks:
        facts.append(("Conformance checks", _ended([check["status"] for check in checks])))
    if known := sum(bool(audit.get("known")) for audit in audits):
        facts.append(("Known violations", f"{known:,}, which fail no test"))
    words = [str(audit["verdict"]).replace("_", " ") for audit in audits]
    rows = [
        (clean(audit["test"], 160), clean(audit["claim"], 80), word, clean(str(audit.get("known") or ""), 120))
        for audit, word in zip(audits, words, strict=True)
    ]
    marks = [str(audit["verdict"]) for audit in audits]
    columns = ("test", "claim", "verdict", "known because")
    blocks: list[Block] = [Facts(tuple(facts)), Table.first("Audits of the session", columns, rows, ROWS, marks)]
    if without:
        shown = some([clean(one, 100) for one in without], 5)
        text = f"The saved result of {plural(len(without), 'audit')} is not at hand, so that no chapter shows it: "
        blocks.append(Paragraph(f"{text}{shown}. Let the session write it with --dp-report json."))
    return Attachment(name, digest, "session", "The session of tests as a whole", tuple(blocks))


def _ended(statuses: Sequence[str]) -> str:
    """Numbers of those that ended in each way."""
    counts = Counter(str(status).replace("_", " ") for status in statuses)
    return f"{len(statuses):,}: " + ", ".join(f"{count:,} {word}" for word, count in counts.items())


def check_record(schema: str, record: Mapping[str, Any], keys: Sequence[str]) -> None:
    """`UsageError` if a file of a schema lacks one of these keys."""
    missing = next((key for key in keys if key not in record), None)
    if missing is not None:
        raise UsageError(f"result must follow {schema}, got one without {missing!r}.")
