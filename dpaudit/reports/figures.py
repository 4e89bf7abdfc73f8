"""The figures of a report, as SVG that a page can hold inline: losses against budgets, and wealth over draws.

Conventions: each figure is drawn twice from the same data, for a wide page (900 units) and for a phone (358 units), so
that text has its true size on both; one unit is one CSS pixel. Colours are classes (`palette_css`), so that the page
decides on light or dark. Legends stand outside the drawing. Names are cleaned and escaped here.
"""

from __future__ import annotations

import base64
import dataclasses
import itertools
import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dpaudit.reports import wording
from dpaudit.reports.deployment import is_number
from dpaudit.reports.dossier import Line
from dpaudit.reports.drawing import Axis, Drawing, Figure, Plot, Scale, Series, Table, path, swatch, tag
from dpaudit.reports.wording import clean, compared, name_text, number_text, plural, threshold, upper_text
from dpaudit.reports.words import joined, said
from dpaudit.results.all_pairs_table import NOT_ASKED
from dpaudit.results.model import VERDICTS, AuditResult, Finding, Look, Verdict
from dpaudit.results.utility_result import UtilityFinding, UtilityResult

MATRIX_INPUTS = (3, 60)  # inputs between which a matrix of pairs can be read
MATRIX_DENSITY = 0.25  # least share of the cells that must be filled
STEPS = 8  # colour steps on each side of ratio 1
GREYS = {
    "same input": (215, 219, 224),
    "not asked (infinite budget)": (176, 182, 190),
    "not audited": (245, 246, 248),
    "no ratio (budget 0, or no answer)": (120, 126, 134),
}
GREY = {name: 2 * STEPS + place for place, name in enumerate(GREYS)}  # their steps
PAIRS = Table("", (), ())  # data of figures on pairs: the page lists these
OUTLINED = 400  # violated pairs at most that are outlined in a matrix
HIGHLIGHTED = 5  # wealth curves with a colour of their own
CURVE_POINTS = 48  # most points of a wealth curve
GUESSES = 0.5  # mean guess of a bin from which on it is one where the rule guesses
PANEL = 0.86  # height of the tallest bar of a panel, as a share of the panel
PLACES = 400  # most inputs on a map
LINES = 1500  # most pairs on a map, the worst
NAMED = 40  # most names on it
INTERVALS, BARS = 40, 20  # most rows of the figures of errors, and of pairs
TOP = 4.0  # times the promise: what is larger runs off the picture, with its number beside it
MIN_TOP = 1.5  # the axis goes on so far at least
ROW_HEIGHTS, HALF = (34.0, 50.0), 0.19  # heights of a row, wide and narrow, and half of its bar as a share of it
HEAD_AND_FOOT = 26.0, 46.0
BOUNDS = {
    "violated": "lower bound, over the promise",
    "error": "lower bound, of a run that broke",
    "inconclusive": "lower bound, within it, not settled",
    "not_refuted": "lower bound, within it",
}


# --- Losses against budgets, as a matrix ----------------------------------------------------------------------------


def ratio_step(ratio: float, top: float) -> int:
    """The colour step of a ratio: 0 to 7 below 1 (evenly), 8 to 15 from 1 to `top` (evenly in the logarithm)."""
    if ratio <= 1.0:
        return min(STEPS - 1, max(0, int(ratio * STEPS)))
    return STEPS + min(STEPS - 1, int(STEPS * math.log(min(ratio, top)) / math.log(top)))


def top_ratio(ratios: Iterable[float | None]) -> float:
    """The upper end of the colour scale of some ratios."""
    most = max((one for one in ratios if one is not None and math.isfinite(one)), default=1.0)
    return next((top for top in (2.0, 4.0, 8.0, 16.0, 64.0) if top >= most), 256.0)


