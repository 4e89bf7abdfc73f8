"""Windows of sorted draws at every scale: the places of scan statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

SMALLEST = 4  # draws of a window
GROWTH = 1.6  # from one size of windows to the next
STEPS = 4  # windows that begin within one, for each size
MOST_PER_SIZE = 24  # windows of one size that are kept, the clearest ones


def sizes(smallest: int, largest: int) -> Iterator[int]:
    """Sizes of windows, in geometric steps."""
    size = smallest
    while size <= largest:
        yield size
        size = max(size + 1, int(size * GROWTH))


def begins(draws: int, size: int) -> NDArray[np.intp]:
    """Where windows of a size begin among so many draws."""
    return np.arange(0, draws - size + 1, step(size))


def step(size: int) -> int:
    """Draws from the begin of one window of a size to that of the next."""
    return max(1, size // STEPS)


def places_of(is_true: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns where an array is true: as `numpy.nonzero`, and much faster where these are few."""
    row, column = np.divmod(np.flatnonzero(is_true), max(is_true.shape[1], 1))
    return row, column


def clearest_of_rows(
    merits: NDArray[np.float64], row: NDArray[np.intp], size: NDArray[np.intp], least: float
) -> NDArray[np.intp]:
    """The positions of the largest merits above the least, at most `MOST_PER_SIZE` of the windows of a row and size."""
    places = np.flatnonzero(merits > least)
    places = places[np.lexsort((-merits[places], size[places], row[places]))]
    of_row, of_size = row[places], size[places]
    is_first = np.ones(len(places), dtype=bool)
    is_first[1:] = (of_row[1:] != of_row[:-1]) | (of_size[1:] != of_size[:-1])
    rank = np.arange(len(places)) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    return np.asarray(places[rank < MOST_PER_SIZE])


def disjoint_of_rows(
    rows: int, found: Iterable[tuple[np.intp, np.float64, np.float64, np.float64]], most: int
) -> list[list[tuple[float, float, float]]]:
    """Of intervals (row, merit, first, last value) those that `disjoint` keeps, in each row."""
    several: list[list[tuple[float, float, float]]] = [[] for _ in range(rows)]
    for row, merit, low, high in found:
        several[int(row)].append((float(merit), float(low), float(high)))
    return [disjoint(one, most) if one else [] for one in several]


def disjoint(found: Iterable[tuple[float, float, float]], most: int) -> list[tuple[float, float, float]]:
    """Of intervals (merit, first, last) the best ones that do not meet, at most so many."""
    kept: list[tuple[float, float, float]] = []
    for merit, low, high in sorted(found, reverse=True):
        if all(high < other_low or low > other_high for _, other_low, other_high in kept):
            kept.append((merit, low, high))
            if len(kept) == most:
                break
    return kept
