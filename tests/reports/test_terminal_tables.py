"""Terminal pages: everything within 80 columns, names as text, and the failure message in its order."""

import pytest

from dpaudit.reports import brief
from dpaudit.reports.wording import short_count


def test_the_summary_of_several_subjects_fits_eighty_columns(synthetic):
    text = synthetic.page([brief.summary([synthetic.make(name) for name in synthetic.names])])
    assert max(len(line) for line in text.split("\n")) <= 80
    for word in ("violated", "not refuted", "inconclusive", "error", "8/396", "1.911", "7.92M"):
        assert word in text


def test_a_pair_whose_audit_broke_has_no_bound_and_no_ratio(synthetic):
    result = synthetic.make("error")
    broken = [one for one in result.findings if one.verdict == "error"]
    alone = synthetic.result(broken)
    (row,) = brief.summary([alone]).rows
    assert row[3] == "–" and brief.summary([result]).rows[0][3] != "–"  # of pairs that did not break there is one
    assert [row[2:4] for row in brief.pairs(alone).rows] == [("–", "–")] * len(broken)


def test_a_violation_fits_eighty_columns_but_for_the_command(synthetic, any_result):
    if any_result.verdict != "violated":
        return
    lines = synthetic.page(brief.violation(any_result)).split("\n")
    assert [line for line in lines if len(line) > 80 and "--pair" not in line and "--target" not in line] == []


def test_names_are_never_markup_or_control_sequences(synthetic):
    result = synthetic.make("hostile")
    for blocks in (([brief.summary([result])]), ([brief.pairs(result)]), (brief.violation(result))):
        text = synthetic.page(blocks)
        assert "\x1b" not in text and "\u202e" not in text and "\x00" not in text
        assert "\\x1b[31" in text.replace("\n", "").replace(" ", "")


@pytest.mark.parametrize(
    ("pair", "command"),
    [
        ("a|b", "'a|b'"),
        ("it's", """'it'"'"'s'"""),
        ("$(reboot) `x`", "'$(reboot) `x`'"),
        ("a\nb'\x1b\\", "$'a\\nb\\'\\x1b\\\\'"),
    ],
)
def test_the_command_quotes_the_pair_for_a_shell(synthetic, pair, command):
    text = synthetic.page(brief.violation(synthetic.result([synthetic.finding(ratio=1.5, id=pair)])))
    assert f"--pair {command} " in text and text.endswith("--target release.py:mechanism\n")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (950, "950"), (999, "999"), (1000, "1k"), (12_345, "12.3k"), (999_900, "1M"), (7_920_000, "7.92M")],
)
def test_counts_are_short(count, text):
    assert short_count(count) == text
