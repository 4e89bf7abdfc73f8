"""The picture of page one: what was proven against what was promised, all subjects on one axis, 1 being the promise."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaudit.reports.dossier import Line
from dpaudit.reports.drawing import Axis, Data, Drawing, Figure, Mark, path, swatch, tag
from dpaudit.reports.wording import at_least, clean, compared, lower_text, no_less, number_text, plural
from dpaudit.reports.words import joined, said

TOP = 4.0  # times the promise: what is larger runs off the picture, with its number beside it
MIN_TOP = 1.5  # the axis goes on so far at least


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
        (f"{bar.subject}: {bar.kind}", compared(bar.low, 1.0)[0], _number(bar.high), _number(bar.blind))
        for bar in drawn
    )
    columns = ("promise", "proven: at least", "at most", "a loss is found in 9 of 10 audits from")
    colours = [("proven violated", "proven, over the promise"), ("proven not_refuted", "proven, within it")]
    if blind or any(bar.high is not None for bar in drawn):
        colours.append(("blind-band", "not proven, and not excluded"))
    legend = [(swatch(tag("rect", x=1.0, y=3.0, width=20.0, height=8.0, cls=cls)), text) for cls, text in colours]
    legend.append((swatch(path([(11.0, 0.0), (11.0, 14.0)], "limit")), "the promise"))
    return Figure(
        id="promises",
        title="Promise against measurement",
        description=description,
        note=note,
        draw=lambda page: _draw(drawn, page, description),
        legend=tuple(legend),
        data=Data(columns, rows, 0),
    )


def _number(value: float | None) -> str:
    return number_text(value, 3)


def _edge(bar: Line) -> float:
    """Say how far the row reaches to the right."""
    return max(value for value in (bar.low, bar.high, bar.blind, 0.0) if value is not None)


def _draw(bars: Sequence[Line], page: float, description: str) -> Drawing:
    is_wide = page > 500
    step, head = (34.0, 24.0) if is_wide else (50.0, 24.0)
    left, right = (250.0, page - 150.0) if is_wide else (8.0, page - 12.0)
    bottom = head + step * len(bars) + 4.0
    reach = max(edge for bar in bars if math.isfinite(edge := min(_edge(bar), TOP)))
    top = min(TOP, max(MIN_TOP, 1.1 * reach))
    x = Axis(0.0, top, left, right, False)
    body = [tag("rect", x=left, y=head, width=right - left, height=bottom - head, cls="plot")]
    body.append(tag("rect", x=x(1.0), y=head, width=right - x(1.0), height=bottom - head, cls="over"))
    for at, label in x.ticks(8 if is_wide else 5):
        body.append(tag("line", x1=at, x2=at, y1=head, y2=bottom, cls="grid"))
        body.append(tag("text", label, x=at, y=bottom + 15.0, text_anchor="middle", cls="tick"))
    for row, bar in enumerate(bars):
        body += _row(bar, x, head + step * row, step, is_wide)
    body.append(path([(x(1.0), head - 4.0), (x(1.0), bottom)], "limit"))
    body.append(tag("text", "promised", x=x(1.0), y=head - 9.0, text_anchor="middle", cls="callout"))
    label = "times what was promised"
    body.append(tag("text", label, x=(left + right) / 2, y=bottom + 33.0, text_anchor="middle", cls="label"))
    return Drawing(tuple(body), page, bottom + 40.0, description)


def _row(bar: Line, x: Axis, y: float, step: float, is_wide: bool) -> list[Mark]:
    """The name, the bars and the number of one promise, in the strip that begins at y."""
    low = bar.low or 0.0
    height = 13.0
    middle = y + (step / 2.0 if is_wide else step - 16.0)
    name = f"{bar.subject}: {bar.kind}"
    parts = [
        tag("text", clean(name, 36), x=x.start - 10.0, y=middle + 4.0, text_anchor="end", cls="name")
        if is_wide
        else tag("text", clean(name, 50), x=x.start + 4.0, y=y + 15.0, cls="name")
    ]
    end = x(min(low, x.high))
    title = f"{name}: {at_least(compared(low, 1.0)[0])} times what was promised{_rest(bar)}"
    width = max(2.0, end - x.start)
    further = bar.high if bar.high is not None else bar.blind
    far = end
    if bar.verdict != "violated" and further is not None and further > low:
        far = x(min(further, x.high))
        parts.append(tag("rect", x=end, y=middle - height / 2, width=far - end, height=height, cls="blind-band"))
    parts.append(
        tag(
            "rect",
            title=title,
            x=x.start,
            y=middle - height / 2,
            width=width,
            height=height,
            cls=f"proven {bar.verdict}",
        )
    )
    if bar.verdict == "violated" and bar.high is None:  # the truth may be larger
        for k in (3.0, 9.0):
            at = min(end + k, x.end - 6.0)
            parts.append(path([(at, middle - 5.0), (at + 5.0, middle), (at, middle + 5.0)], "more"))
    text = f"{no_less(compared(low, 1.0)[0])} ×"  # the digits of the table above it
    if bar.high is not None:
        text = f"{lower_text(low, 3)} to {number_text(bar.high, 3)} ×"
    if is_wide:
        parts.append(tag("text", text, x=x.end + 10.0, y=middle + 4.0, cls=f"figure-number {bar.verdict}"))
    else:
        parts.append(
            tag("text", text, x=x.end - 4.0, y=y + 15.0, text_anchor="end", cls=f"figure-number {bar.verdict}")
        )
    return parts


def _rest(bar: Line) -> str:
    if bar.high is not None:
        return f", at most {_number(bar.high)} times"
    if bar.blind is not None and bar.verdict != "violated":
        return f"; from {_number(bar.blind)} times on 9 of 10 audits find it"
    return ""
