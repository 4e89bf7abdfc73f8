"""Views of where columns lie together."""

import numpy as np
import pytest

from dpaudit.features.views import Layout, View, choose_views, middle_and_scale


def rows(size=2_000, columns=3, seed=1):
    return np.random.default_rng(seed).normal(size=(size, columns)) * [1.0, 100.0, 1e-3][:columns]


def boxes(matrix, columns):
    kind = "boxes" if len(columns) == 2 else "boxes of three"
    return View(kind, columns, levels=tuple(middle_and_scale(matrix[:, k]) for k in columns))


@pytest.mark.parametrize("columns", [(0, 1), (2, 0, 1)])
def test_a_row_alone_has_the_code_that_it_has_among_others(columns):
    matrix = rows()
    view = boxes(matrix, columns)
    assert [view(matrix[k : k + 1])[0] for k in range(50)] == view(matrix)[:50].tolist()


def test_a_missing_number_is_in_no_box_and_infinite_ones_are_at_the_ends():
    matrix = np.array([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, -np.inf], [0.0, 0.0]])
    found = View("boxes", (0, 1), levels=((0.0, 1.0), (0.0, 1.0)))(matrix)
    assert np.isnan(found[0]) and np.isfinite(found[1:]).all() and found[2] == 0.0
    assert found[1] > found[3]  # what is far above is in the last box, and not in the first


def test_a_view_of_boxes_is_saved_and_read():
    view = boxes(rows(), (0, 2))
    assert View.from_dict(view.to_dict()) == view


def test_a_corner_that_no_column_tells_is_chosen():
    """The first view is of boxes: a window of 375 of 1,500 draws that leans by .4 is 15 deviations from even."""
    matrix = rows(4_000, 2, seed=3)
    sides = np.sign(matrix).prod(axis=1) * (np.abs(matrix) > np.median(np.abs(matrix), axis=0)).all(axis=1)
    labels = (np.random.default_rng(2).random(4_000) < 0.5 + 0.45 * sides).astype(int)
    kinds = [view.kind for view in choose_views(matrix, labels, Layout(2))]
    assert "boxes" in kinds
