"""Tables of counts: all that a test sees of outputs, a worker returns, a store keeps and a merge adds.

Once a predictor is frozen, an output is nothing but the bin of its predicted probability, on the scale of log odds. A
`Round` has what was predicted of each bin before its draws (the probability of label 1 in it, its mass), and the labels
that were then counted.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.outcomes import Outcomes
from dpaudit.learning.counted_views import CountedView
from dpaudit.learning.mixture import STRUCTURES, Mixture
from dpaudit.privacy.claims import FloatArray

Counts = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class BinSizes:
    """Bins of log odds: as many on either side of 0, in equal ratios."""

    per_side: int = 40  # neighbours differ by 18%: a stake that is off by so much loses 1% of its growth
    nearest: float = 0.02  # nats: a loss that 100,000 draws tell from none
    farthest: float = 12.0  # nats: odds that nobody learns from fewer than 100,000 draws
    prior_draws: float = 0.02  # of each bin or cell, beside the draws that its mass is predicted from
    max_cells: int = 1 << 14  # of a saved table: several times what views have


SIZES = BinSizes()
_SIDE = np.geomspace(SIZES.nearest, SIZES.farthest, SIZES.per_side)
EDGES = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])  # of bins, in nats
N_BINS = len(EDGES) + 1  # between and beyond the edges
_MIDDLE = np.concatenate([[EDGES[0] - 0.5], (EDGES[1:] + EDGES[:-1]) / 2.0, [EDGES[-1] + 0.5]])  # of each bin, in nats
MIDDLES = 1.0 / (1.0 + np.exp(-_MIDDLE))  # what is predicted of a bin that no earlier draw fell into


def mass_of(draws: Counts) -> FloatArray:
    """The mass of each bin or cell, from earlier draws in it."""
    return np.asarray((draws + SIZES.prior_draws) / (draws.sum() + SIZES.prior_draws * len(draws)), dtype=float)


def bins_of(probabilities: FloatArray) -> NDArray[np.intp]:
    """The bin of each predicted probability."""
    return np.asarray(np.digitize(scipy.special.logit(np.clip(probabilities, 1e-7, 1.0 - 1e-7)), EDGES), dtype=np.intp)


@dataclasses.dataclass(frozen=True, eq=False)
class BinCounter:
    """Counts outputs by the bins of a frozen predictor: of the mixture, of each structure, and by cells of views.

    A test that is fitted once has no use for more than the mixture's bins: `is_last` counts nothing else.
    """

    mixture: Mixture
    views: tuple[CountedView, ...] = ()
    is_last: bool = False

    def count(self, outcomes: Outcomes) -> Counts:
        """Counts, the parts that `split` takes apart one after the other."""
        if not len(outcomes):
            return self.zeros()
        matrix = self.mixture.reader(outcomes)
        if matrix.shape[1] == 1:
            # What follows one another falls into the same cells: a third of the time. By bits: zeros keep their signs.
            matrix = np.sort(np.ascontiguousarray(matrix).view(np.int64), axis=0).view(np.float64)
        of_structures = self.mixture.of_matrix(matrix)
        parts = [self.mixture.mixed(of_structures), *([] if self.is_last else of_structures)]
        found = [np.bincount(bins_of(p), minlength=N_BINS) for p in parts]
        found += [np.bincount(view.cells_of(matrix), minlength=view.size) for view in self.views]
        return np.concatenate(found).astype(np.int64)

    @property
    def _sizes(self) -> list[int]:
        return [N_BINS] * (1 if self.is_last else 1 + len(STRUCTURES)) + [view.size for view in self.views]

    def zeros(self) -> Counts:
        return np.zeros(sum(self._sizes), dtype=np.int64)

    def split(self, counts: Counts) -> tuple[Counts, list[Counts], list[Counts]]:
        """Counts of both labels, shape (2, size), as those of the table, of structures and of views."""
        table, *parts = np.split(counts, np.cumsum(self._sizes)[:-1], axis=1)
        structures = len(parts) - len(self.views)
        return table, parts[:structures], parts[structures:]


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


@dataclasses.dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of each bin before a round: its probability of label 1 and its mass, shape (bins,) each."""

    q: FloatArray
    mass: FloatArray

    def __deepcopy__(self, memo: object) -> Predicted:
        return self

    @classmethod
    def of(cls, probabilities: FloatArray) -> Predicted:
        """The predictions of bins by the predicted probabilities of earlier draws."""
        bins = bins_of(probabilities)
        count = np.bincount(bins, minlength=N_BINS)
        mean = np.bincount(bins, probabilities, minlength=N_BINS) / np.maximum(count, 1)
        return cls(np.where(count > 0, mean, MIDDLES), mass_of(count))

    def by_bins(self) -> Predicted:
        """The same by bins of the predicted probability, of cells of any kind; what is by bins stays as it is."""
        bins = bins_of(self.q)
        if np.array_equal(bins, np.arange(N_BINS)):
            return self
        mass = np.bincount(bins, self.mass, minlength=N_BINS)
        mean = np.bincount(bins, self.mass * self.q, minlength=N_BINS) / np.where(mass > 0.0, mass, 1.0)
        smoothed = (mass + 1e-6) / (1.0 + 1e-6 * N_BINS)
        return Predicted(np.where(mass > 0.0, mean, MIDDLES), np.asarray(smoothed, dtype=float))

    def to_dict(self) -> dict[str, Any]:
        """The predictions as JSON values, exact.

        Bins of which nothing was known are left out: they have the same mass, and their middle as q.
        """
        q, mass = self.q, self.mass
        own = np.arange(len(q)) if len(q) != N_BINS else np.flatnonzero((q != MIDDLES) | (mass != mass.min()))
        return {
            "size": len(q),
            "bins": own.tolist(),
            "q": q[own].tolist(),
            "mass": mass[own].tolist(),
            "rest": float(mass.min()),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Predicted:
        """The predictions that `to_dict` wrote; ValueError for other values."""
        own = np.array(record["bins"], dtype=np.intp)
        size = operator.index(record["size"])
        if not 0 < size <= SIZES.max_cells or np.any((own < 0) | (own >= size)):
            raise ValueError(f"bins must be of at most {SIZES.max_cells:,}, and not out of bounds")
        q, mass = (MIDDLES.copy() if size == N_BINS else np.full(size, 0.5)), np.full(size, float(record["rest"]))
        q[own], mass[own] = record["q"], record["mass"]
        if not (np.all((q > 0.0) & (q < 1.0)) and np.all(mass >= 0.0) and abs(mass.sum() - 1.0) < 1e-6):
            raise ValueError("what was predicted must be probabilities")
        return cls(q, mass)


@dataclasses.dataclass(eq=False)
class Round:
    """Counts of labels by bin, with what was predicted of each bin before: see the module.

    Attributes
    ----------
    predicted : Predicted
    counts : ndarray of int, shape (2, bins)
        Row 0 is label 0 (x_prime), row 1 label 1 (x).
    name : str
        Names the round in saved evidence: the streams of the session that counted it, "#" and its number there.
    """

    predicted: Predicted
    counts: Counts
    name: str = ""

    @classmethod
    def of(cls, predicted: Predicted) -> Round:
        """A round that has counted nothing."""
        return cls(predicted, np.zeros((2, len(predicted.q)), dtype=np.int64))

    def to_dict(self) -> dict[str, Any]:
        """The round as JSON values, exact."""
        origin = self.name.rpartition("#")[0]
        reached = np.flatnonzero(self.counts.any(axis=0))  # bins, before how often with label 0 and with label 1
        counts = [reached.tolist(), *self.counts[:, reached].tolist()]
        return {"name": self.name, **self.predicted.to_dict(), "counts": {origin: counts}}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Round:
        """The round that `to_dict` wrote; ValueError for other values."""
        predicted = Predicted.from_dict(record)
        (counts,) = record["counts"].values()
        return cls(predicted, _dense(counts, len(predicted.q)), str(record["name"]))


def _dense(record: list[list[int]], size: int) -> Counts:
    counts = np.zeros((2, size), dtype=np.int64)
    bins, *rows = (np.array([operator.index(n) for n in row], dtype=np.int64) for row in record)
    if len(set(bins.tolist())) < len(bins) or any(np.any(row < 0) for row in (bins, *rows)):
        raise ValueError("counts must not be negative, of bins that differ")
    counts[:, bins] = np.stack(rows)
    return counts
