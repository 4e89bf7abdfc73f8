"""Learning state: what a pair's draws have taught so far, and the rounds of its table.

A fit reads released draws, fixes the reader, the mixture and what is predicted of each bin, and opens a round. Counts
go to the round that was opened last. Once draws are many, the labels in the cells of the views that tell most are
counted too, and fits in between use these counts alone; where one view tells all, its cells are the bins.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.density import NO_HINTS, Hints, LogRatio
from dpaudit.features.outcomes import Outcomes
from dpaudit.features.reader import Memory, Reader
from dpaudit.inference.tables import N_BINS, BinCounter, CellCounter, Counts, Predicted, Round, bins_of, mass_of
from dpaudit.inference.witness import Shown
from dpaudit.learning.counted_views import CountedView
from dpaudit.learning.mixture import NO_FORETELLING, Clue, Mixture, Model, fit_mixture, mixture_of, swaps_of, weights_of
from dpaudit.learning.mixture import SIZES as MIXTURE_SIZES
from dpaudit.learning.rank_tree import Labels, rise
from dpaudit.privacy.claims import FloatArray


@dataclasses.dataclass(frozen=True)
class StateSizes:
    """Limits on choosing columns anew, and on the draws that predict bins."""

    reread: float = 1.5  # times the draws of the last choice of columns
    predicted_on: int = 4_000  # draws: their bins' masses are known to a few percent of themselves
    max_fitted: int = 40_000  # draws that a fit sees: a bound on its time
    max_numbers: int = 10_000  # the same where an output is one number, whose cells go on to be counted
    counted_from: int = 2_000  # draws of a fit, from which on views are counted: trees on 256 cells lose nothing
    switching: float = 0.05  # of the weights of structures, that goes back to all after each round
    single: float = 0.95  # weight of a view from which on its cells are the bins
    sketched: int = 2_000  # draws of a sketch, that bins are seen
    sketched_numbers: int = 2_000_000  # of these draws at most: 16 MB
    shown: int = 1_000  # draws that the words of a witness are made of, the clearest half of them of 4,000


SIZES = StateSizes()


@dataclasses.dataclass(frozen=True)
class Training:
    """Earlier draws of a pair, which a test may be fitted on."""

    first: Outcomes  # of x
    second: Outcomes  # of x_prime
    hints: Hints = NO_HINTS  # what is known of the pair beside them


class LearningState:
    """State of learning of a pair, round by round."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.counter: BinCounter | CellCounter
        self.shown = Shown()
        self.foretold = NO_FORETELLING.copy()
        self.draws = 0
        self.held: Counts = np.zeros((2, N_BINS), dtype=np.int64)
        self._reader: Reader | None = None
        self._read_at = 0
        self.is_full = False  # whether the last fit saw as many draws as one may
        self._memories = Memory(), Memory()
        self._views: list[tuple[CountedView, Counts]] = []
        self._record: tuple[Mixture, dict[str, Any]] | None = None
        self._of_structures: FloatArray = np.zeros((0, 0))  # what each structure predicts of its own bins

    def open(self, counter: Any, predicted: Predicted) -> None:
        """Open a round of a counter that is known already."""
        self.counter = counter
        self.rounds.append(Round.of(predicted))

    def learn(self, training: Training, share: float = 1.0) -> None:
        """Fit on a share of released draws, and open a round. Of the rest the counts by bin are `held`.

        A test that needs some of them is fitted once: its round is the last.
        """
        batches = (training.second, training.first)  # label 0, label 1
        total = sum(map(len, batches))
        if self._reader is None or total >= SIZES.reread * self._read_at:
            self._reader = Reader.learn(batches, _points(training), density=training.hints.log_ratio)
            self._read_at = total
        matrices = [memory(self._reader, side) for memory, side in zip(self._memories, batches, strict=True)]
        labels = np.repeat([0, 1], [len(m) for m in matrices])
        matrix = np.concatenate(matrices)
        order = np.random.default_rng(np.random.SeedSequence(20_261_128)).permutation(total)
        order, rest = np.split(order, [int(share * total)])
        most = SIZES.max_fitted if matrix.shape[1] > 1 else SIZES.max_numbers
        self.is_full = len(order) >= most
        order = order[:most]
        matrix_fit, labels_fit = matrix[order], labels[order]
        mixture, clues, said = fit_mixture(self._reader, matrix_fit, labels_fit, self.foretold)
        self._views = []
        if len(order) >= SIZES.counted_from and share == 1.0:
            self._views = [_counted(one, mixture, matrix_fit, labels_fit, said) for one in clues]
        self.counter = BinCounter(mixture, tuple(view for view, _ in self._views), is_last=share < 1.0)
        some = order[-SIZES.predicted_on :]
        of_structures = mixture.of_matrix(matrix[some])
        self._of_structures = np.stack([Predicted.of(row).q for row in of_structures])
        q = mixture.mixed(of_structures)
        self.rounds.append(Round.of(Predicted.of(q)))
        clear = np.argsort(-np.abs(q - 0.5), kind="stable")[: SIZES.shown // 2]  # what is guessed may be rare
        shown = np.union1d(clear, np.arange(min(len(some), SIZES.shown // 2)))
        n_drawn = max(SIZES.shown // 2, min(SIZES.sketched, SIZES.sketched_numbers // max(matrix.shape[1], 1)))
        drawn = some[:n_drawn]
        self.shown = Shown(matrix[some[shown]], q[shown], matrix[drawn], q[:n_drawn], labels[drawn])
        self.held = np.zeros((2, N_BINS), dtype=np.int64)
        if len(rest):
            bins = bins_of(mixture.mixed(mixture.of_matrix(matrix[rest])))
            self.held = np.bincount(labels[rest] * N_BINS + bins, minlength=2 * N_BINS).reshape(2, -1).astype(np.int64)

    def learn_from_counts(self) -> None:
        """Fit on the counts of views, and open a round; where no view is counted the bins stay as they are."""
        last = self.rounds[-1]
        if not self._views:
            self.rounds.append(Round.of(last.predicted))
            return
        reader = self.counter.mixture.reader
        fitted = [view.fit(counts) for view, counts in self._views]
        views = [view for view, _ in self._views]
        plain, trees, moves = (
            [Model(tree.evidence - one.cost, one.view, tree) for one, tree in zip(views, each, strict=True)]
            for each in zip(*fitted, strict=True)
        )
        mixture = mixture_of(reader, plain, trees, moves, self.foretold)
        weights = [sum(part.weight for part in mixture.parts if part.view is one.view) for one in views]
        best = int(np.argmax(weights))
        view, counts = self._views[best]
        weight = sum(part.weight for part in mixture.shifted if part.view is view.view)
        q = view.probabilities(*fitted[best], weight)
        mass = mass_of(counts.sum(axis=0))
        predicted = Predicted(mixture.mixed(q), mass)
        if weights[best] >= SIZES.single:
            self._views = [self._views[best]]
            self.counter, self._of_structures = CellCounter(mixture, view), q
        else:  # what the cells of the best view say and weigh tells that of the bins well enough
            self.counter = BinCounter(mixture, tuple(one for one, _ in self._views))
            self._of_structures = np.stack([Predicted(row, mass).by_bins().q for row in q])
            predicted = predicted.by_bins()
        self.rounds.append(Round.of(predicted))

    def add(self, counts: NDArray[np.int64]) -> None:
        """Add counts of label 0 and label 1, shape (2, size of the counter)."""
        table, structures, views = self.counter.split(counts)
        self.rounds[-1].counts[:] += table
        self.draws += int(table.sum())
        self._views = [(view, before + now) for (view, before), now in zip(self._views, views, strict=True)]
        if not structures:
            return
        clear = np.clip(self._of_structures, 1e-6, 1.0 - 1e-6)
        scores = MIXTURE_SIZES.temperatures * scipy.special.logit(clear)[:, :, None]
        for foretold, own, score in zip(self.foretold, structures, scores, strict=True):
            foretold += own.sum() * math.log(2.0)  # over a fair coin
            foretold += own[1] @ scipy.special.log_expit(score) + own[0] @ scipy.special.log_expit(-score)
        # Fixed share among structures, at each temperature: else a fair coin's part would hide what is nearly certain.
        weights = weights_of(self.foretold)
        shared = (1.0 - SIZES.switching) * weights + SIZES.switching * weights.mean(axis=0)
        self.foretold = np.log(np.maximum(shared, 1e-300))

    def saved(self, origin: str) -> dict[str, Any]:
        """The counts and the last predictor, as JSON values; `origin` names the streams of the present counts.

        Rounds that have counted nothing are left out; what the last one predicts of its bins goes on in `next`.
        """
        counted = [one for one in self.rounds if one.counts.any()]
        for one in counted:
            if not one.name:
                one.name = f"{origin}#{sum(known.name.startswith(f'{origin}#') for known in self.rounds)}"
        places = {id(view): k for k, view in enumerate(self.counter.mixture.views)}
        return {
            "rounds": [one.to_dict() for one in counted],
            "next": self.rounds[-1].predicted.by_bins().to_dict(),
            "mixture": self._mixture_record(self.counter.mixture),
            "foretold": self.foretold.tolist(),
            "read_at": self._read_at,
            "views": [
                {
                    "view": places[id(one.view)],
                    "edges": [edge.hex() for edge in one.edges.tolist()],
                    "cost": one.cost,
                    "said": None if one.said is None else one.said.tolist(),
                    "counts": counts.tolist(),
                }
                for one, counts in self._views
                if id(one.view) in places  # the others tell nothing
            ],
        }

    def _mixture_record(self, mixture: Mixture) -> dict[str, Any]:
        """The predictor as JSON values: worked out once a fit, since a session saves it after many rounds."""
        if self._record is None or self._record[0] is not mixture:
            self._record = mixture, mixture.to_dict()
        return self._record[1]

    def restore(self, record: dict[str, Any], density: LogRatio | None = None) -> None:
        """Go on from what `saved` gave, in a round of its own; ValueError where it is damaged."""
        following = Predicted.from_dict(record["next"])
        self.rounds = [*map(Round.from_dict, record["rounds"]), Round.of(following)]
        mixture = Mixture.from_dict(record["mixture"], density)
        self._views = [_restored(one, mixture) for one in record["views"]]
        self.counter = BinCounter(mixture, tuple(view for view, _ in self._views))
        self.foretold = np.array(record["foretold"], dtype=float).reshape(NO_FORETELLING.shape)
        if len(following.q) != N_BINS or not np.all(np.isfinite(self.foretold)):
            raise ValueError(f"a table must predict of {N_BINS} bins, and have foretold finite numbers")
        # Each structure's bins are of its own probability, of which no more is known than the mixture's bins say.
        self._of_structures = np.tile(following.q, (len(NO_FORETELLING), 1))
        self.draws = sum(int(one.counts.sum()) for one in self.rounds)
        self._reader, self._read_at = mixture.reader, int(record["read_at"])


def _counted(
    clue: Clue, mixture: Mixture, matrix: FloatArray, labels: Labels, said: FloatArray | None
) -> tuple[CountedView, Counts]:
    parts = (*mixture.parts, *mixture.shifted)
    trees = [part.tree for part in parts if part.view is clue.view and part.tree is not None]
    swaps = swaps_of(clue.view, matrix)
    view = CountedView.of(clue.view, clue.cost, clue.values, trees).hearing(clue.values, said, swaps)
    return view, view.counts_of(clue.values, labels, swaps)


def _restored(record: dict[str, Any], mixture: Mixture) -> tuple[CountedView, Counts]:
    """A counted view of a mixture that was saved, with its counts."""
    place, cost, counts = operator.index(record["view"]), float(record["cost"]), np.array(record["counts"])
    edges = np.array([float.fromhex(edge) for edge in record["edges"]])
    if place < 0 or not math.isfinite(cost) or not rise(edges):
        raise ValueError("a counted view must be one of the mixture's, with a cost and rising edges")
    said = None if record.get("said") is None else np.array(record["said"], dtype=float)  # earlier versions had none
    most = -math.log(MIXTURE_SIZES.least)
    if said is not None and (said.shape != (len(edges) + 1,) or not (np.abs(said) < most).all()):
        raise ValueError("log odds of a counted view must be those of probabilities, one in each cell")
    view = CountedView(mixture.views[place], edges, cost, said)
    if counts.shape != (2, view.size) or counts.dtype != np.int64 or counts.min() < 0:
        raise ValueError("a counted view must have a count of each label in each cell")
    return view, counts


def _points(training: Training) -> tuple[tuple[float, ...], ...]:
    try:
        points = [np.asarray(one, dtype=float).ravel() for one in training.hints.inputs or ()]
    except (TypeError, ValueError):
        return ()
    width = training.first.numbers.shape[1]  # large inputs that are no outputs are not listed
    return tuple(tuple(one.tolist()) for one in points if one.size == width and np.all(np.isfinite(one)))
