"""Conditioning by rejection: draw from a mechanism until the output is in the event (CD-S5).

The law is exactly that of the mechanism given the event; the number of draws is geometric with mean 1 / c, where c is
the event's probability on that input. So its running time tells c, and c tells something of the input: where somebody
can watch the clock, take a sampler of fixed time (`boxes.ConditionedLaplace` is one).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.errors import DpauditError, UsageError
from dpaudit_mechanisms.inputs import Checked, Count, FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class Rejected(Checked):
    """Section 3, case 1 of Liu et al. (2023), arXiv:2303.00228, by rejection.

    A mechanism with numeric outputs, given an event.

    Parameters
    ----------
    mechanism : object
        With `sample(data, size, rng)`, an array of shape (size, ...).
    event : callable
        From outputs to booleans, shape (size,).
    most : int, optional
        Draws of the mechanism for one output, on average over a batch, before a `DpauditError` is raised: an event of
        probability 0 would go on for ever. The number does not depend on the input, and no output is made up.

    Examples
    --------
    >>> from dpaudit_mechanisms.laplace import Laplace
    >>> positive = Rejected(Laplace(1.0), lambda outputs: outputs >= 0.0)
    >>> bool((positive.sample(0.5, 100, np.random.default_rng(1)) >= 0.0).all())
    True
    """

    mechanism: Any
    event: Callable[[Any], Any]
    most: Count = 100_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.event):
            raise UsageError(f"event must be a function of outputs, got {self.event!r}.")

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, ...)."""
        found: list[FloatArray] = []
        missing, drawn, batch = size, 0, max(2 * size, 64)
        while missing > 0:
            outputs = np.asarray(self.mechanism.sample(data, batch, rng))
            happened = np.asarray(self.event(outputs), dtype=bool)
            if happened.shape != outputs.shape[:1]:
                raise UsageError(f"event must answer for each of {len(outputs)} outputs, got shape {happened.shape}.")
            kept = outputs[happened]
            found.append(kept[:missing])
            drawn += batch
            missing -= len(found[-1])
            if missing > 0 and drawn > self.most * size:
                raise DpauditError(f"the event occurred in {size - missing} of {drawn:,} draws: too rare to reject to.")
            batch = min(2 * batch, 1_000_000)
        if not found:
            return np.asarray(self.mechanism.sample(data, 0, rng))
        return np.concatenate(found)
