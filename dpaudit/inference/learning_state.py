"""Learning state: what a pair's draws have taught so far, and the rounds of its table.

A fit reads released draws, fixes the reader, the mixture and what is predicted of each bin, and opens a round. Counts
go to the round that was opened last.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.reader import Reader
from dpaudit.inference.tables import N_BINS, BinCounter, Counts, Predicted, Round, bins_of
from dpaudit.inference.witness import Shown
from dpaudit.learning.mixture import NO_FORETELLING, Mixture, fit_mixture
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, join
from dpaudit.testing.protocols import Training


@dataclasses.dataclass(frozen=True)
class StateSizes:
    """How often columns are chosen anew, and on how many draws bins are predicted."""

    reread: float = 1.5  # times the draws of the last choice of columns
    predicted_on: int = 4_000  # draws: their bins' masses are known to a few percent of a percent
    max_fitted: int = 40_000  # draws that a fit sees: a bound on its time
    fewest_kept: float = 1_000.0  # draws that a prediction is worth when it is mended by counts
    shown: int = 1_000  # draws that the words of a witness are made of: shares to 2%


SIZES = StateSizes()


class LearningState:
    """What is learned of a pair, round by round."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.counter: BinCounter
        self.shown = Shown()
        self.foretold = NO_FORETELLING.copy()
        self.draws = 0
        self.held: Counts = np.zeros((2, N_BINS), dtype=np.int64)
        self._reader: Reader | None = None
        self._read_at = 0
        self._kept: tuple[list[Outcomes], list[FloatArray]] = ([], [])
        self._of_structures: FloatArray = np.zeros((0, 0))  # what each structure predicts of its own bins

    @classmethod
    def frozen(cls, mixture: Mixture, predicted: Predicted) -> LearningState:
        """What was learned before, with a round of its own."""
        state = cls()
        state.counter = BinCounter(mixture)
        state.rounds.append(Round(predicted))
        state._of_structures = np.full((len(mixture.structures), N_BINS), 0.5)
        state.foretold = np.zeros(len(mixture.structures))
        return state

    def learn(self, training: Training, share: float = 1.0) -> None:
        """Fit on a share of released draws, and open a round. Of the rest the counts by bin are `held`."""
        sides = (training.second, training.first)  # label 0, label 1
        total = sum(map(len, sides))
        matrices = self._read(sides, total, training)
        labels = np.repeat([0, 1], [len(m) for m in matrices])
        matrix = np.concatenate(matrices)
        order = np.random.default_rng(np.random.SeedSequence(20_261_128)).permutation(total)
        order, rest = np.split(order, [int(share * total)])
        order = order[: SIZES.max_fitted]
        assert self._reader is not None
        mixture = fit_mixture(self._reader, matrix[order], labels[order], self.foretold)
        self.counter = BinCounter(mixture)
        some = order[-SIZES.predicted_on :]
        of_structures = mixture.of_matrix(matrix[some])
        self._of_structures = np.stack([Predicted.of(row).q for row in of_structures])
        q = mixture.weights @ of_structures
        self.rounds.append(Round(Predicted.of(q)))
        self.shown = Shown.of(mixture, matrix[some[: SIZES.shown]], q[: SIZES.shown])
        self.held = np.zeros((2, N_BINS), dtype=np.int64)
        if len(rest):
            bins = bins_of(mixture.weights @ mixture.of_matrix(matrix[rest]))
            self.held = np.bincount(labels[rest] * N_BINS + bins, minlength=2 * N_BINS).reshape(2, -1).astype(np.int64)

    def _read(self, sides: tuple[Outcomes, Outcomes], total: int, training: Training) -> list[FloatArray]:
        if self._reader is None or total >= SIZES.reread * self._read_at:
            points = _points(training)
            self._reader, self._read_at = Reader.learn(sides, points), total
        return [self._reader(side) for side in sides]

    def learn_from_counts(self) -> None:
        """Open a round of the same mixture, with what the last ones' labels say of its bins."""
        last = self.rounds[-1]
        self.rounds.append(Round(last.predicted.after(last.counts, SIZES.fewest_kept)))

    def add(self, counts: NDArray[np.int64]) -> None:
        """Add counts of label 0 and label 1, shape (2, size of the counter)."""
        by_bin = counts.reshape(2, -1, N_BINS)
        last = self.rounds[-1]
        last.counts[:] += by_bin[:, 0]
        self.draws += int(by_bin[:, 0].sum())
        q = np.clip(self._of_structures, 1e-6, 1.0 - 1e-6)
        self.foretold = self.foretold + (by_bin[1, 1:] * np.log(2.0 * q) + by_bin[0, 1:] * np.log(2.0 * (1.0 - q))).sum(axis=1)


def _points(training: Training) -> tuple[tuple[float, ...], ...]:
    inputs = training.hints.inputs
    if inputs is None:
        return ()
    try:
        points = [tuple(np.asarray(one, dtype=float).ravel().tolist()) for one in inputs]
    except (TypeError, ValueError):
        return ()
    return tuple(points) if len(points[0]) == len(points[1]) and np.all(np.isfinite(points)) else ()


__all__ = ["LearningState", "join"]
