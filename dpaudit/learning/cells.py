"""Cells: partitions of the outcomes by a score, which is all that the betting games see of an output.

A partition is fixed before the draws that are counted on it. Counts add up over batches, rounds and workers.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.edge_counts import EdgeCounter
from dpaudit.learning.histograms import Coordinate
from dpaudit.learning.scores import LogDensity, Score, score_from_dict
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.reading.whole_numbers import are_integers

TAIL_MASSES = (0.035, 0.015, 0.006, 0.0025, 0.001)  # of rare cells, in each tail
RARE_MASSES = (0.03, 0.01, 0.003)  # of tails that have cells of their own: what is rare may be telling
MOST_CELLS, FEWEST_CELLS = 12, 3  # of equal mass: more are too rare to tell apart
MOST_FINE_CELLS, MOST_WHOLE = 48, 128  # cells of numbers, and of whole numbers: a bound on time
DRAWS_A_CELL = 12  # training draws in a cell of equal mass
SMALLEST_CELL = 6.0  # training draws beyond a cut in a tail
SEPARATE_VALUES = 12  # so few different values have a cell each
LARGEST_ATOMS = 8  # cells of single values


@dataclasses.dataclass(frozen=True)
class Cells:
    """A partition of the outcomes by a score: `edges` (increasing) give len(edges) + 1 cells, and NaN one more.

    A cell holds its lower edge.
    """

    score: Score
    edges: FloatArray
    reading: Reading

    @property
    def size(self) -> int:
        return len(self.edges) + 2

    def zeros(self) -> NDArray[np.int64]:
        """The counts of no draws."""
        return np.zeros(self.size, dtype=np.int64)

    def index(self, outcomes: Outcomes) -> NDArray[np.intp]:
        """The cell of each outcome, shape (draws,)."""
        return EdgeCounter(self.edges).index(self.score(self.reading(outcomes)))

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """How many outcomes fall into each cell, shape (cells,)."""
        return self.count_scores(self.score(self.reading(outcomes)))

    def count_scores(self, scores: FloatArray) -> NDArray[np.int64]:
        """The same for outcomes with these scores."""
        return EdgeCounter(self.edges).count(scores)

    def to_dict(self) -> dict[str, Any]:
        return {
            "score": self.score.to_dict(),
            "edges": [float(edge).hex() for edge in self.edges],
            "columns": self.reading.columns,
        }


def cells_from_dict(record: Mapping[str, Any], log_density: LogDensity | None, x: Any, x_prime: Any) -> Cells:
    """The cells that `Cells.to_dict` wrote.

    Raises
    ------
    ValueError
        If the edges do not increase, or the score is unknown.
    """
    edges = np.array([float.fromhex(edge) for edge in record["edges"]])
    if not np.all(edges[1:] > edges[:-1]) or np.any(np.isnan(edges)):
        raise ValueError("edges must be increasing.")
    return Cells(score_from_dict(record["score"], log_density, x, x_prime), edges, Reading(int(record["columns"])))


@dataclasses.dataclass(frozen=True)
class CellSet:
    """Several partitions, counted together; the counts stand one after the other."""

    parts: tuple[Cells, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Without the groups, which are fifty times as long, and quickly made where they are needed."""
        return {"parts": self.parts}

    def zeros(self) -> NDArray[np.int64]:
        """The counts of no draws."""
        return np.zeros(sum(part.size for part in self.parts), dtype=np.int64)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """How many outcomes fall into each cell of each partition."""
        read: dict[Reading, Outcomes] = {}
        counts = self.zeros()
        for group in self._groups:
            if group.reading not in read:
                read[group.reading] = group.reading(outcomes)
            merged = group.counter.count(group.score(read[group.reading]))
            below = np.concatenate([[0], np.cumsum(merged[:-1])])  # each edge, and infinity
            counts[group.places] = below[group.last] - below[group.first]
            counts[group.nan_places] = merged[-1]
        return counts

    @functools.cached_property
    def _groups(self) -> tuple[_Group, ...]:
        """The partitions by one score, together: their draws are looked at once, with the edges of all."""
        by_score: dict[Any, list[tuple[int, Cells]]] = {}
        start = 0
        for part in self.parts:
            # A score with arrays has no hash; partitions of one fit share the object.
            score = part.score if isinstance(part.score, Coordinate) else id(part.score)
            by_score.setdefault((score, part.reading), []).append((start, part))
            start += part.size
        return tuple(_group(parts) for parts in by_score.values())


@dataclasses.dataclass(frozen=True)
class _Group:
    """Partitions by one score, and where their counts come from: all but NaN's from cells `first` to before `last`.

    `places` and `nan_places` are positions among the counts of the whole set.
    """

    score: Score
    reading: Reading
    counter: EdgeCounter
    places: NDArray[np.intp]
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    nan_places: NDArray[np.intp]


def _group(parts: Sequence[tuple[int, Cells]]) -> _Group:
    """Partitions by one score, each with the position of its first count."""
    _, one = parts[0]
    edges = np.unique(np.concatenate([cells.edges for _, cells in parts]))
    ends = [np.concatenate([[0], np.searchsorted(edges, part.edges) + 1, [len(edges) + 1]]) for _, part in parts]
    return _Group(
        one.score,
        one.reading,
        EdgeCounter(edges),
        np.concatenate([np.arange(start, start + part.size - 1) for start, part in parts]),
        np.concatenate([of_part[:-1] for of_part in ends]),
        np.concatenate([of_part[1:] for of_part in ends]),
        np.array([start + part.size - 1 for start, part in parts]),
    )


