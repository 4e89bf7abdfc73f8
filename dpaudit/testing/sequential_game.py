"""The sequential game against a family of hockey-stick lines: bets on cells, their wealth, and the bound they support.

One `SequentialGame` is one use of the error rate on one pair: pure, approximate, Gaussian and profile claims. In each
*epoch* the partitions and the weights of the bets are fixed, from earlier draws; the wealth of the game is the product
over epochs, an e-value at any time (see `dpaudit.testing.betting`).

Targets. Bets that are best against the budget are poor where the loss is far below it, and the lower bound is wanted
there too. So wealth is an average over bets meant for several parameter values: `BUDGET_SHARE` of it for the budget,
which is what decides the verdict, the rest for values below. Every part decreases in the parameter, so the average
does, and the rejected parameters are an interval from 0: "violated" *is* "bound above the budget". What bets for deep
targets have won takes long to compute, and is left out where a bound was found without: a part is at most the whole, so
that rejects no more.

Reach. What a stake would win on as many draws as there were training draws, if every draw were guessed at its level and
the line had no delta, tells which stakes are worth their weight now: those that win far less cannot decide soon, and
those that win far more would as a rule have decided long ago. The prior weights of both are lowered in bets for the
budget, by the number of training draws and what was fixed before them, never by their labels.

Caution. A share of an epoch's wealth is not bet, fixed by the number of its training draws: an average of a constant 1
and of the bets is an e-value too, and decreases in the parameter as they do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.cells import CellSet
from dpaudit.learning.fitted_partitions import Partition
from dpaudit.learning.hints import Hints
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.reading.outcomes import Outcomes
from dpaudit.testing import wealth
from dpaudit.testing.betting import Components, components_for, fit_bets, log_sum
from dpaudit.testing.epochs import Epoch, book_of, twins_of
from dpaudit.testing.hockey_stick import HockeyStickGame, just_above, largest_in_excess
from dpaudit.testing.protocols import Training
from dpaudit.testing.stacks import NO_BETS, Group, Reckoning, Stack, grouped, stack_of_bets, stack_of_fits, with_idle
from dpaudit.testing.witnesses import Witness, WitnessSearch

SAME_WEALTH = 1e-6  # nats, or relative
BUDGET_SHARE = 0.9  # of the wealth, for bets meant for the budget; it costs -log(0.9) = 0.11 nats of it
LOWER_TARGETS = (0.6,)  # times the budget: where the other bets are meant
LARGE_TARGET = 1.0  # of a large parameter, targets go down to this or less
SMALLEST_TARGET = 0.25  # the same where only the bound is wanted
TARGET_STEP = 0.35  # from one such target to the next
LEAST_TARGET = 0.01  # of the deep targets, which go on from there, and are asked only where no bound was found above
DEEP_SHARE = 0.1  # theirs, of what is not for the budget
DEEP_FROM = 1_000  # training draws of an epoch, before which nothing is bet for them: they need far more
FIRST_SHARE = 0.6  # prior weight of the first partition and its twins: of the simplest score
CLEAR_SHARE = 0.6  # the same, where on the training draws one of them told far more than any other partition:
CLEARLY_AHEAD = 6.0  # by so many nats
LARGEST_LAG = 3.0  # nats by which partitions that learners have proposed have less than the best of them, at most
LEARNED_SHARE = 0.1  # prior weight of all partitions together that learners have proposed, where there are some
BET_ANCHORS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # epsilons of lines that a free family is bet at
KEPT = 48  # components of a free family, which has one set for each of `BET_ANCHORS`
CAUTION = 60.0  # training draws: after n of them, a share of CAUTION / (CAUTION + n) of the wealth is not bet
CLEAR_CAUTION = 12.0  # the same, where what a learner has proposed told the labels of these draws clearly:
CLEARLY_TOLD = 10.0  # by so many nats
# Nats that a stake wins on as many draws as the training draws, over those that decide (see Reach above): below the
# first its prior weight falls in proportion, above the second with the root.
REACH, ROOT_REACH = 3.0, 30.0
# Partitions with less of the weights, with their twins, are not counted once training is long, and goes on; unless they
# are promising: their bets would have won so many nats on the training draws, which those on noise do not.
IGNORED_WEIGHT = 0.03
PROMISING = 3.0
LONG_TRAINING = 2_000  # draws, from which on training is long
KEPT_LATER = 12  # components, of a line without a delta, once training is long
# How bets for lower targets are made against a family of free lines, and against others: another number for another
# way (components, weights, floor, which epochs, what share), since they are not saved but made again. Reach has
# no part in them.
LOWER_BETS = {True: 5, False: 3}
PRECISION = 2e-3  # relative, of the search for the bound
LEVEL_OF_PILOT = 0.05  # that rules are fitted for before the level is fixed


def _told_by_learned(partitions: Sequence[Partition]) -> float:
    """The evidence of the partition that told most of those that learners have proposed; -inf where there is none.

    Fitted scores are left out: they see the draws that their cells are counted on.
    """
    return max((one.evidence for one in partitions if one.is_learned), default=-math.inf)


class SequentialGame(HockeyStickGame):
    """One use of the error rate on one pair, bet on round by round.

    Parameters
    ----------
    claim : Claim
        Of this pair; family "hockey-stick", value finite.
    draws : int
        Labelled draws that may be bet on.
    decides : bool
        Whether the budget is the verdict's. If not, wealth is spread evenly over the budget and values further and
        further below it: the bound is all that is wanted.

    Notes
    -----
    `level` is set by `start`, before the first counted draw. P(lower ever > truth) <= level: partitions, weights and
    the line's anchor of a draw are fixed from earlier draws, labels are fair coins, and the level is fixed before.
    """

    def __init__(self, claim: Claim, draws: int, decides: bool = True) -> None:
        super().__init__(claim, draws)
        self._targets = _targets(claim.value, LOWER_TARGETS, LARGE_TARGET if decides else SMALLEST_TARGET)
        self._deep_targets = _targets(claim.value, self._targets[:1], LEAST_TARGET)[:-1]
        self._share = BUDGET_SHARE if decides else 1.0 / (1.0 + len(self._targets))  # of the bets for the budget
        self._epochs: list[Epoch] = []
        self._fraction = np.empty(0)
        self._made: dict[tuple[float, tuple[float, ...]], Components] = {}  # of these fractions
        self._watched = just_above(claim.value)
        self._carried: float | None = None  # log wealth of epochs that another engine counted, see `go_on`
        self._closed = 0.0  # log wealth against `_watched`, of bets meant for the budget, of all epochs but the last
        self._now = 0.0
        self._bound_is_current = True
        self._history: dict[str, FloatArray] = {}  # log wealth of partitions by their names, by component
        self._past = 0.0  # log wealth of all of them together
        self._best: Witness | None = None  # of the draws so far, once it was asked for
        self._lower_bets = LOWER_BETS[claim.anchored]  # 0 if an engine that made them in another way has looked at them

    def start(self, level: float) -> None:
        """Fix the level: the error rate this use may spend."""
        self.level = level

    def prepare(self, training: Training, level: float) -> None:
        """Open an epoch: see `fit`."""
        self.fit(training.partitions, level, training.is_last)

    def fit(self, partitions: Sequence[Partition], level: float, is_last: bool = False) -> None:
        """Open an epoch: fix the partitions, and bets on them, from the training counts.

        Partitions of little weight that promise nothing are not counted once training is long; where no later fit will
        see new ones (`is_last`) they are. Validity: called before the draws that it is counted on.
        """
        if self._epochs:
            self._close()
        else:
            self._fraction = wealth.fractions(self.draws, -math.log(level))
            self._made = {}
        book = book_of(partitions)
        components = self._components(self.claim.value, self._tested_anchors)
        self._components_count = components.up.shape[1]
        lines = self._lines(self.claim.value, components)
        reach = components.growth(lines[0]) * book.train[..., 0].sum() / max(-math.log(level), 1.0)
        prior = self._prior(partitions, components.up.shape[1]) + _within_reach(reach)
        bets = fit_bets(book, components, prior, (len(partitions),), lines, twins_of(partitions))
        is_long = book.train[..., 0].sum() >= LONG_TRAINING
        most = components.up.shape[1]
        if self.claim.anchored:
            most = KEPT
        elif is_long and not self._has_delta:  # with a delta, those that bet on rare cells may come late
            most = KEPT_LATER
        kept = np.sort(np.argsort(-log_sum(bets.log_weights, axis=0), kind="stable")[:most])
        if len(kept) < components.up.shape[1]:
            bets = bets.only(kept)
        if is_long and not is_last:
            of_partitions = log_sum(bets.log_weights, axis=1)
            of_twins = np.bincount(twins_of(partitions), np.exp(of_partitions))
            is_worth = (of_twins >= min(IGNORED_WEIGHT, float(of_twins.max())))[twins_of(partitions)]
            won = bets.log_wealth(book.train, *self._lines(self.claim.value, bets.components))
            is_worth |= log_sum(won + bets.log_weights, axis=1) - of_partitions >= PROMISING
            worth = np.flatnonzero(is_worth)
            partitions = [partitions[int(k)] for k in worth]
            book, bets = book_of(partitions), bets.for_partitions(worth, max(p.cells.size for p in partitions))
        # Validity: the training draws alone decide what is not bet.
        caution = CLEAR_CAUTION if _told_by_learned(partitions) >= CLEARLY_TOLD else CAUTION
        idle = caution / (caution + max(float(book.train[..., 0].sum()), 1.0))
        self._epochs.append(Epoch(tuple(partitions), book, bets, kept, idle))
        self._best = None

    # --- what is saved ---

    @property
    def epochs(self) -> Sequence[Epoch]:
        """All fits so far, with their counts."""
        return self._epochs

    @property
    def state(self) -> dict[str, Any]:
        """What goes on from epoch to epoch, by the names that `go_on` takes."""
        return {
            "fraction": self._fraction,
            "components": self._components_count,
            "history": self._history,
            "past": self._past,
            "lower": self._lower,
            "carried": self._carried,
            "closed": self._closed,
            "watched": self._watched,
            "share": self._share,
            "targets": self._targets,
            "deep_targets": self._deep_targets,
            "lower_bets": self._lower_bets,
        }

    @property
    def now(self) -> float:
        """Log wealth against the budget of the bets that are meant for it, before their share."""
        return self._now

    def go_on(
        self,
        *,
        fraction: FloatArray,
        components: int,
        history: dict[str, FloatArray],
        past: float,
        lower: float,
        carried: float | None,
        closed: float | None,
        watched: float,
        share: float,
        targets: Sequence[float],
        deep_targets: Sequence[float],
        lower_bets: int,
        epochs: Sequence[Epoch],
    ) -> None:
        """Go on from what was saved: `state`, and the epochs with their counts.

        `carried` is the log wealth of epochs that are not there any more, against the budget: what was bet before, by
        another engine. Validity: it goes on as a factor against the budget, and against smaller parameters, whose
        wealth was as large; it says nothing of larger ones, and the bets meant for lower targets have lost all.
        `closed` is the log wealth of all epochs but the last; None to compute it. `lower_bets` says how the bets meant
        for lower targets were made, which are not saved. Validity: where it was in another way, they have lost all, so
        that no bound is the better one of two.
        """
        self._lower_bets = lower_bets if lower_bets == LOWER_BETS[self.claim.anchored] else 0
        self._fraction, self._components_count, self._made = fraction, components, {}
        self._history, self._past, self._lower, self._carried = dict(history), past, lower, carried
        # Validity: how wealth is shared was fixed before the first draw; another version may share it otherwise.
        self._watched, self._share = watched, share
        self._targets, self._deep_targets = tuple(targets), tuple(deep_targets)
        self._epochs = list(epochs)
        logs = [self._of_epoch(epoch) for epoch in self._epochs] or [0.0]
        computed = (carried or 0.0) + sum(logs[:-1])
        # As it was, to the last bit, unless it is another number.
        is_known = closed is not None and math.isclose(closed, computed, rel_tol=SAME_WEALTH, abs_tol=SAME_WEALTH)
        self._closed = closed if closed is not None and is_known else computed
        self._now = self._closed + logs[-1]
        self._bound_is_current = False
        self._best = None

    def prepare_on_counts(self) -> None:
        """Open an epoch of the same partitions, with bets on all draws that were counted in them so far.

        For later on, when no more outputs are kept. Validity: called before the draws that it is counted on.
        """
        last = self._epochs[-1]
        counts = (last.book.train + last.book.live).astype(np.int64)
        self.fit(
            [
                dataclasses.replace(partition, counts=counts[:, : partition.cells.size, k])
                for k, partition in enumerate(last.partitions)
            ],
            self.level,
            is_last=True,
        )

    def _prior(self, partitions: Sequence[Partition], components: int) -> FloatArray:
        """Log prior weights of partitions and components: what they have won, or the average where one is new."""
        new = np.full(components, self._past)
        won = np.array([self._history.get(partition.name, new) for partition in partitions])
        twins = np.array(twins_of(partitions))
        is_learned = np.array([partition.is_learned for partition in partitions])
        others = len({*twins[~is_learned].tolist()})
        shares = np.where(twins == 0, FIRST_SHARE, (1.0 - FIRST_SHARE) / max(others, 1))
        shares = shares / np.bincount(twins)[twins]
        if is_learned.any() and not is_learned.all():
            told = np.array([partition.evidence for partition in partitions])
            ahead = _told_by_learned(partitions) - float(told[~is_learned].max())
            learned_share = CLEAR_SHARE if ahead >= CLEARLY_AHEAD else LEARNED_SHARE
            # Among them those that told less have less, and none has nothing.
            own = np.exp(np.clip(told - told[is_learned].max(), -LARGEST_LAG, 0.0)) * is_learned
            shares = np.where(is_learned, learned_share * own / own.sum(), (1.0 - learned_share) * shares)
        return np.asarray(won + np.log(shares)[:, None])

    def _remember(self, epoch: Epoch) -> None:
        """Add what an epoch won to the history of its partitions and of its components."""
        logs = epoch.log_wealth(self._watched_lines)
        average = float(log_sum(logs + epoch.bets.log_weights))
        total = self._components_count
        for name, row in zip(epoch.names, logs, strict=True):
            own = self._history.setdefault(name, np.full(total, self._past))
            won = np.full(total, average)
            won[epoch.kept] = row
            self._history[name] = own + won
        for name in self._history.keys() - set(epoch.names):
            self._history[name] = self._history[name] + average
        self._past += average

    def _components(self, value: float, anchors: tuple[float, ...]) -> Components:
        """Those of the lines of these anchors at a parameter value: made once, with what they keep."""
        if (value, anchors) not in self._made:
            several = []
            for anchor in anchors:
                epsilon, delta = (float(part[0]) for part in self.claim.lines(np.array([value]), anchor))
                several.append(components_for(epsilon, delta, self._fraction, anchor, self._has_delta))
            self._made[value, anchors] = Components.concatenated(several, axis=1)
        return self._made[value, anchors]

    def _watched_lines(self, components: Components) -> tuple[FloatArray, FloatArray]:
        return self._lines(self._watched, components)

    def _lines(self, value: float, components: Components) -> tuple[FloatArray, FloatArray]:
        """Epsilon and delta, at a parameter value, of the line of each component: of its shape, or (1, 1) for all."""
        first = components.anchor[0, 0]
        if np.all(components.anchor == first):
            line = self.claim.lines(np.array([value]), float(first))
            return np.full((1, 1), line[0][0]), np.full((1, 1), line[1][0])
        epsilon, delta = np.empty_like(components.anchor), np.empty_like(components.anchor)
        for anchor in np.unique(components.anchor).tolist():
            of_anchor = components.anchor == anchor
            line = self.claim.lines(np.array([value]), anchor)
            epsilon[of_anchor], delta[of_anchor] = line[0][0], line[1][0]
        return epsilon, delta

    @property
    def merit(self) -> tuple[int, float]:
        """How good the current epoch's best rule looks on its training draws, in the order of `Objective.merits`."""
        last, search = self._epochs[-1], self._search
        return max(search.rule_of(last, k)[0] for k in last.of_each_cells)

    @property
    def statistic(self) -> CellSet:
        """What is counted on each side's draws: the cells of the current epoch."""
        return self._epochs[-1].statistic

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add counts of the statistic on new draws of x and of x_prime."""
        self._epochs[-1].add(counts_x, counts_x_prime)
        self._bound_is_current = False
        self._best = None

    def update(self) -> None:
        """Look at the wealth. (The bound is computed when it is asked for.)"""
        self._now = self._closed + self._of_epoch(self._epochs[-1])
        if self._now + math.log(self._share) >= -math.log(self.level):
            # Validity: the wealth of every smaller parameter was as large at this look. The bound keeps what it saw.
            self._lower = max(self._lower, self._watched)

    def _of_epoch(self, epoch: Epoch) -> float:
        logs = epoch.log_wealth(self._watched_lines)
        return float(with_idle(log_sum(logs + epoch.bets.log_weights), epoch.idle))

    @property
    def _tested_anchors(self) -> tuple[float, ...]:
        return BET_ANCHORS if self.claim.anchored else (0.0,)

    @property
    def lower(self) -> float:
        """The lower confidence bound on the claim's parameter, at `level`; it never falls."""
        if not self._bound_is_current:
            parts = self._parts()
            groups = [self._group(part) for part in parts]
            self._search_for_bound(groups, len(self._targets))
            if self._lower < min(self._targets) * self.claim.value and self._deep_targets and self._has_lower_bets:
                deep = [group.with_stacks(self._deep_stacks(part)) for group, part in zip(groups, parts, strict=True)]
                self._search_for_bound(deep, len(self._targets) + len(self._deep_targets))
            self._bound_is_current = True
        return self._lower

    @property
    def log_wealth(self) -> float | None:
        """Log e-value against the budget: of the bets that are meant for it, with their share."""
        return self._now + math.log(self._share)

    @property
    def p_value(self) -> float | None:
        return None

    def _search_for_bound(self, groups: Sequence[Group], targets: int) -> None:
        """Raise the bound to what all draws so far reject, by bets for the budget and for the first of the targets."""

        def log_shares(value: float) -> FloatArray:
            logs = np.log(self._shares[: 1 + targets])
            if self._carried is not None:
                logs[0] = logs[0] + self._carried if value <= self._watched else -math.inf
            if not self._has_lower_bets:
                logs[1:] = -math.inf
            return logs

        reckoning = Reckoning(groups, log_shares, -math.log(self.level), self._lines)
        found = largest_in_excess(reckoning.excess, self._lower, self.claim.value, PRECISION)
        self._lower = max(self._lower, found)

    @property
    def _has_lower_bets(self) -> bool:
        """Whether what is meant for values below the budget has not lost all."""
        return self._carried is None and self._lower_bets != 0

    @property
    def _shares(self) -> FloatArray:
        """Shares of the bets for the budget, of those for each target, and for each deep one."""
        rest, deep = 1.0 - self._share, DEEP_SHARE if self._deep_targets else 0.0
        parts = (((1.0 - deep) * rest, self._targets), (deep * rest, self._deep_targets))
        return np.array([self._share, *(part / len(several) for part, several in parts for _ in several)])

    def _parts(self) -> list[list[Epoch]]:
        """The epochs with counts, those together that are asked together."""
        epochs = [epoch for epoch in self._epochs if epoch.book.live.any()]
        return [epochs[part] for part in grouped([float(epoch.book.live[..., 0].sum()) for epoch in epochs])]

    def _group(self, epochs: Sequence[Epoch]) -> Group:
        """The counts of some epochs, with the bets for the budget and for each target."""
        bets, idle = [epoch.bets for epoch in epochs], np.array([epoch.idle for epoch in epochs])
        sizes = [epoch.book.paths.lengths(np.array([c.size for c in epoch.cells])).tolist() for epoch in epochs]
        of_budget = stack_of_bets([epoch.stakes for epoch in epochs], bets, sizes, idle)
        # What the bets for the budget have against it was computed at the looks.
        known = {self._watched: sum(self._of_epoch(epoch) for epoch in epochs)}
        return Group.of([of_budget, *(self._stack_for(epochs, target) for target in self._targets)], [known])

    def _deep_stacks(self, epochs: Sequence[Epoch]) -> list[Stack]:
        """Of some epochs: the bets for each deep target."""
        # Validity: whether an epoch bets is told by its training draws.
        own = [epoch for epoch in epochs if epoch.training >= DEEP_FROM]
        return [self._stack_for(own, target) if own else NO_BETS for target in self._deep_targets]

    def _stack_for(self, epochs: Sequence[Epoch], target: float) -> Stack:
        """Of some epochs: the bets for one target. For lower values the free paths are enough, and cost less."""
        value, free = target * self.claim.value, [epoch.of_each_cells for epoch in epochs]
        anchors = [self._anchor_for(value, epoch) for epoch in epochs]
        of_anchors = {anchor: self._components(value, (anchor,)) for anchor in set(anchors)}
        return stack_of_fits(
            [epoch.stakes[of_each] for epoch, of_each in zip(epochs, free, strict=True)],
            [epoch.book.for_partitions(of_each) for epoch, of_each in zip(epochs, free, strict=True)],
            [of_anchors[anchor] for anchor in anchors],
            [[epoch.cells[k].size for k in of_each] for epoch, of_each in zip(epochs, free, strict=True)],
            np.array([epoch.idle for epoch in epochs]),
        )

    def _anchor_for(self, value: float, epoch: Epoch) -> float:
        """The line of a free family that an epoch's bets meant for this parameter value are on, by its training draws.

        A line that is good against the budget may be poor far below it. It is the one that is good in the partition
        that shows most against the budget: to ask all would take most of the time.
        """
        if not self.claim.anchored:
            return 0.0
        if value not in epoch.anchors:
            components = self._components(value, BET_ANCHORS)
            asked = np.argmax(log_sum(epoch.bets.log_weights, axis=1), keepdims=True)
            book = epoch.book.for_partitions(asked)
            prior = np.zeros((len(book.paths), components.up.shape[1]))
            bets = fit_bets(book, components, prior, (len(book.paths),), self._lines(value, components))
            of_anchors = [log_sum(bets.log_weights[:, components.anchor[0] == anchor]) for anchor in BET_ANCHORS]
            epoch.anchors[value] = BET_ANCHORS[int(np.argmax(of_anchors))]
        return epoch.anchors[value]

    def _close(self) -> None:
        """End the last epoch; one without draws is dropped."""
        last = self._epochs[-1]
        if last.book.live.any():
            self._closed += self._of_epoch(last)
            self._remember(last)
        else:
            self._epochs.pop()

    # --- the witness ---

    @property
    def line(self) -> dict[str, float]:
        """The line that the witness bets against, at the budget."""
        return self._line_at_budget(self._witness().anchor)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Correct and wrong guesses and abstentions of the witness, on draws it was not fitted on."""
        return self._witness().counts

    def describe(self, x: str, x_prime: str) -> str:
        """The witness in words."""
        return self._witness().rule.describe(x, x_prime)

    def rule_record(self) -> dict[str, Any]:
        """The witness as data, for `dpaudit.learning.rules.rule_from_dict`."""
        witness = self._witness()
        return {"game": "guess", "anchor": witness.anchor, **witness.rule.to_dict()}

    def learn_witness(self, first: Outcomes, second: Outcomes, hints: Hints) -> None:
        """Look for the witness of a rejected budget among all that outputs of x and of x_prime show, counted or not."""
        self._best = self._search.learned(self._witness(), first, second, hints)

    def _witness(self) -> Witness:
        if self._best is None:
            self._best = self._search.strongest(self._epochs, self.is_rejected)
        return self._best

    @property
    def _search(self) -> WitnessSearch:
        level = self.level if not math.isnan(self.level) else LEVEL_OF_PILOT
        return WitnessSearch(self._line_at_budget, max(self.draws, 1), level)

    def _critical(self, guesses: int, epsilon: float, delta: float) -> int:
        threshold = -math.log(self.level * self._share)
        return wealth.critical_correct(guesses, self.draws, epsilon, delta, self._fraction, threshold)


def _targets(value: float, first: Sequence[float], smallest: float) -> tuple[float, ...]:
    """Targets as multiples of a value, increasing: the `first`, and below as far as one that is at most `smallest`."""
    targets = list(first)
    while targets[0] * value > smallest:
        targets.insert(0, targets[0] * TARGET_STEP)
    return tuple(targets)


def _within_reach(reach: FloatArray) -> FloatArray:
    """Log prior weights of stakes that win so many times what decides, on as many draws as the training draws."""
    logs = np.log(np.maximum(reach, np.finfo(float).tiny))
    return np.asarray(np.minimum(logs - math.log(REACH), 0.0) - 0.5 * np.maximum(logs - math.log(ROOT_REACH), 0.0))