def palette(dark: bool = False) -> list[tuple[int, int, int]]:
    """The colours of the steps: blue below 1, red above, palest (or darkest) next to 1."""
    low, low_mid, high_mid, high = (
        ((66, 108, 154), (36, 45, 56), (86, 50, 42), (255, 100, 84))
        if dark
        else ((104, 148, 196), (232, 240, 247), (252, 218, 200), (160, 12, 28))
    )
    steps = [np.linspace(*ends, STEPS) for ends in ((low, low_mid), (high_mid, high))]
    return [(red, green, blue) for red, green, blue in np.vstack(steps).round().astype(int).tolist()]


def palette_css(dark: bool) -> str:
    """CSS of the colour steps."""
    colours = (f"#{r:02x}{g:02x}{b:02x}" for r, g, b in palette(dark))
    return "".join(f".k{step}{{fill:{colour};stroke:{colour}}}" for step, colour in enumerate(colours))


def heatmap(result: AuditResult) -> Figure | None:
    """Lower bound over budget of every two inputs, as a matrix; None where single pairs form none that is readable."""
    names, cells = _cells(result)
    count, top = len(names), top_ratio(ratio for _, _, ratio, _ in cells)
    worst = {(max(i, j), min(i, j)): (ratio, verdict) for i, j, ratio, verdict in cells}
    is_filled = len(worst) >= MATRIX_DENSITY * count * (count - 1) / 2
    is_readable = MATRIX_INPUTS[0] <= count <= MATRIX_INPUTS[1] and is_filled and all(i != j for i, j in worst)
    if result.universe is None and not is_readable:
        return None
    steps = np.full((count, count), GREY["not audited"], dtype=np.uint8)
    for (i, j), (ratio, verdict) in worst.items():
        none = GREY["not asked (infinite budget)" if verdict is None else "no ratio (budget 0, or no answer)"]
        steps[i, j] = steps[j, i] = none if math.isnan(ratio) else ratio_step(ratio, top)
    np.fill_diagonal(steps, GREY["same input"])
    violated = [place for place, (_, verdict) in worst.items() if verdict == "violated"]
    skipped = sum(verdict is None for _, verdict in worst.values())
    facts = {"cells": plural(len(worst) - skipped, "cell"), "skipped": skipped, "count": count, "top": top}
    largest = compared(result.ratio_lower, 1.0)[0]  # of the result: a saved table has bounds of five digits
    broken = plural(sum(verdict == "violated" for *_, verdict in cells), "pair")
    description = said("figure.matrix", violated=broken, largest=largest, **facts)
    note = joined(said("figure.matrix_note"), said("figure.matrix_worst") if len(worst) < len(cells) else "")
    return _matrix(names, steps, violated if len(violated) <= OUTLINED else [], top, description, note)


def _cells(result: AuditResult) -> tuple[list[str], list[tuple[int, int, float, Verdict | None]]]:
    """Inputs, and of the pairs between them places, ratio (NaN: none) and verdict (None: not asked), the worst last."""
    if (table := result.universe) is not None:
        order = [*np.flatnonzero(table.verdict == NOT_ASKED).tolist(), *reversed(table.order().tolist())]
        columns = (column[order].tolist() for column in (table.first, table.second, table.ratio_lower, table.verdict))
        verdicts = {NOT_ASKED: None, **dict(enumerate(VERDICTS))}
        return list(table.ids), [(i, j, ratio, verdicts[code]) for i, j, ratio, code in zip(*columns, strict=True)]
    # The id of a pair joins the names of its inputs, unless the caller gave another.
    halves = [half for half in (name.split("|") for name in result.not_asked) if len(half) == 2]
    named = itertools.chain(*((one.x_id, one.x_prime_id) for one in result.findings), *halves)
    places = {name: place for place, name in enumerate(dict.fromkeys(named))}
    cells: list[tuple[int, int, float, Verdict | None]] = [(places[a], places[b], math.nan, None) for a, b in halves]
    for one in reversed(result.ranked()):
        ratio = math.nan if one.ratio_lower is None or one.verdict == "error" else float(one.ratio_lower)
        cells.append((places[one.x_id], places[one.x_prime_id], ratio, one.verdict))
    return list(places), cells


