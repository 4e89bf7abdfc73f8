"""Surfaces: lines, planes, circles and spheres, wherever they are, that many draws lie on exactly.

A few draws of one label determine a surface. Of many tries at random those count that far more draws lie on than
determine it: of a continuous law none does by chance. How likely a try is to hit is the share of the draws on the
surface to the power of how many determine it, so that this is for few columns.

Source: Fischler and Bolles (1981), Random sample consensus, for the search.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import Surface
from dpaudit.learning.training import Training
from dpaudit.privacy.claims import FloatArray

FEWEST = 100  # draws, below which nothing is looked for
MOST_DRAWS = 500  # that are looked at: a bound on time
MOST_COLUMNS = 3  # of a row: surfaces in more are not looked for
CURVED = 2  # columns of one that is no plane: more draws determine it, and hits are rare
TRIES = 1_500  # at random of what a few draws determine: a bound on time
FIRST = 64  # draws that tries are counted on, all of them:
FEWEST_OF_FIRST = 3  # of these on a surface, with which it is counted on the others
MORE = 4  # draws on a surface, beyond those that determine it
NEAR = 1e-7  # of a unit: as close are draws that lie on a surface
WIDE = 1e-6  # of a unit: the width of the cell around it
MOST = 2  # proposals: the best of those that stand out
SEED = 20  # of the tries, so that a fit repeats itself
AWAY = np.array([2.71, 3.39, 2.13])  # in units, by which draws are moved: no usual surface holds the origin then


def propose(training: Training) -> Iterable[Predictor]:
    """A cell around each surface that many draws lie on."""
    if not 2 <= training.columns <= MOST_COLUMNS or len(training.labels) < FEWEST:
        return
    every = max(1, len(training.labels) // MOST_DRAWS)
    numbers, labels = training.numbers[::every], training.labels[::every]
    known = np.all(np.abs(numbers) < 1e100, axis=1)
    numbers, labels = numbers[known], labels[known]
    # Where numbers repeat they are counts or categories, and all of them lie on common surfaces.
    if len(numbers) < FEWEST or any(len(np.unique(column)) < 0.8 * len(column) for column in numbers.T):
        return
    found: list[tuple[float, Surface, float]] = []
    for size in range(2, training.columns + 1):
        for columns in itertools.combinations(range(training.columns), size):
            found += _surfaces(numbers, labels, columns, training.unit(columns))
    for merit, surface, level in sorted(found, key=lambda one: -one[0])[:MOST]:
        intervals = [(level - WIDE, level + WIDE)]
        yield Predictor.of_intervals(f"draws on one of the {surface.name}", surface, intervals, merit)


def _surfaces(
    numbers: FloatArray, labels: NDArray[np.bool_], columns: tuple[int, ...], unit: float
) -> Iterator[tuple[float, Surface, float]]:
    """The plane and the sphere of some columns that most draws lie on, with the level of its sum."""
    away = AWAY[: len(columns)]
    own = numbers[:, columns] / unit + away
    lifted = np.column_stack([own, np.square(own).sum(axis=1)])
    rng = np.random.default_rng(SEED)
    for features in (own, lifted) if len(columns) <= CURVED else (own,):
        needed = features.shape[1]
        best: tuple[int, FloatArray] | None = None
        for side in (labels, ~labels):
            draws = features[side]
            if len(draws) < needed + MORE:
                continue
            weights = _through(draws.T[:, rng.integers(len(draws), size=(TRIES, needed))])
            weights = weights[_on(draws[:FIRST], weights) >= FEWEST_OF_FIRST]
            on = _on(draws, weights)
            if len(on) and on.max() >= needed + MORE and (best is None or on.max() > best[0]):
                best = int(on.max()), weights[int(np.argmax(on))]
        if best is not None:
            count, weights = best
            of_square = float(weights[-1]) if needed > len(columns) else 0.0
            linear = weights[: len(columns)]
            level = 1.0 - float(linear @ away) - of_square * float(away @ away)
            moved = linear + 2.0 * of_square * away
            yield 2.0 * math.sqrt(count) + 2.0, Surface(columns, (*moved.tolist(), of_square), unit), level
            return  # a plane is a sphere, too


def _through(points: FloatArray) -> FloatArray:
    """Weights with weights @ point = 1 for all points of a try, which is any surface but those through the origin.

    Shape (tries, numbers of a point), by Cramer's rule, for two or three `points`, shape (numbers, tries, points), that
    have as many numbers. Tries that hardly determine a surface are left out.
    """
    if len(points) == 2:
        (a, b), (c, d) = (own.T for own in points)
        size, weights = a * d - b * c, np.stack([d - c, a - b])
    else:
        x, y, z = (own.T for own in points)
        turns = ((1, 2), (2, 0), (0, 1))
        normals = [[p[i] * q[j] - q[i] * p[j] for i, j in turns] for p, q in ((y, z), (z, x), (x, y))]
        size = sum(first * own[0] for first, own in zip((x[0], y[0], z[0]), normals, strict=True))
        weights = np.stack([sum(own) for own in normals])
    with np.errstate(all="ignore"):
        weights /= size
    return np.ascontiguousarray(weights.T[(np.abs(size) > 1e-9) & (np.abs(weights).max(axis=0) < 1e4)])


def _on(draws: FloatArray, weights: FloatArray) -> NDArray[np.intp]:
    """How many draws lie on each surface."""
    away = weights @ draws.T
    away -= 1.0
    near = np.flatnonzero(np.abs(away, out=away).ravel() < NEAR)  # few: a count along an axis takes longer
    return np.bincount(near // max(len(draws), 1), minlength=len(weights))
