"""The curves of the worst pair: what is promised, what is measured, and where confidence is claimed."""

import dataclasses
import math
import re

import numpy as np
import pytest
from scipy import stats

from dpaudit.privacy.claims import Budget, GaussianDP, ZeroConcentratedDP
from dpaudit.reports import curves, figures
from dpaudit.reports.drawing import NARROW, WIDE
from dpaudit.results.model import Look, WitnessRecord


def witnessed(synthetic, correct, wrong, abstained, mode="fixed", **changes):
    line = {"epsilon": 1.0, "delta": 0.0}
    record = WitnessRecord("a rule", {}, correct, wrong, abstained, line)
    finding = synthetic.finding("a", "b", 0.9, mode=mode, witness=record, error_share=0.05, **changes)
    return synthetic.result([finding], mode=mode, claim="eps=1")


def test_the_estimate_is_the_share_of_right_guesses_less_the_weighted_share_of_wrong_ones(synthetic):
    result = witnessed(synthetic, 600, 200, 200)
    seen = curves.measured(result, result.findings[0])
    heights = [height for _, height in curves.lower_curve(seen.correct, seen.wrong, [0.0, 1.0, 5.0])]
    assert heights == [pytest.approx(0.4), pytest.approx(0.6 - 0.2 * math.e), 0.0]
    assert 0.0 < curves.lower_curve(*seen.limits, [0.0])[0][1] < 0.4
    limits = stats.beta.ppf(0.025, 600, 401), stats.beta.ppf(0.975, 201, 800)
    assert seen.limits == pytest.approx(limits)


def test_confidence_is_claimed_in_fixed_mode_alone(synthetic):
    result = witnessed(synthetic, 600, 200, 200, mode="sequential")
    seen = curves.measured(result, result.findings[0])
    assert seen.limits is None
    figure = curves.profile(result)
    assert any("without confidence" in text for _, text in figure.legend)
    assert 'class="confident"' not in figure.wide
    assert 'class="confident"' in curves.profile(witnessed(synthetic, 600, 200, 200)).wide


def test_the_lower_curve_stays_below_the_truth():
    """Randomised response at epsilon = 1; its profile is known.

    5% of 400 runs may miss; more than 32 has a probability below 0.3%. The seed is fixed.
    """
    rng = np.random.default_rng(11)
    truth, missed = math.e / (1.0 + math.e), 0
    for _ in range(400):
        correct = int(rng.binomial(500, truth))
        level = 0.025
        lower = stats.beta.ppf(level, correct, 501 - correct)
        upper = stats.beta.ppf(1.0 - level, 501 - correct, correct)
        curve = curves.lower_curve(float(lower), float(upper), np.linspace(0.0, 1.0, 21))
        missed += any(height > truth - math.exp(e) * (1.0 - truth) + 1e-12 for e, height in curve)
    assert 0 < missed <= 32


def test_the_promised_curve_is_the_claims_own(synthetic):
    gaussian = synthetic.finding("a", "b", 0.9, 1.0, parameter="mu")
    gaussian = dataclasses.replace(gaussian, budget=Budget(GaussianDP(1.0).epsilon_at(1e-6), 1e-6))
    assert curves.claimed(gaussian)(0.5) == pytest.approx(GaussianDP(1.0).profile(0.5))
    renyi = synthetic.make("renyi").findings[0]
    promise = curves.claimed(renyi)
    for epsilon in (0.6, 2.0, 5.7565, 20.0):  # also the budget of the pair, as a point of the curve
        assert ZeroConcentratedDP(0.5).epsilon_at(promise(epsilon)) == pytest.approx(epsilon, rel=1e-9)
    assert promise(0.4) == 1.0
    infinite = dataclasses.replace(gaussian, parameter="epsilon", parameter_budget=math.inf)
    assert curves.claimed(infinite) is None


