"""The compliance report: a page for somebody who is no expert, the items of an evaluation, then the evidence.

What it says is built here once, as a `Document`; the formats show it. The items are in `items`, the summary's words in
`answers`, and the chapters of the subjects in `chapters`.
"""

from __future__ import annotations

from dpaudit.environment import __version__
from dpaudit.reports import answers, attachments, chapters, first_page, label
from dpaudit.reports.again import STAND_IN
from dpaudit.reports.deployment import TEXTS, Ledger
from dpaudit.reports.document import Block, Code, Document, Facts, Paragraph, Section, Table
from dpaudit.reports.dossier import Dossier, Source, kind_of, subject_of, subjects_of, told
from dpaudit.reports.glossary import TERMS
from dpaudit.reports.items import W3C_EDITION, Item, items
from dpaudit.reports.method import methods
from dpaudit.reports.scope import SOURCE
from dpaudit.reports.scope import subject as audited_text
from dpaudit.reports.wording import clean, headline, number_text, subject_name
from dpaudit.reports.wording import symbol as symbol_of
from dpaudit.reports.words import said, words
from dpaudit.reports.written import UNDATED, date_text
from dpaudit.results.model import AuditResult
from dpaudit.results.utility_result import UtilityResult

LINE = 5_000  # characters of a line that runs findings again


def build(dossier: Dossier, with_items: bool = True) -> Document:
    """The whole report; without items the plain one, of the same chapters."""
    found = items(dossier)
    name = dossier.deployment.name if dossier.deployment is not None else ""
    title = clean(name, 100) if name else answers.subjects_text(dossier)
    first = (_evaluation(found), _declared(dossier, found)) if with_items else ()
    last = (_severity(dossier), _label(dossier), _glossary()) if with_items else ()
    return Document(
        kicker=f"{'Compliance report' if with_items else 'Report'}: {title}. Written {date_text()}.",
        headline=answers.headline(dossier),
        verdict=dossier.verdict,
        summary=(),
        sections=(
            *first,
            *chapters.chapters(dossier),
            *attachments.sections(dossier.attachments),
            _method(dossier),
            _provenance(dossier),
            *last,
        ),
        footer=f"Written by dpaudit {__version__}. It is no statement of conformity with any standard.",
        first=first_page.blocks(dossier, found, to_sign=with_items),
    )


def audit_document(result: AuditResult, path: str = STAND_IN) -> Document:
    """The report of one audit, saved at `path`: the verdict, what it rests on, and what nobody looked at."""
    dossier = Dossier((Source(path or STAND_IN, "", result),))  # no digest: it would take as long as the audit file
    version = clean(str(result.environment.get("dpaudit", "")), 30)
    found = items(dossier)
    return Document(
        kicker=f"Audit of {subject_name(result)}. Report written {date_text()}.",
        headline=headline(result),
        verdict=result.verdict,
        summary=(),
        sections=(
            *chapters.evidence(result, path=path or STAND_IN),
            _evaluation(found, f"Audited: {audited_text(result)}"),
            _method(dossier),
            Section("environment", "Subject, environment and options", (Facts(_environment(result)),)),
        ),
        footer=(
            f"Written {date_text()} by dpaudit {version} from the saved result, which holds every number of this "
            f"page. {UNDATED}"
        ),
        first=chapters.opening(result),
    )


def _environment(result: AuditResult) -> tuple[tuple[str, str], ...]:
    options = {f"option {name}": value for name, value in result.options.items()}
    values = list({**result.subject, **result.environment, **options}.items())[:200]
    return tuple((clean(str(key), 40), _fact(value)) for key, value in values)


def _fact(value: object) -> str:
    is_number = value is None or isinstance(value, bool | int | float)
    return number_text(value) if is_number else clean(value, 200)


def _severity(dossier: Dossier) -> Section:
    return Section("severity", "How bad it is: the rule", first_page.severity_section(dossier))


def _label(dossier: Dossier) -> Section:
    """The label of one page (`dpaudit.reports.label`) as a table."""
    table = Table("Nine categories", ("category", "known how", "text"), label.categories(dossier))
    blocks = (Paragraph(f"{label.head(dossier)}.", "lead"), table, Paragraph(label.SOURCE, "note"))
    return Section("label", "Privacy label", blocks)


