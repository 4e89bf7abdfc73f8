"""A document as Markdown, for a pull request or the summary page of a CI job: always below 900 kB.

A job summary above 1 MB is dropped whole, so tables are short, data of figures are folded, and what would not fit is
counted instead of shown. Names are escaped, so that they start no markup, no mention and no link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dpaudit.reports.document import Block, CodeBlock, Document, Facts, Paragraph, Section, SignOffBlock, Table
from dpaudit.reports.drawing import Figure
from dpaudit.reports.wording import clean

LIMIT = 900_000  # bytes
MAX_ROWS = 40  # rows of a table
FIGURE_ROWS = 12
FOLDED = "<details><summary>{}</summary>\n\n{}\n\n</details>"


def render(document: Document) -> str:
    """The text, with a line end."""
    parts = [f"# {escaped(document.headline)}", escaped(document.kicker)]
    for block in document.first:
        parts += _block(block, 2)
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
    assert len(content.encode()) < LIMIT  # page one is short, and sections are added as long as they fit
    return content


def _section(section: Section) -> list[str]:
    mark = f" ({section.mark.replace('_', ' ')})" if section.mark else ""
    parts = [f"{'#' * section.level} {escaped(section.title)}{mark}"]
    for block in section.blocks:
        written = _block(block, section.level + 1)
        parts += written[1:] if written[:1] == [f"**{escaped(section.title)}**"] else written  # a heading says it
    return parts


def _block(block: Block, level: int) -> list[str]:
    if isinstance(block, Paragraph):
        return [f"**{escaped(block.text)}**" if block.kind == "lead" else escaped(block.text)]
    if isinstance(block, Facts):
        lines = ((escaped(name), " · ".join(map(escaped, text.split("\n")))) for name, text in block.rows)
        return ["\n".join(f"- **{name}**: {text}" for name, text in lines)]
    if isinstance(block, SignOffBlock):
        chosen = []
        for name, decision, conditions in block.chosen:
            chosen.append(f"- {escaped(name)}{': ' if conditions else ''}{escaped(conditions)}")
            chosen += [f"  - [{'x' if one == decision else ' '}] {one}" for one in block.decisions]
        fields = [f"- **{escaped(name)}**: {escaped(text) or '…'}" for name, text in block.rows]
        note = [escaped(block.note)] if block.note else []
        return [f"{'#' * level} {escaped(block.title)}", "\n".join([*chosen, *fields]), *note]
    if isinstance(block, CodeBlock):
        return [code(line) for line in block.text.splitlines()]
    if isinstance(block, Table):
        rows = _rows(block, MAX_ROWS)
        title = escaped(block.title)
        return [FOLDED.format(title, "\n\n".join(rows))] if block.is_closed else [f"**{title}**", *rows]
    assert isinstance(block, Figure)
    folded = FOLDED.format("Data of this figure", "\n\n".join(_rows(block.data, FIGURE_ROWS)))
    return [f"{'#' * level} {escaped(block.title)}", escaped(block.description), *[folded] * bool(block.data.rows)]


def _rows(block: Table, most: int) -> list[str]:
    if not block.rows:
        return ["None."]
    first = block.first(most)
    cells = [[escaped(cell).replace("\n", "<br>") for cell in row] for row in first.rows]
    shown = table([escaped(column) for column in block.columns], cells)
    return [shown, f"{first.omitted:,} more rows are in the saved results."] if first.omitted else [shown]


def text(value: Any, width: int = 80) -> str:
    """One line of at most `width` characters that stands for itself in Markdown, also inside a table."""
    return escaped(clean(value, width))


def escaped(line: str) -> str:
    """One line with everything escaped that Markdown, GitHub's or not, could read as more than text."""
    line = re.sub(r"([\\`*_{}\[\]<>()#+!|~@$&])", r"\\\1", line)
    line = re.sub(r"^(\s*\d*)([-.=])(?=[-=\s]|$)", r"\1\\\2", line)  # no list, no rule, no heading at the start
    return re.sub(r"(?i)(https?|ftp|mailto|xmpp)(:)|(www)(\.)", lambda m: f"{m[1] or m[3]}\\{m[2] or m[4]}", line)


def code(line: str) -> str:
    """One line as code, fenced by more backticks than it holds."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", line)), default=0))
    return f"{fence}\n{line}\n{fence}"


def table(columns: list[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are escaped already."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
