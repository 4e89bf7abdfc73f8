"""The table of what would have been found by form, in each format."""

import dataclasses
import math
import types

import numpy as np
import pytest

import dpaudit
from dpaudit import reports
from dpaudit.inference.learned_power import forms
from dpaudit.reports import by_form
from dpaudit.reports.plan import plan_blocks
from dpaudit.reports.rows import missed_sentence


def released(data, size, rng):
    return data + rng.laplace(size=size)


def audited(mechanism):
    return dpaudit.audit(mechanism, "eps=1", [(0.0, 1.0)], samples=5_000, seed=1, floating_point=False)


@pytest.fixture(scope="module")
def result():
    return audited(released)


def test_a_violated_claim_has_no_such_table():
    result = audited(lambda data, size, rng: np.full(size, data))
    assert result.verdict == "violated"
    assert by_form.learned(result) is None and by_form.blocks(result) == []
    assert 'id="found"' not in reports.render(result, "html")


def test_a_plan_promises_what_the_audit_reports(synthetic, result):
    planned = dpaudit.plan(released, "eps=1", [(0.0, 1.0)], samples=5_000, seed=1)
    power = result.findings[0].power
    assert planned.budgets[0].by_form == power.learned
    text = synthetic.page(plan_blocks(planned))
    assert all(form in text for form in forms())


def test_figures_that_are_no_numbers_are_not_said(result):
    (finding,) = result.findings
    learned = tuple(dataclasses.replace(one, loss=math.nan) for one in finding.power.learned)
    finding = dataclasses.replace(finding, power=dataclasses.replace(finding.power, learned=learned))
    text = missed_sentence(dataclasses.replace(result, findings=(finding,)))
    assert text.startswith("What it may have missed: a leak of any size that has to be searched for.")
    assert "nan" not in text and "–" not in text


def test_a_table_of_all_pairs_has_no_table_by_form(result):
    assert by_form.learned(result)
    table = types.SimpleNamespace(count={"not_refuted": 7, "inconclusive": 2, "violated": 0}.get)
    of_table = dataclasses.replace(result, universe=table)
    assert by_form.learned(of_table) is None and by_form.blocks(of_table) == []
