"""Counted views: each value, and what is no number, falls into the cell that the trees on counts know it by."""

import math

import numpy as np
import pytest

import dpaudit
from dpaudit.features.outcomes import read_outputs
from dpaudit.features.views import View
from dpaudit.inference.learning_state import LearningState, Training
from dpaudit.learning.counted_views import CountedView
from dpaudit.learning.learned_views import Logistic

SAMPLES = {
    "none": [0.0, 0.0, math.nan, math.nan],
    "several": [0.0, 1.0, 2.0, math.nan],
    "infinite": [0.0, 1.0, math.inf, math.nan],
    "many": [*np.random.default_rng(1).normal(size=2_000).tolist(), math.nan],
}


@pytest.mark.parametrize("kind", ["value", "distance from the centre"])
@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_no_number_has_a_cell_of_its_own(name, kind):
    matrix = np.array(SAMPLES[name] * 10)[:, None]
    view = View(kind, (0,), 0.5)
    counted = CountedView.of(view, 0.0, view(matrix))
    cells = counted.cells_of(matrix)
    is_none = np.isnan(matrix[:, 0])
    assert set(cells[is_none]).isdisjoint(cells[~is_none]) and cells.max() < counted.size
    labels = is_none.astype(np.intp)
    swaps = view.swaps(matrix)
    counts = counted.counts_of(view(matrix), labels, swaps)
    p = counted.probabilities(*counted.fit(counts), 0.5)
    told = np.where(labels == 1, p[0][cells], 1.0 - p[0][cells])
    assert told[is_none].min() > 0.6  # ten draws of a label that is always the same


@pytest.mark.parametrize("other", [math.nan, None])
def test_a_leak_in_what_is_no_number_is_found_as_in_a_number(other):
    """The other output has P = .30 against .267, a loss of .117 under .05; on this seed it was inconclusive."""

    def abstains(data, size, rng):
        says = rng.random(size) < 0.267 + 0.033 * data
        return [other if one else 0.0 for one in says] if other is None else np.where(says, other, 0.0)

    result = dpaudit.audit(abstains, "eps=0.05", [(0, 1)], samples=60_000, seed=1, floating_point=False, severity=False)
    assert result.verdict == "violated"


@pytest.mark.parametrize("columns", [1, 3])
def test_what_a_regression_says_of_tails_is_heard_when_labels_are_counted(columns):
    """Normal noise has log odds of mu x. Where these are above 1, for .762 trees on counts alone said .732 and .719."""
    mu, rng = 0.45, np.random.default_rng(3)

    def outputs(side, size):
        found = rng.normal(size=(size, columns)) + side * mu / 2.0 / math.sqrt(columns)
        return read_outputs(found[:, 0] if columns == 1 else found, size)

    state = LearningState()
    state.learn(Training(outputs(1, 4_000), outputs(-1, 4_000)))
    for _ in range(2):
        sides = [outputs(side, 4_000) for side in (-1, 1)]
        state.add(np.stack([state.counter.count(side) for side in sides]))
        state.learn_from_counts()
    fresh = outputs(1, 100_000)
    log_odds = mu * fresh.numbers.sum(axis=1) / math.sqrt(columns)
    counts = state.counter.count(fresh.rows(np.flatnonzero(log_odds > 1.0)))
    counts = state.counter.split(np.stack([counts, counts]))[0][0]
    told = counts @ state.rounds[-1].predicted.q / counts.sum()
    true = np.mean(1.0 / (1.0 + np.exp(-log_odds[log_odds > 1.0])))
    assert told == pytest.approx(true, abs=0.015)


def test_one_column_is_clipped_at_its_extremes_and_several_where_an_outlier_would_hide_the_others():
    matrix = np.random.default_rng(1).normal(size=(2_000, 2))
    labels = (matrix.sum(axis=1) > 0.0).astype(np.intp)
    far = np.array([[2.2, 0.0], [3.0, 0.0]])
    scores = [Logistic("", own).fit(matrix, labels)(far) for own in ((0,), (0, 1))]
    assert scores[0][1] > 1.2 * scores[0][0] and scores[1][1] == scores[1][0]


@pytest.mark.parametrize("far", [1e30, 1e300])
def test_numbers_that_lie_very_far_out_neither_stop_a_regression_nor_flatten_it(far):
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=2_000)
    column = labels + rng.laplace(size=2_000)
    column[:20] = far * rng.uniform(-1.0, 1.0, size=20)
    fitted = Logistic("", (0,)).fit(column[:, None], labels)
    assert np.isfinite(fitted.weights).all() and np.diff(fitted(np.array([[0.0], [1.0]])))[0] > 0.1
