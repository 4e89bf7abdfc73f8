"""The picture of page one: lower bounds against what was promised, all subjects on one axis, 1 being the promise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dpaudit.reports.dossier import Line
from dpaudit.reports.drawing import Axis, Figure, Mark, Plot, Scale, Series, Table, path, tag
from dpaudit.reports.wording import at_least, compared, lower_text, no_less, plural, upper_text
from dpaudit.reports.words import joined, said

TOP = 4.0  # times the promise: what is larger runs off the picture, with its number beside it
MIN_TOP = 1.5  # the axis goes on so far at least
STEPS, HALF = (34.0, 50.0), 0.19  # heights of a row, wide and narrow, and half of its bar as a share of it
HEAD_AND_FOOT = 26.0, 46.0
BOUNDS = {
    "violated": "lower bound, over the promise",
    "error": "lower bound, of a run that broke",
    "inconclusive": "lower bound, within it, not settled",
    "not_refuted": "lower bound, within it",
}


def picture(bars: Sequence[Line]) -> Figure | None:
    """The picture; None where no promise was measured as a number."""
    drawn = [bar for bar in bars if bar.low is not None]
    if not drawn:
        return None
    broken = sum(bar.verdict == "violated" for bar in drawn)
    rest = len(bars) - len(drawn)
    es, promises = "es" * (broken == 1), plural(len(drawn), "promise")
    description = said("figure.promises", promises=promises, broken=broken, es=es)
    blind = [bar for bar in drawn if bar.blind is not None]
    where = "in the best case" if all(bar.learned_with is None for bar in blind) else "of the hardest form"
    note = joined(
        said("figure.promises_note"),
        said("figure.promises_blind", where=where) if blind else "",
        said("figure.promises_rest", rows=plural(rest, "row")) if rest else "",
    )
    rows = tuple(
        (bar.name, compared(bar.low, 1.0)[0], upper_text(bar.high, 3), upper_text(bar.blind, 3)) for bar in drawn
    )
    data = Table("", ("promise", "at least", "at most", "a loss is found in 9 of 10 audits from"), rows)
    return plot_of(drawn).figure("promises", "Promise against measurement", description, note, data)


def plot_of(drawn: Sequence[Line]) -> Plot:
    """The plot of rows that were measured as numbers."""
    reach = max(edge for bar in drawn if math.isfinite(edge := min(_edge(bar), TOP)))
    x = Scale("times what was promised", 0.0, min(TOP, max(MIN_TOP, 1.1 * reach)))
    y = Scale("", 0.5, len(drawn) + 0.5, names=tuple(bar.name for bar in reversed(drawn)))
    series = [Series("over", [(1.0, y.low), (x.high, y.high)], kind="box")]
    for place, bar in zip(range(len(drawn), 0, -1), drawn, strict=True):
        series += _bars(bar, place - HALF, place + HALF)
    series.append(Series("limit", [(1.0, y.low), (1.0, y.high)], "the promise"))
    heights = tuple(sum(HEAD_AND_FOOT) + step * len(drawn) for step in STEPS)
    margins = (250.0, 150.0, *HEAD_AND_FOOT), (8.0, 12.0, *HEAD_AND_FOOT)
    return Plot(x, y, tuple(series), (heights[0], heights[1]), lambda a, b: _further(drawn, a, b), margins)


def _edge(bar: Line) -> float:
    """The right end of the row."""
    return max(value for value in (bar.low, bar.high, bar.blind, 0.0) if value is not None)


def _bars(bar: Line, foot: float, head: float) -> Iterator[Series]:
    """Series of a lower bound, and of what was not excluded."""
    low, further = bar.low or 0.0, bar.high if bar.high is not None else bar.blind
    if bar.verdict != "violated" and further is not None and further > low:
        yield Series("blind-band", [(low, foot), (further, head)], "not shown, and not excluded", "box")
    title = f"{bar.name}: {at_least(compared(low, 1.0)[0])} times what was promised{_rest(bar)}"
    yield Series(f"proven {bar.verdict}", [(0.0, foot), (low, head)], BOUNDS[bar.verdict], "box", title)


def _further(bars: Sequence[Line], x: Axis, y: Axis) -> list[Mark]:
    """The number of each bar, a sign where the truth may be larger, and the name of the line."""
    marks = [tag("text", "promised", x=x(1.0), y=y.end - 9.0, text_anchor="middle", cls="callout")]
    for place, bar in zip(range(len(bars), 0, -1), bars, strict=True):
        low, middle, cls = bar.low or 0.0, y(place), f"figure-number {bar.verdict}"
        if bar.verdict == "violated" and bar.high is None:
            ends = [min(x(min(low, x.scale.high)) + k, x.end - 6.0) for k in (3.0, 9.0)]
            marks += [path([(at, middle - 5.0), (at + 5.0, middle), (at, middle + 5.0)], "more") for at in ends]
        text = f"{no_less(compared(low, 1.0)[0])} ×"  # the digits of the table above it
        if bar.high is not None:
            text = f"{lower_text(low, 3)} to {upper_text(bar.high, 3)} ×"
        at: dict[str, Any] = {"x": x.end + 10.0, "y": middle + 4.0}
        if x.end - x.start < 400.0:
            at = {"x": x.end - 4.0, "y": middle - 14.0, "text_anchor": "end"}
        marks.append(tag("text", text, cls=cls, **at))
    return marks


def _rest(bar: Line) -> str:
    if bar.high is not None:
        return f", at most {upper_text(bar.high, 3)} times"
    if bar.blind is not None and bar.verdict != "violated":
        excess = "no" if bar.blind == math.inf else f"from {upper_text(bar.blind, 3)} times on the"
        return f"; {excess} excess is found by 9 of 10 audits"
    return ""
