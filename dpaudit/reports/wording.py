"""Numbers, names and sentences that every report shares.

Conventions: what cannot be printed is shown as an escape (`\\u202e`); lower bounds are rounded down; what is
missing or NaN is an en dash. Names, inputs, messages and rules come from the subject and are treated as hostile:
`clean` makes one line of bounded length out of anything, and each report escapes that line for its own format.
"""

from __future__ import annotations

import datetime
import math
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from typing import Any, TypeVar

from dpaudit.audits.findings import STANDS
from dpaudit.errors import UsageError
from dpaudit.inference.binomial import binomial_lower
from dpaudit.numerals import MISSING as MISSING
from dpaudit.numerals import at_least as at_least
from dpaudit.numerals import compared as compared
from dpaudit.numerals import lower_text as lower_text
from dpaudit.numerals import no_less as no_less
from dpaudit.numerals import number_text as number_text
from dpaudit.numerals import rounded
from dpaudit.privacy.pairs import short_form
from dpaudit.reports.words import joined, said
from dpaudit.reports.words import plural as plural
from dpaudit.reports.words import printable as printable
from dpaudit.reports.words import some as some
from dpaudit.results import model
from dpaudit.results.model import SAME_INPUT, ZERO_BUDGET_LOSS, AuditResult, Finding, LearnedLoss, Power, Verdict

# Side findings that say that draws are not independent, and what was found of calls.
DEPENDENCE: Mapping[str, str] = {"independence": "share noise", "call_order": "depend on each other"}
Text = TypeVar("Text", bound=Hashable)
UNRELIABLE = "not to be relied on: draws are not independent"  # said of a confidence
NOTES, NOTED = 12, 4  # notes that are shown, and pairs named in each
SYMBOLS: Mapping[str, str] = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}
UNITS: Mapping[str, str] = {"epsilon": "nats", "rho": "nats"}  # mu and scale are pure numbers
VARIABLE = "SOURCE_DATE_EPOCH"  # seconds since 1970 in UTC: reproducible-builds.org/specs/source-date-epoch
SLACK = 1e-9  # relatively: 1 - 0.95 is more than 0.05, and a bound that is worked out more than what it equals
STATUS_WORDS = {"xfail": "known failure", "skipped": "not applicable", "warning": "found beside the claim"}
UNDATED = said("provenance.undated")


def clean(value: Any, width: int = 120) -> str:
    """One line that names `value`, at most `width` characters, each of them printable.

    Control characters, marks that change the direction of writing and lone surrogates become visible escapes.
    """
    text = value if isinstance(value, str) else short_form(value, width=4 * width)
    shown = printable(text[: width + 1])
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def excerpt(text: str, width: int) -> str:
    """One line as by `clean`, which ends with how long the whole is where it was cut, and where it stands.

    Examples
    --------
    >>> excerpt("short", 10), excerpt("longer than that", 10)
    ('short', 'longer th… (the whole, 16 characters, is in the saved result)')
    """
    shown = clean(text, width)
    is_whole = len(text) <= width and len(printable(text)) <= width
    return shown if is_whole else f"{shown} (the whole, {plural(len(text), 'character')}, is in the saved result)"


