"""Blocks of a document for a terminal, readable at 80 columns, and as the plain text of a test that fails.

Everything is a rich renderable built from plain text: names from the subject are cleaned and are never read as markup.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from dpaudit.reports.document import Block, CodeBlock, Document, Facts, Paragraph, SignOffBlock, Table
from dpaudit.reports.drawing import Figure

HEAD = 14  # characters of a line of the head of a column of numbers
WORD = 12  # characters of a word that is not broken in a table: "inconclusive"
NAME, WIDTH = 7, 75  # characters of a name of a fact at least, and of it with its text
NUMBER = re.compile(r"[<≥≤=p+-]?[ ]?\d[\d.,/]*(e-?\d+)?.{0,5}|[–∞]|any|none|not found|not promised|")
AS_IS: dict[str, Any] = {"expand_tabs": False, "replace_whitespace": False, "break_on_hyphens": False}
STYLES: Mapping[str, str] = {
    "violated": "bold red",
    "error": "bold magenta",
    "inconclusive": "yellow",
    "not_refuted": "blue",
    "found": "yellow",
    "xfail": "dim",
    "skipped": "dim",
}


def show(blocks: Iterable[Block]) -> Group:
    """The blocks below each other; to be printed with `crop=False`, so that commands stay whole."""
    return Group(*(_grid(block) if isinstance(block, Table) else _text(block) for block in blocks))


def whole(document: Document) -> Group:
    """A document with its sections; pictures are said in a sentence each."""
    parts: list[Block] = [Paragraph(f"{document.headline}.", "lead", document.verdict), Paragraph(document.kicker)]
    parts += document.first
    for section in document.sections:
        parts += [Paragraph(f"\n{section.title}", "lead", section.mark), *section.blocks]
    return show([*parts, Paragraph(f"\n{document.footer}", "note")])


def plain(blocks: Iterable[Block]) -> str:
    """The blocks without their tables, as text that no style and no width touches."""
    return "\n".join(_text(block).plain for block in blocks if not isinstance(block, Table))


def _text(block: Block) -> Text:
    """A block as a text; long lines of facts hang below their beginnings."""
    text = Text(overflow="fold")
    if isinstance(block, CodeBlock):  # whole, so that it can be copied
        text = Text(f"  {block.title:<{NAME}}  ", "dim", no_wrap=True, overflow="ignore", end="\n")
        return text.append(block.text, "bold not dim")
    if isinstance(block, Paragraph):
        style = {"note": "dim", "lead": "bold"}.get(block.kind, "")
        return text.append(block.text, STYLES.get(block.mark, style))
    if isinstance(block, Figure):
        return text.append(block.description, "dim")
    assert isinstance(block, Facts | SignOffBlock)
    width = max(NAME, *(len(name) for name, _ in block.rows))
    for place, (name, value) in enumerate(block.rows):
        text.append("\n" * (place > 0) + f"  {name:<{width}}  ", "dim").append(_hanging(value, WIDTH - width))
    return text.append("\n" * (isinstance(block, Facts) and block.kind == "statements"))


def _grid(block: Table) -> RenderableType:
    """A table whose first column gives way; columns of numbers stand to the right."""
    if not any(block.columns):  # words with texts
        grid = Grid.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, overflow="fold")
        for row, mark in zip(block.rows, block.marks or [""] * len(block.rows), strict=True):
            grid.add_row(Text(row[0], STYLES.get(mark, "")), Text(row[1], "dim" if mark == "skipped" else ""))
        return grid
    grid = Grid(box=box.SIMPLE_HEAD, expand=block.kind == "verdicts", padding=(0, 1, 0, 0), pad_edge=False)
    for place, name in enumerate(block.columns):
        cells = [row[place] for row in block.rows]
        is_number = place > 0 and all(NUMBER.fullmatch(cell) for cell in cells)
        gives_way = not place or max(map(len, cells), default=0) > 13
        is_short = "\n" in name or not is_number
        grid.add_column(
            name if is_short else textwrap.fill(name, HEAD),
            justify="right" if is_number else "left",
            overflow="fold",  # not cut: a number would read as another one
            ratio=1 if not place and block.kind == "verdicts" else None,
            max_width=16 if place and gives_way and block.kind == "verdicts" else None,
            min_width=min(WORD, max((len(word) for cell in cells for word in cell.split()), default=0)),
        )
    for place, row in enumerate(block.rows):
        mark = block.marks[place] if block.marks else ""
        word = mark.replace("_", " ")
        grid.add_row(*(Text(cell, STYLES.get(mark, "")) if mark and cell == word else Text(cell) for cell in row))
    if block.omitted:
        return Group(grid, Text(f" and {block.omitted:,} more {block.columns[0].split(chr(10))[0]}s", "dim"))
    return grid


def _hanging(value: str, width: int) -> str:
    """`value` broken into lines of at most `width` characters, all but the first indented under it."""
    indent = " " * (WIDTH - width + 4)
    lines = [line for paragraph in value.split("\n") for line in textwrap.wrap(paragraph, width, **AS_IS) or [""]]
    return f"\n{indent}".join(lines)
