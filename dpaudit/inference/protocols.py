"""Interface of a test of a claim: the face that the label game plays, whatever the evidence is made of.

One `Test` is one use of the error rate on one pair. The label game fits it on earlier draws, fixes its level, hands it
the counts of fresh draws, and lets it look. Several tests of a pair read one table, which the first of them fits and
counts. What a test must keep, and `tests/inference/test_one_face.py` holds every row
of `tests/implementations.py` to:

* **Predictable.** What is counted (`statistic`) and what is bet are fixed by `prepare` and `prepare_on_counts`, which
  the game calls before the draws that are counted on them, and never by these draws.
* **Level.** `start` fixes the error rate once, before the first counted draw. P(`lower` ever above the truth) is at
  most `level`.
* **One object.** `is_rejected` says that `lower`, as far as it was computed, is above the budget: late, never early.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.inference.guess_rules import GuessRule
from dpaudit.inference.independence import Score
from dpaudit.inference.learning_state import LearningState, Training
from dpaudit.inference.payoffs import Inequalities
from dpaudit.inference.tables import BinCounter, CellCounter, Predicted
from dpaudit.inference.tasks import Statistic
from dpaudit.inference.witness import describe, rule_record, sketch
from dpaudit.learning.mixture import Mixture
from dpaudit.privacy.claims import Claim
from dpaudit.results.model import Sketch


class Test(ABC):
    """One use of the error rate on one pair: see the module.

    Parameters
    ----------
    claim : Claim
        Whose value is finite.
    draws : int
        Labelled draws that may be counted.
    table_of : Test, optional
        Another test of the same draws, whose table this one reads: it fits and counts nothing itself.
    """

    __test__ = False  # pytest would take it for a test of its own
    fitted_share: ClassVar[float] = 1.0  # of earlier draws, that the predictor sees
    can_be_sure: ClassVar[bool] = False  # whether draws can show that more training is worth nothing
    is_sure = False  # whether its rule was often right, and never wrong, on its training draws
    rule: GuessRule  # of the witness

    def __init__(self, claim: Claim, draws: int, table_of: Test | None = None) -> None:
        self.claim, self.draws = claim, draws
        self.level = math.nan
        self._lower = 0.0  # the bound as far as it is known: it never falls
        self.table: LearningState = LearningState() if table_of is None else table_of.table
        self._own_table = table_of is None
        self._inequalities = Inequalities(claim)

    @classmethod
    def frozen(cls, claim: Claim, draws: int, mixture: Mixture, predicted: Predicted) -> Self:
        """The test of one round on a predictor that is known already."""
        test = cls(claim, draws)
        test.table.open(BinCounter(mixture, is_last=True), predicted)
        return test

    # --- before the draws that are counted ---

    @property
    @abstractmethod
    def merit(self) -> tuple[int, float]:
        """By which pairs are ranked after the pilot: how the test is likely to fare, by its training draws."""

    def prepare(self, training: Training, level: float) -> None:
        """Fix what the next draws are counted in, and how, from earlier ones; `level` is about what it will have."""
        del level
        if self._own_table:
            self.table.learn(training, self.fitted_share)

    def prepare_on_counts(self) -> None:
        """Fix the same from what was counted so far, where no more outputs are kept."""
        if self._own_table:
            self.table.learn_from_counts()

    def start(self, level: float) -> None:
        """Fix the level: the error rate that this use may spend."""
        self.level = level

    @property
    def has_started(self) -> bool:
        """Tell whether its level is known. Before, it has no p-value, and its power is none."""
        return not math.isnan(self.level)

    # --- the draws that are counted ---

    @property
    def statistic(self) -> Statistic:
        """Statistic that is counted on each side's draws."""
        return self.table.counter

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add the counts of `statistic` on new draws of x (label 1) and of x_prime (label 0)."""
        assert self._own_table  # Validity: what several tests read is counted once
        self.table.add(np.stack([counts_x_prime, counts_x]))

    @abstractmethod
    def update(self) -> None:
        """Look at the record. An exact test is looked at once, at the end."""

    # --- what the record supports ---

    @property
    def lower(self) -> float:
        """The lower confidence bound on the claim's parameter, at `level`; computed when it is asked for."""
        return self._lower

    @property
    def known_lower(self) -> float:
        """The same, as far as it is known without computing it."""
        return self._lower

    @property
    def is_rejected(self) -> bool:
        """Tell whether the budget is rejected, which is the verdict."""
        return self._lower > self.claim.value

    @property
    def log_wealth(self) -> float | None:
        """Log wealth against the budget; None for a test that does not bet."""
        return None

    @property
    def p_value(self) -> float | None:
        """Of an exact test against the budget; None for a test that bets."""
        return None

    def power(self, event_mass: float, probability: float) -> tuple[float, float]:
        """The smallest loss of randomised-response type found with this probability, and that at the budget.

        The witness is taken to know the two events, and to guess or bet on all of its draws as is best for it.
        """
        at_budget = self._inequalities.loss_at_budget(event_mass)
        return self._found_loss(event_mass, probability, at_budget) if self.has_started else math.inf, at_budget

    @abstractmethod
    def _found_loss(self, event_mass: float, probability: float, at_budget: float) -> float:
        """The first of the two, of a test that has started; inf for none."""

    # --- the witness ---

    @property
    @abstractmethod
    def line(self) -> dict[str, float]:
        """The inequality that the witness is against, at the budget."""

    @property
    @abstractmethod
    def counts(self) -> tuple[int, int, int]:
        """Correct and wrong guesses and abstentions of the witness, on draws it was not fitted on."""

    @property
    def score(self) -> Score | None:
        """Score of an output by its rule; None before its first fit."""
        counter: BinCounter | CellCounter | None = getattr(self.table, "counter", None)
        return None if counter is None else counter.mixture

    @property
    def thresholds(self) -> tuple[float, float]:
        """The probabilities of label 1 from which on the witness is said to guess that, and below which label 0."""
        return self.rule.thresholds

    def describe(self, x: str, x_prime: str) -> str:
        """The witness in words."""
        return describe(self.table.counter.mixture, self.table.shown, *self.thresholds, x, x_prime)

    def sketch(self) -> Sketch | None:
        """Earlier draws along the view of the witness, for a picture; None where there is none."""
        return sketch(self.table.counter.mixture, self.table.shown, *self.rule.thresholds)

    def rule_record(self) -> dict[str, Any]:
        """The witness as data."""
        predicted = self.table.rounds[-1].predicted.by_bins()
        rule = dataclasses.asdict(self.rule.apart(predicted.mass))
        return rule_record(self.table.counter.mixture, predicted, rule=rule)
