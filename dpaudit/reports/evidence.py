"""Content of a store of evidence, as a document (schema `dpaudit.evidence/1`) and as blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpaudit.reports.attachments import over
from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.wording import MISSING, clean, compared, number_text, plural, rate_text
from dpaudit.reports.words import joined, said
from dpaudit.results.model import to_json
from dpaudit.scores.auditing import BETS_SHARE
from dpaudit.scores.ledger import Ledger, ledgers

if TYPE_CHECKING:
    from dpaudit.running.store import Store

SCHEMA = "dpaudit.evidence/1"
SHORT, SHORTER = 12, 8  # digits of a digest that are shown, and that a list at 80 columns has room for
DEPENDS = "inconclusive: draws depend on each other"
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


def list_blocks(document: Mapping[str, Any]) -> list[Block]:
    """One row a subject."""
    if not document["subjects"]:
        return [Paragraph("No evidence yet.")]
    rows, marks = [], []
    for subject in document["subjects"]:
        ratios = [_ratio(pair) for pair in subject["pairs"]]
        depends = not subject["violated"] and any(pair["change"] for pair in subject["pairs"])
        row = (
            clean(subject["target"] or subject["name"]).replace(":", ":\n"),
            subject["id"][:SHORTER],
            clean(subject["claim"]),
            _sessions_text(subject),
            f"{len(subject['pairs']):,}",
            f"{subject['draws']:,}",
            compared(max(ratios), 1.0)[0] if ratios else MISSING,
            DEPENDS if depends else _verdict(subject["violated"], subject["draws"]),
        )
        rows.append(row)
        marks.append("violated" if subject["violated"] else "")
    columns = ("mechanism", "id", "claim", "sessions", "pairs", "draws", "bound/\nbudget", "verdict")
    return [Table("", columns, tuple(rows), marks=tuple(marks), kind="verdicts")]


def explanation(subject: Mapping[str, Any]) -> list[Block]:
    """One subject: what the evidence promises, every pair, and how the wealth grew from session to session."""
    kept, lives = [session for session in subject["nights"] if not session["forgotten"]], subject["lives"]
    ordinals = {(session["seed"], session["number"]): str(place) for place, session in enumerate(kept, 1)}
    open_ones = [session for session in kept if session["status"] == "started"][:LOOKS_SHOWN]
    numbers = ", ".join(ordinals[session["seed"], session["number"]] for session in open_ones)
    rates = {"rate": rate_text(1.0 - subject["confidence"]), "in_all": rate_text(subject["error_rate"])}
    forgotten = said("evidence_store.forgotten", times=plural(lives - 1, "time"), **rates) if lives > 1 else ""
    unended = said("evidence_store.open", numbers=numbers) if open_ones else ""
    lines = (
        f"{clean(subject['target'] or subject['name'])}, claim {clean(subject['claim'])}",
        f"id {subject['id'][:SHORT]}, fingerprint {clean(subject['fingerprint'])}",
        joined(said("evidence_store.promise", **rates), forgotten),
        joined(f"{plural(len(kept), 'session')}.", unended),
    )
    rows = [
        (
            clean(pair["id"]),
            f"{pair['draws']:,}",
            _bound(pair, pair["parameter_lower"]),
            f"{pair['parameter']} {_number(pair['parameter_budget'])}",
            _number(pair["log_wealth"]),
            _number(pair["log_wealth_needed"]),
            DEPENDS if pair["change"] else _verdict(pair["violated"], pair["draws"]),
        )
        for pair in subject["pairs"]
    ]
    marks = tuple("violated" if pair["violated"] else "" for pair in subject["pairs"])
    columns = ("pair", "draws", "bound", "budget", "log\nwealth", "needed", "verdict")
    blocks: list[Block] = [*map(Paragraph, lines), Table("", columns, tuple(rows), marks=marks)]
    best = max(subject["pairs"], key=_ratio, default=None)
    if best is not None and best["looks"]:
        sessions = [
            (
                ordinals[look["seed"], look["number"]],
                str(look["seed"]),
                f"{look['draws']:,}",
                _number(look["log_wealth"]),
                _bound(best, look["parameter_lower"]),
            )
            for look in best["looks"][-LOOKS_SHOWN:]
        ]
        blocks.append(Paragraph(f"Sessions of {clean(best['id'])}"))
        blocks.append(Table("", ("session", "seed", "draws", "log wealth", "bound"), tuple(sessions)))
    return blocks


def _sessions_text(subject: Mapping[str, Any]) -> str:
    sessions = [session for session in subject["nights"] if not session["forgotten"]]
    broken = sum(session["status"] != "finished" for session in sessions)
    return f"{len(sessions)}" + (f" ({broken} broken off)" if broken else "")


def _ratio(pair: Mapping[str, Any]) -> float:
    return over(float(pair["parameter_lower"]), float(pair["parameter_budget"]))


def _verdict(violated: bool, draws: int) -> str:
    """In words: a store holds no power, so that what it has not found is not judged; see `reading.audit_of_store`."""
    return "violated" if violated else "nothing found" if draws else "no evidence"


def _number(value: Any) -> str:
    return number_text(None if value is None else float(value))


def _bound(pair: Mapping[str, Any], lower: Any) -> str:
    """A lower bound beside the budget of its pair."""
    return compared(None if lower is None else float(lower), float(pair["parameter_budget"]))[0]
