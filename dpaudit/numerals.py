"""Numbers as text, the same in reports and in the messages of checks.

Conventions: lower bounds are rounded down, and never to the limit that they exceed; what is missing or NaN is an en
dash.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

MISSING = "–"
MAX_DECIMAL = 400  # digits of a numerator or denominator that is saved in decimal
ABOVE = "above "  # begins the text of a bound of which no more is proved than that it exceeds its limit
# Relative and absolute excess up to which a bound says no more: ten times that of a rejection without a bound of its
# own (`dpaudit.inference.bound_search.just_above`).
BARE_EXCESS = 1e-6, 1e-11
MIN_P_VALUE = 1e-307  # that is stated: a smaller one may be 0 as a double, and no p-value is 0


def no_zero(p_value: float) -> float:
    """The p-value, or a number above it where it is too small for a double: a p-value of 0 would be a proof.

    >>> no_zero(0.02), no_zero(0.0)
    (0.02, 1e-307)
    """
    return max(p_value, MIN_P_VALUE)


def p_text(p_value: float) -> str:
    """A p-value in words, of one digit.

    >>> p_text(0.0213), p_text(0.0)
    ('p = 0.02', 'p below 1e-307')
    """
    return f"p = {p_value:.1g}" if p_value > MIN_P_VALUE else f"p below {MIN_P_VALUE:g}"


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

    A bound that says no more than that the budget is exceeded is "above" it: see `at_least` and `no_less`.

    Examples
    --------
    >>> compared(1.00004, 1.0), compared(1.0000001, 1.0)
    (('1.00004', '1'), ('above 1', '1'))
    >>> compared(0.98765, 1.0)
    ('0.9876', '1')
    """
    if lower is None or budget is None or not math.isfinite(lower) or not math.isfinite(budget) or lower <= budget:
        return lower_text(lower, digits), number_text(budget, digits)
    if lower <= budget * (1.0 + BARE_EXCESS[0]) + BARE_EXCESS[1]:
        return ABOVE + _plain(rounded(budget, digits, ROUND_FLOOR), trim=True), number_text(budget, digits)
    while digits < 17 and rounded(lower, digits, ROUND_FLOOR) <= rounded(budget, digits, ROUND_HALF_EVEN):
        digits += 1
    return lower_text(lower, digits), number_text(budget, digits)


def at_least(lower: str) -> str:
    """A lower bound from `compared` in words.

    Examples
    --------
    >>> at_least("1.26"), at_least("above 1")
    ('at least 1.26', 'above 1')
    """
    return lower if lower.startswith(ABOVE) else f"at least {lower}"


def no_less(lower: str) -> str:
    """A lower bound from `compared` in signs.

    Examples
    --------
    >>> no_less("1.26"), no_less("above 1")
    ('≥ 1.26', '> 1')
    """
    return f"> {lower.removeprefix(ABOVE)}" if lower.startswith(ABOVE) else f"≥ {lower}"


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


def fraction_text(value: Fraction) -> str:
    """A fraction as it is saved and shown; in hexadecimal digits where it is long.

    Examples
    --------
    >>> fraction_text(Fraction(3, 4)), fraction_text(Fraction(2)), read_fraction("3/4")
    ('3/4', '2/1', Fraction(3, 4))
    """
    is_long = max(abs(value.numerator), value.denominator).bit_length() > MAX_DECIMAL * 10 // 3
    return f"{value.numerator:#x}/{value.denominator:#x}" if is_long else f"{value.numerator}/{value.denominator}"


def read_fraction(text: str) -> Fraction:
    """The fraction of a text; ValueError where it is none."""
    top, _, bottom = text.partition("/")
    try:
        return Fraction(int(top, 0), int(bottom, 0))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"a fraction was expected, got {text!r:.40}") from None
