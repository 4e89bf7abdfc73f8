"""Relations: two parts of a row whose difference, ratio or distance is far more often at one place than around it.

Of short rows every difference is looked at by all learners (`dpaudit.learning.looks`). Of longer ones there are too
many: here all pairs are screened at once, by how dense the densest few draws lie, and the scans of `spikes` and
`residues` look at those that stand out. Of columns that hold few values equal ones are counted, too: any two of them
are equal by chance, so that only a difference between the labels tells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.kinds.residues import residues_of
from dpaudit.learning.kinds.spikes import AROUND, REPEATED, density_merits, labelled_spikes_of
from dpaudit.learning.looks import MOST_PAIRED, MOST_RELATED
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import Gap, Ratio, Reduction, Weighted
from dpaudit.learning.training import ENORMOUS, Training
from dpaudit.privacy.claims import FloatArray

FEWEST = 100  # draws
MOST_DRAWS = 1_000  # that are screened
MOST_COLUMNS = 24  # of a row of which all pairs are looked at
MOST_POINTS = 24  # of a row, whose distances are looked at
DIMENSIONS = 2, 3  # of points in a row
WINDOWS = 4, 8, 16, 32  # draws
SCANNED = 6  # pairs
MOST_EQUAL = 300  # columns of which equal ones are counted
FARTHEST = 32  # columns between two that are compared, of rows longer than:
ALL_COMPARED = 64  # columns of a row, up to which all are compared
COMPARED_DRAWS = 2_000  # in which equal columns are counted
BEYOND = 2.5  # deviations, over what the best of so many has by chance


def propose(training: Training) -> Iterable[Predictor]:
    """Cells where two parts of a row go together."""
    if training.columns < 2 or len(training.labels) < FEWEST:
        return
    yield from _dense(training)
    yield from _equal(training)


def _dense(training: Training) -> Iterator[Predictor]:
    every = max(1, len(training.labels) // MOST_DRAWS)
    numbers, labels = training.numbers[::every], training.labels[::every]
    found: list[tuple[float, Reduction]] = []
    for reductions in (_differences(training), _ratios(training), _gaps(training)):
        if reductions:
            values = np.stack([reduction(numbers) for reduction in reductions], axis=1)
            merits = np.max([concentration(values[own]) for own in (labels, ~labels)], axis=0)
            found += [(float(merits[k]), reductions[k]) for k in np.argsort(-merits)[:SCANNED] if merits[k] > 0.0]
    best = [reduction for _, reduction in sorted(found, key=lambda one: -one[0])[:SCANNED]]
    for block in training.blocks(best):
        for reduction, spikes in zip(block.reductions, labelled_spikes_of(block), strict=True):
            if spikes:
                intervals, merit = [(low, high) for _, low, high in spikes], math.sqrt(2.0 * spikes[0][0])
                yield Predictor.of_intervals(f"spikes in {reduction.name}", reduction, intervals, merit)
    yield from residues_of(training, _gaps(training))


def _differences(training: Training) -> list[Reduction]:
    if not MOST_PAIRED < training.columns <= MOST_COLUMNS:
        return []
    pairs = itertools.combinations(range(training.columns), 2)
    return [Weighted(pair, (1, -1), training.unit(pair)) for pair in pairs]


def _ratios(training: Training) -> list[Reduction]:
    if not MOST_RELATED < training.columns <= MOST_COLUMNS:
        return []
    return [Ratio(pair, False) for pair in itertools.combinations(range(training.columns), 2)]


def _gaps(training: Training) -> list[Reduction]:
    """Steps of a path whose points stand one after the other in a row, and from its end to its start."""
    found: list[Reduction] = []
    for size in DIMENSIONS:
        count = training.columns // size
        if training.columns % size or not 2 <= count <= MOST_POINTS:
            continue
        points = [tuple(range(size * k, size * (k + 1))) for k in range(count)]
        pairs = [*itertools.pairwise(points), *([(points[-1], points[0])] if count > 2 else [])]
        found += [Gap((*first, *second)) for first, second in pairs]
    return found


def concentration(values: FloatArray) -> FloatArray:
    """How far more draws lie in the densest window of each column than around it: a log likelihood ratio.

    Parameters
    ----------
    values : ndarray of float, shape (draws, columns)

    Returns
    -------
    ndarray of float, shape (columns,)
        0 where nothing stands out by more than the best of so many windows does by chance, and where many values
        repeat.
    """
    draws = len(values)
    best = np.zeros(values.shape[1])
    if draws < FEWEST // 2:
        return best
    ordered = np.sort(np.where(np.abs(values) < ENORMOUS, values, np.nan), axis=0)  # NaN come last
    known = np.isfinite(ordered[-1])
    repeated = (ordered[1:] == ordered[:-1]).mean(axis=0)
    least = 1.5 * math.log(draws * max(values.shape[1], 2)) + 2.0
    for k in WINDOWS:
        reach = AROUND * k
        if k + 2 * reach > draws:
            break
        low, high = ordered[reach : draws - k + 1 - reach], ordered[reach + k - 1 : draws - reach]
        left, right = ordered[: len(low)], ordered[2 * reach + k - 1 :][: len(low)]
        with np.errstate(invalid="ignore"):
            beside = np.minimum(low - left, right - high)
            merits = density_merits(high - low, beside, k - 1.0, reach)
        best = np.maximum(best, merits.max(axis=0))
    return np.where(known & (repeated <= REPEATED) & (best > least), best, 0.0)


def _equal(training: Training) -> Iterator[Predictor]:
    """The two columns that are equal clearly more often under one label."""
    if not MOST_PAIRED < training.columns <= MOST_EQUAL:
        return
    every = max(1, len(training.labels) // COMPARED_DRAWS)
    numbers, labels = training.numbers[::every], training.labels[::every]
    sizes = np.array([labels.sum(), (~labels).sum()])
    if sizes.min() == 0:
        return
    columns = training.columns
    farthest = columns - 1 if columns <= ALL_COMPARED else FARTHEST
    best: tuple[float, tuple[int, int]] = (0.0, (0, 1))
    tried = 0
    for apart in range(1, farthest + 1):
        same = numbers[:, apart:] == numbers[:, :-apart]
        tried += same.shape[1]
        deviations = _deviations(same, labels, sizes)
        k = int(np.argmax(deviations))
        best = max(best, (float(deviations[k]), (k, k + apart)))
    merit, pair = best
    if merit > math.sqrt(2.0 * math.log(max(tried, 2))) + BEYOND:
        reduction = Weighted(pair, (1, -1), training.unit(pair))
        yield Predictor(f"equal {reduction.name}", reduction, np.array([-1e-9, 1e-9]), merit)


def _deviations(same: NDArray[np.bool_], labels: NDArray[np.bool_], sizes: NDArray[np.intp]) -> FloatArray:
    """Of each column, by how many deviations the shares of the labels differ."""
    counts = np.stack([np.count_nonzero(same[labels], axis=0), np.count_nonzero(same[~labels], axis=0)])
    share = counts.sum(axis=0) / sizes.sum()
    error = np.sqrt(share * (1.0 - share) * (1.0 / sizes[0] + 1.0 / sizes[1]))
    shift = np.abs(counts[0] / sizes[0] - counts[1] / sizes[1])
    return np.asarray(np.divide(shift, error, out=np.zeros(len(shift)), where=error > 0.0))
