"""The search for a bound: the upper end of an interval of rejected parameter values, and the budget's own watch.

Sequential bounds. Parameter values are tested from below, on a grid that the budget alone fixes; claims are nested, so
the true value's claim implies that of the first grid value at or above it, which is rejected with probability at most
`level`. Between two grid values the bets are those that are made for the upper one. With these the wealth falls in the
parameter, so that the wealth of the upper value is at most that of any value between: each truth is still tested by one
e-process.

The verdict is the bound: the budget is a grid value, and is rejected where all below it are and it is itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

GRID_RATIO, MIN_GRID_VALUE = 1.1, 1e-3  # of neighbouring values of the grid above a budget; its first above 0
PRECISION = 1e-3  # of the bound between two grid values, relative to the upper one
MAX_PARAMETER = 1e6  # beyond which no bound is searched: no table of counts rejects so much


def bisected(
    is_low: Callable[[float], bool], low: float, high: float, relative: float = 1e-9, absolute: float = 0.0
) -> tuple[float, float]:
    """The two ends, this close to each other, of a step between what is low and what is not."""
    while high - low > relative * high + absolute:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high


def bet_grid(budget: float, below: Sequence[float]) -> list[float]:
    """The grid that a budget fixes: shares of it, the least value that is a violation, and values above it."""
    values = [share * budget for share in below] if budget > 0.0 else []
    values.append(just_above(budget))
    value = max(budget, MIN_GRID_VALUE / GRID_RATIO)
    while value < MAX_PARAMETER:
        value *= GRID_RATIO
        values.append(value)
    return values


def bet_bound(
    rejects: Callable[[float, float], bool], grid: Sequence[float], budget: float, known: float = 0.0
) -> float:
    """The largest value that is rejected together with all smaller ones; 0 if none.

    `rejects` takes the value that bets are made for, and one that they are paid against, at most as large. `known` is a
    bound from before.
    """
    rejected = 0.0
    for value in grid:
        if not rejects(value, value):
            low = known if rejected < known < value else rejected
            # Of the upper end of the interval a precision would go on for ever where nothing is rejected.
            low, _ = bisected(functools.partial(rejects, value), low, value, 0.0, PRECISION * value)
            return low if low >= just_above(budget) else min(low, budget)
        rejected = value
    return rejected


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
