"""Partitions of the outcomes for one pair into cells, with the counts of the draws that they were made from.

Scores are fitted on all training draws, and their cells are counted on the same ones: half as many draws to fit on cost
more than the optimism does. What a partition has won since its name was first bet on decides what is bet on it next.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.learning.candidates import by_kind, candidates
from dpaudit.learning.cells import MOST_FINE_CELLS, Cells, Ordered, quantile_edges, rare_edges, value_edges, whole_edges
from dpaudit.learning.hints import NO_HINTS, Hints
from dpaudit.learning.histograms import Coordinate, Remainder
from dpaudit.learning.paths import Order
from dpaudit.learning.predicted import Binned
from dpaudit.learning.scores import Score, Viewed
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.reading.tallies import Tally
from dpaudit.reading.whole_numbers import are_above_rounding

REMAINDERS = np.arange(0.25, 2.0, 0.25)  # edges of cells of a number modulo 2: parity, and fractions of it


@dataclasses.dataclass(frozen=True)
class Partition:
    """Cells, and how many training draws fall into each.

    Attributes
    ----------
    cells : Cells
    counts : ndarray of int, shape (2, cells)
        Row 0 for x_prime.
    kind : str
        What tells its cells from those of the other partitions of one fit, and finds them again in the next one.
    is_rough : bool
        Whether neighbouring cells have little to say about each other.
    order : {"free", "monotone", "mirrored"}
        How likely paths are beforehand, see `dpaudit.learning.paths`. Partitions of one kind are twins.
    is_learned : bool
        Whether a learner has proposed it: these share a part of the prior of their own.
    """

    cells: Cells
    counts: NDArray[np.int64]
    kind: str
    is_rough: bool = False
    order: Order = "free"
    is_learned: bool = False

    @property
    def name(self) -> str:
        """What tells it from all other partitions of one fit."""
        return self.kind if self.order == "free" else f"{self.kind}, {self.order}"

    @functools.cached_property
    def evidence(self) -> float:
        """Nats by which its cells told the labels of the training draws, less what so many cells tell by chance."""
        counts = self.counts[:, self.counts.sum(axis=0) > 0].astype(float)
        if counts.sum() == 0.0:
            return 0.0
        sides, cells = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
        told = float(np.sum(scipy.special.rel_entr(counts, sides * cells / counts.sum())))
        return float(told - 0.5 * (counts.shape[1] - 1) * math.log(counts.sum()))


def fit_partitions(first: Outcomes, second: Outcomes, hints: Hints = NO_HINTS) -> list[Partition]:
    """Partitions by every score that suits outcomes under x (`first`) and x_prime (`second`), the simplest first."""
    first, second, hints, reading = hints.alike(first, second)
    partitions: list[Partition] = []
    for kind, (score, a, b) in by_kind(candidates(first, second, first.tokens is not None, hints, halves=False)):
        learned = _learned(score)
        if learned is not None:
            cells = Cells(*learned, reading)
            counts = np.stack([cells.count_scores(cells.score(side)) for side in (b, a)])
            partitions.append(Partition(cells, counts, kind, True, is_learned=True))
            continue
        of_x, of_x_prime = Ordered.of(score(a)), Ordered.of(score(b))
        looks_closely = reading.columns == 1 and isinstance(score, Coordinate) and hints.log_ratio is None
        both = of_x.with_others(of_x_prime)
        for what, edges, is_rough in _edges(both, looks_closely):
            cells = Cells(score, edges, reading)
            counts = np.stack([of_x_prime.counts(edges), of_x.counts(edges)])
            is_first = not partitions
            partitions += [
                Partition(cells, counts, f"{kind} {what}", is_rough, order)
                for order in _orders(what, cells, is_first)
            ]
        if looks_closely and are_above_rounding(both.known, 2.0):
            partitions.append(_by_remainder(a, b, reading))
    return partitions


def _learned(score: Score) -> tuple[Score, FloatArray] | None:
    """The number that a proposed score is a function of, and the edges of its cells; None for another score."""
    if isinstance(score, Binned):
        return score.reduced, score.edges
    if isinstance(score, Viewed) and isinstance(score.score, Binned):
        return Viewed(score.view, score.score.reduced), score.score.edges
    return None


def _orders(what: str, cells: Cells, is_first: bool) -> tuple[Order, ...]:
    """The orders in which a partition is bet on: free, first; others too where neighbours speak for each other.

    Only the first score, the simplest, pays for a monotone one of its own: in fitted scores both ends count. In tallies
    they say different things: what stops early has no mirror.
    """
    is_tally = isinstance(cells.score, Viewed) and isinstance(cells.score.view, Tally)
    if what != "coarse" or cells.size < 3 or is_tally:  # NaN's cell and one more
        return ("free",)
    return ("free", "mirrored", "monotone") if is_first and cells.size > 3 else ("free", "mirrored")


def _by_remainder(first: Outcomes, second: Outcomes, reading: Reading) -> Partition:
    """Cells of the remainder modulo 2: what sits in the parity of integers, or in the fractional part."""
    cells = Cells(Remainder(2.0), REMAINDERS, reading)
    return Partition(cells, np.stack([cells.count(second), cells.count(first)]), "remainder", True)


def _edges(scores: Ordered, looks_closely: bool) -> Iterator[tuple[str, FloatArray, bool]]:
    """The ways to cut a score into cells: their names, edges, and whether they are rough.

    A number whose density is not known is looked at in several ways; what is hidden in it may be a tail, an exact
    value, a narrow range, the integer part, or one of many categories that are numbers.
    """
    edges = quantile_edges(scores)
    yield "coarse", edges, False
    if not looks_closely:
        return
    for what, others, is_rough in (
        ("rare", rare_edges(scores), True),
        ("fine", quantile_edges(scores, MOST_FINE_CELLS), False),
        ("whole", whole_edges(scores.known), True),
        ("values", value_edges(scores), True),
    ):
        if len(others) and not np.array_equal(others, edges):
            yield what, others, is_rough
