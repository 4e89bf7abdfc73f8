"""Reports of results as documents: a page for somebody who is no expert, the items of an evaluation, the evidence.

What a report says is built here once, as a `Document`; the formats show it. The one for compliance has what is
declared and a block to sign beside. The items are in `items`, the words of page one in `answers`, and the
chapters of the subjects in `chapters`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from dpaudit.environment import __version__
from dpaudit.reports import attachments, chapters, first_page, scores, wording
from dpaudit.reports.deployment import TEXTS, Ledger
from dpaudit.reports.difference import meanings, settings_texts
from dpaudit.reports.document import Block, CodeBlock, Document, Facts, Paragraph, Section, Table
from dpaudit.reports.dossier import Dossier, kind_of, status_of, subject_of, subjects_of
from dpaudit.reports.html import TERMS
from dpaudit.reports.items import SOURCE, W3C_EDITION, Item, items
from dpaudit.reports.replay_command import STAND_IN
from dpaudit.reports.severity import RULE
from dpaudit.reports.wording import clean, date_text, number_text, plural, rate_text, sure_text
from dpaudit.reports.wording import symbol as symbol_of
from dpaudit.reports.words import joined, said, words
from dpaudit.results.model import ZERO_BUDGET_LOSS, AuditResult
from dpaudit.results.utility_result import UtilityResult
from dpaudit.scores.result import ScoresResult

LINE = 5_000  # characters of a line that runs findings again


def document_of(result: Any, profile: str = "plain", path: str = "") -> Document:
    """The document of a result, which is saved at `path`: what every format for people shows."""
    if isinstance(result, Document):
        return result
    is_plain = profile == "plain"
    dossier = Dossier.alone(result) if is_plain and isinstance(result, AuditResult) else dossier_of(result)
    if len(dossier.sources) == 1 and (path or not dossier.sources[0].name):
        dossier = dataclasses.replace(dossier, sources=(dossier.sources[0].named(path or STAND_IN),))
    return build(dossier, to_sign=not is_plain)


def dossier_of(result: Any) -> Dossier:
    """The dossier of a result in memory."""
    if isinstance(result, Dossier):
        return result
    return scores.scores_dossier(result) if isinstance(result, ScoresResult) else Dossier.of(result)


def build(dossier: Dossier, to_sign: bool = True) -> Document:
    """The whole report; the plain one is without what is declared, and without a block to sign.

    The plain report of one result has the opening of its chapter on page one, and its other parts as chapters.
    """
    found, how = items(dossier), methods(dossier)
    is_alone = not to_sign and len(dossier.sources) + len(dossier.attachments) == 1
    told = [*chapters.chapters(dossier, is_alone), *attachments.sections(dossier.attachments)]
    opening, told = chapters.raised(told) if is_alone else (None, told)
    evaluation = _evaluation(found, to_sign)
    severity = Section("severity", "How bad it is: the rule", (Paragraph(RULE),))
    terms = Facts(tuple((term, about["text"]) for term, about in TERMS.items()), "terms")
    return Document(
        kicker=f"{'Compliance report' if to_sign else 'Report'}: {first_page.title(dossier)}. Written {date_text()}.",
        headline=first_page.headline(dossier),
        verdict=first_page.mark(dossier),
        sections=(
            *((evaluation, _declared(dossier, found), *told) if to_sign else (*told, evaluation)),
            *([Section("method", "Method, error rates and power", (Facts(how),))] if how else []),
            _provenance(dossier),
            *((severity,) if to_sign else ()),
            Section("glossary", "Glossary", (terms,)),
        ),
        footer=said("provenance.written", version=__version__),
        first=first_page.blocks(dossier, opening, to_sign),
    )


def _evaluation(found: tuple[Item, ...], is_explained: bool) -> Section:
    rows = tuple((item.name, item.status, f"{item.sections}: {item.part}", item.evidence) for item in found)
    columns = ("item", "status", "section: subject", "evidence")
    table = Table("Items of the evaluation", columns, rows, marks=tuple(item.status for item in found))
    statuses = tuple(words("statuses").items())
    meanings = Table("What a status means", ("status", "meaning"), statuses, is_closed=not is_explained)
    others = tuple((item.name, item.status, item.w3c) for item in found if item.w3c)
    also = Table(f"The same items in {W3C_EDITION}", ("item", "status", "section"), others, is_closed=True)
    blocks = (table, Paragraph(SOURCE, "note"), Paragraph(said("evidence.deployed")), meanings, also)
    return Section("items", "What was tested, declared, and not assessed", blocks)


def _declared(dossier: Dossier, found: tuple[Item, ...]) -> Section:
    deployment = dossier.deployment
    if deployment is None:
        return Section("declared", "What was declared", (Paragraph(said("declared.nothing")),))
    facts = [(name.replace("_", " "), clean(getattr(deployment, name), 400)) for name in (*TEXTS, "published")]
    rows = [*((name, text) for name, text in facts if text), *((i.name, i.declared) for i in found if i.declared)]
    text = f"Quoted from {clean(deployment.source, 200)}. None of it was checked."
    table = Table("Declarations", ("item", "declared, not checked"), tuple(rows))
    blocks = (Paragraph(text), table) if rows else (Paragraph(text),)
    return Section("declared", "What was declared", (*blocks, *_ledger(deployment.budget)))


def _ledger(budget: Ledger | None) -> tuple[Block, ...]:
    """The budget of the data set and what its releases spent, as declared."""
    if budget is None:
        return ()
    symbol, how = symbol_of(budget.parameter), "squares" if budget.parameter == "mu" else "sums"
    state = said("declared.over" if budget.is_overspent else "declared.within")
    text = said("declared.budget", symbol=symbol, budget=budget, state=state, how=said(f"declared.{how}"))
    rows = tuple((clean(one.name, 120), one.date, number_text(one.spent)) for one in budget.releases)
    table = Table("Budget of the data set over its releases (declared)", ("release", "date", symbol), rows)
    return (Paragraph(text, "lead" if budget.is_overspent else "text"), *([table] if rows else []))


def _provenance(dossier: Dossier) -> Section:
    """Seeds, settings, versions, digests and how to replay."""
    columns = ("file", "kind", "subject", "seed", "runs", "seconds", "verdict")
    rows, marks, digests, settings = [], [], [], list[Block]()
    for source in dossier.sources:
        result = source.result
        runs = number_text(result.samples) if isinstance(result, AuditResult | UtilityResult) else number_text(None)
        subject = clean(", ".join(subject_of(one) for one in subjects_of(result)), 80)
        seconds, verdict = number_text(float(result.seconds)), wording.status_word(status_of(result))
        name, seed = clean(source.name, 120), clean(str(result.seed), 40)
        rows.append((name, kind_of(result), subject, seed, runs, seconds, verdict))
        marks.append(status_of(result))
        digests.append((name, source.digest))
        texts = [
            (clean(key, 60), clean(text, 200), meanings(kind_of(result)).get(key, ""))
            for key, text in settings_texts(result).items()
            if text not in ("", "None", "[]", "()")
        ]
        columns_of = ("setting", "value", "what it is")
        settings.append(Table(f"Settings of {name}", columns_of, texts, is_closed=len(dossier.sources) > 1))
    for one in dossier.judged:
        versions = [(clean(key, 60), clean(text, 200)) for key, text in vars(one.result).get("environment", {}).items()]
        digests.append((clean(one.name, 120), one.digest))
        settings += [Table(f"Versions of {clean(one.name, 120)}", ("name", "value"), versions)] if versions else []
    kind = "HMAC-SHA256, under a key that was not kept" if dossier.is_redacted else "SHA-256"
    known = tuple(row for row in digests if row[1])  # a result that came from no file may have none
    blocks: list[Block] = [
        *([Table("Results that this report was made from", columns, tuple(rows), marks=tuple(marks))] if rows else []),
        *([Table("Digests of these files", ("file", kind), known)] if known else []),
        Paragraph(wording.UNDATED),
        *settings,
    ]
    if dossier.is_redacted:
        return Section("provenance", "Provenance", (*blocks, Paragraph(said("provenance.redacted"))))
    again = _again(dossier)
    return Section("provenance", "Provenance, and how to replay" if again else "Provenance", (*blocks, *again))


def _again(dossier: Dossier) -> tuple[Block, ...]:
    """Say how findings are run again: commands, and calls from Python for what no command can do."""
    lines, rest = first_page.replays(dossier)
    if not lines:
        return ()
    blocks: list[Block] = [Paragraph(said("provenance.again"))]
    commands = [clean(line.line, LINE) for line in lines if not line.needs]
    blocks += [CodeBlock("\n".join(commands))] if commands else []
    for line in lines:
        if line.needs:
            blocks += [Paragraph(f"From Python. {line.needs}"), CodeBlock(clean(line.line, LINE))]
    return (*blocks, *(Paragraph(sentence) for sentence in rest))


def _of_audit(result: AuditResult) -> Iterator[tuple[str, str]]:
    """Say how the evidence was made and which error rates hold, in short: keys of `method` and paragraphs."""
    if result.universe is not None:
        yield "pairs", said("method_text.pairs")
    yield "game", said("method_text.game")
    mode = "fixed" if result.mode == "fixed" else "sequential"
    adaptive = said("method_text.evidence_adaptive") if result.mode == "adaptive" else ""
    yield "evidence", joined(said(f"method_text.evidence_{mode}"), adaptive)
    sure = sure_text(result.confidence) + (f" ({wording.UNRELIABLE})" if wording.is_unreliable(result) else "")
    yield "rate", said("method_text.rate", rate=rate_text(1.0 - result.confidence), split=_split(result), sure=sure)
    powers = (finding.power for finding in result.findings if finding.verdict != "violated")
    power = next((power for power in powers if power is not None), None)
    often, mass = (wording.percent_text(power.probability), number_text(power.event_mass)) if power else ("90%", "0.1")
    yield "found", said("method_text.found", often=often, mass=mass)
    if (band := result.trade_off) is not None:
        facts = {"pair": wording.name_text(band.pair, 60), "score": clean(band.score, 120), "draws": band.draws}
        which = "band" if band.points else "no_band"
        yield "band", said(f"method_text.{which}", **facts, reason=band.reason, rate=rate_text(band.error_rate))
    if (bits := result.floating_point) is not None and bits.pairs:
        yield "bits", said("method_text.bits", rate=rate_text(bits.error_rate))
    yield "verdicts", said("method_text.verdicts", zero=wording.nats_text(ZERO_BUDGET_LOSS))


def _split(result: AuditResult) -> str:
    """Say how the error rate is split over the pairs, as the end of a sentence."""
    shares = sorted({finding.error_share for finding in result.findings if finding.error_share > 0.0})
    if not shares:
        return "."
    whose = "pair" if result.universe is None else "test of a pair"  # one of the table, and one in depth
    least, most = rate_text(shares[0]), rate_text(shares[-1])
    return said(
        "method_text.split" if len(shares) > 1 else "method_text.split_one", whose=whose, least=least, most=most
    )


def methods(dossier: Dossier) -> tuple[tuple[str, str], ...]:
    """Say how the evidence of all results was made, each once; what holds for one audit alone names it."""
    rows: dict[tuple[str, str], list[str]] = {}
    for result in dossier.audits:
        for key, text in _of_audit(result):
            rows.setdefault((words(f"method.{key}"), text), []).append(wording.subject_name(result, 60))
    found = []
    for (name, text), subjects in rows.items():
        alone = len(subjects) < len(dossier.audits)
        found.append((f"{name} ({', '.join(dict.fromkeys(subjects))})" if alone else name, text))
    for one in dossier.checks:
        facts = {"rate": rate_text(one.error_rate), "samples": plural(one.samples, "sample")}
        found.append((words("method.check"), said("method_text.check", **facts)))
    for measured in dossier.utilities:
        facts = {"subject": clean(subject_of(measured.subject), 80), "sure": sure_text(measured.confidence)}
        found.append((words("method.errors"), said("method_text.errors", **facts)))
    if len(dossier.sources) > 1:
        results = plural(len(dossier.sources), "result")
        found.append((words("method.several"), said("method_text.several", results=results)))
    return tuple(dict.fromkeys(found))
