"""Pairs whose names and inputs share a long beginning are told apart in every format for people."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("x", "x_prime", "said"),
    [
        ([0] * 50, [0] * 40 + [1] + [0] * 9, "x and x′ differ at [40]: 0 against 1"),
        ({"a": "…" * 99, "b": 1}, {"a": "…" * 99}, "x and x′ differ at ['b']: 1 against nothing"),
        ({"a": "…" * 99}, {"a": "…" * 99, "b": 1}, "x and x′ differ at ['b']: nothing against 1"),
        (np.zeros(99), np.eye(1, 99, 60)[0], "x and x′ differ at [60]: "),
        ({"a": {"b": [*LONG, 1]}}, {"a": {"b": [*LONG, 2]}}, "x and x′ differ at ['a']['b'][60]: 1 against 2"),
        ("x" * 200 + "y", "x" * 200 + "z", f"x and x′ differ …{'x' * 20}y against …{'x' * 20}z"),
        ([0] * 60, [0] * 56 + [1, 2, 3, 4], "at [58]: 0 against 3; and in more places"),
        ([0] * 60, [0] * 60, ""),
        ([0] * 50, [0] * 8, "x and x′ differ at [8]: 0 against nothing; at [9]: 0 against nothing"),
        ([*range(50)], [*range(20), *range(21, 50)], "x and x′ differ at [20]: 20 against nothing"),
        ([1] * 10, [1] * 10 + [2], "x and x′ differ at [10]: nothing against 2"),
        ([*range(10)], [9, *range(8)], "at [0]: 0 against 9; at [1]: 1 against 0; at [2]: 2 against 1; and in more"),
        (np.eye(9), np.delete(np.eye(9), 4, axis=0), "x and x′ differ at [4]: array([0., 0., 0., 0., 1., 0., "),
        ("x", "y", ""),
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


ROWS_OF_FLOATS = np.random.default_rng(0).normal(size=(200_000, 20))


def test_neighbours_in_large_arrays_are_compared_as_a_whole(monkeypatch):
    monkeypatch.setattr("dpaudit.reports.input_diff._Comparison.are_different", None)  # nothing is compared one by one
    rows = ROWS_OF_FLOATS.copy()
    rows[[7, 900]] = math.nan
    removed = apart(rows, np.delete(rows, 500, axis=0))
    assert removed.startswith("x and x′ differ at [500]: array([") and removed.endswith(" against nothing")
    assert "at [500]: nothing against array([" in apart(np.delete(rows, 500, axis=0), rows)
    replaced = rows.copy()
    replaced[199_999, 3] = 9.0
    assert apart(rows, replaced).endswith("against 9.0") and "at [199999][3]: " in apart(rows, replaced)
    numbers = rows.ravel()[:1_000_000]
    assert apart(numbers, np.delete(numbers, 500)) == f"x and x′ differ at [500]: {numbers[500]} against nothing"
    assert "; and in more places" in apart(rows, rows + 1.0)


def test_rows_that_are_not_shown_are_never_printed(monkeypatch):
    printed = []
    shown = lambda value: printed.append(value) or repr(value)  # noqa: E731
    monkeypatch.setattr("dpaudit.reports.input_diff.repr", shown, raising=False)
    apart(np.eye(99), np.delete(np.eye(99), 4, axis=0))
    assert len(printed) == 1


def test_large_lists_are_compared_up_to_a_number_of_entries():
    table = ROWS_OF_FLOATS[:100_000].tolist()
    assert "at [5]: [" in apart(table, table[:5] + table[6:])
    replaced = [list(row) for row in table]
    replaced[7][3] = 9.0
    assert "at [7][3]: " in apart(table, replaced)
    numbers = ROWS_OF_FLOATS.ravel()[:1_000_000].tolist()
    assert apart(numbers, numbers[1:]) == apart([numbers, 0], [numbers[1:], 0]) == ""


class Unprintable:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("x", "x_prime", "said"),
    [
        ([math.nan] * 30, [float("nan") for _ in range(29)], "at [29]: nan against nothing"),
        ([1] * 30, [True] * 30, "at [0]: 1 against True"),
        ([0.0] * 30 + [1.0], [-0.0] * 30 + [2.0], "differ at [30]: 1.0 against 2.0"),
        ([0.0] * 30 + [1.0], [-0.0] * 30 + [1.0], ""),
        ([np.float32(0.0)] * 30 + [1.0], [np.float32(-0.0)] * 30 + [2.0], "differ at [30]: 1.0 against 2.0"),
        (np.array([0.0] * 30 + [1.0]), np.array([-0.0] * 30 + [2.0]), "differ at [30]: 1.0 against 2.0"),
        ([[1, 2]] * 30, [[1, 2]] * 29 + [[1, True]], "at [29][1]: 2 against True"),
        ([{"a": 1}] * 30, [{"a": 1}] * 9 + [{"a": 2}] + [{"a": 1}] * 20, "at [9]['a']: 1 against 2"),
        ([{"a": 1}] * 30 + [{"a": 2}], [{"a": 1}] * 30, "at [30]: {'a': 2} against nothing"),
        ([np.arange(5_000)] * 30, [np.arange(5_000)] * 29 + [np.arange(5_000) // 2_500], "at [29][1]: 1 against 0"),
        (np.array([(1, math.nan)] * 30, "i8,f8"), np.array([(1, math.nan)] * 29 + [(2, 0.0)], "i8,f8"), "at [29]: (1,"),
        (np.array(["a"] * 30 + ["bb"]), np.array(["a"] * 30), "at [30]: bb against nothing"),
        (np.array([[1], 2] * 15, object), np.array([[1], 2] * 14 + [[1], 3], object), "at [29]: 2 against 3"),
        (np.zeros((30, 0)), np.zeros((29, 0)), "at [29]: array([], dtype=float64) against nothing"),
        (np.ma.array(range(30), mask=[0] * 30), np.ma.array(range(30), mask=[0] * 29 + [1]), "at [29]: 29 against "),
        (np.arange(30), np.arange(30.0), "x and x′ differ array([ 0,  1,"),
        ([Unprintable()] * 50, [Unprintable()] * 49, ""),
        ([Unprintable() for _ in range(50)], [Unprintable() for _ in range(50)], ""),
    ],
)
def test_values_of_many_kinds(x, x_prime, said):
    found = apart(x, x_prime, 20)
    assert said in found and bool(found) == bool(said)


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
        return np.mean(rows, axis=0) + rng.laplace(scale=0.1, size=(size, 2))

    result = dpaudit.audit(mean, "eps=1", [NEIGHBOURS], seed=1, samples=20_000, mode="fixed")
    (finding,) = result.findings
    assert finding.id == f"{finding.x_id}|{finding.x_prime_id}"
    assert finding.x_prime_id == "row 9: [0.0, 0.0] becomes [1.0, 1.0]"
    assert result.verdict == "violated" and "guess x where" in finding.witness.description
    assert "guess x′ where" in finding.witness.description
    assert result.floating_point.verdict == "leaks" and " on x, " in result.floating_point.pairs[0].description
    assert "…" not in finding.witness.description + result.floating_point.pairs[0].description
    differ = "x and x′ differ at [9][0]: 0.0 against 1.0; at [9][1]: 0.0 against 1.0"
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
