"""Zeros: the sign of a number that is 0, which no threshold sees since both zeros are equal."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpaudit.learning.kinds.levels import merit_of
from dpaudit.learning.looks import looked_at
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import Own, SignOfZero
from dpaudit.learning.training import Training

EDGES = np.array([-0.5, 0.5])  # on either side of 0, among -1, 0 and 1
MERIT = 6.0  # of cells that are there at all, at least: before what is faint; more where their labels are clear


def propose(training: Training) -> Iterable[Predictor]:
    """Cells of the sign of zeros, of each column that has negative ones."""
    for column in (look.column for look in looked_at(training) if isinstance(look, Own)):
        reduction = SignOfZero(column)
        if np.any(reduction(training.numbers) < 0.0):
            merit = max(MERIT, merit_of(training.sorted(reduction)))
            yield Predictor(reduction.name, reduction, EDGES, merit)
