"""What reports say of the floating-point finding: in a section of its own, apart from the verdict."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from dpaudit import reports
from dpaudit.reports import brief, doubles, terminal
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.items import items
from dpaudit.reports.method import method
from dpaudit.results.model import FloatingPointFinding

NOT_APPLICABLE = FloatingPointFinding("not_applicable", "No real number.", 1e-3)


def plain(result):
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(terminal.show(brief.low_bits(result)))
    return " ".join(console.file.getvalue().split())


def floating_row(result):
    return next(item for item in items(Dossier.of(result)) if item.key == "floating_point")


def test_a_leak_is_told_with_its_witness_its_bound_and_what_to_do(synthetic):
    result = synthetic.make("doubles")
    texts = (
        " ".join(doubles.paragraphs(result)),
        plain(result),
        reports.render(result, "html"),
        reports.render(result, "md"),
    )
    for text in texts:
        flat = text.replace("\\", "")
        assert "Outputs that are no multiple of 2^-53: 185 of 6,839 on x = a, 0 of 6,905 on x′ = b." in flat
        assert "3.269" in flat and "99.9% confidence" in flat and "snapping" in flat
        assert "the low bits break the promise for 1 of 2 examined pairs" in flat or text is texts[0]


def test_every_report_says_that_it_is_apart_from_the_verdict(any_result):
    for text in (reports.render(any_result, "html"), reports.render(any_result, "md")):
        flat = text.replace("\\", "")
        assert "Floating point: " in flat
        assert doubles.APART in flat
    assert reports.render(any_result, "html").index('id="pairs"') < reports.render(any_result, "html").index(
        'id="floating-point"'
    )


def test_the_headline_of_the_result_does_not_depend_on_it(synthetic):
    result = synthetic.make("doubles")
    without = dataclasses.replace(result, floating_point=None)
    assert (result.verdict, result.exit_status) == (without.verdict, without.exit_status) == ("not_refuted", 0)
    assert reports.render(result, "md").splitlines()[0] == reports.render(without, "md").splitlines()[0]


def test_where_the_claim_is_violated_too_the_leak_may_be_the_same(synthetic):
    finding = synthetic.make("doubles").floating_point
    result = dataclasses.replace(synthetic.make("single"), floating_point=finding)
    assert "may be the same leak" in " ".join(doubles.paragraphs(result))
    assert "may be the same leak" not in " ".join(doubles.paragraphs(synthetic.make("doubles")))


def test_nothing_found_says_what_would_have_been_found(synthetic):
    result = synthetic.make("doubles nothing")
    text = " ".join(doubles.paragraphs(result))
    assert "at least 0.26% of what that input gives" in text and "error rate of its own" in text
    assert "nothing found in the low bits of 1 examined pair" in plain(result)


@pytest.mark.parametrize(
    ("finding", "headline", "status"),
    [
        (None, "Floating point: not examined", "not assessed"),
        (NOT_APPLICABLE, "Floating point: not applicable", "not assessed"),
    ],
    ids=["turned off", "not applicable"],
)
def test_what_was_not_examined_is_said(synthetic, finding, headline, status):
    result = dataclasses.replace(synthetic.make("fixed"), floating_point=finding)
    assert doubles.headline(result) == headline and doubles.rows(result) == []
    assert floating_row(result).status == status
    assert (brief.low_bits(result) == []) == (finding is None)


def test_what_was_examined_is_in_the_scope_and_in_the_method(synthetic):
    row = floating_row(synthetic.make("doubles"))
    assert row.status == "tested in part" and "for 1 of 2 examined pairs" in row.evidence and "0.1%" in row.evidence
    assert "Floating point" in dict(method(synthetic.make("doubles")))
    assert "Floating point" not in dict(method(synthetic.make("fixed")))
