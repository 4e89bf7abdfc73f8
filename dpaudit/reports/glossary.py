"""Ten words that a report cannot do without, explained for a reader who is no expert."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

from dpaudit.reports.words import words

TERMS: Mapping[str, Mapping[str, str]] = words("terms")  # `forms`, linked at their first use, and `text`


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
