"""The items of an evaluation, with the status and the evidence that a dossier reaches for each.

Every item is printed, whatever its status. `tested` and `tested in part` stand only where a result of the dossier holds
the figures; what the user says is `declared` and is quoted as such; the rest is `not assessed`. Sections are those of
NIST SP 800-226 in its draft of December 2023. No status says that anything conforms to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from dpaudit.conformance.result import CheckRecord
from dpaudit.reports import side_texts, wording
from dpaudit.reports.deployment import ITEMS
from dpaudit.reports.dossier import Dossier, Result, subject_of
from dpaudit.reports.rows import checks_text, line_of
from dpaudit.reports.wording import asked_count, clean, plural, some, verdict_count
from dpaudit.reports.words import joined, said, words
from dpaudit.results.model import AuditResult
from dpaudit.results.saved_inputs import is_redacted
from dpaudit.results.utility_result import UtilityResult
from dpaudit.subjects.by_outputs import BY_OUTPUTS

LARGE_EPSILON, LARGE_DELTA = 10.0, 1e-3  # beyond which the report says so, as context
CHECKS_NAMED = 10  # checks that looked at an item
SAID = 300  # characters of a declaration beside its item
NAMED = 5  # subjects, where some are left out
COMPLETED = ("violated", "not_refuted", "inconclusive", "xfail")  # statuses of checks that ran to an end
W3C_EDITION = "W3C Attribution Level 1, editor's draft of 2026-05-14"  # of an aggregate over browsers
Status = Literal["tested", "tested in part", "declared", "not assessed", "not applicable"]
Found = tuple[Status, str]  # how far a run got with an item, and the facts
SOURCE: str = words("evidence.source")
SIDE_CHANNELS = ("timing", "containment")
CLAIM = ("claim_metadata", *wording.DEPENDENCE)  # what the claim is measured against, and whether the draws allow it
LOW_BITS = (side_texts.LOW_BITS, "magnitudes")
SENSITIVITY = ("pair_search", "same_randomness", "recorded_noise")
EXAMPLES = 3  # pairs shown as the unit that was tested


@dataclasses.dataclass(frozen=True)
class Item:
    """One item: key (`deployment.ITEMS`), name, sections of the draft, status, lines of evidence, what is declared.

    `w3c` is the section of another draft that asks for the same, or empty.
    """

    key: str
    name: str
    sections: str
    part: str
    status: Status
    evidence: str
    declared: str
    w3c: str


def items(dossier: Dossier) -> tuple[Item, ...]:
    """All items, in the order of `deployment.ITEMS`."""
    return tuple(_item(key, dossier) for key in ITEMS)


def _item(key: str, dossier: Dossier) -> Item:
    deployment, facts = dossier.deployment, words(f"items.{key}")
    declared = clean(deployment.declared.get(key, ""), 4000) if deployment is not None else ""
    reason = clean(deployment.not_applicable.get(key, ""), 4000) if deployment is not None else ""
    found = FINDERS[key](dossier) if key in FINDERS else None
    checked = _checked(facts.get("checks", ()), dossier)
    status, evidence = found or (("tested in part", "") if checked else ("not assessed", facts["unseen"]))
    evidence = "\n".join([*([evidence] if evidence else []), *checked])
    if status == "not assessed" and reason:
        status, evidence = "not applicable", reason
    elif status == "not assessed" and declared:
        rest = said("evidence.in_full") if len(declared) > SAID else ""
        status = "declared"
        evidence = said(
            "evidence.declared", said=clean(declared, SAID), rest=f" {rest}" if rest else "", evidence=evidence
        )
    elif reason:
        evidence = said("evidence.not_applicable", evidence=evidence, reason=reason)
    return Item(key, ITEMS[key], facts["sections"], facts["part"], status, evidence, declared, facts.get("w3c", ""))


def _checked(names: Sequence[str], dossier: Dossier) -> list[str]:
    """Say what the checks of these names found, a line each; of those that gave an answer."""
    lines = []
    for record in (record for one in dossier.checks for record in one.records):
        if record.name in names and record.status in COMPLETED:
            status = "violated (a known failure)" if record.status == "xfail" else wording.status_word(record.status)
            seen = wording.excerpt(record.message.removesuffix("."), side_texts.SUMMARY)
            message = f" ({seen})" if seen else ""
            facts = {"who": clean(record.mechanism, 60), "name": clean(record.name, 60), "status": status}
            lines.append(said("evidence.check", **facts, demand=wording.excerpt(record.demands, 600), message=message))
    more = len(lines) - CHECKS_NAMED
    return [*lines[:CHECKS_NAMED], f"And {plural(more, 'more check')}."] if more > 0 else lines


def _left_out(what: str, dossier: Dossier, results: Sequence[Result]) -> list[str]:
    """A sentence that names the subjects which none of these results is about; nothing where there is none."""
    # Validity: what was seen of one mechanism must not stand for another one of the same report.
    names = [clean(name, 60) for name in dossier.without(results)]
    return [f"{what}: {some(names, NAMED)}."] if names else []


def _told(dossier: Dossier, results: Sequence[Any], find: Callable[[Any], Found], missing: str = "") -> Found | None:
    """Say what results found of an item, a line each, and `missing`, with the subjects that none of them looked at."""
    rows = [(result, *find(result)) for result in results]
    looked = [(result, status, facts) for result, status, facts in rows if status != "not assessed"]
    if not looked:
        return None
    left = _left_out(missing, dossier, [result for result, _, _ in looked]) if missing else []
    whole = not left and all(status == "tested" for _, status, _ in looked)
    texts = _by_subjects([(result, facts) for result, _, facts in looked])
    return "tested" if whole else "tested in part", "\n".join([*texts, *left])


def _by_subjects(rows: Sequence[tuple[AuditResult | UtilityResult, str]]) -> list[str]:
    """A line for each text, which names the subjects that it is said of."""
    found = wording.gathered((text, clean(subject_of(result.subject), 80)) for result, text in rows)
    return [f"{', '.join(names)}: {text}" for text, names in found.items()]


def _epsilon(dossier: Dossier) -> Found | None:
    found = _told(dossier, dossier.audits, loss)
    proved = [f"{one.line.subject}: {one.line.sentence}" for one in dossier.judged]
    if found is None and not proved:
        return None
    broken = [one for one in dossier.audits if loss(one)[0] == "not assessed"]
    left = _by_subjects([(one, said("evidence.no_answer", claim=clean(one.claim, 120))) for one in broken])
    left += _left_out("Not audited", dossier, dossier.audits) if found else []
    status, text = found if found else ("tested in part", "")
    supposed = _told(dossier, dossier.audits, within_calls)
    texts = (text, *left, *proved, supposed[1] if supposed else "", *_context(dossier))
    return "tested in part" if proved or left else status, "\n".join(filter(None, texts))


def _context(dossier: Dossier) -> list[str]:
    """Say what is said of large promises: context, not a finding."""
    budgets = [finding.budget for result in dossier.audits for finding in result.findings]
    tables = [result.universe for result in dossier.audits if result.universe is not None]
    epsilons = [table.budget for table in tables if table.parameter_lower is None]  # of others, those of findings
    most = [float(budget[np.isfinite(budget)].max(initial=0.0)) for budget in epsilons]
    epsilon = max((*most, *(budget.epsilon for budget in budgets)), default=0.0)
    delta = max((*(table.delta for table in tables), *(budget.delta for budget in budgets)), default=0.0)
    promised = (("epsilon", epsilon, LARGE_EPSILON), ("delta", delta, LARGE_DELTA))
    return [
        said(f"evidence.large_{name}", value=wording.number_text(float(value)), limit=limit)
        for name, value, limit in promised
        if value > limit
    ]


def _correctness(dossier: Dossier) -> Found | None:
    parts = _by_subjects([(one, f"audited, {wording.status_word(one.verdict)}.") for one in dossier.audits])
    for one in dossier.checks:
        names = [clean(subject_of(mechanism), 60) for mechanism in one.mechanisms]
        of = ", ".join(names) if len(names) <= NAMED else plural(len(names), "mechanism")
        parts += [f"{of}: {_check_sentence(one.records)}"] if one.records else []
    parts += [] if dossier.checks else [said("evidence.unchecked")]
    missing = [
        *(_left_out("Not audited", dossier, dossier.audits) if dossier.audits else ()),
        *(_left_out("Not checked by the conformance suite", dossier, dossier.checks) if dossier.checks else ()),
    ]
    statuses: set[str] = {finding.verdict for result in dossier.audits for finding in result.findings}
    statuses |= {result.universe.overall for result in dossier.audits if result.universe is not None}
    statuses |= {record.status for one in dossier.checks for record in one.records}
    if statuses.isdisjoint(COMPLETED):  # whatever was begun gave no answer
        return None
    versions = {f"{name} {value}" for source in dossier.sources for name, value in source.result.environment.items()
                if name in ("python", "numpy", "scipy", "opendp", "dpaudit")}  # fmt: skip
    # Validity: one violated check must not hide that others gave no answer, as the verdict of the whole list does.
    whole = dossier.audits and dossier.checks and not missing and {"error", "inconclusive"}.isdisjoint(statuses)
    versions_text = f"Versions: {wording.excerpt(', '.join(sorted(versions)), side_texts.SUMMARY)}."
    return "tested" if whole else "tested in part", "\n".join([*parts, *missing, versions_text])


def _check_sentence(records: Sequence[CheckRecord]) -> str:
    return f"{plural(len(records), 'check')} of the conformance suite: {checks_text(records)}."


def errors(result: UtilityResult) -> Found:
    """Say how stated bounds compare with the errors that were measured."""
    if all(finding.verdict == "error" for finding in result.findings):
        return "not assessed", ""
    return _row(result, sum(finding.status in ("error", "inconclusive") for finding in result.findings))


def _row(result: AuditResult | UtilityResult, unclear: int) -> Found:
    """The row of a result, with how many of its pairs or bounds gave no full answer."""
    tests = plural(unclear, "pair" if isinstance(result, AuditResult) else "test")
    line, rest = line_of(result), said("evidence.unclear", tests=tests) if unclear else ""
    text = said("evidence.row", line=line, promised="; ".join(line.promised.split("\n")))
    missed = said("row.may_have_missed", missed=line.missed.removesuffix("."))
    return "tested in part" if unclear else "tested", joined(text, rest, missed)


def _queries(dossier: Dossier) -> Found | None:
    records = [record for one in dossier.checks for record in one.records]
    laws = [one for one in records if one.name.startswith("law_") and "composition" in one.name]
    ran = [record for record in laws if record.status not in ("skipped", "error")]
    return ("tested in part", said("evidence.queries", checks=_check_sentence(ran))) if ran else None


FINDERS: dict[str, Callable[[Dossier], Found | None]] = {
    "epsilon": _epsilon,
    "unit": lambda dossier: _told(dossier, dossier.audits, unit),
    "contribution": lambda dossier: _told(dossier, dossier.audits, lambda result: side_findings(result, SENSITIVITY)),
    "correctness": _correctness,
    "bins": lambda dossier: _told(dossier, dossier.audits, bins, "Not audited on outputs with keys"),
    "floating_point": lambda dossier: _told(dossier, dossier.audits, lambda result: side_findings(result, LOW_BITS)),
    "side_channels": lambda dossier: _told(dossier, dossier.audits, side_channels),
    "utility": lambda dossier: _told(dossier, dossier.utilities, errors, "Not measured"),
    "queries": _queries,
}


def bins(result: AuditResult) -> Found:
    """Say which keys the outputs have: an outcome of the audit wherever outputs are dictionaries."""
    found = [finding.keys for finding in result.findings if finding.keys is not None and finding.verdict != "error"]
    if not found:
        return "not assessed", words("items.bins.unseen")
    most, varying = max(keys.keys for keys in found), max(keys.varying for keys in found)
    came = said("evidence.bins_came", varying=varying) if varying else said("evidence.bins_stayed")
    facts = said("evidence.bins", pairs=plural(len(found), "pair"), keys=plural(most, "key"), came=came)
    rest = asked_count(result) - len(found)
    others = said("evidence.bins_rest", pairs=plural(rest, "other pair")) if rest else ""
    # Validity: what could show nothing, or rests on draws that are not independent, is no full test.
    whole = not rest and not verdict_count(result, "inconclusive") and not wording.dependence_sentence(result)
    return "tested" if whole else "tested in part", joined(facts, others)


def side_channels(result: AuditResult) -> Found:
    """Say what was compared beside the outputs: running times where they were looked at, and kinds of exceptions."""
    status, facts = side_findings(result, SIDE_CHANNELS)
    if _is_of_calls(result) and not wording.is_unanswered(result):
        status = "tested in part"
    errors = said("evidence.exceptions" if _is_of_calls(result) else "evidence.no_exceptions")
    unseen = "" if BY_OUTPUTS in str(result.subject.get("interface", "")) else said("unseen.by_outputs")
    return status, joined(facts or said("unseen.timing"), errors, unseen, said("evidence.backend"))


def _is_of_calls(result: AuditResult) -> bool:
    """Tell whether each draw was a call of its own, so that an exception is an outcome."""
    interface = str(result.subject.get("interface") or "sample(data, size, rng)")
    return "size" not in interface or interface.endswith("one call a draw")


def side_findings(result: AuditResult, kinds: Sequence[str]) -> Found:
    """Say what the side findings of these kinds say; nothing where none of them applied."""
    looked = [f for f in side_texts.beside(result) if f.kind in kinds and f.status != "not_applicable"]
    texts = list(map(side_texts.line, looked))
    if not texts:
        return "not assessed", ""
    seen = {f.kind for f in looked}  # what was looked at must not stand for the rest of the item
    texts += [text for kind, text in words("unseen").items() if kind in kinds and kind not in seen]
    return "tested in part", joined(*texts)


def loss(result: AuditResult) -> Found:
    """Say how the claim compares with what was measured."""
    if wording.is_unanswered(result):
        return "not assessed", ""
    status, text = _row(result, verdict_count(result, "error") + verdict_count(result, "inconclusive"))
    dependence = wording.dependence_sentence(result)
    # Validity: what could show nothing, or rests on draws that are not independent, is no full test of the claim.
    return "tested in part" if dependence else status, joined(text, side_findings(result, CLAIM)[1], dependence)


def within_calls(result: AuditResult) -> Found:
    """Say what is supposed of outputs of one call, where a call gives many."""
    if _is_of_calls(result) or wording.dependence_sentence(result) or loss(result)[0] == "not assessed":
        return "not assessed", ""
    return "tested", said("evidence.within_calls")


def unit(result: AuditResult) -> Found:
    """Say what two inputs of a tested pair differ in."""
    if not asked_count(result):
        return "not assessed", ""
    shown = [f"{_input(f.x_id, f.x)} against {_input(f.x_prime_id, f.x_prime)}" for f in result.findings[:EXAMPLES]]
    if result.universe is not None and not shown:
        worst = result.universe.worst(EXAMPLES)
        shown = [f"{clean(row.x_id, 60)} against {clean(row.x_prime_id, 60)}" for row in worst]
    redacted = any(is_redacted(finding.x) for finding in result.findings[:1])
    examples = said("evidence.unit_redacted") if redacted else f"for example: {'; '.join(shown)}"
    facts = said("evidence.unit", pairs=plural(asked_count(result), "pair"), examples=examples)
    skipped = len(result.not_asked)
    return "tested in part", joined(facts, said("evidence.not_asked", pairs=plural(skipped, "pair")) if skipped else "")


def _input(name: str, value: Any) -> str:
    """An input, with its name where it has another one."""
    shown = clean(value, 90)
    return shown if name == shown else f"{clean(name, 60)} ({shown})"
