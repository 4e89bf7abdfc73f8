"""Tallies: what a vector of usual values and other numbers is read as, and what that finds."""

import functools
import math

import numpy as np
import pytest

from dpaudit.bench.sparse_vector import BELOW, STOPPED, released
from dpaudit.learning.fitted_partitions import fit_partitions
from dpaudit.learning.fitted_scores import fit_scores
from dpaudit.learning.scores import Viewed, score_from_dict
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.tallies import FARTHEST, Tally, fit_logistic
from dpaudit.reading.vectors import Quadratic


def drawn(size, rng):
    """A sparse vector that releases what it compared, on ten answers of 1 and of 2."""
    mechanism = functools.partial(released, start=1.0, threshold=4.0, query=4.0, cut_off=1)
    return [Outcomes(mechanism(np.full(10, answer), size, rng)) for answer in (1.0, 2.0)]


def test_a_tally_counts_usual_values_and_takes_the_mean_of_the_others():
    view = Tally(np.array([0.0, math.nan]), 1.0, 2.0, 4)
    rows = [[0, 0, 3, 7], [math.nan, 0, 1, -3], [0, 0, math.nan, 0], [5, 5, math.inf, -math.inf], [1e300, 0, 0, 0]]
    shown = view(Outcomes(np.array(rows, dtype=float))).numbers
    assert shown.tolist() == [
        [2, 0, (1.0 + 3.0) / 2, 0],
        [1, 1, (0.0 - 2.0) / 2, -1.0],
        [3, 1, 0, 0],
        [0, 0, (2.0 + 2.0 + FARTHEST - FARTHEST) / 4, 0],
        [3, 0, FARTHEST, 0],
    ]


def test_a_nan_that_is_no_usual_value_counts_as_the_centre():
    shown = Tally(np.array([0.0]), 1.0, 2.0, 2)(Outcomes(np.array([[math.nan, 5.0]]))).numbers
    assert shown.tolist() == [[0, 1.0, 0]]


def test_a_tally_of_no_outcomes_has_no_rows():
    assert Tally(np.array([0.0]), 1.0, 2.0, 2)(Outcomes(np.empty((0, 2)))).numbers.shape == (0, 3)


def test_each_output_is_read_by_itself():
    rng = np.random.default_rng(20_261_101)
    first, second = drawn(300, rng)
    view = Tally.between(first, second)
    score = Viewed(view, fit_logistic(view(first), view(second)))
    whole = score(first)
    assert [float(score(first.rows(slice(k, k + 1)))[0]) for k in range(300)] == whole.tolist()


def test_what_is_written_is_read_back():
    rng = np.random.default_rng(20_261_102)
    first, second = drawn(500, rng)
    view = Tally.between(first, second)
    score = Viewed(view, fit_logistic(view(first), view(second)))
    again = score_from_dict(score.to_dict(), None, None, None)
    assert np.array_equal(again(first), score(first)) and again.describe() == score.describe()
    assert "-2000, -1000" in score.describe()
    assert view.name_of(0) == "how many of the 10 coordinates of the output are -2000"
    assert view.name_of(2) == "the mean of the coordinates of the output that are none of -2000, -1000"
    assert "where it is below" in view.name_of(3)


def test_a_spread_that_is_none_is_refused():
    record = Tally(np.array([0.0]), 1.0, 2.0, 2).to_dict() | {"spread": (0.0).hex()}
    with pytest.raises(ValueError, match=r"spread must be positive, got 0\.0"):
        Tally.from_dict(record)


def test_there_is_a_tally_only_of_usual_values_with_others_between():
    rng = np.random.default_rng(20_261_103)
    numbers, bits = Outcomes(rng.normal(size=(400, 5))), Outcomes(rng.integers(0, 2, size=(400, 5)).astype(float))
    assert Tally.between(numbers, numbers) is None and Tally.between(bits, bits) is None
    assert Tally.between(numbers.rows(slice(0, 0)), numbers.rows(slice(0, 0))) is None
    mixed = Outcomes(np.where(bits.numbers > 0.0, numbers.numbers, -1.0))
    assert Tally.between(mixed, mixed).values.tolist() == [-1.0]
    assert Tally.between(Outcomes(mixed.numbers[:, :1]), Outcomes(mixed.numbers[:, :1])) is None
    stopped = Outcomes(np.where(bits.numbers > 0.0, numbers.numbers, math.nan))
    assert np.isnan(Tally.between(stopped, stopped).values).tolist() == [True]
    far = Outcomes(np.where(bits.numbers > 0.0, 1e308 * np.sign(numbers.numbers), 0.0) * (1.0 + 0.1 * rng.random()))
    assert Tally.between(far, far) is None  # all of them are usual


