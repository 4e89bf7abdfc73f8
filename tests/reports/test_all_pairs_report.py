"""An all-pairs table in the reports: counts, images and worst pairs, all of the table and not of the findings alone."""

import base64
import dataclasses
import re

import numpy as np
import pytest

from dpaudit import reports
from dpaudit.reports import all_pairs, rows
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.drawing import Figure
from dpaudit.reports.items import items
from dpaudit.reports.redaction import redacted
from dpaudit.reports.rows import missed_sentence


@pytest.fixture
def result(synthetic):
    return synthetic.make("all pairs")


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


def test_p_values_of_the_table_are_written_as_those_of_the_pairs(result):
    result.universe.log10_p_value[7] = np.log10(2.18e-81)
    assert "2.18e-81" in reports.render(result, "md") and "10^" not in reports.render(result, "html").replace("2^", "")
    assert all_pairs.p_value_text(-1000.0001) == "1e-1000" and all_pairs.p_value_text(-1234.5) == "3.16e-1235"
    assert all_pairs.p_value_text(-np.inf) == "0" and all_pairs.p_value_text(-0.1) == "0.794"


def test_the_image_has_the_ratio_of_the_result_and_not_that_of_bounds_that_were_rounded(result):
    table = dataclasses.replace(
        result.universe,
        verdict=np.full(len(result.universe), 3, dtype=np.int8),
        budget=np.full(len(result.universe), 0.25862033),
        epsilon_lower=np.full(len(result.universe), 0.24253),  # as a file keeps it
    )
    finding = dataclasses.replace(result.findings[0], verdict="not_refuted", ratio_lower=0.24253602 / 0.25862033)
    kept = dataclasses.replace(result, universe=table, findings=(finding,))
    image = next(block for block in all_pairs.blocks(kept) if isinstance(block, Figure))
    assert "largest ratio 0.9378" in image.description
    assert missed_sentence(kept) == f"What it may have missed: losses near the limits of {len(table)} pairs."


def test_the_worst_pairs_are_ranked_by_verdict_then_ratio(result):
    worst = result.universe.worst(434)
    assert worst[0].verdict == "violated"
    inconclusive = [row.ratio_lower or 0.0 for row in worst if row.verdict == "inconclusive"]
    assert inconclusive == sorted(inconclusive, reverse=True)
    assert all(row.verdict is not None for row in worst)


def test_a_redacted_table_has_no_names(result):
    hidden = redacted(Dossier.of(result))
    all_pairs_table = hidden.audits[0].universe
    assert all_pairs_table.partition is None and all(name.startswith("input-") for name in all_pairs_table.ids)
    assert not re.search(r"city \d|city1", reports.render(hidden, "html", "compliance"))
    assert hidden.audits[0].verdict == "violated"


def without_findings(synthetic):
    """A table in which nothing was found, whose result has no pair in full."""
    table = synthetic.make("all pairs").universe
    lower, verdict = np.minimum(table.lower, table.budget), np.where(table.verdict == 0, 3, table.verdict)
    quiet = dataclasses.replace(table, epsilon_lower=lower, verdict=verdict.astype(np.int8))
    return synthetic.result([], claim="eps=1", universe=quiet)


def test_a_table_without_findings_was_assessed_and_says_what_it_could_have_missed(synthetic):
    """Before, its loss was "not assessed", nothing measured and everything missed."""
    result = without_findings(synthetic)
    (line,) = rows.ranked(Dossier.alone(result))
    assert (
        line.measured == "ε at least 0.9 nats for the pair nearest its limit, 1.0 × its limit of 0.9; 434 pairs tested"
    )
    assert line.missed == "losses near the limits of 349 pairs and losses of any size of 85 pairs"
    item = items(Dossier.alone(result))[0]
    assert item.key == "epsilon" and item.status == "tested in part" and line.measured in item.evidence
    assert "85 pairs gave no full answer" in item.evidence and line.missed in item.evidence
    broken = dataclasses.replace(result.universe, verdict=np.full(435, 1, dtype=np.int8))
    assert items(Dossier.alone(dataclasses.replace(result, universe=broken)))[0].status == "not assessed"
