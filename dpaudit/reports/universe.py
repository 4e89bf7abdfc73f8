"""All pairs of a universe in a report: counts by verdict, the worst pairs, and two images.

A universe has too many pairs for a drawing of elements, so what its figures hold are images (PNG). Names are cleaned
here; the page escapes them.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from dpaudit.reports import figures
from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.drawing import Data, Figure, Plot, Scale, Series
from dpaudit.reports.wording import (
    MISSING,
    UNITS,
    VERDICT_WORDS,
    compared,
    name_text,
    number_text,
    percent_text,
    plural,
    symbol,
)
from dpaudit.reports.words import said
from dpaudit.results.model import VERDICTS, AuditResult
from dpaudit.results.universe_table import NOT_ASKED, PairRow, UniverseTable

MIN_DOUBLE = -300.0  # decimal logarithm of a number that a double holds in full
WORST = 25  # rows of the ranked table


def counts(table: UniverseTable) -> list[tuple[str, str, str, str]]:
    """Verdict, its word, pairs and share of the asked pairs; not asked at last, if there are any."""
    rows: list[tuple[str, str, str, str]] = [
        (verdict, VERDICT_WORDS[verdict], f"{table.count(verdict):,}", _share(table.count(verdict), table.asked))
        for verdict in VERDICTS
    ]
    if table.count(None):
        rows.append(("not", "not asked (infinite budget)", f"{table.count(None):,}", MISSING))
    return rows


def _share(count: int, asked: int) -> str:
    return percent_text(count / asked) if asked else MISSING


def sentence(result: AuditResult) -> str:
    """Say what the table is, in words."""
    table = result.universe
    assert table is not None
    pairs, deep = plural(len(result.findings), "pair"), result.options.get("selected", 0)
    which = "all_follow" if len(result.findings) == table.asked else "some_follow"
    facts = {"pairs": plural(len(table), "pair"), "inputs": plural(len(table.ids), "input"), "draws": table.draws}
    follow = said(f"universe.{which}", deep=deep, pairs=pairs)
    return said("universe.opening", **facts, labelled=table.labelled, follow=follow)


def columns(table: UniverseTable) -> tuple[str, ...]:
    """The heads of `cells`."""
    units = f" ({UNITS[table.parameter]})" if table.parameter in UNITS else ""
    bound = f"lower bound on {symbol(table.parameter)}{units}"
    return ("pair", bound, f"budget{units}", "ratio", "p-value", "verdict", "would have found (nats)")


def cells(row: PairRow) -> list[str]:
    """A row under `columns`."""
    lower, budget = compared(row.lower, row.budget)
    verdict = VERDICT_WORDS[row.verdict] if row.verdict else "not asked"
    ratio = compared(row.ratio_lower, 1.0)[0]
    found = MISSING if row.verdict == "violated" else number_text(row.detectable)
    p_value = p_value_text(row.log10_p_value)
    return [name_text(row.id, 80), lower, budget, ratio, p_value, verdict, found]


def p_value_text(log10: float) -> str:
    """A p-value from its decimal logarithm, written as other p-values are, however small it is.

    Examples
    --------
    >>> p_value_text(-80.6615), p_value_text(-1234.5)
    ('2.18e-81', '3.16e-1235')
    """
    if not MIN_DOUBLE < log10 < math.inf:
        if not math.isfinite(log10):
            return number_text(0.0 if log10 < 0.0 else math.nan)
        digits = number_text(10.0 ** (log10 % 1.0), 3)
        return f"1e{math.floor(log10) + 1}" if digits == "10" else f"{digits}e{math.floor(log10)}"
    return number_text(10.0**log10, 3)


def blocks(result: AuditResult, prefix: str = "") -> list[Block]:
    """Say what a report says of all pairs: a sentence, the verdicts, two images, the worst pairs."""
    table = result.universe
    assert table is not None
    rows = [(word, pairs, share) for _, word, pairs, share in counts(table)]
    worst = table.worst(WORST)
    marks, listed = tuple(row.verdict or "" for row in worst), tuple(tuple(cells(row)) for row in worst)
    found: list[Block] = [Paragraph(sentence(result)), Table("All pairs", ("verdict", "pairs", "share"), tuple(rows))]
    if table.asked:
        found += [
            dataclasses.replace(image, id=f"{prefix}{image.id}") for image in (matrix_image(table), budget_image(table))
        ]
    found.append(Table("Pairs, the gravest verdicts first", columns(table), listed, max(0, table.asked - WORST), marks))
    return [*found, Paragraph(said("universe.p_value"), "note")]


def matrix_image(table: UniverseTable) -> Figure:
    """Lower bound over budget of every two inputs, as one matrix in the order of the inputs."""
    ratios = table.ratio_matrix()
    top, count = figures.top_ratio(ratios.ravel().tolist()), len(table.ids)
    steps = np.full(ratios.shape, figures.GREY["no ratio (budget 0, or no answer)"], dtype=np.uint8)
    known = ~np.isnan(ratios)
    steps[known] = [figures.ratio_step(one, top) for one in ratios[known].tolist()]
    np.fill_diagonal(steps, figures.GREY["same input"])
    skipped = table.verdict == NOT_ASKED
    for i, j in ((table.first, table.second), (table.second, table.first)):
        steps[i[skipped], j[skipped]] = figures.GREY["not asked (infinite budget)"]
    violated = np.flatnonzero(table.verdict == 0)
    pairs = list(zip(table.first[violated].tolist(), table.second[violated].tolist(), strict=True))
    outlined = ", each outlined" if 0 < len(violated) <= figures.OUTLINED else ""
    facts = {"violated": f"{plural(len(violated), 'pair')} violated{outlined}", "count": count, "top": top}
    largest = number_text(ratios[np.isfinite(ratios)].max(initial=0.0))
    description, note = said("universe.matrix", **facts, largest=largest), said("universe.matrix_note", **facts)
    title = "Lower bound over budget, every two inputs"
    return figures.matrix("universe-matrix", title, table.ids, steps, pairs, top, description, note, Data((), ()))


def budget_image(table: UniverseTable) -> Figure:
    """Lower bounds against budgets of all pairs, as a density, with the violated pairs on top."""
    shown = (table.verdict != NOT_ASKED) & (table.budget > 0.0) & (table.lower > 0.0)
    shown &= table.lower >= 1e-4 * table.lower.max(initial=0.0)  # four decades say enough
    nothing = int(np.count_nonzero((table.verdict != NOT_ASKED) & ~shown))
    budget, lower = table.budget[shown], table.lower[shown]
    ends = [1.0, 2.0]
    if shown.any():
        ends = [0.9 * min(budget.min(), lower.min()), 1.1 * max(budget.max(), lower.max())]
    heights = np.histogram2d(np.log(lower), np.log(budget), bins=(90, 140), range=[np.log(ends)] * 2)[0]
    most = max(1.0, float(heights.max(initial=0.0)))
    steps = np.where(heights > 0.0, 1 + np.floor(6.99 * np.log1p(heights) / math.log1p(most)), 0).astype(np.uint8)
    blues = [(250, 251, 252), *figures.palette()[figures.STEPS - 1 :: -1]][:8]
    uri = figures.pixels(steps[::-1], blues)
    violated = np.flatnonzero(shown & (table.verdict == 0))
    seen = int(np.count_nonzero(shown))
    description = said("universe.budgets", shown=seen, violated=table.count("violated"))
    names = columns(table)

    corners = [(ends[0], ends[0]), (ends[1], ends[1])]
    series = [Series(uri, corners, kind="image"), Series("limit", corners, "lower bound = budget")]
    if len(violated):
        marked = [(float(table.budget[k]), float(table.lower[k])) for k in violated[: figures.OUTLINED].tolist()]
        label = f"violated ({len(violated):,})"
        series.append(Series("violated", marked, label, "marks", titles=[""] * len(marked), r=3.4))
    x, y = (Scale(label, ends[0], ends[1], True) for label in (f"{names[2]} of the pair", names[1]))
    note = said("universe.budgets_note", most=most, nothing=plural(nothing, "pair"))
    title = "Lower bound of every pair against its budget"
    drawn = Plot(x, y, tuple(series)).figure("universe-budgets", title, description, note, Data((), ()))
    return dataclasses.replace(drawn, is_image=True)
