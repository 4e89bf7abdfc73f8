"""The floating-point finding in reports: in a section of its own, apart from the verdict."""

from __future__ import annotations

import dataclasses

import pytest

from dpaudit import reports
from dpaudit.reports import brief, float_findings
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.items import items
from dpaudit.results.model import FloatingPointFinding

NOT_APPLICABLE = FloatingPointFinding("not_applicable", "No real number.", 1e-3)


def floating_row(result):
    return next(item for item in items(Dossier.of(result)) if item.key == "floating_point")


def test_the_headline_of_the_result_does_not_depend_on_it(synthetic):
    result = synthetic.make("doubles")
    without = dataclasses.replace(result, floating_point=None)
    assert (result.verdict, result.exit_status) == (without.verdict, without.exit_status) == ("not_refuted", 0)
    assert reports.render(result, "md").splitlines()[0] == reports.render(without, "md").splitlines()[0]


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
    assert float_findings.headline(result) == headline and float_findings.rows(result) == []
    assert floating_row(result).status == status
    assert (brief.low_bits(result) == []) == (finding is None)
