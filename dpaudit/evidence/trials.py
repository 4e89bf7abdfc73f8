"""Trials: the last part of a long pilot, which is counted in the cells of a few scores, and of which nothing is kept.

What fits may see of a pilot is bounded, by memory and by time. Of what makes a rule good, its score is learned from few
draws; how right its guesses are in a far tail takes many. So where a test has far more draws than fits may see, more of
them are drawn before it and counted between thresholds of the scores that may be the best, and thresholds, and the
score, are chosen by these counts: as in the pilot, each in turn by what it shows on a part that it was not chosen on.

Validity: all of this happens on draws before the first counted one, whose number is fixed before they are drawn.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.evidence.cross_validation import FOLDS, Shown, Way
from dpaudit.evidence.edge_counts import EdgeCounter
from dpaudit.evidence.outcomes import Outcomes
from dpaudit.evidence.pilots import AnyFittedScore, CountedScore, shown_on_held
from dpaudit.evidence.rules import Objective, Rule
from dpaudit.evidence.smooth_tails import SmoothTails


@dataclasses.dataclass(frozen=True)
class Trial:
    """What is counted on outcomes: the guesses of the best rule so far, and how many are in each cell of some scores.

    Attributes
    ----------
    rule : Rule
    scores : tuple of CountedScore
        Without counts.
    counters : tuple of EdgeCounter
        Of the cells of each score, between thresholds that may be chosen.
    """

    rule: Rule
    scores: tuple[CountedScore, ...]
    counters: tuple[EdgeCounter, ...]

    @classmethod
    def of(cls, rule: Rule, fitted: Sequence[AnyFittedScore]) -> Trial:
        """That of a rule, and of those of these scores between whose values there are thresholds."""
        none = np.zeros(0, dtype=np.int64)
        scores, counters = [], []
        for one in fitted:
            edges = one.edges()
            if len(edges):
                of_cells = np.concatenate([[-math.inf], edges, [math.nan]])
                scores.append(CountedScore(one.kind, one.score, of_cells, none, none, one.reading))
                counters.append(EdgeCounter(edges))
        return cls(rule, tuple(scores), tuple(counters))

    def zeros(self) -> NDArray[np.int64]:
        """The counts of no draws."""
        return np.zeros(3 + FOLDS * sum(len(score.of_cells) for score in self.scores), dtype=np.int64)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """The counts of the rule (`Rule.count`), and of each score and every third outcome those in each cell."""
        parts = [self.rule.count(outcomes)]
        read = {reading: reading(outcomes) for reading in {score.reading for score in self.scores}}
        for score, counter in zip(self.scores, self.counters, strict=True):
            values = score.score(read[score.reading])
            parts += [counter.count(values[fold::FOLDS]) for fold in range(FOLDS)]
        return np.concatenate(parts).astype(np.int64)

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
