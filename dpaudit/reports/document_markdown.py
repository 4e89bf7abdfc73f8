"""A document as Markdown: every figure as its description with the head of its data; always below 900 kB.

A job summary above 1 MB is dropped whole, so tables are short, and what would not fit is counted instead of shown.
"""

from __future__ import annotations

from dpaudit.reports.document import Block, Code, Document, Facts, Paragraph, Section, SignOffBlock, Table
from dpaudit.reports.figures import Figure
from dpaudit.reports.markdown import LIMIT, code, escaped, table

ROWS = 60  # of a table
FIGURE_ROWS = 12


def render(document: Document) -> str:
    """The text, with a line end."""
    parts = [f"# {escaped(document.headline)}", escaped(document.kicker)]
    for block in document.first:
        parts += _block(block, 2)
    for question, answer in document.summary:
        parts += [f"## {escaped(question)}", *(escaped(text) for text in answer)]
    size = sum(len(part.encode()) + 2 for part in parts)
    left_out = 0
    for section in document.sections:
        written = _section(section)
        cost = sum(len(part.encode()) + 2 for part in written)
        if size + cost > LIMIT - 10_000:
            left_out += 1
            continue
        parts += written
        size += cost
    if left_out:
        parts.append(f"{left_out:,} more sections are in the other formats of this report: they did not fit.")
    content = "\n\n".join([*parts, escaped(document.footer)]) + "\n"
    assert len(content.encode()) < LIMIT  # the summary is short, and sections are added as long as they fit
    return content


def _section(section: Section) -> list[str]:
    mark = f" ({section.mark.replace('_', ' ')})" if section.mark else ""
    parts = [f"{'#' * section.level} {escaped(section.title)}{mark}"]
    for block in section.blocks:
        parts += _block(block, section.level + 1)
    return parts


def _block(block: Block, level: int) -> list[str]:
    if isinstance(block, Paragraph):
        return [f"**{escaped(block.text)}**" if block.kind == "lead" else escaped(block.text)]
    if isinstance(block, Facts):
        return ["\n".join(f"- **{escaped(name)}**: {escaped(text)}" for name, text in block.rows)]
    if isinstance(block, SignOffBlock):
        chosen = []
        for name, decision, conditions in block.chosen:
            chosen.append(f"- {escaped(name)}{': ' if conditions else ''}{escaped(conditions)}")
            chosen += [f"  - [{'x' if one == decision else ' '}] {one}" for one in block.decisions]
        fields = [f"- **{escaped(name)}**: {escaped(text) or '…'}" for name, text in block.rows]
        note = [escaped(block.note)] if block.note else []
        return [f"{'#' * level} {escaped(block.title)}", "\n".join([*chosen, *fields]), *note]
    if isinstance(block, Code):
        return [code(line) for line in block.text.splitlines()]
    if isinstance(block, Table):
        return [f"**{escaped(block.title)}**", *_rows(block.columns, block.rows, block.omitted, ROWS)]
    assert isinstance(block, Figure)
    data = block.data
    heading = f"{'#' * level} {escaped(block.title)}"
    return [heading, escaped(block.description), *_rows(data.columns, data.rows, data.omitted, FIGURE_ROWS)]


def _rows(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...], omitted: int, most: int) -> list[str]:
    if not rows:
        return ["None."]
    cells = [[escaped(cell).replace("\n", "<br>") for cell in row] for row in rows[:most]]
    shown = table([escaped(column) for column in columns], cells)
    rest = len(rows) - len(rows[:most]) + omitted
    return [shown, f"{rest:,} more rows are in the saved results."] if rest else [shown]
