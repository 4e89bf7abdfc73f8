"""The headline over all results of a report, and the lines that run its findings again."""

from __future__ import annotations

from dpaudit.conformance.result import CheckResult
from dpaudit.reports import doubles
from dpaudit.reports.again import Again, again, check_again
from dpaudit.reports.dossier import Dossier, Source
from dpaudit.reports.rows import CLAIM, ranked
from dpaudit.reports.wording import clean, plural, some
from dpaudit.results.utility_result import UtilityResult

SUBJECTS = 3  # named, of those that a sentence is about
LINES = 20  # that run a finding again
PAIRS = 3  # violated pairs of a result with such a line
NOTHING = "no broken promise found"


def subjects_text(dossier: Dossier) -> str:
    """The subjects by name; of many, the first ones and a count."""
    return some([clean(name, 60) for name in dossier.subjects], SUBJECTS)


def title(dossier: Dossier, width: int = 100) -> str:
    """The name of the deployment, or else the first subjects."""
    name = dossier.deployment.name if dossier.deployment is not None else ""
    return clean(name, width) if name else ", ".join(clean(one, 60) for one in dossier.subjects[:SUBJECTS])


def headline(dossier: Dossier) -> str:
    """The verdict over all results, in one line; it counts the rows of page one."""
    lines = ranked(dossier)
    count = plural(len(lines), "result")
    broken, unsettled = sum(line.is_broken for line in lines), sum(line.verdict == "inconclusive" for line in lines)
    without = sum(line.verdict == "error" for line in lines)
    if dossier.verdict == "not_refuted":
        is_proof = bool(lines) and all(line.kind == "proof" for line in lines)
        return f"Proved for the pairs that are listed, in {count}" if is_proof else f"Not refuted: {NOTHING} in {count}"
    rest = [f"{unsettled:,} not settled"] if unsettled else []
    if dossier.verdict == "inconclusive":
        return f"Inconclusive: too little evidence in {unsettled:,} of {count}"
    if dossier.verdict == "error":
        return "; ".join([f"Error: {without:,} of {count} broke before an answer", *rest])
    rest = [*([f"{without:,} broke before an answer"] if without else []), *rest]
    records = [record for one in dossier.checks for record in one.records]
    failed = [clean(record.name, 60) for record in records if record.status == "violated"]
    checks = f"{len(failed):,} of {plural(len(records), 'check')}"
    if broken:
        failures = [f"{checks} failed"] if failed else []
        return "; ".join([f"Violated: a promise is broken in {broken:,} of {count}", *failures, *rest])
    return "; ".join(
        [
            f"Checks failed: {checks} ({some(list(dict.fromkeys(failed)), SUBJECTS)})",
            _claim_text(dossier),
            *rest,
        ]
    )


def _claim_text(dossier: Dossier) -> str:
    """Say how the privacy claims stand of which none is violated."""
    found: set[str] = {result.verdict for result in dossier.audits} | {one.line.verdict for one in dossier.judged}
    found |= {record.status for one in dossier.checks for record in one.records if record.name in CLAIM}
    if "xfail" in found:
        return "the privacy claim is a known failure"
    if not found.isdisjoint(("error", "inconclusive")):
        return "the privacy claim itself could not be fully judged"
    return f"the privacy claim itself was {'not refuted' if 'not_refuted' in found else 'not audited'}"


def replays(dossier: Dossier) -> tuple[list[Again], list[str]]:
    """Lines that run findings again (the worst violated pairs, low bits, failed checks), and what has none there."""
    lines: list[Again] = []
    rest = []
    for source in dossier.sources:
        found, pairs = _replays(source)
        lines += found
        if pairs:
            rest.append(
                f"{clean(source.name, 300)} holds {plural(pairs, 'more violated pair')}: the same line with another "
                "--pair runs one."
            )
    if len(lines) > LINES:
        rest.append(f"{plural(len(lines) - LINES, 'more line')} are left out.")
    return lines[:LINES], rest


def _replays(source: Source) -> tuple[list[Again], int]:
    """The lines of one result, and how many violated pairs have none."""
    result, path = source.result, source.name
    if isinstance(result, UtilityResult):
        return [], 0
    if isinstance(result, CheckResult):
        checks = [check_again(result, mechanism) for mechanism in result.mechanisms]
        return [line for line in checks if line is not None], 0
    known = [finding for finding in result.violated if finding.witness]
    doubled = doubles.replay_of_worst(result, path)
    lines = [*(again(result, finding.id, path) for finding in known[:PAIRS]), *([doubled] if doubled else [])]
    return lines, max(0, len(known) - PAIRS)
