"""What changed between two saved results of one kind: verdicts, bounds, pairs, settings, versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.conformance.result import CheckResult
from dpaudit.errors import UsageError
from dpaudit.reports import beside, wording
from dpaudit.reports.document import Block, Document, Paragraph, Section, Table
from dpaudit.reports.dossier import Result, Source, kind_of
from dpaudit.reports.intoto import settings_of
from dpaudit.reports.wording import clean, lower_text, number_text, plural
from dpaudit.results import VERDICTS, AuditResult
from dpaudit.version import __version__

ROWS = 200
RATIO_CHANGE = 0.05  # a smaller change of the ratio of a pair is not listed


def difference(old: Source, new: Source) -> Document:
    """The document that says what changed.

    Raises
    ------
    UsageError
        If the two are not of one kind.
    """
    before, after = old.result, new.result
    if kind_of(before) != kind_of(after):
        raise UsageError(f"diff must be between results of one kind, got {kind_of(before)} and {kind_of(after)}.")
    word = after.verdict.replace("_", " ")
    same = before.verdict == after.verdict
    headline = f"Still {word}" if same else f"From {before.verdict.replace('_', ' ')} to {word}"
    sections = [_settings(before, after), _cases(before, after)]
    if isinstance(before, AuditResult) and isinstance(after, AuditResult):
        sections += [_bounds(before, after), _beside(before, after)]
    summary = (("What changed?", tuple(_sentences(sections))),)
    return Document(
        kicker=f"Difference: {clean(old.name, 120)} → {clean(new.name, 120)}",
        headline=headline,
        verdict=after.verdict,
        summary=summary,
        sections=tuple(sections),
        footer=f"Written by dpaudit {__version__}. Bounds move by chance from run to run: other seeds, other bounds.",
    )


def _sentences(sections: list[Section]) -> list[str]:
    found = []
    for section in sections:
        count = sum(len(block.rows) + block.omitted for block in section.blocks if isinstance(block, Table))
        found.append(f"{section.title}: {plural(count, 'change') if count else 'no change'}.")
    return found


def _table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], empty: str) -> Block:
    if not rows:
        return Paragraph(empty)
    return Table(title, columns, tuple(rows[:ROWS]), max(0, len(rows) - ROWS))


def _flat(values: Any, prefix: str = "") -> dict[str, str]:
    """The leaves of nested mappings as texts, by their dotted names."""
    if not isinstance(values, Mapping):
        return {prefix: clean(values if isinstance(values, str) else repr(values), 200)}
    found: dict[str, str] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix}.{key}" if prefix else str(key))
    return found


def _settings(before: Result, after: Result) -> Section:
    """Subject, claim, options, seed and versions."""
    sides = []
    for result in (before, after):
        subject = {m["name"]: m for m in result.mechanisms} if isinstance(result, CheckResult) else result.subject
        sides.append(_flat({"subject": subject, **settings_of(result)}))
    old, new = sides
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    rows = [(clean(name, 80), old.get(name, wording.MISSING), new.get(name, wording.MISSING)) for name in names]
    table = _table("Settings", ("name", "old", "new"), rows, "The same subject, claim, options, seed and versions.")
    return Section("settings", "Subject, settings and versions", (table,))


def _statuses(result: Result) -> dict[str, str]:
    """The status of everything that was tested, by a name that is the same in every run."""
    if isinstance(result, AuditResult):
        return {finding.id: finding.verdict for finding in result.findings}
    if isinstance(result, CheckResult):
        return {f"{record.mechanism}: {record.name}": record.status for record in result.records}
    return {f"{finding.bound} on {finding.input_id}": finding.verdict for finding in result.findings}


def _cases(before: Result, after: Result) -> Section:
    old, new = _statuses(before), _statuses(after)
    noun = {"audit": "pair", "check": "check", "utility": "bound and input"}[kind_of(before)]

    def gravity(name: str) -> int:
        return VERDICTS.index(new[name]) if new[name] in VERDICTS else len(VERDICTS)

    moved = sorted((name for name in new if name in old and old[name] != new[name]), key=gravity)
    rows = [(clean(name, 120), old[name].replace("_", " "), new[name].replace("_", " ")) for name in moved]
    rows += [(clean(name, 120), wording.MISSING, new[name].replace("_", " ")) for name in new if name not in old]
    rows += [(clean(name, 120), old[name].replace("_", " "), wording.MISSING) for name in old if name not in new]
    empty = "The same were tested, with the same verdicts."
    table = _table("Changed, added and removed", (noun, "old", "new"), rows, empty)
    return Section("verdicts", "Verdicts; added and removed", (table,))


def _bounds(before: AuditResult, after: AuditResult) -> Section:
    old = {finding.id: finding for finding in before.findings}
    changes = []
    for finding in after.findings:
        earlier = old.get(finding.id)
        if earlier is None:
            continue
        first, second = earlier.ratio_lower or 0.0, finding.ratio_lower or 0.0
        if earlier.parameter_budget != finding.parameter_budget or not abs(second - first) <= RATIO_CHANGE:
            changes.append((second - first, earlier, finding))
    changes.sort(key=lambda change: -change[0])
    rows = [
        (
            clean(finding.id, 80),
            number_text(earlier.parameter_budget),
            number_text(finding.parameter_budget),
            lower_text(earlier.parameter_lower),
            lower_text(finding.parameter_lower),
            wording.ratio_text(earlier),
            wording.ratio_text(finding),
        )
        for _, earlier, finding in changes
    ]
    columns = ("pair", "budget, old", "budget, new", "bound, old", "bound, new", "ratio, old", "ratio, new")
    empty = f"No budget changed, and no ratio of bound to budget by more than {RATIO_CHANGE:g}."
    return Section("bounds", "Budgets and bounds", (_table("Bounds", columns, rows, empty),))


def _beside(before: AuditResult, after: AuditResult) -> Section:
    sides = []
    for result in (before, after):
        found = {beside.title(side): beside.WORDS[side.status] for side in result.side_findings}
        doubles = result.floating_point
        found["Floating point"] = doubles.verdict.replace("_", " ") if doubles is not None else "not examined"
        sides.append(found)
    old, new = sides
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    rows = [(name, old.get(name, wording.MISSING), new.get(name, wording.MISSING)) for name in names]
    table = _table("Beside the claim", ("looked at", "old", "new"), rows, "The same findings beside the claim.")
    return Section("beside", "Beside the claim", (table,))
