"""Bands: ranges of values, at any scale, whose labels differ from those on both sides of them.

A window of draws in order is compared with as many to its left, and as many to its right, by likelihood ratios of two
shares; the smaller one counts, and only where both say the same. A loss that rises along the values has no bands. A
value that comes again and again is a window of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import scipy  # whose rooms are imported when they are used
from numpy.typing import NDArray

from dpaudit.learning import windows
from dpaudit.learning.looks import looked_at
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import RowCount
from dpaudit.learning.training import Sorted, Training
from dpaudit.privacy.claims import FloatArray

FEWEST = 60  # draws
SMALLEST = 6  # draws of a window
LARGEST_SHARE = 0.12  # of the draws, in a window
MOST = 8  # bands of one reduction


def propose(training: Training) -> Iterable[Predictor]:
    """Cells around the bands of every reduction that has some."""
    for reduction in looked_at(training):
        # Of counts every value has a cell of its own, see `levels`.
        found = [] if isinstance(reduction, RowCount) else bands_of(training.sorted(reduction))
        if found:
            intervals, merit = [(low, high) for _, low, high in found], math.sqrt(2.0 * found[0][0])
            yield Predictor.of_intervals(f"bands in {reduction.name}", reduction, intervals, merit)


def bands_of(draws: Sorted) -> list[tuple[float, float, float]]:
    """Bands as (log likelihood ratio, first, last value), the clearest first; at most `MOST`."""
    size = len(draws)
    if size < FEWEST:
        return []
    of_x = np.concatenate([[0], np.cumsum(draws.labels)])
    entropies = scipy.special.xlogy(counts := np.arange(size + 1.0), counts)
    least = math.log(size) + 4.0
    found = []
    for k in windows.sizes(SMALLEST, max(SMALLEST, int(LARGEST_SHARE * size))):
        start = windows.begins(size, k)
        found += _found(draws, of_x, entropies, start, start + k, least)
    if draws.different < size:
        starts = draws.starts
        often = np.flatnonzero(np.diff(starts) >= SMALLEST)
        found += _found(draws, of_x, entropies, starts[often], starts[often + 1], least)
    return windows.disjoint(found, MOST)


def _found(
    draws: Sorted,
    of_x: NDArray[np.intp],
    entropies: FloatArray,
    start: NDArray[np.intp],
    stop: NDArray[np.intp],
    least: float,
) -> list[tuple[float, float, float]]:
    """The bands among windows of draws from `start` to before `stop`; `entropies` are k log k for every count k."""
    size = len(draws)
    lengths = stop - start
    before, after = np.maximum(start - lengths, 0), np.minimum(stop + lengths, size)
    inside = of_x[stop] - of_x[start]
    own = _log_likelihood(entropies, inside, lengths)

    def differing(begin: NDArray[np.intp], end: NDArray[np.intp]) -> FloatArray:
        """The log likelihood ratio of the shares inside and beside being different, with their difference's sign."""
        beside, n = of_x[end] - of_x[begin], end - begin
        pooled = _log_likelihood(entropies, inside + beside, lengths + n)
        ratio = own + _log_likelihood(entropies, beside, n) - pooled
        return np.asarray(np.sign(inside * n - beside * lengths) * np.maximum(ratio, 0.0))  # 0 where nothing is beside

    sides = [differing(before, start), differing(stop, after)]
    both = np.where(sides[0] * sides[1] > 0.0, np.minimum(np.abs(sides[0]), np.abs(sides[1])), 0.0)
    values = draws.values
    return [
        (float(both[place]), float(values[start[place]]), float(values[stop[place] - 1]))
        for place in windows.clearest(both, least).tolist()
    ]


def _log_likelihood(entropies: FloatArray, a: NDArray[np.intp], n: NDArray[np.intp]) -> FloatArray:
    """a log(a/n) + (n - a) log(1 - a/n), with 0 log 0 = 0."""
    return np.asarray(entropies[a] + entropies[n - a] - entropies[n])
