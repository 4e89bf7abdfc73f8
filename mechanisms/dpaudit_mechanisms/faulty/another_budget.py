"""Mechanisms that draw with another budget than the one they promise: the twin that every mechanism has.

With less of it they are private, and less accurate than they say, which no audit of privacy can see. With more of it
they break their claim.
"""

from typing import Any

import numpy as np

from dpaudit_mechanisms.accuracy import with_budget


class SpendsAnotherBudget:
    """A mechanism that draws with `factor` times its budget, and states its claim and its error bounds all the same.

    Parameters
    ----------
    mechanism : object
        With a budget (`dpaudit_mechanisms.accuracy.with_budget`).
    factor : float
        In (0, inf). Below 1 the mechanism is private and inaccurate, above 1 it leaks.

    Examples
    --------
    >>> from dpaudit_mechanisms.laplace import Laplace
    >>> twin = SpendsAnotherBudget(Laplace(1.0), 0.5)
    >>> str(twin.utility_bounds()[1]), twin.drawn.scale, twin.fault
    ('sum of errors: E loss <= 1', 2.0, 'draws of Laplace spend 0.5 times the budget')
    """

    def __init__(self, mechanism: Any, factor: float) -> None:
        self.mechanism, self.drawn, self.factor = mechanism, with_budget(mechanism, factor), factor

    @property
    def fault(self) -> str:
        """Description of the fault."""
        return f"draws of {type(self.mechanism).__name__} spend {self.factor:g} times the budget"

    @property
    def claim(self) -> Any:
        """Claim of the mechanism."""
        return self.mechanism.claim

    def pairs(self) -> Any:
        """Pairs of the mechanism."""
        return self.mechanism.pairs()

    def utility_bounds(self) -> Any:
        """Bounds of the mechanism, for its own budget."""
        return self.mechanism.utility_bounds()

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` outputs with the other budget."""
        return self.drawn.sample(data, size, rng)