@dataclasses.dataclass(frozen=True)
class Ordered:
    """A sample of scores, sorted once for all ways to cut it: `known` increase, and `missing` more are NaN."""

    known: FloatArray
    missing: int

    @classmethod
    def of(cls, scores: FloatArray) -> Ordered:
        """That of scores in any order, shape (draws,)."""
        known = np.sort(scores)  # NaN last
        missing = int(np.count_nonzero(np.isnan(known)))
        return cls(known[: len(known) - missing], missing)

    def with_others(self, other: Ordered) -> Ordered:
        """Both samples together."""
        both = np.concatenate([self.known, other.known])
        both.sort(kind="stable")  # both are sorted: they are only merged
        return Ordered(both, self.missing + other.missing)

    def counts(self, edges: FloatArray) -> NDArray[np.int64]:
        """What `Cells.count_scores` counts in cells with these edges, shape (edges + 2,)."""
        below = np.concatenate([[0], np.searchsorted(self.known, edges), [len(self.known)]])
        return np.append(np.diff(below), self.missing).astype(np.int64, copy=False)

    @functools.cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where each value begins."""
        return np.concatenate([[0], np.flatnonzero(self.known[1:] != self.known[:-1]) + 1])

    @property
    def varies(self) -> bool:
        """Whether there are two values."""
        return len(self.known) > 1 and bool(self.known[0] != self.known[-1])


def quantile_edges(scores: FloatArray | Ordered, most: int = MOST_CELLS) -> FloatArray:
    """Edges that cut a sample of scores into cells of equal mass, with a few rare ones in both tails.

    A value that occurs far more often than the others (an atom) has a cell of its own: what leaks by an exact value is
    seen as such. Where few different values occur, each has its own cell.

    Parameters
    ----------
    scores : ndarray of float, shape (draws,), or Ordered
        NaN is left out.
    most : int
        Cells of equal mass, at most.

    Returns
    -------
    ndarray of float
        Increasing; perhaps empty.
    """
    sample = scores if isinstance(scores, Ordered) else Ordered.of(scores)
    known = sample.known
    if not sample.varies:
        return np.empty(0)
    starts = sample.starts
    if len(starts) <= SEPARATE_VALUES:
        return _between(known, starts[1:])
    cells = int(np.clip(len(known) / DRAWS_A_CELL, FEWEST_CELLS, most))
    masses = np.concatenate([np.arange(1, cells) / cells, [m for m in TAIL_MASSES if m < 0.7 / cells]])
    return np.unique(np.concatenate([_at_masses(known, masses), _around_atoms(known, starts)]))


def rare_edges(scores: FloatArray | Ordered) -> FloatArray:
    """Edges around what is rare in a sample of scores, with all the rest in a few cells: tails, and atoms."""
    sample = scores if isinstance(scores, Ordered) else Ordered.of(scores)
    if not sample.varies or len(sample.starts) <= SEPARATE_VALUES:
        return np.empty(0)
    at_masses = _at_masses(sample.known, np.array(RARE_MASSES))
    return np.unique(np.concatenate([at_masses, _around_atoms(sample.known, sample.starts)]))


def whole_edges(scores: FloatArray) -> FloatArray:
    """Edges at the integers within a sample of scores that are no integers; none where they are too many or too few."""
    finite = scores[np.isfinite(scores)]
    if len(finite) == 0 or are_integers(finite):
        return np.empty(0)
    low, high = math.floor(float(finite.min())), math.ceil(float(finite.max()))
    if not FEWEST_CELLS <= high - low <= MOST_WHOLE:
        return np.empty(0)
    return np.arange(low + 1.0, high)


def value_edges(scores: Ordered) -> FloatArray:
    """Edges between all values of a sample, where they are some dozens that come again and again; else none."""
    values = len(scores.starts)
    if not SEPARATE_VALUES < values <= min(MOST_WHOLE, len(scores.known) / DRAWS_A_CELL):
        return np.empty(0)
    return _between(scores.known, scores.starts[1:])


def _at_masses(known: FloatArray, masses: FloatArray) -> FloatArray:
    """Edges that cut a sorted sample at these masses in both tails, as far as it has draws for them."""
    size = len(known)
    below = masses[masses * size >= SMALLEST_CELL]
    positions = np.unique((np.concatenate([below, 1.0 - below]) * size).astype(int))
    return _between(known, positions[(positions > 0) & (positions < size)])


def _around_atoms(known: FloatArray, starts: NDArray[np.intp]) -> FloatArray:
    """Edges that give the most frequent atoms of a sorted sample cells of their own; `starts`: where a value begins."""
    counts = np.diff(np.append(starts, len(known)))
    frequent = np.flatnonzero(counts >= max(3.0, 3.0 * float(np.median(counts))))
    frequent = frequent[np.argsort(-counts[frequent], kind="stable")[:LARGEST_ATOMS]]
    atoms = known[starts[frequent]]
    with np.errstate(over="ignore"):  # infinity follows the largest double
        edges = np.concatenate([atoms, np.nextafter(atoms, math.inf)])
    return np.asarray(edges[(edges > known[0]) & (edges <= known[-1])])


def _between(ordered: FloatArray, positions: NDArray[np.intp]) -> FloatArray:
    """An edge between each position of a sorted sample and the one before: the middle, or the upper value itself."""
    low, high = ordered[positions - 1], ordered[positions]
    with np.errstate(invalid="ignore", over="ignore"):
        middle = 0.5 * low + 0.5 * high
    return np.unique(np.where(np.isfinite(middle) & (middle > low), middle, high))
