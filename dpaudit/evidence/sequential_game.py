"""The sequential game against a family of hockey-stick lines: bets on cells, their wealth, and the bound they support.

One `SequentialGame` is one use of the error rate on one pair: pure, approximate, Gaussian and profile claims. In each
*epoch* the partitions and the weights of the bets are fixed, from earlier draws; the wealth of the game is the product
over epochs, an e-value at any time (see `dpaudit.evidence.betting`).

Targets. Bets that are best against the budget are poor where the loss is far below it, and the lower bound is wanted
there too. So wealth is an average over bets meant for several parameter values: `BUDGET_SHARE` of it for the budget,
which is what decides the verdict, the rest for values below. Every part decreases in the parameter, so the average
does, and the rejected parameters are an interval from 0: "violated" *is* "bound above the budget".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.evidence import wealth
from dpaudit.evidence.betting import Bets, Book, Line, fit_bets, stack
from dpaudit.evidence.cells import Cells, CellSet
from dpaudit.evidence.hockey_stick import ANCHORS, HockeyStickGame, just_above, largest_rejected
from dpaudit.evidence.partitions import Partition
from dpaudit.evidence.rules import ABSTAIN, Objective, Rule, best_thresholds
from dpaudit.privacy.claims import Claim, FloatArray

BUDGET_SHARE = 0.85  # of the wealth, for bets meant for the budget; it costs -log(0.85) = 0.16 nats of it
LOWER_TARGETS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # epsilons, those well below the budget
NEAR_BUDGET = 0.8  # times the budget: the highest of the lower targets
ANCHORED_TARGETS = (0.4, 0.8)  # times the budget, for claims whose parameter is no epsilon
IGNORED_WEIGHT = 1e-3  # a partition with less of the weights is not counted once training is long
LONG_TRAINING = 2_000  # draws
POINTS, PRECISION = 6, 1e-3  # of the search for the bound: parts of an interval, and relative precision


@dataclasses.dataclass
class Epoch:
    """What one fit bets on: partitions, bets for each target, the line's anchor; and the counts."""

    cells: tuple[Cells, ...]
    book: Book
    bets: Bets
    anchor: float
    statistic: CellSet

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add counts of the statistic on new draws of x (label 1) and x_prime (label 0)."""
        start = 0
        for k, cells in enumerate(self.cells):
            part = slice(start, start + cells.size)
            self.book.live[k, 0, : cells.size] += counts_x_prime[part]
            self.book.live[k, 1, : cells.size] += counts_x[part]
            start += cells.size

    def log_wealth(self, line: Line) -> FloatArray:
        """Log wealth of the epoch's draws against each line, shape (values, targets)."""
        return np.asarray(special.logsumexp(self.bets.log_wealth(self.book, line), axis=-1))


