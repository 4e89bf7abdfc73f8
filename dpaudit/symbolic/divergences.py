"""Exact losses of two laws on listed outcomes, with mass that is not known bounded in both directions.

p and q are what is known of two laws: masses of outcomes, as fractions. `left_p` and `left_q` are what is missing to 1;
it may lie anywhere. With t = e^epsilon:

* The hockey-stick divergence is at most sum max(p - t q, 0) + left_p: more q only lowers it.
* It is at least sum max(p - t q, 0) - t left_q, and at least 0: of the event {p > t q}, P is at least the known p, and
  Q at most the known q plus all that is left.

Both are decreasing in t, convex and piecewise linear, with rational corners. So the t at which a bound meets a delta is
a fraction, and the least epsilon at that delta its logarithm. Logarithms and powers are computed by `decimal`, whose
`ln` and `exp` are correctly rounded, and rounded outwards.
"""

from __future__ import annotations

import dataclasses
import decimal
import functools
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

PLACES = 50  # digits of a first try
MAX_PLACES = 1_600

Law = Mapping[str, Fraction]


@dataclasses.dataclass(frozen=True)
class Known:
    """Known part of the law on one input: masses of outcomes, and the mass that is left."""

    law: Law
    left: Fraction

    @classmethod
    def of(cls, law: Law) -> Known:
        """A law, with what its known probabilities leave of 1."""
        return cls(law, 1 - sum(law.values(), Fraction(0)))


def ratio_at(p: Known, q: Known, delta: Fraction, *, upper: bool) -> Fraction | None:
    """The t at which a bound of the hockey-stick divergence of p from q meets delta; None for infinity.

    The least t >= 0 for which the upper bound is at most delta (`upper`), or the supremum of those for which the lower
    bound is above it, 0 if there is none.

    Examples
    --------
    >>> p = Known({"a": Fraction(3, 4), "b": Fraction(1, 4)}, Fraction(0))
    >>> q = Known({"a": Fraction(1, 4), "b": Fraction(3, 4)}, Fraction(0))
    >>> ratio_at(p, q, Fraction(0), upper=True), ratio_at(p, q, Fraction(1, 4), upper=True)
    (Fraction(3, 1), Fraction(2, 1))
    """
    # The bound at t is (sum of p - t q over the outcomes with p > t q) + gain - t * loss.
    gain, loss = (p.left, Fraction(0)) if upper else (Fraction(0), q.left)
    masses = [(mass, q.law.get(outcome, Fraction(0))) for outcome, mass in p.law.items() if mass > 0]
    endless = sum((mass for mass, other in masses if other == 0), Fraction(0))
    rest = sorted(((mass / other, mass, other) for mass, other in masses if other > 0), reverse=True)
    # From large t to small t: with the first k outcomes the bound less delta is a - t b, above 0 for t < a / b.
    a, b = endless + gain - delta, loss
    if a > 0 and b == 0:
        return None
    best = a / b if b > 0 and a > 0 else Fraction(0)
    for ratio, mass, other in rest:
        if best >= ratio:
            return best
        a, b = a + mass, b + other
        # Between this ratio and the next lower one the sum has these outcomes; the line is above delta below a / b.
        best = max(best, min(a / b, ratio) if a > 0 else Fraction(0))
    return best


