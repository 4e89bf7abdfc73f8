"""Renyi divergences of two laws on listed outcomes, between two fractions; and whether rho-zCDP is proved.

The divergence of order r > 1 of P from Q is log(sum p^r q^(1-r)) / (r - 1). With mass left, its lower bound adds all
that is left of Q to each q; there is no upper bound then. Source: van Erven and Harremoes (2014), arXiv:1206.2459
(monotone in the order, theorem 3); Bun and Steinke (2016), arXiv:1605.02065 (zCDP).
"""

from __future__ import annotations

from fractions import Fraction

from dpaudit.symbolic.divergences import PLACES, Known, exp_bounds, log_bounds, ratio_at

Bounds = tuple[Fraction, Fraction | None]  # None for infinity
MAX_ORDERS = 2_000


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
    low = high = Fraction(0)
    is_endless = p.left > 0 or q.left > 0
    is_infinite = False
    for outcome, mass in p.law.items():
        if mass == 0:
            continue
        other = q.law.get(outcome, Fraction(0)) + q.left
        if other == 0:
            is_infinite = True
            continue
        power = _power(mass / other, order, places)
        low, high = low + other * power[0], high + other * power[1]
    if is_infinite and q.left == 0:
        largest = Fraction(10) ** 9
        return largest, None
    if low <= 0:
        return Fraction(0), None
    lower = max(Fraction(0), log_bounds(low, places)[0] / (order - 1))
    upper = None if is_endless else max(Fraction(0), log_bounds(high, places)[1] / (order - 1))
    return lower, upper


def _power(base: Fraction, order: Fraction, places: int) -> tuple[Fraction, Fraction]:
    low, high = log_bounds(base, places)
    return exp_bounds(low * order, places)[0], exp_bounds(high * order, places)[1]


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
