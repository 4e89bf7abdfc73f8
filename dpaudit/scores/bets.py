"""Bets on independent scores, one at a time: an anytime-valid test of a claim, and a lower bound on its parameter.

Fair coins, drawn from the seed, decide whether the next score is taken from the runs with the canary (label 1) or from
those without it (label 0); the bettor sees the score and bets on the label. For disjoint events A and B, chosen with
stakes g, h >= 0 from earlier scores only, the line P(S) <= e^epsilon Q(S) + delta, in both directions, gives the factor

    1 + g (1{A, label 1} - e^epsilon 1{A, label 0}) + h (1{B, label 0} - e^epsilon 1{B, label 1}) - delta (g + h) / 2

a mean of at most 1 given the past, and it stays positive where max(g, h) e^epsilon + delta (g + h) / 2 < 1. The product
is a non-negative supermartingale: under the claim it ever reaches 1 / level with probability at most `level` (Ville's
inequality).

A claim is a family of lines. For each value of its parameter on a grid that is fixed beforehand a bettor of its own
plays, and chooses among the value's lines from earlier scores too. The bound is the largest grid value such that it and
all smaller ones are rejected. It is above the truth only if the smallest grid value at or above the truth is rejected,
which that one bettor does with probability at most `level`: no union over the grid.

Events are thresholds of the score: A = {score >= a} and B = {score < b}, or the other way round, with the stake that
would have grown most on the scores so far; a fit is renewed each time the scores have grown by an eighth.

The best of so many events on so few scores looks better than it is, so the stake that it asks for is too large. Several
bettors play with the same events, each with a fixed part of the fitted stakes (`PARTS`), from the same share of the
initial wealth, and their wealth is added: a mean of supermartingales is one. It costs log(parts) against the best of
them, and a bettor with a small part is not ruined by early scores.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import Claim
from dpaudit.scores.profile_bounds import just_above

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WAY = 1  # of coins, bets and bands; raise it whenever the same scores in the same order give another wealth or bound
FIRST_BETS = 4  # scores before the first fit; nothing is staked on them
GROWTH = 0.125
LEAST_BLOCK = 4
MOST_THRESHOLDS = 48
PRIOR = 0.15  # wrong guesses that every event is taken to have had beside those that it had
LARGEST_STAKE = 0.98  # of the stake at which one wrong guess loses everything
PARTS = (1.0, 0.5, 0.2)  # of the fitted stakes: one bettor each
STEP = 1.04  # ratio of neighbouring values of the grid
VALUES_BELOW, VALUES_ABOVE = 60, 90  # of the grid, below and above the budget
ANCHORS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # epsilons of lines, where the claim leaves them open
RENYI_DELTAS = (0.1, 1e-2, 1e-3, 1e-5)  # where a Renyi claim is converted to lines


@dataclasses.dataclass(frozen=True)
class Wealth:
    """What the bets came to.

    Attributes
    ----------
    values : ndarray of float, shape (values,)
        Of the claim's parameter, increasing.
    largest : ndarray of float, shape (values,)
        The largest log wealth against each after any score. (So it does not fall as scores are appended.)
    sizes, at_budget : tuple of float
        Numbers of scores, and the log wealth against the budget after so many.
    """

    values: FloatArray
    largest: FloatArray
    sizes: tuple[int, ...]
    at_budget: tuple[float, ...]

    def lower(self, level: float) -> float:
        """The largest value that is rejected together with all smaller ones; 0 if none."""
        rejected = self.largest >= math.log(1.0 / level)
        count = len(rejected) if rejected.all() else int(np.argmin(rejected))
        return float(self.values[count - 1]) if count else 0.0

    def decided_at(self, level: float) -> int | None:
        """The scores after which the budget was rejected first; None if never."""
        needed = math.log(1.0 / level)
        return next((n for n, w in zip(self.sizes, self.at_budget, strict=True) if w >= needed), None)


def values_of(claim: Claim) -> FloatArray:
    """The grid of the claim's parameter, which depends on the claim alone: the budget's own value is one of it."""
    budget = just_above(claim.value)
    if claim.value == 0.0:
        return np.concatenate([[budget], np.geomspace(0.01, 20.0, VALUES_ABOVE)])
    return np.asarray(budget * STEP ** np.arange(-VALUES_BELOW, VALUES_ABOVE + 1.0))


def lines_of(claim: Claim, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Epsilons and deltas of lines that follow from the claim at each value, shape (values, lines)."""
    if claim.family == "hockey-stick":
        anchors = ANCHORS if claim.anchored else ANCHORS[:1]
        lines = [claim.lines(values, at) for at in anchors]
        return np.stack([line[0] for line in lines], axis=1), np.stack([line[1] for line in lines], axis=1)
    epsilons = [[claim.with_value(v).epsilon_at(delta) for delta in RENYI_DELTAS] for v in values.tolist()]
    return np.array(epsilons), np.broadcast_to(np.array(RENYI_DELTAS), (len(values), len(RENYI_DELTAS))).copy()


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
    return np.where(np.isnan(scores), -np.inf, scores), coins


