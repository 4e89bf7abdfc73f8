"""Numbers as text, the same in reports and in the messages of checks.

Conventions: lower bounds are rounded down, and never to the limit that they exceed; what is missing or NaN is an en
dash.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

MISSING = "–"


def number_text(value: Any, digits: int = 4) -> str:
    """A number to `digits` significant digits, counts in full with separators; an en dash for None and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return _plain(rounded(value, digits, ROUND_HALF_EVEN), trim=True)


def lower_text(value: float | None, digits: int = 4) -> str:
    """A lower bound, rounded down to `digits` significant digits."""
    if value is None or not math.isfinite(value):
        return number_text(value)
    return _plain(rounded(value, digits, ROUND_FLOOR))


def compared(lower: float | None, budget: float | None, digits: int = 4) -> tuple[str, str]:
    """A lower bound and its budget as text, with as many digits as it takes to see that the bound is above.

    Examples
    --------
    >>> compared(1.00004, 1.0)
    ('1.00004', '1')
    >>> compared(0.98765, 1.0)
    ('0.9876', '1')
    """
    if lower is None or budget is None or not math.isfinite(lower) or not math.isfinite(budget) or lower <= budget:
        return lower_text(lower, digits), number_text(budget, digits)
    while digits < 17 and rounded(lower, digits, ROUND_FLOOR) <= rounded(budget, digits, ROUND_HALF_EVEN):
        digits += 1
    return lower_text(lower, digits), number_text(budget, digits)


def rounded(value: float, digits: int, rounding: str) -> Decimal:
    """A number to `digits` significant digits."""
    form = repr(float(value))  # the decimal form that names the same double
    return Context(prec=digits, rounding=rounding).create_decimal(form)


def _plain(value: Decimal, trim: bool = False) -> str:
    if value == 0:
        return "0"
    value = value.normalize() if trim else value
    exponent = value.adjusted()
    if exponent < -4 or exponent > 8:
        return f"{value:e}"
    return f"{value:,f}"
