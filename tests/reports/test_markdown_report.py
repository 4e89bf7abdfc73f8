"""The Markdown summary: below 900 kB whatever the result, and names that start no markup."""

import re
from functools import partial

import pytest

from dpaudit import reports
from dpaudit.reports.markdown import LIMIT, MAX_ROWS, escaped

text_of = partial(reports.render, format="md")


def test_five_thousand_pairs_with_huge_names_stay_below_the_limit(synthetic):
    base = synthetic.finding(
        ratio=1.5, x="\u4e00" * 10**6, x_prime="y", x_id="\u4e00" * 10**5, id="\u4e00" * 10**5, message="m" * 10**6
    )
    result = synthetic.result([base] * 5000, not_asked=("n" * 1000,) * 5000, claim="c" * 10**6)
    assert len(text_of(result).encode()) < LIMIT
    assert text_of(result).count("violated |") <= 3 * MAX_ROWS


def test_tables_keep_their_columns_under_hostile_names(synthetic):
    for line in text_of(synthetic.make("hostile")).split("\n"):
        if line.startswith("| ") and "\\u202e" in line:
            bars = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))
            assert bars in (2, 3, 4, 5, 6, 8, 9, 10, 13)  # of the tables of a report


def test_code_fences_are_longer_than_any_run_of_backticks(synthetic):
    text = text_of(synthetic.result([synthetic.finding(ratio=1.5, id="```\n# not a heading ````")]))
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


def test_a_table_under_a_heading_of_its_name_has_no_caption(synthetic):
    text = reports.render(synthetic.make("planted"), "md")
    assert "## Pairs, the worst first\n\n| pair |" in text and text.count("Pairs, the worst first") == 1
