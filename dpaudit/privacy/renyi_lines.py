"""The hockey-stick lines that a Renyi promise implies for events.

A Renyi or zCDP claim is no family of lines. But it bounds every event: for each order r of the claim, with the bound
C = exp((r-1) epsilon), every g >= 0 has E_P[r g^(r-1)] - E_Q[(r-1) g^r] <= C (see `RenyiInequality`). Let g have two
values. With g1 on an event S and g0 = t g1 elsewhere, 0 <= t < 1,

    a P(S) - b Q(S) <= C - k,     a = r (g1^(r-1) - g0^(r-1)),     b = (r-1) (g1^r - g0^r),

where k = r g0^(r-1) - (r-1) g0^r. So P(S) - (b/a) Q(S) <= (C - k) / a, and b/a = e^epsilon fixes g1 for each t. The
claim holds in the other direction too: there g is g1 off the event and t g1 on it, and the same follows with the
roles of P and Q exchanged.

Two lines of slopes e^a1 < e^epsilon < e^a2 imply one between them: their mean with the weights that give its slope. At
epsilon 0 that is the better one, as the slopes of each direction alone are on one side of it.

Validity. Each t, r and chord gives a line that the claim implies, so their least delta is implied as well, whatever
grid is taken. It increases with C, hence with the claim's parameter. By the joint range of two divergences, lines of
this kind are all that a Renyi promise says of one event; a grid loses a little.

Source: Asoodeh, Liao, Calmon, Kosut and Sankar (2021), arXiv:2001.05990, for the joint range.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

import numpy as np

from dpaudit.privacy.claims import Claim, FloatArray, delegated

# Of g off the event over g on it: 0, and steps that are even in its logarithm towards 0 and towards 1.
RATIOS = np.concatenate([[0.0], np.geomspace(1e-6, 0.4, 30), 1.0 - np.geomspace(0.6, 1e-3, 30)])
# Distances, in nats, of the slopes of two lines from the anchor whose chord they are.
SLOPE_DISTANCES = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.5, 2.5])
# Added to every delta, times r + 1 / (r-1) of the extreme orders: more than the error of its arithmetic, where powers
# lose digits with r and differences with 1 / (r-1).
ROUNDING = 1e-11


def as_lines(claim: Claim) -> Claim:
    """The claim itself where it is a family of lines; of a Renyi promise the lines that it implies."""
    return RenyiLines(claim) if claim.family == "renyi" else claim


@dataclasses.dataclass(frozen=True)
class RenyiLines(Claim):
    """Consequences of a Renyi promise for events, as a family of free lines: see the module.

    Its parameter and value are those of the promise. A bound from its lines is a bound for the promise; a pair may
    break the promise and keep all of its lines.

    Parameters
    ----------
    promise : Claim
        Of family "renyi".

    Examples
    --------
    >>> from dpaudit.privacy.claims import RenyiDP, ZeroConcentratedDP
    >>> RenyiLines(ZeroConcentratedDP(0.5)).lines(np.array([0.5, 1.0]), anchor=0.0)[1].round(3).tolist()
    [0.482, 0.653]
    """

    promise: Claim
    parameter: ClassVar[str] = "value"
    anchored: ClassVar[bool] = True

    value = delegated("promise.value")
    report_delta = delegated("promise.report_delta")
    epsilon_at = delegated("promise.epsilon_at")

    def with_value(self, value: float) -> RenyiLines:
        return RenyiLines(self.promise.with_value(value))

    def __str__(self) -> str:
        return str(self.promise)

    def lines(self, values: FloatArray, anchor: float) -> tuple[FloatArray, FloatArray]:
        values = np.asarray(values, dtype=float)
        below, above = (self._deltas(values, anchor + side * SLOPE_DISTANCES) for side in (-1.0, 1.0))
        # The chord of two lines whose slopes are at these distances from the anchor, all of them with all of them.
        share = np.expm1(SLOPE_DISTANCES)[None, :] - np.expm1(-SLOPE_DISTANCES)[:, None]
        share = np.divide(np.expm1(SLOPE_DISTANCES)[None, :], share, out=np.ones_like(share), where=share > 0.0)
        chords = share * below[:, :, None] + (1.0 - share) * above[:, None, :]
        orders = self.promise.orders
        rounding = ROUNDING * (max(orders) + 1.0 / (min(orders) - 1.0))
        return np.full_like(values, anchor), np.clip(chords.min(axis=(1, 2)) + rounding, 0.0, 1.0)

    def _deltas(self, values: FloatArray, anchors: FloatArray) -> FloatArray:
        """The least delta of all orders and `RATIOS` at anchors of any sign, shape (values, anchors); at most 1."""
        least = np.ones((len(values), len(anchors)))
        for order in self.promise.orders:
            exponents = (order - 1.0) * self.promise.renyi_epsilons(values, order)
            with np.errstate(over="ignore", invalid="ignore"):
                bound = np.exp(exponents)[:, None]
                for k, anchor in enumerate(anchors.tolist()):
                    for offset, slope in _two_valued(order, anchor):
                        # (C - k) / a for every t. What overflows is a line that says nothing: of NaN and 1 this is 1.
                        least[:, k] = np.fmin(least[:, k], np.fmin.reduce(bound * slope - offset, axis=1))
        return least


@functools.lru_cache(maxsize=4096)  # of nine orders, twelve anchors and all offsets about half
def _two_valued(order: float, anchor: float) -> list[tuple[FloatArray, FloatArray]]:
    """k / a and 1 / a of the lines at this anchor, for each of `RATIOS`: of P against Q, and of Q against P.

    e^anchor = b / a fixes g1 in the first one. In the second one g is g1 off the event and P(S) is what is charged, so
    that a and b change places. Logarithms, since powers of high orders overflow.
    """
    r = order
    with np.errstate(divide="ignore"):
        log_t = np.log(RATIOS)
    power = np.exp((r - 1.0) * log_t)
    below, above = -np.expm1((r - 1.0) * log_t), -np.expm1(r * log_t)  # 1 - t^(r-1) and 1 - t^r
    tilt = r * below / ((r - 1.0) * above)
    paid, charged = np.exp(anchor) * tilt, np.exp(-anchor) * tilt
    with np.errstate(over="ignore"):
        return [
            (
                power * (r - (r - 1.0) * RATIOS * paid) / (r * below),
                np.exp(-(np.log(r * below) + (r - 1.0) * np.log(paid))),
            ),
            (
                (r - (r - 1.0) * charged) / ((r - 1.0) * charged * above),
                np.exp(-(np.log((r - 1.0) * above) + r * np.log(charged))),
            ),
        ]
