"""Difference of two saved results of one kind: verdicts, bounds, pairs, settings, versions."""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.conformance.result import CheckResult
from dpaudit.environment import __version__
from dpaudit.errors import UsageError
from dpaudit.reports import wording
from dpaudit.reports.cases import STATUSES, cases
from dpaudit.reports.document import Document, Paragraph, Section, Table
from dpaudit.reports.dossier import Dossier, Result, Source, kind_of, status_of, subject_of, subjects_of
from dpaudit.reports.intoto import settings_of
from dpaudit.reports.wording import clean, compared, date_text, name_text, number_text, plural, status_word
from dpaudit.results.all_pairs_table import AllPairsTable
from dpaudit.results.model import VERDICTS, AuditResult, Finding
from dpaudit.results.saved_inputs import is_redacted, saved_input
from dpaudit.results.utility_result import UtilityResult

RATIO_CHANGE = 0.05  # a smaller change of the ratio of a pair is not listed
SESSIONS = {"night": "session", "nights": "sessions"}  # of options, by their names in files
ENTRY = r"(?m)^(\w[\w, ]*?)(?: :.*)?\n((?: {4}.*(?:\n|$))+)"  # of a docstring: names, and what is said of them


def difference(old: Source, new: Source) -> Document:
    """The document that says what changed.

    `UsageError` if the two are not of one kind.
    """
    before, after = old.result, new.result
    if kind_of(before) != kind_of(after):
        raise UsageError(f"diff must be between results of one kind, got {kind_of(before)} and {kind_of(after)}.")
    earlier, word = (status_word(status_of(result)) for result in (before, after))
    headline = f"Still {word}" if earlier == word else f"From {earlier} to {word}"
    sections = [_settings(before, after), _cases(before, after)]
    if isinstance(before, AuditResult) and isinstance(after, AuditResult):
        sections += [_inputs(before, after), _bounds(before, after)]
    other = other_mechanism(before, after)
    if other:
        headline = f"Different mechanisms: {headline[0].lower()}{headline[1:]}"
    answers = map(Paragraph, (*other, *_sentences(sections)))
    return Document(
        kicker=f"Difference: {clean(old.name, 120)} → {clean(new.name, 120)}. Written {date_text()}.",
        headline=headline,
        verdict=status_of(after),
        sections=tuple(sections),
        footer=f"Written by dpaudit {__version__}. Bounds move by chance from run to run: other seeds, other bounds.",
        first=(Paragraph("What changed?", "lead"), *answers),
    )


def other_mechanism(before: Result, after: Result) -> tuple[str, ...]:
    """Say why the two results are not of one mechanism, or nothing; the same target or name is the same mechanism.

    Its code may have changed: then the fingerprints differ, which the settings show.
    """
    names = [[str(one.get("target") or subject_of(one)) for one in subjects_of(result)] for result in (before, after)]
    if not set(names[0]).isdisjoint(names[1]):
        return ()
    first, second = (clean(", ".join(side[:3]), 120) or "none" for side in names)
    text = f"These are results of different mechanisms, {first} and {second}: what differs is no change of one of them."
    return (text,)


def _sentences(sections: list[Section]) -> list[str]:
    found = []
    for section in sections:
        count = sum(len(block.rows) + block.omitted for block in section.blocks if isinstance(block, Table))
        found.append(f"{section.title}: {plural(count, 'change') if count else 'no change'}.")
    return found


def settings_texts(result: Result) -> dict[str, str]:
    """Subject, claim, options, seed and versions, as texts in full by their names in words."""
    subject = {m["name"]: m for m in result.mechanisms} if isinstance(result, CheckResult) else result.subject
    settings = {name: value for name, value in settings_of(result).items() if name not in ("subjects", "pairs")}
    options, versions = settings.pop("options", {}), settings.pop("environment")
    options = {SESSIONS.get(str(name), name): value for name, value in options.items()}
    return _flat({"subject": subject, **settings, **options, **versions})


def _flat(values: Any, prefix: str = "") -> dict[str, str]:
    """The leaves of nested mappings."""
    if not isinstance(values, Mapping):
        shown = {True: "yes", False: "no"}[values] if isinstance(values, bool) else repr(values)
        return {prefix: values if isinstance(values, str) else shown}
    found: dict[str, str] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix} {key}".strip().replace("_", " "))
    return found


@functools.cache
def meanings(kind: str) -> Mapping[str, str]:
    """Sentences on what a kind of result is asked and holds, by names in words: the first ones of its docstrings."""
    from dpaudit.audits.auditing import audit
    from dpaudit.audits.utility import audit_utility
    from dpaudit.conformance.running import check

    of: Mapping[str, tuple[Any, ...]] = {
        "audit": (AuditResult, audit), "check": (CheckResult, check), "utility": (UtilityResult, audit_utility),
    }  # fmt: skip
    entries = [entry for one in of[kind] for entry in re.findall(ENTRY, inspect.getdoc(one) or "")]
    sentences = [(names, " ".join(text.replace("`", "").split()).partition(". ")[0]) for names, text in entries]
    told = [(names, text.removesuffix(".")) for names, text in sentences if not text.startswith("As ")]
    return {name.replace("_", " "): f"{text}." for names, text in told for name in names.split(", ")}


