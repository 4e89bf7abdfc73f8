"""Bets on independent scores, one at a time: an anytime-valid test of a claim, and a lower bound on its parameter.

Fair coins, drawn from the seed, decide whether the next score is taken from the runs with the canary (label 1) or from
those without it (label 0). So scores are labelled draws of one number, and the bets are those of the engine: a rank
tree of the scores so far predicts the label, its probabilities are put into bins, and the stakes on the bins are the
best for what was predicted (`dpaudit.learning.rank_tree`, `dpaudit.inference.payoffs`). A tree is grown anew, and bets
on the following scores, each time their number has grown by a quarter.

Validity. Tree, bins and stakes are made of earlier scores. Under the claim at some value of its parameter, each factor
that is paid has mean at most 1 given the past, so that the product ever reaches 1 / level with probability at most
`level` (Ville's inequality), score by score. The bound is that of `dpaudit.inference.bound_search`. No union over
values, and none over looks.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.inference.betting import Betting
from dpaudit.inference.bound_search import bet_bound, bet_grid, just_above
from dpaudit.inference.payoffs import Inequalities, log_factors
from dpaudit.inference.tables import Predicted, Round, bins_of
from dpaudit.learning.rank_tree import Forest, Ordered, pruned_trees
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.scores.order import below_all

IntArray = NDArray[np.int64]
WAY = 5  # of coins, bets and bands; raise it whenever the same scores in the same order give another wealth or bound
FIRST_BETS = 6  # scores before the first tree, which splits no fewer; nothing is staked on them
MIN_STAGE = 2  # scores that one tree is for
GROWTH = 0.25  # of the scores from one tree to the next; with a half decisions take 5% more of them
DOUBLING = 1_000  # scores from which on the next tree is grown on twice as many: more teach it little
# Of the budget: thousands of scores tell mu from 1.03 mu. The engine's fourteen, with the last two, take twice the
# time; bounds of truths of 0.3 to 0.7 of a budget are 1 to 8% higher with them, those near the budget are the same.
BELOW = (0.05, 0.2, 0.4, 0.6, 0.75, 0.85, 0.92, 0.97)


@dataclasses.dataclass(frozen=True, eq=False)
class _Stage:
    """Prediction before some scores, and the cells of these scores: those of label 0, then those of label 1."""

    predicted: Predicted
    cells: NDArray[np.intp]

    @classmethod
    def of(cls, scores: FloatArray, labels: IntArray, done: int) -> _Stage:
        """Of a tree of the first scores: its leaves whose probabilities are in one bin are one cell."""
        tree = pruned_trees(Forest([Ordered.of(scores[:done], labels[:done])])).steps(0)
        bins, cell_of = np.unique(bins_of(tree.probabilities), return_inverse=True)
        leaves = np.minimum(np.searchsorted(tree.edges, scores), len(tree.probabilities) - 1)
        cells = cell_of[leaves]
        counts = np.bincount(cells[:done], minlength=len(bins))
        q = np.bincount(cells[:done], tree.probabilities[leaves[:done]], minlength=len(bins)) / counts
        return cls(Predicted(q, counts / done), cells[done:] + len(bins) * labels[done:])


class ScoreBets:
    """The bets on scores without NaN, labelled by fair coins (1 with the canary), against every value of a claim."""

    def __init__(self, scores: FloatArray, labels: IntArray, claim: Claim) -> None:
        self.claim = claim
        self._inequalities = Inequalities(claim)
        self._stages: list[_Stage] = []
        done = FIRST_BETS
        while done < len(scores):
            until = done + max(MIN_STAGE, int((GROWTH if done < DOUBLING else 1.0) * done))
            self._stages.append(_Stage.of(scores[:until], labels[:until], done))
            done = until

    def log_wealth(self, value: float, made_for: float | None = None, enough: float = math.inf) -> FloatArray:
        """Log wealth against a value after each score that is bet on, up to the end of the stage where it is enough.

        The bets are those for this value, or for one above it.
        """
        course, last = [np.zeros(0)], 0.0
        for stage in self._stages:
            if made_for in (None, value):
                first, second = self._inequalities.log_factors(value, stage.predicted)
            else:
                first, second = log_factors(self._inequalities.bets(made_for, stage.predicted), value)
            course.append(last + np.cumsum(np.concatenate([second, first])[stage.cells]))
            last = float(course[-1][-1])
            if course[-1].max() >= enough:
                break
        return np.concatenate(course)

    def rejects(self, value: float, level: float, made_for: float | None = None) -> bool:
        """Tell whether the wealth against a value has ever reached 1 / level."""
        need = -math.log(level)
        return bool(self.log_wealth(value, made_for, need).max(initial=0.0) >= need)

    def decided_at(self, level: float) -> int | None:
        """The scores after which the budget was rejected first; None if never."""
        need = -math.log(level)
        reached = np.flatnonzero(self.log_wealth(just_above(self.claim.value), enough=need) >= need)
        return FIRST_BETS + 1 + int(reached[0]) if len(reached) else None

    def largest(self) -> float:
        """The largest log wealth against the budget after any score."""
        return float(self.log_wealth(just_above(self.claim.value)).max(initial=0.0))

    def lower(self, level: float) -> float:
        """The largest value that is rejected together with all smaller ones; 0 if none."""
        grid = bet_grid(self.claim.value, BELOW)
        return bet_bound(lambda made_for, value: self.rejects(value, level, made_for), grid, self.claim.value)


def labelled(scores_in: FloatArray, scores_out: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Scores in the order of play with their labels; play ends when a coin asks for a score that is not there.

    Validity: the end is decided by coins alone, never by scores.
    """
    coins = rng.integers(0, 2, len(scores_in) + len(scores_out))
    used_in, used_out = np.cumsum(coins), np.cumsum(1 - coins)
    missing = (used_in > len(scores_in)) | (used_out > len(scores_out))
    end = int(np.argmax(missing)) if missing.any() else len(coins)
    coins = coins[:end]
    scores = np.empty(end)
    scores[coins == 1] = scores_in[: int(coins.sum())]
    scores[coins == 0] = scores_out[: end - int(coins.sum())]
    return below_all(scores), coins


def perfect_lower(claim: Claim, scores_in: int, scores_out: int, level: float, rng: np.random.Generator) -> float:
    """The most that bets can give on so many scores: these tell the two sides apart, and that is known beforehand."""
    played = np.bincount(labelled(np.ones(scores_in), np.zeros(scores_out), rng)[1], minlength=2)
    test = Betting(claim, int(played.sum()))
    test.rounds.append(Round(Predicted(np.array([1e-9, 1.0 - 1e-9]), np.full(2, 0.5)), np.diag(played)))
    test.start(level)
    return test.lower
