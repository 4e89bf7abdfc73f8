"""The verdict on one pair: what is known of its two laws, against what its claim allows.

"kept" needs an upper bound within the claim in both directions, "violated" a lower bound above it in one. Everything in
between is "open". A claim allows `rounding` more than it says: epsilon + rounding, delta (1 + rounding).
"""

from __future__ import annotations

import collections
import dataclasses
import math
from fractions import Fraction

from dpaudit.errors import UsageError
from dpaudit.features.identity import with_notes
from dpaudit.privacy.claims import ApproxDP, Claim, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.pair_budgets import check_promise
from dpaudit.privacy.pairs import Pair
from dpaudit.symbolic.certificate import CertifiedPair, Event, Verdict
from dpaudit.symbolic.divergences import (
    Known,
    best_event,
    divergence_bounds,
    epsilon_floats,
    exp_bounds,
    float_above,
    float_below,
    is_above,
    mass_of,
    ratio_at,
)
from dpaudit.symbolic.leaves import readable
from dpaudit.symbolic.renyi import renyi_bounds, zcdp_verdict

JUDGED = (ApproxDP, RenyiDP, ZeroConcentratedDP)
LISTED = 12  # outcomes of an event that are named
PROFILE = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


def check_claim(claim: Claim, pair: Pair) -> None:
    """Check that a pair's claim can be judged; `UsageError` if its promise is only in doubles, or of an own class."""
    check_promise(claim, pair.id)
    if not isinstance(claim, JUDGED):
        raise UsageError(
            "claim must be pure, approximate, metric, Renyi or zero-concentrated DP for a certificate, got "
            f"{claim} ({type(claim).__name__}) for {pair.id}, whose profile is only computed in double precision. "
            "Audit it instead."
        )


def judge(pair: Pair, claim: Claim, p: Known, q: Known, rounding: Fraction, ended: str = "") -> CertifiedPair:
    """Judge a pair by what is proved of it; p and q are the laws on x and x_prime; `ended` says what ended a symbol."""
    delta = Fraction(claim.report_delta)
    allowed = delta * (1 + rounding)
    lower = _larger(ratio_at(p, q, delta, upper=False), ratio_at(q, p, delta, upper=False))
    upper = _larger(ratio_at(p, q, delta, upper=True), ratio_at(q, p, delta, upper=True))
    epsilon_lower, epsilon_upper = epsilon_floats(lower)[0], epsilon_floats(upper)[1]
    left = max(p.left, q.left)
    verdict: Verdict
    values = epsilon_lower, epsilon_upper
    if claim.is_vacuous:
        verdict = "kept"
    elif isinstance(claim, RenyiDP):
        order = Fraction(claim.order)
        bounds = [renyi_bounds(p, q, order), renyi_bounds(q, p, order)]
        values = _renyi_floats(bounds)
        budget = Fraction(claim.epsilon) + rounding
        verdict = _verdict([_compared(low, high, budget) for low, high in bounds])
    elif isinstance(claim, ZeroConcentratedDP):
        budget = Fraction(claim.rho) + rounding
        verdict = _verdict([zcdp_verdict(a, b, budget, claim.orders) for a, b in ((p, q), (q, p))])
        values = _rho_floats(p, q, claim)
    else:
        epsilon = Fraction(claim.value) + rounding
        verdict = _verdict([is_above(a, b, epsilon, allowed) for a, b in ((p, q), (q, p))])
    is_finite = lower is not None and upper is not None
    return dataclasses.replace(
        open_pair(pair, claim, _reason(left, delta, ended) if verdict == "open" else ""),
        verdict=verdict,
        epsilon_lower=epsilon_lower,
        epsilon_upper=epsilon_upper,
        exact=max(lower or Fraction(1), Fraction(1)) if left == 0 and is_finite and lower == upper else None,
        mass_left=float_above(left),
        value_lower=values[0],
        value_upper=values[1],
        event=_event(pair, p, q, delta, lower),
        profile=tuple(_profile_point(p, q, epsilon) for epsilon in PROFILE),
    )


