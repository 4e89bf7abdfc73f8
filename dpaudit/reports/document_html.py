"""A document as one self-contained HTML page: no network; it prints, and reads on a phone.

Everything is escaped by the template, and a content security policy forbids everything but the page's own styles and
the one script of `dpaudit.reports.html`, without which nothing is missing.
"""

from __future__ import annotations

from jinja2 import Environment
from markupsafe import Markup

from dpaudit.environment import __version__
from dpaudit.reports import figures
from dpaudit.reports.document import Block, Document, Table
from dpaudit.reports.glossary import Linker, slug
from dpaudit.reports.html import environment

STATUSES = ("tested", "tested in part", "declared", "not assessed", "not applicable")
WORDY = 24  # characters of a cell from which a table is read as text


def render(document: Document) -> str:
    """The page, ready to be written as UTF-8."""
    page = pages().get_template("document.html.j2")
    return page.render(document=document, linked=Linker(), version=__version__, style=style())


def pages() -> Environment:
    """The templates, with what those of documents need."""
    found = environment()
    found.filters.update(
        kind=_kind, words=_words, is_status=_is_status, is_wordy=_is_wordy, is_items=_is_items, slug=slug
    )
    return found


def style() -> Markup:
    """The styles of every page."""
    palettes = {"palette": Markup(figures.palette_css(dark=False)), "dark_palette": Markup(figures.palette_css(True))}
    return Markup(environment().get_template("style.css.j2").render(palettes))


def _kind(block: Block) -> str:
    return type(block).__name__


def _words(mark: str) -> str:
    return {"xfail": "known failure", "skipped": "not applicable"}.get(mark, mark.replace("_", " "))


def _is_status(mark: str) -> bool:
    return mark in STATUSES


def _is_items(table: Table) -> bool:
    return table.kind == "table" and bool(table.marks) and all(mark in STATUSES for mark in table.marks)


def _is_wordy(table: Table) -> bool:
    return any(len(cell) > WORDY for row in table.rows for cell in row[1:])
