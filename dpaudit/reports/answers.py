"""The first page: what was promised, tested and found, how sure that is, and what nobody looked at, in plain words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from dpaudit.conformance.result import CheckResult
from dpaudit.reports import doubles, wording
from dpaudit.reports.again import Again, again, check_again
from dpaudit.reports.dossier import Dossier, Result, Source, subject_of, told
from dpaudit.reports.first_page import CLAIM, ranked
from dpaudit.reports.items import Item, checks_text
from dpaudit.reports.wording import clean, name_text, percent_text, plural
from dpaudit.results.model import VERDICTS, AuditResult
from dpaudit.results.utility_result import UtilityResult

SUBJECTS = 3  # named on the first page, of those that a sentence is about
RESULTS = 12  # with a sentence each there
LINES = 20  # that run a finding again
PAIRS = 3  # violated pairs of a result with such a line
NOTHING = "no broken promise found"


def subjects_text(dossier: Dossier) -> str:
    """The subjects by name; of many, the first ones and a count."""
    return _some(dossier.subjects)


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
    failed = [record.name for record in records if record.status == "violated"]
    checks = f"{len(failed):,} of {plural(len(records), 'check')}"
    if broken:
        failures = [f"{checks} failed"] if failed else []
        return "; ".join([f"Violated: a promise is broken in {broken:,} of {count}", *failures, *rest])
    return "; ".join([f"Checks failed: {checks} ({_some(list(dict.fromkeys(failed)))})", _claim_text(dossier), *rest])


def _claim_text(dossier: Dossier) -> str:
    """How the privacy claims stand of which none is violated."""
    found: set[str] = {result.verdict for result in dossier.audits} | {one.verdict for one in dossier.judged}
    found |= {record.status for one in dossier.checks for record in one.records if record.name in CLAIM}
    if "xfail" in found:
        return "the privacy claim is a known failure"
    if not found.isdisjoint(("error", "inconclusive")):
        return "the privacy claim itself could not be fully judged"
    return f"the privacy claim itself was {'not refuted' if 'not_refuted' in found else 'not audited'}"


def summary(dossier: Dossier, found: tuple[Item, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Questions, each with the paragraphs of its answer."""
    return (
        ("What was promised?", _promised(dossier)),
        ("What was tested?", _tested(dossier)),
        ("What was found?", _found(dossier)),
        ("How sure is that?", _sure(dossier)),
        ("What was not looked at?", _missing(found)),
    )


def _promised(dossier: Dossier) -> tuple[str, ...]:
    claims: dict[str, list[str]] = {}
    for result in dossier.audits:
        claims.setdefault(clean(result.claim, 120), []).append(clean(subject_of(result.subject), 60))
    for one in dossier.judged:
        claims.setdefault(one.claim, []).append(clean(subject_of(one.subject), 60))
    parts = []
    if claims:
        shown = list(claims.items())[:RESULTS]
        stated = "; ".join(f"{claim} ({_some(list(dict.fromkeys(names)))})" for claim, names in shown)
        stated += f"; and {plural(len(claims) - len(shown), 'more claim')}" if len(claims) > len(shown) else ""
        parts.append(
            "That whoever sees an output cannot tell well from which of two inputs it came. How well is limited by the "
            f"claim: {stated}."
        )
    bounds = sum(len(result.bounds) for result in dossier.utilities)
    if bounds:
        parts.append(f"That errors stay within {plural(bounds, 'stated bound')}.")
    if dossier.checks:
        parts.append("That the code keeps what follows from the claim, and what any such mechanism must do.")
    return tuple(parts)


def _tested(dossier: Dossier) -> tuple[str, ...]:
    parts = []
    if dossier.audits:
        pairs = sum(wording.asked_count(result) for result in dossier.audits)
        each = ", counted anew for each audit" if len(dossier.audits) > 1 else ""
        runs = sum(result.samples for result in dossier.audits)
        parts.append(
            f"{plural(pairs, 'pair')} of inputs{each}, in {plural(runs, 'run')} of "
            f"{plural(len({subject_of(r.subject) for r in dossier.audits}), 'mechanism')}: a program tried to tell "
            "from outputs which input was used."
        )
    others = [checks_text(one) for one in dossier.checks]
    for result in dossier.utilities:
        others.append(
            f"{plural(len(result.findings), 'measurement')} of errors of {clean(subject_of(result.subject), 60)}."
        )
    others += [
        f"All that {clean(subject_of(one.subject), 60)} may draw, for a proof on listed pairs."
        if one.kind == "proof"
        else f"Scores of {clean(subject_of(one.subject), 60)}, from training with and without them."
        for one in dossier.judged
    ]
    more = [f"And {plural(len(others) - RESULTS, 'more result')}."] if len(others) > RESULTS else []
    return (*parts, *others[:RESULTS], *more)


