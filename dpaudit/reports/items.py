"""The items of an evaluation, with the status and the evidence that a dossier reaches for each.

Every item is printed, whatever its status. `tested` and `tested in part` stand only where a result of the dossier holds
the figures; what the user says is `declared` and is quoted as such; the rest is `not assessed`. Sections are those of
NIST SP 800-226 in its draft of December 2023. No status says that anything conforms to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from dpaudit.conformance.result import CheckRecord, CheckResult
from dpaudit.reports import doubles, scope, wording
from dpaudit.reports.deployment import ITEMS
from dpaudit.reports.dossier import Dossier, Result, subject_of
from dpaudit.reports.scope import Status
from dpaudit.reports.wording import clean, percent_text, plural

LARGE_EPSILON, LARGE_DELTA = 10.0, 1e-3  # beyond which the report says so, as context
CHECKS_NAMED = 10  # checks that looked at an item
SAID = 300  # characters of a declaration beside its item
NAMED = 5  # subjects, where some are left out
ANSWERS = ("violated", "not_refuted", "inconclusive", "xfail")  # statuses of checks that ran to an end
# Checks of the conformance suite that look at an item, beside the laws of composition, which are the queries'.
CHECKED = {
    "epsilon": ("claim_exact", "claim_audit"),
    "floating_point": ("floating_point",),
    "utility": ("utility_bounds", "more_budget_less_error"),
}
SECTIONS = {
    "epsilon": ("2.2, 2.3, 2.5", "claim against measurement"),
    "unit": ("2.4", "scope of the guarantee"),
    "contribution": ("3.4.1", "sensitivity"),
    "correctness": ("3, 3.4", "correctness"),
    "bins": ("3.4.1", "correctness"),
    "floating_point": ("4.3", "numerics"),
    "side_channels": ("4.3", "side channels"),
    "utility": ("3.2, 3.3.3", "utility"),
    "human_bias": ("3.3.1, 3.3.2", "bias"),
    "learning": ("3.5, 3.6", "correctness"),
    "queries": ("4.1", "accounting"),
    "other_releases": ("2.6", "limitations"),
    "trust": ("4.2", "trust model"),
    "security": ("4.4, 4.5", "outside the audit"),
}
# Sections of the W3C working draft "Attribution Level 1" that ask for the same, of an aggregate over browsers.
W3C_EDITION = "W3C Attribution Level 1, editor's draft of 2026-05-14"
W3C = {
    "epsilon": "Differential Privacy Mechanisms",
    "unit": "Privacy Unit",
    "contribution": "Per-Site Limits",
    "correctness": "Formal Analysis of Privacy Properties and Their Limitations",
    "side_channels": "Side Channel Risks in Implementation",
    "queries": "Privacy Budget Deduction; Anti-Replay Requirements",
    "other_releases": "Safety Limits; Combining Reports from Multiple Sites",
    "trust": "Aggregation Services",
    "security": "Security Considerations: Impression Store",
}
UNCHECKED = "Laws, conformance, exact checks and the fit of the output distribution are other runs: none is here."
NOTHING = {
    "epsilon": "No audit is among the results.",
    "unit": "No audit is among the results.",
    "contribution": "No search over datasets, and none over users with many rows.",
    "correctness": "Neither an audit nor a run of the conformance suite is among the results.",
    "bins": scope.NO_KEYS,
    "floating_point": "Low bits, gaps in the support and extreme magnitudes were not looked at.",
    "side_channels": "Running times, errors and the backend were not compared between inputs.",
    "utility": "Errors of the outputs were not measured.",
    "human_bias": "No groups were given.",
    "learning": "Training and synthesis were not looked into.",
    "queries": "No sequence of queries was run, and no refusal at a spent budget was tried.",
    "other_releases": "Whether the same data are released elsewhere was not looked at.",
    "trust": "The audit plays an adversary who knows both inputs and sees outputs alone; trust was not looked at.",
    "security": "Outside of what an audit can observe.",
}


@dataclasses.dataclass(frozen=True)
class Item:
    """One item: key (`deployment.ITEMS`), name, sections of the draft, status, lines of evidence, what is declared."""

    key: str
    name: str
    sections: str
    part: str
    status: Status
    evidence: str
    declared: str


def items(dossier: Dossier) -> tuple[Item, ...]:
    """All items, in the order of `deployment.ITEMS`."""
    return tuple(_item(key, dossier) for key in ITEMS)


def _item(key: str, dossier: Dossier) -> Item:
    deployment = dossier.deployment
    said = clean(deployment.declared.get(key, ""), 4000) if deployment is not None else ""
    reason = clean(deployment.not_applicable.get(key, ""), 4000) if deployment is not None else ""
    status, evidence = _tested(key, dossier)
    if status == "not assessed":
        if reason:
            status, evidence = "not applicable", reason
        elif said:
            rest = " (in full under “What was declared”)" if len(said) > SAID else ""
            status, evidence = "declared", f"Declared: {clean(said, SAID)}{rest}\nNot tested: {evidence}"
    elif reason:
        evidence = f"{evidence}\nDeclared as not applicable, for the reason: {reason}"
    sections, part = SECTIONS[key]
    return Item(key, ITEMS[key], sections, part, status, evidence, said)


def _tested(key: str, dossier: Dossier) -> tuple[Status, str]:
    finders = {
        "epsilon": _epsilon,
        "unit": _unit,
        "contribution": _contribution,
        "correctness": _correctness,
        "bins": _bins,
        "floating_point": _floating_point,
        "side_channels": _side_channels,
        "utility": _utility,
        "queries": _queries,
    }
    found = finders[key](dossier) if key in finders else None
    checked = _checked(key, dossier)
    if found is not None:
        return found[0], "\n".join([found[1], *checked])
    return ("tested in part", "\n".join(checked)) if checked else ("not assessed", NOTHING[key])


def _checked(key: str, dossier: Dossier) -> list[str]:
    """What the checks that look at an item found, a line each; of those that gave an answer."""
    lines = []
    for record in (record for one in dossier.checks for record in one.records):
        if record.name in CHECKED.get(key, ()) and record.status in ANSWERS:
            known = " (a known failure)" if record.status == "xfail" else ""
            status = "violated" if known else status_word(record.status)
            who, demand = clean(record.mechanism, 60), clean(record.demands, 160)
            message = f" {clean(record.message, 300)}" if record.message else ""
            lines.append(f"{who}: the check {clean(record.name, 60)}, that it {demand}: {status}{known}.{message}")
    more = len(lines) - CHECKS_NAMED
    return [*lines[:CHECKS_NAMED], f"And {plural(more, 'more check')}."] if more > 0 else lines


def _epsilon(dossier: Dossier) -> tuple[Status, str] | None:
    rows = [scope.loss(result) for result in dossier.audits]
    if not rows:
        return None
    found = {status for status, _ in rows}
    missing = _left_out("Not audited", dossier, dossier.audits)
    status: Status = rows[0][0] if len(found) == 1 and not missing else "tested in part"
    texts = [
        f"{wording.subject_name(result)}: {facts}" for result, (_, facts) in zip(dossier.audits, rows, strict=True)
    ]
    return status, "\n".join([*texts, *missing, *_context(dossier)])


def _left_out(what: str, dossier: Dossier, results: Sequence[Result]) -> list[str]:
    """A sentence that names the subjects which none of these results is about; nothing where there is none."""
    # Validity: what was seen of one mechanism must not stand for another one of the same report.
    names = [clean(name, 60) for name in dossier.without(results)]
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return [f"{what}: {', '.join(names[:NAMED])}{more}."] if names else []


def _context(dossier: Dossier) -> list[str]:
    """What is said of large promises: context, not a finding."""
    budgets = [finding.budget for result in dossier.audits for finding in result.findings]
    tables = [result.universe for result in dossier.audits if result.universe is not None]
    notes = []
    epsilons = [table.budget for table in tables if table.parameter_lower is None]  # of others, those of findings
    most = [float(budget[np.isfinite(budget)].max(initial=0.0)) for budget in epsilons]
    large = max((*most, *(budget.epsilon for budget in budgets)), default=0.0)
    if large > LARGE_EPSILON:
        notes.append(
            f"The largest promised ε is {wording.number_text(float(large))}: a promise above {LARGE_EPSILON:g} allows "
            "nearly certain conclusions about which input was used, even if it is kept."
        )
    wide = max((*(table.delta for table in tables), *(budget.delta for budget in budgets)), default=0.0)
    if wide > LARGE_DELTA:
        notes.append(
            f"The largest promised δ is {wording.number_text(float(wide))}: a promise above {LARGE_DELTA:g} may, in "
            "the worst case, publish that share of the records, even if it is kept."
        )
    return notes


def _unit(dossier: Dossier) -> tuple[Status, str] | None:
    rows = [scope.unit(result) for result in dossier.audits]
    tested = [facts for status, facts in rows if status != "not assessed"]
    return ("tested in part", "\n".join(dict.fromkeys(tested))) if tested else None


def _contribution(dossier: Dossier) -> tuple[Status, str] | None:
    return _sides(dossier, scope.SENSITIVITY)


def _correctness(dossier: Dossier) -> tuple[Status, str] | None:
    parts = []
    for result in dossier.audits:
        parts.append(f"{wording.subject_name(result)}: audited, {wording.VERDICT_WORDS[result.verdict]}.")
    parts += [checks_text(one) for one in dossier.checks if one.records]
    parts += [] if dossier.checks else [UNCHECKED]
    missing = [
        *(_left_out("Not audited", dossier, dossier.audits) if dossier.audits else ()),
        *(_left_out("Not checked by the conformance suite", dossier, dossier.checks) if dossier.checks else ()),
    ]
    found = [finding.verdict for result in dossier.audits for finding in result.findings]
    found += [result.universe.overall for result in dossier.audits if result.universe is not None]
    statuses = {*found, *(record.status for one in dossier.checks for record in one.records)}
    if statuses.isdisjoint(ANSWERS):  # whatever was begun gave no answer
        return None
    versions = {f"{name} {value}" for source in dossier.sources for name, value in source.result.environment.items()
                if name in ("python", "numpy", "scipy", "opendp", "dpaudit")}  # fmt: skip
    # Validity: one violated check must not hide that others gave no answer, as the verdict of the whole list does.
    whole = dossier.audits and dossier.checks and not missing and {"error", "inconclusive"}.isdisjoint(statuses)
    status: Status = "tested" if whole else "tested in part"
    return status, "\n".join([*parts, *missing, f"Versions: {clean(', '.join(sorted(versions)), 300)}."])


def checks_text(result: CheckResult) -> str:
    """How many checks of a run ended how, and of which mechanisms."""
    names = [clean(subject_of(one), 60) for one in result.mechanisms]
    of = ", ".join(names) if len(names) <= NAMED else plural(len(names), "mechanism")
    return f"{of}: {check_sentence(result.records)}"


def check_sentence(records: Sequence[CheckRecord]) -> str:
    """How many checks ended how."""
    found: dict[str, int] = {}
    for record in records:
        found[record.status] = found.get(record.status, 0) + 1
    counted = ", ".join(f"{count:,} {status_word(status)}" for status, count in found.items())
    return f"{plural(len(records), 'check')} of the conformance suite: {counted}."


def status_word(status: str) -> str:
    """A status of the conformance suite in words."""
    return {"xfail": "known failure", "skipped": "not applicable"}.get(status, status.replace("_", " "))


def _floating_point(dossier: Dossier) -> tuple[Status, str] | None:
    looked = [result for result in dossier.audits if result.floating_point is not None and result.floating_point.pairs]
    if not looked:
        return None
    texts = []
    for result in looked:
        assert result.floating_point is not None
        rate = percent_text(result.floating_point.error_rate)
        texts.append(
            f"{wording.subject_name(result)}: {doubles.headline(result)}, at an error rate of {rate} of its own."
        )
    return "tested in part", "\n".join([*texts, "Extreme magnitudes and overflow were not searched for."])


def _bins(dossier: Dossier) -> tuple[Status, str] | None:
    rows = [(result, *scope.bins(result)) for result in dossier.audits]
    looked = [(result, status, facts) for result, status, facts in rows if status != "not assessed"]
    if not looked:
        return None
    missing = _left_out("Not audited on outputs with keys", dossier, [result for result, _, _ in looked])
    whole = not missing and all(status == "tested" for _, status, _ in looked)
    texts = [f"{wording.subject_name(result)}: {facts}" for result, _, facts in looked]
    return "tested" if whole else "tested in part", "\n".join([*texts, *missing])


def _side_channels(dossier: Dossier) -> tuple[Status, str] | None:
    rows = [(result, *scope.side_channels(result)) for result in dossier.audits]
    texts = [f"{wording.subject_name(result)}: {facts}" for result, status, facts in rows if status != "not assessed"]
    return ("tested in part", "\n".join(texts)) if texts else None


def _sides(dossier: Dossier, kinds: Sequence[str]) -> tuple[Status, str] | None:
    found = [(result, scope.sides_text(result, kinds)) for result in dossier.audits]
    texts = [f"{wording.subject_name(result)}: {text}" for result, text in found if text]
    return ("tested in part", "\n".join(texts)) if texts else None


def _utility(dossier: Dossier) -> tuple[Status, str] | None:
    measured = [result for result in dossier.utilities if any(f.verdict != "error" for f in result.findings)]
    if not measured:
        return None
    texts, gaps = [], 0
    for result in measured:
        broken = sum(finding.verdict == "violated" for finding in result.findings)
        unclear = sum(finding.told in ("error", "inconclusive") for finding in result.findings)
        rest = f" {plural(unclear, 'test')} gave no full answer." if unclear else ""
        empty = sum(finding.says_nothing for finding in result.findings)
        rest += f" In {plural(empty, 'test')} the bound says nothing: no output can exceed it." if empty else ""
        gaps += unclear
        texts.append(
            f"{clean(str(result.subject.get('name', '')), 80)}: {plural(len(result.bounds), 'stated error bound')} on "
            f"{plural(len({f.input_id for f in result.findings}), 'input')}, {broken:,} of "
            f"{plural(len(result.findings), 'test')} violated, at {percent_text(result.confidence)} confidence.{rest}"
        )
    missing = _left_out("Not measured", dossier, measured)
    return "tested in part" if gaps or missing else "tested", "\n".join([*texts, *missing])


def _queries(dossier: Dossier) -> tuple[Status, str] | None:
    records = [
        r for one in dossier.checks for r in one.records if r.name.startswith("law_") and "composition" in r.name
    ]
    ran = [record for record in records if record.status not in ("skipped", "error")]
    if not ran:
        return None
    text = f"Composition laws: {check_sentence(ran)} Refusal at a spent budget was not tried."
    return "tested in part", text
