"""Renyi divergences of a number with additive noise, from the same number shifted.

`shift` is finite and `scale` (of the Laplace law, or the standard deviation) in [0, inf), both in the units of the
output: 0 is no noise. The laws are symmetric, so a divergence is that of both directions; in nats, in [0, inf], of an
order in [1, inf]; exact up to rounding.

Source: Mironov (2017), arXiv:1702.07476, propositions 6 and 7.
"""

from __future__ import annotations

import math

import scipy

from dpaudit.privacy.claims import number


def laplace_renyi_divergence(shift: float, scale: float, renyi_order: float) -> float:
    """Renyi divergence of Laplace noise.

    With s = |shift| / scale and an order r > 1 it is
    log(r / (2r - 1) e^((r-1) s) + (r - 1) / (2r - 1) e^(-r s)) / (r - 1); s + e^(-s) - 1 at order 1, s at order inf.

    Examples
    --------
    >>> round(laplace_renyi_divergence(1.0, 1.0, 2.0), 6)
    0.619124
    """
    ratio, order = _ratio(shift, scale), _order(renyi_order)
    if math.isinf(order) or math.isinf(ratio):
        return ratio
    if order == 1.0:
        return _above_tangent(-ratio)
    t = order - 1.0
    if t * ratio < 1.0:  # both powers less the tangents at 0, which cancel: small divergences keep their digits
        return math.log1p((order * _above_tangent(t * ratio) + t * _above_tangent(-order * ratio)) / (t + order)) / t
    first, second = t * ratio - math.log1p(t / order), -order * ratio - math.log1p(order / t)
    return ratio if math.isinf(first) else (first + math.log1p(math.exp(second - first))) / t


def _above_tangent(x: float) -> float:
    """e^x - 1 - x, which is x^2 / 2 times Kummer's M(1, 3, x)."""
    return 0.5 * x * x * float(scipy.special.hyp1f1(1.0, 3.0, x)) if abs(x) < 1.0 else math.expm1(x) - x


def gaussian_renyi_divergence(shift: float, scale: float, renyi_order: float) -> float:
    """Renyi divergence of normal noise: r mu^2 / 2 of an order r, with mu = |shift| / scale.

    Examples
    --------
    >>> gaussian_renyi_divergence(1.0, 1.0, 3.0)
    1.5
    """
    ratio, order = _ratio(shift, scale), _order(renyi_order)
    # A product, since a power would raise beyond the doubles; the order first, since the square may underflow.
    return 0.5 * ratio * order * ratio if ratio > 0.0 else 0.0


def _ratio(shift: float, scale: float) -> float:
    """|shift| / scale; 0/0 is 0."""
    shift = number("shift", shift, "a finite number", math.isfinite)
    scale = number("scale", scale, "in [0, inf)", lambda v: 0.0 <= v < math.inf)
    return abs(shift) / scale if scale > 0.0 else math.inf if shift else 0.0


def _order(renyi_order: float) -> float:
    return number("renyi_order", renyi_order, "in [1, inf]", lambda v: v >= 1.0)
