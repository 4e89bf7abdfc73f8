"""Tables of counts: all that a test sees of outputs, a worker returns, a store keeps and a merge adds.

Once a predictor is frozen, an output is nothing but the bin of its predicted probability, on the scale of log odds. A
`Round` has what was predicted of each bin before its draws (the probability of label 1 in it, its mass), and the labels
that were then counted.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.learning.counted_views import CountedView
from dpaudit.learning.mixture import STRUCTURES, Mixture
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes

Counts = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class BinSizes:
    """Bins of log odds: as many on either side of 0, in equal ratios."""

    per_side: int = 40  # neighbours differ by 18%: a stake that is off by so much loses 1% of its growth
    nearest: float = 0.02  # nats: a loss that 100,000 draws tell from none
    farthest: float = 12.0  # nats: odds that nobody learns from fewer than 100,000 draws
    prior_draws: float = 0.02  # of each bin, beside the draws that its mass is predicted from


SIZES = BinSizes()
_SIDE = np.geomspace(SIZES.nearest, SIZES.farthest, SIZES.per_side)
EDGES = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])
N_BINS = len(EDGES) + 1
MIDDLES = scipy.special.expit(
    np.concatenate([[EDGES[0] - 0.5], (EDGES[1:] + EDGES[:-1]) / 2.0, [EDGES[-1] + 0.5]])
)  # what is predicted of a bin that no earlier draw fell into


def bins_of(probabilities: FloatArray) -> NDArray[np.intp]:
    """The bin of each predicted probability."""
    return np.digitize(scipy.special.logit(np.clip(probabilities, 1e-7, 1.0 - 1e-7)), EDGES)


@dataclasses.dataclass(frozen=True, eq=False)
class BinCounter:
    """Counts outputs by the bin of a frozen predictor: of the mixture, of each structure, and by cells of some views."""

    mixture: Mixture
    views: tuple[CountedView, ...] = ()

    def count(self, outcomes: Outcomes) -> Counts:
        """Counts, the parts that `split` takes apart one after the other."""
        if not len(outcomes):
            return self.zeros()
        matrix = self.mixture.reader(outcomes)
        of_structures = self.mixture.of_matrix(matrix)
        parts = [self.mixture.mixed(of_structures), *of_structures]
        found = [np.bincount(bins_of(p), minlength=N_BINS) for p in parts]
        found += [np.bincount(view.cells_of(matrix), minlength=view.size) for view in self.views]
        return np.concatenate(found).astype(np.int64)

    def zeros(self) -> Counts:
        return np.zeros((1 + len(STRUCTURES)) * N_BINS + sum(v.size for v in self.views), dtype=np.int64)

    def split(self, counts: Counts) -> tuple[Counts, list[Counts], list[Counts]]:
        """Counts of both labels, shape (2, size), as those of the table, of structures and of views."""
        ends = np.cumsum([N_BINS] * (1 + len(STRUCTURES)) + [view.size for view in self.views])
        parts = np.split(counts, ends[:-1], axis=1)
        structures = 1 + len(STRUCTURES)
        return parts[0], parts[1:structures], parts[structures:]


@dataclasses.dataclass(frozen=True, eq=False)
class CellCounter:
    """Counts outputs by the cells of one view, which tells all that the mixture does."""

    mixture: Mixture
    view: CountedView

    def count(self, outcomes: Outcomes) -> Counts:
        """Counts, shape (cells,)."""
        if not len(outcomes):
            return self.zeros()
        cells = self.view.cells_of(self.mixture.reader(outcomes))
        return np.bincount(cells, minlength=self.view.size).astype(np.int64)

    def zeros(self) -> Counts:
        return np.zeros(self.view.size, dtype=np.int64)

    def split(self, counts: Counts) -> tuple[Counts, list[Counts], list[Counts]]:
        """The same counts as those of the table, of each structure and of the view."""
        return counts, [counts] * len(STRUCTURES), [counts]


@dataclasses.dataclass(frozen=True)
class EmptyCounter:
    """Counts nothing: the statistic of a test that reads another one's table."""

    def count(self, outcomes: Outcomes) -> Counts:
        del outcomes
        return self.zeros()

    def zeros(self) -> Counts:
        return np.zeros(0, dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class Predicted:
    """What is predicted of each bin before a round: its probability of label 1 and its mass, shape (bins,) each."""

    q: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, probabilities: FloatArray) -> Predicted:
        """What the predicted probabilities of earlier draws foretell of bins."""
        bins = bins_of(probabilities)
        count = np.bincount(bins, minlength=N_BINS)
        mean = np.bincount(bins, probabilities, minlength=N_BINS) / np.maximum(count, 1)
        mass = (count + SIZES.prior_draws) / (len(bins) + SIZES.prior_draws * N_BINS)
        return cls(np.where(count > 0, mean, MIDDLES), mass)


@dataclasses.dataclass(frozen=True, eq=False)
class Round:
    """Counts of labels by bin, with what was predicted of each bin before: see the module.

    Attributes
    ----------
    predicted : Predicted
    counts : ndarray of int, shape (2, bins)
        Row 0 is label 0 (x_prime), row 1 label 1 (x).
    """

    predicted: Predicted
    counts: Counts

    @classmethod
    def of(cls, predicted: Predicted) -> Round:
        """A round that has counted nothing."""
        return cls(predicted, np.zeros((2, len(predicted.q)), dtype=np.int64))

    def to_dict(self) -> dict[str, Any]:
        """The round as JSON values, of bins that were reached."""
        reached = np.flatnonzero(self.counts.sum(axis=0) + (self.predicted.mass > 1e-4))
        return {
            "bins": reached.tolist(),
            "q": [self.predicted.q[k].hex() for k in reached],
            "mass": [self.predicted.mass[k].hex() for k in reached],
            "counts": self.counts[:, reached].tolist(),
        }
