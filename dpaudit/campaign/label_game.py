"""The label game over many pairs: the one object that owns draws, filtration, and the split of the error rate.

Everything that is printed with a confidence derives from here. The rules that make it valid:

* **Filtration.** Draws come in rounds. In round t each pair's rules and bets are fixed from rounds before t; then fresh
  draws are counted; then they may serve the fits of later rounds. The first round (the pilot) is only fitted on.
* **Labels.** In each round a pair takes m labelled draws whose labels are m fair coins: their sum N is binomial(m,
  1/2), from a stream of its own, and the pair reads the first N of the round's draws of x and the first m - N of
  x_prime.
  Draws of one input are independent, so this is the game with coins tossed one by one, whatever other pairs read them.
* **Shared draws.** Pairs share the draws of their inputs, so their evidence is dependent. It is never multiplied: each
  pair has a level of its own and the levels sum to the error rate of the call (union bound), which names the pairs.
* **Pools.** Pairs of one shift of a translation family share one game, and one level: see `dpaudit.testing.pools`.
* **Levels.** Half of the error rate is split evenly. Half goes by the rank of a pair in the pilot, in proportion to
  1 / rank: the pilot's draws are not counted, so the levels are fixed before the first counted draw.
* **Uses.** A claim without an epsilon of its own pays for two bounds from its level: 80% for its parameter (which is
  the verdict) and 20% for epsilon at the report delta.
* **Pilot of a fixed test.** A first part of it is enough where every pair has a rule that was never wrong: what more
  draws could teach is worth less than they are in the test. Nor is it longer than what fits may see. How long the pilot
  is depends on the pilot alone.
* **Longer pilot of a fixed test.** Where some rule may refute the budget, and the pilot has shown it on too few draws
  to rely on it, more are drawn before the test. Whether they are depends on the pilot alone.
* **Calls that raise.** A pair of which every call of the pilot raised has a longer one: until a call returns, or enough
  have raised to say that all do. How long that is depends on the pilot alone.
* **Trial of a fixed test.** Where it is far longer than what fits may see, a further part of the draws before it is
  counted in the cells of a few scores (`dpaudit.learning.trials`), by which the rule is chosen. It is as long as the
  pilot at least, how long it is depends on the pilot alone, and it is held where every pair has something to try.
* **Looks.** Sequential wealth may be looked at after every round (Ville's inequality), and how long a round is may
  depend on the wealth before it: rounds are longer where no pair is near a decision. The exact test of the fixed mode
  is looked at once, after a number of draws fixed beforehand; it has one round, or stages (`RefinedGame`) of sizes that
  are fixed by the pilot.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.hints import NO_HINTS, Hints
from dpaudit.learning.scores import LogDensity, LogRatio
from dpaudit.privacy.claims import Claim
from dpaudit.reading.outcomes import Outcomes, join, unseen
from dpaudit.testing.failures import common_failure
from dpaudit.testing.fixed_game import FEWEST_COMPARED
from dpaudit.testing.order import (
    COLUMNS,
    LATER,
    LATER_NUMBERS,
    MOST_OBJECTS,
    Change,
    LaterOutcomes,
    change_of,
    dependence_hint,
)
from dpaudit.testing.pair_game import PairGame
from dpaudit.testing.pools import Pool, Read, hinted_inputs
from dpaudit.testing.protocols import Aim
from dpaudit.testing.remarks import keys_of, not_read, remarks
from dpaudit.testing.tasks import Draw, Request, Task

Mode = Literal["sequential", "adaptive", "fixed"]
MODES: tuple[Mode, ...] = get_args(Mode)
FIRST_PILOT = 24  # labelled draws before the first bet on a single pair
# Of all labelled draws: before many pairs' bets; before a fixed test, with its trial where fits cannot see as many.
PILOT_SHARE = {"sequential": 0.05, "adaptive": 0.05, "fixed": 0.15}
# Shares before a fixed test where so many draws show rules that are never wrong, with the labelled draws that takes.
SURE_PILOTS = {0.005: 1_000, 0.02: 0, 0.05: 0}
LONGER_PILOT = 0.35  # of all labelled draws: before a fixed test, where a shorter pilot shows hope but no more
PILOT_PER_PAIR = 250  # labelled draws by which each further pair lengthens a sequential pilot, up to that share
LARGEST_PILOT = {"sequential": 100_000, "adaptive": 100_000, "fixed": 400_000}
ROUND_GROWTH = {1: 0.02, 5: 0.08}  # a round's labelled draws over all those before it, from so many open pairs on
FAR_GROWTH = 0.145  # the same where all open pairs are far from a decision: two such rounds, and bets are fitted again
SMALLEST_ROUND = 16
ADAPTIVE_REACH = 16  # times its even share: the labelled draws that a pair may take in adaptive mode
LARGEST_STEP = 0.3  # of its own labelled draws so far: the most that a pair takes in a round of adaptive mode
FIRST_DRAWS = 64  # of each input, before the size of an output is known
MOST_LEARNED = 8  # violated pairs whose witnesses are learned from all that is kept
# Calls on each input before it is said that all of them raise; at most half of those that were asked for.
FAILED_CALLS = 400
LOOKED_AT = 64  # first outputs of an input that are asked whether they show anything, and differ
# Draws of one input kept for fitting: a bound on memory, together with TRAINING_NUMBERS, and on the time of refits.
TRAINING_DRAWS = {"sequential": 20_000, "adaptive": 20_000, "fixed": 200_000}
# The same of vectors of numbers in sequential mode, over the pairs, where that is more: what each column says a little
# of is learned slowly.
VECTOR_DRAWS = 200_000
TRAINING_NUMBERS = 4_000_000  # numbers kept for fitting, over all inputs
# Fit again when a pair has this many times the training draws of its last fit, by whether it is far from a decision.
REFIT_GROWTH = {False: 1.15, True: 1.3}
CHUNK_NUMBERS = 1 << 19  # numbers drawn at a time
CHUNK_CALLS = 512  # calls at a time, of a subject called once a draw, unless that made more chunks than the next line
MOST_CHUNKS_OF_CALLS = 16  # of one input in one round: as many processes can share its draws


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where an audit stands: labelled draws a pair of the planned ones, runs so far, pairs decided, best ratio.

    In adaptive mode, where pairs have different numbers of draws, the share of the runs stands for that of the draws.
    `open_pairs` may still take draws: they are neither decided nor out of draws.
    """

    draws: int
    planned: int
    runs: int
    pairs: int
    violated: int
    largest_ratio: float
    largest_log_wealth: float | None
    open_pairs: int = 0


