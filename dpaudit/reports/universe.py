"""All pairs of a universe in a report: counts by verdict, the worst pairs, and two images.

A universe has too many pairs for a drawing of elements, so its figures are images (PNG), of the same bytes for the same
table and version of matplotlib. Names are cleaned here; the page escapes them.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import math
from typing import Any

import numpy as np
from markupsafe import Markup

from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.drawing import Data, Figure, svg, tag
from dpaudit.reports.wording import (
    MISSING,
    UNITS,
    VERDICT_WORDS,
    clean,
    compared,
    name_text,
    number_text,
    percent_text,
    plural,
    symbol,
)
from dpaudit.results.model import VERDICTS, AuditResult
from dpaudit.results.universe_table import NOT_ASKED, PairRow, UniverseTable

LEAST_DOUBLE = -300.0  # decimal logarithm of a number that a double holds in full
WORST = 25  # rows of the ranked table
NAMES = 14  # of inputs along an axis
COLOURS = 32  # of the matrix: half a million pairs in as many shades would make a page of megabytes
RINGED = 400  # violated pairs at most that get a ring each in the matrix


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
    """What the table is, in words."""
    table = result.universe
    assert table is not None
    deep = result.options.get("selected", 0)
    if len(result.findings) == table.asked:
        shown = f"Each of them follows in full; {deep:,} were examined in depth, on draws of their own."
    else:
        shown = (
            f"{plural(len(result.findings), 'pair')} of them follow in full: those that were examined in depth, on "
            "draws of their own, and those that the table calls violated."
        )
    return (
        f"All {plural(len(table), 'pair')} of {plural(len(table.ids), 'input')}, each against its own budget: every "
        f"input was drawn {table.draws:,} times, and each pair was tested once, on {table.labelled:,} labelled draws. "
        f"{shown}"
    )


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
    if not LEAST_DOUBLE < log10 < math.inf:
        if not math.isfinite(log10):
            return number_text(0.0 if log10 < 0.0 else math.nan)
        digits = number_text(10.0 ** (log10 % 1.0), 3)
        return f"1e{math.floor(log10) + 1}" if digits == "10" else f"{digits}e{math.floor(log10)}"
    return number_text(10.0**log10, 3)


def blocks(result: AuditResult, prefix: str = "") -> list[Block]:
    """What a report says of all pairs: a sentence, the verdicts, two images, the worst pairs."""
    table = result.universe
    assert table is not None
    rows = [(word, pairs, share) for _, word, pairs, share in counts(table)]
    worst = table.worst(WORST)
    marks = tuple(row.verdict or "" for row in worst)
    listed = tuple(tuple(cells(row)) for row in worst)
    found: list[Block] = [Paragraph(sentence(result)), Table("All pairs", ("verdict", "pairs", "share"), tuple(rows))]
    if table.asked:
        found += [
            dataclasses.replace(image, id=f"{prefix}{image.id}") for image in (matrix_image(table), budget_image(table))
        ]
    found.append(Table("The worst pairs of all", columns(table), listed, max(0, table.asked - WORST), marks))
    note = "The p-value is that of the one test on shared draws; bounds are the better of that test and the depth."
    return [*found, Paragraph(note, "note")]


def matrix_image(table: UniverseTable) -> Figure:
    """Lower bound over budget of every two inputs, as one matrix in the order of the inputs."""
    from matplotlib.colors import FuncNorm
    from matplotlib.figure import Figure as Canvas

    matrix = table.ratio_matrix()
    finite = matrix[np.isfinite(matrix)]
    most = float(finite.max()) if finite.size else 1.0
    top = next((limit for limit in (2.0, 4.0, 8.0, 16.0) if most <= limit), 16.0)
    shown = np.ma.masked_invalid(np.where(np.isposinf(matrix), top, matrix))
    count = len(table.ids)
    figure = Canvas(figsize=(9.0, 7.9), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.set_facecolor("#c4c8cd")
    norm = FuncNorm((lambda ratio: _scale(ratio, top), lambda share: _unscale(share, top)), vmin=0.0, vmax=top)
    drawn = axes.imshow(shown, cmap=_colours(), norm=norm, interpolation="nearest")
    bar = figure.colorbar(drawn, ax=axes, shrink=0.9, ticks=[0.0, 0.25, 0.5, 0.75, 1.0, top**0.5, top])
    bar.ax.set_yticklabels(["0", "0.25", "0.5", "0.75", "1", number_text(top**0.5, 2), f"≥{top:g}"])
    bar.set_label("lower bound / budget (above 1 is a violation)")
    violated = np.flatnonzero(table.verdict == 0)
    if 0 < len(violated) <= RINGED:
        i, j = table.first[violated], table.second[violated]
        across, down = np.concatenate([i, j]), np.concatenate([j, i])
        axes.scatter(across, down, s=34.0, facecolors="none", edgecolors="#a81220", linewidths=0.7)
    step = max(1, math.ceil(count / NAMES))
    at = np.arange(0, count, step)
    names = [f"{clean(table.ids[k], 18)} ({k + 1})".replace("$", "\\$") for k in at.tolist()]
    axes.set_xticks(at, names, rotation=90, fontsize=8)
    axes.set_yticks(at, names, fontsize=8)
    axes.set_xlabel("input x′, in the order given")
    axes.set_ylabel("input x, in the order given")
    violations = plural(len(violated), "pair")
    rings = ", each in a ring" if 0 < len(violated) <= RINGED else ""
    return _image(
        id="universe-matrix",
        title="Lower bound over budget, all pairs of the universe",
        description=(
            f"Matrix of {count:,} by {count:,} inputs, coloured by the ratio of lower bound to budget from 0 (blue) "
            f"over 1 (pale) to {top:g} and more (red): {violations} violated{rings}, largest ratio {number_text(most)}."
        ),
        note=(
            f"{violations} violated{rings}. The matrix is symmetric: a pair is asked in both directions. Grey: the "
            "same input, not asked, or no ratio (budget 0). A ratio near 0 says that little could be learnt about a "
            "pair (very small and very large budgets), not that it keeps its promise well."
        ),
        drawn=figure,
    )


def budget_image(table: UniverseTable) -> Figure:
    """Lower bounds against budgets of all pairs, as a density, with the violated pairs on top."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure as Canvas

    shown = (table.verdict != NOT_ASKED) & (table.budget > 0.0) & (table.lower > 0.0)
    shown &= table.lower >= 1e-4 * table.lower.max(initial=0.0)  # four decades say enough
    nothing = int(np.count_nonzero((table.verdict != NOT_ASKED) & ~shown))
    figure = Canvas(figsize=(9.0, 4.6), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    if shown.any():
        x, y = np.log10(table.budget[shown]), np.log10(table.lower[shown])
        ends = [min(x.min(), y.min()) - 0.05, max(x.max(), y.max()) + 0.05]
        heights, across, up = np.histogram2d(x, y, bins=[140, 90], range=[ends, ends])
        drawn = axes.pcolormesh(
            10.0**across, 10.0**up, np.ma.masked_equal(heights.T, 0), norm=LogNorm(), cmap="Blues", rasterized=True
        )
        figure.colorbar(drawn, ax=axes).set_label("pairs in a cell")
        axes.plot(10.0 ** np.array(ends), 10.0 ** np.array(ends), "--", color="#16191d", lw=1.2, label="bound = budget")
        violated = shown & (table.verdict == 0)
        if violated.any():
            axes.plot(
                table.budget[violated],
                table.lower[violated],
                "o",
                ms=4.5,
                mfc="none",
                mec="#a81220",
                label=f"violated ({np.count_nonzero(violated):,})",
            )
        axes.legend(loc="upper left", fontsize=8)
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel(f"{columns(table)[2]} of the pair")
    axes.set_ylabel(columns(table)[1])
    return _image(
        id="universe-budgets",
        title="Lower bound of every pair against its budget",
        description=(
            f"Density of the lower bounds of {np.count_nonzero(shown):,} pairs against their budgets, both axes "
            f"logarithmic, with the line where they are equal; {table.count('violated'):,} violated pairs are marked."
        ),
        note=f"{plural(nothing, 'pair')} with a lower bound or budget of 0, or next to it, cannot be shown here.",
        drawn=figure,
    )


def _scale(ratio: Any, top: float) -> Any:
    """Where a ratio lies on the scale from 0 to 2: even up to 1, by its logarithm from there to `top`."""
    ratio = np.asarray(ratio, dtype=float)
    return np.where(ratio <= 1.0, ratio, 1.0 + np.log(np.maximum(ratio, 1.0)) / math.log(top))


def _unscale(place: Any, top: float) -> Any:
    place = np.asarray(place, dtype=float)
    return np.where(place <= 1.0, place, top ** (np.maximum(place, 1.0) - 1.0))


def _colours() -> Any:
    """Blue below 1, pale at 1, red above: the steps of the pages' palette."""
    from matplotlib.colors import LinearSegmentedColormap

    steps = [(0.0, "#6894c4"), (0.5, "#e8f0f7"), (0.5001, "#fcdac8"), (1.0, "#a00c1c")]
    return LinearSegmentedColormap.from_list("ratio", steps, N=COLOURS)  # masked cells are clear: grey shows behind


def _image(id: str, title: str, description: str, note: str, drawn: Any) -> Figure:
    """The image as a figure that has no data of its own: the table of the saved result has them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(drawn)
    target = io.BytesIO()
    drawn.savefig(target, format="png", metadata={"Software": None}, pil_kwargs={"optimize": True})  # no version in it
    uri = "data:image/png;base64," + base64.b64encode(target.getvalue()).decode("ascii")
    across, down = (float(side) for side in drawn.get_size_inches())

    def shown(width: float) -> Markup:
        height = width * down / across
        return svg([tag("image", href=uri, x=0.0, y=0.0, width=width, height=height)], width, height, description)

    return Figure(id, title, description, note, shown, (), Data((), ()), is_image=True)
