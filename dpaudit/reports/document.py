"""A report as a document: headings, paragraphs, facts, tables, figures and code, whatever the format that shows it.

Texts are cleaned (`wording.clean`) where they come from a subject; escaping is each format's own. A renderer shows
every kind of block: `html`, `markdown`, `pdf`, `terminal`.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from dpaudit.reports.drawing import Figure
from dpaudit.reports.drawing import Table as Table
from dpaudit.results.model import Verdict


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """Running text; `kind` "note" is set smaller, "lead" larger, "words" explains the words of a table below it.

    `mark` is a verdict or a status that colours it.
    """

    text: str
    kind: Literal["text", "note", "lead", "words"] = "text"
    mark: str = ""


@dataclasses.dataclass(frozen=True)
class Facts:
    """Names with their texts; `kind` "statements" are those of page one, "terms" those of the glossary."""

    rows: tuple[tuple[str, str], ...]
    kind: Literal["facts", "statements", "terms"] = "facts"


@dataclasses.dataclass(frozen=True)
class SignOffBlock:
    """Decisions and who makes them: fields, empty to be filled by hand, and the decisions there are to choose from.

    `chosen` has a row for each mechanism: its name, what was decided and under which conditions, or empty texts.
    """

    rows: tuple[tuple[str, str], ...]
    decisions: tuple[str, ...]
    chosen: tuple[tuple[str, str, str], ...]
    note: str

    @property
    def title(self) -> str:
        """The heading of the block."""
        return "Decision" if len(self.chosen) == 1 else "Decisions, one a mechanism"


@dataclasses.dataclass(frozen=True)
class CodeBlock:
    """Commands, one a line; `title` is what they do, in a word."""

    text: str
    title: str = ""


Block = Paragraph | Facts | Table | Figure | CodeBlock | SignOffBlock


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
    """A whole report: the headline with the line above it (`kicker`), page one (`first`), then sections.

    `verdict` is that whose colour the headline has: of a promise that low bits break never "not_refuted".
    """

    kicker: str
    headline: str
    verdict: Verdict
    sections: tuple[Section, ...]
    footer: str
    first: tuple[Block, ...] = ()