def _glossary() -> Section:
    rows = tuple((term, about["text"]) for term, about in TERMS.items())
    return Section("glossary", "Glossary", (Facts(rows, "terms"),))


def _evaluation(found: tuple[Item, ...], audited: str = "") -> Section:
    """The items; of a single audit `audited` says what was, and the other edition is left out."""
    rows = tuple((item.name, item.status, f"{item.sections}: {item.part}", item.evidence) for item in found)
    columns = ("item", "status", "section: subject", "evidence")
    table = Table("Items of the evaluation", columns, rows, marks=tuple(item.status for item in found))
    meanings = Table("What a status means", ("status", "meaning"), tuple(words("statuses").items()))
    others = tuple((item.name, item.status, item.w3c) for item in found if item.w3c)
    also = Table(f"The same items in {W3C_EDITION}", ("item", "status", "section"), others, is_closed=True)
    more: tuple[Block, ...] = (Paragraph(audited),) if audited else (meanings, also)
    blocks = (table, Paragraph(SOURCE, "note"), *more)
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
    facts = {"symbol": symbol, "spent": number_text(budget.spent), "limit": number_text(budget.limit)}
    state = said("declared.over" if budget.is_overspent else "declared.within")
    text = said("declared.budget", **facts, state=state, how=said(f"declared.{how}"))
    rows = tuple((clean(one.name, 120), one.date, number_text(one.spent)) for one in budget.releases)
    table = Table("Budget of the data set over its releases (declared)", ("release", "date", symbol), rows)
    return (Paragraph(text, "lead" if budget.is_overspent else "text"), *([table] if rows else []))


def _method(dossier: Dossier) -> Section:
    return Section("method", "Method, error rates and power", (Facts(methods(dossier)),))


def _provenance(dossier: Dossier) -> Section:
    """Seeds, versions, digests and how to replay."""
    columns = ("file", "kind", "subject", "seed", "runs", "seconds", "verdict")
    rows, marks, digests = [], [], []
    for source in dossier.sources:
        result = source.result
        runs = number_text(result.samples) if isinstance(result, AuditResult | UtilityResult) else number_text(None)
        subject = clean(", ".join(subject_of(one) for one in subjects_of(result)), 80)
        seconds, verdict = number_text(float(result.seconds)), told(result).replace("_", " ")
        name, seed = clean(source.name, 120), clean(str(result.seed), 40)
        rows.append((name, kind_of(result), subject, seed, runs, seconds, verdict))
        marks.append(told(result))
        digests.append((name, source.digest))
    for one in dossier.attachments:
        if one.judged is not None:
            digests.append((clean(one.name, 120), one.digest))
    kind = "HMAC-SHA256, under a key that was not kept" if dossier.is_redacted else "SHA-256"
    blocks: list[Block] = [
        Table("Results that this report was made from", columns, tuple(rows), marks=tuple(marks)),
        Table("Digests of these files", ("file", kind), tuple(digests)),
        Paragraph(f"This report was written {date_text()}. {UNDATED}"),
        Table("Versions and platforms", ("name", "value"), _environments(dossier)),
    ]
    if dossier.is_redacted:
        return Section("provenance", "Provenance", (*blocks, Paragraph(said("provenance.redacted"))))
    again = _again(dossier)
    return Section("provenance", "Provenance, and how to replay" if again else "Provenance", (*blocks, *again))


def _again(dossier: Dossier) -> tuple[Block, ...]:
    """Say how findings are run again: commands, and calls from Python for what no command can do."""
    lines, rest = answers.replays(dossier)
    if not lines:
        return ()
    blocks: list[Block] = [Paragraph(said("provenance.again"))]
    commands = [clean(line.line, LINE) for line in lines if not line.needs]
    blocks += [Code("\n".join(commands))] if commands else []
    for line in lines:
        if line.needs:
            blocks += [Paragraph(f"From Python. {line.needs}"), Code(clean(line.line, LINE))]
    return (*blocks, *(Paragraph(sentence) for sentence in rest))


def _environments(dossier: Dossier) -> tuple[tuple[str, str], ...]:
    found = [(clean(str(k), 40), clean(str(v), 80)) for s in dossier.sources for k, v in s.result.environment.items()]
    return tuple(dict.fromkeys(found))[:60]
