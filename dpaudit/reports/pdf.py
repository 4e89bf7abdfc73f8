"""A document as PDF, by typst (extra `pdf`): text that can be selected, vector figures, DejaVu from matplotlib.

`templates/report.typ` lays the pages out. Nothing in them can act: no script, no form, no link. A character that the
font lacks is shown as its escape.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.reports.document import Block, Document, Section, SignOffBlock, Table
from dpaudit.reports.drawing import WIDE, Drawing, Figure
from dpaudit.reports.formats import NO_TYPST
from dpaudit.reports.html import style
from dpaudit.reports.words import TEMPLATES

MAX_PAGES = 8  # a longer report leaves out more, down to its shortest form
# Rows of a table: in full, and where that takes too many sheets; with the last but one details are left out, with the
# last the figures of chapters too. Page one and the items have fewer rows: none of these is cut. With 30 in the place
# of 20 the PDF of 105 pairs had no room for its evidence beside the glossary.
ROW_LIMITS = (120, 20, 16, 15)
DETAILS = ("curves", "evidence", "pairs", "found", "worst", "laws", "method", "severity")
EXPLAINED = ("glossary",)  # left out before any evidence is
GRAVE = ("violated", "error")  # marks of details that are never left out
CELL = 6_000  # characters of a cell, which may go on on the next page
NESTED = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")  # rules for the dark, for phones and for paper


def render(document: Document) -> bytes:
    """The file; the same bytes for the same document.

    `UsageError` if typst is not installed.
    """
    try:
        import typst
    except ImportError as error:
        raise UsageError(NO_TYPST) from error
    content = b""
    for most in ROW_LIMITS:
        given = {"report": json.dumps(_report(document, most))}
        page: Any = typst.Compiler(
            str(TEMPLATES / "report.typ"), font_paths=[str(_fonts())], ignore_system_fonts=True, sys_inputs=given
        )
        content = bytes(page.compile(format="pdf"))
        if int(page.query("<pages>", field="value", one=True)) <= MAX_PAGES:
            break
    return content


def _report(document: Document, most: int) -> dict[str, Any]:
    """The document as the template reads it, with so many rows of a table."""
    is_short = most <= ROW_LIMITS[-2]
    unsaid = (*EXPLAINED, *DETAILS) if is_short else EXPLAINED if most < ROW_LIMITS[0] else ()
    told = [one for one in document.sections if one.mark in GRAVE or not one.id.endswith(unsaid)]
    sections = [_shortened(one, most) for one in told]
    kept = [one for one in sections if one.blocks or one.level == 2]  # a chapter's part may have had a figure alone
    first = sorted(document.first[1:], key=lambda block: not isinstance(block, SignOffBlock))  # it must come early
    return {
        **_plain(dataclasses.replace(document, first=(*document.first[:1], *first), sections=tuple(kept))),
        "left_out": len(document.sections) - len(kept),
        "breaks": not is_short,
        "colours": _style()[1],
    }


def _shortened(section: Section, most: int) -> Section:
    """A section whose tables have so many rows, and of whose figures those stay that there is room for."""

    def kept() -> Iterator[Block]:
        for block in section.blocks:
            if isinstance(block, Table):
                yield block.first(most)
            elif not isinstance(block, Figure) or most > ROW_LIMITS[-1 if block.id.endswith("evidence") else -2]:
                yield block

    return dataclasses.replace(section, blocks=tuple(kept()))


def _plain(value: Any) -> Any:
    """A part of a document as values of JSON: drawings as SVG, texts of which the font has each character."""
    if isinstance(value, Figure):
        drawn = {"drawing": value.draw(WIDE), "scale": value.scale or "", "legend": value.legend}
        texts = {"title": value.title, "description": value.description, "note": value.note}
        return {"kind": "Figure", **{name: _plain(one) for name, one in {**drawn, **texts}.items()}}
    if isinstance(value, Drawing):
        return value.file(f"{_style()[0]} text{{font-family:'DejaVu Sans'}}")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        kinds = {"style": fields.get("kind", ""), "kind": type(value).__name__, "title": getattr(value, "title", "")}
        return {**fields, **kinds}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, str):
        shown = value[:CELL] + "…" * (len(value) > CELL)
        return "".join(
            char if ord(char) in _glyphs() or char == "\n" else char.encode("unicode_escape").decode() for char in shown
        )
    return value


def _fonts() -> Path:
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf"


@functools.cache
def _glyphs() -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(str(_fonts() / "DejaVuSans.ttf")).get_charmap())


@functools.cache
def _style() -> tuple[str, Mapping[str, str]]:
    """The style sheet of our pages as it is on paper, and its colours by their names."""
    css = NESTED.sub("", style())
    values = dict(re.findall(r"--([\w-]+):([^;}]+)", css))
    return re.sub(r"var\(--(.*?)\)", lambda name: values[name[1]], css), values
