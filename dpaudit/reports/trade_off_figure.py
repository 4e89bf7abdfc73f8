"""The figure of a trade-off function: a confidence band, against the curve that the claim promises."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dpaudit.reports.drawing import Data, Figure, Plot, Scale, Series
from dpaudit.reports.wording import number_text, percent_text
from dpaudit.reports.words import joined, said
from dpaudit.results.trade_off import TradeOffPoint

TABLE_ROWS = 16


def trade_off_figure(known_at: Sequence[TradeOffPoint], confidence: float, of: str = "") -> Figure:
    """The band for the trade-off function against the claim's curve; `of` says whose it is, at the end of the title."""
    has_lower = any(point.thresholds_lower is not None for point in known_at)
    description = said("figure.band", sure=percent_text(confidence))
    claimed = [(point.type_one, point.claimed) for point in known_at]
    upper = [(point.type_one, point.upper) for point in known_at]
    series = [Series("limit", claimed, "the claim allows no attack below")]
    series.append(Series("curve w0", upper, "some attack is at or below, with confidence"))
    if has_lower:
        description = joined(description, said("figure.band_lower"))
        lower = [(one.type_one, one.thresholds_lower) for one in known_at if one.thresholds_lower is not None]
        series.append(Series("curve w1", steps_below(lower), "no threshold of this score is below, with confidence"))
    step = max(1, len(known_at) // TABLE_ROWS)
    rows = tuple(
        tuple(
            number_text(value, 3) if value is not None else ""
            for value in (point.type_one, point.claimed, point.upper, *([point.thresholds_lower] if has_lower else []))
        )
        for point in known_at[::step]
    )
    columns = ("type I error", "claimed at least", "at most", *(["thresholds at least"] if has_lower else []))
    plot = Plot(Scale("type I error", 0.0, 1.0), Scale("type II error", 0.0, 1.0), tuple(series))
    data = Data(columns, rows, len(known_at) - len(rows))
    return plot.figure("trade-off-band", f"Trade-off between the errors of an attack{of}", description, "", data)


def steps_below(known: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
    """The corners of a staircase below a convex limit that falls: each step has the height of its right end.

    A chord of the limit would lie above it, and say too much.

    Examples
    --------
    >>> steps_below([(0.0, 1.0), (0.5, 0.2), (1.0, 0.0)])
    [(0.0, 0.2), (0.5, 0.2), (0.5, 0.0), (1.0, 0.0)]
    """
    return [corner for left, right in pairwise(known) for corner in ((left[0], right[1]), right)]
