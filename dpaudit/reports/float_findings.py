"""Floating-point finding in reports: always apart from the verdict, with its own error rate."""

from __future__ import annotations

import math

from dpaudit.reports.replay_command import STAND_IN, Again, again
from dpaudit.reports.wording import (
    bound_line,
    clean,
    compared,
    name_text,
    number_text,
    plural,
    rate_text,
    status_word,
    sure_text,
)
from dpaudit.reports.words import joined, said, words
from dpaudit.results.model import AuditResult, FloatingPointPair

COLUMNS = ("pair", "lower bound on ε (nats)", "budget", "verdict", "right", "wrong", "abstained", "would have found")
APART: str = words("bits.apart")


def are_leaking(result: AuditResult) -> bool:
    """Tell whether low bits of the outputs break the promise."""
    return result.floating_point is not None and result.floating_point.verdict == "leaks"


def headline(result: AuditResult) -> str:
    """The finding in one line."""
    finding = result.floating_point
    if finding is None:
        return said("bits.unexamined")
    leaking = sum(pair.verdict == "leaks" for pair in finding.pairs)
    return said(f"bits.{finding.verdict}", examined=plural(len(finding.pairs), "examined pair"), leaking=f"{leaking:,}")


def paragraphs(result: AuditResult) -> list[str]:
    """Say what was found, what it means, what to do, and which error rate it has."""
    finding = result.floating_point
    if finding is None:
        return [joined(said("bits.not_looked"), APART)]
    if finding.verdict == "not_applicable":
        return [joined(clean(finding.message, 400), APART)]
    worst = finding.pairs[0]
    omitted = said("bits.omitted", pairs=plural(finding.omitted, "further pair")) if finding.omitted else ""
    error = said("bits.rate", runs=plural(finding.samples, "run"), rate=rate_text(finding.error_rate))
    if finding.verdict == "nothing_found":
        return [joined(detectable_sentence(worst), APART), joined(error, omitted)]
    found = f"Pair {name_text(worst.id, 80)}: {witness_sentence(worst)} Together: {_bound(worst, finding.error_rate)}"
    also = said("bits.same") if result.verdict == "violated" else ""
    return [joined(found, also), joined(said("bits.meaning"), said("bits.advice")), joined(APART, error, omitted)]


def _bound(pair: FloatingPointPair, error_rate: float) -> str:
    """The bound and what was promised, as of any pair."""
    sure = f"{sure_text(1.0 - error_rate)} confidence"
    delta = f" (δ = {number_text(pair.budget.delta)})" if pair.budget.delta else ""
    return f"{bound_line('epsilon', pair.epsilon_lower, pair.budget.epsilon, sure)}{delta}."


def witness_sentence(pair: FloatingPointPair) -> str:
    """Say what the rule of a pair looks at, with its counts on fresh draws."""
    return clean(pair.description, 900) if pair.description else said("bits.no_rule")


def detectable_sentence(pair: FloatingPointPair) -> str:
    """Say what the check of a pair would have found."""
    which = "blind" if math.isinf(pair.detectable_share) else "detectable"
    return said(f"bits.{which}", pair=name_text(pair.id, 80), share=rate_text(pair.detectable_share))


def replay_of_worst(result: AuditResult, path: str = STAND_IN) -> Again | None:
    """Say how the rule of the worst leak is run on fresh draws; None if there is none."""
    finding = result.floating_point
    if finding is None or not are_leaking(result) or finding.pairs[0].rule is None:
        return None
    return again(result, finding.pairs[0].id, path, low_bits=True)


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """The worst leak: its pair, what was seen of the bits, the bound, and what to do."""
    assert result.floating_point is not None
    worst = result.floating_point.pairs[0]
    bound = _bound(worst, result.floating_point.error_rate)
    named = ("pair", name_text(worst.id, 120)), ("bits", witness_sentence(worst))
    return (*named, ("bound", bound), ("to do", said("bits.advice")))


def rows(result: AuditResult) -> list[list[str]]:
    """One row a pair, the worst first, in the order of `COLUMNS`."""
    if result.floating_point is None:
        return []
    found = []
    for pair in result.floating_point.pairs:
        lower, budget = compared(pair.epsilon_lower, pair.budget.epsilon)
        share = "–" if math.isinf(pair.detectable_share) else rate_text(pair.detectable_share)
        counts = [f"{count:,}" for count in (pair.correct, pair.wrong, pair.abstained)]
        found.append([name_text(pair.id, 80), lower, budget, status_word(pair.verdict), *counts, share])
    return found
