"""The table of all pairs: each input is drawn once and serves every pair, without a loop over pairs.

1. **Pilot.** Draws of every input fit one partition of the outputs into cells (`dpaudit.learning.partition`) and give
   each input counts over them, in two halves.
2. **Rules.** A pair guesses x on the cells where the log ratio of the counts of its inputs is at least a threshold,
   x_prime where it is below minus the threshold, or one of the two only. The rule is the one of the best expected lower
   bound after the draws to come; ratios of one half of the pilot are judged by the counts of the other.
3. **Fresh draws.** Every input is drawn again and counted over the cells. Right and wrong guesses of a pair are sums of
   `counts[input, cell]`. One exact binomial test and bound a pair (`dpaudit.inference.pair_lines`).

Validity
--------
* Labels: one N, tossed once, is the number of label-1 draws of *every* pair. A pair reads the first N fresh draws of
  its x and the first m - N of its x_prime. Draws of an input are independent of each other, of those of other inputs
  and of N, so each pair sees the label game with m fair coins; that pairs share coins and draws makes their records
  dependent, and only the union bound combines them. An input needs two counts: of its first N and m - N draws.
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
from dpaudit.campaign.label_game import FIRST_DRAWS, TRAINING_NUMBERS
from dpaudit.campaign.rounds import Counts, Draws, Plan
from dpaudit.inference.pair_lines import ONLY_X, ONLY_X_PRIME, PairLines, PilotRecords, Record
from dpaudit.learning.partition import CellScore, Partition, fit_partition
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, unseen
from dpaudit.testing.failures import Failure, Returned, common_failure
from dpaudit.testing.order import Change
from dpaudit.testing.tasks import Draw, Request, toss


@dataclasses.dataclass(frozen=True)
class TableSizes:
    """How the draws of a table are divided, and which thresholds are tried."""

    pilot_share: float = 0.35  # of an input's draws
    steps_per_nat: int = 8  # thresholds are 1/8 nat apart: half of that costs a rule about 1% of its bound
    n_steps: int = 48  # thresholds from 0 up to 6 nats, which few pilots tell from more
    smoothing: float = 0.5  # added to the count of each cell before a ratio is taken
    block_numbers: int = 1 << 19  # cells of a block of pairs worked on at a time: a bound on memory
    ordered: int = 1_000  # first outcomes of an input in the pilot, whose order is tested


SIZES = TableSizes()
IntArray = NDArray[np.int64]


class UniverseGame(Campaign):
    """All pairs of a universe against their budgets.

    Parameters
    ----------
    first, second : array of int, shape (pairs,)
        Positions of x and x_prime among the inputs; the two differ.
    lines : PairLines
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
        lines: PairLines,
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
        self.pilot = max(4, int(SIZES.pilot_share * samples) // 2 * 2)  # of each input
        rest = samples - self.pilot
        # The larger of N and m - N is to stay at about `rest`: three of its deviations are left free.
        self.labelled = max(2, 2 * int(rest - 1.5 * math.sqrt(2.0 * rest)))
        self.partition: Partition | None = None
        self._is_over = False
        self._frozen = Plan({})
        pairs = len(first)
        self.way, self.step = np.zeros(pairs, dtype=np.int64), np.zeros(pairs, dtype=np.int64)
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
        self.draws.keep_for_order(SIZES.ordered)
        plan = self._plan(half - fitted, self.pilot - fitted)
        for i, (a, b) in self._without_failing(plan, self.draws.learn(plan)).items():
            halves[0, i] += a
            halves[1, i] += b - a
        self._fit_rules(halves)
        self._logs = np.log(halves.sum(axis=0) + np.float32(SIZES.smoothing))
        # Validity: a function of the pilot alone; the shares sum to 1.
        self.level = self.error_rate * shares_by_rank(self.merit)

    def failure(self, pair: int) -> Failure:
        """What all calls on both inputs of a broken pair did."""
        return self._failing[int(self.first[pair])].on_both(self._failing[int(self.second[pair])])

    def _fit_rules(self, halves: NDArray[np.float32]) -> None:
        """The rule and the merit of every pair."""
        logs = np.log(halves + np.float32(SIZES.smoothing))
        size, n_steps = halves.shape[2], SIZES.n_steps
        trained = 2.0 * self.pilot
        quantile = float(scipy.special.ndtri(0.5 * self.error_rate / len(self.first)))
        for pairs, i, others in self._blocks(size):
            up = np.zeros((2, len(others), n_steps))  # of x and x_prime: mass where the ratio is at least k steps
            down = np.zeros_like(up)  # and where it is below -k steps
            offset = (np.arange(len(others), dtype=np.int32) * (2 * n_steps))[:, None]
            for fit, judge in ((0, 1), (1, 0)):
                steps = _steps(logs[fit, i], logs[fit, others])
                flat = (steps + offset).ravel()
                for side, weights in enumerate((np.broadcast_to(halves[judge, i], steps.shape), halves[judge, others])):
                    mass = np.bincount(flat, weights.ravel(), minlength=2 * n_steps * len(others))
                    mass = mass.reshape(len(others), 2 * n_steps)
                    up[side] += mass[:, : n_steps - 1 : -1].cumsum(axis=1)[:, ::-1]
                    down[side] += mass[:, :n_steps].cumsum(axis=1)[:, ::-1]
            correct = np.stack([up[0] + down[1], up[0], down[1]], axis=1) / trained  # (others, ways, steps)
            wrong = np.stack([up[1] + down[0], up[1], down[0]], axis=1) / trained
            seen = PilotRecords(correct, wrong, trained, self.labelled, quantile)
            self.way[pairs], self.step[pairs], self.merit[pairs] = self.lines.best(pairs, seen)

    def _guesses(self, pairs: IntArray, i: int, others: IntArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The cells on which pairs of one x guess x, and x_prime, shape (pairs, cells) each."""
        steps, way, step = _steps(self._logs[i], self._logs[others]), self.way[pairs, None], self.step[pairs, None]
        up, down = np.where(way == ONLY_X_PRIME, 2 * SIZES.n_steps, SIZES.n_steps + step), SIZES.n_steps - step
        return steps >= up.astype(np.int16), steps < np.where(way == ONLY_X, 0, down).astype(np.int16)

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
            guess_x, guess_x_prime = self._guesses(pairs, i, others)
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
        return Record(self.correct.astype(float), guesses, self.way, self.level, self.labelled)

    @property
    def violated(self) -> NDArray[np.bool_]:
        """The verdict of each pair *is* its bound above the budget."""
        return self.lower > self.lines.budget

    def rule(self, pair: int) -> CellScore:
        """The guessing rule of one pair."""
        assert self.partition is not None
        one = np.array([pair])
        guesses = self._guesses(one, int(self.first[pair]), self.second[one])
        return CellScore(self.partition, *(tuple(np.flatnonzero(side[0]).tolist()) for side in guesses))

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
        most = max(1, SIZES.block_numbers // size)
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
    kind = unseen(part.raw[:FIRST_DRAWS]) if part.tokens is not None and len(set(part.tokens)) == 1 else ""
    return Failure(f"{kind}, of which nothing is seen but its name") if kind else None


def _steps(log_x: NDArray[np.float32], log_x_prime: NDArray[np.float32]) -> NDArray[np.int16]:
    """The step of each cell's log ratio, from 0 (far below 0) over `n_steps` (from 0 on) to 2 * n_steps - 1."""
    scaled = np.floor((log_x - log_x_prime) * np.float32(SIZES.steps_per_nat)) + SIZES.n_steps
    return np.asarray(np.clip(scaled, 0, 2 * SIZES.n_steps - 1), dtype=np.int16)
