"""Counted views: each value, and what is no number, falls into the cell that the trees on counts know it by."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpaudit
from dpaudit.features.views import View
from dpaudit.learning.counted_views import CountedView

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
    tree, shifts = counted.fit(counts)
    p = counted.probabilities(tree, shifts, 0.5)
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
