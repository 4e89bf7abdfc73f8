"""The table of what would have been found by form, in each format."""

import io

import numpy as np
from rich.console import Console

import dpaudit
from dpaudit.evidence.learned_power import forms
from dpaudit.reports import by_form, html
from dpaudit.reports.plan import plan_table


def released(data, size, rng):
    return data + rng.laplace(size=size)


def audited(mechanism=released):
    return dpaudit.audit(mechanism, "eps=1", [(0.0, 1.0)], samples=5_000, seed=1, floating_point=False)


def printed(shown):
    console = Console(file=io.StringIO(), width=80)
    console.print(shown)
    return console.file.getvalue()


def test_every_form_has_a_row_beside_the_best_case_in_terminal_and_html():
    result = audited()
    rows = by_form.rows(result)
    assert [form for form, _, _ in rows] == [by_form.BEST, *forms()]
    assert float(rows[0][1]) <= min(float(loss) for _, loss, _ in rows[1:])
    text, page = printed(by_form.table(result)), html.render(result)
    for form, loss, _ in rows:
        assert form in text and loss in text
        assert f"<td>{form}</td><td>{loss}</td>" in page


def test_a_violated_claim_has_no_such_table():
    result = audited(lambda data, size, rng: np.full(size, data))
    assert result.verdict == "violated"
    assert by_form.rows(result) == () and by_form.table(result) is None
    assert 'id="by-form"' not in html.render(result)


def test_a_plan_promises_what_the_audit_reports():
    planned = dpaudit.plan(released, "eps=1", [(0.0, 1.0)], samples=5_000, seed=1)
    power = audited().findings[0].power
    assert planned.budgets[0].by_form == power.learned
    text = printed(plan_table(planned))
    assert all(form in text for form in forms())
