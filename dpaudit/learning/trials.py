"""Trials: the last part of a long pilot, which is counted in the cells of a few scores, and of which nothing is kept.

What fits may see of a pilot is bounded, by memory and by time. Of what makes a rule good, its score is learned from few
draws; how right its guesses are in a far tail takes many. So where a test has far more draws than fits may see, more of
them are drawn before it and counted between thresholds of the scores that may be the best, and thresholds, and the
score, are chosen by these counts: as in the pilot, each in turn by what it shows on a part that it was not chosen on.

Validity: all of this happens on draws before the first counted one, whose number is fixed before they are drawn.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.cross_validation import FOLDS, Shown, Way
from dpaudit.learning.edge_counts import EdgeCounter
from dpaudit.learning.histograms import Coordinate
from dpaudit.learning.objectives import Objective
from dpaudit.learning.pilots import AnyFittedScore, CountedScore, shown_on_held
from dpaudit.learning.rules import Rule, is_by_bins
from dpaudit.learning.scores import Score
from dpaudit.learning.smooth_tails import SmoothTails
from dpaudit.reading.outcomes import Outcomes, Reading


@dataclasses.dataclass(frozen=True)
class Trial:
    """What is counted on outcomes: the guesses of the best rule so far, and how many are in each cell of some scores.

    Attributes
    ----------
    rule : Rule
    scores : tuple of CountedScore
        Without counts; their cells are between thresholds that may be chosen.
    """

    rule: Rule
    scores: tuple[CountedScore, ...]

    @classmethod
    def of(cls, rule: Rule, fitted: Sequence[AnyFittedScore]) -> Trial:
        """That of a rule, and of those of these scores between whose values there are thresholds."""
        none = np.zeros(0, dtype=np.int64)
        scores = [
            CountedScore(one.kind, one.score, np.concatenate([[-math.inf], edges, [math.nan]]), none, none, one.reading)
            for one in fitted
            if len(edges := one.edges())
        ]
        return cls(rule, tuple(scores))

    def __getstate__(self) -> dict[str, Any]:
        """Without the groups, which are quickly made where they are needed."""
        return {"rule": self.rule, "scores": self.scores}

    def zeros(self) -> NDArray[np.int64]:
        """The counts of no draws."""
        return np.zeros(3 + FOLDS * sum(len(score.of_cells) for score in self.scores), dtype=np.int64)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """The counts of the rule (`Rule.count`), and of each score and every third outcome those in each cell."""
        read = {reading: reading(outcomes) for reading in {score.reading for score in self.scores}}
        counts = [np.zeros((FOLDS, len(score.of_cells)), dtype=np.int64) for score in self.scores]
        for group in self._groups:
            numbers = group.score(read[group.reading])
            for fold in range(FOLDS):
                merged = group.counter.count(numbers[fold::FOLDS])
                for place, of_merged in group.cells:
                    np.add.at(counts[place][fold], of_merged, merged)
        return np.concatenate([self.rule.count(outcomes), *(part.ravel() for part in counts)])

    @functools.cached_property
    def _groups(self) -> tuple[_Group, ...]:
        """The scores that are functions of one number, together, and each other one alone."""
        by_source: dict[Any, tuple[Score, list[int]]] = {}
        for place, score in enumerate(self.scores):
            source = _source(score.score)
            key = source if isinstance(source, Coordinate) else place
            by_source.setdefault((key, score.reading), (source, []))[1].append(place)
        return tuple(_group(source, [(k, self.scores[k]) for k in places]) for source, places in by_source.values())

    def counted(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> TriedPilot:
        """What these counts of `count` on draws of x and of x_prime say."""
        of_rule = [side[:3] for side in (counts_x, counts_x_prime)]
        draws = float(sum(side.sum() for side in of_rule))
        correct, wrong = of_rule[0][1] + of_rule[1][0], of_rule[0][0] + of_rule[1][1]
        shown = Shown(correct / draws, wrong / draws, self.rule.sides, draws)
        ends = 3 + FOLDS * np.cumsum([len(score.of_cells) for score in self.scores])
        both = np.stack([counts_x, counts_x_prime])
        counts = [part.reshape(2, FOLDS, -1) for part in np.split(both, [3, *ends[:-1].tolist()], axis=1)[1:]]
        return TriedPilot(shown, self.scores, counts)


@dataclasses.dataclass(frozen=True)
class _Group:
    """Scores that are functions of the number that `score` gives: their draws are looked at once.

    `cells` are the positions of these scores in the trial, each with its own cell of every cell of `counter`.
    """

    score: Score
    reading: Reading
    counter: EdgeCounter
    cells: tuple[tuple[int, NDArray[np.intp]], ...]


def _source(score: Score) -> Score:
    """What a score is a function of: the number whose bins it looks up, or itself."""
    return Coordinate(score.columns[0], score.width) if is_by_bins(score) else score


def _group(source: Score, members: Sequence[tuple[int, CountedScore]]) -> _Group:
    """That of scores with this source, and their positions."""
    own = [one.score.edges[0] if is_by_bins(one.score) else one.of_cells[1:-1] for _, one in members]
    edges = np.unique(np.concatenate(own))
    least = np.concatenate([[-math.inf], edges, [math.nan]])  # the least number of each cell
    cells = []
    for place, one in members:
        values = one.score.values_of(least) if is_by_bins(one.score) else least
        cells.append((place, EdgeCounter(one.of_cells[1:-1]).index(values)))
    return _Group(source, members[0][1].reading, EdgeCounter(edges), tuple(cells))


@dataclasses.dataclass(frozen=True)
class TriedPilot:
    """A pilot that was only counted.

    Attributes
    ----------
    shown : Shown
        By the rule that was the best one before it.
    tried : tuple of CountedScore
        Without counts.
    counts : sequence of ndarray of int, shape (2, FOLDS, cells)
        Of each score: draws of x, then of x_prime, in each cell.
    """

    shown: Shown
    tried: tuple[CountedScore, ...]
    counts: Sequence[NDArray[np.int64]]

    def scores(self, halves: bool = True) -> Sequence[CountedScore]:
        """As for `Pilot`: the scores themselves saw none of these draws, so there are no halves."""
        return self._scores(range(FOLDS))

    def summaries(self) -> Sequence[CountedScore]:
        """As for `Pilot`: they are among the scores."""
        return ()

    def cross_validated(self, ways: Mapping[Way, Objective]) -> dict[tuple[str, Way], Shown]:
        """As for `Pilot`."""
        folds = (
            [
                (score, *(part[side, fold] for side in (0, 1)))
                for score, part in zip(self._scores([k for k in range(FOLDS) if k != fold]), self.counts, strict=True)
            ]
            for fold in range(FOLDS)
        )
        return shown_on_held(folds, ways, self.shown.draws)

    def smooth_tails(self) -> Iterable[SmoothTails]:
        """As for `Pilot`."""
        return ()

    def _scores(self, known: Sequence[int]) -> list[CountedScore]:
        return [
            dataclasses.replace(score, first=part[0, list(known)].sum(axis=0), second=part[1, list(known)].sum(axis=0))
            for score, part in zip(self.tried, self.counts, strict=True)
        ]
