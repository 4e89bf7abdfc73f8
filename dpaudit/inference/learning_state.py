"""Learning state: what a pair's draws have taught so far, and the rounds of its table.

A fit reads released draws, fixes the reader, the mixture and what is predicted of each bin, and opens a round. Counts
go to the round that was opened last. Once draws are many, the labels in the cells of the views that tell most are
counted too, and fits in between use these counts alone; where one view tells all, its cells are the bins.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.reader import Reader
from dpaudit.features.views import View
from dpaudit.inference.tables import N_BINS, BinCounter, CellCounter, Counts, Predicted, Round, bins_of
from dpaudit.learning.counted_views import CountedView
from dpaudit.learning.mixture import NO_FORETELLING, Model, Told, fit_mixture, mixture_of, weights_of
from dpaudit.learning.rank_tree import Labels, Steps
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes
from dpaudit.testing.protocols import Training


@dataclasses.dataclass(frozen=True)
class StateSizes:
    """How often columns are chosen anew, and on how many draws bins are predicted."""

    reread: float = 1.5  # times the draws of the last choice of columns
    predicted_on: int = 4_000  # draws: their bins' masses are known to a few percent of themselves
    max_fitted: int = 40_000  # draws that a fit sees: a bound on its time
    counted_from: int = 2_000  # draws of a fit, from which on views are counted: trees on 256 cells lose nothing
    single: float = 0.95  # weight of a view from which on its cells are the bins


SIZES = StateSizes()


class LearningState:
    """What is learned of a pair, round by round."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.counter: BinCounter | CellCounter
        self.foretold = NO_FORETELLING.copy()
        self.draws = 0
        self.held: Counts = np.zeros((2, N_BINS), dtype=np.int64)
        self._reader: Reader | None = None
        self._read_at = 0
        self._views: list[tuple[CountedView, Counts]] = []
        self._of_structures: FloatArray = np.zeros((0, 0))  # what each structure predicts of its own bins

    def learn(self, training: Training, share: float = 1.0) -> None:
        """Fit on a share of released draws, and open a round. Of the rest the counts by bin are `held`."""
        sides = (training.second, training.first)  # label 0, label 1
        total = sum(map(len, sides))
        if self._reader is None or total >= SIZES.reread * self._read_at:
            self._reader, self._read_at = Reader.learn(sides, _points(training)), total
        matrices = [self._reader(side) for side in sides]
        labels = np.repeat([0, 1], [len(m) for m in matrices])
        matrix = np.concatenate(matrices)
        order = np.random.default_rng(np.random.SeedSequence(20_261_128)).permutation(total)
        order, rest = np.split(order, [int(share * total)])
        order = order[: SIZES.max_fitted]
        matrix_fit, labels_fit = matrix[order], labels[order]
        mixture, told = fit_mixture(self._reader, matrix_fit, labels_fit, self.foretold)
        self._views = []
        if len(order) >= SIZES.counted_from and share == 1.0:
            self._views = [_counted(one, matrix_fit, labels_fit) for one in told]
        self.counter = BinCounter(mixture, tuple(view for view, _ in self._views))
        some = order[-SIZES.predicted_on :]
        of_structures = mixture.of_matrix(matrix[some])
        self._of_structures = np.stack([Predicted.of(row).q for row in of_structures])
        self.rounds.append(Round.of(Predicted.of(mixture.weights @ of_structures)))
        self.held = np.zeros((2, N_BINS), dtype=np.int64)
        if len(rest):
            bins = bins_of(mixture.weights @ mixture.of_matrix(matrix[rest]))
            self.held = np.bincount(labels[rest] * N_BINS + bins, minlength=2 * N_BINS).reshape(2, -1).astype(np.int64)

    def learn_from_counts(self) -> None:
        """Fit on the counts of views, and open a round; where no view is counted the bins stay as they are."""
        last = self.rounds[-1]
        if not self._views:
            self.rounds.append(Round.of(last.predicted))
            return
        reader = self.counter.mixture.reader
        of_structures: list[list[Model]] = [[] for _ in NO_FORETELLING]
        of_view: list[tuple[Steps, ...]] = []
        for view, counts in self._views:
            of_view.append(view.trees(counts))
            for models, tree in zip(of_structures, of_view[-1], strict=True):
                models.append(Model(tree.evidence - view.cost, view.view, tree))
        mixture = mixture_of(reader, of_structures, self.foretold)
        shares = np.array([
            sum(
                float(weight) * part.weight
                for weight, parts in zip(mixture.weights, mixture.structures, strict=True)
                for part in parts
                if part.view is view.view
            )
            for view, _ in self._views
        ])  # fmt: skip
        best = int(np.argmax(shares))
        if shares[best] >= SIZES.single:
            view, counts = self._views[best]
            self._views = [self._views[best]]
            self.counter = CellCounter(mixture, view)
            self._of_structures = np.stack([view.spread(tree) for tree in of_view[best]])
            draws = counts.sum(axis=0)
            predicted = Predicted(mixture.weights @ self._of_structures, (draws + 0.02) / (draws.sum() + 0.02 * len(draws)))
        else:
            self.counter = BinCounter(mixture, tuple(view for view, _ in self._views))
            # Bins of the new mixture: what the cells of its best view fall into tells their masses well enough.
            view, counts = self._views[best]
            q = np.stack([view.spread(tree) for tree in of_view[best]])
            draws = np.repeat(np.arange(view.size), np.minimum(counts.sum(axis=0), 400))
            self._of_structures = np.stack([Predicted.of(row[draws]).q for row in q])
            predicted = Predicted.of((mixture.weights @ q)[draws])
        self.rounds.append(Round.of(predicted))

    def add(self, counts: NDArray[np.int64]) -> None:
        """Add counts of label 0 and label 1, shape (2, size of the counter)."""
        table, structures, views = self.counter.split(counts)
        self.rounds[-1].counts[:] += table
        self.draws += int(table.sum())
        self._views = [(view, before + now) for (view, before), now in zip(self._views, views, strict=True)]
        q = np.clip(self._of_structures, 1e-6, 1.0 - 1e-6)
        for k, (own, p) in enumerate(zip(structures, q, strict=True)):
            self.foretold[k] += float(own[1] @ np.log(2.0 * p) + own[0] @ np.log(2.0 * (1.0 - p)))

    def describe(self, x: str, x_prime: str) -> str:
        """The strongest model in words."""
        mixture = self.counter.mixture
        part = mixture.strongest()
        if part is None:
            return f"Nothing in the outputs tells {x} from {x_prime}."
        names = mixture.reader.names
        what = part.view.describe(names) if isinstance(part.view, View) else part.view.name
        return f"Guess {x} or {x_prime} by {what}."


def _counted(told: Told, matrix: FloatArray, labels: Labels) -> tuple[CountedView, Counts]:
    view = CountedView.of(told.view, told.cost, told.values)
    swaps = told.view.swaps(matrix) if isinstance(told.view, View) else None
    return view, view.counts_of(told.values, labels, swaps)


def _points(training: Training) -> tuple[tuple[float, ...], ...]:
    inputs = training.hints.inputs
    if inputs is None:
        return ()
    try:
        points = [tuple(np.asarray(one, dtype=float).ravel().tolist()) for one in inputs]
    except (TypeError, ValueError):
        return ()
    return tuple(points) if len(points[0]) == len(points[1]) and np.all(np.isfinite(points)) else ()


__all__ = ["LearningState", "weights_of"]
