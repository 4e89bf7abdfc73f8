"""How the evidence of an audit was made and which error rates hold: the method section of every report."""

from __future__ import annotations

from dpaudit.reports import curves
from dpaudit.reports.wording import UNRELIABLE, is_unreliable, nats_text, number_text, percent_text
from dpaudit.results.model import ZERO_BUDGET_LOSS, AuditResult


def method(result: AuditResult) -> list[tuple[str, str]]:
    """How the evidence was made and which error rates hold, in short: pairs of a name and a paragraph."""
    rate, sure = percent_text(1.0 - result.confidence), percent_text(result.confidence)
    sure += f" ({UNRELIABLE})" if is_unreliable(result) else ""
    shares = sorted({finding.error_share for finding in result.findings if finding.error_share > 0.0})
    whose = "pair" if result.universe is None else "test of a pair"  # one of the table, and one in depth
    if not shares:
        split = "."
    elif len(shares) == 1:
        split = f"; each {whose} has {number_text(shares[0], 3)} of it."
    else:
        split = f"; a {whose} has between {number_text(shares[0], 3)} and {number_text(shares[-1], 3)} of it."
    if result.mode != "fixed":
        evidence = (
            "Rules are fitted on earlier draws and bet on later ones. The wealth of a pair is an e-value: under the "
            "claim it ever reaches 1/a with probability at most a, however the rules were found and whenever one looks."
        )
        if result.mode == "adaptive":
            evidence += (
                " In adaptive mode half of the runs go where the wealth grows: who draws next, and how much, depends "
                "on earlier rounds alone."
            )
    else:
        evidence = (
            "The rule is fitted on a part of the draws and tested once on the others, by a test that keeps its error "
            "rate at this number of draws."
        )
    quiet = (finding for finding in result.findings if finding.verdict != "violated")
    power = next((finding.power for finding in quiet if finding.power is not None), None)
    found = (
        "“Would have found” is the smallest loss of randomised-response type that the check of a pair finds with "
        f"probability {percent_text(power.probability) if power else '90%'}: outputs of total probability "
        f"{number_text(power.event_mass) if power else '0.1'} reveal the input with that log-odds, symmetrically, and "
        "all other outputs reveal nothing. Other kinds of leak may need more draws, or another rule."
    )
    many = []
    if result.universe is not None:
        many.append(
            (
                "All pairs",
                "Each input is drawn once and serves all its pairs. A pilot cuts the outputs into "
                "cells, gives each pair a rule made of cells, and ranks the pairs; on fresh draws each pair has one "
                "exact test, for which half of the error rate is spent: half of that evenly, half by rank. The other "
                "half of the error rate is for the pairs that are examined in depth, on draws of their own.",
            )
        )
    return [
        *many,
        (
            "Label game",
            "A fair coin picks one of the two inputs of a pair and the mechanism runs on it. A rule that sees the "
            "output alone guesses the coin, or abstains. If the claim holds for the pair, no rule wins more than the "
            "claim allows.",
        ),
        ("Evidence", evidence),
        (
            "One error rate",
            f"All pairs, both directions, all rules, looks and bounds share one error rate of {rate}{split} With "
            f"probability at least {sure} each of these lower bounds is at most the "
            "truth, so that no pair which keeps its budget is called violated. This supposes that each run uses fresh "
            "randomness.",
        ),
        ("What could have been found", found),
        *curves.band_method(result),
        *_method_of_floating_point(result),
        (
            "Verdicts",
            "Violated: the lower bound exceeds the budget. Not refuted: it does not; this proves nothing about other "
            "pairs, other rules or smaller excesses. Inconclusive: only a leak far above the budget (of a pair of "
            f"budget 0: above {nats_text(ZERO_BUDGET_LOSS)}) would have been found. Error: the subject or the "
            "audit broke.",
        ),
    ]


def _method_of_floating_point(result: AuditResult) -> list[tuple[str, str]]:
    finding = result.floating_point
    if finding is None or not finding.pairs:
        return []
    return [
        (
            "Floating point",
            "The same game, on draws of its own, with a rule that looks at the low bits of the outputs and at which "
            "doubles occur: fitted on training draws, counted once on fresh ones by an exact binomial test at the "
            f"budget of the pair. Its error rate of {percent_text(finding.error_rate)}, split over its pairs, comes "
            "beside the one above.",
        )
    ]
