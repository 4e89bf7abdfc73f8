"""Rules whose thresholds are the doubles next to 0 are said by 0 itself, and labels by plain numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.learning import rules
from dpaudit.learning.histograms import Remainder
from dpaudit.privacy.pairs import as_pairs, short_form
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.reports import beside
from dpaudit.results.side_findings import SideFinding

LEAST = math.nextafter(0.0, 1.0)


class Output:
    def describe(self):
        return "the output"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.0, math.inf, "guess b where it is below 0"),
        (-math.inf, -LEAST, "guess a where it is at least 0"),
        (LEAST, math.inf, "guess b where it is at most 0"),
        (-math.inf, LEAST, "guess a where it is above 4.94066e-324"),
        (-1.5, math.inf, "guess b where it is below -1.5"),
    ],
)
def test_a_threshold_beside_zero_is_said_by_zero(low, high, words):
    rule = rules.Rule(Output(), low, high, 1, Reading(1))
    assert rule.describe("a", "b") == f"Look at the output: {words}."
    side = 0 if low > -math.inf else 1  # what is said of 0 is what the rule guesses there
    guess = rule.guess_scores(np.array([0.0]))[0]
    assert (guess == side) == ("at least 0" in words or "at most 0" in words)


@pytest.mark.parametrize(
    ("sign", "high", "low", "words"),
    [
        (1, 0.25, 0.25, "guess a where it is above 0.25 (of whole numbers: odd numbers, such as 1); "
                        "guess b where it is below 0.25 (of whole numbers: even numbers, such as 0)"),
        (-1, 0.25, -math.inf, "guess b where it is above 0.25 (of whole numbers: odd numbers, such as 1)"),
        (1, 1.5, 0.0, "guess a where it is above 1.5; guess b where it is below 0"),
    ],
)  # fmt: skip
def test_a_remainder_modulo_2_is_said_by_the_numbers_it_is_of(sign, high, low, words):
    rule = rules.Rule(Remainder(2.0), low, high, sign, Reading(1))
    assert rule.describe("a", "b") == f"Look at the output modulo 2: {words}."
    # What the words say of 0 and 1 is what the rule guesses on them, and on other numbers like them.
    for outputs, word in (([0.0, 4.0, -2.0], "such as 0"), ([1.0, 7.0, -3.0], "such as 1")):
        guesses = set(rule.guess_scores(Remainder(2.0)(Outcomes(np.array(outputs)[:, None]))).tolist())
        for guess, name in ((1, "a"), (0, "b")):
            said = any(f"guess {name}" in part and word in part for part in words.split(";"))
            assert said == (guesses == {guess})
    assert "of whole" not in rules.Rule(Remainder(3.0), 0.5, 0.5, 1, Reading(1)).describe("a", "b")


def test_ranges_beside_zero_have_no_denormal_numbers_and_no_minus():
    assert rules._range(-math.inf, LEAST) == "at most 0"
    assert rules._range(-math.inf, -0.0) == "below 0"
    assert rules._range(LEAST, math.inf) == "above 0"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"a": np.float64(0.5)}, "{'a': 0.5}"),
        ((np.int64(3), np.bool_(True)), "(3, True)"),
        ([np.float32(1.5), np.str_("x")], "[1.5, 'x']"),
        (np.float64(2.0), "2.0"),
    ],
)
def test_labels_show_numbers_of_numpy_as_numbers(value, name):
    assert short_form(value) == name


def test_two_labels_that_only_the_kind_of_number_tells_apart_are_told_apart():
    (pair,) = as_pairs([({"a": np.float64(0.0)}, {"a": 0.0})])
    assert pair.x_id != pair.x_prime_id


def test_a_search_that_found_a_pair_says_what_it_found():
    found = SideFinding("pair_search", "found", "3 pairs were chosen.", None, {})
    assert beside.status_text(found) == "a violated pair found"
    assert beside.row(found)[:2] == ["Search for worse pairs of inputs", "a violated pair found"]
    other = SideFinding("timing", "found", "", 0.1, {})
    assert beside.status_text(other) == "found"
