"""The floating-point finding in reports: a finding beside the claim, apart from the verdict."""

from __future__ import annotations

import dataclasses

import pytest

from dpaudit import reports
from dpaudit.reports import side_texts
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.items import items
from dpaudit.results.model import FloatingPointFinding

NOT_APPLICABLE = FloatingPointFinding("not_applicable", "No real number.", 1e-3)


def floating_row(result):
    return next(item for item in items(Dossier.of(result)) if item.key == "floating_point")


def test_the_verdict_does_not_depend_on_it_and_the_headline_names_what_was_found(synthetic):
    result = synthetic.make("doubles")
    without = dataclasses.replace(result, floating_point=None)
    assert (result.verdict, result.exit_status) == (without.verdict, without.exit_status) == ("not_refuted", 0)
    headline = "# Not refuted as real numbers in 2 pairs; as doubles, low bits of the outputs break the promise"
    assert reports.render(result, "md").splitlines()[0] == headline
    assert reports.render(without, "md").splitlines()[0] == "# Not refuted: no broken promise found in 2 pairs"
    assert str(result).count("low bits") == 1  # at a prompt too, and once


@pytest.mark.parametrize(("finding", "seen"), [(None, []), (NOT_APPLICABLE, ["not_applicable"])])
def test_what_was_not_examined_is_not_assessed(synthetic, finding, seen):
    result = dataclasses.replace(synthetic.make("fixed"), floating_point=finding)
    assert [side.status for side in side_texts.beside(result)] == seen
    assert floating_row(result).status == "not assessed"


def test_where_no_pair_was_examined_none_is_called_a_further_one(synthetic):
    finding = dataclasses.replace(NOT_APPLICABLE, omitted=1)
    (side,) = side_texts.beside(dataclasses.replace(synthetic.make("fixed"), floating_point=finding))
    assert side.summary == "No real number."


@pytest.mark.parametrize(("name", "is_said"), [("sides", False), ("doubles", True)])
def test_how_the_verdict_reads_outputs_is_said_where_floating_point_is_beside_it(synthetic, name, is_said):
    text = reports.render(synthetic.make(name), "md")
    assert "come beside that of the verdict." in text and ("reads outputs as real numbers; floating" in text) == is_said


def test_details_beside_the_claim_are_names_with_values(synthetic):
    (side,) = side_texts.beside(synthetic.make("doubles"))
    assert side_texts.fact(side)[1].endswith(
        "runs: 60000; a|b: ε at least 3.269, promised 1; a: ε at least 0.4, promised 1"
    )
