"""The rows of page one: what each result says of one promise, and what it may have missed.

A row is one subject and one kind of promise: privacy (an audit), proof (a certificate), scores (of canaries), errors (a
test of stated error bounds) or behaviour (a run of the conformance suite). Measured figures are bounds; ratios are of a
bound to its promise, 1 being the promise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.conformance.result import CheckRecord, CheckResult
from dpaudit.privacy.claims import Budget
from dpaudit.reports import side_texts, wording
from dpaudit.reports.dossier import FAILED, LOW_BITS, Dossier, Line, Result, subject_of
from dpaudit.reports.severity import Severity, severity_of
from dpaudit.reports.wording import clean, compared, number_text, percent_text, plural, some, status_word, sure_text
from dpaudit.reports.words import joined, said
from dpaudit.results.model import VERDICTS, AuditResult, Finding
from dpaudit.results.utility_result import UtilityResult

if TYPE_CHECKING:
    from dpaudit.conformance.registry import CheckSpec

NAMED = 3  # subjects or items that a sentence names
KINDS = ("proof", "privacy", "scores", "errors", "behaviour")  # of promises, in the order of the rows
UNKNOWN = ("nothing", "everything")  # measured, and missed, where no bound has a figure
CLAIM, LAW = ("claim_exact", "claim_audit"), "law_"  # checks of the privacy claim, and how those of its laws begin


def ranked(dossier: Dossier) -> tuple[Line, ...]:
    """A line for each result, the gravest first, low bits that break a promise before others, privacy before errors."""
    lines = [*map(line_of, dossier.results), *(one.line for one in dossier.judged)]

    def key(one: Line) -> tuple[float, ...]:
        return VERDICTS.index(one.verdict), not one.leaks, KINDS.index(one.kind), -(one.low or 0.0)

    return tuple(sorted(lines, key=key))


def line_of(result: Result) -> Line:
    """Say what a result says of its promise."""
    if isinstance(result, AuditResult):
        return privacy_line(result)
    return _behaviour(result) if isinstance(result, CheckResult) else _errors(result)


def privacy_line(result: AuditResult) -> Line:
    """Say what an audit says of its claim."""
    worst, graded, claim = _worst(result), severity_of(result), clean(result.claim, 80)
    sure = "not to be relied on" if wording.is_unreliable(result) else sure_text(result.confidence)
    name, count = wording.subject_name(result, 60), wording.asked_count(result)
    inputs = [wording.name_text(one, 30) for one in (worst.x_id, worst.x_prime_id)] if worst and count == 1 else []
    of = f" ({' and '.join(inputs)})" if inputs and "…" not in "".join(inputs) else ""

    about: dict[str, Any] = {
        "tested": said("row.tested_privacy", pairs=plural(count, "pair"), of=of, runs=plural(result.samples, "run")),
        "settles": wording.settling_sentence(result) if result.verdict == "inconclusive" else "",
        "remark": wording.outputs_sentence(result),
        "beside": side_texts.found_beside(result),
        "word": said("row.leaks") if wording.leaks(result) and result.verdict != "violated" else "",
    }

    def line(promised: str, measured: str, missed: str, **more: Any) -> Line:
        return Line(name, "privacy", promised, measured, result.verdict, sure, missed, graded, **about, **more)

    if not count:
        return line(said("row.no_limit", claim=claim), "nothing", "everything", is_boundless=True)
    if worst is None or math.isnan(worst.parameter_lower):
        return line(claim, "nothing" if worst is None else "no bound", "everything")
    if worst.verdict == "error":
        unanswered = {"broken": wording.verdict_count(result, "error"), "pairs": plural(count, "pair")}
        return line(claim, said("row.no_answer", **unanswered), said("row.missed_broken"))
    lower, budget = compared(worst.parameter_lower, worst.parameter_budget)
    sign, unit = wording.symbol(worst.parameter), wording.unit(worst.parameter)
    delta = f" at δ = {number_text(worst.budget.delta)}" if wording.is_line(worst) and worst.budget.delta else ""
    budgets = {finding.parameter_budget for finding in result.findings if not math.isnan(finding.parameter_budget)}
    if (table := result.universe) is not None:
        budgets |= set(table.budget[~table.having(None)].tolist())
    promised = wording.claim_text(claim, worst.parameter, budget, delta)
    broken = wording.verdict_count(result, "violated")
    times = "" if worst.ratio_lower is None or math.isinf(worst.ratio_lower) else wording.ratio_text(worst)
    ratio = said("row.of_promise", times=times) if times else ""
    if len(budgets) > 1:
        least, most = number_text(min(budgets)), number_text(max(budgets))
        promised = f"{claim}\n{said('row.range', name=sign, least=least, most=most)}"
        which = said("row.worst" if broken else "row.nearest")
        ratio = said("row.of_pair" if times else "row.of_limit", which=which, times=times, budget=budget + delta)
    facts = {"name": sign, "lower": wording.at_least(lower), "unit": unit, "ratio": ratio}
    unjudged = wording.unjudged_count(result)
    if wording.dependence_sentence(result) or unjudged == count:
        # No ratio: figures of a single output suppose independent draws.
        known = "bound" if worst.parameter_lower > 0.0 else "unjudged"
        which = known if not broken else "doubtful" if wording.is_unreliable(result) else "stands"
        measured = said(f"row.{which}", **facts, limit=lower)
        missed = said("row.missed_larger" if broken else "row.missed_dependent")
        return line(promised, measured, missed, sentence=said(f"row.{which}_sentence") if broken else "")
    which = "broken" if broken else "judged" if unjudged else "tested"
    tail = said(f"row.{which}", broken=broken, judged=count - unjudged, pairs=plural(count, "pair"))
    measured = said("row.privacy", **facts, tail=tail if count > 1 else "")
    low = None if worst.ratio_lower is None or math.isnan(worst.ratio_lower) else float(worst.ratio_lower)
    missed, blind, found = _privacy_missed(result, graded)
    if unjudged and not broken:
        missed += said("row.missed_unjudged", count=plural(unjudged, "pair"))
    powers = [] if broken else [one.power for one in result.findings if one.power is not None]
    mass = max((one.blind_mass for one in powers if one.blind_mass is not None), default=None)
    others = [one for power in powers for one in power.learned if one.plants and not one.decides]
    unfound = dict.fromkeys(one.form for one in others if math.isinf(one.loss))
    rarest = joined(
        said("row.rarest", mass=percent_text(mass)) if mass is not None else "",
        said("row.unfound", forms=", ".join(unfound)) if unfound else "",
    )
    return line(promised, measured, missed, low=low, blind=blind, tried=found, rarest=rarest)


def missed_sentence(result: AuditResult) -> str:
    """Say what an audit may have missed, and which of several pairs was tested least well."""
    weakest, row = wording.least_powerful(result), privacy_line(result)
    text = joined(said("row.may_have_missed", missed=row.missed.removesuffix(".")), row.rarest)
    if weakest is None or len(result.findings) < 2 or result.universe is not None:
        return text
    return joined(text, said("row.weakest", pair=wording.name_text(weakest.id, 60)))


def _worst(result: AuditResult) -> Finding | None:
    """The worst pair if it is violated or broke, else that whose bound is nearest its limit, of a table too."""
    worst, table = result.worst, result.universe
    if worst is not None and worst.verdict in ("violated", "error"):
        return worst
    known = [one for one in result.findings if one.ratio_lower is not None and not math.isnan(one.ratio_lower)]
    nearest = max(known, key=lambda one: one.ratio_lower or 0.0, default=worst)
    if table is None or not table.asked or (nearest and not result.ratio_lower > (nearest.ratio_lower or 0.0)):
        return nearest
    ratios = table.ratio_lower
    row = table.row(int(np.nanargmax(ratios))) if not np.isnan(ratios).all() else table.worst(1)[0]
    epsilon = row.budget if table.parameter_lower is None else math.inf
    return Finding(
        row.id, row.x_id, row.x_prime_id, None, None, Budget(epsilon, table.delta), table.parameter, row.budget,
        row.verdict or "inconclusive", row.epsilon_lower, row.lower, row.ratio_lower,
    )  # fmt: skip


def _privacy_missed(result: AuditResult, graded: Severity | None) -> tuple[str, float | None, dict[str, str] | None]:
    """Say what the audit could have missed in words, and `blind` and `tried` of a line.

    They are those of the pair whose loss that would have been noticed is the largest for its promise.
    """
    if result.verdict == "violated":
        larger = said("row.missed_first" if graded is not None and graded.is_least else "row.missed_larger")
        open_pairs = wording.verdict_count(result, "inconclusive")
        rest = said("row.missed_others", count=plural(open_pairs, "pair")) if open_pairs else ""
        return larger + rest, None, None
    if result.universe is not None:
        counts = {name: result.universe.count(name) for name in ("not_refuted", "inconclusive")}
        texts = [said(f"row.missed_{name}", pairs=plural(count, "pair")) for name, count in counts.items() if count]
        return " and ".join(texts) or "not known", None, None
    powers = [finding.power for finding in result.findings if finding.power is not None]
    if not powers:
        return "not known", None, None
    sizes_of = [(power.at_budget, power.deciding) for power in powers]
    deciding = [sizes if math.isfinite(sum(sizes)) else (1.0, math.inf) for sizes in sizes_of]
    blind = max((loss / allowed for allowed, loss in deciding if allowed > 0.0), default=None)
    nats = max((loss for allowed, loss in deciding if not allowed > 0.0), default=0.0)  # of these there is no ratio
    found = wording.tried(powers)
    if math.inf in (blind, nats):
        planted = [one for power in powers if power.is_planted for one in power.learned]
        if forms := dict.fromkeys(one.form for one in planted if one.decides and math.isinf(one.loss)):
            return said("row.missed_planted", forms=", ".join(forms)), math.inf, found
        searched = "" if found is None else said("row.searched")
        return said("row.missed_any", searched=searched), math.inf, found
    sizes = [] if blind is None else [said("row.of_limits", times=wording.upper_text(blind, 3))]
    sizes += [said("row.of_zero", loss=wording.nats_text(nats))] if nats > 0.0 else []
    masses = [powers[0].event_mass, *(one.event_mass or 0.0 for power in powers for one in power.learned)]
    facts = {"size": " and ".join(sizes), "rare": percent_text(max(masses))}
    if found is None:
        return said("row.missed_known", **facts), blind, None
    return said("row.missed_learned", **facts, **found), blind, found


def _errors(result: UtilityResult) -> Line:
    name, sure = clean(subject_of(result.subject), 60), sure_text(result.confidence)
    promised = said("row.errors", bounds=plural(len(result.bounds), "stated bound"))
    inputs = plural(len({finding.input_id for finding in result.findings}), "input")
    bounds = plural(len(result.bounds), "bound")
    tested = said("row.tested_errors", bounds=bounds, inputs=inputs, runs=plural(result.samples, "run"))
    usable = [f for f in result.findings if f.verdict != "error" and f.ratio is not None and not math.isnan(f.ratio)]
    unsettled = [finding for finding in result.findings if finding.status == "inconclusive"]
    is_dependent = bool(unsettled) and all(finding.message for finding in unsettled)
    why = "dependent" if is_dependent else "errors" if unsettled and all(f.says_nothing for f in unsettled) else ""
    settles = said(f"settling.{why}") if why and result.status == "inconclusive" else ""
    if not usable:
        measured, missed = (said("row.unjudged"), said("row.missed_dependent")) if is_dependent else UNKNOWN
        return Line(name, "errors", promised, measured, result.status, sure, missed, tested=tested, settles=settles)
    worst = min(usable, key=lambda f: (VERDICTS.index(f.status), -(f.ratio or 0.0)))
    low, high = worst.ratio_lower, worst.ratio_upper
    ends = f"{wording.lower_text(low, 3)} to {wording.upper_text(high, 3)}" if high is not None else ""
    what = said(f"row.errors_{worst.kind}")
    measured = said("row.errors_measured", what=what, ratio=number_text(worst.ratio, 3), ends=ends)
    empty = [finding for finding in usable if finding.says_nothing]
    if empty:
        names = ", ".join(list(dict.fromkeys(clean(finding.bound, 60) for finding in empty))[:NAMED])
        measured += said("row.errors_empty", limits=plural(len(empty), "limit"), names=names)
    is_excess = worst.ratio is not None and worst.ratio > 1.0 and result.status == "inconclusive"
    known = [f.detectable_ratio for f in usable if f.detectable_ratio is not None]
    blind = math.inf if empty else max(known, default=math.inf)
    missed = said("row.errors_missed" if math.isfinite(blind) else "row.errors_any", times=wording.upper_text(blind, 3))
    word = said("row.excess") if is_excess else ""
    return Line(
        name, "errors", promised, measured, result.status, sure, missed, None, low, high, word=word, tested=tested,
        settles=settles,
    )  # fmt: skip


def _behaviour(result: CheckResult) -> Line:
    names = list(dict.fromkeys(subject_of(one) for one in result.mechanisms))
    name = clean(names[0], 60) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")
    checks = plural(len(result.records), "check")
    promised = said("row.behaviour", checks=checks)
    failed = result.of_status("violated")
    word = FAILED if failed and not any(map(breaks_claim, failed)) else ""
    unsettled = len(result.of_status("inconclusive")) + len(result.of_status("error"))
    rest = said("row.missed_others", count=plural(unsettled, "check")) if unsettled else ""
    sure, missed = sure_text(1.0 - result.error_rate), said("row.behaviour_missed", open=rest)
    settles = said("settling.checks") if len(result.of_status("skipped")) == len(result.records) else ""
    return Line(
        name, "behaviour", promised, checks_text(result.records), result.verdict, sure, missed, word=word,
        tested=checks, settles=settles, beside=(LOW_BITS,) * any(one.name == side_texts.LOW_BITS for one in failed),
    )  # fmt: skip


def checks_text(records: Sequence[CheckRecord]) -> str:
    """Say how checks ended: the names of the first ones that failed, those of the claim before others.

    A check of calls has passed; a test of privacy that found nothing has not been refuted.
    """
    counts = Counter("passed" if one.status == "not_refuted" and is_of_calls(one) else one.status for one in records)
    failed = sorted(records, key=lambda record: not breaks_claim(record))
    named = some([clean(one.name, 40) for one in failed if one.status == "violated"], NAMED)
    told = {"violated": f"failed ({named})"}
    order = ("violated", "not_refuted", "passed", "error", "inconclusive", "xfail", "skipped")
    return ", ".join(f"{counts[one]:,} {told.get(one, status_word(one))}" for one in order if counts[one])


def spec_of(record: CheckRecord) -> CheckSpec | None:
    """The check of a record; None of one that is not known here, of another package or version."""
    from dpaudit.conformance.registry import all_checks

    return next((spec for spec in all_checks() if spec.name == record.name), None)


def is_of_calls(record: CheckRecord) -> bool:
    """Tell whether a check is about calls."""
    spec = spec_of(record)
    return spec is not None and spec.is_hygiene


def breaks_claim(record: CheckRecord) -> bool:
    """Tell whether a violated check is of the privacy claim, or of what follows from it."""
    return record.name in CLAIM or record.name.startswith(LAW)
