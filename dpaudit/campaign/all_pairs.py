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

import copy
import dataclasses
import functools
import math
import sys
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpaudit.campaign.campaign import Campaign, shares_by_rank
from dpaudit.campaign.draws import CHUNK_NUMBERS, Counts, Draws, RoundPlan
from dpaudit.campaign.label_game import TRAINING_NUMBERS
from dpaudit.campaign.schedules import FIXED_SHARE
from dpaudit.features.outcomes import Outcomes, unseen
from dpaudit.inference import learned_power
from dpaudit.inference.exact import CellTest
from dpaudit.inference.failures import Failure, Returned, common_failure
from dpaudit.inference.order import LATER_NUMBERS, MAX_OBJECTS, Change
from dpaudit.inference.pair_game import PairGame
from dpaudit.inference.pair_lines import WAYS, PairLines, Record
from dpaudit.inference.tasks import FIRST_DRAWS, Drawer, Request, toss
from dpaudit.learning.partition import CellScore, Partition, fit_partition
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.privacy.renyi_lines import as_lines


@dataclasses.dataclass(frozen=True)
class TableSizes:
    """Thresholds that are tried."""

    steps_per_nat: int = 8  # thresholds are 1/8 nat apart: half of that costs a rule about 1% of its bound
    n_steps: int = 48  # thresholds from 0 up to 6 nats, which few pilots tell from more
    smoothing: float = 0.5  # added to the count of each cell before a ratio is taken


SIZES = TableSizes()
IntArray = NDArray[np.int64]


