"""Pilots of a fixed test: the scores that are fitted on one, their rules, and what these show on draws held back.

A pilot of single numbers may be long, and sorting it again for every score and every fold took most of the time of an
audit. Where it is longer than `MOST_SORTED` its draws are sorted once, in `PARTS` parts, and counted in fine cells:
some hundred of equal mass, frequent values, integers, and single draws at both ends. Fits and their comparison see
these counts alone, and take as long as those of few draws. A threshold lies between cells: what it could gain inside of
one is far less than the test can tell.

Validity: all of this happens on draws before the first counted one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.candidates import DRAWS_A_NUMBER
from dpaudit.learning.cells import whole_edges
from dpaudit.learning.cross_validation import FOLDS, Shown, Way, cross_validated, shown_by
from dpaudit.learning.edge_counts import EdgeCounter
from dpaudit.learning.fitted_scores import FittedRule, fit_scores, fit_summaries, most_sure_of, rules_of, without_nan
from dpaudit.learning.hints import NO_HINTS, Hints
from dpaudit.learning.histograms import (
    MOST_RARE_ATOMS,
    Coordinate,
    Histogram,
    histogram_edges,
    mass_levels,
)
from dpaudit.learning.objectives import Objective
from dpaudit.learning.predicted import Proposal, proposals
from dpaudit.learning.rules import Rule
from dpaudit.learning.scores import Score
from dpaudit.learning.smooth_tails import SmoothTails, smooth_tails
from dpaudit.learning.thresholds import Tails, between_values, places_of_cuts
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.distances import TAIL_MASS, Distance, speak_alike
from dpaudit.reading.log_ratios import shrunk_log_ratio
from dpaudit.reading.outcomes import Outcomes, Reading

MOST_SORTED = 20_000  # draws of one side, up to which they are looked at one by one
HALVES = 2  # of the draws, by turns: scores are fitted on one, and valued on the other
PARTS = FOLDS * HALVES  # of the draws of each side, by turns
CELLS = 512  # of equal mass, in which draws are counted
ENDS = 64  # draws at each end of a part that are looked at one by one
END_STEP = 1.4  # from the rank of one draw at an end that begins a cell to that of the next
BINS = 64  # of a histogram
LEAST_OF_ATOM = 4  # draws of a single double that has a bin of its own, as in `histogram_edges`


class AnyFittedScore(Protocol):
    """A score, and how it is distributed on the draws that its thresholds are fitted on."""

    @property
    def kind(self) -> str: ...

    @property
    def score(self) -> Score: ...

    @property
    def reading(self) -> Reading: ...

    @property
    def draws(self) -> int: ...

    @property
    def most_sure(self) -> int: ...

    def rules(self, objective: Objective) -> list[FittedRule]: ...

    def rule_like(self, rule: Rule, masses: tuple[float, float]) -> Rule: ...

    def guessed_masses(self, rule: Rule) -> tuple[float, float]: ...

    def edges(self) -> FloatArray: ...


class Pilot(Protocol):
    """Draws of x and x_prime before a fixed test."""

    def scores(self, halves: bool = True) -> Sequence[AnyFittedScore]:
        """Every score that suits them; `halves` as for `dpaudit.learning.fitted_scores.fit_scores`."""
        ...

    def summaries(self) -> Sequence[AnyFittedScore]:
        """Summaries of vectors, see `dpaudit.learning.fitted_scores.fit_summaries`; none of single numbers."""
        ...

    def cross_validated(self, ways: Mapping[Way, Objective]) -> dict[tuple[str, Way], Shown]:
        """What rules show on draws held back, see `dpaudit.learning.cross_validation`."""
        ...

    def smooth_tails(self) -> Iterable[SmoothTails]:
        """What sums of columns promise, see `dpaudit.learning.smooth_tails`; nothing for single numbers."""
        ...


def pilot_of(first: Outcomes, second: Outcomes, hints: Hints = NO_HINTS) -> Pilot:
    """The pilot of such draws of x (`first`) and x_prime (`second`)."""
    are_numbers = all(side.tokens is None and side.numbers.shape[1] == 1 for side in (first, second))
    is_long = min(len(first), len(second)) > MOST_SORTED
    if are_numbers and is_long and hints.fitting(first, second).log_ratio is None:
        return CountedPilot.of(first.numbers[:, 0], second.numbers[:, 0])
    every = slice(0, None)  # as batches of their own: what is worked out of them goes when the pilot does
    return DrawnPilot(first.rows(every), second.rows(every), hints)


@dataclasses.dataclass(frozen=True)
class DrawnPilot:
    """A pilot whose draws are looked at one by one."""

    first: Outcomes
    second: Outcomes
    hints: Hints

    def scores(self, halves: bool = True) -> Sequence[AnyFittedScore]:
        """As for `Pilot`."""
        return fit_scores(self.first, self.second, self._with_proposals, halves)

    def summaries(self) -> Sequence[AnyFittedScore]:
        """As for `Pilot`."""
        return fit_summaries(self.first, self.second)

    def cross_validated(self, ways: Mapping[Way, Objective]) -> dict[tuple[str, Way], Shown]:
        """As for `Pilot`."""
        return cross_validated(self.first, self.second, ways, self._with_proposals)

    def smooth_tails(self) -> Iterable[SmoothTails]:
        """As for `Pilot`."""
        return smooth_tails(self.first, self.second, self.hints)

    @functools.cached_property
    def _with_proposals(self) -> Hints:
        """The hints with what learners propose for numbers: learned once, whoever asks for scores, and how often."""
        is_mixed = self.first.numbers.shape[1] != self.second.numbers.shape[1]
        if self.first.tokens is not None or self.second.tokens is not None or is_mixed:
            return self.hints
        # What is rare is not found in every part of the draws. So cells are learned from all, and log ratios in them
        # from a part: what is shown is a little hopeful where cells go by labels. The test has draws of its own.
        return self.hints.fitting(self.first, self.second).with_proposals(self.first, self.second)


@dataclasses.dataclass(frozen=True)
class CountedPilot:
    """A pilot of single numbers, counted in cells.

    Attributes
    ----------
    edges : ndarray of float, shape (edges,)
        Increasing; a cell holds its lower edge.
    whole : ndarray of float
        The integers among them that the numbers lie between, without being integers themselves; perhaps none.
    counts : ndarray of int, shape (2, PARTS, edges + 2)
        Of draws of x_prime, then of x, in each cell; the last one is NaN's.
    distance : Distance, optional
        Where both tails speak alike.
    far_edges, far_counts : ndarray, optional
        As `edges` and `counts`, of the distances.
    learned : tuple of (Proposal, ndarray of int)
        What learners propose, with counts as above in its own cells. (Cells are learned from all draws: of spikes by
        outputs alone. What is compared on held draws is a little hopeful where they go by labels.)
    """

    edges: FloatArray
    whole: FloatArray
    counts: NDArray[np.int64]
    distance: Distance | None = None
    far_edges: FloatArray | None = None
    far_counts: NDArray[np.int64] | None = None
    learned: tuple[tuple[Proposal, NDArray[np.int64]], ...] = ()

    @classmethod
    def of(cls, first: FloatArray, second: FloatArray) -> CountedPilot:
        """That of these numbers of x and of x_prime."""
        parts = [[np.sort(side[k::PARTS]) for k in range(PARTS)] for side in (second, first)]  # NaN last
        whole = whole_edges(np.concatenate([without_nan(parts[0][0]), without_nan(parts[1][0])]))
        edges, counts = _counted(parts, whole)
        distance = _distance(edges, counts.sum(axis=1))
        learned = tuple(
            (proposal, _counts_of(proposal, first, second)) for proposal in proposals(first[:, None], second[:, None])
        )
        if distance is None:
            return cls(edges, whole, counts, learned=learned)
        # Distances fall, and then rise: two runs, which a stable sort only merges.
        far = [[np.sort(distance.of(part), kind="stable") for part in side] for side in parts]
        return cls(edges, whole, counts, distance, *_counted(far, np.empty(0)), learned)

    def scores(self, halves: bool = True) -> Sequence[CountedScore]:
        """As for `Pilot`."""
        return [score for score, _ in self._scores(range(PARTS), halves)]

    def summaries(self) -> Sequence[CountedScore]:
        """As for `Pilot`."""
        return ()

    def cross_validated(self, ways: Mapping[Way, Objective]) -> dict[tuple[str, Way], Shown]:
        """As for `Pilot`."""
        return shown_on_held(map(self._fold, range(FOLDS)), ways, float(self.counts.sum()))

    def smooth_tails(self) -> Iterable[SmoothTails]:
        """As for `Pilot`."""
        return ()

    def _fold(self, fold: int) -> Iterator[Held]:
        held = [part for part in range(PARTS) if part % FOLDS == fold]
        for score, counts in self._scores([part for part in range(PARTS) if part not in held], halves=True):
            of_x_prime, of_x = counts[:, held].sum(axis=1)
            yield score, of_x, of_x_prime

    def _scores(self, known: Sequence[int], halves: bool) -> Iterator[tuple[CountedScore, NDArray[np.int64]]]:
        """The scores that are fitted on some of the parts, and all counts in their cells.

        The kinds are those of `fit_scores`.
        """
        of_x_prime, of_x = self.counts[:, known].sum(axis=1)
        of_cells = np.concatenate([[-math.inf], self.edges, [math.nan]])  # the least number of each
        yield CountedScore("Coordinate 1", Coordinate(0, 1), of_cells, of_x, of_x_prime), self.counts
        if not halves or np.count_nonzero((of_x + of_x_prime)[:-1]) < 2:
            return
        if self.distance is not None and self.far_edges is not None and self.far_counts is not None:
            of_far_cells = np.concatenate([[-math.inf], self.far_edges, [math.nan]])
            far_x_prime, far_x = self.far_counts[:, known].sum(axis=1)
            yield CountedScore("Distance 1", self.distance, of_far_cells, far_x, far_x_prime), self.far_counts
        fit, rest = (
            self.counts[:, [part for part in known if part // FOLDS == half]].sum(axis=1) for half in range(HALVES)
        )
        pooled = fit.sum(axis=0)
        several = [self._edges_of_bins(pooled[:-1])]
        if 0 < len(self.whole) < (of_x + of_x_prime).sum() / DRAWS_A_NUMBER:
            several.append(self.whole)
        for number, edges in enumerate(several, start=1):
            bins = np.searchsorted(edges, of_cells, side="right")  # of each cell
            bins[-1] = len(edges) + 1
            b, a = (np.bincount(bins, side, minlength=len(edges) + 2).astype(float) for side in fit)
            values = shrunk_log_ratio(a, b)
            histogram = Histogram((0,), (edges,), (values,), 1)
            counted = CountedScore(f"Histogram {number}", histogram, values[bins], rest[1], rest[0], is_least=False)
            yield counted, self.counts
        for proposal, counts in self.learned:
            own_x_prime, own_x = counts[:, known].sum(axis=1)
            binned = proposal.binned(own_x.astype(float), own_x_prime.astype(float))
            yield CountedScore(binned.name, binned, binned.values, own_x, own_x_prime, is_least=False), counts

    def _edges_of_bins(self, pooled: NDArray[np.int64]) -> FloatArray:
        """Edges of about `BINS` bins of equal mass for draws in these cells, as `histogram_edges` cuts single draws."""
        total = int(pooled.sum())
        places = np.searchsorted(np.cumsum(pooled), mass_levels(total, BINS, tails=True) * total, side="right")
        is_atom = pooled > 0.5 * total / BINS
        # Rarer ones too, where a cell is a single double.
        often = np.flatnonzero(self._are_single & (pooled >= LEAST_OF_ATOM))
        is_atom[often[np.argsort(-pooled[often], kind="stable")[:MOST_RARE_ATOMS]]] = True
        atoms = np.flatnonzero(is_atom)
        begin = np.unique(np.concatenate([places, atoms, atoms + 1]))  # cells that begin a bin
        return np.asarray(self.edges[begin[(begin > 0) & (begin <= len(self.edges))] - 1])

    @functools.cached_property
    def _are_single(self) -> NDArray[np.bool_]:
        """Which cells, but NaN's, hold a single double."""
        with np.errstate(over="ignore"):  # infinity follows the largest double
            return np.concatenate([[False], np.nextafter(self.edges[:-1], math.inf) == self.edges[1:], [False]])


