"""Audits from scores, said: a table for a terminal, a document for html, md and pdf, and the plan of one run."""

from __future__ import annotations

import dataclasses
import math
import os

from dpaudit.reports import wording
from dpaudit.reports.answers import answers
from dpaudit.reports.attachments import over
from dpaudit.reports.curves import trade_off_figure
from dpaudit.reports.document import Block, Facts, Paragraph, Table
from dpaudit.reports.dossier import Dossier, Judged, Line, digest_of
from dpaudit.reports.drawing import Figure
from dpaudit.reports.wording import clean, compared, number_text, percent_text, plural, sure_text, symbol, upper_text
from dpaudit.reports.words import said
from dpaudit.scores.designs import BETTED
from dpaudit.scores.planning import SHARES, OneRunPlan
from dpaudit.scores.result import IndependentBound, ScoresResult


def headline(result: ScoresResult) -> str:
    """The verdict in a sentence."""
    found, name = result.decisive, symbol(result.parameter)
    supposed = "" if found is result else " if canaries are answered independently"
    lower = wording.at_least(_lower(result, found))
    text = f"with {sure_text(result.confidence)} confidence {name} is {lower}{supposed}"
    if result.verdict == "inconclusive":
        text = f"even perfect guesses on so many scores show no {name} above {upper_text(found.parameter_ceiling)}"
    return f"{wording.status_word(result.verdict).capitalize()}: {text}; {result.claim} was claimed."


def _lower(result: ScoresResult, found: ScoresResult | IndependentBound, of_epsilon: bool = False) -> str:
    """The lower bound on the claim's parameter, or on epsilon; beside the claim where that is of it."""
    if of_epsilon and result.parameter != "epsilon":
        return wording.lower_text(found.epsilon_lower)
    return compared(found.parameter_lower, result.budget)[0]


def facts(result: ScoresResult) -> list[tuple[str, str]]:
    """Names with their texts: bounds, ceiling, what the bounds rest on."""
    name, own, sure = symbol(result.parameter), wording.unit(result.parameter), sure_text(result.confidence)
    at, is_epsilon = f"epsilon at delta {number_text(result.delta)}", result.parameter == "epsilon"
    rows = [
        ("claim", clean(result.claim)),
        ("design", result.design.replace("_", " ")),
        ("scores", f"{result.scores_in:,} in, {result.scores_out:,} out"),
        ("confidence", f"{sure}, for the verdict and all bounds together"),
        (f"{at}, at least", f"{_lower(result, result, of_epsilon=True)} nats"),
        (f"{at}, ceiling", f"{upper_text(result.ceiling)} nats (had every guess been right)"),
        (f"{name}, at least", _lower(result, result) + own),
        (f"{name}, ceiling", upper_text(result.parameter_ceiling) + own),
    ][: 6 if is_epsilon else 8]
    if (second := result.independent) is not None:
        p_value = "not tested" if second.p_value is None else f"p-value {number_text(second.p_value, 3)}"
        bounds = f"{at}, at least {_lower(result, second, of_epsilon=True)} nats"
        bounds += "" if is_epsilon else f"; {name}, at least {_lower(result, second)}{own}"
        rows.append(("if canaries are independent", f"{bounds}, with {sure} confidence by itself"))
        rows.append(("their independence", f"{p_value}; a coin tossed once for all canaries is not seen"))
    for record in result.guesses:
        share = f", {percent_text(record.share)} of the error rate" if record.share < 1.0 else ""
        right = percent_text(record.correct / record.guesses) if record.guesses else wording.MISSING
        text = f"{right}, {record.correct:,} right: {record.rule}{share}"
        rows.append((f"accuracy, {record.guesses:,} guessed", text))
    if result.design in BETTED:
        after = result.decided_after
        when = "not decided" if after is None else f"rejected after {plural(after, 'score')}"
        wealth = "" if result.log_wealth is None else f"; largest log wealth {number_text(result.log_wealth)}"
        rows.append(("bets", when + wealth))
    rows.append(("seed", str(result.seed)))
    return rows