class AllPairsGame(Campaign):
    """All pairs of a table against their budgets: P(some bound exceeds its truth) <= `error_rate`.

    `first` and `second`, shape (pairs,), are positions of x and x_prime among so many `inputs`; the two differ. What no
    pair names is not drawn. `lines` is what each is tested against; about `samples` draws are taken of each input, at
    least 10. `draw` carries out tasks, `coin` gives the generator of the labels' sum.

    Attributes
    ----------
    correct, wrong, level : array, shape (pairs,)
        The records, of `labelled` draws each, and the levels of the tests.
    lower, epsilon_lower, log_p : array of float, shape (pairs,)
        Lower bounds on the parameter of the claim and on epsilon (one array where that is the parameter), and natural
        logarithms of p-values.
    broken : array of bool, shape (pairs,)
        Whether every call raised, on both inputs: those of the pilot and the fresh ones. Validity: nothing is said of
        such a pair, so this may rest on draws that are counted.
    changes : dict of int to Change
        Of the outcomes of an input from draw to draw.
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
        draw: Drawer,
        coin: Callable[[], np.random.Generator],
    ) -> None:
        super().__init__(Draws(draw, first=1))
        self.first, self.second, self.lines = first, second, lines
        self.error_rate, self.samples, self._coin, self._inputs = error_rate, samples, coin, inputs
        self.used = np.unique(np.concatenate([first, second]))
        self.pilot = max(4, int(FIXED_SHARE * samples) // 2 * 2)  # of each input: rules are learned once, too
        rest = samples - self.pilot
        # The larger of N and m - N is to stay at about `rest`: three of its deviations are left free.
        self.labelled = max(2, 2 * int(rest - 1.5 * math.sqrt(2.0 * rest)))
        self._frozen: RoundPlan | None = None
        pairs = len(first)
        self.level = np.full(pairs, error_rate / pairs)
        self.way, self.step, self.correct, self.wrong = np.zeros((4, pairs), dtype=np.int64)
        self.merit, self.lower, self.epsilon_lower, self.log_p = np.zeros((4, pairs))
        self.broken = np.zeros(pairs, dtype=bool)
        self._failing: dict[int, Failure] = {}  # by input, where all calls so far have raised
        self.changes: dict[int, Change] = {}

    def start(self) -> None:
        """Draw the pilot, fit the partition, and fix every pair's rule and level."""
        half = self.pilot // 2
        drawn, most = 0, min(half, FIRST_DRAWS)
        while drawn < most:  # a few draws first, which tell how large an output is
            self.draws.learn(RoundPlan(dict.fromkeys(self.used.tolist(), most - drawn), keeps=sys.maxsize))
            self.draws.measure([part for parts in self.draws.kept.values() for part in parts])
            fitted = max(FIRST_DRAWS, TRAINING_NUMBERS // (self.draws.columns * len(self.used)))
            drawn, most = most, min(fitted, half)
        parts = {i: self.draws.joined(i) for i in self.used.tolist()}
        seen = {i: common_failure([part]) or _nothing_seen(part) for i, part in parts.items()}
        self._failing = {i: failure for i, failure in seen.items() if failure}
        self.partition: Partition = fit_partition(list(parts.values()), self.pilot)
        # What the partition was fitted on is the start of the pilot's first half, so that no draw is wasted.
        halves = np.zeros((2, self._inputs, self.partition.size), dtype=np.float32)
        for i, part in parts.items():
            halves[0, i] = self.partition.count(part)
        del parts
        self.draws.keep_for_order(min(MAX_OBJECTS, LATER_NUMBERS // len(self.used)))
        plan = self._plan(half - drawn, self.pilot - drawn)
        for i, (a, b) in self._cells(plan, self.draws.learn(plan)).items():
            halves[0, i] += a
            halves[1, i] += b - a
        self._fit_rules(halves)
        self._logs = np.log(halves.sum(axis=0) + np.float32(SIZES.smoothing))
        # Validity: a function of the pilot alone; the shares sum to 1.
        self.level = self.error_rate * shares_by_rank(self.merit)

    def _fit_rules(self, halves: NDArray[np.float32]) -> None:
        """The rule and the merit of every pair."""
        logs = np.log(halves + np.float32(SIZES.smoothing))
        n_steps, trained = SIZES.n_steps, 2.0 * self.pilot
        least = 0.5 * self.error_rate / len(self.first)
        for pairs, i, others in self._blocks():
            mass = np.zeros((2, len(others), 2 * n_steps))  # of x and x_prime, by the step of the ratio
            offset = (np.arange(len(others), dtype=np.int32) * (2 * n_steps))[:, None]
            for fit, judge in ((0, 1), (1, 0)):
                steps = _steps(logs[fit, i], logs[fit, others])
                flat = (steps + offset).ravel()
                for side, weights in enumerate((np.broadcast_to(halves[judge, i], steps.shape), halves[judge, others])):
                    found = np.bincount(flat, weights.ravel(), minlength=2 * n_steps * len(others))
                    mass[side] += found.reshape(len(others), 2 * n_steps)
            # Where the ratio is at least k steps, and where it is below -k steps.
            up = mass[:, :, : n_steps - 1 : -1].cumsum(axis=2)[:, :, ::-1]
            down = mass[:, :, :n_steps].cumsum(axis=2)[:, :, ::-1]
            correct = np.stack([up[0] + down[1], up[0], down[1]], axis=1) / trained  # (others, ways, steps)
            wrong = np.stack([up[1] + down[0], up[1], down[0]], axis=1) / trained
            of_pairs = self.lines.best(pairs, correct, wrong, trained, self.labelled, least)
            self.way[pairs], self.step[pairs], self.merit[pairs] = of_pairs

    def _guesses(self, pairs: IntArray, i: int, others: IntArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The cells on which pairs of one x guess x, and x_prime, shape (pairs, cells) each."""
        steps, step = _steps(self._logs[i], self._logs[others]), self.step[pairs, None].astype(np.int16)
        guesses_x, guesses_x_prime = WAYS[self.way[pairs]].T[:, :, None]
        return (steps >= SIZES.n_steps + step) & guesses_x, (steps < SIZES.n_steps - step) & guesses_x_prime

    def play(self) -> None:
        """Draw every input afresh, count, and test each pair once."""
        while self.round():
            pass
        changes = {i: self.draws.change(i) for i in self.draws.kept}
        self.changes = {i: change for i, change in changes.items() if change is not None}

    def _freeze(self) -> RoundPlan | None:
        """The one round: so many labelled draws of every pair, by one toss."""
        if self._frozen is not None:
            return None
        self._frozen = self._plan(*toss(self.labelled, self._coin()))
        return self._frozen

    def _absorb(self, counts: Counts) -> None:
        assert self._frozen is not None
        counts = self._cells(self._frozen, counts)
        is_failing = np.zeros(self._inputs, dtype=bool)
        is_failing[list(self._failing)] = True
        self.broken = is_failing[self.first] & is_failing[self.second]
        labelled = np.zeros((2, self._inputs, self.partition.size), dtype=np.int32)  # label 1 (as x), 0 (as x_prime)
        for i, of_labels in counts.items():
            labelled[:, i] = of_labels
        for pairs, i, others in self._blocks():
            guess_x, guess_x_prime = self._guesses(pairs, i, others)
            x, x_prime = labelled[0, i], labelled[1, others]
            self.correct[pairs] = (guess_x * x).sum(axis=1) + (guess_x_prime * x_prime).sum(axis=1)
            self.wrong[pairs] = (guess_x_prime * x).sum(axis=1) + (guess_x * x_prime).sum(axis=1)

    def _look(self) -> None:
        self.lower, self.epsilon_lower = self.lines.bounds(self.record)
        self.log_p = self.lines.log_p(self.record)
        self.withhold(self.broken)

    def withhold(self, of: NDArray[np.bool_] | slice) -> None:
        """Take back what is said of some pairs, such as of all where draws depend on each other."""
        for said in (self.lower, self.epsilon_lower, self.log_p):
            said[of] = 0.0

    @functools.cached_property
    def record(self) -> Record:
        """The record of each pair."""
        guesses = (self.correct + self.wrong).astype(float)
        return Record(self.correct.astype(float), guesses, self.way, self.level, self.labelled)

    @property
    def violated(self) -> NDArray[np.bool_]:
        """The verdict of each pair *is* its bound above the budget."""
        return self.lower > self.lines.budget

    @property
    def ratios(self) -> FloatArray:
        """Lower bound over budget; at a budget of 0 inf if violated, else 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.lower / self.lines.budget
        return np.where(self.lines.budget > 0.0, ratio, np.where(self.violated, np.inf, 0.0))

    def rule(self, pair: int) -> CellScore:
        """The guessing rule of one pair."""
        one = np.array([pair])
        guesses = self._guesses(one, int(self.first[pair]), self.second[one])
        return CellScore(self.partition, *(tuple(np.flatnonzero(side[0]).tolist()) for side in guesses))

    def losses(self, masses: FloatArray, probability: float, is_learned: bool = False) -> FloatArray:
        """The smallest loss of randomised-response type that each pair's test would have found, in nats; inf: none.

        Of events with these `masses`, shape (pairs,), at the level that every pair has at least; never understated. Of
        an event that `is_learned` it is that of the worst measured form, an allowance: a rule of the table is taken to
        need as many times the draws of a witness as that of a fixed game (`dpaudit.inference.learned_power`), which
        learns from fewer.
        """
        share = 1.0
        if is_learned:
            seen = self.labelled * min(float(masses.min(initial=1.0)) / learned_power.event_mass_measured(), 1.0)
            harder = learned_power.FREE_LINES if self.lines.is_free else 1.0
            share = min(learned_power.worth(form, True, seen, harder) for form in learned_power.forms()) / seen
        return self.lines.losses(masses, int(share * self.labelled), float(self.level.min()), probability)

    def game(self, pair: int, claim: Claim) -> PairGame:
        """One pair as a label game has it, with its own claim: its level, its one exact test and its bounds."""
        game = PairGame(claim, (int(self.first[pair]), int(self.second[pair])), False, self.labelled)
        game.labelled, game.level = self.labelled, float(self.level[pair])
        game.change = next(iter(self.changes.values()), None)
        if self.broken[pair]:
            game.failure = self._failing[int(self.first[pair])].on_both(self._failing[int(self.second[pair])])
        correct, wrong, lower = int(self.correct[pair]), int(self.wrong[pair]), float(self.lower[pair])
        main = CellTest(as_lines(claim), self.labelled, self.rule(pair), self.lines.line(self.record, pair)[0])
        main.start(game.level)
        main.take(correct, wrong, lower)
        # Of a claim that is one line the bound on its parameter is one on epsilon, at the delta of the finding.
        own = 0.0 if main.claim.anchored else game.epsilon_of(lower)
        second = copy.copy(main)
        second.take(correct, wrong, max(own, float(self.epsilon_lower[pair])))
        game.main, game.uses = main, [(1.0, main), (0.0, second)]
        return game

    def _blocks(self) -> Iterator[tuple[IntArray, int, IntArray]]:
        """Blocks of pairs with one x: their positions, x, and their x_primes."""
        order = np.argsort(self.first, kind="stable")
        most = max(1, CHUNK_NUMBERS // self.partition.size)
        for own in np.split(order, np.flatnonzero(np.diff(self.first[order])) + 1):
            for begin in range(0, len(own), most):
                pairs = own[begin : begin + most]
                yield pairs, int(self.first[pairs[0]]), self.second[pairs]

    def _plan(self, *quotas: int) -> RoundPlan:
        """The first so many draws of every input, counted over the cells, and how many calls return."""
        requests = [*(Request(quota, self.partition) for quota in quotas), Request(max(quotas), Returned())]
        needed = dict.fromkeys(self.used.tolist(), max(quotas))
        return RoundPlan(needed, dict.fromkeys(needed, requests))

    def _cells(self, plan: RoundPlan, counts: Counts) -> Counts:
        """The counts over the cells; inputs of which a call has returned fail no longer."""
        for i, of_input in counts.items():
            has_returned, failure = int(of_input.pop()[0]) > 0, self._failing.get(i)
            if failure is not None and failure.calls and not has_returned:
                self._failing[i] = dataclasses.replace(failure, calls=failure.calls + plan.needed[i])
            elif failure is not None and failure.calls:
                del self._failing[i]
        return counts


def _nothing_seen(part: Outcomes) -> Failure | None:
    """Failure of an input whose outputs show only the name of one class; None where they differ, or show something."""
    kind = unseen(part.raw[:FIRST_DRAWS]) if part.tokens is not None and len(set(part.tokens)) == 1 else ""
    return Failure(f"{kind}, of which nothing is seen but its name") if kind else None


def _steps(log_x: NDArray[np.float32], log_x_prime: NDArray[np.float32]) -> NDArray[np.int16]:
    """The step of each cell's log ratio, from 0 (far below 0) over `n_steps` (from 0 on) to 2 * n_steps - 1."""
    scaled = np.floor((log_x - log_x_prime) * np.float32(SIZES.steps_per_nat)) + SIZES.n_steps
    return np.asarray(np.clip(scaled, 0, 2 * SIZES.n_steps - 1), dtype=np.int16)