def open_pair(pair: Pair, claim: Claim, reason: str) -> CertifiedPair:
    """A pair of which nothing is known."""
    claimed = math.inf if claim.is_vacuous else claim.value
    names, nothing = (pair.id, pair.x_id, pair.x_prime_id), (0.0, math.inf)
    return CertifiedPair(*names, "open", claimed, *nothing, claim.report_delta, None, 1.0, *nothing, reason=reason)


def _larger(first: Fraction | None, second: Fraction | None) -> Fraction | None:
    return None if first is None or second is None else max(first, second)


def _verdict(answers: list[bool | None]) -> Verdict:
    """Of both directions: whether each is above what is allowed."""
    return "violated" if True in answers else "open" if None in answers else "kept"


def _compared(lower: Fraction, upper: Fraction | None, budget: Fraction) -> bool | None:
    return True if lower > budget else False if upper is not None and upper <= budget else None


def _renyi_floats(bounds: list[tuple[Fraction, Fraction | None]]) -> tuple[float, float]:
    lowers = [math.inf if high is None and low >= 10**9 else float_below(low) for low, high in bounds]
    uppers = [math.inf if high is None else float_above(high) for _, high in bounds]
    return max(lowers), max(uppers)


def _rho_floats(p: Known, q: Known, claim: ZeroConcentratedDP) -> tuple[float, float]:
    pure = epsilon_floats(_larger(*(ratio_at(a, b, Fraction(0), upper=True) for a, b in ((p, q), (q, p)))))[1]
    found = [
        (low / Fraction(order), high) for order in claim.orders for a, b in ((p, q), (q, p))
        for low, high in [renyi_bounds(a, b, Fraction(order))]
    ]  # fmt: skip
    lower = max(math.inf if high is None and low >= 10**7 else float_below(low) for low, high in found)
    return lower, math.inf if math.isinf(pure) else float_above(Fraction(pure) ** 2 / 2)


def _event(pair: Pair, p: Known, q: Known, delta: Fraction, lower: Fraction | None) -> Event | None:
    """The event that the lower bound of the loss is attained on."""
    forward = ratio_at(p, q, delta, upper=False)
    is_forward = forward is None or (lower is not None and forward >= lower)
    a, b, name = (p, q, pair.x_id) if is_forward else (q, p, pair.x_prime_id)
    if lower is not None and lower <= 1:
        return None
    event = best_event(a, b, lower)
    if not event:
        return None
    ordered = sorted(event, key=lambda outcome: a.law[outcome], reverse=True)
    names = collections.Counter(readable(outcome) for outcome in {*p.law, *q.law})
    shown = tuple(
        (readable(outcome) if names[readable(outcome)] == 1 else with_notes(outcome))[:200]
        for outcome in ordered[:LISTED]
    )
    return Event(shown, len(event), name, mass_of(a, event), mass_of(b, event) + b.left)


def _profile_point(p: Known, q: Known, epsilon: float) -> tuple[float, float, float]:
    low, high = exp_bounds(Fraction(epsilon))
    lower = max(divergence_bounds(p, q, high)[0], divergence_bounds(q, p, high)[0])
    upper = max(divergence_bounds(p, q, low)[1], divergence_bounds(q, p, low)[1])
    return epsilon, float_below(lower), float_above(upper)


def _reason(left: Fraction, delta: Fraction, ended: str) -> str:
    if left == 0:
        return "everything was explored, but the bounds of this claim do not meet"
    shown = f"a mass of {float_above(left):.3g} is left"
    why = f" Values are run one by one, as {ended}." if ended else ""
    if delta == 0:
        return (
            f"{shown}. With delta 0 all of it would have to be explored: more time, a smaller domain, or a loop that "
            f"ends; or a claim with a delta above what is left.{why}"
        )
    return f"{shown}, and the claim's delta is {float(delta):.3g}: more time, or a smaller domain.{why}"
