"""Ten words that a report cannot do without, explained for a reader who is no expert."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

# Term, the forms of it that are linked at their first use, and its explanation.
TERMS: Mapping[str, tuple[str, str]] = {
    "mechanism": (
        r"mechanisms?",
        "The program under test. It reads data about people and publishes an answer to which it adds random noise.",
    ),
    "promise": (
        r"promises?|promised",
        "What the owner of the mechanism claims: a limit on how much one answer may reveal about one person. It is "
        "also called the claim, and its limit the budget.",
    ),
    "pair": (
        r"pairs? of inputs|pairs?|two inputs",
        "Two data sets that differ in what the promise protects, such as the data of one person. The test asks how "
        "well an answer tells which of the two was used.",
    ),
    "ε": (
        r"ε|epsilon|privacy loss|loss",
        "The loss of privacy, a number. At ε = 0 an answer tells nothing about which of the two inputs was used. At "
        "ε = 1 it can make one of them up to 2.7 times as likely as the other, at ε = 3 up to 20 times, at ε = 10 up "
        "to 22,000 times.",
    ),
    "δ": (
        r"δ|delta",
        "A small probability with which the limit on ε need not hold. A promise without a δ has δ = 0.",
    ),
    "nat": (
        r"nats?",
        "The unit of ε: one nat multiplies the odds by 2.718. Two losses of one person add up, in nats.",
    ),
    "bound": (
        r"at least|bounds?|proven",
        "A number with one side. “At least 1.2” means that the test proved a loss of 1.2; the true loss can be larger. "
        "A test can prove that a promise is broken. It can never prove that one is kept.",
    ),
    "audit": (
        r"audits?|audited",
        "A test that runs the mechanism many times on both inputs of a pair and tries to tell from the answers which "
        "of them was used. Doing so better than the promise allows proves that the promise is broken.",
    ),
    "confidence": (
        r"confidence",
        "How rarely the method errs. At 99.9% confidence, at most one in a thousand such reports on sound mechanisms "
        "would contain a false alarm.",
    ),
    "false alarm": (
        r"false alarms?",
        "A broken promise that is reported although the promise is kept: an error of the test, by chance.",
    ),
}


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
        for term, (forms, _) in self._open.items():
            match = re.search(rf"(?<![\w-])(?:{forms})(?![\w-])", text, re.IGNORECASE)
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
