"""The fault that no privacy audit can see: a mechanism keeps its promise, and is less accurate than it says."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit_mechanisms.accuracy import with_budget


class SpendsAShare:
    """A mechanism that draws with a share of its budget, and states the error bounds of all of it.

    Private: what keeps a share of a budget keeps the budget.

    Parameters
    ----------
    mechanism : object
        With a budget (`dpaudit_mechanisms.accuracy.with_budget`).
    share : float
        In (0, 1).

    Examples
    --------
    >>> from dpaudit_mechanisms.laplace import Laplace
    >>> twin = SpendsAShare(Laplace(1.0), 0.5)
    >>> str(twin.utility_bounds()[1]), twin.drawn.scale, twin.fault
    ('sum of errors: E loss <= 1', 2.0, 'draws of Laplace spend 0.5 of the budget')
    """

    def __init__(self, mechanism: Any, share: float) -> None:
        self.mechanism, self.drawn, self.share = mechanism, with_budget(mechanism, share), share

    @property
    def fault(self) -> str:
        """What is wrong."""
        return f"draws of {type(self.mechanism).__name__} spend {self.share:g} of the budget"

    @property
    def claim(self) -> Any:
        """That of the mechanism."""
        return self.mechanism.claim

    def pairs(self) -> Any:
        """Those of the mechanism."""
        return self.mechanism.pairs()

    def utility_bounds(self) -> Any:
        """Those of the mechanism, with all of its budget."""
        return self.mechanism.utility_bounds()

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` outputs with a share of the budget."""
        return self.drawn.sample(data, size, rng)