def _found(dossier: Dossier) -> tuple[str, ...]:
    """A sentence a result, the worst first; those that have no room are counted by their verdicts."""
    worst_first = sorted((source.result for source in dossier.sources), key=_gravity)
    rest = Counter(told(result).replace("_", " ") for result in worst_first[RESULTS:])
    counted = ", ".join(f"{count:,} {word}" for word, count in rest.items())
    more = [f"And {plural(rest.total(), 'more result')} in their chapters: {counted}."] if rest else []
    judged = sorted(dossier.judged, key=lambda one: VERDICTS.index(one.verdict))
    judgements = [f"{clean(subject_of(one.subject), 60)}: {one.sentence}" for one in judged[:RESULTS]]
    unsaid = len(judged) - RESULTS
    judgements += [f"And {plural(unsaid, 'more certificate or audit of scores')}."] if unsaid > 0 else []
    return (*(_result_found(result) for result in worst_first[:RESULTS]), *more, *judgements)


def _gravity(result: Result) -> tuple[int, bool]:
    """By verdict; of one verdict what found something beside it comes first."""
    beside = isinstance(result, AuditResult) and (
        (result.floating_point is not None and result.floating_point.verdict == "leaks")
        or any(side.status == "found" for side in result.side_findings)
    )
    return VERDICTS.index(told(result)), not beside


def _result_found(result: Result) -> str:
    if isinstance(result, AuditResult):
        return _audit_found(result)
    return _check_found(result) if isinstance(result, CheckResult) else _utility_found(result)


def _check_found(result: CheckResult) -> str:
    of = _some([subject_of(mechanism) for mechanism in result.mechanisms])
    failed = result.of_status("violated")
    if failed:
        some = _some([record.name for record in failed])
        return f"{of}: {len(failed):,} of {plural(len(result.records), 'check')} failed: {some}."
    if result.verdict == "not_refuted":
        return f"{of}: no check of the conformance suite failed."
    return f"{of}: the conformance suite gave no full answer: {result.verdict.replace('_', ' ')}."


def _some(names: Sequence[str]) -> str:
    """The first names; of many, with a count of the others."""
    more = len(names) - SUBJECTS
    return ", ".join(clean(name, 60) for name in names[:SUBJECTS]) + (f" and {more:,} more" if more > 0 else "")


def _audit_found(result: AuditResult) -> str:
    name = wording.subject_name(result, 60)
    text = f"{name}: {wording.headline(result)[0].lower()}{wording.headline(result)[1:]}."
    if result.verdict == "violated" and result.violated:
        worst = result.violated[0]
        lower, budget = wording.compared(worst.parameter_lower, worst.parameter_budget)
        symbol, unit = wording.symbol(worst.parameter), wording.unit(worst.parameter)
        name = name_text(worst.id, 80)
        text += f" The worst is {name}: {symbol} is {wording.at_least(lower)}{unit}; promised: at most {budget}."
    if result.floating_point is not None and result.floating_point.verdict == "leaks":
        text += f" {doubles.headline(result)}."
    seen = sum(side.status == "found" for side in result.side_findings)
    if seen:
        text += f" {plural(seen, 'finding')} beside the claim."
    return text


