"""Bands: ranges of values, at any scale, whose labels differ from those on both sides of them.

A window of draws in order is compared with as many to its left, and as many to its right, by likelihood ratios of two
shares; the smaller one counts, and only where both say the same. A loss that rises along the values has no bands. A
value that comes again and again is a window of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import scipy  # whose rooms are imported when they are used
from numpy.typing import NDArray

from dpaudit.learning import windows
from dpaudit.learning.looks import looked_at
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import RowCount
from dpaudit.learning.training import Training
from dpaudit.privacy.claims import FloatArray

FEWEST = 60  # draws, below which nothing is looked for
SMALLEST = 6  # draws of a window
LARGEST_SHARE = 0.12  # of the draws, in a window
MOST = 8  # bands of one reduction
SLACK = 0.99  # for rounding to single precision, where a bound rules windows out

Band = tuple[float, float, float]
Places = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]


def propose(training: Training) -> Iterable[Predictor]:
    """Cells around the bands of every reduction that has some."""
    # Of counts every value has a cell of its own, see `levels`.
    reductions = [reduction for reduction in looked_at(training) if not isinstance(reduction, RowCount)]
    found = {
        reduction: bands
        for block in training.blocks(reductions)
        for reduction, bands in zip(block.reductions, bands_of(block.values, block.labels), strict=True)
    }
    for reduction in reductions:
        if found[reduction]:
            intervals = [(low, high) for _, low, high in found[reduction]]
            merit = math.sqrt(2.0 * found[reduction][0][0])
            yield Predictor.of_intervals(f"bands in {reduction.name}", reduction, intervals, merit)


def bands_of(values: FloatArray, labels: NDArray[np.bool_]) -> list[list[Band]]:
    """Bands of each row of increasing values as (log likelihood ratio, first, last value).

    The clearest come first; at most `MOST` of a row.
    """
    size = values.shape[1]
    if size < FEWEST:
        return [[] for _ in values]
    largest = max(SMALLEST, int(LARGEST_SHARE * size))
    of_x = np.zeros((len(values), size + 1), dtype=np.float32)  # draws of x so far: integers, as far as `MOST_NUMBERS`
    np.cumsum(labels, axis=1, out=of_x[:, 1:])
    least = math.log(size) + 4.0
    places = [_may_differ(of_x, k, least) for k in windows.sizes(SMALLEST, largest)]
    row, start, stop = (np.concatenate(part) for part in zip(*places, *_repeated(values), strict=True))
    merits = _merits(of_x.astype(float), row, start, stop)
    found = windows.clearest_of_rows(merits, row, stop - start, least)
    bands = zip(row[found], merits[found], values[row, start][found], values[row, stop - 1][found], strict=True)
    return windows.disjoint_of_rows(len(values), bands, MOST)


def _repeated(values: FloatArray) -> Iterator[Places]:
    """The runs of at least `SMALLEST` equal values: the row, where one begins, and where it has ended."""
    is_same = values[:, 1:] == values[:, :-1]
    for row in np.flatnonzero(is_same.any(axis=1)).tolist():
        starts = np.concatenate([[0], np.flatnonzero(~is_same[row]) + 1, [values.shape[1]]])
        often = np.flatnonzero(np.diff(starts) >= SMALLEST)
        yield np.full(len(often), row), starts[often], starts[often + 1]


def _may_differ(of_x: NDArray[np.float32], k: int, least: float) -> Places:
    """The row, begin and end of windows of k draws that may differ by more than the least from what is left of them.

    All that do, and few others: a log likelihood ratio is at most Pearson's chi-square of the same two counts.
    """
    step, size = windows.step(k), of_x.shape[1] - 1
    near = -(-k // step)  # windows that have fewer draws to their left: all of them may
    end = of_x[:, near * step + k :: step]
    begin, before = (of_x[:, near * step - shift :: step][:, : end.shape[1]] for shift in (0, k))
    inside, beside = end - begin, begin - before
    both = inside + beside
    inside -= beside
    inside *= inside
    most = both * (2.0 * k - both)
    most *= SLACK * least / (2.0 * k)
    row, place = windows.places_of(inside > most)
    first = np.arange(step, min(near * step, size - k + 1), step)  # nothing is left of the very first
    rows = np.concatenate([row, np.repeat(np.arange(len(of_x)), len(first))])
    start = np.concatenate([(near + place) * step, np.tile(first, len(of_x))])
    return rows, start, start + k


def _merits(of_x: FloatArray, row: NDArray[np.intp], start: NDArray[np.intp], stop: NDArray[np.intp]) -> FloatArray:
    """The smaller log likelihood ratio of windows from `start` to before `stop` differing from either side of them.

    0 where they differ from the two in opposite ways. `of_x` are how many of the draws before each place are of x.
    """
    size = of_x.shape[1] - 1
    lengths = stop - start
    inside = of_x[row, stop] - of_x[row, start]
    own = _log_likelihood(inside, lengths)

    def differing(begin: NDArray[np.intp], end: NDArray[np.intp]) -> FloatArray:
        """The log likelihood ratio of the shares inside and beside being different, with their difference's sign."""
        beside, n = of_x[row, end] - of_x[row, begin], end - begin
        pooled = _log_likelihood(inside + beside, lengths + n)
        ratio = own + _log_likelihood(beside, n) - pooled
        return np.asarray(np.sign(inside * n - beside * lengths) * np.maximum(ratio, 0.0))  # 0 where nothing is beside

    left = differing(np.maximum(start - lengths, 0), start)
    right = differing(stop, np.minimum(stop + lengths, size))
    return np.where(left * right > 0.0, np.minimum(np.abs(left), np.abs(right)), 0.0)


def _log_likelihood(a: FloatArray, n: NDArray[np.intp]) -> FloatArray:
    """a log(a/n) + (n - a) log(1 - a/n), with 0 log 0 = 0."""
    xlogy = scipy.special.xlogy
    return np.asarray(xlogy(a, a) + xlogy(n - a, n - a) - xlogy(n, n))
