"""A campaign: one procedure whose results have an error rate. Its one round is the order on which validity rests.

    fit -> freeze -> draw -> absorb -> look, and then the next fit

An audit of pairs, an all-pairs table, a session, the stage of a violated pair and a replay are campaigns. They differ
in what they freeze and how they look, not in the order.

Validity
--------
* **Frozen.** `_freeze` fixes what the next draws are counted in, how many there are and what their labels are, from
  earlier rounds and coins alone. It is cut into tasks before the first draw, so nothing can change it later.
* **Fresh.** The draws of a round are made after that, by nobody else, and are counted once.
* **Closed.** Until the round is absorbed and looked at, no fit can see its outcomes (`Draws.joined` refuses).
* **Levels.** `start` fixes every error rate, before the first round. Draws before it (pilots) are never
  absorbed: they go to fits alone.
* **Labels.** `toss` is how draws are labelled: N of m are of x, N ~ binomial(m, 1/2). With a fixed, equal number on
  both sides the correct guesses would be a sum of two binomials, and the binomial test would not be exact.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.campaign.draws import Counts, Draws, RoundPlan


@dataclasses.dataclass(frozen=True)
class Progress:
    """State of an audit: labelled draws a pair of the planned ones, runs so far, pairs decided, best ratio.

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
    open_pairs: int


class Campaign(ABC):
    """Rounds of draws in the order that validity needs; see the module."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws

    @property
    def runs(self) -> int:
        """Draws so far, with those that are not counted."""
        return self.draws.runs

    @abstractmethod
    def start(self) -> None:
        """Draw what is only fitted on, and fix all levels."""

    @final
    def round(self) -> bool:
        """Play one round; False when nothing is left to do."""
        plan = self._freeze()
        if plan is None:
            return False
        fresh = self.draws.take(plan)
        try:
            self._absorb(fresh.counts)
            self._look()
        finally:
            self.draws.release(fresh)
        self._fit()
        return True

    @abstractmethod
    def _freeze(self) -> RoundPlan | None:
        """The next round, from what is known before it; None for none."""

    @abstractmethod
    def _absorb(self, counts: Counts) -> None:
        """Add the counts of the round that was frozen last to the tests."""

    @abstractmethod
    def _look(self) -> None:
        """Look at the tests, where they may be looked at."""

    def _fit(self) -> None:  # noqa: B027 (many are fitted once, before they start)
        """Fit what the next rounds are counted in, on all that was released."""


def shares_by_rank(merits: ArrayLike) -> NDArray[np.float64]:
    """Shares of a whole: half of it evenly, half in proportion to 1 / rank by merit; shape (pairs,), sum 1.

    The largest merit has rank 1, of equals the first. A merit is a number, or several in order: shape (pairs, numbers).

    Examples
    --------
    >>> shares_by_rank([0.0, 5.0]).round(4).tolist()
    [0.4167, 0.5833]
    """
    by_column = np.atleast_2d(np.asarray(merits, dtype=float).T)  # the first column decides, then the next one
    pairs = by_column.shape[1]
    rank = np.empty(pairs)
    rank[np.lexsort(-by_column[::-1])] = np.arange(1, pairs + 1)
    shares = 0.5 / pairs + 0.5 * (1.0 / rank) / np.sum(1.0 / rank)
    return np.asarray(shares / shares.sum())