def test_a_rule_on_the_promise_touches_the_trade_off(synthetic):
    """Randomised response at epsilon = 1 has errors 1 / (1 + e) of both kinds: the corner of the promised curve."""
    figure = curves.trade_off(witnessed(synthetic, 7311, 2689, 0))
    middle = {row[0]: row for row in figure.data.rows}["0.25"]
    assert float(middle[1]) == pytest.approx(1.0 - math.e * 0.25, abs=2e-3)
    assert float(middle[2]) == pytest.approx(float(middle[1]), abs=5e-3)
    assert float(middle[3]) > float(middle[2])  # the limit with confidence is further from the corner


def test_a_budget_whose_factor_is_no_double_has_a_picture_too(synthetic):
    result = witnessed(synthetic, 7311, 2689, 0)
    far = dataclasses.replace(result.findings[0], budget=Budget(989.0, 0.0), parameter_budget=989.0)
    figure = curves.trade_off(dataclasses.replace(result, findings=(far,)))
    assert {float(row[1]) for row in figure.data.rows if float(row[0]) > 0.0} == {0.0}


def test_a_run_whose_end_the_draws_decided_has_no_limits(synthetic):
    result = witnessed(synthetic, 7311, 0, 2689)
    finding = result.findings[0]
    assert curves.measured(result, finding) is not None
    run = dataclasses.replace(finding.witness, rule={**finding.witness.rule, "run": True})
    assert curves.measured(result, dataclasses.replace(finding, witness=run)) is None


@pytest.mark.parametrize("name", ["error", "empty"])
def test_where_there_is_nothing_to_draw_there_is_no_curve(synthetic, name):
    result = synthetic.make(name) if name == "empty" else synthetic.result([synthetic.make("error").findings[1]])
    assert curves.profile(result) is None and curves.trade_off(result) is None


def test_a_map_needs_places(synthetic):
    findings = [
        synthetic.finding(a, b, ratio, x=[float(i), 0.0], x_prime=[float(j), 1.0])
        for a, b, i, j, ratio in (("a", "b", 0, 1, 0.5), ("b", "c", 1, 2, 1.5), ("a", "c", 0, 2, 0.7))
    ]
    figure = figures.atlas(synthetic.result(findings), {})
    assert "3 inputs and 3 pairs" in figure.description and "1 violated" in figure.description
    declared = {name: (float(k), 0.0) for k, name in enumerate("abc")}
    assert "as declared" in figures.atlas(synthetic.result(findings), declared).note
    assert figures.atlas(synthetic.make("single"), {}) is None
    assert figures.atlas(synthetic.result([synthetic.finding("a", "b", x=[math.nan, 1.0])]), {}) is None


def test_a_map_says_how_many_pairs_it_does_not_show(synthetic):
    result = synthetic.cities(8, violated=False)
    names = sorted({name for finding in result.findings for name in (finding.x_id, finding.x_prime_id)})
    places = {name: (float(k), float(k % 3)) for k, name in enumerate(names)}
    assert "were not audited as a pair" in figures.atlas(result, places).note
    broken = dataclasses.replace(result.findings[0], verdict="error", message="broke")
    some = dataclasses.replace(result, findings=(broken, *result.findings[1:]))
    note = figures.atlas(some, places).note
    assert "1 more pair not drawn" in note and "were not audited" not in note


def test_no_tick_label_is_cut_at_the_right_edge(synthetic):
    look = [Look(draws, 0.1, 0.0) for draws in (10_000, 100_000, 1_918_226)]
    result = synthetic.result([dataclasses.replace(synthetic.finding("a", "b", 0.5), looks=tuple(look))])
    for page, width in ((figures.wealth(result).wide, WIDE), (figures.wealth(result).narrow, NARROW)):
        found = re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="(\w+)" class="tick">([\d,]+)<', page)
        assert len(found) > 2 and (width == NARROW or "2,000,000" in {label for _, _, label in found})
        for x, anchor, label in found:
            assert float(x) + {"end": 0.0, "middle": 3.0 * len(label)}[anchor] <= width
