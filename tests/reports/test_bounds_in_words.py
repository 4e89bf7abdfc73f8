"""A bound above its budget is never shown as if it were on it, wherever a report writes it."""

import dataclasses
import html
import json
import re

import pytest

from dpaudit import reports
from dpaudit.inference.bound_search import just_above
from dpaudit.privacy.claims import Budget
from dpaudit.pytest_plugin.texts import failure_text, weakness_text
from dpaudit.reports import brief, scores, terminal, wording
from dpaudit.reports.answers import answers
from dpaudit.reports.attachments import certificate_attachment
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.rows import missed_sentence
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
    assert "ε > 1 nats" in texts[1] and "ε above 1 nats" in texts[2] and "would have" not in texts[2]
    assert wording.least_powerful(result) is None


def page_one(*results):
    """The answers of a report on these results, by their questions."""
    return dict(answers(Dossier.of(*results)).rows)


def test_bounds_of_scores_and_proofs_are_rounded_to_their_own_side(synthetic):
    bounds = {"epsilon_lower": 1.23456, "parameter_lower": 0.50004, "ceiling": 2.34561, "parameter_ceiling": 2.00001}
    found = synthetic.scores(**bounds, independent=None)
    assert scores.headline(found).startswith("Violated: with 95% confidence ρ is at least 0.50004; rho=0.5")
    shown = dict(scores.facts(found))
    assert shown["epsilon at delta 1e-5, at least"] == "1.234 nats" and shown["ρ, at least"] == "0.50004 nats"
    assert shown["epsilon at delta 1e-5, ceiling"].startswith("2.346 nats") and shown["ρ, ceiling"] == "2.001 nats"
    kept = certificate_attachment("c.json", "", synthetic.certificate(("kept", 0.50004)))
    assert kept.line.measured.endswith("the worst is at most 0.5001 × what was promised")


def test_rates_are_rounded_up_and_confidence_down(synthetic):
    result = dataclasses.replace(synthetic.make("not_refuted"), confidence=1.0 - 0.01234449)
    assert "with probability at most 1.235%." in page_one(result)["How sure is that?"]
    assert wording.confidence_text(result) == "98.76% confidence"


def test_no_rate_is_stated_and_no_draws_are_asked_for_where_draws_depend_on_each_other(synthetic):
    findings = [synthetic.finding("a", "b", 0.3, verdict="inconclusive")]
    result = dataclasses.replace(synthetic.dependent(), findings=tuple(findings))
    found = page_one(result)
    assert found["May it be released?"].endswith("More draws would not settle it: they have to be independent first.")
    assert "probability at most 5%" not in found["How sure is that?"] and "none can be relied on" in str(found)
    for format in ("label", "registry", "oscal"):
        text = reports.render(result, format)
        assert "probability at most 5%" not in text and "since draws depend on each other" in text
    assert json.loads(reports.render(result, "json", "compliance"))["false_alarm_rate"] is None
    assert "false-alarm-rate" not in reports.render(result, "oscal")


# An inconclusive audit names a pair that is inconclusive, and the loss that it was judged by.


@pytest.fixture
def unclear(synthetic):
    """A pair of budget 0 that is inconclusive, beside one of a larger detectable loss that is not."""
    power = Power(0.1, 0.9, 0.4, 0.0)
    zero = synthetic.finding("a", "b", 0.0, 0.0, "inconclusive", ratio_lower=None, power=power)
    one = synthetic.finding("a", "c", 0.8, 1.0, power=Power(0.1, 0.9, 1.4, 1.0))
    return synthetic.result([zero, one])


def test_the_pair_that_is_named_is_an_inconclusive_one(unclear):
    assert wording.least_powerful(unclear).id == "a|b"
    assert missed_sentence(unclear).endswith("Tested least well was the pair a|b.")
    assert "0.4 nats where nothing may leak" in missed_sentence(unclear)
    assert "a|b" in weakness_text(unclear) and "a|c" not in weakness_text(unclear)


def test_among_inconclusive_pairs_the_one_furthest_from_its_limit_is_named(synthetic, unclear):
    three = synthetic.finding("a", "d", 0.1, 1.0, "inconclusive", power=Power(0.1, 0.9, 9.0, 1.0))  # 4.5 limits of 2
    both = dataclasses.replace(unclear, findings=(*unclear.findings, three))
    assert wording.least_powerful(both).id == "a|d"
    # The limit is the audit's own: 0.4 is 4 times the 0.1 of a budget of 0.
    wide = dataclasses.replace(both, options={**both.options, "inconclusive_factor": 3.0})
    assert wording.least_powerful(wide).id == "a|b"
