"""The search for a bound: the upper end of an interval of rejected parameter values, and the budget's own watch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

MAX_PARAMETER = 1e6  # beyond which no bound is searched: no table of counts rejects so much


def bisected(
    is_low: Callable[[float], bool], low: float, high: float, relative: float, absolute: float = 0.0
) -> tuple[float, float]:
    """The two ends, this close to each other, of a step between what is low and what is not."""
    while high - low > relative * high + absolute:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high


def largest_rejected(
    rejected: Callable[[FloatArray], NDArray[np.bool_]],
    lowest: float,
    budget: float,
    points: int = 32,
    precision: float = 1e-7,
) -> float:
    """The upper end of an interval of rejected parameter values that starts at 0, rounded down to a relative precision.

    `rejected` takes increasing values and must be monotone: true up to some value, false above. The search cuts its
    interval into `points` parts at a time. The result is itself rejected (or `lowest`), and a value 1e-7 above the
    budget is always tried, so a bound above the budget is reported when that is rejected, and never when it is not.
    """
    low, above = max(lowest, 0.0), just_above(budget)
    high = max(2.0 * above, 2.0 * lowest, 1e-3)
    if lowest < above:
        at_lowest, at_budget = rejected(np.array([low, above])).tolist()
        if not at_lowest:
            return low
        low, high = (above, high) if at_budget else (low, above)
    elif not rejected(np.array([low]))[0]:
        return low
    if low >= above:  # else `high` is known not to be rejected
        while rejected(np.array([high]))[0]:
            low, high = high, 2.0 * high
            if high > MAX_PARAMETER:
                return low
    while high - low > precision * high + 1e-12:
        values = np.linspace(low, high, points + 1)
        last = int(np.count_nonzero(rejected(values[1:-1])))
        low, high = float(values[last]), float(values[last + 1])
    return low if low >= above else min(low, budget)


def just_above(budget: float) -> float:
    """The least parameter value whose rejection counts as a violation of the budget."""
    return budget * (1.0 + 1e-7) + 1e-12
