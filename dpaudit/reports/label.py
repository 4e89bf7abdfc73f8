"""A one-page privacy label: nine categories, each declared, measured or not stated, as a page or as one drawing.

The idea of such a label is that of arXiv:2507.15997. Its full text was not at hand: the nine categories here are ours,
of what its summary names: what is promised, who and what it protects, against whom, how it is reached and spent, and
what was seen in tests. Measured figures stand with their limits; what nobody said is said to be not stated.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Literal

from markupsafe import Markup

from dpaudit.environment import __version__
from dpaudit.reports.answers import alarm_text
from dpaudit.reports.deployment import Deployment
from dpaudit.reports.dossier import Dossier, Line
from dpaudit.reports.drawing import Drawing, tag
from dpaudit.reports.first_page import headline, mark, title
from dpaudit.reports.html import environment
from dpaudit.reports.items import Item, items
from dpaudit.reports.rows import ranked
from dpaudit.reports.wording import clean, date_text
from dpaudit.reports.words import TEMPLATES, said

SOURCE = "The label follows the idea of arXiv:2507.15997; the categories are worded by dpaudit."
NOT_STATED = "Not stated."
SHOWN = 3  # promises that a category names
MAX_CHARACTERS = 420  # characters of a text
WIDTH, LINE = 640.0, 17.0  # of the drawing
Kind = Literal["measured", "declared", "not stated"]


def categories(dossier: Dossier) -> tuple[tuple[str, Kind, str], ...]:
    """The nine categories, each with how it is known and its text."""
    declared = dossier.deployment if dossier.deployment is not None else Deployment("")
    found = {item.key: item for item in items(dossier)}
    lines = [line for line in ranked(dossier) if line.kind == "privacy"]
    promised = list(dict.fromkeys("; ".join(line.promised.split("\n")) for line in lines))
    budget = declared.budget
    spent = f"{budget.parameter}: {budget} spent over all releases." if budget is not None else ""
    return (
        _declared("Purpose and data", declared.purpose, declared.data_source, declared.retention),
        ("Promise (privacy loss)", "declared" if promised else "not stated", _some(promised) or NOT_STATED),
        _declared("Who is protected (unit of privacy)", found["unit"].declared),
        _declared("Whom you have to trust", found["trust"].declared, declared.registry.get("model", "")),
        _declared("How it is reached (mechanism)", *(clean(name, 60) for name in dossier.subjects[:SHOWN])),
        _declared("What one person can contribute", found["contribution"].declared),
        _declared("Budget over releases", spent, found["other_releases"].declared),
        ("Measured privacy", "measured" if lines else "not stated", _measured(dossier, lines)),
        _utility(dossier, found["utility"]),
    )


def _declared(name: str, *texts: str) -> tuple[str, Kind, str]:
    stated = [text.strip() for text in texts if text.strip()]
    return (name, "declared", clean(_joined(stated), MAX_CHARACTERS)) if stated else (name, "not stated", NOT_STATED)


def _joined(texts: Sequence[str]) -> str:
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in texts)


def _some(texts: Sequence[str]) -> str:
    more = f" And {len(texts) - SHOWN:,} more." if len(texts) > SHOWN else ""
    return clean(_joined(texts[:SHOWN]), MAX_CHARACTERS) + more if texts else ""


def _measured(dossier: Dossier, lines: Sequence[Line]) -> str:
    """Say what tests found, how sure they are, and what they cannot tell."""
    if not lines:
        return "No audit was run."
    texts = [f"{line.words}: {line.subject}, {line.measured}" for line in lines]
    return f"{_some(texts)} {said('label.limits', probability=alarm_text(dossier))}"


def _utility(dossier: Dossier, item: Item) -> tuple[str, Kind, str]:
    lines = [line for line in ranked(dossier) if line.kind == "errors"]
    texts = [f"{line.words}: {line.subject}, {line.promised}; {line.measured}" for line in lines]
    return ("Measured accuracy", "measured", _some(texts)) if lines else _declared("Measured accuracy", item.declared)


def head(dossier: Dossier) -> str:
    """The verdict with its mark, which stands at the top of a label."""
    return f"{ranked(dossier)[0].symbol} {headline(dossier)}"


def _foot() -> str:
    return f"Written {date_text()} by dpaudit {__version__}. {SOURCE} Declared means said by the owner, not checked."


def render_page(dossier: Dossier) -> str:
    """The label as one self-contained page."""
    facts = {"title": title(dossier), "verdict": mark(dossier), "head": head(dossier), "version": __version__}
    page = environment().get_template("label.html.j2")
    return page.render(**facts, categories=categories(dossier), foot=_foot())


def render_drawing(dossier: Dossier) -> str:
    """The label as one SVG file with its own colours, for a page or a README."""
    body: list[Markup] = []
    y = 40.0
    body.append(tag("text", f"Privacy label: {clean(title(dossier), 60)}", x=18.0, y=y, cls="title"))
    for line in textwrap.wrap(head(dossier), 60, break_long_words=True):
        y += 21.0
        body.append(tag("text", line, x=18.0, y=y, cls=f"verdict {mark(dossier)}"))
    y += 14.0
    for name, kind, text in categories(dossier):
        body.append(tag("line", x1=18.0, x2=WIDTH - 18.0, y1=y, y2=y, cls="rule"))
        y += 20.0
        body.append(tag("text", name, x=18.0, y=y, cls="name"))
        body.append(tag("text", kind, x=WIDTH - 18.0, y=y, text_anchor="end", cls=f"kind {kind.split()[0]}"))
        for line in textwrap.wrap(text, 88, break_long_words=True):
            y += LINE
            body.append(tag("text", line, x=18.0, y=y, cls="text"))
        y += 12.0
    body.append(tag("line", x1=18.0, x2=WIDTH - 18.0, y1=y, y2=y, cls="rule"))
    for line in textwrap.wrap(_foot(), 104):
        y += 15.0
        body.append(tag("text", line, x=18.0, y=y, cls="foot"))
    height = y + 18.0
    frame = tag("rect", x=1.0, y=1.0, width=WIDTH - 2.0, height=height - 2.0, cls="frame")
    drawn = Drawing((frame, *body), WIDTH, height, f"Privacy label: {title(dossier)}")
    return drawn.file((TEMPLATES / "label.css").read_text("utf-8")) + "\n"
