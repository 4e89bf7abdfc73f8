"""Every kind of view is tried, and gives a row one number: alone, among others, and with other views at once."""

import numpy as np
import pytest

from dpaudit.features import views
from dpaudit.features.views import KINDS, Layout, View, ViewKind, choose_views, proposals, values_at_once

SIZE = 400
RNG = np.random.default_rng(1)
LABELS = RNG.integers(0, 2, SIZE)
MATRIX = np.column_stack([
    np.round(RNG.normal(scale=50.0, size=SIZE), 2),  # a lattice of 0.01
    RNG.normal(scale=50.0, size=SIZE),
    RNG.integers(0, 35, SIZE),
    RNG.integers(0, 1_000, SIZE),
    RNG.integers(0, 30, SIZE),
    RNG.choice([-0.0, 0.0, 1.5], SIZE),
])  # fmt: skip


ODD = np.where(RNG.random(SIZE) < 0.9, np.mod(MATRIX[:, 2] + MATRIX[:, 3], 2.0), LABELS).astype(int)
FORMER = [View("two bits", (3,), 67.0), View("parity of two", (2, 3)), View("parity of three", (2, 3, 4))]


def tried():
    """All views that are looked at, of labels that a parity of two columns mostly tells."""
    layout = Layout(MATRIX.shape[1], groups=(tuple(range(MATRIX.shape[1])),))
    return [view for labels in (LABELS, ODD) for same in proposals(MATRIX, labels, layout) for view in same]


def of_kind(name):
    """Views of a kind on `MATRIX`, of as many columns."""
    found = [view for view in [*tried(), *FORMER] if view.kind == name]
    return [view for view in found if len(view.columns) == len(found[0].columns)]


def test_every_kind_is_tried():
    missing = sorted(set(KINDS) - {view.kind for view in [*tried(), *FORMER]})
    assert not missing, (
        f"{missing} of KINDS must be in proposals() of features/views.py, or MATRIX here must suit them."
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_row_has_one_number(name):
    """Validity: alone, among others, and with other views at once; the words take the names of the columns."""
    several = of_kind(name)[:200]
    at_once = values_at_once(several, MATRIX)
    for view, found in zip(several, at_once, strict=True):
        own = view(MATRIX)
        alone = np.concatenate([view(MATRIX[k : k + 1]) for k in range(20)])
        np.testing.assert_array_equal(own[:20], alone, f"{name}: a row alone against the row among others")
        np.testing.assert_array_equal(own, found, f"{name}: one view against many at once")
        assert view.describe([f"column {k}" for k in range(MATRIX.shape[1])])
        assert View.from_dict(view.to_dict()) == view


def test_zeros_of_two_signs_tell_labels_apart():
    """Where a column has no other numbers: a loss without end was called not refuted."""
    zeros = np.where(LABELS == 1, -0.0, 0.0)[:, None]
    assert "sign of zero" in {view.kind for view in choose_views(zeros, LABELS, Layout(1))}


@pytest.mark.parametrize("function", [lambda v, _: v - v.mean(), lambda v, _: np.argsort(np.argsort(v))])
def test_a_view_of_a_package_that_looks_at_other_rows_is_left_out(function, monkeypatch):
    centred, value = (ViewKind(one, "{0}", lambda *_: [((1,), 0.0)]) for one in (function, lambda v, _: -v))
    monkeypatch.setattr(views, "kinds_of_packages", lambda: {"centred": centred, "own": value})
    assert np.isfinite(View("centred", (1,))(MATRIX)).all()
    with pytest.warns(UserWarning, match="a view must give a row alone the number .* by the kind 'centred'"):
        assert "centred" not in {view.kind for view in choose_views(MATRIX, LABELS, Layout(MATRIX.shape[1]))}


def test_decimals_are_the_fewest_that_give_the_number():
    numbers = np.array([0.0, 3.0, -2.5, 0.125, 1 / 3, 1e16, -1e297, np.inf, np.nan])
    assert View("decimals", (0,))(numbers[:, None]).tolist() == [0.0, 0.0, 1.0, 3.0, 13.0, 0.0, 0.0, 13.0, 13.0]


def test_a_missing_number_is_in_no_box_and_infinite_ones_are_at_the_ends():
    matrix = np.array([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, -np.inf], [0.0, 0.0]])
    found = View("boxes", (0, 1), levels=((0.0, 1.0), (0.0, 1.0)))(matrix)
    assert np.isnan(found[0]) and np.isfinite(found[1:]).all() and found[2] == 0.0
    assert found[1] > found[3]  # what is far above is in the last box, and not in the first


def test_a_corner_that_no_column_tells_is_chosen():
    """The first view is of boxes: a window of 375 of 1,500 draws that leans by .4 is 15 deviations from even."""
    matrix = np.random.default_rng(3).normal(size=(4_000, 2)) * [1.0, 100.0]
    sides = np.sign(matrix).prod(axis=1) * (np.abs(matrix) > np.median(np.abs(matrix), axis=0)).all(axis=1)
    labels = (np.random.default_rng(2).random(4_000) < 0.5 + 0.45 * sides).astype(int)
    assert "boxes" in {view.kind for view in choose_views(matrix, labels, Layout(2))}
