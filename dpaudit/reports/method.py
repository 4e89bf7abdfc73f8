"""Method section of every report: how the evidence was made, and which error rates hold."""

from __future__ import annotations

from collections.abc import Iterator

from dpaudit.reports.dossier import Dossier, subject_of
from dpaudit.reports.wording import (
    UNRELIABLE,
    clean,
    is_unreliable,
    name_text,
    nats_text,
    number_text,
    percent_text,
    plural,
)
from dpaudit.reports.words import joined, said, words
from dpaudit.results.model import ZERO_BUDGET_LOSS, AuditResult


def method(result: AuditResult) -> list[tuple[str, str]]:
    """Say how the evidence was made and which error rates hold, in short: pairs of a name and a paragraph."""
    return [(words(f"method.{key}"), text) for key, text in _of_audit(result)]


def _of_audit(result: AuditResult) -> Iterator[tuple[str, str]]:
    if result.universe is not None:
        yield "pairs", said("method_text.pairs")
    yield "game", said("method_text.game")
    mode = "fixed" if result.mode == "fixed" else "sequential"
    adaptive = said("method_text.evidence_adaptive") if result.mode == "adaptive" else ""
    yield "evidence", joined(said(f"method_text.evidence_{mode}"), adaptive)
    sure = percent_text(result.confidence) + (f" ({UNRELIABLE})" if is_unreliable(result) else "")
    yield "rate", said("method_text.rate", rate=percent_text(1.0 - result.confidence), split=_split(result), sure=sure)
    powers = (finding.power for finding in result.findings if finding.verdict != "violated")
    power = next((power for power in powers if power is not None), None)
    often, mass = (percent_text(power.probability), number_text(power.event_mass)) if power else ("90%", "0.1")
    yield "found", said("method_text.found", often=often, mass=mass)
    if (band := result.trade_off) is not None:
        facts = {"pair": name_text(band.pair, 60), "score": clean(band.score, 120), "draws": band.draws}
        which = "band" if band.points else "no_band"
        yield "band", said(f"method_text.{which}", **facts, reason=band.reason, rate=percent_text(band.error_rate))
    if (bits := result.floating_point) is not None and bits.pairs:
        yield "bits", said("method_text.bits", rate=percent_text(bits.error_rate))
    yield "verdicts", said("method_text.verdicts", zero=nats_text(ZERO_BUDGET_LOSS))


def _split(result: AuditResult) -> str:
    """Say how the error rate is split over the pairs, as the end of a sentence."""
    shares = sorted({finding.error_share for finding in result.findings if finding.error_share > 0.0})
    if not shares:
        return "."
    whose = "pair" if result.universe is None else "test of a pair"  # one of the table, and one in depth
    least, most = (number_text(share, 3) for share in (shares[0], shares[-1]))
    return said(
        "method_text.split" if len(shares) > 1 else "method_text.split_one", whose=whose, least=least, most=most
    )


def methods(dossier: Dossier) -> tuple[tuple[str, str], ...]:
    """The same of all results, each once; what holds for one audit alone names it."""
    rows: dict[tuple[str, str], list[str]] = {}
    for result in dossier.audits:
        for row in method(result):
            rows.setdefault(row, []).append(clean(subject_of(result.subject), 60))
    found = []
    for (name, text), subjects in rows.items():
        alone = len(subjects) < len(dossier.audits)
        found.append((f"{name} ({', '.join(dict.fromkeys(subjects))})" if alone else name, text))
    for one in dossier.checks:
        facts = {"rate": number_text(one.error_rate), "samples": plural(one.samples, "sample")}
        found.append((words("method.check"), said("method_text.check", **facts)))
    for measured in dossier.utilities:
        facts = {"subject": clean(subject_of(measured.subject), 80), "sure": percent_text(measured.confidence)}
        found.append((words("method.errors"), said("method_text.errors", **facts)))
    if len(dossier.sources) > 1:
        results = plural(len(dossier.sources), "result")
        found.append((words("method.several"), said("method_text.several", results=results)))
    return tuple(dict.fromkeys(found))
