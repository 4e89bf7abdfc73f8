"""Interface of a test of a claim: the face that the label game plays, whatever the evidence is made of.

One `Test` is one use of the error rate on one pair. The label game fits it on earlier draws, fixes its level, hands it
the counts of fresh draws, and lets it look. What it must keep, and `tests/inference/test_one_face.py` holds every row
of `tests/implementations.py` to:

* **Predictable.** What is counted (`statistic`) and what is bet are fixed by `prepare` and `prepare_on_counts`, which
  the game calls before the draws that are counted on them, and never by these draws.
* **Level.** `start` fixes the error rate once, before the first counted draw. P(`lower` ever above the truth) is at
  most `level`.
* **One object.** `is_rejected` *is* `lower` above the budget, once that was asked for: before, it may be too mild.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.density import NO_HINTS, Hints, LogRatio
from dpaudit.features.outcomes import Outcomes
from dpaudit.inference.tasks import Statistic
from dpaudit.privacy.claims import Claim
from dpaudit.results.model import Sketch


@dataclasses.dataclass(frozen=True)
class Training:
    """Earlier draws of a pair, which a test may be fitted on."""

    first: Outcomes  # of x
    second: Outcomes  # of x_prime
    hints: Hints = NO_HINTS  # what is known of the pair beside them
    may_try: bool = False  # whether a trial may follow, on draws that are not counted


class Test(ABC):
    """One use of the error rate on one pair: see the module. Its claim's value is finite; `draws` may be counted."""

    __test__ = False  # pytest would take it for a test of its own
    can_be_sure: ClassVar[bool] = False  # whether draws can show that more training is worth nothing
    trial: Statistic | None = None  # what more draws before the test may be counted in
    is_sure = False  # whether its rule was often right, and never wrong, on its training draws

    def __init__(self, claim: Claim, draws: int) -> None:
        self.claim, self.draws = claim, draws
        self.level = math.nan
        self._lower = 0.0  # the bound as far as it is known: it never falls

    # --- before the draws that are counted ---

    @property
    @abstractmethod
    def merit(self) -> tuple[int, float]:
        """By which pairs are ranked after the pilot: how the test is likely to fare, by its training draws."""

    @abstractmethod
    def prepare(self, training: Training, level: float) -> None:
        """Fix what the next draws are counted in, and how, from earlier ones; `level` is about what it will have."""

    def prepare_on_counts(self) -> None:  # noqa: B027 (what most tests do)
        """The same from what was counted so far, where no more outputs are kept. Most tests have nothing to gain."""

    def try_out(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Take the counts of `trial` on draws that the test does not count."""
        raise NotImplementedError

    @abstractmethod
    def start(self, level: float) -> None:
        """Fix the level: the error rate that this use may spend."""

    @property
    def has_started(self) -> bool:
        """Tell whether its level is known. Before, it has no p-value, and its power is none."""
        return not math.isnan(self.level)

    # --- the draws that are counted ---

    @property
    @abstractmethod
    def statistic(self) -> Statistic:
        """Statistic that is counted on each side's draws."""

    @abstractmethod
    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add the counts of `statistic` on new draws of x (label 1) and of x_prime (label 0)."""

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
    @abstractmethod
    def log_wealth(self) -> float | None:
        """Log wealth against the budget; None for a test that does not bet."""

    @property
    @abstractmethod
    def p_value(self) -> float | None:
        """Of an exact test against the budget; None for a test that bets."""

    @abstractmethod
    def power(self, event_mass: float, probability: float) -> tuple[float, float]:
        """The smallest loss found with this probability, and that at the budget: see `Betting.power`."""

    # --- the witness ---

    @property
    @abstractmethod
    def line(self) -> dict[str, float]:
        """The inequality that the witness is against, at the budget."""

    @property
    @abstractmethod
    def counts(self) -> tuple[int, int, int]:
        """Correct and wrong guesses and abstentions of the witness, on draws it was not fitted on."""

    @abstractmethod
    def describe(self, x: str, x_prime: str) -> str:
        """The witness in words."""

    def sketch(self) -> Sketch | None:
        """Earlier draws along the view of the witness, for a picture; None where there is none."""
        return None

    @abstractmethod
    def rule_record(self) -> dict[str, Any]:
        """The witness as data."""

    # --- evidence that goes on in a later run, of a test that bets ---

    def saved(self, origin: str) -> dict[str, Any]:
        """The state as JSON values; `origin` names the streams of the draws that are counted now."""
        raise NotImplementedError

    def restore(self, state: dict[str, Any], origin: str, density: LogRatio | None = None) -> None:
        """Go on from what `saved` gave, in the session of these streams; ValueError where it is damaged."""
        raise NotImplementedError
