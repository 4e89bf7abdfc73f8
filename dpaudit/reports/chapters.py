"""The chapters of a compliance report: for each subject its losses, curves, evidence, errors, laws and low bits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from dpaudit.conformance.result import CheckRecord, CheckResult
from dpaudit.reports import beside, by_form, curves, doubles, figures, geometry, universe, wording
from dpaudit.reports.apart import apart
from dpaudit.reports.document import Block, Facts, Paragraph, Section, Table
from dpaudit.reports.dossier import Dossier, subject_of
from dpaudit.reports.figures import Figure
from dpaudit.reports.items import status_word
from dpaudit.reports.mass_figure import mass_figure
from dpaudit.reports.wording import VERDICT_WORDS, clean, compared, name_text, number_text, percent_text, plural
from dpaudit.results.model import AuditResult
from dpaudit.results.utility_result import UtilityResult

PAIRS = 20  # rows of the table of a chapter, beside the violated ones
MOST_PAIRS = 200
CHECKS = 300  # rows of a table of checks


def chapters(dossier: Dossier) -> Iterator[Section]:
    """The chapters in the order of the results; ids begin with `s1-`, `s2-` and so on."""
    for place, source in enumerate(dossier.sources, 1):
        prefix, result = f"s{place}", source.result
        if isinstance(result, AuditResult):
            yield from _audit(dossier, result, prefix)
        elif isinstance(result, CheckResult):
            yield from _check(result, prefix)
        else:
            yield _utility(result, prefix)


def _figure(prefix: str, figure: Figure | None) -> Iterator[Figure]:
    """The figure with an id that is unique in the report."""
    if figure is not None:
        yield dataclasses.replace(figure, id=f"{prefix}-{figure.id}")


def _audit(dossier: Dossier, result: AuditResult, prefix: str) -> Iterator[Section]:
    name = wording.subject_name(result)
    title = f"{name}: the claim against what was measured"
    text = wording.plain_summary(result)
    power: list[Block] = [Paragraph(wording.power_sentence(result))] if _is_quiet(result) else []
    power += _figure(prefix, mass_figure(result) if _is_quiet(result) else None)
    if forms := by_form.rows(result):
        power.append(Table("What would have been found, by form", by_form.columns(result), forms))
        power.append(Paragraph(by_form.caption(result), "note"))
    notes = [Paragraph(f"Note: {note}") for note in wording.notes(result)]
    opening: list[Block] = [Paragraph(f"{wording.headline(result)}.", "lead"), Paragraph(text), *power, *notes]
    yield Section(prefix, title, (*opening, Facts(_facts(result))), mark=result.verdict)
    coordinates = dossier.deployment.coordinates if dossier.deployment is not None else {}
    losses: list[Block] = []
    if result.universe is not None:
        rows = tuple(tuple(row[1:]) for row in universe.counts(result.universe))
        losses += [Paragraph(universe.sentence(result)), Table("All pairs", ("verdict", "pairs", "share"), rows)]
        worst = tuple(tuple(universe.cells(row)) for row in result.universe.worst(PAIRS))
        omitted = max(0, result.universe.asked - len(worst))
        losses.append(Table("The worst pairs of the universe", universe.columns(result.universe), worst, omitted))
    else:
        losses += _figure(prefix, figures.heatmap(result))
    losses += _figure(prefix, geometry.atlas(result, coordinates))
    losses += _figure(prefix, figures.scatter(result))
    if not losses:
        losses.append(Paragraph("No pair was asked, so there is nothing to show."))
    if result.findings:
        losses.append(_pairs(result))
    yield Section(f"{prefix}-losses", "Loss against budget", tuple(losses), level=3)
    drawn: list[Block] = [*_figure(prefix, curves.profile(result)), *_figure(prefix, curves.trade_off(result))]
    drawn += _figure(prefix, curves.band(result))
    if not drawn:
        drawn.append(
            Paragraph("No curve: no pair gave an answer, or the claim's profile is not known from the result.")
        )
    yield Section(f"{prefix}-curves", "Privacy profile and trade-off", tuple(drawn), level=3)
    course: list[Block] = list(_figure(prefix, figures.wealth(result)))
    if not course:
        fixed = "In fixed mode all draws are tested together, once: the evidence has no course over time."
        course.append(Paragraph(fixed if result.mode == "fixed" else "No looks were recorded."))
    yield Section(f"{prefix}-evidence", "Evidence over draws", tuple(course), level=3)
    yield _floating_point(result, prefix)
    if result.side_findings:
        rows = tuple(tuple(beside.row(side)) for side in result.side_findings)
        table = Table("Looked at beside the claim", beside.COLUMNS, rows)
        yield Section(f"{prefix}-beside", "Beside the claim", (Paragraph(beside.APART), table), level=3)


def _is_quiet(result: AuditResult) -> bool:
    return result.verdict in ("not_refuted", "inconclusive") and bool(result.findings)


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    sure = "for all pairs, directions, rules and bounds together"
    if wording.is_unreliable(result):
        sure = wording.UNRELIABLE
    worst = result.worst
    differ = apart(worst.x, worst.x_prime) if worst is not None else ""
    return (
        ("Claim", clean(result.claim, 200)),
        *([(f"Worst pair, {name_text(worst.id, 80)}", differ)] if worst is not None and differ else []),
        ("Largest lower bound", str(wording.largest_bound(result))),
        ("Largest ratio of bound to budget", compared(result.ratio_lower, 1.0)[0]),
        ("Confidence", f"{percent_text(result.confidence)}, {sure}"),
        ("Pairs", f"{wording.asked_count(result):,} ({wording.verdict_count(result, 'violated'):,} violated, "
                  f"{len(result.not_asked):,} not asked)"),
        ("Runs of the mechanism", number_text(result.samples)),
        ("Mode, seed", f"{clean(result.mode, 20)}, {clean(str(result.seed), 40)}"),
        ("Target, fingerprint", clean(f"{result.subject.get('target') or 'no target'}, "
                                      f"{result.subject.get('fingerprint')}", 200)),
    )  # fmt: skip


def _pairs(result: AuditResult) -> Table:
    count = min(MOST_PAIRS, max(PAIRS, len(result.violated)))
    rows, marks, kind = [], [], wording.evidence_name(result)
    for finding in result.ranked()[:count]:
        lower, budget = compared(finding.parameter_lower, finding.parameter_budget)
        word, power = VERDICT_WORDS[finding.verdict], wording.power_text(finding)
        evidence = wording.evidence_cell(finding, kind)
        rows.append((name_text(finding.id, 80), lower, budget, wording.ratio_text(finding), word, evidence, power))
        marks.append(finding.verdict)
    parameter = wording.symbol(wording.parameter_of(result))
    columns = ("pair", f"lower bound on {parameter}", "budget", "ratio", "verdict", kind,
               "would have found (nats)")  # fmt: skip
    return Table("Pairs, the worst first", columns, tuple(rows), len(result.findings) - len(rows), tuple(marks))


def _floating_point(result: AuditResult, prefix: str) -> Section:
    blocks: list[Block] = [Paragraph(text) for text in doubles.paragraphs(result)]
    rows = tuple(tuple(row) for row in doubles.rows(result)[:PAIRS])
    if rows:
        omitted = len(doubles.rows(result)) - len(rows)
        blocks.append(Table("Examined pairs", doubles.COLUMNS, rows, omitted, is_closed=True))
    return Section(f"{prefix}-doubles", doubles.headline(result), tuple(blocks), level=3)


def _check(result: CheckResult, prefix: str) -> Iterator[Section]:
    kinds: tuple[tuple[str, str, Callable[[CheckRecord], bool]], ...] = (
        ("laws", "Laws that follow from the claim", lambda record: record.name.startswith("law_")),
        ("suite", "What any mechanism must do", lambda record: not record.name.startswith("law_")),
    )
    names = ", ".join(clean(str(mechanism["name"]), 60) for mechanism in result.mechanisms[:5])
    text = (
        f"{plural(len(result.records), 'check')}, at an error rate of {number_text(result.error_rate)} for the list of "
        "one mechanism. A check that does not apply says why."
    )
    yield Section(prefix, f"{names}: laws and conformance", (Paragraph(text),), mark=result.verdict)
    for key, title, belongs in kinds:
        records = [record for record in result.records if belongs(record)]
        if records:
            table = _records(plural(len(records), "check"), records, len(result.mechanisms) > 1)
            yield Section(f"{prefix}-{key}", title, (table,), level=3)


def _records(title: str, records: list[CheckRecord], several: bool) -> Table:
    rows = []
    for record in records[:CHECKS]:
        remark = f"{record.message} Known: {record.reason}" if record.reason else record.message
        who = f"{clean(record.mechanism, 60)}: " if several else ""
        demand = f"{who}{clean(record.demands, 160)}"
        rows.append((clean(record.name, 80), status_word(record.status), demand, clean(remark, 300)))
    marks = tuple(record.status for record in records[:CHECKS])
    columns = ("check", "status", "a mechanism …", "remark")
    return Table(title, columns, tuple(rows), len(records) - len(rows), marks)


def _utility(result: UtilityResult, prefix: str) -> Section:
    name = clean(subject_of(result.subject), 80)
    bounds = tuple((str(place), clean(bound, 300)) for place, bound in enumerate(result.bounds, 1))
    broken = [f for f in result.findings if f.verdict == "error"]
    blocks: list[Block] = [
        Paragraph(
            f"{plural(len(result.findings), 'test')} of {plural(len(result.bounds), 'stated error bound')}, together "
            f"at {percent_text(result.confidence)} confidence, in {plural(result.samples, 'run')} of the mechanism."
        ),
        Table("Stated bounds", ("number", "bound"), bounds[:100], max(0, len(bounds) - 100)),
        *_figure(prefix, geometry.errors(result)),
    ]
    if broken:
        rows = tuple((clean(f.bound, 80), clean(f.input_id, 60), clean(f.message, 300)) for f in broken[:50])
        blocks.append(Table("What broke", ("bound", "input", "message"), rows, len(broken) - len(rows)))
    return Section(prefix, f"{name}: errors against the stated bounds", tuple(blocks), mark=result.told)
