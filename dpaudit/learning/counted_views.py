"""Counted views: the labels in fixed cells of a view, added up round after round.

Once draws are many, what more of them teach is told by counts in cells of the views that tell most: no output is read
again, and a fit costs no more however many draws there were.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.views import View
from dpaudit.learning.learned_views import LearnedView
from dpaudit.learning.rank_tree import Forest, Labels, Ordered, Steps, inheriting_trees, pruned_trees
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

    @classmethod
    def of(cls, view: View | LearnedView, cost: float, values: FloatArray) -> CountedView:
        """Cells of about equal mass on these values; what is repeated has a cell of its own."""
        known = np.sort(values[~np.isnan(values)])
        if not len(known):
            return cls(view, np.zeros(0), cost)
        distinct, counts = np.unique(known, return_counts=True)
        if len(distinct) <= SIZES.cells:
            return cls(view, _between(distinct[:-1], distinct[1:]), cost)
        places = np.unique((np.linspace(0.0, 1.0, SIZES.cells + 1)[1:-1] * len(known)).astype(int))
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

    def trees(self, counts: NDArray[np.int64]) -> tuple[Steps, ...]:
        """A tree of each structure on counts; its steps are of the view's values."""
        folded = counts
        if self.is_mirrored:
            below, above = np.split(counts, 2, axis=1)
            folded = below + above[::-1]
        forest = Forest([Ordered.of_counts(folded)])
        found = []
        for grown in (pruned_trees(forest), inheriting_trees(forest)):
            tree = grown.steps(0)
            edges = self.edges[tree.edges.astype(int)] if len(tree.edges) else np.zeros(0)
            found.append(dataclasses.replace(tree, edges=edges))
        return tuple(found)

    def spread(self, tree: Steps) -> FloatArray:
        """The probability of label 1 that a tree gives in each cell, shape (cells,)."""
        ends = np.append(self.edges, np.nan if not len(self.edges) else np.inf)
        p = tree.probabilities[np.minimum(np.searchsorted(tree.edges, ends), len(tree.probabilities) - 1)]
        return np.concatenate([p, 1.0 - p]) if self.is_mirrored else p


def _between(low: FloatArray, high: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        middle = low / 2.0 + high / 2.0
    return np.where(np.isfinite(middle) & (middle < high), np.maximum(middle, low), low)