def _utility_found(result: UtilityResult) -> str:
    name = clean(subject_of(result.subject), 60)
    broken = list(dict.fromkeys(finding.bound for finding in result.findings if finding.verdict == "violated"))
    if broken:
        return f"{name}: errors above {plural(len(broken), 'stated bound')}: {_some(broken)}."
    if result.told == "not_refuted":
        return f"{name}: no error above a stated bound."
    empty = list(dict.fromkeys(finding.bound for finding in result.findings if finding.says_nothing))
    if empty:
        bounds = plural(len(empty), "stated bound")
        return f"{name}: {bounds} that no output can exceed, so nothing is said: {_some(empty)}."
    above = list(dict.fromkeys(finding.bound for finding in result.findings if finding.told != finding.verdict))
    if above and result.told == "inconclusive":
        return f"{name}: errors above {plural(len(above), 'stated bound')} that may be within: not settled."
    return f"{name}: the errors gave no full answer: {result.told.replace('_', ' ')}."


def _sure(dossier: Dossier) -> tuple[str, ...]:
    parts = []
    if dossier.audits:
        rates = sorted({1.0 - result.confidence for result in dossier.audits})
        shown = percent_text(rates[0]) if len(rates) == 1 else f"{percent_text(rates[0])} to {percent_text(rates[-1])}"
        parts.append(
            f"If a mechanism keeps its promise, its audit speaks of a violation with probability at most {shown}. "
            "Finding nothing is no proof that the promise is kept: it says how large a leak would have had to be "
            "to show."
        )
    parts += _other_rates(dossier)
    if dossier.audits:
        quiet = [result for result in dossier.audits if result.verdict in ("not_refuted", "inconclusive")]
        parts += [f"{wording.subject_name(r, 60)}: {wording.power_sentence(r)}" for r in quiet[:SUBJECTS] if r.findings]
        if len(quiet) > SUBJECTS:
            parts.append(f"What {plural(len(quiet) - SUBJECTS, 'other audit')} could have found is in their chapters.")
        shared = [(r, wording.dependence_sentence(r)) for r in dossier.audits if wording.dependence_sentence(r)]
        parts += [f"{wording.subject_name(r, 60)}: {sentence}" for r, sentence in shared[:SUBJECTS]]
        if len(shared) > SUBJECTS:
            parts.append(f"The same holds for {plural(len(shared) - SUBJECTS, 'other audit')}.")
    return tuple(parts)


def _other_rates(dossier: Dossier) -> list[str]:
    """The error rates of checks and error bounds, what all results have together, and that there are rates beside."""
    parts = []
    lists = [one.error_rate for one in dossier.checks for _ in one.mechanisms]
    if lists:
        each = " (each list of checks has that rate of its own)" if len(lists) > 1 else ""
        parts.append(
            "The conformance suite has an error rate of its own: a mechanism with all properties that are checked "
            f"fails some check of its list with probability at most {percent_text(max(lists))}{each}."
        )
    bounds = [1.0 - result.confidence for result in dossier.utilities]
    if bounds:
        parts.append(
            "A mechanism that keeps its stated error bounds is said to break one with probability at most "
            f"{percent_text(max(bounds))}."
        )
    scored = [one.error_rate for one in dossier.judged if one.kind == "scores"]
    if scored:
        parts.append(
            "An audit of scores whose assumptions hold speaks of a violation of a kept promise with probability at "
            f"most {percent_text(max(scored))}."
        )
    if any(one.kind == "proof" for one in dossier.judged):
        parts.append("A certificate is proved for the pairs that it lists: chance has no part in it.")
    rates = [*(1.0 - result.confidence for result in dossier.audits), *lists, *bounds, *scored]
    if len(rates) > 1:  # union bound: nothing is supposed of how results depend on each other
        own = f"Each of {plural(len(dossier.audits), 'audit')} has its own error rate. " if dossier.audits[1:] else ""
        total = percent_text(min(1.0, math.fsum(rates)))
        parts.append(
            f"{own}That any result of this report is a false alarm has probability at most {total}, the sum of their "
            "error rates."
        )
    if any(result.side_findings or result.floating_point is not None for result in dossier.audits):
        parts.append("What was looked at beside the claims has error rates of its own, which stand there.")
    return parts


def _missing(found: tuple[Item, ...]) -> tuple[str, ...]:
    missing = [item.name for item in found if item.status == "not assessed"]
    said = [item.name for item in found if item.status == "declared"]
    parts = [f"Not assessed: {'; '.join(missing)}."] if missing else []
    if said:
        parts.append(f"Declared only, and not checked: {'; '.join(said)}.")
    return (*parts, "Other inputs than the pairs that were run, and other code than what ran, were not looked at.")


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
