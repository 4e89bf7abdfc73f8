"""Figures of places and of errors: pairs drawn where their inputs lie, and measured errors against stated bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpaudit.reports.drawing import MARGINS, Axis, Data, Drawing, Figure, Mark, Plot, Scale, Series, path, swatch, tag
from dpaudit.reports.figures import ROWS, STEPS, draw_scale, ratio_step, top_ratio
from dpaudit.reports.wording import (
    VERDICT_WORDS,
    clean,
    compared,
    lower_text,
    name_text,
    number_text,
    plural,
    ratio_text,
)
from dpaudit.reports.words import joined, said
from dpaudit.results.model import VERDICTS, AuditResult, Finding
from dpaudit.results.utility_result import UtilityFinding, UtilityResult

PLACES = 400  # most inputs on a map
LINES = 1500  # most pairs on a map, the worst
NAMED = 40  # most names on it
INTERVALS = 40  # most rows of the figure of errors


def places_of(result: AuditResult, coordinates: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Say where the inputs lie: as declared by id, else inputs that are two numbers; only inputs that have a place."""
    places: dict[str, tuple[float, float]] = {}
    for finding in result.findings:
        for name, value in ((finding.x_id, finding.x), (finding.x_prime_id, finding.x_prime)):
            if name in coordinates:
                places[name] = coordinates[name]
            elif name not in places and _is_point(value):
                places[name] = (float(value[0]), float(value[1]))
    return places


def _is_point(value: Any) -> bool:
    def is_number(one: Any) -> bool:
        return isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one)

    return isinstance(value, list | tuple) and len(value) == 2 and all(is_number(one) for one in value)


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
    declared = " (declared)" if any(name in coordinates for name in used) else ""
    columns = ("pair", f"place of x{declared}", f"place of x′{declared}", "budget", "ratio", "verdict")
    rows = []
    for finding in drawn[:ROWS]:
        ends = [_place_text(places[name]) for name in (finding.x_id, finding.x_prime_id)]
        budget = number_text(finding.parameter_budget)
        rows.append((name_text(finding.id, 80), *ends, budget, ratio_text(finding), VERDICT_WORDS[finding.verdict]))
    legend = ((swatch(_bar((1.0, 7.0), (21.0, 7.0), 3.0, f"k{2 * STEPS - 3}")), "a pair: thick, if it is violated"),)
    return Figure(
        id="map",
        title="Loss against budget where the inputs lie",
        description=description,
        note=joined(said("figure.map_note", source=source), missing),
        draw=lambda page: _draw_atlas(drawn, shown, top, page, description),
        scale=draw_scale(top),
        legend=legend,
        data=Data(columns, tuple(rows), len(result.findings) - len(rows)),
    )


def _place_text(place: tuple[float, float]) -> str:
    return f"{number_text(place[0], 5)}, {number_text(place[1], 5)}"


def _draw_atlas(
    drawn: list[Finding], places: Mapping[str, tuple[float, float]], top: float, page: float, description: str
) -> Drawing:
    across, up = [place[0] for place in places.values()], [place[1] for place in places.values()]
    wide, tall = max(across) - min(across) or 1.0, max(up) - min(up) or 1.0
    edge = 40.0 if page > 500 else 26.0
    scale = min((page - 2.0 * edge) / wide, (520.0 if page > 500 else 420.0) / tall)
    height = tall * scale + 2.0 * edge
    left = (page - wide * scale) / 2.0
    x = Axis(min(across), min(across) + wide, left, left + wide * scale, False)
    y = Axis(min(up), min(up) + tall, height - edge, edge, False)
    at = {name: (x(place[0]), y(place[1])) for name, place in places.items()}
    body = [tag("rect", x=1.0, y=1.0, width=page - 2.0, height=height - 2.0, cls="plot")]
    for finding in reversed(drawn):  # the worst last, on top
        ratio = finding.ratio_lower
        fill = "cell-none" if ratio is None or math.isnan(ratio) else f"k{ratio_step(float(ratio), top)}"
        thick = 3.2 if finding.verdict == "violated" else 1.4
        body.append(_bar(at[finding.x_id], at[finding.x_prime_id], thick, fill))
    body += [tag("circle", cx=px, cy=py, r=2.6, cls="place") for px, py in at.values()]
    taken: list[tuple[float, float, float]] = []
    named = 0
    for name, (px, py) in at.items():  # in the order of the worst pairs
        shown = name_text(name, 20)
        reach = 6.4 * len(shown)
        start = px + 6.0 if px + 6.0 + reach < page else px - 6.0 - reach
        if named >= NAMED or any(abs(py - b) < 12.0 and start < c and a < start + reach for a, b, c in taken):
            continue
        taken.append((start, py, start + reach))
        named += 1
        body.append(tag("text", shown, x=start, y=py + 4.0, cls="callout"))
    return Drawing(tuple(body), page, height, description)