def brief(result: ScoresResult) -> list[Block]:
    """The result for a terminal."""
    dossier = scores_dossier(result, "these scores")
    told = [block for one in dossier.attachments for block in one.blocks[1:] if not isinstance(block, Figure)]
    return [Paragraph(headline(result)), answers(dossier), *told]


def scores_dossier(result: ScoresResult, name: str = "scores.json") -> Dossier:
    """The dossier of one audit of scores, of a file of this name."""
    return Dossier((), attachments=(scores_attachment(name, digest_of(result), result),))


def scores_attachment(name: str, digest: str, result: ScoresResult, is_keyed: bool = False) -> Judged:
    """An audit of scores with its row and its chapter; the course of a keyed, redacted one is left out."""
    subject = "canaries of " + os.path.basename(name.replace("\\", "/"))
    line, rows = _of_scores(subject, result), facts(result)
    if is_keyed:
        rows = [(key, text) for key, text in rows if key not in ("bets", "seed")]
    shown = tuple((clean(key), wording.excerpt(text, 400)) for key, text in rows)
    blocks: list[Block] = [Paragraph(line.sentence, "lead"), Facts(shown)]
    if result.trade_off:
        drawn = trade_off_figure(result.trade_off, result.confidence)
        blocks.append(dataclasses.replace(drawn, id=f"{drawn.id}-{digest[:12]}"))
    rest = [("Assumes", text) for text in result.assumptions] + [("Note", text) for text in result.notes]
    blocks += [Paragraph(f"{name}: {wording.excerpt(text, 400)}") for name, text in rest]
    title, rate = f"{clean(subject, 80)}: an audit of scores", 1.0 - result.confidence
    return Judged(name, digest, "scores", title, tuple(blocks), line, {"name": subject}, rate, result, is_keyed)


def _of_scores(subject: str, result: ScoresResult) -> Line:
    sign, claim, found = symbol(result.parameter), clean(result.claim, 80), result.decisive
    lower, budget = compared(found.parameter_lower, result.budget)
    own, epsilon = upper_text(found.parameter_ceiling), _lower(result, found, of_epsilon=True)
    at = f" at δ = {number_text(result.delta)}" if result.delta > 0.0 else ""
    measured = said("row.scores", epsilon=epsilon, at=at, ceiling=upper_text(found.ceiling))
    if result.parameter != "epsilon":
        measured += said("row.scores_own", name=sign, lower=lower, own=own)
    missed = "row.missed_larger" if result.verdict == "violated" else "row.scores_missed"
    of = said("row.scores_independent", name=sign) if found is not result else sign
    low = over(found.parameter_lower, result.budget) if result.budget > 0.0 else None
    sentence = said("row.scores_sentence", name=of, lower=lower, budget=budget, claim=claim)
    return Line(
        clean(subject, 60), "scores", wording.claim_text(claim, result.parameter, budget), measured, result.verdict,
        sure_text(result.confidence), said(missed, name=sign, own=own), None, low, sentence=sentence,
        settles=said("settling.scores") if result.verdict == "inconclusive" else "",
        tested=said("row.tested_scores", count_in=result.scores_in, count_out=result.scores_out),
        headline=headline(result).removesuffix("."),
    )  # fmt: skip


def plan_blocks(plan: OneRunPlan) -> list[Block]:
    """Say how many canaries a claim needs in one run, for a terminal."""
    sure = sure_text(plan.confidence)
    needed = f"{plan.needed:,.0f}" if math.isfinite(plan.needed) else "more than ten million"
    guessed = (f"accuracy needed,\n{percent_text(share)} guessed" for share in SHARES)
    columns = ("canaries", "ceiling\nof epsilon", "of the claim's\nparameter", *guessed)
    rows = []
    for run in plan.runs:
        shown = [percent_text(value) if math.isfinite(value) else "none" for value in run.accuracies]
        rows.append((f"{run.canaries:,}", upper_text(run.ceiling), upper_text(run.parameter_ceiling), *shown))
    text = said("plan.one_run", delta=number_text(plan.delta))
    head = f"{plan.claim}, one run, {sure} confidence: {needed} canaries, all guessed right, refute the claim."
    return [Paragraph(head), Table("", columns, tuple(rows)), Paragraph(text)]
