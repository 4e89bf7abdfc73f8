"""Counted views: the labels in fixed cells of a view, added up round after round.

Once draws are many, what more of them teach is told by counts in cells of the views that tell most: no output is read
again, and a fit costs no more however many draws there were.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from dpaudit.features.views import View
from dpaudit.learning.learned_views import LearnedView
from dpaudit.learning.rank_tree import Forest, Labels, Ordered, Shifts, Steps, grow, shift_trees, told_by_shifts
from dpaudit.privacy.claims import FloatArray


@dataclasses.dataclass(frozen=True)
class CountedSizes:
    """How fine the cells are."""

    cells: int = 256  # of equal mass: a stake moves by 1% of the mass at most
    repeated: int = 4  # draws of one value that has a cell of its own


SIZES = CountedSizes()


@dataclasses.dataclass(frozen=True, eq=False)
class CountedView:
    """A view with its cells: cell k is above `edges[k-1]` and up to `edges[k]`; NaN comes last.

    Attributes
    ----------
    view : View or LearnedView
    edges : ndarray of float, shape (cells - 1,)
    cost : float
        Nats, of its prior.
    """

    view: View | LearnedView
    edges: FloatArray
    cost: float

    def __deepcopy__(self, memo: object) -> CountedView:
        return self

    @classmethod
    def of(cls, view: View | LearnedView, cost: float, values: FloatArray) -> CountedView:
        """Cells of about equal mass on these values, ever smaller ones at both ends; what is repeated has its own."""
        known = np.sort(values[~np.isnan(values)])
        if not len(known):
            return cls(view, np.zeros(0), cost)
        distinct, counts = np.unique(known, return_counts=True)
        if len(distinct) <= SIZES.cells:
            return cls(view, _between(distinct[:-1], distinct[1:]), cost)
        even = np.linspace(0.0, 1.0, SIZES.cells + 1)[1:-1]
        tails = 0.5 ** np.arange(int(math.log2(SIZES.cells)), max(int(math.log2(len(known))), 8))
        places = np.unique((np.concatenate([even, tails, 1.0 - tails]) * len(known)).astype(int))
        cuts = np.searchsorted(distinct, known[places])
        atoms = np.flatnonzero(counts >= max(SIZES.repeated, len(known) / (8 * SIZES.cells)))
        atoms = atoms[np.argsort(-counts[atoms], kind="stable")[: SIZES.cells]]
        ends = np.unique(np.concatenate([cuts, atoms, atoms + 1]))
        ends = ends[(ends > 0) & (ends < len(distinct))]
        return cls(view, _between(distinct[ends - 1], distinct[ends]), cost)

    @property
    def is_mirrored(self) -> bool:
        """Whether rows above the view's centre swap their labels: they have cells of their own."""
        return isinstance(self.view, View) and self.view.kind == "distance from the centre"

    @property
    def size(self) -> int:
        return (len(self.edges) + 1) * (2 if self.is_mirrored else 1)

    def cells_of(self, matrix: FloatArray) -> NDArray[np.intp]:
        """The cell of each row."""
        cells = np.searchsorted(self.edges, self.view(matrix))
        if isinstance(self.view, View) and (swaps := self.view.swaps(matrix)) is not None:
            cells = cells + (len(self.edges) + 1) * swaps
        return np.asarray(cells)

    def counts_of(self, values: FloatArray, labels: Labels, swaps: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Counts of label 0 and 1 by cell of rows with these values of the view, shape (2, cells)."""
        cells = np.searchsorted(self.edges, values)
        if swaps is not None:
            cells = cells + (len(self.edges) + 1) * swaps
        return np.bincount(labels * self.size + cells, minlength=2 * self.size).reshape(2, -1).astype(np.int64)

    def fit(self, counts: NDArray[np.int64], shares: FloatArray) -> tuple[tuple[Steps, ...], Shifts]:
        """A tree of each structure on counts, and the shifts of what these say together by their shares."""
        folded = counts
        if self.is_mirrored:
            below, above = np.split(counts, 2, axis=1)
            folded = below + above[::-1]
        forest = Forest([Ordered.of_counts(folded)])
        trees, own = [], []
        for grown in grow(forest):
            tree = grown.steps(0)
            trees.append(dataclasses.replace(tree, edges=self._at(tree.edges)))
            own.append(grown.of_values(0))
        weights = shares[: len(own)] + 1e-6
        base = np.clip((weights / weights.sum()) @ np.stack(own), 1e-9, 1.0 - 1e-9)
        told = told_by_shifts(logit(base), folded[1], folded.sum(axis=0))
        shifts = shift_trees(forest, told)[0]
        return tuple(trees), dataclasses.replace(shifts, edges=self._at(shifts.edges))

    def _at(self, places: FloatArray) -> FloatArray:
        """Edges of the view's values from those of its cells' numbers."""
        return self.edges[places.astype(int)] if len(places) else np.zeros(0)

    def probabilities(self, trees: tuple[Steps, ...], shifts: Shifts, weight: float, shares: FloatArray) -> FloatArray:
        """What each structure says in each cell, shape (structures, cells); `weight` is that of the shifts."""
        ends = np.append(self.edges, np.inf if len(self.edges) else np.nan)
        found = np.clip(np.stack([tree(ends) for tree in trees]), 1e-6, 1.0 - 1e-6)
        own = shares[: len(found)] + 1e-6
        base = (own / own.sum()) @ found
        found = np.concatenate([found, ((1.0 - weight) * base + weight * shifts(ends, logit(base)))[None]])
        return np.concatenate([found, 1.0 - found], axis=1) if self.is_mirrored else found


def _between(low: FloatArray, high: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        middle = low / 2.0 + high / 2.0
    return np.where(np.isfinite(middle) & (middle < high), np.maximum(middle, low), low)
