"""A result as a short Markdown summary, for a pull request or the summary page of a CI job.

A job summary above 1 MB is dropped whole, so the text is always below 900 kB: every name is cut and every table is
short. Names are escaped, so that they start no markup, no mention and no link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dpaudit.reports import beside, doubles, scope, universe, wording
from dpaudit.reports.again import STAND_IN, again
from dpaudit.reports.apart import apart
from dpaudit.reports.wording import clean, name_text, number_text, percent_text
from dpaudit.reports.written import date_text
from dpaudit.results.model import AuditResult, Finding

LIMIT = 900_000  # bytes
ROWS = 20  # of the table of pairs
MESSAGES = 5


def render(result: AuditResult, path: str = STAND_IN) -> str:
    """The summary: verdict, key figures, the worst pair, the table of the worst pairs, what was not assessed.

    `path` is where the result is saved.
    """
    parts = [
        f"## {wording.headline(result)}",
        f"Audit of {text(wording.subject_name(result))}. Report written {date_text()}.",
        escaped(wording.plain_summary(result)),
    ]
    if result.verdict in ("not_refuted", "inconclusive") and result.findings:
        parts.append(escaped(wording.power_sentence(result)))
    notes = wording.notes(result)
    if notes:
        parts.append("\n".join(f"- {escaped(note)}" for note in notes))
    parts.append(table(["figure", "value"], _keys(result)))
    broken = [finding for finding in result.findings if finding.verdict == "error"]
    if broken:
        lines = [f"- {escaped(name_text(f.id, 80))}: {text(f.message or 'no message', 300)}" for f in broken[:MESSAGES]]
        more = [f"- and {len(broken) - MESSAGES:,} more"] if len(broken) > MESSAGES else []
        parts.append("### What broke\n\n" + "\n".join([*lines, *more]))
    if result.universe is not None:
        parts.append(_universe(result))
    if result.violated:
        parts.append(_worst(result, result.violated[0], path))
    if result.findings:
        parts.append(_pairs(result))
    parts.append(_floating_point(result, path))
    if result.side_findings:
        rows = [[text(cell, 400) for cell in beside.row(finding)[:4]] for finding in result.side_findings[:ROWS]]
        parts.append(f"### Beside the claim\n\n{beside.APART}\n\n{table(list(beside.COLUMNS[:4]), rows)}")
    parts.append(_scope(result))
    content = "\n\n".join(parts) + "\n"
    assert len(content.encode()) < LIMIT  # by the cuts above: some 200 strings of at most 1,300 characters
    return content


def text(value: Any, width: int = 80) -> str:
    """One line of at most `width` characters that stands for itself in Markdown, also inside a table."""
    return escaped(clean(value, width))


def escaped(line: str) -> str:
    """One line with everything escaped that Markdown, GitHub's or not, could read as more than text."""
    line = re.sub(r"([\\`*_{}\[\]<>()#+!|~@$&])", r"\\\1", line)
    line = re.sub(r"^(\s*\d*)([-.=])(?=[-=\s]|$)", r"\1\\\2", line)  # no list, no rule, no heading at the start
    return re.sub(r"(?i)(https?|ftp|mailto|xmpp)(:)|(www)(\.)", lambda m: f"{m[1] or m[3]}\\{m[2] or m[4]}", line)


