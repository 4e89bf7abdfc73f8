"""Renyi divergences of two laws on listed outcomes, between two fractions; and whether rho-zCDP is proved.

The divergence of order r > 1 of P from Q is log(sum p^r q^(1-r)) / (r - 1). With mass left, its lower bound adds all
that is left of Q to each q; there is no upper bound then. Source: van Erven and Harremoes (2014), arXiv:1206.2459
(monotone in the order, theorem 3); Bun and Steinke (2016), arXiv:1605.02065 (zCDP).
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpaudit.symbolic.divergences import PLACES, Known, exp_bounds, log_bounds, ratio_at

Bounds = tuple[Fraction, Fraction | None]  # None for infinity
MAX_ORDERS = 2_000
MIN_EXPONENT = Fraction(-10_000)  # of a share of a sum, below which it is only bounded: e^-10000 has 4,343 digits


def renyi_bounds(p: Known, q: Known, order: Fraction, places: int = PLACES) -> Bounds:
    """Lower and upper bound of the Renyi divergence of p from q, in nats.

    Examples
    --------
    >>> p = Known({"a": Fraction(3, 4), "b": Fraction(1, 4)}, Fraction(0))
    >>> q = Known({"a": Fraction(1, 4), "b": Fraction(3, 4)}, Fraction(0))
    >>> low, high = renyi_bounds(p, q, Fraction(2))
    >>> round(float(low), 12) == round(float(high), 12) == 0.847297860387  # log(7/3)
    True
    """
    places += len(str(math.floor(order)))  # which multiplies the errors of logarithms
    is_endless = p.left > 0 or q.left > 0
    is_infinite = False
    terms: list[tuple[Fraction, Fraction, Fraction]] = []  # q, and the logarithm of (p / q)^r between two fractions
    for outcome, mass in p.law.items():
        if mass == 0:
            continue
        other = q.law.get(outcome, Fraction(0)) + q.left
        if other == 0:
            is_infinite = True
            continue
        ends = log_bounds(mass / other, places)
        terms.append((other, order * ends[0], order * ends[1]))
    if is_infinite and q.left == 0:
        largest = Fraction(10) ** 9
        return largest, None
    if not terms:
        return Fraction(0), None
    top = max(low for _, low, _ in terms)
    low = sum((other * _exp_bounds(first - top, places)[0] for other, first, _ in terms), Fraction(0))
    high = sum((other * _exp_bounds(last - top, places)[1] for other, _, last in terms), Fraction(0))
    lower = max(Fraction(0), (top + log_bounds(low, places)[0]) / (order - 1))
    upper = None if is_endless else max(Fraction(0), (top + log_bounds(high, places)[1]) / (order - 1))
    return lower, upper


def _exp_bounds(exponent: Fraction, places: int) -> tuple[Fraction, Fraction]:
    """The same as `exp_bounds`; of a power that has too many digits, 0 and a larger power."""
    is_small = exponent < MIN_EXPONENT
    return (Fraction(0), exp_bounds(MIN_EXPONENT, places)[1]) if is_small else exp_bounds(exponent, places)


def zcdp_verdict(p: Known, q: Known, rho: Fraction, orders: tuple[float, ...]) -> bool | None:
    """Tell whether rho-zCDP is broken in one direction (True), proved to hold (False), or neither.

    Broken where the divergence of one of the orders is above rho times it. Proved by finitely many orders: D_r grows
    with r, so D_s <= rho r for two orders r < s covers all between them; D_s <= rho those up to s; and the largest loss
    covers all from (largest loss) / rho on.
    """
    for order in orders:
        lower, upper = renyi_bounds(p, q, Fraction(order))
        if lower > rho * Fraction(order):
            return True
    t = ratio_at(p, q, Fraction(0), upper=True)
    if t is None or p.left > 0 or q.left > 0:
        return None
    largest = max(Fraction(0), log_bounds(t)[1]) if t > 0 else Fraction(0)
    if largest == 0:
        return False
    if rho == 0:
        return True  # the laws differ
    if largest <= rho:
        return False
    last, covered = largest / rho, Fraction(1)
    step = Fraction(1)
    for _ in range(MAX_ORDERS):
        if covered >= last:
            return False
        upper = renyi_bounds(p, q, covered + step)[1]
        if upper is not None and upper <= rho * covered:
            covered, step = covered + step, 2 * step
            continue
        if step < Fraction(1, 10**6):
            return None
        step /= 4
    return None
