"""Report of measured speed: its table as Markdown, also into a page, and how it grows as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit.bench.figure import FAR, POINT, save
from dpaudit.errors import UsageError
from dpaudit.results.saving import SHARED, write_whole

BEGIN, END = "<!-- speed: made by dpaudit bench -->", "<!-- end of speed -->"
HEAD = ("| what | measured | asked for | met |", "| --- | --- | --- | --- |")
SPOKEN = ("runs", "comparisons", "jobs")  # measurements without lines of their own: their sentence stands below
LABELS = {  # of each curve, what it grows with, what is on the other axis, and the title
    "pairs": ("pairs", "processor seconds", "5,000 samples of each input"),
    "draws": ("labelled draws", "processor seconds", "one pair, Laplace noise on its claim"),
    "dimensions": ("dimensions", "processor seconds", "one pair, 5,000 samples of each input"),
    "processes": ("processes", "seconds by the clock", "drawing, 10 microseconds a draw"),
}


def write_speed(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write `speed.md`, and `speed.svg` and `speed.png` where there are curves; no file where nothing was measured."""
    written = []
    if any("lines" in record for record in content["extras"].values()):
        path = folder / "speed.md"
        write_whole(path, table(content) + "\n", SHARED)
        written.append(path)
    curves = content["extras"].get("curves", {}).get("curves")
    return written + (_write_figure(curves, folder) if curves else [])


def table(content: Mapping[str, Any]) -> str:
    """All lines that were measured, and what the measurements without lines say."""
    extras = content["extras"]
    lines = [line for record in extras.values() for line in record.get("lines", ())]
    words = {True: "yes", False: "no", None: ""}
    rows = [f"| {line['what']} | {line['value']} | {line['asked']} | {words[line['met']]} |" for line in lines]
    spoken = [f"*{name}*: {extras[name]['says']}." for name in SPOKEN if "says" in extras.get(name, {})]
    return "\n".join([*HEAD, *rows, *(text for one in spoken for text in ("", one))])


def into_page(content: Mapping[str, Any], page: Path) -> Path:
    """Put the table between the marks of a page.

    `UsageError` if the page cannot be read, or has not these marks, each once and in order.
    """
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"page must be a readable page, got {str(page)!r}.") from error
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise UsageError(f"page must have the marks {BEGIN!r} and {END!r}, each once, got {str(page)!r}.")
    write_whole(page, f"{before}{BEGIN}\n\n{table(content)}\n\n{END}{after}", SHARED)
    return page


def _write_figure(curves: Mapping[str, Any], folder: Path) -> list[Path]:
    """One panel a curve, both axes logarithmic, with the line on which what is measured grows in proportion."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    for axis, (name, (across, up, title)) in zip(figure.subplots(2, 2).flat, LABELS.items(), strict=True):
        sizes, seconds = zip(*curves[name], strict=True)
        falls = name == "processes"
        anchor, power = (0, -1.0) if falls else (-1, 1.0)
        in_proportion = [seconds[anchor] * (size / sizes[anchor]) ** power for size in sizes]
        axis.loglog(sizes, seconds, "o-", color=POINT, label="measured")
        axis.loglog(sizes, in_proportion, "--", color=FAR, label="in proportion")
        axis.set_xlabel(across)
        axis.set_ylabel(up)
        axis.set_title(title, fontsize="medium")
        if falls:  # few sizes, close together: every one is a tick
            axis.set_xticks(list(sizes), [str(size) for size in sizes], minor=False)
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.yaxis.set_major_formatter(ScalarFormatter())
            axis.yaxis.set_minor_formatter(NullFormatter())
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize="small")
    return save(figure, folder, "speed", 80)
