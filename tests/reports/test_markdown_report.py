"""The Markdown summary: below 900 kB whatever the result, and names that start no markup."""

from __future__ import annotations

import re

import pytest

from dpaudit.reports import scope
from dpaudit.reports.markdown import LIMIT, ROWS, escaped, render


def test_the_verdict_is_the_first_line(any_result):
    assert re.match(r"## (Violated|Error|Inconclusive|Not refuted): ", render(any_result))


def test_five_thousand_pairs_with_huge_names_stay_below_the_limit(synthetic):
    base = synthetic.finding(
        ratio=1.5, x="\u4e00" * 10**6, x_prime="y", x_id="\u4e00" * 10**5, id="\u4e00" * 10**5, message="m" * 10**6
    )
    result = synthetic.result([base] * 5000, not_asked=("n" * 1000,) * 5000, claim="c" * 10**6)
    assert len(render(result).encode()) < LIMIT
    assert render(result).count("violated |") == ROWS


def test_the_numbers_of_the_result_are_there(synthetic):
    text = render(synthetic.make("violated"))
    for fact in (
        "| 1.911 |",
        "7,920,000",
        "396 (8 violated, 39 not asked)",
        "dpaudit replay audit.json --pair 'Dresden|Mainz'",
    ):
        assert fact in text


def test_not_refuted_says_what_could_have_been_found(synthetic):
    assert "a loss of 1.25 nats or more" in render(synthetic.make("fixed"))


def test_errors_are_quoted(synthetic):
    assert "ValueError: scale must be positive, got -1.0." in render(synthetic.make("error"))


def test_what_was_not_assessed_is_named(any_result):
    text = render(any_result)
    for row in scope.NOT_LOOKED_AT:
        assert row.item in text


def test_tables_keep_their_columns_under_hostile_names(synthetic):
    for line in render(synthetic.make("hostile")).split("\n"):
        if line.startswith("| ") and "\\u202e" in line:
            bars = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))
            assert bars in (3, 4, 5, 7, 9)  # key figures, scope, beside the claim, pairs, floating point


def test_hostile_names_start_no_html_and_no_control_sequence(synthetic):
    prose = re.sub(r"^(`{3,})\n.*?\n\1$", "", render(synthetic.make("hostile")), flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"(?<!\\)<script", prose)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\ud800-\udfff]", render(synthetic.make("hostile")))


def test_code_fences_are_longer_than_any_run_of_backticks(synthetic):
    text = render(synthetic.result([synthetic.finding(ratio=1.5, id="```\n# not a heading ````")]))
    assert "\n`````\n" in text and "\n# not" not in text


@pytest.mark.parametrize(
    ("line", "safe"),
    [
        ("a|b", "a\\|b"),
        ("- x", "\\- x"),
        ("12. x", "12\\. x"),
        ("-0.5|0.5", "-0.5\\|0.5"),
        ("@team", "\\@team"),
        ("[a](b)", "\\[a\\]\\(b\\)"),
        ("https://example.org www.example.org", "https\\://example.org www\\.example.org"),
    ],
)
def test_markup_is_escaped(line, safe):
    assert escaped(line) == safe
