"""What reports say of the floating-point finding: always apart from the verdict, with its own error rate."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpaudit.audits.replaying import FloatingPointReplay
from dpaudit.reports.again import STAND_IN, Again, again
from dpaudit.reports.wording import clean, compared, name_text, no_less, number_text, percent_text, plural
from dpaudit.results.model import AuditResult, FloatingPointPair, FloatingPointVerdict

WORDS: Mapping[FloatingPointVerdict, str] = {
    "leaks": "leaks",
    "nothing_found": "nothing found",
    "not_applicable": "not applicable",
}
COLUMNS = ("pair", "lower bound on ε (nats)", "budget", "verdict", "right", "wrong", "abstained", "would have found")
MEANING = (
    "Noise that is right on the real line is rounded to doubles when a computer adds it, and some doubles can then "
    "come from one of the inputs only. Who sees all bits of an output sees that."
)
ADVICE = (
    "Use a sampler that is exact on a grid (discrete Laplace, discrete Gaussian), or round the sum, noise included, to "
    "a grid that does not depend on the data before it is released (snapping; Mironov 2012)."
)
APART = "This finding stands apart from the verdict: the claim is read on the real line there, and on the doubles here."


def headline(result: AuditResult) -> str:
    """The finding in one line."""
    finding = result.floating_point
    if finding is None:
        return "Floating point: not examined"
    if finding.verdict == "not_applicable":
        return "Floating point: not applicable"
    examined = plural(len(finding.pairs), "examined pair")
    if finding.verdict == "nothing_found":
        return f"Floating point: nothing found in the low bits of {examined}"
    leaking = sum(pair.verdict == "leaks" for pair in finding.pairs)
    return f"Floating point: the low bits break the promise for {leaking:,} of {examined}"


def paragraphs(result: AuditResult) -> list[str]:
    """What was found, what it means, what to do, and which error rate it has."""
    finding = result.floating_point
    if finding is None:
        return [f"What the low bits of the outputs give away was not examined in this run. {APART}"]
    if finding.verdict == "not_applicable":
        return [f"{clean(finding.message, 400)} {APART}"]
    worst, rate = finding.pairs[0], percent_text(finding.error_rate)
    runs, omitted = plural(finding.samples, "run"), ""
    if finding.omitted:
        omitted = (
            f" {plural(finding.omitted, 'further pair')} not examined: the check takes those with the least budgets."
        )
    error = (
        f"The check took {runs} of its own and has an error rate of its own: if the doubles keep the promise, it "
        f"reports a leak with probability at most {rate}; with the same probability at most, some bound of it is too "
        "high."
    )
    if finding.verdict == "nothing_found":
        return [f"{detectable_sentence(worst)} {APART}", f"{error}{omitted}"]
    lower, budget = compared(worst.epsilon_lower, worst.budget.epsilon)
    delta = f" at δ = {number_text(worst.budget.delta)}" if worst.budget.delta else ""
    also = ""
    if result.verdict == "violated":
        also = " The verdict is “violated” too: what is found here may be the same leak."
    found = (
        f"Pair {name_text(worst.id, 80)}: {witness_sentence(worst)} Together they give ε ≥ {lower} nats{delta}, with "
        f"{percent_text(1.0 - finding.error_rate)} confidence; promised: ε ≤ {budget}.{also}"
    )
    return [found, f"{MEANING} {ADVICE}", f"{APART} {error}{omitted}"]


def witness_sentence(pair: FloatingPointPair) -> str:
    """What the rule of a pair looks at, with its counts on fresh draws."""
    return clean(pair.description, 900) if pair.description else "No rule was found that ever guesses right."


def detectable_sentence(pair: FloatingPointPair) -> str:
    """What the check of a pair would have found."""
    if math.isinf(pair.detectable_share):
        return f"For pair {name_text(pair.id, 80)} no leak, however plain, would have been found with so few draws."
    return (
        f"For pair {name_text(pair.id, 80)} a rule that knows outputs which only one of the inputs can give would have "
        f"been found with probability 90%, if they are at least {percent_text(pair.detectable_share)} of what that "
        "input gives. Other kinds of leak, and bits that no rule here looks at, can have been missed."
    )


def replay_of_worst(result: AuditResult, path: str = STAND_IN) -> Again | None:
    """How the rule of the worst leak is run on fresh draws; None if there is none."""
    finding = result.floating_point
    if finding is None or finding.verdict != "leaks" or finding.pairs[0].rule is None:
        return None
    return again(result, finding.pairs[0].id, path, low_bits=True)


def replay_lines(outcome: FloatingPointReplay) -> list[str]:
    """The outcome of a replay in words, the headline first."""
    lower, budget = compared(outcome.epsilon_lower, outcome.budget.epsilon)
    delta = f" at δ = {number_text(outcome.budget.delta)}" if outcome.budget.delta else ""
    confidence = percent_text(outcome.confidence)
    if outcome.confirmed:
        headline_text = "Confirmed: the low bits break the promise on fresh draws."
    else:
        headline_text = "Not confirmed: the low bits of these draws alone do not break the promise."
    guesses = outcome.correct + outcome.wrong
    return [
        headline_text,
        f"Pair {clean(outcome.pair, 80)}, seed {outcome.seed}.",
        clean(outcome.description, 900),
        f"The rule was right in {outcome.correct:,} of {guesses:,} guesses and abstained on "
        f"{plural(outcome.abstained, 'draw')}: ε ≥ {lower} nats{delta} with {confidence} confidence; promised: "
        f"ε ≤ {budget}.",
    ]


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """The worst leak: its pair, what was seen of the bits, the bound, and what to do."""
    assert result.floating_point is not None
    worst = result.floating_point.pairs[0]
    lower, budget = compared(worst.epsilon_lower, worst.budget.epsilon)
    confidence = percent_text(1.0 - result.floating_point.error_rate)
    delta = f" (δ = {number_text(worst.budget.delta)})" if worst.budget.delta else ""
    return (
        ("pair", name_text(worst.id, 120)),
        ("bits", witness_sentence(worst)),
        ("bound", f"ε {no_less(lower)} nats with {confidence} confidence; promised: ε ≤ {budget}{delta}."),
        ("to do", ADVICE),
    )


def rows(result: AuditResult) -> list[list[str]]:
    """One row a pair, the worst first, in the order of `COLUMNS`."""
    if result.floating_point is None:
        return []
    found = []
    for pair in result.floating_point.pairs:
        lower, budget = compared(pair.epsilon_lower, pair.budget.epsilon)
        share = "–" if math.isinf(pair.detectable_share) else percent_text(pair.detectable_share)
        counts = [f"{count:,}" for count in (pair.correct, pair.wrong, pair.abstained)]
        found.append([name_text(pair.id, 80), lower, budget, WORDS[pair.verdict], *counts, share])
    return found
