"""Functions of a noisy number that are followed: roundings, logarithms, exponentials, a root.

All of them grow with the number, so that a comparison of what they give with a constant is one of the number.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

MAX_DIGITS = 15  # of a rounding, on either side of the point


@dataclasses.dataclass(frozen=True)
class Function:
    """A function that grows: its value, and the last number at which it is at most a given one.

    The same name is the same function. `step` is the distance of the values of a rounding, else 0: then it has an
    inverse. What is at `start` or below it is refused (a logarithm of 0). Between the `ends` doubles hold its values to
    their last digits.
    """

    name: str
    value: Callable[[float], float]
    last: Callable[[float], float]
    step: float = 0.0
    start: float = -math.inf
    ends: tuple[float, float] = (-math.inf, math.inf)


def rounding(digits: int) -> Function:
    """The rounding to so many digits.

    Examples
    --------
    >>> rounding(1).last(0.3), rounding(-5).last(300_000.0), FUNCTIONS["trunc"].last(-1.0)
    (0.35, 350000.0, -1.0)
    """
    steps, size = 10.0 ** max(digits, 0), 10.0 ** max(-digits, 0)  # of which one is 1: 1e-5 is no double

    def last(limit: float) -> float:
        count = round(limit / size * steps)
        return ((count if count * size / steps <= limit else count - 1) + 0.5) * size / steps

    return Function(f"round {digits}", lambda v: round(v, digits), last, size / steps)


FUNCTIONS = {
    "floor": Function("floor", math.floor, lambda limit: math.floor(limit) + 1.0, 1.0),
    "ceil": Function("ceil", math.ceil, lambda limit: float(math.floor(limit)), 1.0),
    "trunc": Function("trunc", math.trunc, lambda limit: float(math.floor(limit) + (limit >= 0.0)), 1.0),
    "exp": Function("exp", math.exp, lambda limit: math.log(limit) if limit > 0.0 else -math.inf, ends=(-708.0, 709.0)),
    "log": Function("log", math.log, math.exp, start=0.0),
    "log1p": Function("log1p", math.log1p, math.expm1, start=-1.0),
    "log2": Function("log2", math.log2, lambda limit: 2.0**limit, start=0.0),
    "log10": Function("log10", math.log10, lambda limit: 10.0**limit, start=0.0),
    "sqrt": Function("sqrt", math.sqrt, lambda limit: limit * limit if limit >= 0.0 else -math.inf, start=0.0),
}