def name_text(value: Any, width: int = 120) -> str:
    """One line as by `clean`, shortened in the middle: names of pairs often differ at their ends alone.

    Examples
    --------
    >>> name_text("{'a': 0, 'b': 0, 'c': 0}|{'a': 0, 'b': 0, 'c': 1}#10", 24)
    "{'a': 0, 'b': 0…': 1}#10"
    """
    shown = value if isinstance(value, str) else short_form(value, width=4 * width)
    if len(shown) <= width:
        return clean(shown, width)
    tail = printable(shown[-width // 3 :])[-(width // 3) :]
    head = printable(shown[:width])[: width - 1 - len(tail)]
    return f"{head}…{tail}"


def is_weaker(finding: Finding) -> bool:
    """Tell whether a pair is violated and its epsilon is within the promise all the same: that says nothing."""
    return finding.verdict == "violated" and not finding.epsilon_lower > finding.budget.epsilon


def is_line(finding: Finding) -> bool:
    """Tell whether the claim's parameter is the epsilon of the pair's own line (epsilon, delta)."""
    return finding.parameter == "epsilon" and finding.budget.epsilon == finding.parameter_budget


def pair_heads(parameter: str) -> tuple[str, ...]:
    """Heads of a table of pairs above `pair_row`."""
    units = f" ({UNITS[parameter]})" if parameter in UNITS else ""
    return ("pair", f"lower bound on {symbol(parameter)}{units}", f"budget{units}", "ratio", "verdict")


def pair_row(id: str, lower: float, budget: float, ratio: float | None, verdict: str | None) -> tuple[str, ...]:
    """A pair with its bound, budget, ratio and verdict; None: it was not asked."""
    bounds = compared(lower if verdict != "error" else math.nan, budget)
    return (name_text(id, 80), *bounds, compared(ratio, 1.0)[0], status_word(verdict or "not asked"))


def ratio_text(finding: Finding) -> str:
    """The ratio of lower bound to budget, rounded down; above 1 as printed exactly when it is above 1."""
    return compared(finding.ratio_lower, 1.0)[0]


def percent_text(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A share in per cent, to four significant digits, or as many as it takes to see that it is not all.

    Examples
    --------
    >>> percent_text(0.95), percent_text(0.999999)
    ('95%', '99.9999%')
    """
    value, digits = float(100.0 * share), 4
    while digits < 17 and value < 100.0 and rounded(value, digits, ROUND_HALF_EVEN) >= 100:
        digits += 1
    slack = {ROUND_FLOOR: SLACK * (100.0 - value), ROUND_CEILING: -SLACK * value}.get(rounding, 0.0)
    return number_text(float(rounded(value + slack, digits, rounding)), digits) + "%"


def sure_text(confidence: float) -> str:
    """A confidence in per cent, rounded down.

    >>> sure_text(0.95), sure_text(0.987658), rate_text(1.0 - 0.95), rate_text(0.0123421)
    ('95%', '98.76%', '5%', '1.235%')
    """
    return percent_text(confidence, ROUND_FLOOR)


def rate_text(rate: float) -> str:
    """A probability that is not exceeded, in per cent, rounded up."""
    return percent_text(rate, ROUND_CEILING)


def upper_text(value: float | None, digits: int = 4) -> str:
    """An upper bound, rounded up to significant digits; a proved 0 is the least double.

    >>> upper_text(0.50004), upper_text(1.0 + 4e-16), upper_text(5e-324), upper_text(math.inf)
    ('0.5001', '1', '0', '∞')
    """
    if value is None or not math.isfinite(value):
        return number_text(value)
    shown = rounded(value - SLACK * abs(value), digits, ROUND_CEILING)
    return number_text(float(shown) if shown > 1e-300 or shown < 0 else 0.0, digits)


def nats_text(value: float) -> str:
    """A loss with its unit."""
    return number_text(float(value)) + (" nat" if value == 1.0 else " nats")


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def gathered(said_of: Iterable[tuple[Text, str]]) -> dict[Text, list[str]]:
    """Texts with the names that each is said of, each once and in the order in which they come."""
    found: dict[Text, dict[str, None]] = {}
    for text, name in said_of:
        found.setdefault(text, {})[name] = None
    return {text: list(names) for text, names in found.items()}


def symbol(parameter: str) -> str:
    """Say how reports write the claim's parameter: a Greek letter where it has one."""
    return SYMBOLS.get(parameter, clean(parameter, 20))


def unit(parameter: str) -> str:
    """` nats` or nothing, to stand behind a value of the parameter."""
    return f" {UNITS[parameter]}" if parameter in UNITS else ""


def parameter_of(result: AuditResult) -> str:
    """The claim's parameter, as its findings name it."""
    if result.universe is not None:
        return result.universe.parameter
    return result.findings[0].parameter if result.findings else "epsilon"


def subject_name(result: AuditResult, width: int = 80) -> str:
    """The subject as reports name it."""
    return clean(str(result.subject.get("name") or result.subject.get("target") or "unnamed subject"), width)


def status_word(status: str) -> str:
    """A status of a case in words."""
    return STATUS_WORDS.get(status, status.replace("_", " "))


def counted(statuses: Iterable[str]) -> str:
    """Numbers of those that ended in each way, in the order in which they first come: "2 violated, 1 not refuted"."""
    return ", ".join(f"{count:,} {status_word(status)}" for status, count in Counter(statuses).items())


def threshold(finding: Finding) -> float:
    """The log wealth at which the finding is a violation: log(1 / its `verdict_level`); inf at a level of 0."""
    level = verdict_level(finding)
    return -math.log(level) if level > 0.0 else math.inf


def verdict_level(finding: Finding) -> float:
    """The largest p-value of a violation: the share of the error rate that the test against the budget has."""
    return finding.error_share if finding.verdict_share is None else finding.verdict_share


def asked_count(result: AuditResult) -> int:
    """Say how many pairs were asked: those of the all-pairs table, where there is one."""
    return len(result.findings) if result.universe is None else result.universe.asked


def is_unanswered(result: AuditResult) -> bool:
    """Tell whether no pair gave an answer: none was asked, or all broke."""
    return verdict_count(result, "error") == asked_count(result)


def verdict_count(result: AuditResult, verdict: Verdict) -> int:
    """Say how many of them have this verdict."""
    if result.universe is not None:
        return result.universe.count(verdict)
    return sum(finding.verdict == verdict for finding in result.findings)


def state(result: AuditResult) -> str:
    """The verdict of an audit as sentences tell it: also of low bits, of nothing asked, and why nothing was judged."""
    if not asked_count(result):
        return "nothing_asked"
    if result.verdict != "inconclusive":
        return "leaking" if leaks(result) and result.verdict == "not_refuted" else result.verdict
    return why_unjudged(result) or "inconclusive"


def leaks(result: AuditResult) -> bool:
    """Tell whether low bits of the outputs break the promise, which the verdict does not depend on."""
    return result.floating_point is not None and result.floating_point.verdict == "leaks"


def why_unjudged(result: AuditResult) -> str:
    """Tell why no number of draws would judge pairs: "controls" or "dependent"; empty where it would judge some."""
    is_dependent = has_changed(result) or 0 < unjudged_count(result) == verdict_count(result, "inconclusive")
    return "controls" if has_controls_alone(result) else "dependent" if is_dependent else ""


def headline(result: AuditResult) -> str:
    """The verdict in one line."""
    pairs = plural(asked_count(result), "pair")
    having = f"{verdict_count(result, result.verdict):,} of {pairs}"
    return said(f"headline.{state(result)}", having=having, pairs=pairs)


def about(result: AuditResult) -> str:
    """The subject of an audit with its claim and seed."""
    return f"{subject_name(result)}, claim {clean(result.claim, 200)}, seed {result.seed}"


def verdict_sentence(result: AuditResult) -> str:
    """The verdict, and of what it is."""
    return f"{headline(result)}: {about(result)}."


def unjudged_count(result: AuditResult) -> int:
    """Say of how many pairs nothing is said, since calls keep noise or spend a budget, or their outputs share some."""
    return sum(finding.is_withheld for finding in result.findings)


def has_controls_alone(result: AuditResult) -> bool:
    """Tell whether all pairs are of an input with itself, where no number of draws would find anything."""
    return bool(result.findings) and all(SAME_INPUT in finding.notes for finding in result.findings)


def is_weak(result: AuditResult) -> bool:
    """Tell whether more draws are the advice: there are pairs, not controls alone, of independent calls."""
    return bool(result.findings) and not why_unjudged(result) and _settled_by(result)[0] != "unknown"


def has_changed(result: AuditResult) -> bool:
    """Tell whether draws were found to depend on each other, which more draws would not mend."""
    return any(side.kind == "call_order" and side.status == "found" for side in result.side_findings)


def notes(result: AuditResult) -> list[str]:
    """Say what else is to be known of pairs, each note once, with the pairs that it is about."""
    about = gathered((note, name_text(one.id, 60)) for one in result.findings for note in one.notes)
    lines = [f"{some(names, NOTED, 'pair')}: {clean(note, 600)}" for note, names in list(about.items())[:NOTES]]
    rest = len(about) - NOTES
    if rest > 0:
        lines.append(said("notes.more", count=plural(rest, "more note")))
    if "asked_mode" in result.options:
        lines.append(said("notes.mode"))
    return lines


def outputs_sentence(result: AuditResult) -> str:
    """Note on the outputs of all pairs, or on what was drawn for them, that a reader of the verdict has to know."""
    odd = model.IS_RETURNED, model.NOTHING_DRAWN
    told = [[note for note in one.notes if note.endswith(odd)] for one in result.findings]
    return joined(*(clean(note, 300) for note in told[0])) if told and all(told) else ""


def least_powerful(result: AuditResult) -> Finding | None:
    """The pair that was tested least well; None where no power is known."""
    return model.least_powerful(result.findings, float(result.options.get("inconclusive_factor") or 2.0))


def weak_text(findings: Sequence[Finding]) -> str:
    """Say what alone would have been noticed of these inconclusive pairs: "at most a leak far above the promise"."""
    zero = [finding.power is not None and finding.power.at_budget == 0.0 for finding in findings]
    which = "weak_zero" if zero and all(zero) else "weak_some" if any(zero) else "weak"
    return said(f"power.{which}", loss=nats_text(ZERO_BUDGET_LOSS))


def planted_share(one: LearnedLoss) -> float:
    """The share of leaks like those that were planted that is found at least, at 95% confidence (Clopper, Pearson)."""
    return math.floor(100.0 * binomial_lower(one.found, one.plants, 0.05)) / 100.0


def tried(powers: Iterable[Power]) -> dict[str, str] | None:
    """The least share of leaks in the hardest form that is found, and where these were; None where none are known."""
    shares: list[tuple[float, str, list[float]]] = []  # the last: masses of events that are not as rare as was asked
    for power in (one for one in powers if one.learned):
        deciding = [one for one in power.learned if one.decides]
        found = [planted_share(one) for one in deciding if one.plants]
        masses = sorted({one.event_mass for one in deciding if one.event_mass})
        shares.append((min(found, default=power.probability), "planted" if found else "measured", masses))
    if not shares:
        return None
    share, which, masses = min(shares)
    where = said("power.elsewhere", masses=", ".join(map(number_text, masses))) if masses else ""
    texts = {"often": percent_text(share), "lost": percent_text(1.0 - share)}
    return {"where": where} | {name: said(f"power.{name}_{which}", share=text) for name, text in texts.items()}


def settling_sentence(result: AuditResult) -> str:
    """Say what would settle an audit that is inconclusive: more draws, where it is for want of these."""
    if (why := state(result)) in ("nothing_asked", "controls", "dependent"):
        return said(f"settling.{why}")
    which, needed = _settled_by(result)
    unjudged, left = unjudged_count(result), verdict_count(result, "inconclusive")
    which += "_first" if which == "samples" and left - unjudged > 1 else ""
    rest = said("settling.others", having=f"{unjudged:,} of {plural(asked_count(result), 'pair')}") if unjudged else ""
    limit = result.options.get("seconds")
    time = said("settling.seconds", seconds=number_text(limit)) if limit and which != "unknown" else ""
    return joined(said(f"settling.{which}", needed=needed), time, rest)


def _settled_by(result: AuditResult) -> tuple[str, int | None]:
    """Tell whether so many samples, more of them, or nobody knows how many would settle an audit that lacks draws."""
    weakest = least_powerful(result)
    power = None if weakest is None else weakest.power
    needed = None if power is None else power.samples_needed
    is_unknown = needed is None and power is not None and power.by_mass and not power.is_planted
    return "samples" if needed is not None else "unknown" if is_unknown else "more", needed


def counts_sentence(finding: Finding) -> str:
    """Say how often the witness was right, wrong and silent on the draws it was tested on, and what these are not."""
    witness = finding.witness
    if witness is None:
        return said("counts.no_rule")
    guesses, silent = witness.correct + witness.wrong, plural(witness.abstained, "draw")
    if guesses == 0:
        return said("counts.abstained", draws=silent)
    share = percent_text(witness.correct / guesses)
    counts = {"correct": witness.correct, "wrong": witness.wrong, "guesses": guesses, "share": share}
    right = said("counts.right", **counts, silent=silent if witness.abstained else "none")
    return joined(right, said("counts.looks") if finding.looks else "")  # bets of other rules are in the bound too


def test_sentence(finding: Finding) -> str:
    """The evidence of one pair, and from where on it is a violation; empty where there is none."""
    shown = evidence_text(finding)
    if finding.log_wealth is not None:
        return f"log wealth {shown}; a violation from {number_text(threshold(finding))}"
    return f"p-value {shown}; a violation up to {number_text(verdict_level(finding), 3)}" if shown != MISSING else ""


def allowance_sentence(finding: Finding) -> str:
    """The share of right guesses that the claim allows, where it is one number (pure claims); else empty.

    Source: docs/explanation/label-game.md: P(correct | a guess) <= e^eps / (1 + e^eps) for a pure claim.
    """
    line = finding.witness.line if finding.witness is not None else {}
    epsilon, delta = line.get("epsilon"), line.get("delta", 0.0)
    if epsilon is None or "order" in line or delta != 0.0 or not 0.0 <= epsilon < math.inf:
        return ""
    return said("counts.allowance", share=rate_text(1.0 / (1.0 + math.exp(-epsilon))))


def claim_text(claim: str, parameter: str, budget: str, delta: str = "") -> str:
    """The claim with its limit on the loss: the limit alone where the claim says no more."""
    stated = f"{symbol(parameter)} ≤ {budget}{delta}"
    return stated if claim == f"{'eps' if parameter == 'epsilon' else parameter}={budget}" else f"{claim}\n{stated}"


def bound_line(parameter: str, lower: float, budget: float, sure: str) -> str:
    """A lower bound with how sure it is, and what was promised."""
    least, most = compared(lower, budget)
    names = {"name": symbol(parameter), "unit": unit(parameter)}
    return said("bound.line", **names, lower=no_less(least), budget=most, sure=sure)


def bound_sentence(result: AuditResult, finding: Finding) -> str:
    """The lower bound on the claim's parameter with its confidence, and what was promised.

    As an epsilon too, where the claim has another parameter: but not where that weaker consequence of a violation is
    within the promise, which says nothing and would read as a pass.
    """
    sure = confidence_text(result) + (", all pairs together" * (len(result.findings) > 1))
    line = bound_line(finding.parameter, finding.parameter_lower, finding.parameter_budget, sure)
    delta = number_text(finding.budget.delta)
    if is_line(finding):
        return line + (f" (δ = {delta})" if finding.budget.delta else "")
    if (is_weaker(finding) and math.isfinite(finding.budget.epsilon)) or not finding.epsilon_lower > 0.0:
        return line
    lower, budget = compared(finding.epsilon_lower, finding.budget.epsilon)
    limit = f"promised {budget} nats" if math.isfinite(finding.budget.epsilon) else "of which it promises nothing"
    return said("bound.epsilon", line=line, delta=delta, lower=at_least(lower), limit=limit)


def evidence_text(finding: Finding) -> str:
    """Log wealth (sequential) or p-value (fixed) of one pair; an en dash where there is neither."""
    if finding.log_wealth is not None:
        return number_text(float(finding.log_wealth))
    return number_text(finding.p_value, 3)


def evidence_name(result: AuditResult) -> str:
    """Say what `evidence_cell` shows for this result: "log wealth", or "p-value" where no pair has any."""
    wealth = any(finding.log_wealth is not None for finding in result.findings)
    p_value = any(finding.p_value is not None for finding in result.findings)
    return "p-value" if not wealth and (p_value or result.mode == "fixed") else "log wealth"


def evidence_cell(finding: Finding, name: str) -> str:
    """`evidence_text` in a column of this name, `evidence_name`; a p-value among log wealths says that it is one."""
    text = evidence_text(finding)
    is_other = name == "log wealth" and finding.log_wealth is None and text != MISSING
    return f"p = {text}" if is_other else text


def dependence_sentence(result: AuditResult) -> str:
    """Say what follows for every figure of an audit whose calls share noise; empty where they do not."""
    # Validity: error rates, confidence and bounds suppose independent draws, so a report must not state them unsaid.
    found = {side.kind for side in result.side_findings if side.status == "found"}
    how = next((words for kind, words in DEPENDENCE.items() if kind in found), "")
    if not how:
        return ""
    return said(f"dependence.{'stands' if violation_stands(result) else 'found'}", how=how, stands=STANDS)


def violation_stands(result: AuditResult) -> bool:
    """Tell whether pairs are violated whatever calls remember: then these depend, and no power is stated."""
    return has_changed(result) and bool(result.violated) and all(pair.power is None for pair in result.violated)


def is_unreliable(result: AuditResult) -> bool:
    """Tell whether the figures suppose independent draws, and these were found to be none."""
    return bool(dependence_sentence(result)) and not violation_stands(result)


def confidence_text(result: AuditResult) -> str:
    """ "95% confidence", with a remark where it cannot be relied on."""
    return f"{sure_text(result.confidence)} confidence" + (f" ({UNRELIABLE})" if is_unreliable(result) else "")


def monotone_sentence(result: AuditResult) -> str:
    """The upper limits on the loss under their assumption, or why they are withheld; empty where none was asked for."""
    found = result.trade_off.monotone if result.trade_off is not None else None
    if found is None or result.trade_off is None:
        return ""
    about = {"pair": name_text(result.trade_off.pair, 60), "number": found.number}
    if not found.limits:
        return said("monotone.withheld", **about, reason=found.reason)
    limits = [(number_text(one.mass, 3), upper_text(one.upper)) for one in found.limits]
    others = "".join(said("monotone.other", mass=mass, upper=upper) for mass, upper in limits[1:])
    (first, upper), sure = limits[0], confidence_text(result)
    return said("monotone.limits", **about, sure=sure, first=first, upper=upper, others=others)


def found_text(verdict: Verdict | None, detectable: float | None) -> str:
    """The loss of a pair that would have been found, in nats; none of a violated pair, where more than that was."""
    return MISSING if verdict == "violated" else upper_text(detectable)


def short_count(count: int) -> str:
    """A count in at most five characters: 950, 12k, 1.2M."""
    for size, suffix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 0.9995 * size:
            return f"{count / size:.3g}{suffix}"
    return str(count)


def duration_text(seconds: float) -> str:
    """A time in the unit that people count it in.

    >>> duration_text(0.05), duration_text(42.4), duration_text(240), duration_text(10_000)
    ('50 ms', '42.4 s', '4 min', '2.78 h')
    >>> duration_text(0.823), duration_text(0.9999)
    ('823 ms', '1,000 ms')
    >>> duration_text(2e-5), duration_text(0.0)
    ('20 µs', '0 ms')
    """
    for size, unit in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}"
    if 0.0 < seconds < 1e-4:
        return f"{number_text(1e6 * seconds, 3)} µs"
    return f"{number_text(1_000.0 * seconds, 3)} ms"


def date_text() -> str:
    """The date of a report that is written now, such as "2026-11-24 20:15 UTC": that of SOURCE_DATE_EPOCH if it is set.

    `UsageError` if SOURCE_DATE_EPOCH is no whole number of seconds of a year up to 9999.
    """
    return _date().strftime("%Y-%m-%d %H:%M UTC")


def iso_text() -> str:
    """The same date in ISO 8601, such as "2026-11-24T20:15:00+00:00"; errors as of `date_text`."""
    return _date().isoformat(timespec="seconds")


def _date() -> datetime.datetime:
    stated = os.environ.get(VARIABLE, "")
    now = datetime.datetime.now(datetime.UTC)
    try:
        return datetime.datetime.fromtimestamp(int(stated), datetime.UTC) if stated else now
    except (OverflowError, OSError, ValueError) as error:
        raise UsageError(
            f"{VARIABLE} must be a whole number of seconds since 1970, in the years to 9999, got {stated!r}."
        ) from error
