"""The label game over many pairs: who is asked, at what level, and what is fitted on which draws.

It is a `Campaign`, which has the order of things, the labels, and why they are valid. What is particular here:

* **Shared draws.** Pairs share the draws of their inputs: a pair reads the first N of a round's draws of x and the
  first m - N of x_prime, and draws of one input are independent, so each pair plays the game with coins tossed one by
  one. But the evidence of pairs is dependent. It is never multiplied: each pair has a level of its own and the levels
  sum to the error rate of the call (union bound), which names the pairs.
* **Pools.** Pairs of one shift of a translation family share one game, and one level: see `dpaudit.inference.pools`.
* **Levels.** `shares_by_rank` of the pilot. A claim without an epsilon of its own pays for two bounds from its level:
  80% for its parameter (which is the verdict) and 20% for epsilon at the report delta.
* **Before the test.** Whatever the pilot of a fixed test is, it is a function of the pilot alone. A first part of it is
  enough where every pair has a rule that was never wrong: what more draws could teach is worth less than they are in
  the test. Nor is it longer than what fits may see. A pair of which every call raised has a longer pilot, in every
  mode: until a call returns, or enough have raised to say that all do.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.campaign.campaign import Campaign, Progress, shares_by_rank
from dpaudit.campaign.draws import Counts, Draws, RoundPlan
from dpaudit.campaign.schedules import MIN_ROUND, TRAINING_DRAWS, Mode, schedule_of
from dpaudit.errors import OutOfTimeError
from dpaudit.features.density import NO_HINTS, LogDensity
from dpaudit.features.outcomes import Outcomes, join, repeats_one_real_value, unseen
from dpaudit.inference.failures import common_failure
from dpaudit.inference.pair_game import PairGame
from dpaudit.inference.pools import Pool, Read, hints_of
from dpaudit.inference.remarks import keys_of, not_read, remarks
from dpaudit.inference.tasks import FIRST_DRAWS, Drawer, Request
from dpaudit.privacy.claims import Claim

# Shares of all draws at which a fixed test's pilot may end, where rules were never wrong; draws that a share must have.
SURE_PILOTS = {0.005: 1_000, 0.02: 0, 0.05: 0}
FAILED_CALLS = 400  # on each input, or half of those asked for, before it is said that all calls raise
TRAINING_NUMBERS = 4_000_000  # numbers kept for fitting, over all inputs: a bound on memory


@dataclasses.dataclass(frozen=True)
class RefitSizes:
    """Refits of a pair: at so many times the outputs of its last fit, by its labelled draws so far.

    With growth g all fits take g / (g - 1) times as long as the last: 6, 4.3 and 2 times. The first take milliseconds,
    and many leaks are decided there; later ones only look for other views, as labels are counted in cells between them.
    """

    growth: tuple[tuple[int, float], ...] = ((500, 1.2), (4_000, 1.3), (sys.maxsize, 2.0))  # below so many draws

    def growth_at(self, labelled: int) -> float:
        return next(growth for below, growth in self.growth if labelled < below)


REFITS = RefitSizes()


class LabelGame(Campaign):
    """Plays the label game on all pairs of an audit: P(some bound of some pair exceeds its truth) <= `error_rate`.

    Each game has a claim of `claims`, with a finite value, and of `inputs` the positions of x and x_prime among the
    audit's inputs (`data`), which differ; or the pairs that it pools. At most 2 * `samples` labelled draws are taken a
    pair; in adaptive mode about `samples` runs an input, on average (coins may call for a few more), and
    `ADAPTIVE_REACH` times as many labelled draws a pair. `coin` gives the generator of the labels of (round, pair).
    `draw`, `calls` and `largest_batch` are those of `Draws`. `shows` outcomes of an input are kept for `shown`, where
    that is more than fits may see. Where the power alone is asked fits and looks are fewer (`is_coarse`).
    """

    def __init__(
        self,
        claims: Sequence[Claim],
        inputs: Sequence[tuple[int, int] | Pool],
        *,
        samples: int,
        error_rate: float,
        mode: Mode,
        draw: Drawer,
        coin: Callable[[int, int], np.random.Generator],
        log_density: LogDensity | None = None,
        data: Sequence[Any] = (),
        calls: bool = False,
        largest_batch: int | None = None,
        shows: int = 0,
        is_coarse: bool = False,
    ) -> None:
        pools = [pair if isinstance(pair, Pool) else Pool.single(pair) for pair in inputs]
        super().__init__(Draws(draw, calls=calls, largest_batch=largest_batch))
        self.error_rate, self.mode, self.planned, self._coin = error_rate, mode, 2 * samples, coin
        self._shows, self._is_coarse = shows, is_coarse
        self.is_cut = False  # whether the time was over before it was decided
        self.schedule = schedule_of(mode, samples, len(claims), len({i for pool in pools for i in pool.inputs}))
        self.schedule.is_coarse = is_coarse
        self.pairs = [
            PairGame(
                claim,
                pool,
                not self.schedule.looks_once,
                max(pool.labelled(self.schedule.limit - self.schedule.pilot), 1),
                hints_of(pool.members[0], data, log_density) if len(data) else NO_HINTS,
            )
            for claim, pool in zip(claims, pools, strict=True)
        ]
        self._gone_on: set[int] = set()  # the pairs of earlier runs, which have no pilot
        # Of the round that was frozen last: labelled draws of each pair, and whose each request of an input is: the
        # pair, and its side.
        self._sizes: dict[int, int] = {}
        self._readers: dict[int, list[tuple[int, int]]] = {}

    @property
    def pilot(self) -> int:
        """Labelled draws of a pair that are only fitted on."""
        return self.schedule.pilot

    def play(self, on_progress: Callable[[Progress], None] | None = None) -> None:
        """Play, after `start`, until every pair is decided or its draws are used up."""
        try:
            while self.round():
                if on_progress is not None:
                    on_progress(self.progress())
        except OutOfTimeError:
            # Validity: the round that was begun is never looked at, and the wealth at the last look stands.
            if self.schedule.looks_once:
                raise
            self.is_cut = True
        finally:  # bounds stand for what was counted, also where a call raises later on
            changes = {i: self.draws.change(i) for i in self.draws.kept}
            hints = {i: self.draws.hint(i) for i in self.draws.kept}
            for pair in self.pairs:
                pair.finish()
                kept = [self.draws.kept[i] for i in pair.inputs]
                own = next((changes[i] for i in pair.inputs if changes[i] is not None), None)
                # Validity: what earlier runs have won goes on, and supposes that their draws were independent.
                pair.change = own or pair.earlier_change
                pair.hint = min(1.0, len(pair.inputs) * min(hints[i] for i in pair.inputs))
                pair.remarks = *remarks(kept), *not_read(kept)
                pair.keys = keys_of([part for of_input in kept for part in of_input])
                if self.mode == "adaptive" or self.is_cut:  # the power is that of the draws that the pair has had
                    for _, test in pair.uses:
                        test.draws = pair.labelled
        if on_progress is not None:
            on_progress(self.progress())

    def look_at_order(self, pair: PairGame) -> None:
        """Note whether the outcomes of a pair's inputs changed so far, as at the end of the game."""
        changes = (self.draws.change(i) for i in pair.inputs)
        pair.change = pair.change or next((change for change in changes if change is not None), None)

    def first_outcomes(self, pair: PairGame) -> list[Outcomes]:
        """The first outcomes on each input of a pair that this run has drawn and kept, in the order of the calls."""
        return [first for i in pair.inputs if (first := self.draws.first(i)) is not None]

    def start(self) -> None:
        """Draw the pilot of all pairs that have no level yet, fit them on it, rank them, and fix their levels."""
        pairs = [pair for pair in self.pairs if math.isnan(pair.level)]
        side, even = self.pilot // 2, self.error_rate / len(pairs)
        inputs = sorted({i for pair in pairs for i in pair.inputs})
        # A few draws first, which tell how large an output is, and so how many fit into a chunk.
        drawn = min(side, FIRST_DRAWS)
        self._learn(dict.fromkeys(inputs, drawn))
        self.draws.measure([part for parts in self.draws.kept.values() for part in parts])
        if self.schedule.looks_once:  # what no fit sees is worth more in the test
            side = min(side, self._most_kept(len(inputs)), max(map(self._most_of, pairs)))
        targets = {side}
        if not self._is_coarse and all(test.can_be_sure for pair in pairs for _, test in pair.uses):
            sizes = [int(share * self.planned) for share, least in SURE_PILOTS.items() if share * self.planned >= least]
            targets |= {max(min(size // 2, side), drawn) for size in sizes}
        for target in sorted(targets):
            if target > drawn:
                self._learn(dict.fromkeys(inputs, target - drawn))
                drawn = target
            for pair in pairs:
                pair.fit(*self._training(pair), even)
                if target < side and not pair.is_sure:
                    break  # then all need a longer pilot, on which each is fitted again
            if all(pair.is_sure for pair in pairs):
                break
        self._call_again(pairs, drawn, even)
        self._shorten_pilot(2 * drawn)
        for pair in pairs:
            pair.unseen = self._unseen(pair)
            firsts = (self.draws.joined(i).rows(slice(0, FIRST_DRAWS)) for i in pair.inputs)
            pair.repeats = all(map(repeats_one_real_value, firsts))
        self._fix_levels(pairs)

    def start_after(self, shown: Mapping[int, Outcomes]) -> None:
        """Start on what an earlier game has kept of each input, instead of a pilot: every draw of this game is counted.

        Validity: these outcomes are fixed before the first draw of this game, and are never counted.
        """
        self.draws.go_on(sorted(shown), shown)
        self._shorten_pilot(0)
        for pair in self.pairs:
            pair.fit(*self._training(pair), self.error_rate / len(self.pairs))
        self._fix_levels(self.pairs)

    def _fix_levels(self, pairs: Sequence[PairGame]) -> None:
        # Validity: levels are a function of the pilot alone, and sum to the error rate of the call.
        for pair, weight in zip(pairs, shares_by_rank([pair.main.merit for pair in pairs]), strict=True):
            pair.start(self.error_rate * float(weight))

    def _call_again(self, pairs: Sequence[PairGame], drawn: int, level: float) -> None:
        """Lengthen the pilot of pairs of which no call has returned, until one does or enough calls have raised.

        Of a mechanism that mostly raises, a short pilot shows nothing else. One that ends its process is not asked
        again: that takes long.
        """
        for pair in pairs:
            self._note_failures(pair)
        most = min(FAILED_CALLS, self.planned // 4, self._most_kept(len(self.draws.kept)))
        raised = again = [pair for pair in pairs if any(pair.failures)]
        # Validity: whose pilot is longer, and by how much, is a function of the pilot, and nothing of it is counted.
        while drawn < most and (again := [pair for pair in again if pair.may_return]):
            more = min(drawn, most - drawn)
            self._learn(dict.fromkeys(sorted({i for pair in again for i in pair.inputs}), more))
            drawn += more
            for pair in again:
                pair.lengthen_pilot(pair.pool.labelled(2 * more))
                self._note_failures(pair)
        for pair in raised:
            if pair.pilot_more and not pair.is_broken:
                pair.fit(*self._training(pair), level)

    def _note_failures(self, pair: PairGame) -> None:
        pair.failure = common_failure([self.draws.joined(i) for i in pair.inputs])
        pair.failures = [common_failure([self.draws.joined(i) for i in m.inputs]) for m in pair.pool.members]

    def go_on(self, kept: dict[int, Outcomes]) -> None:
        """Go on with pairs that have a level, as they were after earlier runs: `kept` are outputs that fits may see.

        The other pairs `start` behind it. Validity: all that is counted from here on is drawn after these.
        """
        old = [pair for pair in self.pairs if not math.isnan(pair.level)]
        self._gone_on = {id(pair) for pair in old}
        if len(old) == len(self.pairs):
            self.schedule.pilot = 0
        self.draws.go_on(sorted({i for pair in old for i in pair.inputs}), kept)
        for pair in old:
            pair.labelled_before = pair.labelled
            pair.unseen = self._unseen(pair)
            if not pair.is_violated or pair.trained_on == 0:
                self._fit_again(pair)

    def _unseen(self, pair: PairGame) -> str:
        """The name of a class of which the first outputs show nothing else; empty for none."""
        kept = (self.draws.joined(i) for i in pair.inputs if self.draws.kept[i])
        return unseen(output for outcomes in kept for output in outcomes.raw[:FIRST_DRAWS])

    def shown(self, pair: PairGame) -> tuple[Outcomes, Outcomes]:
        """Equally many outputs on x and on x_prime of a pair, of those that fits may see."""
        # Of an input that other pairs draw there are more, and a guess of it would often be right.
        return self._training(pair, min(len(self.draws.joined(i)) for i in pair.inputs), self._shows)

    def kept(self, i: int) -> Outcomes | None:
        """The outputs of one input that fits of a later run may see."""
        return self.draws.joined(i) if self.draws.kept.get(i) else None

    def labelled(self, pair: PairGame) -> int:
        """Labelled draws that a pair has taken, with its pilot."""
        return pair.pool.labelled(self._pilot_of(pair)) + pair.pilot_more + pair.labelled

    def _pilot_of(self, pair: PairGame) -> int:
        """The pilot of a pair: none where it goes on."""
        return 0 if id(pair) in self._gone_on else self.pilot

    def _shorten_pilot(self, drawn: int) -> None:
        for pair in self.pairs:
            for _, test in pair.uses:
                test.draws += pair.pool.labelled(self.pilot - drawn)
        self.schedule.pilot = drawn

    def _freeze(self) -> RoundPlan | None:
        open_pairs = [k for k, pair in enumerate(self.pairs) if self._left(pair) > 0]
        sizes = self.schedule.sizes(self.pairs, open_pairs, self.runs) if open_pairs else {}
        self._sizes = {}
        reads: list[tuple[int, Read]] = []
        for k, size in sizes.items():
            pool, left = self.pairs[k].pool, self._left(self.pairs[k])
            self._sizes[k] = left if left - size < MIN_ROUND else size
            reads += [(k, read) for read in pool.reads(pool.quotas(self._sizes[k], self._coin(self.draws.round, k)))]
        self._readers = {}
        requests: dict[int, list[Request]] = {}
        for k, read in reads:
            self._readers.setdefault(read.input, []).append((k, read.side))
            asked = Request(read.quota, self.pairs[k].main.statistic, read.start, read.move)
            requests.setdefault(read.input, []).append(asked)
        needed = {i: max(request.start + request.quota for request in asked) for i, asked in requests.items()}
        keeps_none = self.schedule.looks_once and not self._shows
        return RoundPlan(needed, requests, 0 if keeps_none else self._keeps(needed)) if sizes else None

    def _absorb(self, counts: Counts) -> None:
        totals: dict[int, list[Any]] = {k: [0, 0] for k in self._sizes}
        for i, readers in self._readers.items():
            for (k, side), vector in zip(readers, counts[i], strict=True):
                totals[k][side] = totals[k][side] + vector
        for k, pair_counts in totals.items():
            self.pairs[k].main.add(*pair_counts)
            self.pairs[k].labelled += self._sizes[k]

    def _look(self) -> None:
        for k in self._sizes:  # Validity: an exact test is looked at once, as `Fixed` has one round
            self.pairs[k].look()

    def _fit(self) -> None:
        for pair in (self.pairs[k] for k in self._sizes):
            if self._left(pair) > 0:
                self._fit_again(pair)

    def progress(self) -> Progress:
        """Progress of the game."""
        ratios = [pair.ratio_lower for pair in self.pairs if pair.ratio_lower is not None]
        wealths = [wealth for pair in self.pairs if (wealth := pair.main.log_wealth) is not None]
        return Progress(
            draws=self.schedule.drawn(self.pairs, self.runs),
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
        if pair.is_broken or (not self.schedule.looks_once and pair.is_violated):
            return 0
        most = pair.pool.labelled(self.schedule.limit - self._pilot_of(pair)) - pair.pilot_more
        return most - (pair.labelled - pair.labelled_before)

    def _fit_again(self, pair: PairGame) -> None:
        kept = {i: min(sum(map(len, self.draws.kept[i])), self._most_of(pair)) for i in pair.inputs}
        available = min(sum(kept[member.inputs[side]] for member in pair.pool.members) for side in (0, 1))
        growth = REFITS.growth[-1][1] if self._is_coarse else REFITS.growth_at(pair.labelled)
        if available >= growth * pair.trained_on and not pair.main.table.is_full:
            pair.fit(*self._training(pair), pair.level)
        else:
            pair.fit_again(pair.pool.labelled(self.pilot))

    def _training(self, pair: PairGame, most: int = sys.maxsize, least: int = 0) -> tuple[Outcomes, Outcomes]:
        # New objects, without copies of the numbers: what views show of the outputs goes when the fit is done.
        rows = slice(0, min(max(self._most_of(pair), least), most))
        first, second = (
            join([self.draws.joined(m.inputs[side]).rows(rows).moved(m.move) for m in pair.pool.members])
            if len(pair.pool.members) > 1
            else self.draws.joined(pair.pool.members[0].inputs[side]).rows(rows)
            for side in (0, 1)
        )
        return first, second

    def _most_of(self, pair: PairGame) -> int:
        """The outputs of one input that one member of a game may be fitted on: a bound on time."""
        return max(FIRST_DRAWS, TRAINING_DRAWS[self.mode] // len(pair.pool.members))

    def _most_kept(self, inputs: int) -> int:
        """The outputs of one input that are kept, of so many inputs."""
        most = max(TRAINING_DRAWS[self.mode], self._shows)
        return max(FIRST_DRAWS, min(most, TRAINING_NUMBERS // (self.draws.columns * inputs)))

    def _keeps(self, needed: dict[int, int]) -> int:
        return self._most_kept(max(len(self.draws.kept), len(needed)))

    def _learn(self, needed: dict[int, int]) -> None:
        self.draws.learn(RoundPlan(needed, keeps=self._keeps(needed)))
