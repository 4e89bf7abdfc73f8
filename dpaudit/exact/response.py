"""The alternative by which power is stated: randomised response inside an event, and what a claim says of it.

Its two laws have three outcomes. Under x the first has probability m e^L / (1 + e^L) and the second m / (1 + e^L),
under x_prime the other way round, and the third has 1 - m under both: m in (0, 1] is the event mass, L >= 0 the loss,
in nats. Whoever sees an outcome inside the event guesses x on the first and x_prime on the second, and is right with
probability e^L / (1 + e^L). Exact values of a claim's own parameter for these laws are here, and losses of a value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import scipy

from dpaudit.privacy.claims import Claim, FloatArray, ZeroConcentratedDP
from dpaudit.privacy.pair_budgets import has_own_line
from dpaudit.privacy.renyi_lines import RenyiLines

LAST_ANCHOR = 8.0  # nats: the farthest line of a free family that power is stated for
FIRST_LINES = np.expm1(np.linspace(0.0, math.log1p(40.0), 200))  # nats; in steps losses are 1.1% too high at most
FIRST_ORDERS = np.linspace(math.log(1e-5), math.log(1e5), 100)  # logs of orders less 1
CLOSER = 3  # times that they are laid anew about the best one: each time a hundredth as far apart
MAX_LOSS = 40.0  # nats, beyond which 1 / (1 + e^L) is below the smallest probability that doubles tell from 0 at 1
MAX_VALUE = 1e6
PRECISION, MIN_PRECISION = 1e-9, 1e-12  # of losses and values: relative, absolute
ROUNDING = 1e-12  # of the logarithms of a divergence


def _keeps_renyi(claim: Claim, event_mass: float, loss: float) -> bool:
    for own in claim.directions:
        if isinstance(own, ZeroConcentratedDP):  # it promises all orders, of which a few are bet against
            if _rho(event_mass, loss) > own.rho + ROUNDING:
                return False
            continue
        orders = np.array(claim.orders)
        bounds = [float(own.renyi_epsilons(np.array([own.value]), order)[0]) for order in claim.orders]
        if np.any(_divergences(event_mass, loss, orders) > np.array(bounds) + ROUNDING):
            return False
    return True


def _divergences(event_mass: float, loss: float, orders: FloatArray) -> FloatArray:
    """Renyi divergences of the two laws, at orders above 1."""
    # Of the moment inside the event, over its mass: both outcomes have e^(r L) and e^((1 - r) L), over 1 + e^L.
    inside = np.logaddexp(orders * loss, (1.0 - orders) * loss) - np.logaddexp(loss, 0.0)
    outside = math.log1p(-event_mass) if event_mass < 1.0 else -math.inf
    return np.asarray(np.logaddexp(math.log(event_mass) + inside, outside) / (orders - 1.0))


@functools.lru_cache(maxsize=64)
def _rho(event_mass: float, loss: float) -> float:
    """The rho of the two laws: the largest D_r / r, which is closed in on, or its limit as the order r falls to 1."""
    most, logs = event_mass * loss * math.tanh(0.5 * loss), FIRST_ORDERS
    for _ in range(CLOSER):
        orders = 1.0 + np.exp(logs)
        rhos = _divergences(event_mass, loss, orders) / orders
        k = int(np.argmax(rhos))
        most = max(most, float(rhos[k]))
        logs = np.linspace(logs[max(k - 1, 0)], logs[min(k + 1, len(logs) - 1)], len(logs))
    return most


def _loss_on_lines(claim: Claim, event_mass: float) -> float:
    """The largest loss that keeps every line of both orders; inf if all do.

    The event that is right has m e^L / (1 + e^L) and m / (1 + e^L), each law being the other's mirror image: a line
    (epsilon, delta) is kept up to the loss at which 1 / (1 + e^L) is (1 - delta / m) / (1 + e^epsilon). Profiles are
    convex in e^epsilon, so that this has one minimum over the lines of a family, which is closed in on.
    """
    most = math.inf
    for directed in claim.directions:
        anchors = FIRST_LINES if claim.anchored else FIRST_LINES[:1]
        for _ in range(CLOSER):
            lines = np.array([directed.lines(np.array([claim.value]), anchor) for anchor in anchors.tolist()])[:, :, 0]
            share = 1.0 - lines[:, 1] / event_mass
            # A line that is no number, as a formula of one's own may give at 0, promises nothing.
            wrong = np.nan_to_num(np.maximum(share, 0.0) * scipy.special.expit(-lines[:, 0]))
            with np.errstate(divide="ignore"):  # a delta of the whole event allows any loss
                losses = np.maximum(np.log1p(-wrong) - np.log(wrong), 0.0)
            k = int(np.argmin(losses))
            most = min(most, float(losses[k]))
            anchors = np.linspace(anchors[max(k - 1, 0)], anchors[min(k + 1, len(anchors) - 1)], len(anchors))
    return most


def loss_on_claim(claim: Claim, event_mass: float) -> float:
    """The largest loss, in nats, that the claim allows at this event mass; inf if it allows any up to 40.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> round(loss_on_claim(PureDP(1.0), 0.1), 6)
    1.0
    """
    claim = claim.promise if isinstance(claim, RenyiLines) else claim  # a hundred lines of a promise take seconds
    if claim.family == "renyi":  # at 0 the two laws must be equal: a few roundings from it is no loss
        return _last(lambda loss: _keeps_renyi(claim, event_mass, loss), 1.0, MAX_LOSS) if claim.value else 0.0
    loss = _loss_on_lines(claim, event_mass)
    return float(f"{loss:.9g}") if loss < MAX_LOSS else math.inf


def value_of_loss(claim: Claim, event_mass: float, loss: float) -> float:
    """The least value of the claim's own parameter with which randomised response of this kind keeps it.

    0 where any value does; inf for a loss of inf, or where no value up to a million does.
    """
    if math.isinf(loss):
        return math.inf
    if loss <= loss_on_claim(claim.with_value(0.0), event_mass):
        return 0.0
    if claim.family == "renyi" and not isinstance(claim, RenyiLines):
        return _last(lambda value: not _keeps_renyi(claim.with_value(value), event_mass, loss), 1.0, MAX_VALUE)
    return _last(lambda value: loss > loss_on_claim(claim.with_value(value), event_mass), 1.0, MAX_VALUE)


def event_masses(claim: Claim, values: FloatArray, deltas: FloatArray, event_mass: float) -> FloatArray:
    """The event masses of the alternative for claims of one family: m, 2 m, 4 m, ... up to 1, shape (values,).

    A delta as large as the event mass allows every loss inside the event, so that nothing could be found there. The
    mass is the first one of at least twice the delta; a claim with free lines counts by its smallest delta. `values`
    are those of the parameter, and `deltas` those of claims that are pure or approximate, of shape (values,) each.
    """
    if claim.family == "renyi":
        return np.full(len(values), event_mass)
    if not has_own_line(claim):
        deltas = np.min([directed.lines(values, LAST_ANCHOR)[1] for directed in claim.directions], axis=0)
    doublings = np.ceil(np.log2(np.maximum(2.0 * deltas / event_mass, 1.0)))
    return np.asarray(np.minimum(event_mass * 2.0**doublings, 1.0))


def event_mass_of(claim: Claim, event_mass: float) -> float:
    """The event mass of the alternative for the claim of one pair: see `event_masses`.

    Examples
    --------
    >>> from dpaudit.privacy.claims import ApproxDP
    >>> [event_mass_of(ApproxDP(1.0, delta), 0.1) for delta in (0.01, 0.1, 0.8)]
    [0.1, 0.2, 1.0]
    """
    return float(event_masses(claim, np.array([claim.value]), np.array([claim.delta]), event_mass)[0])


def _last(holds: Callable[[float], bool], first: float, largest: float) -> float:
    """The end of the interval from 0 on which `holds` is true; inf if that is beyond `largest`."""
    low, high = 0.0, first
    while holds(high):
        if high >= largest:
            return math.inf
        low, high = high, min(2.0 * high, largest)
    while high - low > max(PRECISION * high, MIN_PRECISION):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return float(f"{0.5 * (low + high):.9g}")  # as far as it was searched
