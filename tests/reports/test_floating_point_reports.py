"""The floating-point finding in reports: a finding beside the claim, apart from the verdict."""

import dataclasses

import pytest

from dpaudit import reports
from dpaudit.reports import side_texts
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.items import items
from dpaudit.reports.rows import ranked
from dpaudit.results.model import FloatingPointFinding, SideFinding

NOT_APPLICABLE = FloatingPointFinding("not_applicable", "No real number.", 1e-3)


def floating_row(result):
    return next(item for item in items(Dossier.of(result)) if item.key == "floating_point")


def test_the_verdict_does_not_depend_on_it_and_the_headline_names_what_was_found(synthetic):
    result = synthetic.make("doubles")
    without = dataclasses.replace(result, floating_point=None)
    assert (result.verdict, result.exit_status) == (without.verdict, without.exit_status) == ("not_refuted", 0)
    headline = "# Not refuted: nothing found in 2 pairs as real numbers; as doubles, low bits break the promise"
    assert reports.render(result, "md").splitlines()[0] == headline
    assert reports.render(without, "md").splitlines()[0] == "# Not refuted: no broken promise found in 2 pairs"
    assert str(result).count("low bits") == 1  # at a prompt too, and once


@pytest.mark.parametrize(("name", "colour"), [("doubles", "inconclusive"), ("fixed", "not_refuted")])
def test_the_colour_of_the_headline_follows_low_bits_as_its_words_do(synthetic, name, colour):
    """Before, a promise that low bits break stood in the box of one that nothing was found against."""
    result = dataclasses.replace(synthetic.make("fixed"), floating_point=synthetic.make(name).floating_point)
    assert result.verdict == "not_refuted"
    assert f'<header class="verdict {colour}-box">' in reports.render(result, "html")
    assert f'class="verdict {colour}"' in reports.render(result, "label")
    (row,) = ranked(Dossier.of(result))
    assert row.mark == colour


@pytest.mark.parametrize(("finding", "seen"), [(None, []), (NOT_APPLICABLE, ["not_applicable"])])
def test_what_was_not_examined_is_not_assessed(synthetic, finding, seen):
    result = dataclasses.replace(synthetic.make("fixed"), floating_point=finding)
    assert [side.status for side in side_texts.beside(result)] == seen
    assert floating_row(result).status == "not assessed"


def test_each_pair_has_a_row_with_its_bound_and_the_guesses_of_its_rule(synthetic):
    """Before, counts were in the saved file alone."""
    result = synthetic.make("doubles")
    (side,) = side_texts.beside(result)
    assert side_texts.fact(side)[1].endswith("runs: 60,000")
    named = SideFinding(
        "call_order", "found", "Seen.", 0.01, {"p_value": 0.002, "share_of_calls": 1_234, "seed": 1_234}
    )
    assert side_texts.fact(named)[1].endswith(
        "p value: 0.002; share of calls: 1,234; seed: 1234"
    )  # no names or digits of code
    table = side_texts.bits_table(result.floating_point)
    assert table.rows[0] == ("a|b", "3.269", "1", "3.269", "leaks", "1.7e-52", "100", "60", "13,584")
    assert [row[0] for row in table.rows] == ["a|b", "a"]
    for format in ("html", "md"):
        text = reports.render(result, format)
        assert text.count("Low bits, pair by pair") and text.count("13,584") == 2
    quiet = dataclasses.replace(result, floating_point=NOT_APPLICABLE)
    assert "Low bits, pair by pair" not in reports.render(quiet, "html")


def test_what_was_seen_of_an_item_is_whole_or_says_where_the_rest_is(synthetic):
    """Before, it ended after 400 characters, whatever it was about to say."""
    whole, long = "seen " * 150 + "to its end.", "seen " * 2_000
    for summary, end in ((whole, "to its end. "), (long, "(the whole, 10,000 characters, is in the saved result) ")):
        side = SideFinding("timing", "found", summary, 0.01)
        result = synthetic.result([synthetic.finding()], side_findings=(side,))
        (item,) = (one for one in items(Dossier.of(result)) if one.key == "side_channels")
        assert end in item.evidence
    told = synthetic.check(message=whole)
    told = dataclasses.replace(told, records=(dataclasses.replace(told.records[0], name="floating_point"),))
    (item,) = (one for one in items(Dossier.of(told)) if one.key == "floating_point")
    assert "to its end)" in item.evidence