def _matrix(
    names: Sequence[str], steps: NDArray[np.uint8], outlined: Sequence[tuple[int, int]], top: float,
    description: str, note: str,
) -> Figure:  # fmt: skip
    """A symmetric matrix of colour steps and greys, in which some cells are outlined."""
    count, uri = len(names), pixels(steps, [*palette(), *GREYS.values()])

    def draw(page: float) -> Drawing:
        margin, is_wide = (134.0, True) if page > 500 else (88.0, False)
        side = min(page - margin - 8.0, 640.0, 34.0 * count)
        left, cell = (page - side + margin) / 2.0 if is_wide else margin, side / count
        body = [tag("image", href=uri, x=left, y=margin, width=side, height=side, style="image-rendering:pixelated")]
        size = max(cell, 8.0)
        for i, j in [*outlined, *(place[::-1] for place in outlined)]:
            x, y = left + (j + 0.5) * cell - size / 2.0, margin + (i + 0.5) * cell - size / 2.0
            body.append(tag("rect", x=x, y=y, width=size, height=size, cls="outline"))
        for k in range(0, count, max(1, math.ceil(11.0 / cell))):
            name, at = f"{name_text(names[k], 14 if is_wide else 7)} ({k + 1})", (k + 0.5) * cell
            body.append(tag("text", name, x=left - 5.0, y=margin + at + 4.0, text_anchor="end", cls="name"))
            body.append(tag("text", name, turned=True, x=left + at + 4.0, y=margin - 5.0, cls="name"))
        return Drawing(tuple(body), page, margin + side + 6.0, description)

    box: dict[str, Any] = {"x": 4.0, "y": 0.5, "width": 13.0, "height": 13.0}
    legend = [
        (swatch(tag("rect", style=f"fill:#{r:02x}{g:02x}{b:02x}", **box)), name)
        for name, (r, g, b) in GREYS.items()
        if (steps == GREY[name]).any()
    ]
    if outlined:
        legend.insert(0, (swatch(tag("rect", cls="outline", **box)), "violated"))
    title = "Lower bound over budget, pair by pair"
    return Figure("matrix", title, description, note, draw, tuple(legend), PAIRS, draw_scale(top), is_image=True)


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


