"""Counted views: the labels in fixed cells of a view, added up round after round.

Once draws are many, what more of them teach is told by counts in cells of the views that tell most: no output is read
again, and a fit costs no more however many draws there were. What learned views say themselves, such as a regression,
is known by its mean in each cell, and goes on being weighed against trees: where few draws are, in tails, it may tell
more than their labels do.
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
from dpaudit.learning.rank_tree import (
    LOG_2,
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
from dpaudit.learning.rank_tree import SIZES as TREE_SIZES
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
    lines : ndarray of float, shape (lines, cells)
        Log odds that learned views give themselves, in the mean of each cell.
    before : ndarray of float, shape (lines,)
        Nats of their evidence beside what they tell of the counts: below 0, as they were fitted on some of these.
    """

    view: View | LearnedView
    edges: FloatArray
    cost: float
    lines: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 1)))
    before: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))

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
        return self.cells(self.view(matrix), self.view.swaps(matrix) if isinstance(self.view, View) else None)

    def cells(self, values: FloatArray, swaps: NDArray[np.bool_] | None) -> NDArray[np.intp]:
        """The cell of each row with these values of the view."""
        return np.asarray(np.searchsorted(self.edges, values) + (0 if swaps is None else (len(self.edges) + 1) * swaps))

    def counts_of(self, values: FloatArray, labels: Labels, swaps: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Counts of label 0 and 1 by cell of rows with these values of the view, shape (2, cells)."""
        cells = labels * self.size + self.cells(values, swaps)
        return np.bincount(cells, minlength=2 * self.size).reshape(2, -1).astype(np.int64)

    def with_lines(self, scores: Sequence[FloatArray], before: Sequence[float], cells: NDArray[np.intp]) -> CountedView:
        """The same view with the log odds that learned views give rows of these cells, in the mean of each cell."""
        draws = np.bincount(cells, minlength=self.size)
        known = np.flatnonzero(draws)
        means = (np.bincount(cells, own, minlength=self.size)[known] / draws[known] for own in scores)
        lines = np.array([np.interp(np.arange(self.size), known, own) for own in means])
        return dataclasses.replace(self, lines=lines, before=np.array(before))

    def fit(self, counts: NDArray[np.int64]) -> CountedFit:
        """What counts tell: a tree, how well learned views foretold them, and shifts of what both say."""
        halves = self._folded(counts)  # shape (halves, 2, cells)
        forest = Forest([Ordered.of_counts(halves.sum(axis=0))])
        tree = pruned_trees(forest).steps(0)
        lines = self.lines.reshape(-1, self.size)
        told = scipy.special.log_expit(lines) @ counts[1] + scipy.special.log_expit(-lines) @ counts[0]
        told += self.before + LOG_2 * counts.sum()
        evidence = np.concatenate([[0.0, tree.evidence], told])
        shares = np.exp(evidence - evidence.max())
        shares /= shares.sum()
        signs = np.array([1.0, -1.0])[: len(halves), None]
        places = forest.views[0].values
        own = np.tile(tree(places), (len(halves), 1))
        says = scipy.special.expit(signs * lines.reshape(len(lines), len(halves), len(places)))
        parts = 0.5 * shares[0] + shares[1] * own + np.tensordot(shares[2:], says, 1)
        base = scipy.special.logit(np.clip(parts, MIXTURE_SIZES.least, 1.0 - MIXTURE_SIZES.least))
        likelihoods = sum(
            shift_likelihoods(log_odds, half[1], half.sum(axis=0)) for log_odds, half in zip(base, halves, strict=True)
        )
        shifts = shift_trees(forest, np.asarray(likelihoods))[0]
        moved = np.stack([shifts(places, log_odds) for log_odds in base])
        found = np.stack([own, parts, moved])
        if self.is_mirrored:
            found[:, 1] = 1.0 - found[:, 1]
        return CountedFit(
            dataclasses.replace(tree, edges=self._at(tree.edges)),
            dataclasses.replace(shifts, edges=self._at(shifts.edges)),
            told,
            found.reshape(3, -1),
        )

    def _folded(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts of each half of a mirrored view, the labels of the second swapped; else all as one half."""
        if not self.is_mirrored:
            return counts[None]
        below, above = np.split(counts, 2, axis=1)
        return np.stack([below, above[::-1]])

    def _at(self, places: FloatArray) -> FloatArray:
        """Edges of the view's values from those of its cells' numbers."""
        return self.edges[places.astype(int)] if len(places) else np.zeros(0)


@dataclasses.dataclass(frozen=True, eq=False)
class CountedFit:
    """What the counts of a view tell.

    Attributes
    ----------
    tree : Steps
    shifts : Shifts
    told : ndarray of float, shape (lines,)
        Evidence of what learned views say themselves.
    parts : ndarray of float, shape (3, cells)
        Probabilities by the tree, by tree and learned views, and with the shifts of these.
    """

    tree: Steps
    shifts: Shifts
    told: FloatArray
    parts: FloatArray

    def probabilities(self, weight: float) -> FloatArray:
        """Probabilities by each structure in each cell; `weight` is that of the shifts."""
        tree, parts, moved = self.parts
        return np.stack([tree, parts, (1.0 - weight) * parts + weight * moved])
