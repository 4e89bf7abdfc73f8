"""Differences in words, where more than one way of saying them is right."""

from dpaudit.privacy.differences import difference


def test_a_replaced_row_that_equals_a_neighbour_is_one_change():
    assert difference([0, 0, 0, 0], [1, 0, 0, 0]) == "row 0: 0 becomes 1"


def test_a_moved_row_stays_one_that_is_removed_and_added():
    assert difference([1, 2, 3, 4], [2, 3, 4, 1]) == "row 0 removed: 1; row 3 added: 1"
