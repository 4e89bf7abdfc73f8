"""The figure of a trade-off function: a confidence band, against the curve that the claim promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from dpaudit.reports.drawing import NARROW, Axis, frame, points, svg, swatch, tag
from dpaudit.reports.figures import WIDE, Data, Figure
from dpaudit.reports.wording import number_text, percent_text
from dpaudit.results.trade_off import TradeOffPoint

TABLE_ROWS = 16


def trade_off_figure(known_at: Sequence[TradeOffPoint], confidence: float, of: str = "") -> Figure:
    """The band for the trade-off function against the claim's curve; `of` says whose it is, at the end of the title."""
    has_lower = any(point.thresholds_lower is not None for point in known_at)
    curves: list[tuple[str, str, Callable[[Any], float | None]]] = [
        ("limit", "the claim allows no attack below", lambda point: point.claimed),
        ("curve w0", "some attack is at or below, with confidence", lambda point: point.upper),
    ]
    if has_lower:
        text = "no threshold of this score is below, with confidence"
        curves.append(("curve w1", text, lambda point: point.thresholds_lower))

    def drawn(width: float) -> Markup:
        x = Axis(0.0, 1.0, 48.0, width - 12.0, False)
        y = Axis(0.0, 1.0, 0.75 * width - 44.0, 10.0, False)
        body = frame(x, y, "type I error", "type II error", width, gutters=False)
        for cls, _, value in curves:
            known = [(point.type_one, value(point)) for point in known_at]
            if cls == "curve w1":
                known = steps_below(known)
            path = [(x(at), y(high)) for at, high in known if high is not None]
            body.append(tag("path", d=points(path), cls=cls))
        return svg(body, width, 0.75 * width, description)

    description = (
        "The least type II error at each type I error: what the claim promises, and an upper limit that holds at all "
        f"points together with {percent_text(confidence)} confidence. Where the limit lies below the claim's "
        "curve, the claim is broken."
    )
    if has_lower:
        description += (
            " The lower limit is of tests by a threshold of this score. It says nothing of other tests and other "
            "attacks, which may lie below it."
        )
    step = max(1, len(known_at) // TABLE_ROWS)
    rows = tuple(
        tuple(
            number_text(value, 3) if value is not None else ""
            for value in (point.type_one, point.claimed, point.upper, *([point.thresholds_lower] if has_lower else []))
        )
        for point in known_at[::step]
    )
    columns = ("type I error", "claimed at least", "at most", *(["thresholds at least"] if has_lower else []))
    return Figure(
        "trade-off-band",
        f"Trade-off between the errors of an attack{of}",
        description,
        "",
        drawn(WIDE),
        drawn(NARROW),
        tuple((swatch(tag("path", d="M1 7L21 7", cls=cls)), text) for cls, text, _ in curves),
        Data(columns, rows, len(known_at) - len(rows)),
    )


def steps_below(known: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
    """The corners of a staircase below a convex limit that falls: each step has the height of its right end.

    A chord of the limit would lie above it, and say too much.

    Examples
    --------
    >>> steps_below([(0.0, 1.0), (0.5, 0.2), (1.0, 0.0)])
    [(0.0, 0.2), (0.5, 0.2), (0.5, 0.0), (1.0, 0.0)]
    """
    return [corner for left, right in pairwise(known) for corner in ((left[0], right[1]), right)]
