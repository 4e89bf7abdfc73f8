"""The witness of a sequential game: the rule that shows best what its bets have won by.

A witness is an example, and no evidence: no bound or verdict looks at it, and a replay tests it on fresh draws.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.hints import Hints
from dpaudit.learning.objectives import DEVIATIONS, Objective
from dpaudit.learning.pilots import pilot_of
from dpaudit.learning.rules import ABSTAIN, Rule
from dpaudit.learning.thresholds import best_thresholds
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes
from dpaudit.testing.epochs import Epoch

ROUNDING = 1e-9  # relative, of a limit that is computed in another way than what it limits
LONG_EPOCH = 0.25  # of the draws of the longest one, from which on an epoch is asked for the witness of no violation
ALIKE = 0.25  # standard deviations, within which one rule is about as strong as another
MOST_ALIKE = 32  # of them, whose words are counted
LUCK = 2.0  # standard deviations by which the strongest of the rules of all epochs is so by luck, about


@dataclasses.dataclass(frozen=True)
class Witness:
    """A rule with its correct and wrong guesses and abstentions on live draws, and the line it bets against."""

    rule: Rule
    counts: tuple[int, int, int]
    anchor: float


def _plainest(found: Sequence[tuple[float, Witness]]) -> Witness:
    """Of witnesses with their strengths, the strongest first, one that is about as strong and is said in few words."""
    alike = [witness for strength, witness in found if strength >= found[0][0] - ALIKE][:MOST_ALIKE]
    return min(alike, key=lambda witness: len(witness.rule.describe("x", "x'")))


@dataclasses.dataclass(frozen=True)
class WitnessSearch:
    """Looks for the witness of one game.

    Attributes
    ----------
    line_at : callable
        The anchor of a line to its epsilon and delta, at the budget.
    draws : int
        Labelled draws that rules are fitted for.
    level : float
        The error rate of the test that they are fitted for.
    """

    line_at: Callable[[float], dict[str, float]]
    draws: int
    level: float

    def strongest(self, epochs: Sequence[Epoch], is_rejected: bool) -> Witness:
        """Of the epochs' rules (chosen on training draws) the one with the strongest record on live draws.

        Where the budget stands only long epochs are asked: of very many short records the strongest is mere luck, and
        reads as if it were something.
        """
        if not is_rejected:
            counted = [float(epoch.book.live[..., 0].sum()) for epoch in epochs]
            epochs = [epoch for epoch, draws in zip(epochs, counted, strict=True) if draws >= LONG_EPOCH * max(counted)]
        asked = [(epoch, int(k)) for epoch in epochs for k in epoch.of_each_cells]
        assert asked, "fit comes before the witness"
        limits = self.most_strengths(asked)
        found: list[tuple[float, int, Witness]] = []
        most = -math.inf
        for place in np.argsort(-limits, kind="stable").tolist():
            if found and limits[place] < most - (ALIKE if is_rejected else 0.0):
                break
            strength, witness = self.of_partition(*asked[place])
            found.append((strength, place, witness))
            most = max(most, strength)
        found.sort(key=lambda one: one[:2], reverse=True)
        return _plainest([(strength, witness) for strength, _, witness in found]) if is_rejected else found[0][2]

    def learned(self, known: Witness, first: Outcomes, second: Outcomes, hints: Hints) -> Witness:
        """The witness among `known` and all that outputs of x and of x_prime show, counted or not.

        An epoch is short, and so are the records of its rules: of very many the strongest one is so by luck, and what
        the bets have won by is often another event. Rules of every kind are compared by their records on draws held
        back (`dpaudit.learning.cross_validation`), each kind by the middle one of its three, and `known`, a rule of an
        epoch, by what luck leaves of it. Of those that are about as strong as the strongest the witness is the one that
        is said in the fewest words: a person reads it.
        """
        line = self.line_at(known.anchor)
        pilot = pilot_of(first, second, hints)
        ways = {
            deviations: Objective(line["epsilon"], line["delta"], self.draws, self.level, False, deviations)
            for deviations in DEVIATIONS
        }
        scale = math.exp(-line["epsilon"])
        found = [(self.strength_of(known) - LUCK, known)]
        for shown in pilot.cross_validated(ways).values():
            right, wrong = round(shown.correct * shown.draws), round(shown.wrong * shown.draws)
            cost = scale * line["delta"] * max(shown.sides, 1) / 2.0 * shown.draws
            strength = float(_strength(float(right), float(wrong), scale, cost))
            if not shown.folds or strength <= found[0][0]:
                continue
            # The record is that of the rule that is said, on the third of the draws that it was not fitted on.
            each = [
                Witness(rule, (right, wrong, draws - right - wrong), known.anchor)
                for rule, right, wrong, draws in shown.folds
            ]
            # The middle one: the best of them would be so by luck, and one may have been fitted on too few.
            found.append((strength, sorted(each, key=self.strength_of)[len(each) // 2]))
        return _plainest(sorted(found, key=lambda one: one[0], reverse=True))

    def strength_of(self, witness: Witness) -> float:
        """The excess of its record over what its line allows, in standard deviations."""
        line, (correct, wrong, _) = self.line_at(witness.anchor), witness.counts
        scale = math.exp(-line["epsilon"])  # everything over e^epsilon, which may overflow
        cost = scale * line["delta"] * max(witness.rule.sides, 1) / 2.0 * sum(witness.counts)
        return float(_strength(float(correct), float(wrong), scale, cost))

    def of_partition(self, epoch: Epoch, k: int) -> tuple[float, Witness]:
        """The rule of one partition, and how strong its record on live draws is."""
        _, rule, guesses = self.rule_of(epoch, k)
        label0, label1 = (epoch.book.live[label, : epoch.cells[k].size, k] for label in (0, 1))
        correct = int(label1[guesses == 1].sum() + label0[guesses == 0].sum())
        wrong = int(label0[guesses == 1].sum() + label1[guesses == 0].sum())
        abstained = int(epoch.book.live[..., k].sum()) - correct - wrong
        witness = Witness(rule, (correct, wrong, abstained), epoch.anchor)
        return self.strength_of(witness), witness

    def most_strengths(self, asked: Sequence[tuple[Epoch, int]]) -> FloatArray:
        """What the strength of a record of each partition is at most, whatever the cuts of its rule and its guesses.

        It costs far less than to look for the rule. What guesses cost where the line has a delta is left out.
        """
        limits = np.empty(len(asked))
        sizes = np.array([epoch.cells[k].size for epoch, k in asked])
        anchors, of_each = np.unique([epoch.anchor for epoch, _ in asked], return_inverse=True)
        scales = np.exp([-self.line_at(anchor)["epsilon"] for anchor in anchors.tolist()])[of_each]
        for size in np.unique(sizes).tolist():
            places = np.flatnonzero(sizes == size)
            alike = [asked[place] for place in places.tolist()]
            counts = np.stack([epoch.book.live[:, :size, k] for epoch, k in alike], axis=1)
            limits[places] = most_over_cuts(counts, scales[places])
        return limits * (1.0 + ROUNDING)

    def rule_of(self, epoch: Epoch, k: int) -> tuple[tuple[int, float], Rule, NDArray[np.int8]]:
        """Merit, thresholds and guesses (one a cell) of the rule that one partition's training counts suggest."""
        cells, line = epoch.cells[k], self.line_at(epoch.anchor)
        objective = Objective(line["epsilon"], line["delta"], self.draws, self.level, True)
        train = epoch.book.train[:, : cells.size, k]
        merit, low, high, sign, nan_guess = best_thresholds(train[1], train[0], objective)
        guesses = np.full(cells.size, ABSTAIN, dtype=np.int8)
        guesses[:low] = 0 if sign > 0 else 1  # below the edge `low`
        guesses[high : cells.size - 1] = 1 if sign > 0 else 0
        guesses[-1] = nan_guess
        # A cell holds its lower edge, a rule guesses strictly above `high` and strictly below `low`.
        edges = np.concatenate([[-math.inf], cells.edges, [math.inf]])
        above = math.inf if high > len(cells.edges) else math.nextafter(float(edges[high]), -math.inf)
        rule = Rule(cells.score, float(edges[low]), above, sign, cells.reading, nan_guess)
        return merit, rule, guesses


