"""A result as one self-contained HTML page: the verdict first, then the evidence, then what was not looked at.

The page needs no network, prints, and reads on a phone. What comes from the subject is cleaned (`wording.clean`) and
escaped (jinja2 autoescape); a content security policy forbids everything but its own styles and its one script, which
shows values on hover and focus and sorts tables. Without the script nothing is missing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from dpaudit.reports import beside, by_form, curves, doubles, figures, scope, universe, wording
from dpaudit.reports.again import STAND_IN, again
from dpaudit.reports.apart import apart
from dpaudit.reports.mass_figure import mass_figure
from dpaudit.reports.wording import clean, name_text, number_text, percent_text
from dpaudit.reports.written import UNDATED, date_text
from dpaudit.results.model import ZERO_BUDGET_LOSS, AuditResult, Finding

TOP_ROWS = 50  # rows of the ranked table, beside all violated pairs
MAXIMUM_ROWS = 1000  # of any table
MAXIMUM_MESSAGES = 50
INPUT = 300  # characters of an input
SAME_BITS = "same seed, same bits, if the subject draws from its generator alone"
MODES: Mapping[str, str] = {
    "fixed": "uses all draws, and tests once",
    "sequential": "stops a pair when its evidence suffices",
    "adaptive": "as sequential, with more draws where evidence grows",
}


def render(result: AuditResult, path: str = STAND_IN) -> str:
    """The page, ready to be written as UTF-8; `path` is where the result is saved."""
    drawings: tuple[Callable[[AuditResult], figures.Figure | None], ...] = (figures.scatter, curves.band)
    if result.universe is None:
        drawings = (figures.heatmap, *drawings)
    return (
        environment()
        .get_template("audit.html.j2")
        .render(
            subject=wording.subject_name(result),
            written=date_text(),
            undated=UNDATED,
            verdict=result.verdict,
            headline=wording.headline(result),
            found=wording.power_sentence(result) if result.verdict in ("not_refuted", "inconclusive") else "",
            missed=mass_figure(result),
            by_form=by_form.rows(result),
            by_form_columns=by_form.columns(result),
            by_form_caption=by_form.caption(result),
            summary=wording.plain_summary(result),
            notes=wording.notes(result),
            keys=key_figures(result),
            universe=universe.view(result),
            figures=[figure for figure in (draw(result) for draw in drawings) if figure],
            wealth=figures.wealth(result),
            mode=result.mode,
            worst=_worst(result, path),
            errors=_errors(result),
            columns=_columns(result),
            ranked=_ranked(result),
            all_pairs=_all_pairs(result),
            not_asked=[name_text(name, 80) for name in result.not_asked[:MAXIMUM_ROWS]],
            not_asked_count=len(result.not_asked),
            doubles=_floating_point(result, path),
            sides=[beside.row(finding) for finding in result.side_findings[:MAXIMUM_MESSAGES]],
            sides_columns=beside.COLUMNS,
            sides_apart=beside.APART,
            scope=scope.rows(result),
            scope_source=scope.SOURCE,
            method=method(result),
            environment=_facts({**result.subject, **result.environment}),
            options=_facts(result.options),
            version=clean(str(result.environment.get("dpaudit", "")), 30),
            palette=Markup(figures.palette_css(dark=False)),
            dark_palette=Markup(figures.palette_css(dark=True)),
        )
    )


@cache
def script() -> Markup:
    """The one script of our pages, inline: values of marks on hover and focus, and tables that sort; no network."""
    return Markup((Path(__file__).parent / "templates" / "interact.js").read_text(encoding="utf-8"))


@cache
def script_source() -> str:
    """What the policy of a page allows to run: this script, by its digest, and nothing else."""
    digest = hashlib.sha256(script().encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


@cache
def environment() -> Environment:
    """The templates of the pages; whatever is put into one is escaped."""
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.filters["breakable"] = breakable
    found.globals.update(script=script, script_source=script_source)
    return found


def breakable(text: str) -> Markup:
    """A name, escaped, that may break behind a bar (between inputs), an underscore, and before a word in CamelCase."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[|_])", "\x00", text.replace("\x00", ""))
    return Markup(str(escape(parts)).replace("\x00", "<wbr>"))


def key_figures(result: AuditResult) -> list[tuple[str, str, str]]:
    """The figures at the head of the page: name, value, and a word of context."""
    largest = wording.largest_bound(result)
    runs = "all sides and pairs, a shared draw counted once"
    apart = " but floating point" if result.floating_point is not None and result.floating_point.pairs else ""
    sure = f"for all statements of this page{apart} together"
    if wording.is_unreliable(result):
        sure = wording.UNRELIABLE
    violated = f"{wording.verdict_count(result, 'violated'):,} violated"
    asked = f"{len(result.not_asked):,} more not asked" if result.not_asked else violated
    return [
        ("Claim", clean(result.claim, 60), "as promised"),
        ("Largest lower bound", largest.bound, largest.context.lstrip("; ")),
        ("Largest ratio", wording.compared(result.ratio_lower, 1.0)[0], "lower bound / budget; above 1 is a violation"),
        ("Confidence", percent_text(result.confidence), sure),
        ("Pairs", f"{wording.asked_count(result):,}", asked),
        ("Draws", number_text(result.samples), runs),
        ("Mode", clean(result.mode, 20), MODES.get(result.mode, "")),
        ("Seed", str(result.seed), SAME_BITS if result.replayable else "the subject takes no generator"),
        ("Seconds", number_text(float(result.seconds)), "wall clock"),
    ]


