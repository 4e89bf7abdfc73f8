"""Facts of inputs: what is known of them, and that anything else has none."""

import numpy as np
import pytest

from dpaudit.reading.facts import numbers_of, points_of, scalars_of


def test_a_dataset_has_a_length_and_what_its_numbers_have():
    assert scalars_of([1.0, 2.0, 6.0]) == {"length": 3.0, "sums": 9.0, "means": 3.0, "smallest": 1.0, "largest": 6.0}
    assert scalars_of(4) == {"number": 4.0}


def test_a_table_has_points_of_its_columns():
    table = [[1.0, 2.0], [3.0, 6.0]]
    points = points_of(table, 2)
    assert points["means"] == (2.0, 4.0) and points["largest"] == (3.0, 6.0)
    assert points_of({"a": [1.0, 3.0], "b": [2.0, 6.0]}, 2) == points
    pandas = pytest.importorskip("pandas")
    assert points_of(pandas.DataFrame({"a": [1.0, 3.0], "b": [2.0, 6.0]}), 2) == points


def test_a_vector_is_a_point_of_its_own():
    assert points_of((0.5, -1.0, 2.0), 3) == {"numbers": (0.5, -1.0, 2.0)}


@pytest.mark.parametrize(
    "value", [None, "text", b"12", object(), [[1], [1, 2]], ["a", "b"], [np.nan, 1.0], [], {}, 2**2000]
)
def test_what_is_no_finite_number_has_none(value):
    assert numbers_of(value) is None
    assert points_of(value, 2) == {}