def divergence_bounds(p: Known, q: Known, t: Fraction) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of the hockey-stick divergence of p from q, at t = e^epsilon."""
    gaps = (mass - t * q.law.get(outcome, Fraction(0)) for outcome, mass in p.law.items())
    known = sum((gap for gap in gaps if gap > 0), Fraction(0))
    return max(Fraction(0), known - t * q.left), min(Fraction(1), known + p.left)


def is_above(p: Known, q: Known, epsilon: Fraction, delta: Fraction) -> bool | None:
    """Tell whether the hockey-stick divergence of p from q at epsilon is above delta; None where what is left decides.

    Proved either way: the divergence falls in epsilon, so that it is above delta up to the one at which it is delta.
    """
    if _exceeds(ratio_at(p, q, delta, upper=False), epsilon):
        return True
    return False if _exceeds(ratio_at(p, q, delta, upper=True), epsilon) is False else None


def _exceeds(t: Fraction | None, epsilon: Fraction) -> bool | None:
    """Tell whether t, None for infinity, is above e^epsilon; None where many digits do not tell."""
    if t is None or t <= 0:
        return t is None
    places = PLACES
    while places <= MAX_PLACES:
        low, high = log_bounds(t, places)
        if low > epsilon or high <= epsilon:
            return low > epsilon
        places *= 2
    return None


def best_event(p: Known, q: Known, t: Fraction | None) -> tuple[str, ...]:
    """The outcomes whose p is above t times their q: the event that the divergence at t is attained on.

    t None stands for infinity: the outcomes that q has not. Where none is above, those that are equal.
    """
    if t is None:
        return tuple(outcome for outcome in p.law if not q.law.get(outcome))
    above = tuple(outcome for outcome, mass in p.law.items() if mass > t * q.law.get(outcome, Fraction(0)))
    return above or tuple(
        outcome for outcome, mass in p.law.items() if mass > 0 and mass == t * q.law.get(outcome, Fraction(0))
    )


def mass_of(known: Known, event: Iterable[str]) -> Fraction:
    """The known mass of an event."""
    return sum((known.law.get(outcome, Fraction(0)) for outcome in event), Fraction(0))


# Logarithms and powers, rounded outwards


def exp_bounds(exponent: Fraction, places: int = PLACES) -> tuple[Fraction, Fraction]:
    """Two fractions with e^exponent between them, about 10^-places of it apart; equal for exponent 0.

    Examples
    --------
    >>> low, high = exp_bounds(Fraction(1))
    >>> float(low) == float(high) == math.e
    True
    """
    if exponent == 0:
        return Fraction(1), Fraction(1)
    low, high = decimals(exponent, places)
    nearest = context(places)
    return Fraction(low.exp(nearest).next_minus(nearest)), Fraction(high.exp(nearest).next_plus(nearest))


def log_bounds(value: Fraction, places: int = PLACES) -> tuple[Fraction, Fraction]:
    """Two fractions with the logarithm of a positive fraction between them; equal for 1.

    Examples
    --------
    >>> low, high = log_bounds(1 + Fraction(1, 10**80), places=50)  # as near to 1 as no decimal of so many places is
    >>> low == 0 < high < Fraction(1, 10**50)
    True
    """
    nearest = context(places)
    low, high = (end.ln(nearest) for end in decimals(value, places))
    # The logarithm of 1 is exact, and what is next to 0 has a denominator of 10^18 digits.
    return Fraction(low and low.next_minus(nearest)), Fraction(high and high.next_plus(nearest))


def epsilon_floats(t: Fraction | None) -> tuple[float, float]:
    """max(0, log t) as two doubles, one not above it and one not below; inf for None.

    Examples
    --------
    >>> epsilon_floats(Fraction(1)), epsilon_floats(None)
    ((0.0, 0.0), (inf, inf))
    """
    if t is None:
        return math.inf, math.inf
    if t <= 1:
        return 0.0, 0.0
    low, high = log_bounds(t)
    return max(0.0, float_below(low)), float_above(high)


def float_below(value: Fraction) -> float:
    """The largest double not above a fraction."""
    try:
        found = float(value)
    except OverflowError:
        found = math.inf if value > 0 else -math.inf
    if math.isinf(found):
        return math.nextafter(math.inf, 0.0) if found > 0 else found
    return found if Fraction(found) <= value else math.nextafter(found, -math.inf)


def float_above(value: Fraction) -> float:
    """The least double not below a fraction."""
    return -float_below(-value) + 0.0


@functools.lru_cache(maxsize=64)
def context(places: int, rounding: str = decimal.ROUND_HALF_EVEN) -> decimal.Context:
    """A context for numbers of so many digits, and of any size."""
    return decimal.Context(prec=places, rounding=rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[])


def decimals(value: Fraction, places: int) -> tuple[decimal.Decimal, decimal.Decimal]:
    """Two decimals with a fraction between them."""
    # Both integers are exact; only the quotient is rounded.
    numbers = decimal.Decimal(value.numerator), decimal.Decimal(value.denominator)
    down, up = (context(places + 5, rounding) for rounding in (decimal.ROUND_FLOOR, decimal.ROUND_CEILING))
    return down.divide(*numbers), up.divide(*numbers)
