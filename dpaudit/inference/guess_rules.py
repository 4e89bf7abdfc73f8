"""Guessing rules on bins of a predictor: guess label 1 where its probability is large, label 0 where it is small.

A rule is chosen on counts that are not tested: that with the largest expected bound. It is what an exact test asks, and
what a witness says of bets.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.inference import binomial
from dpaudit.inference.bound_search import just_above
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.inference.payoffs import Inequalities
from dpaudit.inference.tables import EDGES, MIDDLES, N_BINS, Predicted
from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import Form


@dataclasses.dataclass(frozen=True)
class RuleSizes:
    """Constants of the choice of a rule."""

    pseudo_draws: float = 2.0  # mean bound of an atom of mass .005: 2.86 without, 3.31 with 2 and with 4 (30 seeds)
    luck: float = 1.0  # standard errors by which the rates of candidates are lowered: of many the best were lucky
    mass_share: float = 0.05  # of the level, spent on the probability of a guess where a line has a delta
    predicted_draws: float = 2_000.0  # that a prediction counts for at most, where it chooses the rule
    value_ratio: float = 1.03  # of neighbouring parameter values that rules are compared at
    value_range: float = 200.0  # they reach from the budget over it to the budget times it
    instead_of_zero: float = 0.1  # the budget about which they lie where it is 0


SIZES = RuleSizes()


@dataclasses.dataclass(frozen=True)
class GuessRule(Form):
    """Guess label 1 in bins from `first_up` on, label 0 in bins below `end_down`, at the line of an anchor."""

    first_up: int
    end_down: int
    anchor: int
    expected: float  # the bound on the parameter that it is expected to give

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> GuessRule:
        """The rule whose fields were saved; ValueError where it guesses a bin twice, or at no anchor."""
        rule = super().from_dict(record)
        if not 0 <= rule.end_down <= rule.first_up <= N_BINS or not 0 <= rule.anchor < len(PAYOFF_SIZES.anchors):
            raise ValueError(f"rule must guess each bin at most once, at a known anchor, got {rule}.")
        return rule

    @property
    def directions(self) -> tuple[bool, bool]:
        """Tell whether label 1 is guessed in any bin (direction P against Q), and label 0 (Q against P)."""
        return self.first_up < N_BINS, self.end_down > 0

    @property
    def thresholds(self) -> tuple[float, float]:
        """The probabilities of label 1 from which on it guesses that, and below which label 0."""
        ends = np.concatenate([[-math.inf], EDGES, [math.inf]])
        high, low = (float(scipy.special.expit(ends[k])) for k in (self.first_up, self.end_down))
        return (high if self.directions[0] else math.inf), low

    def apart(self, mass: FloatArray) -> GuessRule:
        """The rule with its ends in the middle of the bins that nothing fell into, as by their predicted mass.

        A saved predictor is smaller than the one that was counted, and may move an atom to the next bin.
        """
        reached = np.flatnonzero(mass > 2.0 * mass.min())
        below, above = reached[reached < self.first_up], reached[reached >= self.end_down]
        up = (int(below.max(initial=-1)) + self.first_up + 1) // 2 if self.directions[0] else self.first_up
        down = (self.end_down + int(above.min(initial=N_BINS))) // 2 if self.directions[1] else 0
        return dataclasses.replace(self, first_up=max(up, down), end_down=down)

    def record(self, counts: NDArray[np.int64]) -> tuple[int, int, int]:
        """Right and wrong guesses and abstentions in counts of label 0 and 1, shape (2, bins)."""
        right = int(counts[1, self.first_up :].sum() + counts[0, : self.end_down].sum())
        wrong = int(counts[0, self.first_up :].sum() + counts[1, : self.end_down].sum())
        return right, wrong, int(counts.sum()) - right - wrong


def predicted_counts(predicted: Predicted) -> NDArray[np.int64]:
    """Predicted counts of label 0 and 1 in bins, which choose a rule, shape (2, bins)."""
    # Bins that no draw fell into say nothing; of the others the rarest had about one draw.
    mass = np.where(predicted.mass > 2.0 * predicted.mass.min(), predicted.mass, 0.0)
    known = min(SIZES.predicted_draws, 1.0 / mass[mass > 0.0].min(initial=1.0))
    return np.asarray(np.rint(known * mass * np.stack([1.0 - predicted.q, predicted.q])), dtype=np.int64)


def choose_rule(
    held: NDArray[np.int64], claim: Inequalities, level: float, draws: int, anchors: Sequence[int] | None = None
) -> GuessRule:
    """The rule of the largest expected bound, by counts of label 0 and 1 that chose nothing, shape (2, bins).

    Parameters
    ----------
    draws : int
        Labelled draws of the test.
    anchors : sequence of int, optional
        Positions of the anchors of lines that are tried; all by default.
    """
    total = int(held.sum())
    if total == 0:
        return GuessRule(N_BINS, 0, 0, 0.0)
    reached = np.flatnonzero(held.sum(axis=0))
    ends = np.concatenate([[0], reached + 1])
    smoothed = held.astype(float)  # what is predicted of a bin counts as a few draws of it: few may have been lucky
    smoothed[:, reached] += SIZES.pseudo_draws * np.stack([1.0 - MIDDLES[reached], MIDDLES[reached]])
    below = np.concatenate([np.zeros((2, 1)), np.cumsum(smoothed, axis=1)], axis=1)
    up, down = np.meshgrid(np.concatenate([reached, [N_BINS]]), ends, indexing="ij")
    fits = (down <= up) & ~((up == N_BINS) & (down == 0))
    up, down = up[fits], down[fits]
    right = (below[1, -1] - below[1, up]) + below[0, down]
    wrong = (below[0, -1] - below[0, up]) + below[1, down]
    guesses = right + wrong
    rate = (right + 0.5) / (guesses + 1.0)
    rate = rate - SIZES.luck * np.sqrt(rate * (1.0 - rate) / (guesses + 1.0))
    scale = draws / total
    expected = np.maximum(guesses * scale, 1e-9)
    has_delta = claim.claim.anchored or bool(claim.lines(just_above(claim.claim.value))[1].any())
    spent = SIZES.mass_share * level if has_delta else 0.0
    accuracy = binomial.binomial_lower_each(rate * expected, expected, np.full(len(rate), level - spent))
    counted = np.concatenate([[0], np.cumsum(held.sum(axis=0))])
    mass = ((counted[-1] - counted[up]) + counted[down]) / total
    mass = np.maximum(mass - 1.64 * np.sqrt(mass / draws), 1e-12)
    directions = np.stack([up < N_BINS, down > 0])
    steps = int(math.log(SIZES.value_range) / math.log(SIZES.value_ratio))
    values = (claim.claim.value or SIZES.instead_of_zero) * SIZES.value_ratio ** np.arange(-steps, steps + 1.0)
    every = range(len(PAYOFF_SIZES.anchors) if claim.claim.anchored else 1)
    found = [
        (*_best(accuracy, mass, directions, claim.lines_at(values, anchor), values), anchor)
        for anchor in (every if anchors is None else anchors)
    ]
    bound, _, at, anchor = max(found, key=lambda one: one[:2])
    return GuessRule(int(up[at]), int(down[at]), anchor, bound)


def _best(
    accuracy: FloatArray,
    mass: FloatArray,
    directions: NDArray[np.bool_],
    lines: tuple[FloatArray, FloatArray],
    values: FloatArray,
) -> tuple[float, float, int]:
    """The largest value that a candidate is expected to reject at one anchor, by how much the least one, and which.

    What a candidate rejects it rejects at all smaller values, as claims are nested: the last value is bisected.
    """

    def excess(k: int) -> FloatArray:
        epsilons, deltas = (one[:, k] for one in lines)  # of both orders
        epsilon = np.where(directions, epsilons[:, None], -np.inf).max(axis=0)
        cost = 0.5 * (deltas[0] * directions[0] + deltas[1] * directions[1]) / mass
        return np.asarray(accuracy - scipy.special.expit(epsilon) - cost * scipy.special.expit(-epsilon))

    margin = excess(0)
    rejects, low, high = margin > 0.0, 0, len(values)
    bound = float(values[0]) if rejects.any() else 0.0
    while rejects.any() and high - low > 1:
        middle = (low + high) // 2
        still = rejects & (excess(middle) > 0.0)
        if still.any():
            rejects, low, bound = still, middle, float(values[middle])
        else:
            high = middle
    among = np.where(rejects, margin, -np.inf) if rejects.any() else margin
    at = len(among) - 1 - int(np.argmax(among[::-1]))
    return bound, float(margin[at]), at
