"""Levels: a count or the like that has few values, where their labels differ.

Columns are not looked at: histograms are made of them anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpaudit.learning.looks import looked_at
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import Own
from dpaudit.learning.training import Sorted, Training

FEWEST = 24  # draws, below which nothing is looked for
MOST = 24  # values with a cell of their own, at most
LEAST = 4.0  # standard deviations by which labels must differ


def propose(training: Training) -> Iterable[Predictor]:
    """A cell for each value of every reduction that has few."""
    for reduction in looked_at(training):
        if isinstance(reduction, Own):
            continue
        draws = training.sorted(reduction)
        if len(draws) < FEWEST or not 1 < draws.different <= MOST:
            continue
        merit = merit_of(draws)
        if merit >= LEAST:
            yield Predictor(f"levels of {reduction.name}", reduction, draws.values[draws.starts[1:-1]], merit)


def merit_of(draws: Sorted) -> float:
    """Standard deviations by which labels differ between the values: the most that one value has over the others.

    A deviation of one value, not a chi-square of all: where one rare value tells, the others say nothing.
    """
    total = np.diff(draws.starts).astype(float)
    of_x = np.add.reduceat(draws.labels.astype(float), draws.starts[:-1])
    share = float(of_x.sum() / total.sum())
    if not 0.0 < share < 1.0:
        return 0.0
    rest = total.sum() - total
    error = np.sqrt(share * (1.0 - share) * (1.0 / total + 1.0 / rest))
    deviations = np.abs(of_x / total - (of_x.sum() - of_x) / rest) / error
    return float(deviations.max()) - math.sqrt(2.0 * math.log(len(total)))