NUMBERS = Reading(1)
Held = tuple["CountedScore", NDArray[np.int64], NDArray[np.int64]]


@dataclasses.dataclass(frozen=True)
class CountedScore:
    """A score that is a function of the cell of a number, and how many draws are in each cell.

    Attributes
    ----------
    kind : str
        What finds it again among the scores that were fitted on other draws.
    score : Score
    of_cells : ndarray of float, shape (cells,)
        Its value on each cell: for the number itself the least one. NaN where it has nothing to say.
    first, second : ndarray of int, shape (cells,)
        Draws of x and of x_prime that its thresholds are fitted on.
    reading : Reading
        How it reads outputs.
    is_least : bool
        Whether `of_cells` is the least value of each cell, which increase; else the only one.
    """

    kind: str
    score: Score
    of_cells: FloatArray
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    reading: Reading = NUMBERS
    is_least: bool = True

    def edges(self) -> FloatArray:
        """Where cells begin between which thresholds are chosen, increasing."""
        values, *_ = self._by_value
        if self.is_least:
            return values[1:]
        with np.errstate(over="ignore"):  # infinity follows the largest double
            return np.asarray(np.nextafter(between_values(values[:-1], values[1:]), math.inf))

    @property
    def draws(self) -> int:
        """How many draws its thresholds are fitted on."""
        return int(self.first.sum() + self.second.sum())

    @property
    def most_sure(self) -> int:
        """As for `FittedScore`."""
        _, *both = self._by_value
        nan = [int(side.sum() - known.sum()) for side, known in zip((self.first, self.second), both, strict=True)]
        beyond = np.zeros((2, 2), dtype=int)
        for own, other, row in zip(both, both[::-1], beyond, strict=True):
            held = np.flatnonzero(other)
            first, last = (held[0], held[-1]) if len(held) else (len(own), -1)
            row[:] = own[last + 1 :].sum(), own[:first].sum()
        return most_sure_of(beyond, nan)

    def rules(self, objective: Objective) -> list[FittedRule]:
        """As for `FittedScore`."""
        return rules_of(self.score, self.reading, self._tails, objective)

    def rule_like(self, rule: Rule, masses: tuple[float, float]) -> Rule:
        """As for `FittedScore`."""
        _, of_x, of_x_prime = self._by_value
        below = np.cumsum(of_x + of_x_prime)
        inner = np.flatnonzero((below > 0) & (below < below[-1]))  # a threshold may lie behind these values
        low, high = -math.inf, math.inf
        if len(inner) and masses[0] > 0.0:
            nearest = np.argmin(np.abs(below[inner] / self.draws - masses[0]))
            low = float(self._thresholds(inner[[nearest]] + 1)[0][0])
        if len(inner) and masses[1] > 0.0:
            nearest = np.argmin(np.abs((below[-1] - below[inner]) / self.draws - masses[1]))
            high = float(self._thresholds(inner[[nearest]] + 1)[1][0])
        return dataclasses.replace(rule, score=self.score, low=min(low, math.nextafter(high, math.inf)), high=high)

    def guessed_masses(self, rule: Rule) -> tuple[float, float]:
        """As for `FittedScore`."""
        both = self.first + self.second
        below, above = both[self.of_cells < rule.low].sum(), both[self.of_cells > rule.high].sum()
        return float(below / both.sum()), float(above / both.sum())

    def _thresholds(self, positions: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Thresholds below each of these values: of guesses below them, and of guesses from them on."""
        values, *_ = self._by_value
        if self.is_least:
            with np.errstate(over="ignore"):  # minus infinity is before the least double
                return values[positions], np.nextafter(values[positions], -math.inf)
        between = between_values(values[positions - 1], values[positions])
        return between, between

    @functools.cached_property
    def _by_value(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The different values, increasing, and how many draws of x and of x_prime have each."""
        known = ~np.isnan(self.of_cells)
        values, places = np.unique(self.of_cells[known], return_inverse=True)
        sides = (side[known].astype(float) for side in (self.first, self.second))
        first, second = (np.bincount(places, side, minlength=len(values)).astype(float) for side in sides)
        return values, first, second

    @functools.cached_property
    def _tails(self) -> Tails:
        values, *sides = self._by_value
        n1, n0 = (max(int(side.sum()), 1) for side in (self.first, self.second))
        below = [np.concatenate([[0.0], np.cumsum(side)]) for side in sides]  # before each value, and behind the last
        pooled = below[0] + below[1]
        size = int(pooled[-1])
        before = np.unique(np.searchsorted(pooled, places_of_cuts(size), side="right")[:, None] - np.array([1, 0]))
        before = before[before < len(pooled)]  # of one known draw, or none, there is nothing to cut
        before = before[(pooled[before] > 0) & (pooled[before] < size)]
        ends = np.concatenate([[0], before, [len(values)]])
        lows, highs = (np.concatenate([[-math.inf], side, [math.inf]]) for side in self._thresholds(before))
        left1, left0 = below[0][ends] / n1, below[1][ends] / n0
        nan1, nan0 = (float(n - side.sum()) / n for n, side in zip((n1, n0), sides, strict=True))
        return Tails(lows, left1, left0, left1[-1] - left1, left0[-1] - left0, nan1, nan0, float(n1 + n0), highs)


def _counts_of(proposal: Proposal, first: FloatArray, second: FloatArray) -> NDArray[np.int64]:
    """Counts of numbers of x_prime and of x in the cells of a proposal, by parts; shape (2, PARTS, cells)."""
    counter = EdgeCounter(proposal.edges)
    values = [proposal.reduced.reduction(side[:, None]) for side in (second, first)]
    return np.stack([[counter.count(side[k::PARTS]) for k in range(PARTS)] for side in values])


def _distance(edges: FloatArray, counts: NDArray[np.int64]) -> Distance | None:
    """As `find_distance`, of numbers of x_prime and of x that are counted in cells, with tails of whole cells."""
    if len(edges) < 2:
        return None
    below = np.cumsum(counts[:, :-1], axis=1)  # before each edge, and behind the last
    pooled = below.sum(axis=0)
    levels = np.array([TAIL_MASS, 0.5, 1.0 - TAIL_MASS]) * pooled[-1]
    low, middle, high = np.minimum(np.searchsorted(pooled[:-1], levels), len(edges) - 1).tolist()
    sizes = counts.sum(axis=1)[::-1].tolist()
    tails = below[::-1, low].tolist(), (below[:, -1] - below[:, high])[::-1].tolist()
    centre = float(edges[middle])
    return Distance(centre) if math.isfinite(centre) and speak_alike(*tails, sizes) else None


def _counted(parts: Sequence[Sequence[FloatArray]], more: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Edges of cells for the sorted numbers of each side's parts, with `more` edges; and how many are in each cell."""
    known = [[without_nan(part) for part in side] for side in parts]
    sample = np.concatenate([known[0][0], known[1][0]])
    both = [part for side in known for part in side]
    edges = np.unique(np.concatenate([histogram_edges(sample, CELLS, tails=True), more, *_at_ends(both)]))
    counts = np.empty((2, PARTS, len(edges) + 2), dtype=np.int64)
    for of_side, side, numbers in zip(counts, parts, known, strict=True):
        for row, part, known_part in zip(of_side, side, numbers, strict=True):
            below = np.searchsorted(known_part, edges)
            row[:-1] = np.diff(below, prepend=0, append=len(known_part))
            row[-1] = len(part) - len(known_part)
    return edges, counts


def shown_on_held(
    folds: Iterable[Iterable[Held]], ways: Mapping[Way, Objective], draws: float
) -> dict[tuple[str, Way], Shown]:
    """What rules show, of scores with counts in cells, on the counts of x and of x_prime that are held back; by fold.

    `draws` are those of all folds together.
    """
    records: dict[tuple[str, Way], list[tuple[Rule, NDArray[np.int64], NDArray[np.int64]]]] = {}
    for fold in folds:
        for score, of_x, of_x_prime in fold:
            for way, objective in ways.items():
                rule = score.rules(objective)[0].rule
                guesses = rule.guess_scores(score.of_cells)
                record = rule, rule.counts_of(guesses, of_x), rule.counts_of(guesses, of_x_prime)
                records.setdefault((score.kind, way), []).append(record)
    return shown_by(records, draws)


def _at_ends(parts: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Single numbers at the lower and at the upper end of sorted parts, where cells begin: sparser further inside."""
    ranks = np.unique((END_STEP ** np.arange(math.log(ENDS, END_STEP))).astype(int))
    low = np.sort(np.concatenate([part[:ENDS] for part in parts]))
    high = np.sort(np.concatenate([part[-ENDS:] for part in parts]))[::-1]
    low, high = low[ranks[ranks < len(low)]], high[ranks[ranks < len(high)] - 1]
    return low[low > -math.inf], high[high > -math.inf]
