"""Pairs: names without addresses, unique ids, and every refusal."""

import math

import numpy as np
import pytest

from dpaudit.errors import DpauditNoteWarning, UsageError
from dpaudit.privacy.pairs import AllPairs, Pair, all_pairs, as_pairs, short_form


def test_a_pair_is_named_after_its_inputs():
    pair = Pair(0.0, [1, 2])
    assert (pair.id, pair.x_id, pair.x_prime_id) == ("0.0|[1, 2]", "0.0", "[1, 2]")
    assert Pair(0, 1, x_id="a", x_prime_id="b").id == "a|b"
    assert Pair(0, 1, id="flip").id == "flip"


def test_a_short_form_is_one_line_of_bounded_width():
    assert short_form("word " * 30) == "'" + ("word " * 30)[:38] + "…"
    assert "\n" not in short_form(np.zeros((40, 40)))
    assert len(short_form(np.zeros((40, 40)), width=12)) == 12
    assert short_form(np.zeros(3)) == "[0.,0.,0.]"


def test_a_numpy_scalar_is_named_like_the_python_number():
    assert short_form(np.float64(0.5)) == short_form(np.array(0.5)) == "0.5"
    assert short_form(math.nan) == "nan"


def test_pairs_come_from_tuples_lists_rows_and_pairs():
    own = Pair(5, 6, id="own")
    pairs = as_pairs([(0, 1), [1, 2], np.array([2, 3]), own])
    assert [(pair.x, pair.x_prime) for pair in pairs] == [(0, 1), (1, 2), (2, 3), (5, 6)]
    assert pairs[3] is own


def test_a_generator_of_pairs_is_read_once():
    assert len(as_pairs((i, i + 1) for i in range(3))) == 3


def test_pairs_of_the_same_name_get_numbers_that_stay_unique():
    pairs = as_pairs([(0, 1), Pair(8, 9, id="0|1#2"), (0, 1), (0, 1)])
    assert [pair.id for pair in pairs] == ["0|1", "0|1#2", "0|1#3", "0|1#4"]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (3, r"pairs must be a list of \(x, x_prime\), got 3\."),
        ([], r"pairs must name at least one pair of inputs, got none\."),
        ((0.0, 1.0), r"pairs must be a list of \(x, x_prime\), got 0\.0 at position 0\. One pair is a list of one: "),
        ("0,1", r"pairs must be a list of \(x, x_prime\), got the text '0,1'\. Write pairs=\[\(0, 1\)\]\."),
        ([(0, 1), (0, 1, 2)], r"got \(0, 1, 2\) at position 1\."),
        (["ab"], r"got 'ab' at position 0\."),
        ([np.array(1.0)], r"got 1\.0 at position 0\."),
    ],
)
def test_what_is_no_list_of_pairs_is_refused(pairs, message):
    with pytest.raises(UsageError, match=message):
        as_pairs(pairs)


def test_all_pairs_lists_each_unordered_pair_once():
    pairs = all_pairs(["a", "b", "c", "d"], ids=["1", "2", "3", "4"])
    assert [pair.id for pair in pairs] == ["1|2", "1|3", "1|4", "2|3", "2|4", "3|4"]
    assert (pairs[4].x, pairs[4].x_prime) == ("b", "d")


def test_all_pairs_of_inputs_that_look_alike_have_unique_ids():
    inputs = [np.zeros(100), np.zeros(100), np.zeros(100)]
    assert len({pair.id for pair in all_pairs(inputs)}) == 3


def test_all_pairs_refuses_ids_that_do_not_name_the_inputs():
    with pytest.raises(UsageError, match=r"ids must be as many as inputs, got 1 ids for 2 inputs\."):
        all_pairs([0, 1], ids=["a"])
    with pytest.raises(UsageError, match=r"ids must be unique, got 'a' twice\."):
        all_pairs([0, 1], ids=["a", "a"])
    with pytest.raises(UsageError, match=r"inputs must be at least two, got 1\."):
        all_pairs([0])


def test_many_pairs_are_made_when_they_are_looked_at():
    pairs = all_pairs(list(range(100)))
    assert isinstance(pairs, AllPairs)
    assert len(pairs) == 4_950
    listed = list(pairs)
    assert [pairs[k].id for k in (0, 98, 99, -1)] == ["0|1", "0|99", "1|2", "98|99"]
    assert [pair.id for pair in pairs[97:100]] == [pair.id for pair in listed[97:100]] == ["0|98", "0|99", "1|2"]
    with pytest.raises(IndexError):
        pairs[4_950]


def test_one_pair_of_lists_without_its_brackets_is_told():
    with pytest.warns(DpauditNoteWarning, match=r"the 2 pairs 1\|2 and 3\|4\. For one pair of two lists"):
        pairs = as_pairs(([1, 2], [3, 4]))
    assert [pair.id for pair in pairs] == ["1|2", "3|4"]


@pytest.mark.parametrize(
    ("pairs", "ids"),
    [([([1, 2], [3, 4])], ["[1, 2]|[3, 4]"]), ([[1, 2], [3, 4]], ["1|2", "3|4"]), (((1, 2), (3, 4)), ["1|2", "3|4"])],
)
def test_pairs_in_brackets_of_their_own_are_what_they_say(pairs, ids, recwarn):
    assert [pair.id for pair in as_pairs(pairs)] == ids and not recwarn.list