def _bar(start: tuple[float, float], end: tuple[float, float], thick: float, cls: str) -> Mark:
    """A line as a thin quadrilateral, so that the classes of the colour scale fill it."""
    run, rise = end[0] - start[0], end[1] - start[1]
    length = math.hypot(run, rise) or 1.0
    dx, dy = -rise / length * thick / 2.0, run / length * thick / 2.0
    corners = [(start[0] + dx, start[1] + dy), (end[0] + dx, end[1] + dy)]
    corners += [(end[0] - dx, end[1] - dy), (start[0] - dx, start[1] - dy)]
    return path(corners, cls, is_closed=True)


# --- Errors against stated bounds -----------------------------------------------------------------------------------


def errors(result: UtilityResult) -> Figure | None:
    """Measured error over what the bound allows, with its interval, for each bound and input; None without any."""
    usable = [f for f in result.findings if f.ratio is not None and not math.isnan(f.ratio) and f.verdict != "error"]
    if not usable:
        return None
    ranked = sorted(usable, key=lambda finding: (VERDICTS.index(finding.told), -(finding.ratio or 0.0)))
    shown = ranked[:INTERVALS]
    violated = sum(finding.verdict == "violated" for finding in usable)
    facts = {"shown": len(shown), "tests": plural(len(usable), "test"), "violated": violated}
    description = said("figure.errors", **facts)
    values = [one for f in shown for one in (f.ratio, f.ratio_lower, f.ratio_upper) if one and math.isfinite(one)]
    x = Scale.log("measured / stated bound (logarithmic)", [*values, 1.0], 3.0)
    names = [clean(f"{finding.bound} · {finding.input_id}", 60) for finding in reversed(shown)]
    y = Scale("", 0.5, len(shown) + 0.5, names=tuple(names))
    places = list(zip(range(len(shown), 0, -1), shown, strict=True))
    series = [
        Series(
            f"interval {f.told}",
            [(f.ratio_lower or 0.0, at), (math.inf if f.ratio_upper is None else f.ratio_upper, at)],
        )
        for at, f in places
    ]
    for verdict in VERDICTS:
        if of := [(f.ratio or 0.0, float(at)) for at, f in places if f.told == verdict]:
            series.append(Series(verdict, of, VERDICT_WORDS[verdict], "marks", titles=[""] * len(of), r=3.6))
    series.append(Series("limit", [(1.0, y.low), (1.0, y.high)], "measured = stated bound"))
    columns = ("bound", "input", "measured", "lower limit", "upper limit", "allowed", "ratio", "verdict")
    data = Data(columns, tuple(error_row(f) for f in ranked[:ROWS]), len(result.findings) - len(ranked[:ROWS]))
    heights = (62.0 + 21.0 * len(shown), 62.0 + 34.0 * len(shown))
    plot = Plot(x, y, tuple(series), heights, margins=((300.0, *MARGINS[1:]), (12.0, *MARGINS[1:])))
    return plot.figure("errors", "Measured error over the stated bound", description, said("figure.errors_note"), data)


def error_row(finding: UtilityFinding) -> tuple[str, ...]:
    """A row of the table of errors."""
    lower, allowed = compared(finding.lower, finding.allowed)
    numbers = (number_text(finding.measured), lower, number_text(finding.upper), allowed)
    word = "says nothing" if finding.says_nothing and finding.verdict != "violated" else VERDICT_WORDS[finding.told]
    return (clean(finding.bound, 80), clean(finding.input_id, 60), *numbers, lower_text(finding.ratio, 3), word)
