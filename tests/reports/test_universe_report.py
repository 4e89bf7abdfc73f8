"""A universe in the reports: counts, images and worst pairs, all of the table and not of the findings alone."""

from __future__ import annotations

import base64
import dataclasses
import re

import numpy as np
import pytest
from rich.console import Console

from dpaudit import reports
from dpaudit.reports import brief, terminal, universe, wording
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.redaction import redacted
from dpaudit.results.model import AuditResult
from dpaudit.results.universe_table import NOT_ASKED, UniverseTable


@pytest.fixture
def result(synthetic):
    first, second = np.triu_indices(30, 1)
    budget = 0.1 + 0.1 * (second - first)
    lower = 0.8 * budget
    lower[7], budget[3], budget[5] = 2.0 * budget[7], 0.0, np.inf
    verdict = np.where(budget < 0.5, 2, 3).astype(np.int8)
    verdict[7], verdict[5] = 0, NOT_ASKED
    lower[3] = lower[5] = 0.0
    table = UniverseTable(
        ids=tuple(f"<b>city{k}|" if k == 1 else f"city {k}" for k in range(30)),
        first=first,
        second=second,
        budget=budget,
        epsilon_lower=lower,
        log10_p_value=np.where(verdict == 0, -30.0, -0.1),
        verdict=verdict,
        detectable=budget + 0.1,
        delta=0.0,
        labelled=1_000,
        draws=900,
    )
    base = synthetic.make("single")
    values = {name: getattr(base, name) for name in base.__dataclass_fields__}
    return AuditResult(**{**values, "universe": table})


def test_the_headline_and_the_counts_are_those_of_all_pairs(result):
    assert wording.headline(result) == "Violated: the promise is broken for 1 of 434 pairs"
    counted = {word: count for _, word, count, _ in universe.counts(result.universe)}
    assert counted["violated"] == "1"
    assert counted["not asked (infinite budget)"] == "1"


def test_the_page_shows_two_images_the_worst_pairs_and_no_markup_of_the_subject(result):
    page = reports.render(result, "html")
    images = re.findall(r'aria-label="([^"]+)"><image href="data:image/png;base64,([^"]+)"', page)
    assert len(images) == 2  # of one size on a wide page and on a phone
    assert all(base64.b64decode(data).startswith(b"\x89PNG") for _, data in images)
    assert "1 pair violated" in images[0][0]
    assert "img-src data:" in page
    assert "<b>city1" not in page
    row = result.universe.worst(1)[0]
    assert page.index(row.id.replace("|", "|<wbr>")) > 0
    assert reports.render(result, "html") == page  # the same bytes


def test_a_page_without_a_universe_allows_no_images(synthetic):
    page = reports.render(synthetic.make("single"), "html")
    assert "img-src" not in page
    assert "<image" not in page


def test_markdown_and_terminal_count_all_pairs(result):
    text = reports.render(result, "md")
    assert "## All pairs" in text
    assert "434 · 1 violated, 1 not asked" in text
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(terminal.show([brief.all_pairs(result.universe)]))
    console.print(terminal.show([brief.summary([result])]))
    shown = console.export_text()
    assert "435 pairs of 30 inputs: 1 violated" in " ".join(shown.split())
    assert "1/434" in shown


def test_a_column_of_log_wealth_and_p_values_says_which_is_which(synthetic, result):
    quiet = synthetic.finding("a", "c", 0.3, log_wealth=None, p_value=2.18e-81)
    both = dataclasses.replace(result, findings=(synthetic.finding("a", "b", 0.5, log_wealth=10.15), quiet))
    for format, profile in (("html", "plain"), ("md", "plain"), ("html", "compliance"), ("md", "compliance")):
        text = reports.render(both, format, profile)
        assert "log wealth 10.15" in text and "p = 2.18e-81" in text
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(terminal.show([brief.pairs(both)]))
    shown = console.export_text()
    assert "log wealth 10.15" in shown and "p = 2.18e-81" in shown
    alone = reports.render(dataclasses.replace(both, findings=both.findings[:1]), "md")
    tables = [line for line in alone.splitlines() if line.startswith("|")]
    assert tables and not any("log wealth 10.15" in line for line in tables)  # the column's name says it


def test_p_values_of_the_table_are_written_as_those_of_the_pairs(result):
    result.universe.log10_p_value[7] = np.log10(2.18e-81)
    assert "2.18e-81" in reports.render(result, "md") and "10^" not in reports.render(result, "html").replace("2^", "")
    assert universe.p_value_text(-1000.0001) == "1e-1000" and universe.p_value_text(-1234.5) == "3.16e-1235"
    assert universe.p_value_text(-np.inf) == "0" and universe.p_value_text(-0.1) == "0.794"


def test_the_worst_pairs_are_ranked_by_verdict_then_ratio(result):
    worst = result.universe.worst(434)
    assert worst[0].verdict == "violated"
    inconclusive = [row.ratio_lower or 0.0 for row in worst if row.verdict == "inconclusive"]
    assert inconclusive == sorted(inconclusive, reverse=True)
    assert all(row.verdict is not None for row in worst)


@pytest.mark.parametrize("format", ["html", "md", "junit", "sarif", "in-toto", "json"])
def test_a_universe_is_reported_in_every_format(result, format):
    content = reports.render(result, format, "compliance")
    text = content.decode() if isinstance(content, bytes) else content
    told = {"sarif": "dpaudit/violated", "json": '"violated"', "in-toto": "claim on all pairs"}.get(format, "434")
    assert told in text
    assert "<b>city1" not in text or format in ("sarif", "in-toto", "json")


def test_a_redacted_universe_has_no_names(result):
    hidden = redacted(Dossier.of(result))
    universe_table = hidden.audits[0].universe
    assert universe_table.partition is None and all(name.startswith("input-") for name in universe_table.ids)
    assert not re.search(r"city \d|city1", reports.render(hidden, "html", "compliance"))
    assert hidden.audits[0].verdict == "violated"
