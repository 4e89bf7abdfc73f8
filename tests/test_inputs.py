"""Inputs of an audit that are one, drawn once for all its pairs."""

from fractions import Fraction

import numpy as np
import pytest

import dpaudit
from dpaudit.privacy.inputs import distinct_inputs, identity_of
from dpaudit.privacy.pairs import as_pairs
from dpaudit.results.model import SAME_INPUT


def test_inputs_that_no_mechanism_can_tell_apart_are_one_but_a_pair_has_two():
    a, b = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    pairs = as_pairs([(a, b), (a.copy(), b.copy()), (b, b), ({"k": [1]}, {"k": [1]})])
    data, positions = distinct_inputs(pairs)
    assert positions == [(0, 1), (0, 1), (1, 2), (3, 4)]
    assert data[0] is a and data[1] is data[2] is b


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ([1], (1,)),
        (np.array([1]), np.array([1.0])),
        (np.array([[1, 2]]), np.array([1, 2])),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (object(), object()),
        ("1", 1),
        ([set()], [{}]),
        ([1], [True]),
    ],
)
def test_whatever_a_mechanism_can_tell_apart_has_another_identity(first, second):
    assert identity_of(first) != identity_of(second)
    assert identity_of([first]) != identity_of([second])


def test_an_input_that_holds_itself_is_like_itself_alone_and_is_audited():
    def holding_itself(value):
        data = {"value": value}
        data["self"] = [data]
        return data

    x, x_prime = holding_itself(0.0), holding_itself(3.0)
    assert identity_of(x) == identity_of(x) != identity_of(holding_itself(0.0))
    found = dpaudit.audit(lambda data, rng: data["value"] + rng.laplace(), "eps=1", [(x, x_prime)], samples=400, seed=1)
    assert found.verdict == "violated"  # a loss of 3: fails for one seed in many, at a fixed one never


def test_tables_are_told_apart_by_all_that_a_mechanism_may_read():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    names = [f"c{k}" for k in range(300)]
    of = [pandas.DataFrame({"a": pandas.Categorical(["c0"], [*names[:150], one, *names[150:]])}) for one in "xy"]
    assert identity_of(of[0]) != identity_of(of[1])  # the text of the type leaves the categories in the middle out
    table = pandas.DataFrame({"a": [1, 2]})
    others = [table.rename_axis(index="secret"), table.rename_axis(columns="secret"), table.copy()]
    others[-1].attrs["source"] = "secret"
    assert len({identity_of(one) for one in (table, *others)}) == 4
    assert identity_of(table) == identity_of(table.copy())


def test_equal_fractions_are_one_input_and_no_other_number_is():
    """Before, a pair of two equal fractions was no control: "not refuted", though nothing can be found of it."""
    half = [Fraction(1, 2), 0.5, np.float64(0.5), "1/2", Fraction(-1, 2), Fraction(1), 1, True]
    assert len({identity_of(one) for one in half}) == len(half)
    assert identity_of(Fraction(1, 2)) == identity_of(Fraction(2, 4))
    result = dpaudit.audit(lambda x, rng: float(x), "eps=1", [(Fraction(1, 2), Fraction(1, 2))], samples=20, seed=1)
    assert result.verdict == "inconclusive" and result.findings[0].notes[0] == SAME_INPUT


def test_low_bits_of_an_input_with_itself_are_not_looked_at():
    """Before, a leak of this pair "would have been found", which has none, and it took a place of those examined."""
    release = [lambda x, size, rng: x + rng.laplace(size=size), "eps=1"]
    alone = dpaudit.audit(*release, [(1.0, 1.0)], samples=1_000, seed=1).floating_point
    assert (alone.verdict, alone.message) == ("not_applicable", "There is no pair to examine.")
    beside = dpaudit.audit(*release, [(1.0, 1.0), (0.0, 1.0)], samples=1_000, seed=1).floating_point
    assert [pair.id for pair in beside.pairs] == ["0.0|1.0"] and beside.omitted == 0