def draw_scale(top: float) -> Drawing:
    """The colour scale: blocks of the steps, with the ratios at which they begin."""
    block, body = 20.0, []
    width = block * 2 * STEPS
    for step in range(2 * STEPS):
        body.append(tag("rect", x=6.0 + step * block, y=18.0, width=block - 1.0, height=14.0, cls=f"k{step}"))
    marks = [(0, "0"), (STEPS // 2, "0.5"), (STEPS, "1"), (STEPS + STEPS // 2, number_text(math.sqrt(top), 2))]
    for step, label in [*marks, (2 * STEPS, f"≥{number_text(top)}")]:
        anchor = "start" if step == 0 else "end" if step == 2 * STEPS else "middle"
        x = 6.0 + step * block - 0.5
        body.append(tag("line", x1=x, x2=x, y1=32.0, y2=36.0, cls="edge"))
        body.append(tag("text", label, x=x, y=47.0, text_anchor=anchor, cls="tick"))
    body.append(tag("text", "lower bound / budget", x=6.0, y=11.0, cls="label"))
    body.append(tag("text", "over budget", x=6.0 + width, y=11.0, text_anchor="end", cls="tick"))
    words = f"Colour scale from ratio 0 over 1, the budget, to {number_text(top)} and more."
    return Drawing(tuple(body), width + 12.0, 52.0, words)


# --- Losses against budgets, pair by pair ---------------------------------------------------------------------------


def bounds(result: AuditResult) -> Figure | None:
    """The lower bounds of the worst pairs over their budgets; None below two pairs, or where none has such a ratio."""
    shown = [one for one in result.ranked() if one.ratio_lower is not None and not math.isnan(one.ratio_lower)][:BARS]
    drawn = picture(list(map(_bar, shown)), "pair")
    if drawn is None or len(result.findings) < 2:
        return None
    note = joined(drawn.note, not_drawn(len(result.findings) - len(shown), "pair"))
    title = "Lower bound of each pair over its budget"
    return dataclasses.replace(drawn, id="bounds", title=title, note=note, data=PAIRS)


def _bar(finding: Finding) -> Bar:
    """A pair as a bar, with what may have stayed hidden of it."""
    name, power = f"{name_text(finding.id, 30)}: {wording.status_word(finding.verdict)}", finding.power
    blind = power.deciding / power.at_budget if power is not None and power.at_budget > 0.0 else None
    tried: Mapping[str, str] | None = {} if power is not None and power.learned else None
    return Bar(name, finding.verdict, finding.ratio_lower, blind=blind, tried=tried)


# --- Wealth over draws ----------------------------------------------------------------------------------------------


def wealth(result: AuditResult) -> Figure | None:
    """Log wealth over draws of every pair, the worst ones highlighted; None where no pair was looked at over time."""
    with_looks = [finding for finding in result.ranked() if finding.looks]
    if not with_looks:
        return None
    named, others = with_looks[:HIGHLIGHTED], with_looks[HIGHLIGHTED:]
    crossed = sum(max(look.log_wealth for look in f.looks) >= threshold(f) for f in with_looks)
    description = said("figure.wealth", pairs=plural(len(with_looks), "pair"), crossed=crossed)
    x, y = _wealth_scales(with_looks)
    series = [Series("curve other" + " many" * (len(with_looks) > 60), _course(f, x)) for f in others]
    if others:
        series[0] = dataclasses.replace(series[0], label=f"the other {plural(len(others), 'pair')}")
    series.append(Series("edge", [(x.low, 0.0), (x.high, 0.0)]))
    series.append(Series("limit", [(x.low, 1.0), (x.high, 1.0)], "the threshold, log(1 / share of the error rate)"))
    for index, finding in enumerate(named):
        end, course = finding.looks[-1], _course(finding, x)
        after = f"{number_text(end.log_wealth)} of {number_text(threshold(finding))} after {plural(end.draws, 'draw')}"
        text = f"{name_text(finding.id, 60)}: {after} bet on"
        series.append(Series(f"curve w{index}", course, text, title=text))
        if y.low < course[-1][1] < y.high:
            series.append(Series(f"end w{index}", course[-1:], kind="dots"))
    looks = [(finding, look) for finding in named for look in finding.looks]
    looks += [(finding, finding.looks[-1]) for finding in others]
    bound = (
        f"lower bound on {wording.symbol(with_looks[0].parameter)} by then (computed at a rejection, and at the end)"
    )
    columns = ("pair", "labelled draws", "log wealth (nats)", "threshold", bound)
    rows = tuple(
        (name_text(finding.id, 80), *map(number_text, (look.draws, look.log_wealth, threshold(finding))),
         compared(look.parameter_lower, finding.parameter_budget)[0])
        for finding, look in looks
    )  # fmt: skip
    note = said("figure.wealth_note")
    data = Table("", columns, rows, sum(len(finding.looks) for finding in with_looks) - len(rows))
    title = "Evidence over time: log wealth of the bets against the claim"
    return Plot(x, y, tuple(series)).figure("wealth", title, description, note, data)


def _wealth_scales(findings: Sequence[Finding]) -> tuple[Scale, Scale]:
    draws = [max(1, look.draws) for finding in findings for look in finding.looks]
    values = [_share(one, look) for one in findings for look in one.looks if math.isfinite(look.log_wealth)]
    # A wealth far beyond the threshold adds nothing to what one reads here, and would press all else flat.
    y = Scale("log wealth over its threshold", max(min([0.0, *values]), -2.0) - 0.1, min(max([1.2, *values]), 3.05))
    label = "labelled draws of the pair"
    if max(draws) > 30 * min(draws):
        return Scale(f"{label} (logarithmic)", min(draws) / 1.1, max(draws) * 1.1, is_log=True), y
    return Scale(label, 0.0, max(draws) * 1.03), y


def _share(finding: Finding, look: Look) -> float:
    """The log wealth of a look over its threshold, which is infinite for a pair without a share of the error rate."""
    return look.log_wealth / threshold(finding)


def _course(finding: Finding, x: Scale) -> list[tuple[float, float]]:
    """The looks of a pair as points: at most about `CURVE_POINTS`, with its end."""
    looks = [look for look in finding.looks if not math.isnan(look.log_wealth)] or [Look(1, 0.0, 0.0)]
    stride = max(1, math.ceil(len(finding.looks) / CURVE_POINTS))
    kept = [(float(max(1, look.draws)), _share(finding, look)) for look in [*looks[:-1:stride], looks[-1]]]
    return kept if len(kept) > 1 or x.is_log else [(0.0, 0.0), *kept]


def witness_figure(result: AuditResult) -> Figure | None:
    """Earlier outputs of the worst pair along the view of its rule; None where the result holds none."""
    worst = result.worst
    if worst is None or worst.witness is None or worst.witness.sketch is None:
        return None
    sketch = worst.witness.sketch
    whole, bins = (name_text(worst.x_id, 30), name_text(worst.x_prime_id, 30)), list(itertools.pairwise(sketch.edges))
    view, names = clean(sketch.view, 80), ("x", "x′") if any("…" in name for name in whole) else whole
    draws = plural(sum(sketch.x) + sum(sketch.x_prime), "earlier draw")
    facts = {"view": f"{view[:1].upper()}{view[1:]}", "x": whole[0], "x_prime": whole[1], "draws": draws}
    description = said("figure.evidence", **facts, counts=wording.counts_sentence(worst))
    note = joined(said("figure.evidence_note"), wording.allowance_sentence(worst))
    rows = tuple(
        (f"{number_text(first, 4)} to {number_text(last, 4)}", f"{x:,}", f"{x_prime:,}", number_text(guess, 2))
        for (first, last), x, x_prime, guess in zip(bins, sketch.x, sketch.x_prime, sketch.guesses, strict=True)
    )
    columns = (view, f"draws on {names[0]}", f"draws on {names[1]}", "mean guess, 1 for x, -1 for x′")
    known = [
        plural(sum(counts), "output") if sum(counts) else "no output has this number"
        for counts in (sketch.x, sketch.x_prime)
    ]
    shown = (f"x = {whole[0]}", f"x′ = {whole[1]}")
    series, shares = [], [[count / max(sum(counts), 1) for count in counts] for counts in (sketch.x, sketch.x_prime)]
    top = 1.08 * max(*shares[0], *shares[1], 1e-9)
    for foot, name, of, cls in ((1.0, names[0], shares[0], "of-x"), (0.0, names[1], shares[1], "of-x-prime")):
        for (start, end), guess in zip(bins, sketch.guesses, strict=True):
            if abs(guess) >= GUESSES:
                side, guessed = ("guess-x", names[0]) if guess > 0.0 else ("guess-x-prime", names[1])
                corners = [(start, foot), (end, foot + PANEL)]
                series.append(Series(side, corners, f"here the rule guesses {guessed}", "box"))
        counts = sketch.x if foot else sketch.x_prime
        for (start, end), share, count in zip(bins, of, counts, strict=True):
            caption = f"{number_text(start, 3)} to {number_text(end, 3)}: {plural(count, 'draw')} on {name}"
            corners = [(start, foot), (end, foot + PANEL * share / top)]
            series += [Series(cls, corners, f"outputs on {name}", "box", caption)] if share > 0.0 else []
    x, y = Scale(view, sketch.edges[0], sketch.edges[-1]), Scale("", 0.0, 2.0, names=("", ""))

    def words(x_axis: Axis, y_axis: Axis) -> list[Markup]:
        start = x_axis.start
        caption = (f"{name}: {count}" for name, count in zip(shown, known, strict=True))
        named = [
            tag("text", text, x=start + 8.0, y=y_axis(foot + 1.0) + 13.0, cls="callout")
            for foot, text in zip((1.0, 0.0), caption, strict=True)
        ]
        return [tag("text", right_text(worst), x=start, y=y_axis.end - 10.0, cls="label"), *named]

    margins = (12.0, 12.0, 26.0, 46.0)
    plot = Plot(x, y, tuple(series), (338.0, 338.0), words, (margins, margins))
    title = f"Outputs on {names[0]} and on {names[1]}, and where the rule guesses"
    return plot.figure("evidence", title, description, note, Table("", columns, rows))


def right_text(finding: Finding) -> str:
    """Say how often the rule of a pair was right on fresh draws, in a few words."""
    witness = finding.witness
    guesses = witness.correct + witness.wrong if witness is not None else 0
    if witness is None or not guesses:
        return "the rule guesses nowhere"
    share = wording.percent_text(round(witness.correct / guesses, 3))
    return f"{share} right: {witness.correct:,} of {guesses:,} fresh guesses"


def places_of(result: AuditResult, coordinates: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Say where the inputs lie: as declared by id, else inputs that are two numbers; only inputs that have a place."""
    places: dict[str, tuple[float, float]] = {}
    for finding in result.findings:
        for name, value in ((finding.x_id, finding.x), (finding.x_prime_id, finding.x_prime)):
            if name in coordinates:
                places[name] = coordinates[name]
            elif isinstance(value, list | tuple) and len(value) == 2 and all(map(is_number, value)):
                places[name] = (float(value[0]), float(value[1]))
    return places


def atlas(result: AuditResult, coordinates: Mapping[str, tuple[float, float]]) -> Figure | None:
    """Every pair as a line between its inputs, coloured by lower bound over budget; None where places are not known."""
    places = places_of(result, coordinates)
    drawn = [f for f in result.ranked() if f.x_id in places and f.x_prime_id in places and f.verdict != "error"][:LINES]
    used = list(dict.fromkeys(name for finding in drawn for name in (finding.x_id, finding.x_prime_id)))
    if len(used) < 3 or len(used) > PLACES:
        return None
    top = top_ratio(finding.ratio_lower for finding in result.findings)
    violated = sum(finding.verdict == "violated" for finding in drawn)
    rest = len(result.findings) - len(drawn)
    missing = said("figure.map_missing", pairs=plural(rest, "more pair")) if rest else said("figure.map_whole")
    source = "as declared" if any(name in coordinates for name in used) else "the inputs themselves"
    pairs = plural(len(drawn), "pair")
    description = said("figure.map", inputs=len(used), pairs=pairs, violated=violated)
    shown = {name: places[name] for name in used}
    series = [Series(_line_class(one, top), [shown[one.x_id], shown[one.x_prime_id]]) for one in reversed(drawn)]
    series.append(Series(f"pair broken k{2 * STEPS - 3}", [], "a pair: thick, if it is violated"))
    across, up = zip(*shown.values(), strict=True)
    room = 0.05 * (max(max(across) - min(across), max(up) - min(up)) or 1.0)
    x, y = (Scale("", min(one) - room, max(one) + room) for one in (across, up))
    share = (y.high - y.low) / (x.high - x.low)
    heights = min(560.0, 825.0 * share + 56.0), min(460.0, 283.0 * share + 56.0)
    note = joined(said("figure.map_note", source=source), missing)
    plot = Plot(x, y, tuple(series), heights, lambda a, b: _named(shown, a, b))
    drawing = plot.figure("map", "Loss against budget where the inputs lie", description, note, PAIRS)
    return dataclasses.replace(drawing, scale=draw_scale(top))


def _line_class(finding: Finding, top: float) -> str:
    ratio = finding.ratio_lower
    colour = "cell-none" if ratio is None or math.isnan(ratio) else f"k{ratio_step(float(ratio), top)}"
    return f"pair {'broken ' * (finding.verdict == 'violated')}{colour}"


def _named(places: Mapping[str, tuple[float, float]], x: Axis, y: Axis) -> list[Markup]:
    """Dots at the places, and names of those of the worst pairs, as far as they cover no other name."""
    at = {name: (x(place[0]), y(place[1])) for name, place in places.items()}
    marks = [tag("circle", cx=px, cy=py, r=2.6, cls="place") for px, py in at.values()]
    taken: list[tuple[float, float, float]] = []
    for name, (px, py) in at.items():  # in the order of the worst pairs
        shown = name_text(name, 20)
        reach = 6.4 * len(shown)
        start = px + 6.0 if px + 6.0 + reach < x.end else px - 6.0 - reach
        if len(taken) < NAMED and not any(abs(py - b) < 12.0 and start < c and a < start + reach for a, b, c in taken):
            taken.append((start, py, start + reach))
            marks.append(tag("text", shown, x=start, y=py + 4.0, cls="callout"))
    return marks


# --- Promises against lower bounds, all on one axis: the picture of page one -----------------------------------------


@dataclasses.dataclass(frozen=True)
class Bar:
    """A bar of a picture with its name: bounds and what stayed hidden, as those of a `Line`."""

    name: str
    verdict: Verdict
    low: float | None
    high: float | None = None
    blind: float | None = None
    tried: Mapping[str, str] | None = None


def picture(bars: Sequence[Line | Bar], noun: str = "promise") -> Figure | None:
    """The picture of bars, each of which is a `noun`; None where none was measured as a number."""
    drawn = [bar for bar in bars if bar.low is not None]
    if not drawn:
        return None
    broken = sum(bar.verdict == "violated" for bar in drawn)
    rest = len(bars) - len(drawn)
    es, shown = "es" * (broken == 1), plural(len(drawn), noun)
    description = said("figure.promises", bars=shown, broken=broken, es=es)
    blind = [bar for bar in drawn if bar.blind is not None]
    is_known = all(bar.tried is None for bar in blind)
    where = "that a test knows beforehand" if is_known else "of the hardest form that the verdict rests on"
    note = joined(
        said("figure.promises_note"),
        said("figure.promises_blind", where=where) if blind else "",
        said("figure.promises_rest", rows=plural(rest, "row")) if rest else "",
    )
    rows = tuple(
        (bar.name, compared(bar.low, 1.0)[0], upper_text(bar.high, 3), upper_text(bar.blind, 3)) for bar in drawn
    )
    data = Table("", (noun, "at least", "at most", "a loss is found in 9 of 10 audits from"), rows)
    reach = max(edge for bar in drawn if math.isfinite(edge := min(_edge(bar), TOP)))
    x = Scale("times what was promised", 0.0, min(TOP, max(MIN_TOP, 1.1 * reach)))
    y = Scale("", 0.5, len(drawn) + 0.5, names=tuple(bar.name for bar in reversed(drawn)))
    series = [Series("over", [(1.0, y.low), (x.high, y.high)], kind="box")]
    for place, bar in zip(range(len(drawn), 0, -1), drawn, strict=True):
        series += _bars(bar, place - HALF, place + HALF)
    series.append(Series("limit", [(1.0, y.low), (1.0, y.high)], "the promise"))
    heights = tuple(sum(HEAD_AND_FOOT) + step * len(drawn) for step in ROW_HEIGHTS)
    margins = (250.0, 150.0, *HEAD_AND_FOOT), (8.0, 12.0, *HEAD_AND_FOOT)
    plot = Plot(x, y, tuple(series), (heights[0], heights[1]), lambda a, b: _further(drawn, a, b), margins)
    return plot.figure("promises", "Promise against measurement", description, note, data)


def not_drawn(count: int, noun: str) -> str:
    """Say how many have no bar in a picture; empty where all have one."""
    return said("figure.not_drawn", bars=plural(count, noun)) if count else ""


def _edge(bar: Line | Bar) -> float:
    """The right end of the row."""
    return max(value for value in (bar.low, bar.high, bar.blind, 0.0) if value is not None)


def _bars(bar: Line | Bar, foot: float, head: float) -> Iterator[Series]:
    """Series of a lower bound, and of what was not excluded or may have stayed hidden."""
    low, further = bar.low or 0.0, bar.high if bar.high is not None else bar.blind
    if bar.verdict != "violated" and further is not None and further > low:
        label = "may have stayed hidden" if bar.high is None else "not shown, and not excluded"
        yield Series("blind-band", [(low, foot), (further, head)], label, "box")
    title = f"{bar.name}: {wording.at_least(compared(low, 1.0)[0])} times what was promised{_rest(bar)}"
    yield Series(f"proven {bar.verdict}", [(0.0, foot), (low, head)], BOUNDS[bar.verdict], "box", title)


def _further(bars: Sequence[Line | Bar], x: Axis, y: Axis) -> list[Markup]:
    """The number of each bar, a sign where the truth may be larger, and the name of the line."""
    marks = [tag("text", "promised", x=x(1.0), y=y.end - 9.0, text_anchor="middle", cls="callout")]
    for place, bar in zip(range(len(bars), 0, -1), bars, strict=True):
        low, middle, cls = bar.low or 0.0, y(place), f"figure-number {bar.verdict}"
        if bar.verdict == "violated" and bar.high is None:
            ends = [min(x(low) + k, x.end - 6.0) for k in (3.0, 9.0)]
            marks += [path([(at, middle - 5.0), (at + 5.0, middle), (at, middle + 5.0)], "more") for at in ends]
        text = f"{wording.no_less(compared(low, 1.0)[0])} ×"  # the digits of the table above it
        if bar.high is not None:
            text = f"{wording.lower_text(low, 3)} to {upper_text(bar.high, 3)} ×"
        at: dict[str, Any] = {"x": x.end + 10.0, "y": middle + 4.0}
        if x.end - x.start < 400.0:
            at = {"x": x.end - 4.0, "y": middle - 14.0, "text_anchor": "end"}
        marks.append(tag("text", text, cls=cls, **at))
    return marks


def _rest(bar: Line | Bar) -> str:
    if bar.high is not None:
        return f", at most {upper_text(bar.high, 3)} times"
    if bar.blind is not None and bar.verdict != "violated":
        which = "none" if bar.blind == math.inf else f"those from {upper_text(bar.blind, 3)} times on"
        return f"; of leaks of the kinds that were tried 9 of 10 audits find {which}"
    return ""


# --- Errors against stated bounds -----------------------------------------------------------------------------------


def errors(result: UtilityResult) -> Figure | None:
    """Measured error over what the bound allows, with its interval, for each bound and input; None without any."""
    usable = [f for f in result.findings if f.ratio is not None and not math.isnan(f.ratio) and f.verdict != "error"]
    ranked = sorted(usable, key=lambda finding: (VERDICTS.index(finding.status), -(finding.ratio or 0.0)))
    named = ((f"{clean(f.bound, 40)}: {clean(f.input_id, 40)}", f) for f in ranked[:INTERVALS])
    bars = [Bar(name, f.status, f.ratio_lower, f.ratio_upper) for name, f in named]
    drawn = picture(bars, "test")
    if drawn is None:
        return None
    columns = ("bound", "input", "measured", "lower limit", "upper limit", "allowed", "ratio", "verdict")
    rows = tuple(error_row(finding) for finding in ranked)
    data = Table("", columns, rows, len(result.findings) - len(rows))
    title = "Measured error over the stated bound"
    note = joined(said("figure.errors_note"), not_drawn(len(result.findings) - len(bars), "test"))
    return dataclasses.replace(drawn, id="errors", title=title, note=note, data=data)


def error_row(finding: UtilityFinding) -> tuple[str, ...]:
    """A row of the table of errors."""
    lower, allowed = compared(finding.lower, finding.allowed)
    numbers = (number_text(finding.measured), lower, upper_text(finding.upper), allowed)
    word = (
        "says nothing"
        if finding.says_nothing and finding.verdict != "violated"
        else wording.status_word(finding.status)
    )
    return (clean(finding.bound, 80), clean(finding.input_id, 60), *numbers, wording.lower_text(finding.ratio, 3), word)
