"""Differences in words, where more than one way of saying them is right."""

import math

import pytest

from dpaudit.privacy.differences import difference


def test_a_replaced_row_that_equals_a_neighbour_is_one_change():
    assert difference([0, 0, 0, 0], [1, 0, 0, 0]) == "row 0: 0 becomes 1"


def test_a_moved_row_stays_one_that_is_removed_and_added():
    assert difference([1, 2, 3, 4], [2, 3, 4, 1]) == "row 0 removed: 1; row 3 added: 1"


def test_a_column_that_has_another_type_is_said_once_and_not_in_each_row():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame({"age": [31, 44, 67], "visits": [2, 0, 5]})
    more = pandas.concat([table, pandas.DataFrame({"age": [math.nan], "visits": [1]})], ignore_index=True)
    recast = "column age of int64 becomes float64"
    assert difference(table, more) == f"row 3 added: age=nan, visits=1; {recast}"
    assert difference(table, table.astype({"age": float})) == recast
    assert difference(table, table.astype({"age": str})).startswith("row 0: age=31 becomes '31'")
