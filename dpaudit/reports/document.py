"""A report as a document: headings, paragraphs, facts, tables, figures and code, whatever the format that shows it.

Texts are cleaned (`wording.clean`) where they come from a subject; escaping is each format's own. A renderer shows
every kind of block: `document_html`, `document_markdown` and `pdf`.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from dpaudit.reports.figures import Figure
from dpaudit.results import Verdict


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """Running text; `kind` "note" is set smaller, "lead" larger."""

    text: str
    kind: Literal["text", "note", "lead"] = "text"


@dataclasses.dataclass(frozen=True)
class Facts:
    """Names with their texts."""

    rows: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table, whose cells may have several lines.

    `omitted` counts rows that were left out, `marks` are verdicts or statuses that colour each row.
    `is_closed`: shown on demand where the format can do that.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    omitted: int = 0
    marks: tuple[str, ...] = ()
    is_closed: bool = False


@dataclasses.dataclass(frozen=True)
class Code:
    """Commands, one a line."""

    text: str


Block = Paragraph | Facts | Table | Figure | Code


@dataclasses.dataclass(frozen=True)
class Section:
    """A heading with its blocks; `level` 2 or 3; ids are unique in a document. `mark` is a verdict for the heading."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    level: int = 2
    mark: str = ""


@dataclasses.dataclass(frozen=True)
class Document:
    """A whole report.

    Attributes
    ----------
    kicker, headline : str
        The line above the headline, and the headline.
    verdict : Verdict
    summary : tuple of (str, tuple of str)
        Questions of somebody who is no expert, with the paragraphs of their answers, for the first page.
    sections : tuple of Section
    footer : str
    """

    kicker: str
    headline: str
    verdict: Verdict
    summary: tuple[tuple[str, tuple[str, ...]], ...]
    sections: tuple[Section, ...]
    footer: str