def code(line: str) -> str:
    """One line as code, fenced by more backticks than it holds."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", line)), default=0))
    return f"{fence}\n{line}\n{fence}"


def table(columns: list[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are escaped already."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _keys(result: AuditResult) -> list[tuple[str, ...]]:
    violated = wording.verdict_count(result, "violated")
    skipped = len(result.not_asked) + (result.universe.count(None) if result.universe is not None else 0)
    confidence = percent_text(result.confidence)
    if wording.is_unreliable(result):
        confidence += f", {wording.UNRELIABLE}"
    return [
        ("claim", text(result.claim)),
        ("largest lower bound", escaped(str(wording.largest_bound(result)))),
        ("largest ratio of bound to budget", wording.compared(result.ratio_lower, 1.0)[0]),
        ("confidence, for all statements together", confidence),
        ("pairs", f"{wording.asked_count(result):,} ({violated:,} violated, {skipped:,} not asked)"),
        ("runs of the mechanism", number_text(result.samples)),
        ("mode", text(result.mode, 20)),
        ("seed", str(result.seed) + ("" if result.replayable else " (the subject takes no generator)")),
        ("seconds", number_text(float(result.seconds))),
    ]


def _universe(result: AuditResult) -> str:
    assert result.universe is not None
    counted = table(["verdict", "pairs", "share"], [row[1:] for row in universe.counts(result.universe)])
    rows = [[escaped(cell) for cell in universe.cells(row)] for row in result.universe.worst(ROWS)]
    ranked = table(list(universe.columns(result.universe)), rows)
    return f"### The universe\n\n{escaped(universe.sentence(result))}\n\n{counted}\n\n{ranked}"


def _worst(result: AuditResult, finding: Finding, path: str) -> str:
    replay = again(result, finding.id, path)
    rule = text(finding.witness.description, 400) if finding.witness is not None else "none recorded"
    counts = f"{wording.counts_sentence(finding)} {wording.allowance_sentence(finding)}".strip()
    lines = [
        f"### The worst pair: {escaped(name_text(finding.id, 80))}",
        "",
        *([f"- Difference: {escaped(differ)}"] if (differ := apart(finding.x, finding.x_prime)) else []),
        f"- Rule: {rule}",
        f"- Counts: {escaped(counts)}",
        f"- Bound: {escaped(wording.bound_sentence(result, finding))}",
        f"- Draws: {wording.plural(finding.samples, 'labelled draw')}",
        "",
        escaped(replay.sentence("To run the same rule against this pair on fresh draws")),
        "",
        code(clean(replay.line, 2000)),
    ]
    return "\n".join(lines)


def _pairs(result: AuditResult) -> str:
    rows, kind = [], wording.evidence_name(result)
    for finding in result.ranked()[:ROWS]:
        lower, budget = wording.compared(finding.parameter_lower, finding.parameter_budget)
        ratio, word = wording.ratio_text(finding), wording.VERDICT_WORDS[finding.verdict]
        evidence = wording.evidence_cell(finding, kind)
        rows.append((escaped(name_text(finding.id, 60)), lower, budget, ratio, evidence, word))
    name = wording.symbol(wording.parameter_of(result))
    found = table(["pair", f"lower bound on {name}", "budget", "ratio", kind, "verdict"], rows)
    rest = len(result.findings) - len(rows)
    more = f"\n\nand {wording.plural(rest, 'more pair')}, in audit.json." if rest else ""
    return f"### Pairs, the worst first\n\n{found}{more}"


def _floating_point(result: AuditResult, path: str) -> str:
    """The finding about the doubles: a section of its own."""
    parts = [f"### {escaped(doubles.headline(result))}", *(escaped(line) for line in doubles.paragraphs(result))]
    replay = doubles.replay_of_worst(result, path)
    if replay is not None:
        parts += [escaped(replay.sentence("To run this rule on fresh draws")), code(clean(replay.line, 2000))]
    rows = doubles.rows(result)
    if rows:
        parts.append(table(list(doubles.COLUMNS), [[text(cell, 60) for cell in row] for row in rows[:ROWS]]))
    return "\n\n".join(parts)


def _scope(result: AuditResult) -> str:
    rows = [(row.item, row.status, escaped(row.facts)) for row in scope.rows(result) if row.status != "not assessed"]
    missing = "; ".join(row.item for row in scope.rows(result) if row.status == "not assessed")
    found = table(["item", "status", "facts"], rows)
    return f"### Tested, declared, not assessed\n\n{found}\n\nNot assessed: {missing}.\n\n{scope.SOURCE}"