class SequentialGame(HockeyStickGame):
    """One use of the error rate on one pair, bet on round by round.

    Parameters
    ----------
    claim : Claim
        Of this pair; family "hockey-stick", value finite.
    draws : int
        Labelled draws that may be bet on.

    Notes
    -----
    `level` is set by `start`, before the first counted draw. P(lower ever > truth) <= level: partitions, weights and
    the line's anchor of a draw are fixed from earlier draws, labels are fair coins, and the level is fixed before.
    """

    def __init__(self, claim: Claim, draws: int) -> None:
        super().__init__(claim, draws)
        self._epochs: list[Epoch] = []
        self._fraction = np.empty(0)
        self.targets = _targets(claim)
        shares = np.full(len(self.targets), (1.0 - BUDGET_SHARE) / max(len(self.targets) - 1, 1))
        shares[-1] = BUDGET_SHARE if len(self.targets) > 1 else 1.0
        self._log_shares = np.log(shares)
        # The verdict and the e-value: wealth against a value just above the budget, and against the budget.
        self._watched = np.array([just_above(claim.value), claim.value])
        self._closed = np.zeros((2, len(self.targets)))  # log wealth there of all epochs but the last
        self._now = np.zeros(2)
        self._lower = 0.0
        self._bound_is_current = True

    def start(self, level: float) -> None:
        """Fix the level: the error rate this use may spend."""
        self.level = level

    def fit(self, partitions: Sequence[Partition], level: float) -> None:
        """Open an epoch: fix the partitions, and bets on them, from the training counts.

        Validity: called before the draws that it is counted on.
        """
        if self._epochs:
            self._close()
        else:
            self._fraction = wealth.fractions(self.draws, -math.log(level))
        book = _book(partitions)
        counted_on = book.train.sum(axis=(1, 2))
        anchor = self._best_anchor(book, counted_on) if self.claim.anchored else 0.0
        bets = fit_bets(book, self._line(self.targets, anchor), self._fraction, counted_on, self._has_delta)
        keep = self._worth_counting(bets, float(counted_on.min()))
        if len(keep) < len(partitions):
            partitions = [partitions[k] for k in keep]
            book = _book(partitions)
            bets = fit_bets(book, self._line(self.targets, anchor), self._fraction, counted_on[keep], self._has_delta)
        cells = tuple(partition.cells for partition in partitions)
        self._epochs.append(Epoch(cells, book, bets, anchor, CellSet(cells)))

    @property
    def merit(self) -> tuple[int, float]:
        """How good the current epoch's best rule looks on its training draws, in the order of `Objective.merits`."""
        return max(self._rule_of(self._epochs[-1], k)[0] for k in range(len(self._epochs[-1].cells)))

    @staticmethod
    def _worth_counting(bets: Bets, draws: float) -> list[int]:
        """Positions of the partitions that hold some of the weights for some target, once training is long."""
        weights = special.logsumexp(bets.log_weights, axis=-1).max(axis=0)  # (partitions,)
        if draws < LONG_TRAINING:
            return list(range(len(weights)))
        return [int(k) for k in np.flatnonzero(weights >= math.log(IGNORED_WEIGHT))]

    def _best_anchor(self, book: Book, counted_on: FloatArray) -> float:
        """The line of a free family that bets are expected to gain most against, at the budget."""
        budget = self.targets[-1:]

        def expected(anchor: float) -> float:
            bets = fit_bets(book, self._line(budget, anchor), self._fraction, counted_on, self._has_delta)
            remaining = max(self.draws - self._bet_on, 1)
            return float(special.logsumexp(bets.log_weights + bets.growth * min(remaining, 4.0 * counted_on.max())))

        return max(ANCHORS, key=expected)

    @property
    def _bet_on(self) -> int:
        return int(sum(epoch.book.live[0].sum() for epoch in self._epochs))

    @property
    def statistic(self) -> CellSet:
        """What is counted on each side's draws: the cells of the current epoch."""
        return self._epochs[-1].statistic

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add counts of the statistic on new draws of x and of x_prime."""
        self._epochs[-1].add(counts_x, counts_x_prime)
        self._bound_is_current = False

    def update(self) -> None:
        """Look at the wealth. (The bound is computed when it is asked for.)"""
        current = self._epochs[-1]
        logs = self._closed + current.log_wealth(self._line(self._watched, current.anchor))
        self._now = np.asarray(special.logsumexp(logs + self._log_shares, axis=-1))

    @property
    def is_rejected(self) -> bool:
        """Whether the budget is rejected, which is the verdict: exactly when the bound exceeds it."""
        return self._lower > self.claim.value or float(self._now[0]) >= -math.log(self.level)

    @property
    def known_lower(self) -> float:
        """The bound when it was last computed."""
        return self._lower

    @property
    def lower(self) -> float:
        """The lower confidence bound on the claim's parameter, at `level`; it never falls."""
        if not self._bound_is_current:
            found = largest_rejected(self._rejection(), self._lower, self.claim.value, POINTS, PRECISION)
            self._lower = max(self._lower, found)
            self._bound_is_current = True
        return self._lower

    @property
    def log_wealth(self) -> float | None:
        """Log e-value against the budget."""
        return float(self._now[1])

    @property
    def p_value(self) -> float | None:
        return None

    def _rejection(self) -> Callable[[FloatArray], NDArray[np.bool_]]:
        """Whether each of several parameter values is rejected by all draws so far."""
        bet_on = [epoch for epoch in self._epochs if epoch.book.live.any()]
        book, bets = stack([epoch.book for epoch in bet_on], [epoch.bets for epoch in bet_on])
        counts = [len(epoch.cells) for epoch in bet_on]
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        anchors = np.repeat([epoch.anchor for epoch in bet_on], counts)
        threshold = -math.log(self.level)

        def rejected(values: FloatArray) -> NDArray[np.bool_]:
            lines = {anchor: self._line(values, anchor) for anchor in set(anchors.tolist())}
            epsilon = np.stack([lines[anchor].epsilon for anchor in anchors.tolist()], axis=1)
            delta = np.stack([lines[anchor].delta for anchor in anchors.tolist()], axis=1)
            logs = bets.log_wealth(book, Line(epsilon, delta))  # (values, targets, partitions)
            of_epochs = np.logaddexp.reduceat(logs, first, axis=-1)
            total = of_epochs.sum(axis=-1) + self._log_shares
            return np.asarray(special.logsumexp(total, axis=-1) >= threshold)

        return rejected

    def _close(self) -> None:
        """End the last epoch; one without draws is dropped."""
        last = self._epochs[-1]
        if last.book.live.any():
            self._closed += last.log_wealth(self._line(self._watched, last.anchor))
        else:
            self._epochs.pop()

    # --- the witness ---

    @property
    def line(self) -> dict[str, float]:
        """The line that the witness bets against, at the budget."""
        return self._line_at_budget(self._witness()[3])

    @property
    def counts(self) -> tuple[int, int, int]:
        """Correct and wrong guesses and abstentions of the witness, on draws it was not fitted on."""
        return self._witness()[2]

    def describe(self, x: str, x_prime: str) -> str:
        """The witness in words."""
        return self._witness()[1].describe(x, x_prime)

    def rule_record(self) -> dict[str, Any]:
        """The witness as data, for `dpaudit.evidence.rules.rule_from_dict`."""
        _, rule, _, anchor = self._witness()
        return {"game": "guess", "anchor": anchor, **rule.to_dict()}

    def _witness(self) -> tuple[float, Rule, tuple[int, int, int], float]:
        """Of all epochs' rules (chosen on training draws) the one with the strongest record on live draws.

        Its evidence serves to pick the rule and is not reported; a replay tests the rule on fresh draws.
        """
        best: tuple[float, Rule, tuple[int, int, int], float] | None = None
        for epoch in self._epochs:
            line = self._line_at_budget(epoch.anchor)
            for k in range(len(epoch.cells)):
                _, rule, guesses = self._rule_of(epoch, k)
                label0, label1 = (epoch.book.live[k, label, : epoch.cells[k].size] for label in (0, 1))
                correct = int(label1[guesses == 1].sum() + label0[guesses == 0].sum())
                wrong = int(label0[guesses == 1].sum() + label1[guesses == 0].sum())
                abstained = int(epoch.book.live[k].sum()) - correct - wrong
                scale = math.exp(-line["epsilon"])  # everything over e^epsilon, which may overflow
                cost = scale * line["delta"] * max(rule.sides, 1) / 2.0
                excess = scale * correct - wrong - cost * (correct + wrong + abstained)
                deviation = math.sqrt(scale**2 * (correct + 1.0) + wrong) or 1.0
                if best is None or excess / deviation >= best[0]:
                    best = (excess / deviation, rule, (correct, wrong, abstained), epoch.anchor)
        assert best is not None, "fit comes before the witness"
        return best

    def _rule_of(self, epoch: Epoch, k: int) -> tuple[tuple[int, float], Rule, NDArray[np.int8]]:
        """Merit, thresholds and guesses (one a cell) of the rule that one partition's training counts suggest."""
        cells = epoch.cells[k]
        line = self._line_at_budget(epoch.anchor)
        objective = Objective(line["epsilon"], line["delta"], max(self.draws, 1), self._level_of_fit, True)
        train = epoch.book.train[k, :, : cells.size]
        merit, low, high, sign, nan_guess = best_thresholds(train[1], train[0], objective)
        guesses = np.full(cells.size, ABSTAIN, dtype=np.int8)
        guesses[:low] = 0 if sign > 0 else 1  # below the edge `low`
        guesses[high : cells.size - 1] = 1 if sign > 0 else 0
        guesses[-1] = nan_guess
        # A cell holds its lower edge, a rule guesses strictly above `high` and strictly below `low`.
        edges = np.concatenate([[-math.inf], cells.edges, [math.inf]])
        above = math.inf if high > len(cells.edges) else float(np.nextafter(edges[high], -math.inf))
        rule = Rule(cells.score, float(edges[low]), above, sign, cells.reading, nan_guess)
        return merit, rule, guesses

    @property
    def _level_of_fit(self) -> float:
        return self.level if not math.isnan(self.level) else 0.05

    def _critical(self, guesses: int, epsilon: float, delta: float) -> int:
        return wealth.critical_correct(guesses, self.draws, epsilon, delta, self._fraction, -math.log(self.level))


def _targets(claim: Claim) -> FloatArray:
    """Parameter values that bets are meant for: some below the budget, and the budget, which comes last."""
    budget = claim.value
    if claim.anchored:
        return np.array([share * budget for share in ANCHORED_TARGETS] + [budget])
    near = NEAR_BUDGET * budget
    lower = [value for value in LOWER_TARGETS if value < 0.75 * near]
    return np.unique([*lower, near, budget])


def _book(partitions: Sequence[Partition]) -> Book:
    """The training counts of partitions, padded to the largest, and no live draws yet."""
    sizes = np.array([partition.cells.size for partition in partitions])
    train = np.zeros((len(partitions), 2, int(sizes.max())))
    for row, partition in zip(train, partitions, strict=True):
        row[:, : partition.cells.size] = partition.counts
    return Book(train, np.zeros_like(train), sizes)
