"""Spikes: places where draws, or those of one label, are far denser than around them.

A scan statistic of all draws together, and of the draws of each label. A window of k draws is compared with four times
as many on the denser side of it: under a density that hardly changes over so many, the number of draws in its width is
about Poisson. Narrow leaks are found at any width, since widths enter as ratios alone. Where all draws together show a
spike labels are not looked at, so that what the label game learns of them is not selected. Draws of one label show it
at half of the draws, where those of the other one fill the place, too.

Source: Naus (1965), The distribution of the size of the maximum cluster of points on a line, for the statistic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpaudit.learning import windows
from dpaudit.learning.looks import looked_at
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.training import Sorted, Training

FEWEST = 40  # draws, below which nothing is dense
LARGEST_SHARE = 0.05  # of the draws, in a window
AROUND = 4  # times a window's draws, on either side of it
DENSER = 3.0  # times as dense as around it, at least
MOST = 12  # spikes of one reduction
REPEATED = 0.2  # of the values: where more come again, they are counts or categories, and none is dense
ONE_LABEL = math.log(3.0)  # by which a merit is lowered that is the best of more scans
TINY = 1e-290


def propose(training: Training) -> Iterable[Predictor]:
    """Cells around the spikes of every reduction that has some."""
    for reduction in looked_at(training):
        found = labelled_spikes_of(training.sorted(reduction))
        if found:
            intervals, merit = [(low, high) for _, low, high in found], math.sqrt(2.0 * found[0][0])
            yield Predictor.of_intervals(f"spikes in {reduction.name}", reduction, intervals, merit)


def labelled_spikes_of(draws: Sorted) -> list[tuple[float, float, float]]:
    """Spikes as `spikes_of` has them, of all draws and of those of each label; those of two scans that meet once."""
    found = spikes_of(draws)
    for own in (draws.labels, ~draws.labels):
        of_label = spikes_of(Sorted(draws.values[own], draws.labels[own]))
        found += [(merit - ONE_LABEL, low, high) for merit, low, high in of_label]
    return windows.disjoint([one for one in found if one[0] > 0.0], MOST)


def spikes_of(draws: Sorted) -> list[tuple[float, float, float]]:
    """Spikes as (log likelihood ratio, first, last value), the clearest first; at most `MOST`."""
    values, size = draws.values, len(draws)
    if size < FEWEST or np.count_nonzero(np.diff(draws.starts) > 1) > REPEATED * draws.different:
        return []
    least = 1.5 * math.log(size) + 2.0  # about four windows a draw: by chance one in some hundred samples has a spike
    found = []
    for k in windows.sizes(windows.SMALLEST, max(windows.SMALLEST, int(LARGEST_SHARE * size))):
        start = windows.begins(size, k)
        low, high, around = values[start], values[start + k - 1], AROUND * k
        with np.errstate(over="ignore"):  # of enormous numbers: as wide as can be
            left = np.where(start >= around, low - values[np.maximum(start - around, 0)], np.inf)
            after = start + k - 1 + around
            right = np.where(after < size, values[np.minimum(after, size - 1)] - high, np.inf)
            expected = (high - low + TINY) / np.maximum(np.minimum(left, right), TINY) * around
        inside = k - 1.0
        dense = np.flatnonzero(inside > DENSER * expected)
        expected = np.maximum(expected[dense], 1e-9)
        merits = np.zeros(len(start))
        merits[dense] = inside * np.log(inside / expected) - inside + expected
        for place in windows.clearest(merits, least).tolist():
            wider = (high[place] - low[place]) / (k - 1)  # the ends of a spike lie a spacing beyond its last draws
            found.append((float(merits[place]), float(low[place] - wider), float(high[place] + wider)))
    return windows.disjoint(found, MOST)
