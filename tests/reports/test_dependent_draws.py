"""No report states the confidence of an audit whose draws depend on each other without saying so."""

import dataclasses
import io
import math
import re

import numpy as np
import pytest
from rich.console import Console

import dpaudit
from dpaudit import reports
from dpaudit.audits.findings import NONE_GIVEN, order_finding, withheld
from dpaudit.audits.memory_checks import KEPT_NOISE
from dpaudit.cli import audit as command
from dpaudit.inference.order import Change
from dpaudit.numerals import MIN_P_VALUE
from dpaudit.pytest_plugin.texts import failure_text
from dpaudit.reports import rows, wording
from dpaudit.reports.cases import pair_sentence


@pytest.fixture(params=["call_order", "independence"])
def dependent(synthetic, request):
    return synthetic.dependent(request.param)


def confidences(text):
    """Say what stands behind every statement of 95% confidence."""
    return re.findall(r"95%(?: confidence| \|)?(.{0,80})", re.sub(r"\s+", " ", text.replace("\\", "")))


@pytest.mark.parametrize("format", ["md", "junit", "sarif"])
@pytest.mark.parametrize("profile", reports.PROFILES)
def test_every_report_that_states_the_confidence_says_that_it_is_not_to_be_relied_on(dependent, format, profile):
    content = reports.render(dependent, format, profile)
    found = confidences(content.decode() if isinstance(content, bytes) else content)
    assert found and all(wording.UNRELIABLE in after for after in found)


def test_the_terminal_and_the_messages_of_tests_say_it_too(dependent, monkeypatch):
    console = Console(file=io.StringIO(), width=200, color_system=None)
    command._show(console, dependent, ())
    for text in (console.file.getvalue(), failure_text(dependent, "")):
        found = confidences(text)
        assert found and all(wording.UNRELIABLE in after for after in found)


def test_no_loss_is_called_unknown_of_which_a_bound_is_shown(synthetic):
    """Before, page one said that nobody knows how large the loss is, above a table with its bound."""
    stands = synthetic.dependent()
    broken = dataclasses.replace(stands.findings[0], power=None)
    stands = dataclasses.replace(stands, findings=(broken, stands.findings[1]))
    doubtful, quiet = synthetic.dependent("independence"), synthetic.result([synthetic.finding("a", "b", 0.3)])
    quiet = dataclasses.replace(quiet, side_findings=doubtful.side_findings)
    told = {
        "not all calls keep ε below 1.5 nats; the loss of one output by itself may be": stands,
        "a breach, with ε at least 1.5 nats, by a test that supposes independent draws": doubtful,
        "ε at least 0.3 nats, were draws independent, which these are not": quiet,
    }
    assert all(text in rows.line_of(result).measured for text, result in told.items())
    nothing = dataclasses.replace(quiet, findings=(synthetic.finding("a", "b", 0.0),))
    assert rows.line_of(nothing).measured == "nothing, since its draws depend on each other"


def test_more_draws_are_no_advice_where_noise_is_kept(synthetic):
    """Before, page one said that more draws would settle it, above a note that all of them are one draw."""
    pair = synthetic.finding("a", "b", 0.0, verdict="inconclusive", power=None)
    kept = synthetic.result([withheld(pair, KEPT_NOISE)])
    text = reports.render(kept, "md")
    assert text.startswith("# Inconclusive: draws depend on each other, which leaves 1 of 1 pair unjudged")
    for told in ("More draws would not settle it", "Measured: nothing, since", "Everything, since its runs depend"):
        assert told in text
    weak = synthetic.result([pair])
    assert "Inconclusive: too little evidence" in reports.render(weak, "md") and wording.is_weak(weak)
    assert not wording.is_weak(kept)


SPENT = "Nothing was learnt: of the outcomes on the two inputs the first 1 and 0 are others."


@pytest.mark.parametrize("why", [KEPT_NOISE, SPENT])
def test_more_draws_are_no_advice_for_pairs_whose_draws_depend_on_each_other(synthetic, why):
    """Before, they would settle a spent budget too, and all pairs where some keep their noise; "2 pairs tested"."""
    kept, sound = withheld(synthetic.finding("a", "b", 0.0), why), synthetic.finding("c", "d", 0.5)
    for pairs in ([kept], [kept, sound]):
        result = synthetic.result(pairs)
        assert (
            wording.settling_sentence(result).startswith("More draws would not settle it") and result.verdict != "error"
        )
        assert not wording.is_weak(result) and f"leaves 1 of {len(pairs)} pair" in wording.headline(result)
        assert "Take more samples" not in failure_text(result, "")
    assert "0.5 × the promise; 1 of 2 pairs judged" in rows.line_of(result).measured
    assert "everything of 1 pair whose runs depend on each other" in rows.line_of(result).missed
    weak = dataclasses.replace(synthetic.finding("c", "d", 0.5), verdict="inconclusive")
    both = wording.settling_sentence(synthetic.result([kept, weak]))
    assert (
        both
        == "More draws would settle it. More draws would not settle 1 of 2 pairs: those have to be independent first."
    )
    assert pair_sentence(result, kept)[:20] == why[:20]  # and no bound, since none is given


def test_more_runs_are_no_advice_where_losses_depend_on_each_other(synthetic):
    """Before, a test of error bounds asked for more runs, and cut short why these would not do."""
    utility = synthetic.utility()
    said = dict(verdict="inconclusive", measured=math.nan, lower=0.0, message=f"Losses come in order. {NONE_GIVEN}")
    one = dataclasses.replace(utility.findings[0], **said)
    result = dataclasses.replace(utility, findings=(one,))
    text = reports.render(result, "md")
    assert "More draws would not settle it" in text and "with more runs" not in text
    assert "from one output to the next. |" in text and "What broke" not in text
    assert rows.line_of(result).measured == "nothing, since its draws depend on each other"
    unmeasured = dataclasses.replace(result, findings=(dataclasses.replace(one, message=""),))
    assert rows.line_of(unmeasured).measured == "nothing" and not rows.line_of(unmeasured).settles


def test_no_p_value_that_is_stated_is_0():
    """Before, 0 was saved, which would be a proof, beside the words "below 1e-307"; so was that of an exact test."""
    (side,) = order_finding([Change("are all among the first", 0.0)], 1, True)
    assert side.details["p_value"] == MIN_P_VALUE == 1e-307 and "(p below 1e-307)" in side.summary
    leaks = dpaudit.audit(lambda data, size, rng: np.full(size, data), "eps=0.01", [(0, 1)], mode="fixed", seed=1)
    assert leaks.findings[0].p_value == MIN_P_VALUE
