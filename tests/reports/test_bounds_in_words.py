"""A bound above its budget is never shown as if it were on it, wherever a report writes it."""

import dataclasses
import html
import re

import pytest

from dpaudit import reports
from dpaudit.inference.bound_search import just_above
from dpaudit.privacy.claims import Budget
from dpaudit.pytest_plugin.texts import failure_text
from dpaudit.reports import brief, terminal, wording
from dpaudit.results.model import INTERVALS, LearnedLoss, Power

MIN_RATIO = 1.0000449  # over a budget of 1: four digits are not enough, five round down to it


@pytest.fixture
def barely(synthetic):
    """One pair that is violated by very little, beside one that keeps a larger budget, of a smaller bound."""
    findings = [synthetic.finding("a", "b", MIN_RATIO), synthetic.finding("a", "c", 0.3, 2.0)]
    return synthetic.result(findings, claim="eps=1")


@pytest.mark.parametrize("profile", reports.PROFILES)
@pytest.mark.parametrize("format", ["html", "md"])
def test_no_report_writes_a_bound_above_its_budget_as_the_budget(barely, format, profile):
    text = html.unescape(reports.render(barely, format, profile)).replace("\\", "")
    text = re.sub(r"<[^>]*>", " ", text)
    assert barely.verdict == "violated"
    assert not re.search(r"(?<![\d.])1\.0+(?![\d.]*[1-9])(?=\s*nats| with)", text)
    assert "1.00004 nats" in text


# A violation of zCDP whose epsilon is within what the claim converts to: beside it, that epsilon read as a pass.
def test_an_epsilon_within_the_promise_is_not_said_beside_a_violation(synthetic):
    finding = synthetic.finding("0", "1", 1.005, 0.5, parameter="rho", epsilon_lower=2.085)
    finding = dataclasses.replace(finding, budget=Budget(5.757, 1e-6))
    result = synthetic.result([finding], claim="rho=0.5", report_delta=1e-6)
    assert finding.verdict == "violated"
    assert wording.bound_sentence(result, finding) == "ρ ≥ 0.5025 nats with 95% confidence; promised: ρ ≤ 0.5"
    kept = dataclasses.replace(finding, verdict="not_refuted", parameter_lower=0.4)
    assert wording.bound_sentence(result, kept).endswith("at least 2.085 nats, promised 5.757 nats")
    for profile in reports.PROFILES:
        for format in ("html", "md"):
            text = html.unescape(re.sub(r"<[^>]*>", " ", reports.render(result, format, profile))).replace("\\", "")
            assert "Measured: ρ at least 0.5025 nats" in text
            assert "promised 5.757" not in text


BARE = just_above(1.0)  # all that a rejection says where no stage could follow it


@pytest.mark.parametrize("format", ["html", "md", "junit", "sarif"])
def test_a_bound_that_says_no_more_than_a_rejection_is_above_and_no_power_is_said_of_it(synthetic, format):
    power = Power(0.1, 0.9, 1.2345, 1.0, (LearnedLoss(INTERVALS, 2.3456),))
    bounds = {"parameter_lower": BARE, "epsilon_lower": BARE}
    broken = synthetic.finding("a", "b", BARE, verdict="violated", power=power, **bounds)
    result = synthetic.result([broken], claim="eps=1")
    report = reports.render(result, format)
    report = report if isinstance(report, str) else report.decode()
    texts = [report, failure_text(result, ""), str(result), terminal.plain(brief.violation(result))]
    for text in texts:
        assert "1.0000001" not in text and "1.234" not in text and "2.345" not in text
    assert any("> 1" in html.unescape(text) or "above 1" in text for text in texts[:1])
    assert "ε > 1 nats" in texts[1] and "above 1" in texts[2] and "would have" not in texts[2]
    assert wording.least_powerful(result) is None
