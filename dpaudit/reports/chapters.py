"""The chapters of a report: for each result its opening, then its evidence, each said once for every format.

An audit has its losses, curves, evidence over draws, the worst pair, all pairs, low bits and what was looked at beside
the claim; a run of the conformance suite its checks; a test of error bounds its errors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from dpaudit.conformance.result import CheckRecord, CheckResult
from dpaudit.reports import all_pairs, brief, by_form, curves, figures, side_texts, wording
from dpaudit.reports.cases import STATUSES
from dpaudit.reports.document import Block, Facts, Paragraph, Section, Table
from dpaudit.reports.dossier import Dossier, subject_of
from dpaudit.reports.drawing import Figure
from dpaudit.reports.wording import clean, name_text, number_text, plural, rate_text, status_word, sure_text
from dpaudit.reports.words import joined, said
from dpaudit.results.model import AuditResult, Finding
from dpaudit.results.utility_result import UtilityResult


def chapters(dossier: Dossier, is_alone: bool = False) -> Iterator[Section]:
    """The chapters in the order of the results; ids begin with `s1-`, `s2-` and so on, unless there is but one."""
    coordinates = dossier.deployment.coordinates if dossier.deployment is not None else {}
    for place, source in enumerate(dossier.sources, 1):
        prefix, result = "" if is_alone else f"s{place}", source.result
        if isinstance(result, AuditResult):
            title = f"{wording.subject_name(result)}: the claim against what was measured"
            lead = Paragraph(f"{wording.headline(result)}.", "lead")
            chapter = [
                Section("", title, (lead, *opening(result)), mark=result.verdict),
                *evidence(result, coordinates),
            ]
        else:
            chapter = list(_check_sections(result)) if isinstance(result, CheckResult) else [_utility(result)]
        for part, section in enumerate(chapter):
            blocks = (_within(f"{prefix}-" * bool(prefix), block) for block in section.blocks)
            name = "-".join(filter(None, (prefix, section.id)))
            yield dataclasses.replace(section, id=name, blocks=tuple(blocks), level=3 if part else 2)


def raised(chapter: Sequence[Section]) -> tuple[tuple[Block, ...], list[Section]]:
    """The only chapter of a report: its opening for page one, whose headline says its lead, and its other sections."""
    first, *others = chapter
    opening = tuple(one for one in first.blocks if not (isinstance(one, Paragraph) and one.kind == "lead"))
    return opening, [dataclasses.replace(one, level=2) for one in others]


def _within(prefix: str, block: Block) -> Block:
    """A block of a report of several results: a figure has an id of its own."""
    return dataclasses.replace(block, id=f"{prefix}{block.id}") if isinstance(block, Figure) else block


def _figures(*drawn: Figure | None) -> list[Block]:
    return [figure for figure in drawn if figure is not None]


# --- An audit -------------------------------------------------------------------------------------------------------


def opening(result: AuditResult) -> tuple[Block, ...]:
    """Notes on an audit, and the first picture; of one that refuted nothing, what would have been found."""
    is_quiet = result.verdict in ("not_refuted", "inconclusive") and (result.findings or result.universe)
    drawn = _figures(figures.witness_figure(result), by_form.mass_figure(result) if is_quiet else None)
    return (*(Paragraph(f"Note: {note}") for note in wording.notes(result)), *drawn)


def evidence(result: AuditResult, coordinates: Mapping[str, tuple[float, float]] = {}) -> Iterator[Section]:
    """The sections of an audit below its opening; `coordinates` say by name where inputs lie on a map."""

    broken = [finding for finding in result.findings if finding.verdict == "error"]
    if broken:
        messages = [(name_text(one.id, 80), clean(one.message or "no message", 500)) for one in broken]
        table = Table("Errors", ("pair", "message"), messages)
        yield Section("errors", "What broke", (table,))
    if forms := by_form.blocks(result):
        yield Section("found", "What would have been found", tuple(forms))
    if result.universe is not None:
        yield Section("all-pairs", "All pairs", tuple(all_pairs.blocks(result)))
    matrix = figures.heatmap(result) if result.universe is None else None
    if losses := _figures(matrix, figures.atlas(result, coordinates), figures.bounds(result)):
        yield Section("losses", "Loss against budget", tuple(losses))
    if drawn := _figures(curves.profile(result), curves.trade_off(result), curves.band(result)):
        yield Section("curves", "Privacy profile and trade-off", tuple(drawn))
    if course := _figures(figures.wealth(result)):
        yield Section("evidence", "Evidence over draws", tuple(course))
    worst = result.worst
    if worst is not None and worst.verdict != "error":
        title = f"The worst pair: {name_text(worst.id, 120)}"
        facts = tuple((name.capitalize(), text) for name, text in brief.finding_facts(result, worst))
        yield Section("worst", title, (Facts(facts),), mark=worst.verdict)
    yield Section("pairs", "Pairs, the worst first", tuple(_pairs(result)))
    if beside := side_texts.beside(result):
        looked = result.floating_point
        apart = joined(said("sides.apart"), said("sides.bits") if looked is not None else "")
        seen = Facts(tuple(map(side_texts.fact, beside)))
        tables = [side_texts.bits_table(looked)] if looked is not None and looked.pairs else []
        yield Section("beside", "Beside the claim", (Paragraph(apart), seen, *tables))


def _pairs(result: AuditResult) -> Iterator[Block]:
    """The pairs, then those of which the claim asks nothing."""
    if not result.findings:
        yield Paragraph("None was run.")
    parameter, kind = wording.parameter_of(result), wording.evidence_name(result)
    columns = (*wording.pair_heads(parameter), kind, "draws in all", "would have found (nats)")
    if result.findings:
        ranked = result.ranked()
        marks, rows = [one.verdict for one in ranked], [_row(one, kind) for one in ranked]
        yield Table("Pairs, the worst first", columns, rows, marks=marks)
    if result.not_asked:
        names = [(name_text(name, 80),) for name in result.not_asked]
        title = f"Pairs of which the claim asks nothing ({len(names):,})"
        yield Table(title, ("pair",), names, is_closed=True)


def _row(finding: Finding, kind: str) -> tuple[str, ...]:
    found = wording.found_text(finding.verdict, None if finding.power is None else finding.power.detectable)
    rest = (wording.evidence_cell(finding, kind), number_text(finding.samples), found)
    bounds = finding.parameter_lower, finding.parameter_budget, finding.ratio_lower
    return (*wording.pair_row(finding.id, *bounds, finding.verdict), *rest)


# --- Checks, and errors against stated bounds -----------------------------------------------------------------------


def _check_sections(result: CheckResult) -> Iterator[Section]:
    kinds: tuple[tuple[str, str, Callable[[CheckRecord], bool]], ...] = (
        ("laws", "Laws that follow from the claim", lambda record: record.name.startswith("law_")),
        ("suite", "What any mechanism must do", lambda record: not record.name.startswith("law_")),
    )
    names = ", ".join(clean(str(mechanism["name"]), 60) for mechanism in result.mechanisms[:5])
    text = said("chapter.checks", checks=plural(len(result.records), "check"), rate=rate_text(result.error_rate))
    yield Section("", f"{names}: laws and conformance", (Paragraph(text),), mark=result.verdict)
    for key, title, belongs in kinds:
        records = [record for record in result.records if belongs(record)]
        if records:
            table = _records(plural(len(records), "check"), records, len(result.mechanisms) > 1)
            grave = next((word for word in ("violated", "error") if word in (table.marks or ())), "")
            yield Section(key, title, (table,), mark=grave)


def _records(title: str, records: list[CheckRecord], several: bool) -> Table:
    rows = []
    records = sorted(records, key=lambda record: STATUSES.index(record.status))
    for record in records:
        remark = f"{record.message} Known: {record.reason}" if record.reason else record.message
        demand = f"{f'{clean(record.mechanism, 60)}: ' if several else ''}{clean(record.demands, 160)}"
        rows.append((clean(record.name, 80), status_word(record.status), demand, clean(remark, 300)))
    marks = [record.status for record in records]
    return Table(title, ("check", "status", "a mechanism …", "remark"), rows, marks=marks)


def _utility(result: UtilityResult) -> Section:
    name = clean(subject_of(result.subject), 80)
    bounds = [(str(place), clean(bound, 300)) for place, bound in enumerate(result.bounds, 1)]
    broken = [f for f in result.findings if f.verdict == "error" or f.message]
    facts = {"tests": plural(len(result.findings), "test"), "bounds": plural(len(bounds), "stated error bound")}
    text = said("chapter.errors", **facts, sure=sure_text(result.confidence), runs=plural(result.samples, "run"))
    stated = Table("Stated bounds", ("number", "bound"), bounds)
    blocks: list[Block] = [Paragraph(text), stated, *_figures(figures.errors(result))]
    if broken:
        rows = [
            (clean(f.bound, 80), clean(f.input_id, 60), wording.excerpt(f.message, side_texts.SUMMARY)) for f in broken
        ]
        blocks.append(Table("What gave no answer", ("bound", "input", "message"), rows))
    return Section("", f"{name}: errors against the stated bounds", tuple(blocks), mark=result.status)
