"""Command `dpaudit reproduce`: find reproductions, run them, print their tables, write a plot and a JSON file.

The file is `NAME.json`, schema `dpaudit.reproduction/1`: strict JSON, infinities as the strings "inf" and "-inf". The
plot is `NAME.png`. Both are written complete or not at all.
"""

from __future__ import annotations

import dataclasses
import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group

from dpaudit.arguments import check_options, did_you_mean
from dpaudit.environment import environment
from dpaudit.errors import UsageError
from dpaudit.extensions import names as extension_names
from dpaudit.reports import terminal
from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reproductions.reproduction import (
    GROUP,
    Cell,
    HasRun,
    Options,
    Outcome,
    Statement,
    load_reproduction,
)
from dpaudit.results.codec import to_json
from dpaudit.results.saving import SHARED, check_folder, json_text, write_whole

SCHEMA = "dpaudit.reproduction/1"
DIGITS = 4  # of numbers in a printed table
DOTS_PER_INCH = 110


def listing() -> Group:
    """All reproductions, one a line, as `dpaudit reproduce` without a name prints them."""
    found = [(name, load_reproduction(name)) for name in extension_names(GROUP)]
    if not found:
        return terminal.show([Paragraph(f"No reproductions are installed (entry-point group {GROUP}).")])
    rows = tuple((name, one.description, str(getattr(one, "source", ""))) for name, one in found)
    return terminal.show([Table("", ("reproduction", "what it reproduces", "source"), rows)])


def chosen(names: Sequence[str]) -> dict[str, HasRun]:
    """The reproductions of these names; a `UsageError` names one that is not installed."""
    known = extension_names(GROUP)
    for name in names:
        if name not in known:
            listed, hint = ", ".join(known) or "none installed", did_you_mean(name, known)
            raise UsageError(f"name must be a reproduction ({listed}), got {name!r}.{hint}")
    return {name: load_reproduction(name) for name in dict.fromkeys(names)}


def reproduce(
    name: str, reproduction: HasRun, *, seed: int, quick: bool, out: str, tell: Callable[[str], None], data: str = ""
) -> tuple[Group, list[Path]]:
    """Run one reproduction, write its files, and return what to print and the files.

    Raises
    ------
    UsageError
        If the seed is negative, the folder cannot be written, or a file is given to an experiment that reads none.
    """
    check_options(seed=seed)
    if data and not getattr(reproduction, "data", ""):
        raise UsageError(f"data must be left out for {name}, which reads no file, got {data!r}.")
    folder = Path(out)
    check_folder("out", folder)
    tell(f"Reproducing {name}: {reproduction.description}, seed {seed}")
    start = time.perf_counter()
    outcome = reproduction.run(Options(seed=seed, quick=quick, tell=tell, data=data))
    seconds = time.perf_counter() - start
    content = saved_form(name, reproduction, outcome, seed=seed, quick=quick, seconds=seconds)
    written = [folder / f"{name}.json", folder / f"{name}.png"]
    write_whole(written[0], json_text(content), SHARED)
    write_whole(written[1], picture(outcome), SHARED)
    return shown(name, reproduction, outcome, seconds, quick), written


def saved_form(
    name: str, reproduction: HasRun, outcome: Outcome, *, seed: int, quick: bool, seconds: float
) -> dict[str, Any]:
    """The content of the JSON file."""
    content = {
        "schema": SCHEMA,
        "name": name,
        "description": reproduction.description,
        "source": str(getattr(reproduction, "source", "")),
        "seed": seed,
        "quick": quick,
        "seconds": seconds,
        "environment": {name: environment()[name] for name in ("dpaudit", "python", "numpy", "scipy")},
        "statements": [dataclasses.asdict(statement) for statement in outcome.statements],
        "tables": [dataclasses.asdict(table) for table in outcome.tables],
        "numbers": dict(outcome.numbers),
    }
    strict: dict[str, Any] = to_json(content)
    return strict


def picture(outcome: Outcome) -> bytes:
    """The plot as a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=outcome.size, layout="constrained")
    outcome.draw(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    return buffer.getvalue()


def shown(name: str, reproduction: HasRun, outcome: Outcome, seconds: float, quick: bool) -> Group:
    """The tables and the printed statements beside ours."""
    source = str(getattr(reproduction, "source", ""))
    blocks: list[Block] = [Paragraph(f"{name}: {reproduction.description}" + (f" ({source})" if source else ""))]
    if quick:
        blocks.append(Paragraph("Quick: few repetitions. A smoke test, not a reproduction."))
    for table in outcome.tables:
        blocks += [Paragraph(table.title, "lead")]
        blocks += [Table("", table.columns, [[_cell(cell) for cell in row] for row in table.rows])]
        blocks += [Paragraph(table.note)] * bool(table.note)
    if outcome.statements:
        columns = tuple(field.name for field in dataclasses.fields(Statement))
        blocks += [Paragraph("Printed and ours", "lead")]
        blocks += [Table("", columns, tuple(map(dataclasses.astuple, outcome.statements)))]
    return terminal.show([*blocks, Paragraph(f"{seconds:.1f} s")])


def _cell(cell: Cell) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    return f"{cell:,}" if isinstance(cell, int | np.integer) else f"{cell:.{DIGITS}g}"
