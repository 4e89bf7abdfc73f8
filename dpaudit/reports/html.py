"""A document as one self-contained HTML page: no network; it prints, and reads on a phone.

Everything is escaped by the template, and a content security policy forbids everything but the page's own styles and
its one script, which shows values on hover and focus and sorts tables. Without the script nothing is missing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from typing import get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from dpaudit.environment import __version__
from dpaudit.reports import figures
from dpaudit.reports.document import Document, Table
from dpaudit.reports.drawing import Figure
from dpaudit.reports.items import Status
from dpaudit.reports.wording import status_word
from dpaudit.reports.words import TEMPLATES, words

STATUSES = get_args(Status)
WORDY = 24  # characters of a cell from which a table is read as text
MAX_ROWS = 1000  # of a table, so that a page stays below two megabytes at 400 pairs
PRINTED_ROWS = 30  # of a table on paper, some two thirds of a sheet
TERMS: Mapping[str, Mapping[str, str]] = words("terms")  # `forms`, linked at their first use, and `text`


def render(document: Document) -> str:
    """The page, ready to be written as UTF-8."""
    page = environment().get_template("document.html.j2")
    blocks = [*document.first, *(block for section in document.sections for block in section.blocks)]
    has_images = any(isinstance(block, Figure) and block.is_image for block in blocks)
    shown = {"document": document, "linked": Linker(), "has_images": has_images}
    return page.render(**shown, version=__version__, style=style())


@cache
def script() -> Markup:
    """The one script of our pages, inline: values of marks on hover and focus, and tables that sort; no network."""
    return Markup((TEMPLATES / "interact.js").read_text(encoding="utf-8"))


@cache
def script_source() -> str:
    """Say what the policy of a page allows to run: this script, by its digest, and nothing else."""
    digest = hashlib.sha256(script().encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


@cache
def environment() -> Environment:
    """The templates of the pages; whatever is put into one is escaped."""
    loader = FileSystemLoader(TEMPLATES)
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.filters.update(breakable=breakable, words=status_word, is_status=STATUSES.__contains__, slug=slug)
    found.filters.update(look=_look_of, kind=lambda block: type(block).__name__)
    found.globals.update(script=script, script_source=script_source, printed_rows=PRINTED_ROWS, most_rows=MAX_ROWS)
    return found


JOINTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[|_,])")  # where a name may break


def breakable(text: str) -> Markup:
    """A name, escaped, that may break behind a bar, a comma or an underscore, and before a word in CamelCase."""
    parts = JOINTS.sub("\x00", text.replace("\x00", ""))
    return Markup(str(escape(parts)).replace("\x00", "<wbr>"))


@cache
def style() -> Markup:
    """The styles of every page."""
    palettes = {"palette": Markup(figures.palette_css(dark=False)), "dark_palette": Markup(figures.palette_css(True))}
    return Markup(environment().get_template("style.css.j2").render(palettes))


def _look_of(table: Table) -> str:
    """The class of a table: of items, of texts, or of numbers."""
    if table.kind == "table" and table.marks and all(mark in STATUSES for mark in table.marks):
        return "scope"
    cells = [cell for row in table.rows for cell in row[1:]]
    has_number = any(character.isdigit() for cell in cells for character in cell[:2])  # 0.5, -1, ≥1
    return "texts" if any(len(cell) > WORDY for cell in cells) or not has_number else "numbers"


def slug(term: str) -> str:
    """The anchor of a term."""
    return {"ε": "epsilon", "δ": "delta"}.get(term, term.replace(" ", "-"))


class Linker:
    """Links each term at its first use in one page. Texts are escaped here."""

    def __init__(self) -> None:
        self._open = dict(TERMS)

    def __call__(self, text: str) -> Markup:
        """The text, escaped, in which terms that were not linked before link to their explanations."""
        found = {}
        for term, about in self._open.items():
            match = re.search(rf"(?<![\w-])(?:{about['forms']})(?![\w-])", text, re.IGNORECASE)
            if match is not None:
                found[match.span()] = term
        parts, place = [], 0
        for (start, end), term in sorted(found.items()):
            if start < place:  # within another term: "loss" in "privacy loss"
                continue
            link = Markup('<a class="term" href="#term-{}">{}</a>').format(slug(term), text[start:end])
            parts += [escape(text[place:start]), link]
            place = end
            del self._open[term]
        return Markup("").join([*parts, escape(text[place:])])