class LabelGame:
    """Plays the label game on all pairs of an audit.

    Parameters
    ----------
    claims : sequence of Claim
        One a game, with finite values.
    inputs : sequence of (int, int) or Pool
        One a game: the positions of x and x_prime among the audit's inputs, which differ; or the pairs that it pools.
    samples : int
        At most 2 * samples labelled draws are taken a pair; in adaptive mode about samples runs an input, on average
        over the inputs (coins may call for a few more), and `ADAPTIVE_REACH` times as many labelled draws a pair.
    error_rate : float
        Of everything together: P(some bound of some pair exceeds its truth) is at most this.
    mode : {"sequential", "adaptive", "fixed"}
    draw : callable
        Carries out tasks; see `Task`.
    coin : callable
        (round, pair) to the generator of that pair's labels in that round.
    log_density : callable, optional
        The mechanism's own, with `data[i]` the i-th input.
    horizon : int, optional
        Labelled draws of a pair that bets are meant for, where others will follow in later runs; those of this run by
        default.
    calls : bool
        Whether a draw is a call of its own: chunks are smaller then, so that more processes can share a round.
    largest_batch : int, optional
        Draws of one input that are asked for at a time, at most; by default as many as memory allows.
    """

    def __init__(
        self,
        claims: Sequence[Claim],
        inputs: Sequence[tuple[int, int] | Pool],
        *,
        samples: int,
        error_rate: float,
        mode: Mode,
        draw: Draw,
        coin: Callable[[int, int], np.random.Generator],
        log_density: LogDensity | None = None,
        data: Sequence[Any] = (),
        horizon: int | None = None,
        calls: bool = False,
        largest_batch: int | None = None,
    ) -> None:
        self.error_rate = error_rate
        self._calls, self._largest_batch = calls, largest_batch
        self.mode, self.planned = mode, 2 * samples
        self.draw = self._draw = draw
        self._coin = coin
        self.pilot = self._pilot_size(len(claims))
        self._limit = self.planned  # labelled draws of a pair, with the pilot
        pools = [pair if isinstance(pair, Pool) else Pool.single(pair) for pair in inputs]
        self._most_runs = samples * len({i for pool in pools for i in pool.inputs})
        if mode == "adaptive":
            self._limit = min(ADAPTIVE_REACH, len(claims)) * self.planned
        self.pairs = [
            PairGame(
                claim,
                pool,
                mode != "fixed",
                max(pool.labelled((horizon or self._limit) - self.pilot), 1),
                _hints(pool, data, log_density) if len(data) else NO_HINTS,
                len(claims) == 1,
            )
            for claim, pool in zip(claims, pools, strict=True)
        ]
        self.runs = 0
        self._round = 0
        self._kept: dict[int, list[Outcomes]] = {}
        self._batches: dict[int, list[int]] = {}  # the sizes of those that this run has drawn of what is kept
        self._later: dict[int, LaterOutcomes] = {}  # for their order alone
        self._from_before: dict[int, int] = {}  # of the outputs that are kept, how many an earlier run has drawn
        self._columns, self._are_vectors = 1, False

    def _pilot_size(self, pairs: int) -> int:
        share = max(int(PILOT_SHARE[self.mode] * self.planned), 64)
        if self.mode != "fixed":  # one pair needs no ranking; the more there are, the more a good one is worth
            share = min(share, FIRST_PILOT + PILOT_PER_PAIR * (pairs - 1))
        size = min(share, LARGEST_PILOT[self.mode])
        return 2 * max(1, min(size, self.planned // 4) // 2)  # even: as many draws of x as of x_prime

    @property
    def most_before_test(self) -> int:
        """Labelled draws of a pair that are not counted, at most: the pilot, and a trial before a fixed test.

        Where the pilot shows hope alone, there are more.
        """
        return max(self.pilot, 2 * self._pilot_and_trial) if self.mode == "fixed" else self.pilot

    @property
    def _pilot_and_trial(self) -> int:
        """Draws of each input before a fixed test that has a trial."""
        return int(PILOT_SHARE["fixed"] * self.planned) // 2

    def play(self, on_progress: Callable[[Progress], None] | None = None) -> None:
        """Play, after `start`, until every pair is decided or its draws are used up."""
        try:
            while self.play_round():
                if on_progress is not None:
                    on_progress(self.progress())
        finally:  # bounds stand for what was counted, also where a call raises later on
            changes = {i: self._change(i) for i in self._kept}
            hints = {i: self._hint(i) for i in self._kept}
            for pair in self.pairs:
                pair.finish()
                kept = [self._kept[i] for i in pair.inputs]
                own = next((changes[i] for i in pair.inputs if changes[i] is not None), None)
                # Validity: what earlier runs have won goes on, and supposes that their draws were independent.
                pair.change = own or pair.earlier_change
                pair.hint = min(1.0, len(pair.inputs) * min(hints[i] for i in pair.inputs))
                pair.remarks = *remarks(kept), *not_read(kept)
                pair.keys = keys_of([part for of_input in kept for part in of_input])
                if self.mode == "adaptive":  # the power is that of the draws that the pair has had
                    for _, game in pair.uses:
                        game.draws = pair.labelled
            self._learn_witnesses()
        if on_progress is not None:
            on_progress(self.progress())

    def look_at_order(self, pair: PairGame) -> None:
        """Note whether the outcomes of a pair's inputs changed so far, as at the end of the game."""
        changes = (self._change(i) for i in pair.inputs)
        pair.change = pair.change or next((change for change in changes if change is not None), None)

    def _change(self, i: int) -> Change | None:
        """Whether the outcomes of one input changed from call to call, of those that this run has drawn."""
        if not self._kept[i]:
            return None
        first, later = self._joined(i), self._later.get(i)
        begin = self._from_before.get(i, 0)
        drawn = first.rows(slice(begin, min(begin + MOST_OBJECTS, len(first)))).narrowed(COLUMNS)
        return change_of(drawn, self._batches.get(i, ()), later.parts if later else ())

    def _hint(self, i: int) -> float:
        """How the outcomes of one input are spread over the batches of this run: an approximate p-value."""
        if self._calls or not self._kept[i]:
            return 1.0
        begin = self._from_before.get(i, 0)
        drawn = self._joined(i).rows(slice(begin, None))
        return dependence_hint(drawn, self._batches.get(i, ()))

    def first_outcomes(self, pair: PairGame) -> list[Outcomes]:
        """The first outcomes on each input of a pair that this run has drawn and kept, in the order of the calls."""
        found = []
        for i in pair.inputs:
            begin = self._from_before.get(i, 0)
            drawn = self._joined(i) if self._kept.get(i) else None
            found += [] if drawn is None else [drawn.rows(slice(begin, min(begin + MOST_OBJECTS, len(drawn))))]
        return found

    def _learn_witnesses(self) -> None:
        """Look for better witnesses of the violated pairs, the clearest first, where outputs are kept to learn from."""
        violated = [pair for pair in self.pairs if pair.is_violated] if self.mode != "fixed" else []
        for pair in sorted(violated, key=lambda pair: -pair.wealth)[:MOST_LEARNED]:
            if all(self._kept.get(i) for i in pair.inputs):
                # As many of each input: one that other pairs share goes on being drawn when this pair is decided, and
                # to guess it always would be right as a rule.
                first, second = self._training(pair, min(len(self._joined(i)) for i in pair.inputs))
                if len(first) >= FEWEST_COMPARED:
                    pair.main.learn_witness(first, second, pair.hints)

    def start(self) -> None:
        """Draw the pilot, fit every pair on it, rank the pairs, and fix the levels."""
        side = self.pilot // 2
        inputs = sorted({i for pair in self.pairs for i in pair.inputs})
        # A few draws first, which tell how large an output is, and so how many fit into a chunk.
        self._collect({i: min(side, FIRST_DRAWS) for i in inputs}, {i: [] for i in inputs})
        self._set_columns([part for parts in self._kept.values() for part in parts])
        drawn, even = min(side, FIRST_DRAWS), self.error_rate / len(self.pairs)
        if self.mode == "fixed":  # what no fit sees is worth more in the test
            side = min(side, self._most_kept(len(inputs)), max(self._most_of(pair) for pair in self.pairs))
        targets, longer = {side}, side
        if self.mode == "fixed":  # drawn where the pilot leaves it open whether a rule refutes the budget
            longer = max(side, min(int(LONGER_PILOT * self.planned) // 2, self._most_kept(len(inputs))))
            targets.add(longer)
        if all(game.can_be_sure for pair in self.pairs for _, game in pair.uses):
            sizes = [int(share * self.planned) for share, least in SURE_PILOTS.items() if share * self.planned >= least]
            targets |= {max(min(size // 2, side), drawn) for size in sizes}
        seen: dict[int, tuple[int, int, bool]] = {}
        for target in sorted(targets):
            if target > side and not any(pair.is_hopeful for pair in self.pairs):
                break
            if target > drawn:
                self._round += 1
                self._collect({i: target - drawn for i in inputs}, {i: [] for i in inputs})
                drawn = target
            for k, pair in enumerate(self.pairs):
                first, second = self._training(pair)
                known = len(first), len(second), target >= side
                if seen.get(k) != known:  # else no more draws are kept than at the last fit
                    aim: Aim = "bound" if target >= side else "sureness"
                    pair.fit(first, second, even, aim=aim, tries=self._trial_size(drawn) > 0)
                    seen[k] = known
            if all(pair.is_sure for pair in self.pairs):
                break
        self._call_again(drawn, even)
        self._shorten_pilot(2 * (drawn + self._try_out(drawn)))
        for pair in self.pairs:
            pair.unseen = self._unseen(pair)
            pair.repeats = all(_is_one_value(self._joined(i).rows(slice(0, LOOKED_AT))) for i in pair.inputs)
        # Validity: levels are a function of the pilot alone, and sum to the error rate of the call.
        for pair, weight in zip(self.pairs, _shares_by_rank([pair.main.merit for pair in self.pairs]), strict=True):
            pair.start(self.error_rate * float(weight))

    def _call_again(self, drawn: int, level: float) -> None:
        """Lengthen the pilot of pairs of which no call has returned, until one does or enough calls have raised.

        Of a mechanism that mostly raises, a short pilot shows nothing else. One that ends its process is not asked
        again: that takes long.
        """
        for pair in self.pairs:
            self._note_failures(pair)
        most = min(FAILED_CALLS, self.planned // 4, self._most_kept(len(self._kept)))
        raised = again = [pair for pair in self.pairs if any(pair.failures)]
        # Validity: whose pilot is longer, and by how much, is a function of the pilot, and nothing of it is counted.
        while drawn < most and (again := [pair for pair in again if pair.may_return]):
            more = min(drawn, most - drawn)
            needed = {i: more for i in sorted({i for pair in again for i in pair.inputs})}
            self._round += 1
            self._collect(needed, {i: [] for i in needed})
            drawn += more
            for pair in again:
                pair.lengthen_pilot(pair.pool.labelled(2 * more))
                self._note_failures(pair)
        for pair in raised:
            if pair.pilot_more and not pair.is_broken:
                pair.fit(*self._training(pair), level, tries=self._trial_size(drawn) > 0)

    def _note_failures(self, pair: PairGame) -> None:
        pair.failure = common_failure([self._joined(i) for i in pair.inputs])
        pair.failures = [common_failure([self._joined(i) for i in m.inputs]) for m in pair.pool.members]

    def _trial_size(self, drawn: int) -> int:
        """Draws of each input of a trial behind a pilot of so many; 0 where that is not far longer."""
        size = self._pilot_and_trial - drawn
        return size if self.mode == "fixed" and size >= drawn else 0

    def _try_out(self, drawn: int) -> int:
        """Hold a trial after a pilot of so many draws of each input, where every pair's verdict has one: its size."""
        size = self._trial_size(drawn)
        # All pairs give up the same draws for it, also those that would have nothing to try.
        if size == 0 or not all(pair.main.trial for pair in self.pairs):
            return 0
        tried = [
            (pair, game, game.trial)
            for pair in self.pairs
            for _, game in pair.uses
            if game.trial is not None
        ]
        requests: dict[int, list[Request]] = {i: [] for pair, *_ in tried for i in pair.inputs}
        readers: list[list[tuple[int, int, int]]] = []  # of each game: side, input, position among its requests
        for pair, _, trial in tried:
            readers.append([])
            for member in pair.pool.members:
                for side, i in enumerate(member.inputs):
                    readers[-1].append((side, i, len(requests[i])))
                    requests[i].append(Request(size, trial, 0, member.move))
        self._round += 1
        counts = self._collect({i: size for i in sorted(requests)}, requests, keeps=False)
        for (_, game, trial), read in zip(tried, readers, strict=True):
            totals = [trial.zeros(), trial.zeros()]
            for side, i, place in read:
                totals[side] += counts[i][place]
            game.try_out(*totals)
        return size

    def go_on(self, kept: dict[int, Outcomes]) -> None:
        """Go on from earlier runs, instead of `start`: `pairs` are those of then, `kept` outputs that fits may see.

        Validity: all that is counted from here on is drawn after these.
        """
        self.pilot = 0
        self._from_before = {i: len(outcomes) for i, outcomes in kept.items()}
        inputs = {i for pair in self.pairs for i in pair.inputs}
        self._kept = {i: [kept[i]] if i in kept else [] for i in sorted(inputs)}
        self._set_columns(list(kept.values()))
        for pair in self.pairs:
            pair.labelled_before = pair.labelled
            pair.unseen = self._unseen(pair)
            if not pair.is_violated or pair.trained_on == 0:
                self._fit_again(pair)

    def _unseen(self, pair: PairGame) -> str:
        """The name of a class of which the first outputs show nothing else; empty for none."""
        return unseen(output for i in pair.inputs if self._kept[i] for output in self._joined(i).raw[:LOOKED_AT])

    def kept(self, i: int) -> Outcomes | None:
        """The outputs of one input that fits of a later run may see: of vectors, the first that this one saw."""
        return self._joined(i).rows(slice(0, TRAINING_DRAWS[self.mode])) if self._kept.get(i) else None

    def labelled(self, pair: PairGame) -> int:
        """Labelled draws that a pair has taken, with its pilot."""
        return pair.pool.labelled(self.pilot) + pair.pilot_more + pair.labelled

    def _shorten_pilot(self, drawn: int) -> None:
        """Leave to the test what the pilot did not draw."""
        for pair in self.pairs:
            for _, game in pair.uses:
                game.draws += pair.pool.labelled(self.pilot - drawn)
        self.pilot = drawn

    def play_round(self) -> bool:
        """Draw one round for the pairs still open, count, look; False when nothing is left to do."""
        # Validity: who plays, and how long, is a function of earlier rounds.
        sizes = self._round_sizes([k for k, pair in enumerate(self.pairs) if self._left(pair) > 0])
        if not sizes:
            return False
        self._round += 1
        labelled: dict[int, int] = {}
        needed: dict[int, int] = {}
        readers: dict[int, list[tuple[int, Read]]] = {}
        for k, size in sizes.items():
            pair = self.pairs[k]
            labelled[k] = min(size, self._left(pair))
            if 0 < self._left(pair) - labelled[k] < SMALLEST_ROUND:
                labelled[k] = self._left(pair)
            for read in pair.pool.reads(pair.pool.quotas(labelled[k], self._coin(self._round, k))):
                needed[read.input] = max(needed.get(read.input, 0), read.start + read.quota)
                readers.setdefault(read.input, []).append((k, read))
        requests = {
            i: [
                Request(read.quota, game.statistic, read.start, read.move)
                for k, read in reads
                for _, game in self.pairs[k].uses
            ]
            for i, reads in readers.items()
        }
        is_fitted_later = self.mode != "fixed"
        counts = self._collect(needed, requests, keeps=is_fitted_later)
        totals = {k: [[game.statistic.zeros() for _, game in self.pairs[k].uses] for _ in (0, 1)] for k in sizes}
        for i, reads in readers.items():
            vectors = iter(counts[i])
            for k, read in reads:
                for use in range(len(self.pairs[k].uses)):
                    totals[k][read.side][use] = totals[k][read.side][use] + next(vectors)
        for k in sizes:
            pair = self.pairs[k]
            for (_, game), first, second in zip(pair.uses, *totals[k], strict=True):
                game.add(first, second)
            pair.labelled += labelled[k]
            # Validity: an exact test is looked at once, at the end.
            if self.mode != "fixed" or self._left(pair) == 0:
                pair.look()
        for k in sizes:
            if self._left(self.pairs[k]) > 0:
                self._fit_again(self.pairs[k])
        return True

    def _round_sizes(self, open_pairs: Sequence[int]) -> dict[int, int]:
        """The labelled draws of the next round, of each pair that plays in it."""
        if not open_pairs:
            return {}
        if self.mode == "adaptive":
            return self._adaptive_sizes(open_pairs)
        used = self.pilot + max(self.pairs[k].labelled / self.pairs[k].pool.breadth for k in open_pairs)
        growth = ROUND_GROWTH[max(least for least in ROUND_GROWTH if least <= len(open_pairs))]
        if all(self.pairs[k].is_far for k in open_pairs):
            growth = max(growth, FAR_GROWTH)
        size = max(SMALLEST_ROUND, int(growth * used))
        if self.mode == "fixed":
            size = min(self.pairs[k].stage_size(self.planned, self.pilot) for k in open_pairs)
        return {k: self.pairs[k].pool.labelled(size) for k in open_pairs}

    def _adaptive_sizes(self, open_pairs: Sequence[int]) -> dict[int, int]:
        """More draws for the pairs whose wealth is largest: half of all evenly, half in proportion to 1/rank.

        What the leading pairs draw is read by other open pairs of the same inputs too, where they lag behind.
        """
        left = self._most_runs - self.runs
        if left < SMALLEST_ROUND:
            return {}
        pairs = [self.pairs[k] for k in open_pairs]
        used = np.array([pair.pool.labelled(self.pilot) + pair.labelled for pair in pairs], dtype=float)
        growth = ROUND_GROWTH[max(least for least in ROUND_GROWTH if least <= len(open_pairs))]
        step = min(max(SMALLEST_ROUND, growth * used.sum()), left)  # of a pair of its own a labelled draw is one run
        has_begun = any(pair.labelled for pair in self.pairs)
        target = _shares_by_rank([pair.wealth if has_begun else pair.main.merit for pair in pairs])
        wanted = np.maximum(target * (used.sum() + step) - used, 0.0)
        wanted = np.minimum(wanted * step / wanted.sum(), np.maximum(SMALLEST_ROUND, LARGEST_STEP * used))
        wanted[np.argmax(wanted)] = max(float(wanted.max()), float(SMALLEST_ROUND))
        sizes = {k: int(size) for k, size in zip(open_pairs, wanted.tolist(), strict=True) if size >= SMALLEST_ROUND}
        drawn: dict[int, float] = {}
        for k, size in sizes.items():
            pool = self.pairs[k].pool
            for i in pool.inputs:
                drawn[i] = max(drawn.get(i, 0.0), size * pool.load(i))
        for k, so_far in zip(open_pairs, used.tolist(), strict=True):
            pool = self.pairs[k].pool
            shared = int(min(drawn.get(i, 0.0) / pool.load(i) for i in pool.inputs))
            if shared >= SMALLEST_ROUND and so_far < pool.labelled(self.planned):
                sizes[k] = max(sizes.get(k, 0), shared)
        return dict(sorted(sizes.items()))

    def progress(self) -> Progress:
        """Where the game stands."""
        ratios = [pair.ratio_lower for pair in self.pairs if pair.ratio_lower is not None]
        wealths = [wealth for pair in self.pairs if (wealth := pair.main.log_wealth) is not None]
        return Progress(
            draws=(
                self.runs * self.planned // self._most_runs
                if self.mode == "adaptive"
                else self.pilot + max(int(pair.labelled / pair.pool.breadth) for pair in self.pairs)
            ),
            planned=self.planned,
            runs=self.runs,
            pairs=sum(len(pair.pool.members) for pair in self.pairs),
            violated=sum(len(pair.pool.members) for pair in self.pairs if pair.is_violated),
            largest_ratio=max(ratios, default=0.0),
            largest_log_wealth=max(wealths, default=None),
            open_pairs=sum(self._left(pair) > 0 for pair in self.pairs),
        )

    def _left(self, pair: PairGame) -> int:
        """Labelled draws that the pair may still take: none once a sequential pair is decided."""
        if pair.is_broken or (self.mode != "fixed" and pair.is_violated):
            return 0
        most = pair.pool.labelled(self._limit - self.pilot) - pair.pilot_more
        return most - (pair.labelled - pair.labelled_before)

    def _fit_again(self, pair: PairGame) -> None:
        kept = {i: min(sum(len(part) for part in self._kept[i]), self._most_of(pair)) for i in pair.inputs}
        available = min(sum(kept[member.inputs[side]] for member in pair.pool.members) for side in (0, 1))
        growth = REFIT_GROWTH[pair.is_far]
        if available >= growth * pair.trained_on:
            most = len(pair.pool.members) * min(self._most_of(pair), self._most_kept(len(self._kept)))
            # Scores of one column are much the same ones in every fit: what has lost its weight may go for good.
            pair.fit(*self._training(pair), pair.level, is_last=self._are_vectors and available * growth > most)
        else:
            pair.fit_again(pair.pool.labelled(self.pilot))

    def _training(self, pair: PairGame, most: int = sys.maxsize) -> tuple[Outcomes, Outcomes]:
        # New objects, without copies of the numbers: what views show of the outputs goes when the fit is done.
        rows = slice(0, min(self._most_of(pair), most))
        first, second = (
            join([self._joined(m.inputs[side]).rows(rows).moved(m.move) for m in pair.pool.members])
            if len(pair.pool.members) > 1
            else self._joined(pair.pool.members[0].inputs[side]).rows(rows)
            for side in (0, 1)
        )
        return first, second

    def _most_of(self, pair: PairGame) -> int:
        """The outputs of one input that one member of a game may be fitted on: a bound on time, where they are many."""
        members = len(pair.pool.members)
        return self._training_draws if members == 1 else max(FIRST_DRAWS, TRAINING_DRAWS[self.mode] // members)

    @property
    def _training_draws(self) -> int:
        """The outputs of one input that one game may be fitted on."""
        most = TRAINING_DRAWS[self.mode]
        is_longer = self.mode == "sequential" and self._are_vectors
        return max(most, VECTOR_DRAWS // len(self.pairs)) if is_longer else most

    def _set_columns(self, outputs: Sequence[Outcomes]) -> None:
        """Note how large an output is, and whether outputs are vectors of numbers."""
        self._columns = max((part.numbers.shape[1] for part in outputs), default=1)
        self._are_vectors = self._columns > 1 and all(part.tokens is None for part in outputs)

    def _joined(self, i: int) -> Outcomes:
        parts = self._kept[i]
        self._kept[i] = [(join(parts) if len(parts) > 1 else parts[0]).with_notes()]
        return self._kept[i][0]

    def _most_kept(self, inputs: int) -> int:
        """The outputs of one input that are kept, of so many inputs."""
        return max(FIRST_DRAWS, min(self._training_draws, TRAINING_NUMBERS // (self._columns * inputs)))

    def _collect(
        self, needed: dict[int, int], requests: dict[int, list[Request]], keeps: bool = True
    ) -> dict[int, list[NDArray[np.int64]]]:
        """Draw what each input needs in this round, in chunks; return the summed counts; with `keeps` keep outputs."""
        cap = self._most_kept(max(len(self._kept), len(needed))) if keeps else 0
        largest = min(max(64, CHUNK_NUMBERS // self._columns), self._largest_batch or sys.maxsize)
        tasks = []
        for i, count in needed.items():
            chunk_size = largest
            if self._calls:
                chunk_size = min(largest, max(CHUNK_CALLS, -(-count // MOST_CHUNKS_OF_CALLS)))
            room = cap - sum(len(part) for part in self._kept.get(i, ()))
            for chunk, start in enumerate(range(0, count, chunk_size)):
                size = min(chunk_size, count - start)
                wanted = tuple(request.within(start, size) for request in requests[i])
                is_later = room <= start
                keep = min(LATER, size) if is_later else min(room - start, size)
                tasks.append(Task(i, self._round, chunk, start, size, wanted, keep, is_later))
        # An input whose pairs' coins all fell on the other side has no task: its counts are zeros.
        totals = {i: [request.statistic.zeros() for request in requests[i]] for i in needed}
        for task, result in zip(tasks, self._draw(tasks), strict=True):
            self.runs += task.size
            if result.kept is not None and task.is_last:
                most = LATER_NUMBERS // max(len(self._kept), len(needed))
                self._later.setdefault(task.input, LaterOutcomes(most)).add(result.kept.narrowed(COLUMNS))
            elif result.kept is not None:
                self._kept.setdefault(task.input, []).append(result.kept)
                self._batches.setdefault(task.input, []).append(len(result.kept))
            totals[task.input] = [a + b for a, b in zip(totals[task.input], result.counts, strict=True)]
        return totals


def _shares_by_rank(merits: Sequence[Any]) -> NDArray[np.float64]:
    """Shares of a whole for each pair: half of it evenly, half in proportion to 1/rank by merit."""
    order = sorted(range(len(merits)), key=lambda k: (merits[k], -k), reverse=True)
    rank = np.empty(len(merits))
    rank[order] = np.arange(1, len(merits) + 1)
    shares = 0.5 / len(merits) + 0.5 * (1.0 / rank) / np.sum(1.0 / rank)
    return np.asarray(shares / shares.sum())


def _hints(pool: Pool, data: Sequence[Any], log_density: LogDensity | None) -> Hints:
    member = pool.members[0]
    first, second = member.inputs
    inputs, density = hinted_inputs(member, (data[first], data[second]), log_density)
    return Hints(None if density is None else LogRatio(density, *inputs), inputs)


def _is_one_value(outcomes: Outcomes) -> bool:
    """Whether there are several outcomes, numbers that are not all integers, and all of them are equal."""
    numbers = outcomes.numbers
    if outcomes.tokens is not None or len(numbers) < 2 or outcomes.is_integer:
        return False
    return bool(np.all(numbers == numbers[0]) and np.any(numbers[0] != np.rint(numbers[0])))
