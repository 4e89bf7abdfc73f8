"""Lower bounds on a mechanism's privacy profile, and what follows from them: on epsilon, on a claim's parameter, on f.

A profile bound says, for all epsilon >= 0 at once and with one error rate: the mechanism's delta at epsilon, in the
worse direction, is at least `delta(epsilon)`. All that this module derives holds whenever the bound does, so nothing
here spends error rate:

* epsilon at a delta is at least every epsilon whose bound is above that delta;
* a claim's parameter is at least every value whose own profile lies below the bound somewhere. (A Gaussian profile is
  used for a Gaussian claim only. That a mechanism is no mu-Gaussian-DP one says nothing of its epsilon at a delta: that
  is read from the profile bound itself.)
* the trade-off function f (the lower one of the two directions, symmetrised) has f(a) = sup over epsilon of
  1 - delta(epsilon) - e^epsilon a and e^-epsilon (1 - delta(epsilon) - a), so a lower bound on the profile is an upper
  one on f.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.inference.bound_search import largest_rejected
from dpaudit.privacy.claims import ApproxDP, Claim, FloatArray

LARGEST_EPSILON = 60.0  # nats; e^-60 is below what any number of scores shows
GRID = np.concatenate([np.linspace(0.0, 12.0, 121), np.linspace(13.0, LARGEST_EPSILON, 48)])  # epsilons of anchors
FINE_GRID = np.linspace(0.0, LARGEST_EPSILON, 6_001)  # of slopes of f
CLAIM_GRID = np.concatenate([FINE_GRID[:1_200:2], FINE_GRID[1_200::20]])  # of lines of a claim
RENYI_DELTAS = np.geomspace(1e-12, 0.5, 24)  # where a Renyi claim is converted to epsilon
POINTS, PRECISION = 17, 1e-6  # values tried at a time, and the relative precision of bounds on a parameter
TYPE_ONE = np.concatenate([[0.0], np.geomspace(1e-4, 0.02, 24), np.linspace(0.025, 1.0, 40)])  # a trade-off's points


@dataclasses.dataclass(frozen=True)
class ProfileBound:
    """The largest of several lower bounds on the profile that hold together."""

    pieces: tuple[
        Callable[[FloatArray], FloatArray], ...
    ]  # from epsilons >= 0 to bounds on delta, which do not increase

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """The bound at each epsilon, in [0, 1]; 0 where nothing is known."""
        epsilon = np.asarray(epsilon, dtype=float)
        return np.asarray(np.max([np.zeros_like(epsilon), *(piece(epsilon) for piece in self.pieces)], axis=0))

    def epsilon(self, delta: float) -> float:
        """The lower bound on epsilon at a delta in [0, 1]; rounded down, by at most 1e-9."""
        if not self.delta(np.zeros(1))[0] > delta:
            return 0.0
        low, high = 0.0, LARGEST_EPSILON
        while high - low > 1e-9:
            tried = np.linspace(low, high, 33)
            is_above = self.delta(tried) > delta
            if is_above.all():
                return high
            first = int(np.argmin(is_above))  # the first that is not
            low, high = float(tried[max(first - 1, 0)]), float(tried[first])
        return low

    @functools.cached_property
    def anchors(self) -> tuple[tuple[float, float], ...]:
        """Points (epsilon, delta) that the profile lies above: all that a claim's values are held to."""
        found = zip(GRID.tolist(), self.delta(GRID).tolist(), strict=True)
        return tuple((epsilon, delta) for epsilon, delta in found if delta > 0.0)

    @functools.cached_property
    def at_deltas(self) -> tuple[tuple[float, float], ...]:
        """The same for Renyi claims: points (epsilon, delta) at `RENYI_DELTAS`."""
        found = [(self.epsilon(delta), delta) for delta in RENYI_DELTAS.tolist()]
        return tuple(point for point in found if point[0] > 0.0)

    def trade_off_upper(self, type_one: FloatArray) -> FloatArray:
        """Upper limits of the trade-off function at type I errors in [0, 1].

        For epsilon between two neighbours u < v of a grid, 1 - delta(epsilon) - exp(epsilon) a is at most 1 - delta(v)
        - exp(u) a, and exp(-epsilon) (1 - delta(epsilon) - a) at most exp(-u) (1 - delta(v) - a) or 0, since the bound
        on delta does not increase; beyond the grid delta is at least 0. So the staircase is above the supremum over all
        epsilons.
        """
        lines = trade_off_of_lines(FINE_GRID, np.append(self.delta(FINE_GRID)[1:], 0.0), type_one)
        return np.asarray(np.clip(lines, 0.0, 1.0 - np.asarray(type_one, dtype=float)))


def trade_off_of_lines(epsilons: FloatArray, deltas: FloatArray, type_one: FloatArray) -> FloatArray:
    """The supremum over lines (epsilon, delta) of what each leaves of the type II error, in both directions."""
    at = np.asarray(type_one, dtype=float)[:, None]  # (points, 1)
    rest, slope = 1.0 - deltas, np.exp(np.minimum(epsilons, 700.0))  # no type I error but 0 is as small as e^-700
    return np.asarray(np.maximum(rest - slope * at, (rest - at) / slope).max(axis=1))


def parameter_lower(claim: Claim, bound: ProfileBound) -> float:
    """The largest value of the claim's parameter that the profile bound rejects, rounded down; 0 if none.

    Raises
    ------
    UsageError
        If the claim's budget depends on a pair of records (`MetricDP`), which scores do not name.
    """
    if isinstance(claim, ApproxDP):
        return bound.epsilon(claim.delta)
    return largest_value(lambda values: values_rejected(claim, bound, values), claim.value)


def values_rejected(claim: Claim, bound: ProfileBound, values: FloatArray) -> NDArray[np.bool_]:
    """Tell whether the bound rejects each value of the claim's parameter: true up to some value, false above."""
    rejected = np.zeros(values.shape, dtype=bool)
    if claim.family == "hockey-stick":
        for epsilon, delta in bound.anchors:
            epsilons, deltas = claim.lines(values, epsilon)
            rejected |= (epsilons <= epsilon) & (deltas < delta)
        return rejected
    for epsilon, delta in bound.at_deltas:
        rejected |= np.array([claim.with_value(value).epsilon_at(delta) < epsilon for value in values.tolist()])
    return rejected


def largest_value(are_rejected: Callable[[FloatArray], NDArray[np.bool_]], budget: float) -> float:
    """The upper end of an interval of rejected values that starts at 0, rounded down; 0 if nothing is rejected."""
    return largest_rejected(are_rejected, 0.0, budget, POINTS, PRECISION)


def check_claim(claim: Claim) -> None:
    """`UsageError` if scores cannot speak of a claim.

    What is known of the profile is known of the worse direction. So a one-directional claim is held to what it says
    without an order, which both orders keep.
    """
    if not claim.has_value:
        raise UsageError(f"claim must be one budget for every canary, got {claim}. Use eps=, mu=, rho= or a profile.")
    if claim.is_vacuous:
        raise UsageError(f"claim must promise something, got {claim}.")
    if not claim.is_symmetric and claim.family == "hockey-stick" and claim.profile(0.0) >= 1.0:
        raise UsageError(
            f"claim must promise something of both orders of a pair, since scores are held to the weaker of the two, "
            f"got {claim}."
        )
