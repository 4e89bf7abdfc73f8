"""What learners look at: the columns of a row, and a few reductions of several of them."""

from __future__ import annotations

import itertools

import numpy as np

from dpaudit.learning.reductions import COUNTS, Own, Radius, Ratio, Reduction, RowCount, Weighted
from dpaudit.learning.training import ENORMOUS, Training

MOST_COLUMNS = 48  # that are looked at one by one: of longer rows the first ones, and those whose labels differ most
FIRST_COLUMNS = 24  # of these, the first ones
MOST_PAIRED = 5  # of each pair of which the difference is looked at
MOST_RELATED = 3  # of each pair of which the sum, the ratio and the product are looked at, too
MOST_SUMMED = 512  # columns that are looked at all: a bound on time


def looked_at(training: Training) -> list[Reduction]:
    """The columns, relations of two, the sum of all, distances from the middle, 0 and known points, and counts."""
    if training.looks is None:
        training.looks = _looks(training)
    return training.looks


def _looks(training: Training) -> list[Reduction]:
    columns = training.columns
    found: list[Reduction] = [Own(column) for column in _chosen(training)]
    if columns == 1:
        return found
    if columns <= MOST_PAIRED:
        for pair in itertools.combinations(range(columns), 2):
            found.append(Weighted(pair, (1, -1), training.unit(pair)))
            if columns > 2:  # of two it is that of all
                found.append(Weighted(pair, (1, 1), training.unit(pair)))
            if columns <= MOST_RELATED:
                found += [Ratio(pair, is_product) for is_product in (False, True)]
    if columns <= MOST_SUMMED:
        everything = tuple(range(columns))
        some = training.numbers[:1_000]
        finite = np.where(np.abs(some) < ENORMOUS, some, 0.0)
        spread = np.subtract(*np.quantile(finite, [0.75, 0.25], axis=0))
        unit = float(2.0 ** np.ceil(np.log2(np.clip(spread.max(), 1e-200, 1e200)))) if spread.max() > 0.0 else 1.0
        found.append(Weighted(everything, (1,) * columns, unit))
        found.append(Radius(everything, tuple(np.median(finite, axis=0).tolist()), unit))
        found.append(Radius(everything, (0.0,) * columns, unit))
        # Of a grid around a known point the step is what it is, in whatever units.
        found += [Radius(everything, point, 1.0, name) for name, point in training.points.items()]
        found += [count for count in map(RowCount, COUNTS) if training.sorted(count).different > 1]
    return found


def _chosen(training: Training) -> list[int]:
    """The columns that are looked at one by one, increasing.

    Of a long row's columns those come whose values, or whose parities, have means that differ most between the labels.
    """
    columns = training.columns
    if columns <= MOST_COLUMNS:
        return list(range(columns))
    deviations = np.zeros(columns)
    numbers = np.where(np.abs(training.numbers) < ENORMOUS, training.numbers, 0.0)
    for values in (numbers, np.mod(numbers, 2.0)):
        a, b = values[training.labels], values[~training.labels]
        error = np.sqrt(a.var(axis=0) / max(len(a), 1) + b.var(axis=0) / max(len(b), 1))
        shift = np.abs(a.mean(axis=0) - b.mean(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):  # where no label varies a shift is as clear as can be
            deviations = np.fmax(deviations, shift / error)
    best = np.argsort(-deviations[FIRST_COLUMNS:], kind="stable")[: MOST_COLUMNS - FIRST_COLUMNS] + FIRST_COLUMNS
    return [*range(FIRST_COLUMNS), *np.sort(best).tolist()]