def play(scores: FloatArray, labels: IntArray, claim: Claim, values: FloatArray | None = None) -> Wealth:
    """Bet on each score's label, against every value of the claim's grid.

    Parameters
    ----------
    scores : ndarray of float, shape (draws,)
        Without NaN.
    labels : ndarray of int, shape (draws,)
        Fair coins: 1 with the canary.
    claim : Claim
    values : ndarray of float, optional
        The grid of its parameter, increasing, with just above the budget; by default `values_of` the claim.
    """
    values = values_of(claim) if values is None else values
    epsilon, delta = lines_of(claim, values)
    wealth, largest = np.zeros((len(PARTS), len(values))), np.zeros(len(values))
    budget = int(np.searchsorted(values, just_above(claim.value)))
    sizes: list[int] = []
    at_budget: list[float] = []
    done = min(FIRST_BETS, len(scores))
    while done < len(scores):
        until = min(len(scores), done + max(LEAST_BLOCK, int(GROWTH * done)))
        bets = _fit(scores[:done], labels[:done], epsilon, delta)
        growths = bets.growths(scores[done:until], labels[done:until])  # (parts, values, draws)
        course = wealth[:, :, None] + np.cumsum(growths, axis=2)
        wealth, together = course[:, :, -1], _log_mean(course)
        largest = np.maximum(largest, together.max(axis=1))
        sizes += range(done + 1, until + 1)
        at_budget += together[budget].tolist()
        done = until
    return Wealth(values, largest, tuple(sizes), tuple(at_budget))


@dataclasses.dataclass(frozen=True)
class _Bets:
    """Stakes and thresholds against each value, all of shape (values,)."""

    epsilon: FloatArray
    delta: FloatArray
    high_is_in: NDArray[np.bool_]
    top: FloatArray  # the event {score >= top}
    bottom: FloatArray  # the event {score < bottom}; disjoint from it
    stake_top: FloatArray
    stake_bottom: FloatArray

    def growths(self, scores: FloatArray, labels: IntArray) -> FloatArray:
        """The logs of the factors of each part of the stakes, shape (parts, values, draws)."""
        in_top, in_bottom = scores >= self.top[:, None], scores < self.bottom[:, None]  # (values, draws)
        risk = -np.exp(np.minimum(self.epsilon, 700.0))[:, None]
        is_in = labels[None, :] == np.where(self.high_is_in, 1, 0)[:, None]  # whether a guess on the top is right
        charge = 0.5 * self.delta * (self.stake_top + self.stake_bottom)
        payoff = np.where(in_top, self.stake_top[:, None] * np.where(is_in, 1.0, risk), 0.0)
        payoff += np.where(in_bottom, self.stake_bottom[:, None] * np.where(is_in, risk, 1.0), 0.0)
        gain = payoff - charge[:, None]
        return np.stack([np.log1p(part * gain) for part in PARTS])


def _log_mean(logs: FloatArray) -> FloatArray:
    """The log of the mean over the first axis."""
    most = logs.max(axis=0)
    return np.asarray(most + np.log(np.exp(logs - most).mean(axis=0)))