def _settings(before: Result, after: Result) -> Section:
    empty = "The same subject, claim, options, seed and versions."
    sides = settings_texts(before), settings_texts(after)
    return _difference_section("settings", "Subject, settings and versions", sides, empty)


def _difference_section(
    key: str, title: str, sides: Sequence[Mapping[str, str]], empty: str, noun: str = "name"
) -> Section:
    """A section with what differs between two tables of texts, in the order of the new one."""
    old, new = sides
    names = [name for name in dict.fromkeys([*new, *old]) if old.get(name) != new.get(name)]
    rows = [(name_text(name, 80), *_apart(old.get(name), new.get(name))) for name in names]
    table = Table("What differs", (noun, "old", "new"), rows) if rows else Paragraph(empty)
    return Section(key, title, (table,))


def _apart(old: str | None, new: str | None) -> tuple[str, str]:
    """Two texts that differ, cut where they are long; the second says so if what is left of them is the same."""
    first, second = (wording.MISSING if text is None else clean(text, 200) for text in (old, new))
    return first, f"{second} (differs further on)" if first == second else second


def _inputs(before: AuditResult, after: AuditResult) -> Section:
    """Pairs whose names stayed and whose inputs did not: what is said of them compares different things."""
    if any(is_redacted(finding.x) for result in (before, after) for finding in result.findings):
        return Section("inputs", "Inputs of the pairs", (Paragraph("Not compared: the records are redacted."),))
    versions = [{f.id: [saved_input(f.x), saved_input(f.x_prime)] for f in one.findings} for one in (before, after)]
    both = [name for name in versions[1] if name in versions[0]]
    sides = [{name: json.dumps(side[name], ensure_ascii=False) for name in both} for side in versions]
    empty = "Pairs of the same name have the same inputs."
    return _difference_section("inputs", "Inputs of the pairs", sides, empty, "pair")


def _statuses(result: Result) -> dict[str, str]:
    """Say how everything ended that was tested, the gravest first, by a name that is the same in every run."""
    found = sorted(cases(Dossier.alone(result)), key=lambda case: STATUSES.index(case.status))
    several = isinstance(result, CheckResult) and len(result.mechanisms) > 1
    counts = _counts(result.universe) if isinstance(result, AuditResult) else {}
    return {f"{one.subject_name}: " * several + one.name: status_word(one.status) for one in found} | counts


def _cases(before: Result, after: Result) -> Section:
    """Verdicts; of tables of all pairs their counts, and those of pairs that both examined in full.

    Which pairs of a table are examined in depth depends on the run: those are neither added nor removed.
    """
    sides, empty = [_statuses(before), _statuses(after)], "The same were tested, with the same verdicts."
    if any(isinstance(result, AuditResult) and result.universe is not None for result in (before, after)):
        apart = {name for name in sides[0].keys() ^ sides[1] if name.startswith("claim on ")}
        sides = [{name: text for name, text in side.items() if name not in apart} for side in sides]
        empty = "The same counts, and the same verdicts of pairs examined in full by both."
    return _difference_section("verdicts", "Verdicts; added and removed", sides, empty, "tested")


def _counts(table: AllPairsTable | None) -> dict[str, str]:
    """Numbers of pairs of a table by their verdicts."""
    verdicts = (*VERDICTS, None) if table is not None else ()
    return {f"all pairs: {status_word(one or 'not asked')}": f"{table.count(one):,}" for one in verdicts if table}


def _bounds(before: AuditResult, after: AuditResult) -> Section:
    """Budgets that changed, and bounds whose ratio to them did, the worst pairs first."""
    old = {finding.id: finding for finding in before.findings}
    moved = [(old[one.id], one) for one in after.ranked() if one.id in old and _has_moved(old[one.id], one)]
    texts = [{pair[side].id: _bound_text(pair[side]) for pair in moved} for side in (0, 1)]
    which = "" if before.universe is None and after.universe is None else ", of the pairs that both examined in full"
    empty = f"No budget changed, and no ratio of bound to budget by more than {RATIO_CHANGE:g}{which}."
    return _difference_section("bounds", "Budgets and bounds", texts, empty, "pair")


def _has_moved(earlier: Finding, later: Finding) -> bool:
    first, second = earlier.ratio_lower or 0.0, later.ratio_lower or 0.0
    stays = first == second or (math.isnan(first) and math.isnan(second)) or abs(second - first) <= RATIO_CHANGE
    return not stays or _promised(earlier) != _promised(later)


def _bound_text(finding: Finding) -> str:
    """The bound of a pair, its budget and their ratio."""
    lower = compared(finding.parameter_lower, finding.parameter_budget)[0]
    return f"{lower} of {_promised(finding)}, ratio {wording.ratio_text(finding)}"


def _promised(finding: Finding) -> str:
    """The budget as it is shown, with the delta that belongs to it."""
    delta = f" (δ = {number_text(finding.budget.delta)})" if finding.budget.delta else ""
    return number_text(finding.parameter_budget, 12) + delta
