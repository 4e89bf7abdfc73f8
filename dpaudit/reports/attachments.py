"""Attachments of a dossier beside results with a verdict: plans, replays on the same randomness, sessions of tests.

An attachment has a chapter of its own. Those that judge a promise have a row on page one and are redacted;
redaction leaves the others out, as they may quote data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpaudit.reports import side_texts, wording
from dpaudit.reports.document import Block, Facts, Paragraph, Section, Table
from dpaudit.reports.dossier import Attachment, Judged, Line, subject_of
from dpaudit.reports.plan import plan_blocks
from dpaudit.reports.wording import clean, name_text, number_text, plural, upper_text
from dpaudit.reports.words import joined, said
from dpaudit.results.codec import from_json
from dpaudit.results.model import VERDICTS as ORDER
from dpaudit.results.model import Verdict
from dpaudit.results.plan_result import Plan
from dpaudit.results.side_findings import SideFinding

if TYPE_CHECKING:
    from dpaudit.symbolic.certificate import Certificate, CertifiedPair

COLUMNS = ("pair", "verdict", "claimed", "at least", "at most", "ε at least", "ε at most", "δ", "mass left")
VERDICTS: Mapping[str, Verdict] = {"violated": "violated", "open": "inconclusive", "kept": "not_refuted"}


def sections(attachments: Sequence[Attachment]) -> tuple[Section, ...]:
    """A chapter for each attachment."""
    return tuple(
        Section(
            f"a{place}",
            one.title,
            (*one.blocks, Paragraph(f"From {clean(one.name, 200)}.", "note")),
            mark=one.line.verdict if isinstance(one, Judged) else "",
        )
        for place, one in enumerate(attachments, 1)
    )


def plan_attachment(name: str, digest: str, plan: Plan) -> Attachment:
    """Say what an audit would cost and could find."""
    blocks = (Paragraph("It is a plan: nothing was found by it."), *plan_blocks(plan))
    return Attachment(name, digest, "plan", f"{clean(subject_of(plan.subject), 80)}: a plan", blocks)


def side_attachment(name: str, digest: str, finding: SideFinding) -> Attachment:
    """A side finding of its own, as `dpaudit greybox --format json` writes it."""
    headline = f"{side_texts.title(finding.kind)}: {side_texts.status_text(finding)}"
    return Attachment(name, digest, "side finding", headline, (Facts((side_texts.fact(finding),)),))


def session_attachment(name: str, digest: str, record: Mapping[str, Any], without: Sequence[str]) -> Attachment:
    """A session of tests as a whole (dpaudit.session/1); `without` names tests whose audit is not at hand."""
    session, audits, checks = record["session"], record["audits"], record.get("checks", ())
    facts = [("Audits", f"{len(audits):,}: {wording.counted(str(audit['verdict']) for audit in audits)}")]
    facts.append(("Tests", f"{len({audit['test'] for audit in audits}):,}"))
    facts.append(("Subjects", f"{len({str(audit.get('subject') or '') for audit in audits}):,}"))
    if "confidence" in session:
        rate, sure = wording.rate_text(float(session["error_rate"])), wording.sure_text(session["confidence"])
        facts.append(("Confidence", f"{sure}: a false alarm in at most {rate} of sessions"))
    if "profile" in session:
        facts.append(("Profile", clean(str(session["profile"]), 60)))
    if checks:
        facts.append(
            ("Conformance checks", f"{len(checks):,}: {wording.counted(str(one['status']) for one in checks)}")
        )
    if known := sum(bool(audit.get("known")) for audit in audits):
        facts.append(("Known violations", f"{known:,}, which fail no test"))
    grave = [one for one in checks if one["status"] in ("violated", "error")]
    failed = [(one["check"], clean(one["mechanism"], 80), clean(one["message"], 400)) for one in grave]
    audits = sorted(audits, key=lambda audit: ORDER.index(audit["verdict"]))
    rows = [
        (
            clean(audit["test"], 160) + (f" (call {audit['call']})" if audit.get("call", 1) > 1 else ""),
            clean(audit["claim"], 80),
            wording.status_word(audit["verdict"]),
            clean(audit.get("known") or "", 120),
            wording.lower_text(from_json(audit.get("epsilon_lower"))),
            str(audit.get("seed", wording.MISSING)),
            clean(audit.get("folder") or wording.MISSING, 120),
        )
        for audit in audits
    ]
    marks = [str(audit["verdict"]) for audit in audits]
    columns = ("test", "claim", "verdict", "known because", "loss at least", "seed", "report")
    blocks: list[Block] = [Facts(tuple(facts))]
    columns_of_checks = ("failed check", "mechanism", "what was seen")
    blocks += [Table("Failed checks", columns_of_checks, failed)] if failed else []
    blocks += [Table("Audits of the session", columns, rows, marks=marks)]
    if without:
        shown = wording.some([clean(one, 100) for one in without], 5)
        text = f"The saved result of {plural(len(without), 'audit')} is not at hand, so that no chapter shows it: "
        blocks.append(Paragraph(f"{text}{shown}. Let the session write it with --dp-report json."))
    return Attachment(name, digest, "session", "The session of tests as a whole", tuple(blocks))


def certificate_attachment(name: str, digest: str, result: Certificate, is_keyed: bool = False) -> Judged:
    """A certificate with its row and its chapter."""
    line = _of_certificate(result)
    facts = [
        ("Claim", line.promised),
        ("Runs", f"{result.runs:,} of the mechanism on {plural(result.inputs, 'input')}, through all that it may draw"),
        ("A claim counts as exceeded", f"beyond {number_text(result.rounding)} (nats of ε, a share of δ)"),
    ]
    blocks: list[Block] = [Paragraph(line.sentence, "lead"), Facts(tuple(facts))]
    order = sorted(result.pairs, key=lambda pair: ("violated", "open", "kept").index(pair.verdict))
    marks, rows = [VERDICTS[pair.verdict] for pair in order], [tuple(certified_row(pair).values()) for pair in order]
    blocks.append(Table("What is proved, pair by pair", COLUMNS, rows, marks=marks))
    reasons = [(name_text(pair.id, 80), _event(pair) or clean(pair.reason, 600)) for pair in order]
    reasons = [(pair, text) for pair, text in reasons if text]
    if reasons:
        blocks.append(Table("What shows the loss, or is missing", ("pair", "text"), tuple(reasons)))
    blocks.append(Paragraph("Losses are in nats. Nothing is proved of a pair that is not listed.", "note"))
    title = f"{clean(subject_of(result.subject), 80)}: a certificate"
    return Judged(name, digest, "certificate", title, tuple(blocks), line, result.subject, 0.0, result, is_keyed)


def _of_certificate(result: Certificate) -> Line:
    count, verdict = len(result.pairs), result.verdict
    number = sum(pair.verdict == verdict for pair in result.pairs)
    asked = [pair for pair in result.pairs if math.isfinite(pair.claimed)]
    low = max((over(pair.value_lower, pair.claimed) for pair in asked), default=0.0)
    high = max((over(pair.value_upper, pair.claimed) for pair in asked), default=math.inf)
    facts = {
        "claim": clean(result.claim, 80),
        "these": "this pair" if count == 1 else f"these {plural(count, 'pair')}",
        "of": f"{number:,} of {plural(count, 'pair')}" if count > 1 else "the pair",
        "left": said("row.proof_left", mass=upper_text(result.mass_left, 3)),
        "shown": joined(f"{name_text(result.worst.id, 80)}: {_loss(result.worst)}", _event(result.worst)),
    }
    key = {"kept": "kept", "violated": "broken"}.get(verdict, "open")
    sentence, sure = said(f"row.proof_{key}_sentence", **facts), "proved"
    if key == "kept":
        word = measured = said("row.proof_kept", **facts)
        low = min(low, 1.0)  # what exceeds the claim by its rounding alone does not count
        measured += said("row.proof_worst", times=upper_text(max(high, 0.0))) if asked else ""
    else:
        word, measured = said(f"row.proof_{key}"), said(f"row.proof_{key}_measured", **facts)
    if key == "open":
        high, sure = math.inf, said("row.proof_open_sure")
        if result.refusal:
            measured = sentence = wording.excerpt(said("row.proof_refused", refusal=result.refusal), 1_000)
    return Line(
        clean(subject_of(result.subject), 60), "proof", facts["claim"], measured, VERDICTS[verdict], sure,
        said(f"row.proof_{key}_missed"), None, low if low > 0.0 else None, high if math.isfinite(high) else None,
        word=word, sentence=sentence, settles=said("settling.proof") if key == "open" else "",
        tested=said("row.tested_proof", pairs=plural(count, "pair"), inputs=plural(result.inputs, "input")),
    )  # fmt: skip


def over(value: float, promised: float) -> float:
    """The value as a multiple of what was promised; of a promise of 0 it is 0 or infinite."""
    return value / promised if promised > 0.0 else math.inf if value > 0.0 else 0.0


def _loss(pair: CertifiedPair) -> str:
    if math.isinf(pair.value_lower):
        return f"the loss is infinite, claimed {number_text(pair.claimed)}."
    lower, claimed = wording.compared(pair.value_lower, pair.claimed)
    at = f" at δ = {number_text(pair.delta)}" if pair.delta > 0.0 else ""
    return f"the loss is at least {lower}{at}, claimed {claimed}."


def _event(pair: CertifiedPair) -> str:
    from dpaudit.symbolic.certificate import event_text

    return clean(event_text(pair), 600)


def certified_row(pair: CertifiedPair) -> dict[str, str]:
    """A pair of a certificate under `COLUMNS`."""
    lower = wording.compared(pair.value_lower, pair.claimed)[0]
    cells = (
        name_text(pair.id, 60), "proved" if pair.verdict == "kept" else pair.verdict, number_text(pair.claimed), lower,
        upper_text(pair.value_upper), wording.lower_text(pair.epsilon_lower), upper_text(pair.epsilon_upper),
        number_text(pair.delta), upper_text(pair.mass_left, 3),
    )  # fmt: skip
    return dict(zip(COLUMNS, cells, strict=True))
