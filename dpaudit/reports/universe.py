"""All pairs of a universe in a report: counts by verdict, the worst pairs, and two images.

A universe has too many pairs for a drawing of elements, so what its figures hold are images (PNG). Names are cleaned
here; the page escapes them.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.drawing import Data, Drawing, Figure, Plot, Scale, Series, tag
from dpaudit.reports.figures import STEPS, draw_scale, palette, ratio_step, top_ratio
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
NAMES = 14  # of inputs along an axis
GREY = (196, 200, 205)  # of a cell without a ratio
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
    matrix = table.ratio_matrix()
    top, count = top_ratio(matrix.ravel().tolist()), len(table.ids)
    steps = np.full(matrix.shape, 2 * STEPS, dtype=np.uint8)  # grey
    known = ~np.isnan(matrix)
    steps[known] = [ratio_step(one, top) for one in matrix[known].tolist()]
    uri = pixels(steps, [*palette(), GREY])
    violated = np.flatnonzero(table.verdict == 0)
    finite = matrix[np.isfinite(matrix)]
    rings = ", each in a ring" if 0 < len(violated) <= RINGED else ""
    told = f"{plural(len(violated), 'pair')} violated{rings}"
    largest = number_text(finite.max(initial=0.0))
    description = said("universe.matrix", count=count, top=top, violated=told, largest=largest)

    def draw(page: float) -> Drawing:
        margin, is_wide = (130.0, True) if page > 500 else (78.0, False)
        side = min(page - margin - 8.0, 640.0)
        left = (page - side + margin) / 2.0 if is_wide else margin
        body = [tag("image", href=uri, x=left, y=margin, width=side, height=side, style="image-rendering:pixelated")]
        if rings:
            for i, j in zip(table.first[violated].tolist(), table.second[violated].tolist(), strict=True):
                places = [
                    (left + (a + 0.5) * side / count, margin + (b + 0.5) * side / count) for a, b in ((i, j), (j, i))
                ]
                body += [tag("circle", cx=x, cy=y, r=4.0, cls="outline") for x, y in places]
        for k in range(0, count, max(1, math.ceil(count / (NAMES if is_wide else NAMES // 2)))):
            name, at = f"{name_text(table.ids[k], 14 if is_wide else 7)} ({k + 1})", (k + 0.5) * side / count
            body.append(tag("text", name, x=left - 5.0, y=margin + at + 4.0, text_anchor="end", cls="name"))
            body.append(tag("text", name, turned=True, x=left + at + 4.0, y=margin - 5.0, cls="name"))
        return Drawing(tuple(body), page, margin + side + 6.0, description)

    note = said("universe.matrix_note", violated=told)
    title = "Lower bound over budget, all pairs of the universe"
    scale = draw_scale(top)
    return Figure("universe-matrix", title, description, note, draw, (), Data((), ()), scale, is_image=True)


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
    blues = [(250, 251, 252), *palette()[STEPS - 1 :: -1]][:8]
    uri = pixels(steps[::-1], blues)
    violated = np.flatnonzero(shown & (table.verdict == 0))
    seen = int(np.count_nonzero(shown))
    description = said("universe.budgets", shown=seen, violated=table.count("violated"))
    names = columns(table)

    corners = [(ends[0], ends[0]), (ends[1], ends[1])]
    series = [Series(uri, corners, kind="image"), Series("limit", corners, "lower bound = budget")]
    if len(violated):
        marked = [(float(table.budget[k]), float(table.lower[k])) for k in violated[:RINGED].tolist()]
        label = f"violated ({len(violated):,})"
        series.append(Series("violated", marked, label, "marks", titles=[""] * len(marked), r=3.4))
    x, y = (Scale(label, ends[0], ends[1], True) for label in (f"{names[2]} of the pair", names[1]))
    note = said("universe.budgets_note", most=most, nothing=plural(nothing, "pair"))
    title = "Lower bound of every pair against its budget"
    drawn = Plot(x, y, tuple(series)).figure("universe-budgets", title, description, note, Data((), ()))
    return dataclasses.replace(drawn, is_image=True)


def pixels(steps: NDArray[np.uint8], colours: Sequence[tuple[int, int, int]]) -> str:
    """An image as a data URI (PNG): each step in its colour; the same bytes for the same steps."""
    height, width = steps.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(steps))
    parts = (
        chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        chunk(b"PLTE", bytes(value for colour in colours for value in colour)),
        chunk(b"IDAT", zlib.compress(rows, 9)),
        chunk(b"IEND", b""),
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode("ascii")
