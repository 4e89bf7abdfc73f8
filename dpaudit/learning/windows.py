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
    return np.arange(0, draws - size + 1, max(1, size // STEPS))


def clearest(merits: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """The positions of the largest merits that are above the least, at most `MOST_PER_SIZE`."""
    places = np.flatnonzero(merits > least)
    if len(places) > MOST_PER_SIZE:
        places = places[np.argpartition(-merits[places], MOST_PER_SIZE)[:MOST_PER_SIZE]]
    return places


def disjoint(found: Iterable[tuple[float, float, float]], most: int) -> list[tuple[float, float, float]]:
    """Of intervals (merit, first, last) the best ones that do not meet, at most so many."""
    kept: list[tuple[float, float, float]] = []
    for merit, low, high in sorted(found, reverse=True):
        if all(high < other_low or low > other_high for _, other_low, other_high in kept):
            kept.append((merit, low, high))
            if len(kept) == most:
                break
    return kept
