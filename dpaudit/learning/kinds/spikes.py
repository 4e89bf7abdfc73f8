"""Spikes: places where draws, or those of one label, are far denser than around them.

A scan statistic of all draws together, and of the draws of each label. A window of k draws is compared with four times
as many on the denser side of it: under a density that hardly changes over so many, the number of draws in its width is
about Poisson. Narrow leaks are found at any width, since widths enter as ratios alone. Where all draws together show a
spike labels are not looked at, so that what the label game learns of them is not selected. Draws of one label show it
at half of the draws, where those of the other one fill the place, too.

Source: Naus (1965), The distribution of the size of the maximum cluster of points on a line, for the statistic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning import windows
from dpaudit.learning.looks import looked_at
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.training import Block, Training
from dpaudit.privacy.claims import FloatArray

FEWEST = 40  # draws, below which nothing is dense
LARGEST_SHARE = 0.05  # of the draws, in a window
AROUND = 4  # times a window's draws, on either side of it
DENSER = 3.0  # times as dense as around it, at least
MOST = 12  # spikes of one reduction
REPEATED = 0.2  # of the values: where more come again, they are counts or categories, and none is dense
ONE_LABEL = math.log(3.0)  # by which a merit is lowered that is the best of more scans
TINY = 1e-290  # in place of a width of 0, which nothing is divided by
SLACK = 1.0 - 1e-6  # for rounding, where a bound rules windows out

Spike = tuple[float, float, float]
Places = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]


def propose(training: Training) -> Iterable[Predictor]:
    """Cells around the spikes of every reduction that has some."""
    found = {
        reduction: spikes
        for block in training.blocks(looked_at(training))
        for reduction, spikes in zip(block.reductions, labelled_spikes_of(block), strict=True)
    }
    for reduction in looked_at(training):
        if found[reduction]:
            intervals = [(low, high) for _, low, high in found[reduction]]
            merit = math.sqrt(2.0 * found[reduction][0][0])
            yield Predictor.of_intervals(f"spikes in {reduction.name}", reduction, intervals, merit)


def labelled_spikes_of(block: Block) -> list[list[Spike]]:
    """Spikes of each row as `spikes_of` has them, of all draws and of each label; those of two scans that meet once."""
    of_all, *of_labels = (spikes_of(values) for values in (block.values, block.of_label(True), block.of_label(False)))
    found = []
    for both, *own in zip(of_all, *of_labels, strict=True):
        own_spikes = [(merit - ONE_LABEL, low, high) for spikes in own for merit, low, high in spikes]
        found.append(windows.disjoint([one for one in both + own_spikes if one[0] > 0.0], MOST))
    return found


def spikes_of(values: FloatArray) -> list[list[Spike]]:
    """Spikes of each row of increasing values as (log likelihood ratio, first, last value).

    The clearest come first; at most `MOST` of a row.
    """
    size = values.shape[1]
    if size < FEWEST:
        return [[] for _ in values]
    places = [_may_be_dense(values, k, ratio) for k, ratio in _scans(size)]
    row, start, draws = (np.concatenate(part) for part in zip(*places, strict=True))
    if len(row):
        kept = ~_are_repeated(values)[row]
        row, start, draws = row[kept], start[kept], draws[kept]
    low, high = values[row, start], values[row, start + draws - 1]
    merits = _merits(values, row, start, draws)
    found = windows.clearest_of_rows(merits, row, draws, _least(size))
    wider = (high - low) / (draws - 1)  # the ends of a spike lie a spacing beyond its last draws
    spikes = zip(row[found], merits[found], (low - wider)[found], (high + wider)[found], strict=True)
    return windows.disjoint_of_rows(len(values), spikes, MOST)


def _are_repeated(values: FloatArray) -> NDArray[np.bool_]:
    """Which rows have so many values that come again that they are counts or categories."""
    is_same = values[:, 1:] == values[:, :-1]
    repeated = np.zeros(len(values), dtype=bool)
    for row in np.flatnonzero(is_same.any(axis=1)).tolist():
        same = is_same[row]
        runs = int(same[0]) + np.count_nonzero(same[1:] & ~same[:-1])
        repeated[row] = runs > REPEATED * (values.shape[1] - np.count_nonzero(same))
    return repeated


def _may_be_dense(values: FloatArray, k: int, ratio: float) -> Places:
    """The windows of k draws that are denser than what is left of them by this ratio: their row, begin, and k.

    Those with too few draws to their left are compared with what is right of them.
    """
    size, step, around = values.shape[1], windows.step(k), AROUND * k
    factor = SLACK * ratio * around / (k - 1)
    low, high = values[:, : size - k + 1 : step], values[:, k - 1 :: step]
    near = -(-around // step)  # windows that have too few draws to their left
    width = high[:, near:] - low[:, near:]
    left = low[:, near:] - values[:, near * step - around :: step][:, : width.shape[1]]
    width *= factor
    row, place = windows.places_of(left > width)
    beyond = values[:, k - 1 + around :: step][:, :near]
    own = high[:, : beyond.shape[1]]
    first_row, first = windows.places_of(beyond - own > factor * (own - low[:, : beyond.shape[1]]))
    rows, start = np.concatenate([first_row, row]), np.concatenate([first, near + place]) * step
    return rows, start, np.full(len(rows), k)


def _least(size: int) -> float:
    """The least merit: of about four windows a draw, so that by chance one in some hundred samples has a spike."""
    return 1.5 * math.log(size) + 2.0


@functools.lru_cache(maxsize=256)
def _scans(size: int) -> tuple[tuple[int, float], ...]:
    """Sizes k of windows, and how many times as dense as around it one is that has the least merit.

    The merit of a window that is r times as dense is (k - 1) (log r - 1 + 1/r), and grows with r. So windows are ruled
    out by their widths alone: hardly any of a smooth law comes that far.
    """
    found = []
    for k in windows.sizes(windows.SMALLEST, max(windows.SMALLEST, int(LARGEST_SHARE * size))):
        merit = _least(size) / (k - 1)
        if merit > math.log(DENSER) - 1.0 + 1.0 / DENSER:
            log = merit + 1.0
            for _ in range(6):  # Newton's steps on a convex function, from above
                log -= (log - 1.0 + math.exp(-log) - merit) / -math.expm1(-log)
            found.append((k, math.exp(log)))
        else:
            found.append((k, DENSER))
    return tuple(found)


def _merits(values: FloatArray, row: NDArray[np.intp], start: NDArray[np.intp], draws: NDArray[np.intp]) -> FloatArray:
    """`density_merits` of windows that begin at `start`, of so many draws."""
    size, around = values.shape[1], AROUND * draws
    low, high = values[row, start], values[row, start + draws - 1]
    left = np.where(start >= around, low - values[row, np.maximum(start - around, 0)], np.inf)
    after = start + draws - 1 + around
    right = np.where(after < size, values[row, np.minimum(after, size - 1)] - high, np.inf)
    return density_merits(high - low, np.minimum(left, right), np.asarray(draws - 1.0, dtype=float), around)


def density_merits(
    width: FloatArray, beside: FloatArray, inside: FloatArray | float, around: NDArray[np.intp] | int
) -> FloatArray:
    """Log likelihood ratios of windows being denser than what is beside them; 0 where they are not `DENSER`, or NaN.

    Parameters
    ----------
    width, beside : ndarray of float
        Widths of the windows, and of the denser one of their two sides.
    inside, around : array or number
        Draws in a window beyond its first one, and draws on a side.
    """
    expected = np.maximum((width + TINY) / np.maximum(beside, TINY) * around, 1e-9)
    with np.errstate(invalid="ignore"):
        ratio = inside * np.log(inside / expected) - inside + expected
    return np.where(inside > DENSER * expected, ratio, 0.0)
