"""Second look at a violation: its rule on calls for one output each, where nothing is shared between outputs.

A vectorised call may share between its outputs what shows in few of them, and in none of the features that
`dpaudit.inference.order` looks at. What such calls show is far less evidence than it counts for. So behind a violation,
and nowhere else, the subject is called for one output at a time, on streams that nothing else reads (in one random
order of the inputs, where no workers draw). The guessing rule of the violation divides outputs into three cells: those
that it guesses either label of, and the rest. What the audit counted in these says which bets win most against the
budget, and half of the wealth is bet so: the factor of a call is (1 + factor) / 2.

Validity. Cells, bets and limits are fixed before the first of these calls. No violation is added, so no level is spent.

* At 1 / level the wealth supports the violation, which stands. Where calls are independent, whatever outputs of a call
  share, the wealth is a non-negative supermartingale with start 1 under every law that keeps the claim. So this has
  probability at most `level`, that of the pair, ever (Ville's inequality).
* At 1 / `against`, over the number of pairs that are asked, the violation is withheld. Where 1 / factor has mean at
  most 1, some pair is so with probability at most 1 / `against`, ever. Without a delta that is where guesses are right
  at least half as far above the claim as they were found to be: with a claim of c, and h halfway to what was found,
  t c / h + (1 - t) (1 - c) / (1 - h) falls in t, and is 1 at t = h. A violation that was found by luck may be smaller;
  `tests/audits/test_single_calls.py` measures that of random counts, fixed and sequential, at most 0.1% are found and
  withheld, whatever the loss. Of real sequential audits, which end by luck, 2 of 300 were, just above the claim.
* For any claim that mean is at most 1 under the law as found: among mixtures of a bet of largest growth with no bet at
  all, none grows faster (so 1 / factor has mean at most 1 at the whole bet), and 1 / (1 - s + s factor) is convex in s.
* Between these, at the limit of calls or of time, the violation stands, and a remark says what is not known.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.findings import NONE_GIVEN, STAGE_PAIRS
from dpaudit.campaign.campaign import Campaign
from dpaudit.campaign.draws import Counts, Draws, RoundPlan
from dpaudit.errors import OutOfTimeError, SubjectError
from dpaudit.inference.bound_search import just_above
from dpaudit.inference.failures import common_failure
from dpaudit.inference.guess_rules import GuessRule
from dpaudit.inference.pair_game import PairGame
from dpaudit.inference.payoffs import Inequalities
from dpaudit.inference.tables import BinCounter, Predicted, bins_of
from dpaudit.inference.tasks import FIRST_DRAWS, Request
from dpaudit.privacy.claims import FloatArray
from dpaudit.running.streams import SINGLE_COINS, SINGLE_DRAWS, stream
from dpaudit.subjects.call_limits import is_time_over, within


@dataclasses.dataclass(frozen=True)
class SingleCallSizes:
    """Limits of a second look, and its bets."""

    first: int = 32  # calls of the first round
    growth: float = 0.25  # of a later one, over all calls before it
    times_of_counted: int = 4  # the labelled draws that the violation was counted on: calls at most
    max_calls: int = 50_000  # four seconds of a cheap function
    max_seconds: float = 30.0  # of all pairs together
    stake: float = 0.5  # of what was found: it may be twice as large as what is there
    against: float = 10_000.0  # at one over this a violation is withheld; how often a true one is the module says


SIZES = SingleCallSizes()
ROUNDS = 1 << 16  # of one game at most: they name its streams
WHAT = "calls for one output each"
NOT_ASKED = "Whether outputs of one call depend on each other was not asked to the end in calls for one output each: "
REFUSED = f"{NOT_ASKED}these raise, or return no batch of one."
STORED = f"{NOT_ASKED}a session of a store makes none. An audit without the store does."
SLOW = f"{NOT_ASKED}the time for these was over, {SIZES.max_seconds:g} seconds or what the audit had left."
MANY = f"{NOT_ASKED}of more than {STAGE_PAIRS} violated pairs the clearest are."


class SingleCalls(Campaign):
    """Bets of the rule of a violated game on calls for one output each, at most `most` of them: see the module."""

    def __init__(self, draws: Draws, game: PairGame, most: int, coin: np.random.Generator, asked: int = 1) -> None:
        super().__init__(draws)
        self._pool, self._most, self._coin = game.pool, most, coin
        rule, table, value = game.main.rule, game.main.table, just_above(game.claim.value)
        counter = table.counter  # of the last round, which decided it
        self._statistic = BinCounter(counter.mixture, is_last=True) if isinstance(counter, BinCounter) else counter
        self._cells = cells_of(rule, table.rounds[-1].predicted.q)
        self.found = np.zeros((2, 3), dtype=np.int64)
        for one in table.rounds:
            self.found += in_cells(one.counts, cells_of(rule, one.predicted.q))
        total = self.found.sum(axis=0)
        predicted = Predicted((self.found[1] + 1.0) / (total + 2.0), (total + 1.0) / (total.sum() + 3.0))
        first, second = Inequalities(game.claim).bets(value, predicted).factors(value)
        self._logs = np.log1p(SIZES.stake * (np.stack([second, first]) - 1.0))
        self._enough, self._too_little = -math.log(game.level * game.uses[0][0]), -math.log(SIZES.against * asked)
        self._sides: dict[int, list[int]] = {}  # of the requests of each input in the round that was frozen last
        self.counts = np.zeros((2, 3), dtype=np.int64)
        self.calls = 0

    @property
    def log_wealth(self) -> float:
        """Log wealth against the budget."""
        return float(np.sum(self._logs * self.counts, where=self.counts > 0))

    @property
    def is_supported(self) -> bool:
        """Tell whether these calls support the violation by themselves."""
        return self.log_wealth >= self._enough

    @property
    def is_contradicted(self) -> bool:
        """Tell whether they speak against it."""
        return self.log_wealth <= self._too_little

    def start(self) -> None:
        """Do nothing: all is fixed."""

    def _freeze(self) -> RoundPlan | None:
        size = min(max(SIZES.first, int(SIZES.growth * self.calls)), self._most - self.calls)
        if self.is_supported or self.is_contradicted or size <= 0 or not self._logs.any():
            return None
        requests: dict[int, list[Request]] = {}
        self._sides = {}
        for read in self._pool.reads(self._pool.quotas(size, self._coin)):
            self._sides.setdefault(read.input, []).append(read.side)
            requests.setdefault(read.input, []).append(Request(read.quota, self._statistic, read.start, read.move))
        needed = {i: max(one.start + one.quota for one in asked) for i, asked in requests.items()}
        self.calls += size
        return RoundPlan(needed, requests, FIRST_DRAWS)

    def _absorb(self, counts: Counts) -> None:
        for i, sides in self._sides.items():
            for side, counted in zip(sides, counts[i], strict=True):
                self.counts[1 - side] += in_cells(self._statistic.split(counted[None])[0], self._cells)[0]

    def _look(self) -> None:
        """Do nothing: the wealth is what was counted."""

    def against_it(self) -> str:
        """Say what calls for one output each show in the place of what larger ones did."""
        (here, guesses), (before, of) = (right_guesses(counts) for counts in (self.counts, self.found))
        return (
            f"Outputs of one call seem to depend on each other, or on how many they are: the rule of a violation was "
            f"right in {before:,} of {of:,} guesses, but in {here:,} of {guesses:,} where each call was asked for one "
            f"output. {NONE_GIVEN}"
        )

    def beside_it(self) -> str:
        """Say how far these calls support the violation."""
        asked = f"{self.calls:,} calls behind this violation were asked for one output each. They"
        if self.is_supported:
            return f"{asked} support it by themselves, whatever outputs of one call share."
        return f"{asked} do not settle whether it rests on what outputs of one call share."


def cells_of(rule: GuessRule, q: FloatArray) -> NDArray[np.intp]:
    """The cell of each bin: 0 where label 0 is guessed, 2 where label 1 is, else 1."""
    bins = bins_of(q)
    return np.where(bins >= rule.first_up, 2, np.where(bins < rule.end_down, 0, 1))


def in_cells(counts: NDArray[np.int64], cells: NDArray[np.intp]) -> NDArray[np.int64]:
    """Counts of bins by cell, shape (labels, 3)."""
    return np.stack([counts[:, cells == cell].sum(axis=1) for cell in range(3)], axis=1)


def right_guesses(counts: NDArray[np.int64]) -> tuple[int, int]:
    """Right guesses, and all, by label and cell."""
    right = int(counts[0, 0] + counts[1, 2])
    return right, right + int(counts[1, 0] + counts[0, 2])


def look_again(run: AuditRun, places: Sequence[int]) -> None:
    """Look at the violated games of these places, the clearest first; see the module.

    Where one is contradicted calls share something, so nothing is said of any pair but those that are supported.
    """
    ranked = sorted(places, key=lambda k: -run.games[k].wealth)
    asked, stands, reason = ranked[:STAGE_PAIRS], set[int](), ""
    remarks = dict.fromkeys(ranked, MANY)
    began = time.monotonic()
    for place in asked:
        try:
            with within(SIZES.max_seconds - (time.monotonic() - began)):
                look = looked(run, place, len(asked))
        except OutOfTimeError:
            remarks[place] = SLOW
            continue
        except SubjectError:
            remarks[place] = REFUSED
            continue
        stands |= {place} if look.is_supported else set()
        remarks[place] = "" if look.is_contradicted else look.beside_it()
        reason = reason or (look.against_it() if look.is_contradicted else "")
    if is_time_over():
        run.cut.append(WHAT)
    for place, remark in remarks.items():
        run.games[place].remarks += (remark,) if remark else ()
    if reason:
        run.calls_share = True
        run.withheld = {**{k: reason for k in range(len(run.games)) if k not in stands}, **run.withheld}
        # A bound rests on the larger calls: what stands is said to be just above its budget.
        run.severities = {run.groups[k][0]: None for k in stands}


def looked(run: AuditRun, place: int, asked: int) -> SingleCalls:
    """The second look at one game, of so many that are asked; `SubjectError` where calls for one output are refused."""
    game, data = run.games[place], dict[int, Any]()
    for member, k in zip(game.pool.members, run.groups[place], strict=True):
        data |= dict(zip(member.inputs, (run.pairs[k].x, run.pairs[k].x_prime), strict=True))
    subject = dataclasses.replace(run.subject, one_by_one=True)
    draws = Draws(run.worker_pool.drawer(subject, data, run.root, SINGLE_DRAWS), ROUNDS * place, calls=True)
    most = min(SIZES.max_calls, SIZES.times_of_counted * game.labelled)
    look = SingleCalls(draws, game, most, stream(run.root, SINGLE_COINS, place), asked)
    try:
        while look.round():
            if look.calls <= SIZES.first and common_failure([draws.joined(i) for i in draws.kept]) is not None:
                raise SubjectError(REFUSED)
    finally:
        run.runs += draws.runs
    return look
