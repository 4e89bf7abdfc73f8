"""The plot of a bench run: draws against the optimum's, and bounds below the optimum's, problem by problem."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpaudit.bench.design import TARGETS
from dpaudit.bench.summary import records_of
from dpaudit.results.saving import SHARED, write_whole

ROW_INCHES = 0.19  # height of a problem's row
# Colour-blind safe (Okabe and Ito); shapes differ as well.
POINT, FAR, LIMIT, SPREAD = "#0072b2", "#d55e00", "#555555", "#56b4e9"


def write_figure(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write `bench.svg` and `bench.png`; no file where nothing is there to draw."""
    from matplotlib.figure import Figure

    draws = [row for row in _rows(content, "draws", "ratio") if row[1]["optimum"] < math.inf]
    bounds = _rows(content, "bounds", "shortfall")
    heights = [ROW_INCHES * len(rows) + 1.0 for rows in (draws, bounds) if rows]
    if not heights:
        return []
    figure = Figure(figsize=(9.5, sum(heights) + 0.8), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    if draws:
        _draw_ratios(axes[0], draws, content["design"]["counted_from"])
    if bounds:
        _draw_shortfalls(axes[-1], bounds, content["design"]["bound_draws"])
    return save(figure, folder, "bench", 110)


def save(figure: Any, folder: Path, name: str, dots_per_inch: int) -> list[Path]:
    """Write `name.svg` and `name.png`: the same files for the same figure."""
    import matplotlib

    written = []
    for suffix in ("svg", "png"):
        buffer = io.BytesIO()
        metadata = {"Date": None} if suffix == "svg" else None
        with matplotlib.rc_context({"svg.hashsalt": name}):  # else names of parts are drawn
            figure.savefig(buffer, format=suffix, dpi=dots_per_inch, metadata=metadata)
        written.append(folder / f"{name}.{suffix}")
        write_whole(written[-1], buffer.getvalue(), SHARED)
    return written


def _rows(content: Mapping[str, Any], part: str, figure: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Problems with a figure of a part, and their records, the largest figure first."""
    rows = [(name, record) for name, record in records_of(content, part).items() if record[figure] is not None]
    return sorted(rows, key=lambda row: -row[1][figure])


def _draw_ratios(axes: Any, rows: Sequence[tuple[str, Mapping[str, Any]]], least: int) -> None:
    finite = [v / r["optimum"] for _, r in rows for v in r["found"] if v < math.inf]
    edge = 1.6 * max([6.0, *finite])
    low = 0.8 * min([0.6, *finite])
    for y, (_, record) in enumerate(rows):
        found = [min(value / record["optimum"], edge) for value in record["found"]]
        axes.plot(found, [y] * len(found), ".", color=SPREAD, markersize=5, zorder=2)
        is_counted, median = record["optimum"] >= least, record["ratio"]
        if math.isinf(median):
            axes.plot([edge], [y], ">", color=FAR, markersize=6, zorder=4, clip_on=False)
        else:
            fill = POINT if is_counted else "white"
            axes.plot([median], [y], "o", color=POINT, markerfacecolor=fill, markersize=5.5, zorder=3)
    axes.set_xscale("log")
    axes.set_xlim(low, edge)
    limits = (1.0, TARGETS["draws ratio, median"], TARGETS["draws ratio, worst"])
    _lines(axes, limits)
    _ticks(axes, [f"{name}  ({record['optimum']:,.0f})" for name, record in rows])
    ticks = [t for t in (0.2, 0.5, 1, 1.5, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if low <= t <= edge]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_xlabel("draws to detection / draws of the best fixed test at 90% power (ratio, logarithmic)")
    axes.set_title("Draws to detection (the optimum's draws a side in brackets)", loc="left", fontsize=10)
    _legend(axes, [
        ("o", POINT, POINT, f"median, optimum at least {least} draws a side"),
        ("o", POINT, "white", f"median, optimum below {least} draws"),
        (".", SPREAD, SPREAD, "one audit (at the edge: found nothing)"),
        (">", FAR, FAR, "median audit found nothing"),
        ("--", LIMIT, LIMIT, "1, and the targets: 1.5 median, 5 worst"),
    ])  # fmt: skip


def _draw_shortfalls(axes: Any, rows: Sequence[tuple[str, Mapping[str, Any]]], draws: int) -> None:
    edge = min(30.0, 1.15 * max(4.0, *(record["shortfall"] for _, record in rows)))
    low = min(-1.0, *(record["shortfall"] - 0.3 for _, record in rows))
    for y, (_, record) in enumerate(rows):
        value = record["shortfall"]
        shape, colour = (">", FAR) if value > edge else ("o", POINT)
        axes.plot([min(value, edge)], [y], shape, color=colour, markersize=5.5, zorder=3, clip_on=False)
    axes.set_xlim(low, edge)
    _lines(axes, (0.0, TARGETS["shortfall, median"], TARGETS["shortfall, worst"]))
    _ticks(axes, [name for name, _ in rows])
    axes.set_xlabel("(optimum's lower bound - lower bound) / standard error of the optimum's (standard errors)")
    axes.set_title(f"Lower bounds in fixed mode at {draws:,} draws a side", loc="left", fontsize=10)
    entries = [("o", POINT, POINT, "median bound"), ("--", LIMIT, LIMIT, "0, and the targets: 1 median, 3 worst")]
    if any(record["shortfall"] > edge for _, record in rows):
        entries.insert(1, (">", FAR, FAR, f"more than {edge:g} standard errors"))
    _legend(axes, entries)


def _lines(axes: Any, at: Sequence[float]) -> None:
    for value, style in zip(at, ("-", "--", "--"), strict=True):
        axes.axvline(value, color=LIMIT, linestyle=style, linewidth=1.0, zorder=1)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.5, zorder=0)


def _ticks(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_ylim(len(names) - 0.4, -0.6)


def _legend(axes: Any, entries: Sequence[tuple[str, str, str, str]]) -> None:
    """Below the axes, so that it hides nothing."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linestyle="--", label=label)
        if shape == "--"
        else Line2D([], [], color=colour, marker=shape, markerfacecolor=fill, linestyle="", label=label)
        for shape, colour, fill, label in entries
    ]
    axes.legend(handles=handles, loc="upper center", ncols=3, fontsize=7, frameon=False,
                bbox_to_anchor=(0.35, -0.6 / max(1.0, ROW_INCHES * axes.get_ylim()[0])))  # fmt: skip
