"""The label game on all pairs of a large universe: each input is drawn once and serves every pair, without a loop.

1. **Pilot.** Draws of every input fit one partition of the outputs into cells (`partition.py`) and give each input a
   histogram over them, in two halves.
2. **Rules.** A pair guesses x on the cells where the log ratio of its two histograms is at least a threshold, x_prime
   where it is below minus that, or one of the two only. The threshold is the one with the best expected lower bound
   after the draws to come; ratios of one half of the pilot are judged by the counts of the other.
3. **Fresh draws.** Every input is drawn again and counted over the cells; each pair's record of correct and wrong
   guesses is a sum over cells. One exact binomial test and bound a pair (`dpaudit.testing.table_lines`).

Validity
--------
* Labels: one N, tossed once, is the number of label-1 draws of *every* pair. A pair reads the first N fresh draws of
  its x and the first m - N of its x_prime. Draws of an input are independent of each other, of those of other inputs
  and of N, so each pair sees the label game with m fair coins; that pairs share coins and draws makes their records
  dependent, and only the union bound combines them. An input needs two histograms: of its first N and m - N draws.
* Levels: half of the error rate is split evenly over all pairs and half in proportion to 1 / rank in the pilot. The
  pilot is not counted, so the levels and rules are fixed before the first counted draw; levels sum to the error rate.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.campaign.campaign import Campaign, shares_by_rank
from dpaudit.campaign.label_game import FIRST_DRAWS, LOOKED_AT, TRAINING_NUMBERS
from dpaudit.campaign.rounds import Counts, Draws, Plan
from dpaudit.learning.partition import CellScore, Partition, fit_partition
from dpaudit.learning.rules import Rule
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, Reading, unseen
from dpaudit.testing.failures import Failure, Returned, common_failure
from dpaudit.testing.order import Change
from dpaudit.testing.table_lines import PilotRecords, Record, TableLines
from dpaudit.testing.tasks import Draw, Request, toss

PILOT_SHARE = 0.35  # of an input's draws
STEPS_PER_NAT, STEPS = 8, 48  # of the thresholds tried: 0, 1/8, ..., up to 6 nats
SMOOTHING = 0.5  # added to each cell's count before a ratio is taken
BLOCK_NUMBERS = 1 << 19  # cells of a block of pairs worked on at a time
LOOKED_AT_FOR_ORDER = 1_000  # outcomes of an input of the pilot, the first ones

IntArray = NDArray[np.int64]


class UniverseGame(Campaign):
    """All pairs of a universe against their budgets.

    Parameters
    ----------
    first, second : array of int, shape (pairs,)
        Positions of x and x_prime among the inputs; the two differ.
    lines : TableLines
        What each of them is tested against.
    inputs : int
        How many inputs there are; positions that no pair names are not drawn.
    samples : int
        About how many draws are taken of each input, at least 10.
    error_rate : float
        P(some bound exceeds its truth) <= error_rate, over all pairs together.
    draw : callable
        Carries out tasks.
    coin : callable
        The generator of the labels' sum.

    Attributes
    ----------
    correct, wrong : array of int, shape (pairs,)
        The records, and `labelled` the draws that each has been tested on.
    lower, epsilon_lower, log_p : array of float, shape (pairs,)
        Lower bounds on the parameter of the claim and on epsilon (one array where that is the parameter), and natural
        logarithms of p-values.
    level : array of float, shape (pairs,)
        Of each pair's test.
    broken : array of bool, shape (pairs,)
        Whether every call raised, on both inputs: those of the pilot and the fresh ones. Validity: nothing is said of
        such a pair, so this may rest on draws that are counted.
    """

    def __init__(
        self,
        first: IntArray,
        second: IntArray,
        lines: TableLines,
        *,
        inputs: int,
        samples: int,
        error_rate: float,
        draw: Draw,
        coin: Callable[[], np.random.Generator],
    ) -> None:
        super().__init__(Draws(draw, first=1))
        self.first, self.second, self.lines = first, second, lines
        self.error_rate, self.samples = error_rate, samples
        self._coin = coin
        self._inputs = inputs
        self.used = np.unique(np.concatenate([first, second]))
        self.pilot = max(4, int(PILOT_SHARE * samples) // 2 * 2)  # of each input
        rest = samples - self.pilot
        # The larger of N and m - N is to stay at about `rest`: three of its deviations are left free.
        self.labelled = max(2, 2 * int(rest - 1.5 * math.sqrt(2.0 * rest)))
        self.partition: Partition | None = None
        self._is_over = False
        self._frozen = Plan({})
        pairs = len(first)
        self.high, self.low = np.zeros(pairs, dtype=np.int16), np.zeros(pairs, dtype=np.int16)
        self.merit = np.zeros(pairs)
        self.level = np.full(pairs, error_rate / pairs)
        self.correct, self.wrong = np.zeros(pairs, dtype=np.int64), np.zeros(pairs, dtype=np.int64)
        self.lower, self.epsilon_lower, self.log_p = np.zeros(pairs), np.zeros(pairs), np.zeros(pairs)
        self.broken = np.zeros(pairs, dtype=bool)
        self.is_withheld = False  # whether nothing is said of any pair, since draws depend on each other
        self._failing: dict[int, Failure] = {}  # by input, where all calls so far have raised
        self.changes: dict[int, Change] = {}  # of the outcomes of an input from draw to draw
        self._logs = np.empty(0, dtype=np.float32)

    # --- the pilot ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Draw the pilot, fit the partition, and fix every pair's rule and level."""
        half = self.pilot // 2
        first_draws = min(half, FIRST_DRAWS)
        self._learn(first_draws)
        self.draws.measure([part for parts in self.draws.kept.values() for part in parts])
        cap = max(FIRST_DRAWS, TRAINING_NUMBERS // (self.draws.columns * len(self.used)))
        if (more := min(cap, half) - first_draws) > 0:
            self._learn(more)
        parts = {i: self.draws.joined(i) for i in self.used.tolist()}
        self._failing = {
            i: found for i, part in parts.items() if (found := common_failure([part]) or _nothing_seen(part))
        }
        partition = self.partition = fit_partition(list(parts.values()))
        # What the partition was fitted on is the start of the pilot's first half, so that no draw is wasted.
        halves = np.zeros((2, self._inputs, partition.size), dtype=np.float32)
        fitted = len(next(iter(parts.values())))
        for i, part in parts.items():
            halves[0, i] = partition.count(part)
        del parts
        self.draws.keep_for_order(LOOKED_AT_FOR_ORDER)
        plan = self._plan(half - fitted, self.pilot - fitted)
        for i, (a, b) in self._without_failing(plan, self.draws.learn(plan)).items():
            halves[0, i] += a
            halves[1, i] += b - a
        self._fit_rules(halves)
        self._logs = np.log(halves.sum(axis=0) + np.float32(SMOOTHING))
        # Validity: a function of the pilot alone; the shares sum to 1.
        self.level = self.error_rate * shares_by_rank(self.merit)

    def failure(self, pair: int) -> Failure:
        """What all calls on both inputs of a broken pair did."""
        return self._failing[int(self.first[pair])].on_both(self._failing[int(self.second[pair])])

    def _fit_rules(self, halves: NDArray[np.float32]) -> None:
        """The thresholds and the merit of every pair."""
        logs = np.log(halves + np.float32(SMOOTHING))
        size = halves.shape[2]
        trained = 2.0 * self.pilot
        quantile = float(scipy.special.ndtri(0.5 * self.error_rate / len(self.first)))
        for pairs, i, others in self._blocks(size):
            up = np.zeros((2, len(others), STEPS))  # of x and x_prime: mass where the ratio is at least k steps
            down = np.zeros_like(up)  # and where it is below -k steps
            offset = (np.arange(len(others), dtype=np.int32) * (2 * STEPS))[:, None]
            for fit, judge in ((0, 1), (1, 0)):
                steps = _steps(logs[fit, i], logs[fit, others])
                flat = (steps + offset).ravel()
                for side, weights in enumerate((np.broadcast_to(halves[judge, i], steps.shape), halves[judge, others])):
                    mass = np.bincount(flat, weights.ravel(), minlength=2 * STEPS * len(others))
                    mass = mass.reshape(len(others), 2 * STEPS)
                    up[side] += mass[:, : STEPS - 1 : -1].cumsum(axis=1)[:, ::-1]
                    down[side] += mass[:, :STEPS].cumsum(axis=1)[:, ::-1]
            correct = np.stack([up[0] + down[1], up[0], down[1]], axis=1) / trained  # (others, ways, steps)
            wrong = np.stack([up[1] + down[0], up[1], down[0]], axis=1) / trained
            sides = np.array([2.0, 1.0, 1.0])[None, :, None]
            seen = PilotRecords(correct, wrong, sides, trained, self.labelled, quantile)
            best, self.merit[pairs] = self.lines.best(pairs, seen)
            way, step = best // STEPS, best % STEPS
            # The ratio is at least k steps from STEPS + k on and below -k steps up to STEPS - 1 - k.
            self.high[pairs] = np.where(way == 2, 2 * STEPS, STEPS + step)
            self.low[pairs] = np.where(way == 1, -1, STEPS - 1 - step)

    # --- the fresh draws ---------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Draw every input afresh, count, and test each pair once."""
        while self.round():
            pass
        for i in self.draws.kept:
            if (change := self.draws.change(i)) is not None:
                self.changes[i] = change

    def _freeze(self) -> Plan | None:
        """The one round: so many labelled draws of every pair, by one toss."""
        if self._is_over:
            return None
        self._is_over = True
        self._frozen = self._plan(*toss(self.labelled, self._coin()))
        return self._frozen

    def _absorb(self, counts: Counts) -> None:
        assert self.partition is not None, "start comes before play"
        counts = self._without_failing(self._frozen, counts)
        is_failing = np.zeros(self._inputs, dtype=bool)
        is_failing[list(self._failing)] = True
        self.broken = is_failing[self.first] & is_failing[self.second]
        size = self.partition.size
        labelled = np.zeros((2, self._inputs, size), dtype=np.int32)  # label 1 (as x), label 0 (as x_prime)
        for i, (as_x, as_x_prime) in counts.items():
            labelled[0, i], labelled[1, i] = as_x, as_x_prime
        for pairs, i, others in self._blocks(size):
            steps = _steps(self._logs[i], self._logs[others])
            guess_x = steps >= self.high[pairs, None]
            guess_x_prime = steps <= self.low[pairs, None]
            x, x_prime = labelled[0, i], labelled[1, others]
            self.correct[pairs] = (guess_x * x).sum(axis=1) + (guess_x_prime * x_prime).sum(axis=1)
            self.wrong[pairs] = (guess_x_prime * x).sum(axis=1) + (guess_x * x_prime).sum(axis=1)

    def _look(self) -> None:
        self.lower, self.epsilon_lower = self.lines.bounds(self.record)
        self.log_p = self.lines.log_p(self.record)
        self._say_nothing(self.broken)

    def withhold_all(self) -> None:
        """Take back what is said of every pair: it supposes that draws are independent."""
        self.is_withheld = True
        self._say_nothing(np.ones_like(self.broken))

    def _say_nothing(self, of: NDArray[np.bool_]) -> None:
        for said in (self.lower, self.epsilon_lower, self.log_p):
            said[of] = 0.0

    @property
    def record(self) -> Record:
        """The record of each pair."""
        guesses = (self.correct + self.wrong).astype(float)
        return Record(self.correct.astype(float), guesses, self.sides, self.level, self.labelled)

    @property
    def sides(self) -> FloatArray:
        """How many of the two guessing events of each pair's rule can be non-empty, shape (pairs,)."""
        return (self.high < 2 * STEPS).astype(float) + (self.low >= 0)

    @property
    def violated(self) -> NDArray[np.bool_]:
        """The verdict of each pair *is* its bound above the budget."""
        return self.lower > self.lines.budget

    def rule(self, pair: int) -> Rule:
        """The guessing rule of one pair."""
        assert self.partition is not None
        steps = _steps(self._logs[self.first[pair]], self._logs[self.second[pair]][None])[0]
        plus, minus = np.flatnonzero(steps >= self.high[pair]), np.flatnonzero(steps <= self.low[pair])
        score = CellScore(self.partition, tuple(plus.tolist()), tuple(minus.tolist()))
        return Rule(score, -0.5, 0.5, 1, Reading(self.partition.reading.columns))

    def losses(
        self, event_mass: float, probability: float, guesses_quantile: float, labelled: int | None = None
    ) -> FloatArray:
        """The smallest loss of randomised-response type that each pair's test would have found, never understated.

        At the level that every pair has at least; of the draws that it has, or of so many `labelled` ones.
        """
        level = float(self.level.min())
        return self.lines.losses(labelled or self.labelled, level, event_mass, probability, guesses_quantile)

    # --- both --------------------------------------------------------------------------------------------------------

    def _blocks(self, size: int) -> list[tuple[IntArray, int, IntArray]]:
        """Blocks of pairs with one x: their positions, x, and their x_primes."""
        order = np.argsort(self.first, kind="stable")
        starts = np.flatnonzero(np.diff(self.first[order], prepend=-1))
        most = max(1, BLOCK_NUMBERS // size)
        blocks = []
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            for begin in range(start, end, most):
                pairs = order[begin : min(begin + most, end)]
                blocks.append((pairs, int(self.first[pairs[0]]), self.second[pairs]))
        return blocks

    def _learn(self, size: int) -> None:
        """Draw so many outputs of every input, all for the fit."""
        self.draws.learn(Plan(dict.fromkeys(self.used.tolist(), size), keeps=sys.maxsize))

    def _plan(self, *quotas: int) -> Plan:
        """The first so many draws of every input, counted over the cells; inputs that failed so far are watched."""
        assert self.partition is not None, "start comes before play"
        size, counted = max(quotas), [Request(quota, self.partition) for quota in quotas]
        watched = [*counted, Request(size, Returned())]
        is_watched = {i: i in self._failing and self._failing[i].calls > 0 for i in self.used.tolist()}
        return Plan(dict.fromkeys(is_watched, size), {i: watched if is_watched[i] else counted for i in is_watched})

    def _without_failing(self, plan: Plan, counts: Counts) -> Counts:
        """The counts over the cells; what the watched inputs did is noted."""
        for i, failure in list(self._failing.items()):
            if failure.calls and int(counts[i].pop()[0]):
                del self._failing[i]
            elif failure.calls:
                self._failing[i] = dataclasses.replace(failure, calls=failure.calls + plan.needed[i])
        return counts


def _nothing_seen(part: Outcomes) -> Failure | None:
    """Which class an input's outputs show nothing else than; None where they differ, or show something."""
    kind = unseen(part.raw[:LOOKED_AT]) if part.tokens is not None and len(set(part.tokens)) == 1 else ""
    return Failure(f"{kind}, of which nothing is seen but its name") if kind else None


def _steps(log_x: NDArray[np.float32], log_x_prime: NDArray[np.float32]) -> NDArray[np.int16]:
    """The step of each cell's log ratio, from 0 (far below 0) over `STEPS` (from 0 on) to 2 * STEPS - 1."""
    scaled = (log_x - log_x_prime) * np.float32(STEPS_PER_NAT)
    return np.asarray(np.clip(np.floor(scaled) + STEPS, 0, 2 * STEPS - 1), dtype=np.int16)
