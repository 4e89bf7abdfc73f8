"""Content of a store of evidence: as a document (schema `dpaudit.evidence/1`), as audits, and as blocks of these."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpaudit.privacy.claims import Budget
from dpaudit.reports import brief, wording
from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.wording import MISSING, clean, compared, number_text, plural, rate_text, status_word
from dpaudit.reports.words import joined, said
from dpaudit.results.codec import as_float, from_json
from dpaudit.results.model import AuditResult, Finding, Look, to_json
from dpaudit.scores.auditing import BETS_SHARE
from dpaudit.scores.ledger import Ledger, ledgers

if TYPE_CHECKING:
    from dpaudit.running.store import Store

SCHEMA = "dpaudit.evidence/1"
SHORT, SHORTER = 12, 8  # digits of a digest that are shown, and that a list at 80 columns has room for
NO_POWER = "A store of evidence does not hold what it would have found, so that finding nothing is not judged."
LOOKS_SHOWN = 12  # sessions of a pair, in the explanation


def store_document(store: Store) -> dict[str, Any]:
    """The document of a store, as strict JSON values: its subjects, then its ledgers of scores."""
    return {"schema": SCHEMA, "subjects": [*map(_subject, store.subjects()), *map(_scored, ledgers(store))]}


def _scored(ledger: Ledger) -> dict[str, Any]:
    """A ledger of scores as a subject with one pair: the canary in, and out."""
    level, current = 1.0 - ledger.confidence, ledger.current
    numbers = {session.id: number for number, session in enumerate(ledger.sessions)}
    drawn = list(itertools.accumulate(session.count_in + session.count_out for session in current))
    looks = [
        _look(ledger.seed, numbers[session.id], draws, session.log_wealth, session.lower)
        for session, draws in zip(current, drawn, strict=True)
        if session.lower is not None
    ]
    pair = {
        "key": "scores",
        "id": "scores",
        "x_id": "in",
        "x_prime_id": "out",
        "parameter": ledger.parameter,
        "parameter_budget": to_json(ledger.budget),
        "parameter_lower": to_json(max((session.lower or 0.0 for session in current), default=0.0)),
        "violated": any(session.violated for session in current),
        "draws": drawn[-1] if drawn else 0,
        "log_wealth": to_json(current[-1].log_wealth) if current else None,
        "change": None,
        "log_wealth_needed": to_json(-math.log(BETS_SHARE * level)),
        "error_share": level,
        "generation": 0,
        "looks": looks,
    }
    sessions = [
        {
            "seed": ledger.seed,
            "number": numbers[session.id],
            "started": session.started,
            "ended": session.ended,
            "status": "started" if session.ended is None else "finished",
            "samples": session.count_in + session.count_out,
            "runs": session.count_in + session.count_out,
            "version": session.version,
            "forgotten": session.life != ledger.life,
        }
        for session in ledger.sessions
    ]
    facts = {"digest": ledger.digest, "fingerprint": "scores", "name": ledger.name, "target": None}
    facts |= {name: getattr(ledger, name) for name in ("claim", "confidence", "created", "life")}
    return _entry(facts, sessions, [pair] if current else [])


def _look(seed: int, number: int, draws: int, log_wealth: float | None, lower: float | None) -> dict[str, Any]:
    facts = {"seed": seed, "number": number, "draws": draws}
    return {**facts, "log_wealth": to_json(log_wealth), "parameter_lower": to_json(lower)}


def _entry(facts: Mapping[str, Any], sessions: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """A mechanism and a claim with its sessions and pairs."""
    lives = facts["life"] + 1
    return {
        "id": facts["digest"],
        **{name: facts[name] for name in ("fingerprint", "name", "target", "claim", "confidence")},
        "lives": lives,
        "error_rate": min(1.0, lives * (1.0 - facts["confidence"])),
        "created": facts["created"],
        "violated": any(pair["violated"] for pair in pairs),
        "draws": sum(pair["draws"] for pair in pairs),
        "nights": sessions,
        "pairs": pairs,
    }


def _subject(subject: Mapping[str, Any]) -> dict[str, Any]:
    life, names = subject["life"], ("seed", "number", "started", "ended", "status", "samples", "runs", "version")
    shown = ({name: session[name] for name in names} for session in subject["nights"])
    lives = [{"seed": int(session["seed"]), "forgotten": session["life"] != life} for session in subject["nights"]]
    sessions = [{**session, **known} for session, known in zip(shown, lives, strict=True)]
    looks: dict[str, list[dict[str, Any]]] = {}
    for look in subject["looks"]:
        seen = _look(int(look["seed"]), look["number"], look["labelled"], look["log_wealth"], look["lower"])
        looks.setdefault(look["key"], []).append(seen)
    pairs = [
        {
            "key": pair.key,
            "id": pair.name,
            "x_id": pair.x,
            "x_prime_id": pair.x_prime,
            "parameter": pair.parameter,
            "parameter_budget": to_json(pair.budget),
            # Validity: these suppose independent draws, and are withheld as in the findings of a session.
            "parameter_lower": 0.0 if pair.state.get("change") else to_json(pair.lower),
            "violated": pair.is_violated and not pair.state.get("change"),
            "draws": pair.labelled,
            "log_wealth": None if pair.state.get("change") else to_json(pair.log_wealth),
            "change": pair.state["change"]["what"] if pair.state.get("change") else None,
            "log_wealth_needed": to_json(-math.log(pair.level * pair.state["uses"][0]["level_share"])),
            "error_share": pair.level,
            "generation": pair.generation,
            "looks": [] if pair.state.get("change") else looks.get(pair.key, []),
        }
        for pair in subject["pairs"]
    ]
    return _entry(subject, sessions, pairs)


def audit_of_store(subject: Mapping[str, Any]) -> AuditResult:
    """An audit of all sessions of a mechanism and a claim together, as an entry of dpaudit.evidence/1 describes it.

    Its confidence is one less the error rate of all lives of the subject. A pair that is not violated is inconclusive,
    as the store does not hold the power of its sessions; so is one whose draws depend on each other.
    """
    sessions = [session for session in subject["nights"] if not session["forgotten"]]
    return AuditResult(
        claim=subject["claim"],
        confidence=1.0 - float(subject["error_rate"]),
        mode="sequential",
        seed=int(sessions[-1]["seed"]) if sessions else 0,
        replayable=True,
        findings=tuple(_finding(pair, str(subject["claim"])) for pair in subject["pairs"]),
        not_asked=(),
        report_delta=0.0,
        samples=sum(int(session["runs"]) for session in sessions),
        seconds=0.0,
        subject={key: subject[key] for key in ("name", "target", "fingerprint")},
        environment={"dpaudit": sessions[-1]["version"]} if sessions else {},
        options={"nights": len(sessions)},
    )


def _finding(pair: Mapping[str, Any], claim: str) -> Finding:
    budget, lower = as_float(pair["parameter_budget"]), as_float(pair["parameter_lower"])
    is_violated = bool(pair["violated"]) and lower > budget
    ratio = lower / budget if budget > 0.0 else math.inf if is_violated else None
    # Validity: the epsilon of a claim with another parameter is not in the store; 0 says nothing and is always true.
    # Nor is it known of a claim of the user's own, whose parameter may have this name.
    is_epsilon = pair["parameter"] == "epsilon" and claim.startswith(("eps=", "metric="))
    stated = claim.partition(",delta=")[2] if is_epsilon else ""
    change = pair.get("change")
    return Finding(
        id=pair["id"],
        x_id=pair["x_id"],
        x_prime_id=pair["x_prime_id"],
        x=pair["x_id"],
        x_prime=pair["x_prime_id"],
        budget=Budget(budget if is_epsilon else math.inf, float(stated or 0.0)),
        parameter=pair["parameter"],
        parameter_budget=budget,
        verdict="violated" if is_violated else "inconclusive",
        epsilon_lower=lower if is_epsilon else 0.0,
        parameter_lower=lower,
        ratio_lower=ratio,
        log_wealth=from_json(pair["log_wealth"]),
        error_share=float(pair["error_share"]),
        verdict_share=math.exp(-as_float(pair["log_wealth_needed"])),
        samples=int(pair["draws"]),
        looks=tuple(
            Look(int(look["draws"]), as_float(look["log_wealth"]), as_float(look["parameter_lower"]))
            for look in pair["looks"]
            if look["log_wealth"] is not None
        ),
        printed=("x", "x_prime"),
        notes=(str(change),) if change else () if is_violated else (NO_POWER,),
    )


def list_blocks(document: Mapping[str, Any]) -> list[Block]:
    """One row a subject."""
    if not document["subjects"]:
        return [Paragraph("No evidence yet.")]
    results = list(map(audit_of_store, document["subjects"]))
    rows = [
        (
            clean(subject["target"] or subject["name"]).replace(":", ":\n"),
            subject["id"][:SHORTER],
            clean(subject["claim"]),
            _sessions_text(subject),
            f"{len(result.findings):,}",
            f"{subject['draws']:,}",
            compared(result.ratio_lower, 1.0)[0] if result.findings else MISSING,
            status_word(result.verdict) if subject["draws"] else "no evidence",
        )
        for subject, result in zip(document["subjects"], results, strict=True)
    ]
    columns = ("mechanism", "id", "claim", "sessions", "pairs", "draws", "bound/\nbudget", "verdict")
    return [Table("", columns, tuple(rows), marks=tuple(result.verdict for result in results), kind="verdicts")]


def explanation(subject: Mapping[str, Any]) -> list[Block]:
    """One subject: what the evidence promises, every pair, and how the wealth grew from session to session."""
    kept, lives = [session for session in subject["nights"] if not session["forgotten"]], subject["lives"]
    ordinals = {(session["seed"], session["number"]): str(place) for place, session in enumerate(kept, 1)}
    open_ones = [session for session in kept if session["status"] == "started"][:LOOKS_SHOWN]
    numbers = ", ".join(ordinals[session["seed"], session["number"]] for session in open_ones)
    rates = {"rate": rate_text(1.0 - subject["confidence"]), "in_all": rate_text(subject["error_rate"])}
    forgotten = said("evidence_store.forgotten", times=plural(lives - 1, "time"), **rates) if lives > 1 else ""
    unended = said("evidence_store.open", numbers=numbers) if open_ones else ""
    result = audit_of_store(subject)
    blocks: list[Block] = [
        Paragraph(f"{clean(subject['target'] or subject['name'])}, claim {clean(subject['claim'])}"),
        Paragraph(f"id {subject['id'][:SHORT]}, fingerprint {clean(subject['fingerprint'])}"),
        Paragraph(joined(said("evidence_store.promise", **rates), forgotten)),
        Paragraph(joined(f"{plural(len(kept), 'session')}.", unended)),
        brief.pairs(result, len(result.findings)),
        *(Paragraph(f"Note: {note}") for note in wording.notes(result)),
    ]
    looks = [pair["looks"] for pair in subject["pairs"] if result.worst is not None and pair["id"] == result.worst.id]
    if result.worst is not None and looks[0]:
        sessions = [
            (
                ordinals[look["seed"], look["number"]],
                str(look["seed"]),
                f"{look['draws']:,}",
                number_text(from_json(look["log_wealth"])),
                compared(from_json(look["parameter_lower"]), result.worst.parameter_budget)[0],
            )
            for look in looks[0][-LOOKS_SHOWN:]
        ]
        test = wording.test_sentence(result.worst)
        blocks.append(Paragraph(f"Sessions of {clean(result.worst.id)}: {test}"))
        blocks.append(Table("", ("session", "seed", "draws", "log wealth", "bound"), tuple(sessions)))
    return blocks


def _sessions_text(subject: Mapping[str, Any]) -> str:
    sessions = [session for session in subject["nights"] if not session["forgotten"]]
    broken = sum(session["status"] != "finished" for session in sessions)
    return f"{len(sessions)}" + (f" ({broken} broken off)" if broken else "")
