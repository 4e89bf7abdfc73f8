"""Counting numbers between edges, fast: what most of the time of an audit beside its draws would go into.

A number's place on a uniform grid takes a subtraction, a product and a conversion, whatever the number of edges. Each
of these never decreases as the number grows, rounding included, so the place on the grid does not either: a number in
another place than an edge is on the side of it where its place is. Only numbers that share a place with some edge are
compared with edges. Where these are many, numbers are sorted in short blocks, which vector instructions do in less time
than it takes to search for each one, and edges are searched for among them. The counts are those of comparisons,
exactly.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

BLOCK = 1 << 14  # numbers looked at together: they, and their places, stay in the processor's cache
PLACES = 1 << 13  # of the grid: it is looked up, and stays in the processor's cache
FEW_EDGES = {0: 6, 1_000: 24}  # so few are compared with every number, where there are so many numbers
FEW_NUMBERS = 2_000  # so few are searched for one by one
MANY_EDGES = 200  # so many share a place with too many numbers: these are sorted


class EdgeCounter:
    """Counts numbers in the cells between increasing edges; a cell holds its lower edge, NaN is in the last cell.

    Parameters
    ----------
    edges : ndarray of float, shape (edges,)
        Increasing, without NaN; infinities and none at all are allowed.

    Examples
    --------
    >>> EdgeCounter(np.array([0.0, 1.0])).count(np.array([-1.0, 0.0, 0.5, 1.0, np.nan])).tolist()
    [1, 2, 1, 1]
    """

    def __init__(self, edges: FloatArray) -> None:
        self.edges = edges

    def __getstate__(self) -> dict[str, FloatArray]:
        """Without the grid, which is many times as long, and quickly made where it is needed."""
        return {"edges": self.edges}

    def count(self, numbers: FloatArray) -> NDArray[np.int64]:
        """How many of the numbers fall into each cell, shape (edges + 2,)."""
        numbers = np.ascontiguousarray(numbers)
        if len(self.edges) <= FEW_EDGES[max(least for least in FEW_EDGES if least <= len(numbers))]:
            return self._by_comparison(numbers)
        if len(numbers) <= FEW_NUMBERS:
            return self._by_search(numbers)
        if len(self.edges) >= MANY_EDGES or self._grid is None:
            return self._by_sorting(numbers)
        return self._by_grid(numbers, *self._grid)

    def index(self, numbers: FloatArray) -> NDArray[np.intp]:
        """The cell of each number, shape (numbers,): how many edges are at most it; edges + 1 for NaN."""
        if len(numbers) <= FEW_NUMBERS or self._grid is None:
            index = np.searchsorted(self.edges, numbers, side="right")
            index[numbers != numbers] = len(self.edges) + 1
            return index
        lowest, scale, is_shared, cells = self._grid
        index = np.empty(len(numbers), dtype=np.intp)
        for start in range(0, len(numbers), BLOCK):
            block, own = numbers[start : start + BLOCK], index[start : start + BLOCK]
            is_nan = block != block
            places = _places(np.where(is_nan, lowest, block), lowest, scale)
            np.take(cells, places, out=own)
            compared = np.flatnonzero(is_shared[places])
            own[compared] = np.searchsorted(self.edges, block[compared], side="right")
            own[is_nan] = len(self.edges) + 1
        return index

    def _by_comparison(self, numbers: FloatArray) -> NDArray[np.int64]:
        at_least = np.zeros(len(self.edges) + 1, dtype=np.int64)
        for start in range(0, len(numbers), BLOCK):
            block = numbers[start : start + BLOCK]
            # Mostly no number is NaN, which the least one tells sooner.
            at_least[0] += np.count_nonzero(block == block) if np.isnan(block.min()) else len(block)
            for k, edge in enumerate(self.edges, start=1):
                at_least[k] += np.count_nonzero(block >= edge)
        return np.concatenate([at_least[:-1] - at_least[1:], at_least[-1:], [len(numbers) - at_least[0]]])

    def _by_search(self, numbers: FloatArray) -> NDArray[np.int64]:
        # NaN is found after the last edge.
        counts = np.bincount(np.searchsorted(self.edges, numbers, side="right"), minlength=len(self.edges) + 2)
        counts[-1] = np.count_nonzero(numbers != numbers)
        counts[-2] -= counts[-1]
        return counts.astype(np.int64, copy=False)

    def _by_grid(
        self, numbers: FloatArray, lowest: float, scale: float, is_shared: NDArray[np.bool_], cells: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        on_grid = np.zeros(PLACES + 1, dtype=np.intp)
        compared: list[FloatArray] = []
        known = 0
        for start in range(0, len(numbers), BLOCK):
            block = numbers[start : start + BLOCK]
            is_number = block == block
            if not is_number.all():
                block = block[is_number]
            known += len(block)
            places = _places(block, lowest, scale)
            on_grid += np.bincount(places, minlength=PLACES + 1)
            compared.append(block[is_shared[places]])
        on_grid[is_shared] = 0
        counts = np.bincount(cells, weights=on_grid, minlength=len(self.edges) + 2).astype(np.int64)  # exact
        found = np.searchsorted(self.edges, np.concatenate(compared), side="right")
        counts += np.bincount(found, minlength=len(self.edges) + 2)
        counts[-1] = len(numbers) - known
        return counts

    def _by_sorting(self, numbers: FloatArray) -> NDArray[np.int64]:
        ends = np.append(self.edges, math.nan)  # NaN is sorted behind all numbers
        below = np.zeros(len(ends), dtype=np.int64)
        for start in range(0, len(numbers), BLOCK):
            below += np.searchsorted(np.sort(numbers[start : start + BLOCK]), ends)
        return np.diff(below, prepend=0, append=len(numbers))

    @functools.cached_property
    def _grid(self) -> tuple[float, float, NDArray[np.bool_], NDArray[np.intp]] | None:
        """Where the grid begins, its places a unit, which places hold edges, and the cell of each of the others.

        None where the edges are too close, or too far apart, for one.
        """
        finite = self.edges[np.isfinite(self.edges)]
        if len(finite) < 2:
            return None
        lowest = float(finite[0])
        width = float(finite[-1]) - lowest
        scale = PLACES / width if width < math.inf else 0.0
        if not 0.0 < scale < math.inf:
            return None
        places = _places(self.edges, lowest, scale)
        is_shared = np.zeros(PLACES + 1, dtype=bool)
        is_shared[places] = True
        return lowest, scale, is_shared, np.searchsorted(places, np.arange(PLACES + 1), side="left")


def _places(numbers: FloatArray, lowest: float, scale: float) -> NDArray[np.intp]:
    """The place of each number on the grid, from 0 to `PLACES`: it never decreases as the number grows."""
    with np.errstate(over="ignore"):  # far away is the last place
        scaled = np.subtract(numbers, lowest)
        np.multiply(scaled, scale, out=scaled)
    np.clip(scaled, 0.0, float(PLACES), out=scaled)
    return scaled.astype(np.intp)
