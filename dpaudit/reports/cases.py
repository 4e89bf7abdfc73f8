"""A dossier as a flat list of cases, one for each thing that was tested: what JUnit, SARIF and in-toto are made of.

Statuses: the four verdicts, `skipped` and `xfail` of the conformance suite, and `warning`: something was found apart
from the verdict (low bits, a side finding). Texts are cleaned (`wording.clean`) and of bounded length.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from dpaudit.conformance.result import CheckResult
from dpaudit.reports import side_texts, wording
from dpaudit.reports.dossier import Dossier, subject_of
from dpaudit.reports.input_diff import apart
from dpaudit.reports.wording import clean, name_text, number_text
from dpaudit.results.model import AuditResult, Finding
from dpaudit.results.utility_result import UtilityFinding, UtilityResult

STATUSES = ("violated", "error", "warning", "inconclusive", "not_refuted", "xfail", "skipped")
NOT_SETTLED = "it may be within it: not settled"  # of a measured error above its stated bound
PAIRS = 1000  # cases of single pairs of one audit, the worst first; a last case counts the others


@dataclasses.dataclass(frozen=True)
class Case:
    """One thing that was tested, of a subject as results keep it (`name`, `target`, `fingerprint` and so on).

    `check` is the same in every run: "claim", "certificate", "scores", "floating_point", the kind of a side finding,
    the name of a check, or "utility: " and the name of a bound; `name` is the check with its pair or input. `status` is
    one of `STATUSES`. A claim or message may be empty, and seconds 0, where none is known of this case alone.
    """

    subject: Mapping[str, Any]
    claim: str
    check: str
    name: str
    status: str
    message: str
    seconds: float = 0.0

    @property
    def subject_name(self) -> str:
        """The name of the subject, cleaned."""
        return clean(subject_of(self.subject), 120)


def cases(dossier: Dossier) -> tuple[Case, ...]:
    """All cases, in the order of the results."""
    found = [case for source in dossier.sources for case in _cases(source.result)]
    for one in dossier.judged:
        line = one.line
        check = "certificate" if line.kind == "proof" else "scores"
        found.append(Case(one.subject, line.promised, check, check, line.verdict, clean(line.sentence, 1000)))
    return tuple(found)


def grouped(
    dossier: Dossier, statuses: Collection[str], name: Callable[[Case], str] = lambda case: case.subject_name
) -> list[tuple[tuple[str, ...], list[Case], str]]:
    """Cases of these statuses by subject, claim, check and status, the worst first, with a sentence on the others."""
    found: dict[tuple[str, ...], list[Case]] = {}
    for case in cases(dossier):
        if case.status in statuses:
            found.setdefault((name(case), case.claim, case.check, case.status), []).append(case)
    rest = [f" And {wording.plural(len(group) - 1, 'more case')} of this check." for group in found.values()]
    return [(key, group, more * (len(group) > 1)) for (key, group), more in zip(found.items(), rest, strict=True)]


def counts(dossier: Dossier) -> dict[str, int]:
    """Numbers of cases that have each status, in the order of `STATUSES`."""
    found = Counter(case.status for case in cases(dossier))
    return {status: found[status] for status in STATUSES if found[status]}


def _cases(result: AuditResult | CheckResult | UtilityResult) -> Iterator[Case]:
    if isinstance(result, AuditResult):
        yield from _audit_cases(result)
    elif isinstance(result, CheckResult):
        known = {str(mechanism["name"]): mechanism for mechanism in result.mechanisms}
        for record in result.records:
            subject = known.get(record.mechanism, {"name": record.mechanism})
            claim = clean(str(subject.get("claim") or ""), 200)
            text = f"A mechanism {record.demands}. {record.message}"
            known_failure = f" Known: {record.reason}" if record.reason else ""
            message = clean(text + known_failure, 1000)
            check = clean(record.name, 120)
            yield Case(subject, claim, check, check, record.status, message, record.seconds)
    else:
        for finding in result.findings:
            check = f"utility: {clean(finding.bound, 120)}"
            name = f"{check} on {clean(finding.input_id, 80)}"
            yield Case(result.subject, "", check, name, finding.status, utility_sentence(result, finding))


def _audit_cases(result: AuditResult) -> Iterator[Case]:
    claim = clean(result.claim, 200)
    ranked = result.ranked()
    for finding in ranked[:PAIRS]:
        name = f"claim on {name_text(finding.id, 120)}"
        message = pair_sentence(result, finding)
        yield Case(result.subject, claim, "claim", name, finding.verdict, message)
    rest = ranked[PAIRS:]
    others = wording.asked_count(result) - min(len(ranked), PAIRS)
    if rest or (result.universe is not None and (others or not ranked)):
        status = result.verdict if result.universe is not None else rest[0].verdict
        text = f"{wording.headline(result)}. {wording.plural(others, 'pair')} not listed one by one: see audit.json."
        yield Case(result.subject, claim, "claim", "claim on all pairs", status, text)
    if not ranked and result.universe is None:
        yield Case(result.subject, claim, "claim", "claim", result.verdict, f"{wording.headline(result)}.")
    for side in side_texts.beside(result):
        seen = {"found": "warning", "nothing_found": "not_refuted", "not_applicable": "skipped"}[side.status]
        message = f"{clean(side.summary, 2000)} (error rate: {side_texts.rate_text(side)}; apart from the verdict)"
        yield Case(result.subject, claim, clean(side.kind, 60), side_texts.title(side.kind), seen, message)


def pair_sentence(result: AuditResult, finding: Finding) -> str:
    """Say what was found of one pair."""
    if finding.verdict == "error":
        return clean(finding.message or "no message", 1000)
    parts = [] if finding.is_withheld else [wording.bound_sentence(result, finding) + "."]
    if finding.verdict == "violated" and finding.witness is not None:
        differ = apart(finding.x, finding.x_prime)
        parts += [clean(finding.witness.description, 400), *([f"{differ}."] if differ else [])]
    if finding.verdict == "inconclusive" and finding.power is not None:
        found = wording.weak_text([finding])
        parts.append(f"{found[0].upper()}{found[1:]} would have been found.")
    return clean(" ".join([*parts, *(clean(note, 300) for note in finding.notes)]), 1500)


def utility_sentence(result: UtilityResult, finding: UtilityFinding) -> str:
    """Say what was measured of one bound on one input; the limits of all of them hold together."""
    if finding.verdict == "error" or finding.message:
        return clean(finding.message or "no message", 1000)
    what = "share of losses above the limit" if finding.kind == "tail" else "mean loss"
    if finding.says_nothing and finding.verdict != "violated":
        return f"The bound says nothing: no output can have a loss above its limit, {number_text(finding.limit)}."
    rest = f"; {NOT_SETTLED}" if finding.status != finding.verdict else ""
    measured = f"{what}: {number_text(finding.measured)}, between {wording.lower_text(finding.lower)} and "
    stated = f"stated: at most {number_text(finding.allowed)}{rest}"
    sure = f"{wording.sure_text(result.confidence)} confidence"
    return f"{measured}{wording.upper_text(finding.upper)} with {sure}; {stated}."
