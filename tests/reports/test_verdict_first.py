"""One sentence, one number, the verdict first: in every form of a report, of every kind of result."""

import dataclasses
import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree

import click
import pytest
from rich.console import Console

import dpaudit
from dpaudit import reports
from dpaudit.cli import audit as command
from dpaudit.pytest_plugin.texts import failure_text
from dpaudit.reports import compliance, figures, first_page, markdown, rows, wording
from dpaudit.reports.dossier import Dossier
from dpaudit.results.model import Finding
from dpaudit.results.utility_result import UtilityFinding

EXCESS = UtilityFinding("mean", "expectation", "x", 0, False, 1.0, 1.0, "not_refuted", 1.07, 0.932, 1.22, samples=9)
WORDS = {"violated": "Violated", "error": "Error", "inconclusive": "Inconclusive", "not_refuted": "Not refuted"}
MARKS = {"violated": "✗", "error": "!", "inconclusive": "?", "not_refuted": "✓"}


def errors(synthetic, *findings):
    return dataclasses.replace(synthetic.utility(), findings=findings)


def row(dossier, number=0):
    return rows.ranked(dossier)[number]


@pytest.mark.parametrize("name", ["violated", "not_refuted", "inconclusive", "error", "empty"])
def test_one_result_has_one_headline_wherever_it_is_read(synthetic, name):
    """A wording is changed in `wording.headline`, and nowhere else."""
    result, console = synthetic.make(name), Console(file=io.StringIO(), width=200, color_system=None)
    with click.Context(click.Command("audit")):
        command._show(console, result, ())
    page = re.search(r"<h1>(.*?)</h1>", reports.render(result, "html"))
    shown = [console.file.getvalue(), page and page[1], reports.render(result, "md"), failure_text(result, "")]
    assert [wording.headline(result) in text for text in shown] == [True] * 4


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "inconclusive"),
        ({"measured": 1.0}, "not_refuted"),
        ({"measured": 1.0000001}, "inconclusive"),
        ({"verdict": "violated", "lower": 1.01}, "violated"),
        ({"allowed": 0.0, "measured": 0.1, "lower": 0.0}, "inconclusive"),  # nothing is allowed: no ratio
        ({"upper": float("inf")}, "inconclusive"),
    ],
)
def test_a_measured_excess_is_not_settled_where_it_may_be_none(synthetic, changes, told):
    finding = dataclasses.replace(EXCESS, **changes)
    result = errors(synthetic, finding, dataclasses.replace(finding, measured=0.5, verdict="not_refuted"))
    assert (finding.status, result.status, Dossier.of(result).verdict) == (told, told, told)
    assert result.verdict == finding.verdict  # what is saved, and the exit status, are those of the test


def test_the_headline_counts_the_rows_below_it(synthetic):
    check = synthetic.check()
    kept = [record for record in check.records if record.status == "not_refuted"] * 23
    failed = [
        dataclasses.replace(kept[0], name=name, status="violated") for name in ("claim_audit", "law_mixture", "a")
    ]
    check = dataclasses.replace(check, records=(*kept, *failed * 8))
    dossier = Dossier.of(synthetic.make("single"), check, errors(synthetic, EXCESS))
    headline = first_page.headline(dossier)
    assert headline == "Violated: a promise is broken in 2 of 3 results; 24 of 47 checks failed; 1 not settled"
    lines = rows.ranked(dossier)
    assert sum(line.words.startswith("✗ Broken") for line in lines) == 2
    assert sum("ot settled" in line.words for line in lines) == 1
    (behaviour,) = (line for line in lines if line.kind == "behaviour")
    assert behaviour.promised.startswith("47 checks") and behaviour.measured.startswith("24 failed (")
    alone = Dossier.of(check)  # nothing that contradicts a broken claim
    assert "no promise of privacy was found broken" not in markdown.render(compliance.build(alone))
    assert first_page.headline(alone) == "Violated: a promise is broken in 1 of 1 result; 24 of 47 checks failed"


@pytest.mark.parametrize("name", ["single", "error", "inconclusive", "not_refuted"])
def test_the_verdict_stands_at_the_head_of_every_form(synthetic, name):
    dossier = Dossier.of(synthetic.make(name))
    verdict = dossier.verdict
    word, head = WORDS[verdict], f"{MARKS[verdict]} {WORDS[verdict]}"
    page = reports.render(dossier, "label")
    body = re.sub(r"<[^>]*>", " ", page.partition("</h1>")[2]).split("Purpose and data")[0]
    assert body.strip().startswith(head)
    drawn = [one.text for one in ElementTree.fromstring(reports.render(dossier, "label-svg")).iter() if one.text]
    texts = [text for text in drawn if not text.startswith(("text{", "Privacy label"))]
    assert texts[0].startswith(head)
    assert reports.render(dossier, "registry").splitlines()[1].startswith(f"# What the tests found: {word}")
    assessed = json.loads(reports.render(dossier, "oscal"))["assessment-results"]
    assert assessed["metadata"]["title"].startswith(word)
    titles = [one["title"].partition(":")[0] for one in assessed["results"][0]["observations"]]
    assert titles[0] == word
    for one in json.loads(reports.render(dossier, "sarif"))["runs"][0]["results"]:
        assert one["message"]["text"].startswith((word, "Found beside the claim"))
    for one in ElementTree.fromstring(reports.render(dossier, "junit")).iter():
        if one.tag in ("failure", "error", "skipped") and "message" in one.attrib:
            assert one.attrib["message"].lower().startswith((word.lower(), "does not apply"))
    assert compliance.build(dossier).headline.startswith(word)


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
@pytest.mark.parametrize(("claim", "part"), [("eps=1", 1.0), ("eps=1,delta=0.1", 1.0), ("mu=1", 0.8), ("rho=0.5", 0.8)])
def test_a_report_says_the_share_that_decides_the_verdict(claim, part, mode):
    """A claim whose parameter is no epsilon pays for two bounds: its verdict is at 80% of the share of its pair."""
    result = dpaudit.audit(lambda x, size, rng: x + rng.laplace(size=size), claim, [(0, 1)], samples=40, mode=mode,
                           seed=1, floating_point=False)  # fmt: skip
    (finding,) = result.findings
    said = f"a violation up to {0.05 * part:.3g}<"
    if finding.log_wealth is not None:
        said = f"a violation from {-math.log(0.05 * part):.4g}<"
    assert said in reports.render(result, "html")
    figure = figures.wealth(result)
    assert figure is None or f" of {-math.log(0.05 * part):.4g} after" in figure.legend[-1][1]
    record = finding.to_dict()
    assert Finding.from_dict(record).verdict_share == pytest.approx(0.05 * part) == finding.verdict_share
    del record["verdict_share"]  # as in a file of an older version
    assert (Finding.from_dict(record).verdict_share or 0.05) == pytest.approx(0.05 * part)
