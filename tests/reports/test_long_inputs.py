"""Pairs whose names and inputs share a long beginning are told apart in every format for people."""

import html
import math

import numpy as np
import pytest

import dpaudit
from dpaudit import reports
from dpaudit.reports import brief, terminal
from dpaudit.reports.cases import cases
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.input_diff import apart
from dpaudit.reports.wording import name_text

LONG = {f"key {k}": k for k in range(60)}


def words(value):
    """Say what a person reads: entities and Markdown's escapes undone, spaces that wrap a line as one."""
    return " ".join(html.unescape(value).replace("<wbr>", "").replace("\\", "").split())


def of_pairs(synthetic, pairs):
    """A result of these pairs, all of them violated."""
    named = dpaudit.privacy.pairs.as_pairs(pairs)
    findings = [
        synthetic.finding(p.x_id, p.x_prime_id, 1.9 - 0.1 * k, id=p.id, x=p.x, x_prime=p.x_prime)
        for k, p in enumerate(named)
    ]
    return synthetic.result(findings, claim="eps=1")


def test_the_number_at_the_end_of_a_name_is_kept(synthetic):
    alike = [(LONG, {**LONG, "key 57": "b" * 300 + str(k)}) for k in range(1, 13)]  # cut before they differ
    long_pairs = of_pairs(synthetic, alike)
    page = words(reports.render(long_pairs, "html"))
    ranked = page.split('id="pairs"')[1]
    compliance = words(reports.render(long_pairs, "html", "compliance"))
    markdown = words(reports.render(long_pairs, "md"))
    table = "".join(synthetic.page([brief.pairs(long_pairs, limit=12)]).split())
    for k in range(2, 13):
        assert f"#{k}</td>" in ranked and f"#{k}</td>" in compliance and f"#{k} |" in markdown and f"#{k}" in table
    for k in range(2, 6):
        assert f"#{k}: " in page.split('id="figure-wealth"')[1].split("</figure>")[0]  # the legend of the wealth curves


class Unprintable:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("x", "x_prime", "said"),
    [
        ([0] * 50, [0] * 40 + [1] + [0] * 9, "x and x′ differ: row 40: 0 becomes 1"),
        ({"a": "…" * 99, "b": 1}, {"a": "…" * 99}, "x and x′ differ: 'b' removed: 1"),
        ({"a": "…" * 99}, {"a": "…" * 99, "b": 1}, "x and x′ differ: 'b' added: 1"),
        (np.zeros(99), np.eye(1, 99, 60)[0], "x and x′ differ: [60]: 0.0 becomes 1.0"),
        ({"a": {"b": [*LONG, 1]}}, {"a": {"b": [*LONG, 2]}}, "x and x′ differ: 'a': 'b': row 60: 1 becomes 2"),
        ("x" * 200 + "y", "x" * 200 + "z", "x and x′ differ: from character 200, 'y' becomes 'z'"),
        ([0] * 60, [0] * 56 + [1, 2, 3, 4], "row 58: 0 becomes 3; and 1 more"),
        ([0] * 60, [0] * 60, ""),
        ([*range(50)], [*range(20), *range(21, 50)], "x and x′ differ: row 20 removed: 20"),
        (np.eye(9), np.delete(np.eye(9), 4, axis=0), "x and x′ differ: row 4 removed: array([0., 0., 0., 0., 1., 0., "),
        ("x", "y", ""),
        ([math.nan] * 30, [float("nan") for _ in range(29)], " removed: nan"),
        ([1] * 30, [True] * 30, "row 0: 1 becomes True"),
        ([{"a": 1}] * 30, [{"a": 1}] * 9 + [{"a": 2}] + [{"a": 1}] * 20, "row 9: a=1 becomes 2"),
        ([Unprintable()] * 50, [Unprintable()] * 49, ""),
        (np.zeros(100_000), np.ones(100_000), ""),  # too many to be looked at one by one
        ([[0.0] * 20] * 1_000, [[0.0] * 20] * 999, ""),
    ],
)
def test_places_where_inputs_differ(x, x_prime, said):
    found = apart(x, x_prime, 20)
    assert said in found and bool(found) == bool(said)


def test_a_name_is_cut_in_its_middle_and_stays_within_its_width(synthetic):
    assert name_text("short#2", 20) == "short#2"
    for width in (9, 20, 60, 120):
        shown = name_text(synthetic.hostile + "#10", width)
        assert len(shown) <= width and shown.isprintable() and shown.endswith("#10")
    assert len(name_text("\x1b" * 500, 60)) <= 60


def test_what_is_masked_is_named_as_masked(recwarn):
    masked = np.ma.array([1.5, 2.0, 3.0], mask=[0, 1, 0])
    short = dpaudit.privacy.pairs.short_form
    assert (short(masked), short(masked[:0]), short(np.ma.array(2.0, mask=True))) == ("[1.5, None, 3.0]", "[]", "None")
    assert not recwarn.list


# Neighbours of a user's first audit: one record of ten, behind a beginning that both names share.
ROWS = [[0.2, 0.3]] * 9
NEIGHBOURS = ([*ROWS, [0.0, 0.0]], [*ROWS, [1.0, 1.0]])


def test_rules_speak_of_x_and_x_prime_where_names_are_cut():
    def mean(rows, size, rng):
        return np.mean(rows) + rng.laplace(scale=0.05, size=size)  # a number, of which a threshold tells most

    result = dpaudit.audit(mean, "eps=1", [NEIGHBOURS], seed=1, samples=20_000, mode="fixed")
    (finding,) = result.findings
    assert finding.id == f"{finding.x_id}|{finding.x_prime_id}"
    assert finding.x_prime_id == "row 9: [0.0, 0.0] becomes [1.0, 1.0]"
    assert result.verdict == "violated" and "guess x where" in finding.witness.description
    assert "guess x′ where" in finding.witness.description
    assert result.floating_point.verdict == "leaks" and " on x, " in result.floating_point.pairs[0].description
    assert "…" not in finding.witness.description + result.floating_point.pairs[0].description
    differ = "x and x′ differ: row 9: [0.0, 0.0] becomes [1.0, 1.0]"
    for name in ("html", "md"):
        assert differ in words(reports.render(result, name))
    assert any(differ in case.message for case in cases(Dossier.of(result)))  # JUnit, SARIF
    assert words(terminal.plain(brief.violation(result))).count(differ) == 1


def test_names_that_tell_the_inputs_apart_stay_in_rules():
    pair = dpaudit.privacy.pairs.Pair
    assert pair([0], [1]).said == ("[0]", "[1]")
    assert pair(*NEIGHBOURS, "", "Ann out", "Ann in").said == ("Ann out", "Ann in")
    assert pair(*NEIGHBOURS).said == pair([1], NEIGHBOURS[0]).said == ("x", "x′")


def test_tables_are_told_apart_by_the_name_of_the_second_and_not_by_their_printed_forms():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame({"age": range(30)})
    assert apart(table, table.assign(age=table["age"].where(table["age"] > 0, 7))) == ""
    assert dpaudit.Pair(table, table.iloc[1:]).x_prime_id == "row 0 removed: age=0"