def _worst(result: AuditResult, path: str) -> dict[str, Any] | None:
    """The worst pair for the template; of an audit that only broke, none."""
    worst = result.worst
    if worst is None or worst.verdict == "error":
        return None
    evidence = wording.evidence_text(worst)
    if worst.log_wealth is not None:
        evidence = f"log wealth {evidence}; a violation from {number_text(wording.threshold(worst))}"
    elif worst.p_value is not None:
        evidence = f"p-value {evidence}; a violation up to {number_text(wording.verdict_level(worst), 3)}"
    witness = worst.witness
    facts = [
        ("Input x", _input(worst.x_id, worst.x)),
        ("Input x′", _input(worst.x_prime_id, worst.x_prime)),
        *([("Difference", differ)] if (differ := apart(worst.x, worst.x_prime)) else []),
        ("Rule", clean(witness.description, 600) if witness else "none recorded"),
        ("Counts", f"{wording.counts_sentence(worst)} {wording.allowance_sentence(worst)}".strip()),
        ("Bound", wording.bound_sentence(result, worst)),
        ("Evidence", evidence),
        ("Draws", wording.draws_sentence(worst)),
    ]
    replay = again(result, worst.id, path)
    return {
        "id": name_text(worst.id, 120),
        "verdict": worst.verdict,
        "word": wording.VERDICT_WORDS[worst.verdict],
        "facts": facts,
        "purpose": replay.sentence("To run the same rule against this pair on fresh draws"),
        "replay": clean(replay.line, 2000),
        "replayable": result.replayable,
    }


def _input(name: str, value: Any) -> str:
    shown = clean(value, INPUT)
    return shown if name == shown else f"{clean(name, 80)}: {shown}"


def _errors(result: AuditResult) -> list[tuple[str, str]]:
    broken = [finding for finding in result.findings if finding.verdict == "error"]
    return [(name_text(f.id, 80), clean(f.message or "no message", 500)) for f in broken[:MAXIMUM_MESSAGES]]


def _columns(result: AuditResult) -> list[str]:
    parameter = wording.parameter_of(result)
    units = f" ({wording.UNITS[parameter]})" if parameter in wording.UNITS else ""
    bound = f"lower bound on {wording.symbol(parameter)}{units}"
    evidence = wording.evidence_name(result)
    return ["pair", bound, "budget", "ratio", "verdict", evidence, "draws in all", "would have found (nats)"]


def _row(finding: Finding, kind: str) -> dict[str, Any]:
    lower, budget = wording.compared(finding.parameter_lower, finding.parameter_budget)
    evidence = wording.evidence_cell(finding, kind)
    return {
        "id": name_text(finding.id, 80),
        "verdict": finding.verdict,
        "numbers": [lower, budget, wording.ratio_text(finding)],
        "word": wording.VERDICT_WORDS[finding.verdict],
        "rest": [evidence, number_text(finding.samples), wording.power_text(finding)],
    }


def _ranked(result: AuditResult) -> list[dict[str, Any]]:
    count = min(MAXIMUM_ROWS, max(TOP_ROWS, len(result.violated)))
    kind = wording.evidence_name(result)
    return [_row(finding, kind) for finding in result.ranked()[:count]]


def _all_pairs(result: AuditResult) -> dict[str, Any]:
    """Every pair with all of its numbers, in the order of the audit; one table of at most 1,000 rows."""
    rows, kind = [], wording.evidence_name(result)
    for finding in result.findings[:MAXIMUM_ROWS]:
        witness, row = finding.witness, _row(finding, kind)
        counts = (witness.correct, witness.wrong, witness.abstained) if witness else (None, None, None)
        guesses = [number_text(count) for count in counts]
        epsilon = wording.compared(finding.epsilon_lower, finding.budget.epsilon)[0]
        rows.append([row["id"], *row["numbers"], row["word"], epsilon, *row["rest"], *guesses])
    columns, epsilon = _columns(result), f"ε ≥ at δ = {number_text(result.report_delta)}"
    return {
        "columns": [*columns[:5], epsilon, *columns[5:], "right", "wrong", "abstained"],
        "rows": rows,
        "omitted": len(result.findings) - len(rows),
    }


def method(result: AuditResult) -> list[tuple[str, str]]:
    """How the evidence was made and which error rates hold, in short: pairs of a name and a paragraph."""
    rate = percent_text(1.0 - result.confidence)
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
            f"probability at least {percent_text(result.confidence)} each of these lower bounds is at most the "
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
            f"budget 0: above {wording.nats_text(ZERO_BUDGET_LOSS)}) would have been found. Error: the subject or the "
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


def _floating_point(result: AuditResult, path: str) -> dict[str, Any]:
    """The floating-point finding for the template."""
    finding, replay = result.floating_point, doubles.replay_of_worst(result, path)
    return {
        "headline": doubles.headline(result),
        "verdict": finding.verdict if finding is not None else "not_applicable",
        "paragraphs": doubles.paragraphs(result),
        "purpose": replay.sentence("To run this rule on fresh draws") if replay is not None else "",
        "replay": clean(replay.line, 2000) if replay is not None else "",
        "columns": doubles.COLUMNS,
        "rows": doubles.rows(result),
    }


def _facts(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(clean(str(key), 40), _fact(value)) for key, value in list(values.items())[:100]]


def _fact(value: Any) -> str:
    if isinstance(value, str):
        return clean(value, 200)
    if value is None or isinstance(value, bool | int | float):
        return number_text(value)
    return clean(value, 200)