def _fit(scores: FloatArray, labels: IntArray, epsilon: FloatArray, delta: FloatArray) -> _Bets:
    """The best bets on the scores so far against each value; lines are of shape (values, lines)."""
    ranked = np.sort(scores)
    picks = np.unique(np.linspace(0, len(ranked) - 1, min(MOST_THRESHOLDS, len(ranked))).astype(int))
    thresholds = np.unique(ranked[picks])
    ins, outs = np.sort(scores[labels == 1]), np.sort(scores[labels == 0])
    above_in = len(ins) - np.searchsorted(ins, thresholds, side="left")
    above_out = len(outs) - np.searchsorted(outs, thresholds, side="left")
    below_in, below_out = len(ins) - above_in, len(outs) - above_out
    draws = float(len(scores))
    ways = []
    for right_top, wrong_top, right_bottom, wrong_bottom in (
        (above_in, above_out, below_out, below_in),  # high scores speak for "in"
        (above_out, above_in, below_in, below_out),
    ):
        ways.append(
            _disjoint(
                _staked(right_bottom, wrong_bottom, draws, epsilon, delta),
                _staked(right_top, wrong_top, draws, epsilon, delta),
            )
        )
    best = np.argmax(np.concatenate([way.growth for way in ways], axis=1), axis=1)  # of (values, ways * lines)
    rows, lines = np.arange(len(best)), epsilon.shape[1]

    def chosen(field: str) -> NDArray[Any]:
        return np.asarray(np.concatenate([getattr(way, field) for way in ways], axis=1)[rows, best])

    line = best % lines
    return _Bets(
        epsilon[rows, line],
        delta[rows, line],
        best < lines,
        thresholds[chosen("top")],
        thresholds[chosen("bottom")],
        chosen("stake_top"),
        chosen("stake_bottom"),
    )


@dataclasses.dataclass(frozen=True)
class _Disjoint:
    """Two disjoint events, {score >= threshold[top]} and {score < threshold[bottom]}; all of shape (values, lines)."""

    growth: FloatArray
    top: IntArray
    bottom: IntArray
    stake_top: FloatArray
    stake_bottom: FloatArray


def _disjoint(below: tuple[FloatArray, FloatArray], above: tuple[FloatArray, FloatArray]) -> _Disjoint:
    """The two events that grew most together, of stakes and growths of shape (values, lines, thresholds) on each side.

    The events are chosen together: two that were best alone may overlap, and a stake is fitted to its own event only.
    """
    stake_below, growth_below = below
    stake_above, growth_above = above
    up_to = np.maximum.accumulate(growth_below, axis=-1)
    from_there = np.maximum.accumulate(growth_above[..., ::-1], axis=-1)[..., ::-1]
    together = up_to + from_there
    split = np.argmax(together, axis=-1)[..., None]
    at = np.arange(together.shape[-1])
    bottom = np.argmax(np.where(at <= split, growth_below, -np.inf), axis=-1)
    top = np.argmax(np.where(at >= split, growth_above, -np.inf), axis=-1)
    rows, lines = np.ogrid[: top.shape[0], : top.shape[1]]
    return _Disjoint(
        together.max(axis=-1), top, bottom, stake_above[rows, lines, top], stake_below[rows, lines, bottom]
    )


def _staked(
    right: IntArray, wrong: IntArray, draws: float, epsilon: FloatArray, delta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Best stakes and their growth, (values, lines, thresholds), for events with so many right and wrong guesses."""
    rights = right.astype(float)
    wrongs = wrong + PRIOR
    risk = np.exp(np.minimum(epsilon, 700.0))[..., None]  # (values, lines, 1)
    charge = 0.5 * delta[..., None]
    total = rights + wrongs
    stake = np.clip((rights - risk * wrongs - draws * charge) / (risk * total), 0.0, None)
    stake = np.minimum(stake, LARGEST_STAKE / (risk + 2.0 * charge))
    growth = rights * np.log1p(stake * (1.0 - charge)) + wrongs * np.log1p(-stake * (risk + charge))
    growth += (draws - np.minimum(total, draws)) * np.log1p(-stake * charge)
    return stake, growth


def perfect_lower(claim: Claim, scores_in: int, scores_out: int, level: float, rng: np.random.Generator) -> float:
    """The bound that these bets give on so many scores that tell the two sides apart without an error."""
    scores, labels = labelled(np.ones(scores_in), np.zeros(scores_out), rng)
    return play(scores, labels, claim).lower(level)
