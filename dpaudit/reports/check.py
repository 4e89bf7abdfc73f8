"""The conformance suite's result in few lines, as blocks: causes first, hygiene apart from privacy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dpaudit.conformance.registry import all_checks
from dpaudit.conformance.result import CheckRecord, CheckResult
from dpaudit.reports.answers import answers
from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.rows import checks_text, is_of_calls, spec_of
from dpaudit.reports.wording import clean, number_text, plural, rate_text, some, status_word
from dpaudit.reports.words import said

# Of checks on how a mechanism is called: no draw gives anything away there, and no statistics decides.
HYGIENE_WORDS: Mapping[str, str] = {"violated": "failed", "not_refuted": "passed"}
NAMES_SHOWN = 3
SHOWN_IN_FULL = ("violated", "error", "inconclusive", "xfail")  # statuses whose messages are told in full
PRIVACY, HYGIENE = "Privacy", "Hygiene: how it is called, and what it refuses"


def check_blocks(result: CheckResult) -> list[Block]:
    """For each mechanism what failed and why, what passed, and in one paragraph what was skipped and why."""
    blocks: list[Block] = []
    for mechanism in result.mechanisms:
        name = str(mechanism["name"])
        claim = f", claim {clean(mechanism['claim'], 60)}" if mechanism["claim"] is not None else ", no claim"
        blocks.append(Paragraph(f"{clean(mechanism['target'] or name, 60)} ({clean(name, 40)}){claim}"))
        records = [record for record in result.records if record.mechanism == name]
        for title, is_hygiene in ((PRIVACY, False), (HYGIENE, True)):
            own = [one for one in records if is_of_calls(one) == is_hygiene]
            if own:
                blocks += [Paragraph(f"\n{title}", "lead"), _rows(own, is_hygiene)]
        blocks.append(Paragraph(""))
    rate = rate_text(result.error_rate)
    facts = {"checks": plural(len(result.records), "check"), "counts": checks_text(result.records), "rate": rate}
    counted = said("chapter.counted", **facts, seconds=number_text(float(result.seconds), 3), seed=result.seed)
    return [*blocks, Paragraph(counted), answers(Dossier.alone(result))]


def listing() -> Table:
    """Every check with the property that it demands."""
    return Table("", ("check", "a mechanism ..."), tuple((spec.name, spec.demands) for spec in all_checks()))


def _word(status: str, is_hygiene: bool) -> str:
    return HYGIENE_WORDS.get(status, status_word(status)) if is_hygiene else status_word(status)


def _rows(records: Sequence[CheckRecord], is_hygiene: bool) -> Table:
    """Say what failed, each cause with what follows from it; then what did not fail; then what was skipped."""
    rows, marks = [], []
    counted: dict[tuple[str, str, str], list[str]] = {}
    skipped: dict[str, list[str]] = {}
    passed: list[str] = []
    following: Counter[str] = Counter()
    weak = {one.name for one in records if one.status == "inconclusive"}
    for one in records:
        spec = spec_of(one)
        cause = spec.follows if spec is not None else ""
        is_left_out = one.status == "skipped" and cause and cause in one.message
        if is_left_out or (one.status == "inconclusive" and cause in weak):
            following[cause] += 1
        elif one.status in SHOWN_IN_FULL:
            counted.setdefault((one.status, one.message, one.reason), []).append(one.name)
        elif one.status == "skipped":
            skipped.setdefault(one.message, []).append(one.name)
        else:
            passed.append(one.name)
    for (status, message, reason), names in counted.items():
        known = f" Known: {clean(reason, 200)}" if reason else ""
        text = f"{some(names, NAMES_SHOWN)}: {clean(message, 600)}{known}"
        follow = sum(following[name] for name in names)
        if follow:
            came = "inconclusive too" if status == "inconclusive" else "left out"
            text = f"{text.removesuffix('.')}. {plural(follow, 'law')} that would follow: {came}."
        rows.append((_word(status, is_hygiene), text))
        marks.append("inconclusive" if is_hygiene and status == "violated" else status)
    if passed:
        rows.append((_word("not_refuted", is_hygiene), ", ".join(passed)))
        marks.append("not_refuted")
    if skipped:
        why = "; ".join(f"{', '.join(names)} ({clean(reason, 200)})" for reason, names in skipped.items())
        rows.append((_word("skipped", is_hygiene), why))
        marks.append("skipped")
    return Table("", ("", ""), tuple(rows), marks=tuple(marks))
