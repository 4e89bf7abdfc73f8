"""Findings beside the claim in reports: each with an error rate of its own, the low bits of the outputs among them.

A kind that is not known here is shown under its own name, so that a new one needs no change of any format.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from dpaudit.reports import wording
from dpaudit.reports.document import Table
from dpaudit.reports.wording import clean, excerpt, name_text, number_text, plural, sure_text
from dpaudit.reports.words import joined, said, words
from dpaudit.results.model import AuditResult, FloatingPointFinding, SideFinding

TITLES: Mapping[str, str] = words("sides.titles")
FOUND: Mapping[str, str] = words("sides.found")
DETAILS = 600  # characters of the details of one finding
SUMMARY = 1_500  # characters of what was seen: a witness, a bound and what to do
LOW_BITS = "floating_point"  # the kind of what low bits give away, and the check that audits them


def beside(result: AuditResult) -> tuple[SideFinding, ...]:
    """Findings beside the claim of an audit, all of them."""
    bits = result.floating_point
    return result.side_findings if bits is None else (_of_bits(result, bits), *result.side_findings)


def _of_bits(result: AuditResult, bits: FloatingPointFinding) -> SideFinding:
    """Say what low bits give away as any other finding beside the claim."""
    status = "found" if bits.verdict == "leaks" else bits.verdict
    details = {"runs": bits.samples} if bits.pairs else {}
    return SideFinding(LOW_BITS, status, joined(*_seen(result, bits)), bits.error_rate, details)


def bits_table(bits: FloatingPointFinding) -> Table:
    """The pairs whose low bits were looked at, with the guesses of each pair's rule on fresh draws, the worst first."""
    columns = (*wording.pair_heads("epsilon"), "p-value", "guessed right", "guessed wrong", "no guess")
    rows = []
    for one in bits.pairs:
        epsilon, lower = one.budget.epsilon, one.epsilon_lower
        known = wording.pair_row(one.id, lower, epsilon, lower / epsilon if epsilon > 0.0 else None, one.verdict)
        counts = map(number_text, (one.correct, one.wrong, one.abstained))
        rows.append((*known, number_text(one.p_value, 3), *counts))
    return Table("Low bits, pair by pair", columns, tuple(rows))


def _seen(result: AuditResult, bits: FloatingPointFinding) -> Iterator[str]:
    """Say what was found, what it means and what to do, or what would have been found."""
    yield bits.message
    for worst in bits.pairs[:1]:
        name, leaking = name_text(worst.id, 80), sum(pair.verdict == "leaks" for pair in bits.pairs)
        examined = plural(len(bits.pairs), "examined pair")
        yield said(f"bits.{bits.verdict}", examined=examined, leaking=f"{leaking:,}")
        if leaking:
            rule = clean(worst.description, 900) if worst.description else said("bits.no_rule")
            sure = f"{sure_text(1.0 - bits.error_rate)} confidence"
            bound = wording.bound_line("epsilon", worst.epsilon_lower, worst.budget.epsilon, sure)
            delta = f" (δ = {number_text(worst.budget.delta)})" if worst.budget.delta else ""
            yield f"Pair {name}: {rule} Together: {bound}{delta}."
            yield said("bits.same") if result.verdict == "violated" else ""
            yield from (said("bits.meaning"), said("bits.advice"))
        else:
            which = "blind" if math.isinf(worst.detectable_share) else "detectable"
            yield said(f"bits.{which}", pair=name, share=wording.rate_text(worst.detectable_share))
        yield said("bits.omitted", pairs=plural(bits.omitted, "further pair")) if bits.omitted else ""


def title(kind: str) -> str:
    """The name of what was looked at."""
    return TITLES.get(kind) or clean(kind.replace("_", " "), 40)


def found_beside(result: AuditResult) -> tuple[str, ...]:
    """Name what was found beside the verdict of an audit, but for what other sentences speak of."""
    apart = (*wording.DEPENDENCE, *FOUND)  # dependent draws are another answer's, and what a search found the verdict's
    kinds = dict.fromkeys(side.kind for side in beside(result) if side.status == "found" and side.kind not in apart)
    named = ((kind, title(kind)) for kind in kinds)
    return tuple(said("release.bits") if kind == LOW_BITS else f"{name[:1].lower()}{name[1:]}" for kind, name in named)


def status_text(finding: SideFinding) -> str:
    """Say what came of it, in words that stand behind its name."""
    if finding.kind == "time_limit":
        return "reached"
    known = FOUND if finding.status == "found" else {}
    return known.get(finding.kind, wording.status_word(finding.status))


def rate_text(finding: SideFinding) -> str:
    """The error rate, or that chance has no part in it."""
    return "no statistics" if finding.error_rate is None else wording.rate_text(finding.error_rate)


def line(finding: SideFinding) -> str:
    """One line on what was looked at, and what came of it."""
    return f"{title(finding.kind)}: {status_text(finding)}. {excerpt(finding.summary, SUMMARY)}"


def fact(finding: SideFinding) -> tuple[str, str]:
    """Name what was looked at, with all that is known of it."""
    told = finding.details.items()
    named = ((name.replace("_", " "), str(value) if name == "seed" else _plain(value)) for name, value in told)
    details = excerpt("; ".join(f"{name}: {text}" for name, text in named), DETAILS)
    seen = joined(f"{status_text(finding).capitalize()}.", excerpt(finding.summary, SUMMARY))
    return title(finding.kind), "\n".join(filter(None, (seen, f"Error rate: {rate_text(finding)}", details)))


def _plain(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
