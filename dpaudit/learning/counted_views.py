"""Counted views: the labels in fixed cells of a view, added up round after round.

Once draws are many, what more of them teach is told by counts in cells of the views that tell most: no output is read
again, and a fit costs no more however many draws there were. What learned views say themselves, such as a regression,
is known by its mean in each cell: trees hear it where it tells more than labels do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.views import View
from dpaudit.learning.learned_views import LearnedView
from dpaudit.learning.mixture import SIZES as MIXTURE_SIZES
from dpaudit.learning.rank_tree import SIZES as TREE_SIZES
from dpaudit.learning.rank_tree import (
    Forest,
    Labels,
    Ordered,
    Shifts,
    Steps,
    between,
    pruned_trees,
    shift_likelihoods,
    shift_trees,
)
from dpaudit.privacy.claims import FloatArray

# Of equal mass. On three problems (8 seeds) 64 take as many draws, and 1,024 take 29% more for a narrow interval.
CELLS = 256


@dataclasses.dataclass(frozen=True, eq=False)
class CountedView:
    """A view with its cells: cell k is above `edges[k-1]` and up to `edges[k]`; NaN comes last.

    Attributes
    ----------
    view : View or LearnedView
    edges : ndarray of float, shape (cells - 1,)
    cost : float
        Nats, of its prior.
    said : ndarray of float, shape (edges + 1,), or None
        Log odds by learned views in each cell; of a mirrored view with its labels swapped above the centre.
    """

    view: View | LearnedView
    edges: FloatArray
    cost: float
    said: FloatArray | None = None

    def __deepcopy__(self, memo: object) -> CountedView:
        return self

    @classmethod
    def of(
        cls, view: View | LearnedView, cost: float, values: FloatArray, trees: Sequence[Steps | Shifts] = ()
    ) -> CountedView:
        """Cells of about equal mass on these values, ever smaller ones at both ends; what is repeated has its own.

        So have the steps of these trees, the largest first: a narrow interval that was found stays one.
        """
        known = np.sort(values[~np.isnan(values)])
        if not len(known):
            return cls(view, np.zeros(0), cost)
        distinct, counts = np.unique(known, return_counts=True)
        last = known[-1:] if len(known) < len(values) else known[:0]  # beyond the last number is what is none
        if len(distinct) <= CELLS:
            return cls(view, np.concatenate([between(distinct[:-1], distinct[1:]), last]), cost)
        even = np.linspace(0.0, 1.0, CELLS + 1)[1:-1]
        tails = 0.5 ** np.arange(int(math.log2(CELLS)), max(int(math.log2(len(known))), 8))
        places = np.unique((np.concatenate([even, tails, 1.0 - tails]) * len(known)).astype(int))
        cuts = np.searchsorted(distinct, known[places])
        atoms = np.flatnonzero(counts >= max(TREE_SIZES.min_atom, len(known) / (8 * CELLS)))
        atoms = atoms[np.argsort(-counts[atoms], kind="stable")[:CELLS]]
        steps = [np.searchsorted(distinct, edge, side="right") for tree in trees for edge in tree.steepest(CELLS)]
        ends = np.unique(np.concatenate([cuts, atoms, atoms + 1, steps])).astype(int)
        ends = ends[(ends > 0) & (ends < len(distinct))]
        return cls(view, np.concatenate([between(distinct[ends - 1], distinct[ends]), last]), cost)

    @property
    def is_mirrored(self) -> bool:
        """Tell whether rows above the view's centre swap their labels: they have cells of their own."""
        return isinstance(self.view, View) and self.view.kind == "distance from the centre"

    @property
    def size(self) -> int:
        return (len(self.edges) + 1) * (2 if self.is_mirrored else 1)

    def cells_of(self, matrix: FloatArray) -> NDArray[np.intp]:
        """The cell of each row."""
        return self._cells(self.view(matrix), self.view.swaps(matrix) if isinstance(self.view, View) else None)

    def _cells(self, values: FloatArray, swaps: NDArray[np.bool_] | None) -> NDArray[np.intp]:
        return np.asarray(np.searchsorted(self.edges, values) + (0 if swaps is None else (len(self.edges) + 1) * swaps))

    def counts_of(self, values: FloatArray, labels: Labels, swaps: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Counts of label 0 and 1 by cell of rows with these values of the view, shape (2, cells)."""
        cells = labels * self.size + self._cells(values, swaps)
        return np.bincount(cells, minlength=2 * self.size).reshape(2, -1).astype(np.int64)

    def hearing(self, values: FloatArray, log_odds: FloatArray | None, swaps: NDArray[np.bool_] | None) -> CountedView:
        """The same view with the mean in each cell of what learned views say of rows with these values, if any does."""
        if log_odds is None:
            return self
        cells = np.searchsorted(self.edges, values)
        known, draws = np.unique(cells, return_counts=True)
        sums = np.bincount(cells, log_odds if swaps is None else np.where(swaps, -log_odds, log_odds))
        said = np.interp(np.arange(len(self.edges) + 1), known, sums[known] / draws)
        return dataclasses.replace(self, said=said)

    def fit(self, counts: NDArray[np.int64]) -> tuple[Steps, Steps, Shifts]:
        """A tree on counts, one that hears learned views too, and the shifts of what this one says."""
        folded = counts
        if self.is_mirrored:
            below, above = np.split(counts, 2, axis=1)
            folded = below + above[::-1]
        forest = Forest([Ordered.of_counts(folded)])
        plain, tree = (pruned_trees(forest, said).steps(0) for said in (None, self.said))
        base = scipy.special.logit(
            np.clip(tree(forest.views[0].values), MIXTURE_SIZES.least, 1.0 - MIXTURE_SIZES.least)
        )
        shifts = shift_trees(forest, shift_likelihoods(base, folded[1], folded.sum(axis=0)))[0]
        first, second = (dataclasses.replace(one, edges=self._at(one.edges)) for one in (plain, tree))
        return first, second, dataclasses.replace(shifts, edges=self._at(shifts.edges))

    def _at(self, places: FloatArray) -> FloatArray:
        """Edges of the view's values from those of its cells' numbers."""
        return self.edges[places.astype(int)] if len(places) else np.zeros(0)

    def probabilities(self, plain: Steps, tree: Steps, shifts: Shifts, weight: float) -> FloatArray:
        """Probabilities by each structure in each cell, shape (structures, cells); `weight` is that of the shifts."""
        ends = np.append(self.edges, np.nan)
        least = MIXTURE_SIZES.least
        first, base = (np.clip(one(ends), least, 1.0 - least) for one in (plain, tree))
        found = np.stack([first, base, (1.0 - weight) * base + weight * shifts(ends, scipy.special.logit(base))])
        return np.concatenate([found, 1.0 - found], axis=1) if self.is_mirrored else found
