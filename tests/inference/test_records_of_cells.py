"""A rule of a table of pairs keeps its record, whichever side it guesses."""

import pytest

from dpaudit.inference.exact import CellTest
from dpaudit.learning.partition import CellScore
from dpaudit.privacy.claims import PureDP


@pytest.mark.parametrize(("plus", "minus"), [((1,), ()), ((), (2,)), ((1,), (2,))])
def test_the_counts_and_the_p_value_are_those_of_the_record(plus, minus):
    test = CellTest(PureDP(1.0), 400, CellScore(None, plus, minus), 0.0)
    test.start(0.05)
    test.take(90, 2, 2.5)
    assert test.counts == (90, 2, 308) and test.lower == 2.5
    assert test.p_value < 1e-6  # 90 of 92 right where 73% are allowed