def test_the_usual_values_of_a_sparse_vector_are_what_it_fills_in():
    first, second = drawn(2_000, np.random.default_rng(20_261_104))
    assert sorted(Tally.between(first, second).values.tolist()) == [STOPPED, BELOW]


def test_a_logistic_form_follows_the_log_ratio_of_normal_laws():
    # N(0, 1) x N(0, 1) against N(0.5, 1) x N(0, 1.5^2): their log ratio is a quadratic form. With 20,000 draws a side
    # each of 5 coefficients has a standard error below 0.02, so the correlation is below 0.99 with probability < 1e-6.
    rng = np.random.default_rng(20_261_105)
    first = rng.normal(size=(20_000, 2))
    second = rng.normal(size=(20_000, 2)) * [1.0, 1.5] + [0.5, 0.0]
    form = fit_logistic(Outcomes(first), Outcomes(second))
    fresh = rng.normal(size=(5_000, 2)) * 1.2
    truth = -0.5 * fresh[:, 0] ** 2 + 0.5 * (fresh[:, 0] - 0.5) ** 2 - 0.5 * fresh[:, 1] ** 2 * (1.0 - 1.5**-2)
    assert np.corrcoef(form(Outcomes(fresh)), truth)[0, 1] > 0.99


def test_a_logistic_form_of_what_does_not_vary_or_is_not_finite_is_none():
    same, bad = Outcomes(np.ones((50, 2))), Outcomes(np.full((50, 2), math.inf))
    assert fit_logistic(same, same) is None and fit_logistic(bad, same) is None


def test_equal_columns_share_what_they_say():
    rng = np.random.default_rng(20_261_106)
    column = rng.normal(size=(3_000, 1))
    first, second = (Outcomes(np.repeat(column + shift, 3, axis=1)) for shift in (0.0, 0.3))
    form = fit_logistic(first, second)
    assert np.allclose(form.vector, form.vector[0], rtol=1e-6)  # the ridge is the same for each of them


def test_of_an_early_stop_the_tally_tells_most():
    """Growth of wealth against the line, at the best two thresholds on fresh draws: 8,000 are fitted on."""
    rng = np.random.default_rng(20_261_107)
    first, second = drawn(8_000, rng)
    fresh = drawn(400_000, rng)
    epsilon = 0.5
    allowed = 1.0 / (1.0 + math.exp(-epsilon))
    grown = {}
    for score in fit_scores(first, second, halves=False):
        ones, zeros = (np.sort(score.score(score.reading(side))) for side in fresh)
        cuts = np.unique(np.quantile(np.concatenate([ones, zeros]), 1.0 - np.geomspace(1e-3, 0.5, 30)))
        right, wrong = (len(side) - np.searchsorted(side, cuts, side="right") for side in (ones, zeros))
        mass, share = (right + wrong) / 800_000, right / np.maximum(right + wrong, 1)
        share = np.clip(share, allowed, 1.0 - 1e-12)
        growth = mass * (share * np.log(share / allowed) + (1 - share) * np.log((1 - share) / (1 - allowed)))
        is_tally = isinstance(score.score, Viewed) and isinstance(score.score.view, Tally)
        grown[is_tally] = max(grown.get(is_tally, 0.0), float(growth.max()))
    # Each is known to about a tenth (some thousand guesses); without the tally the best of the others has under a half.
    assert grown[True] > 2.0 * grown[False]


def test_a_tally_is_bet_on_in_free_order_alone():
    first, second = drawn(2_000, np.random.default_rng(20_261_108))
    parts = fit_partitions(first, second)
    tallies = [part for part in parts if isinstance(getattr(part.cells.score, "view", None), Tally)]
    assert [part.order for part in tallies] == ["free"] and isinstance(tallies[0].cells.score.score, Quadratic)


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1.0, 5e307])
def test_a_tally_of_tiny_and_huge_numbers_is_read_back_or_is_none(unit):
    rng = np.random.default_rng(20_261_109)
    numbers = rng.integers(-1, 3, size=(2_000, 5)) * unit * rng.integers(0, 2, size=(2_000, 5))
    numbers += unit * 0.5 * rng.random((2_000, 5)) * (numbers != 0.0)
    view = Tally.between(Outcomes(numbers), Outcomes(numbers))
    if view is not None:
        again = Tally.from_dict(view.to_dict())
        shown = again(Outcomes(numbers)).numbers
        assert np.all(np.isfinite(shown)) and np.array_equal(shown, view(Outcomes(numbers)).numbers)
    assert (view is None) == (unit == 5e-324)  # of the least double half is nothing