def _strength(
    correct: FloatArray | float, wrong: FloatArray | float, scale: FloatArray | float, cost: float = 0.0
) -> FloatArray:
    """The excess of a record over what the line allows, in its standard deviations; all over e^epsilon, as `scale`."""
    variance = np.asarray(scale**2 * (correct + 1.0) + wrong)
    return np.asarray((scale * correct - wrong - cost) / np.sqrt(np.where(variance > 0.0, variance, 1.0)))


@functools.lru_cache(maxsize=64)
def _cuts(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of two cuts in order, of so many."""
    low, high = np.triu_indices(size)
    return low, high


def most_over_cuts(counts: FloatArray, scale: FloatArray) -> FloatArray:
    """The strength of the strongest record over all rules of two cuts, shape (partitions,).

    Parameters
    ----------
    counts : ndarray of float, shape (2, partitions, cells)
        The last cell is NaN's.
    scale : ndarray of float, shape (partitions,)
    """
    below = np.zeros(counts.shape)  # before each cut
    np.cumsum(counts[..., :-1], axis=-1, out=below[..., 1:])
    above = below[..., -1:] - below
    low, high = _cuts(counts.shape[-1])
    of_nan = counts[..., -1:]
    most = np.zeros(counts.shape[1])
    for label in (1, 0):  # that is guessed above the second cut
        correct, wrong = (above[guess][:, high] + below[1 - guess][:, low] for guess in (label, 1 - label))
        most = np.maximum(most, _strength(correct, wrong, scale[:, None]).max(axis=1))
        if np.any(of_nan):
            for guess in (0, 1):
                record = correct + of_nan[guess], wrong + of_nan[1 - guess]
                most = np.maximum(most, _strength(*record, scale[:, None]).max(axis=1))
    return most
