"""Derived claims: one rule a law, for every kind of claim for which the law holds; the rest is refused.

Conventions
-----------
* P, Q are the output laws of one pair, in either order. Each rule says the inequality it comes from.
* A claim whose budget depends on the pair (`MetricDP`) is treated pair by pair: the rule for pure claims is applied to
  the budgets of the pair (`PairwiseMetric`), so that a budget adds up, or is enlarged, per pair.
* A `mass` c is a lower bound of the probability of the event, on both inputs of every pair.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import (
    LARGEST_EPSILON,
    ApproxDP,
    Claim,
    FloatArray,
    GaussianDP,
    MetricDP,
    ProfileClaim,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
    number,
    number_text,
)
from dpaudit.privacy.composition import compose, group
from dpaudit.privacy.metrics import Metric


@dataclasses.dataclass(frozen=True)
class PairwiseMetric(Metric):
    """The budget of a pair by a rule for pure claims, from the budgets of that pair under several claims.

    Parameters
    ----------
    claims : tuple of Claim
        Pure or metric.
    rule : str
        "max" (the largest), "sum", "conditioned" (see `conditioned_claim`; one claim).
    mass : float or None
        As in `conditioned_claim`.
    """

    claims: tuple[Claim, ...]
    rule: Literal["max", "sum", "conditioned"]
    mass: float | None = None

    @property
    def name(self) -> str:
        return f"{self.rule} of {', '.join(map(str, self.claims))}"

    def __call__(self, x: Any, x_prime: Any) -> float:
        budgets = [claim.for_pair(x, x_prime) for claim in self.claims]
        if self.rule == "sum":
            return math.fsum(budget.value for budget in budgets)
        found = weakest_claim(budgets) if self.rule == "max" else conditioned_claim(budgets[0], self.mass)
        return found.value


@dataclasses.dataclass(frozen=True)
class _Profile:
    """The largest of some privacy profiles, or their average; a class, so that claims are comparable and pickled."""

    claims: tuple[Claim, ...]
    weights: tuple[float, ...] | None = None

    def __call__(self, epsilon: float) -> float:
        profiles = [claim.profile(epsilon) for claim in self.claims]
        if self.weights is None:
            return max(profiles)
        return min(1.0, math.fsum(w * delta for w, delta in zip(self.weights, profiles, strict=True)))


@dataclasses.dataclass(frozen=True)
class _ConditionedProfile:
    """delta(epsilon - log R) / c for epsilon >= log R, where Q(C) <= R P(C) for every pair; 1 below."""

    claim: Claim
    mass: float
    log_ratio: float

    def __call__(self, epsilon: float) -> float:
        if epsilon < self.log_ratio:
            return 1.0
        return min(1.0, self.claim.profile(epsilon - self.log_ratio) / self.mass)


@dataclasses.dataclass(frozen=True)
class _GroupProfile:
    """min over grid points e <= epsilon of delta(e/k) (1 + e^(e/k) + ... + e^((k-1) e/k)), at most 1.

    A fixed grid, and only its points up to epsilon: so the profile does not increase, and is valid at each epsilon.
    """

    claim: Claim
    k: int

    @functools.cached_property
    def _table(self) -> list[float]:
        best, table = 1.0, []
        for e in _GRID:
            delta = self.claim.profile(e / self.k)
            growth = float(np.logaddexp.reduce(np.arange(self.k) * (e / self.k)))
            best = min(best, math.exp(min(0.0, math.log(delta) + growth)) if delta > 0.0 else 0.0)
            table.append(best)
        return table

    def __call__(self, epsilon: float) -> float:
        return self._table[bisect.bisect_right(_GRID, epsilon) - 1]


_GRID = (0.0, *np.geomspace(0.01, LARGEST_EPSILON, 256).tolist())


def refuse(claim: Claim, what: str, advice: str = "") -> UsageError:
    """The one message for a kind of claim that a law has no rule for."""
    return UsageError(f"claim must be of a family that {what}, got {claim} ({type(claim).__name__}).{advice}")


def checked(claim: Any) -> Claim:
    """`claim` itself, or a clear error where it is none that laws can be of."""
    if not isinstance(claim, Claim):
        raise UsageError(f"claim must be a claim, got {claim!r}. Use dpaudit.parse_claim for a string.")
    if claim.is_order_of_pair:  # chains of pairs go along some of them backwards
        raise UsageError(
            f"claim must be of both orders of a pair for a law, got {claim} ({type(claim).__name__}). Audit it, or "
            "derive from FDP(add=f, remove=g)."
        )
    return claim


def weakest_claim(claims: Sequence[Claim]) -> Claim:
    """The weakest of `claims`, or the claim of their family that each implies: the largest of each parameter.

    Pure and approximate: the largest epsilon and the largest delta. zCDP, Gaussian: the largest rho, mu. Renyi of one
    order: the largest epsilon. Profiles: the larger delta at each epsilon. Metric (and pure beside metric): the larger
    budget, pair by pair.

    Raises
    ------
    UsageError
        If there is no claim, or they are of several families.

    Examples
    --------
    >>> weakest_claim([PureDP(1.0), ApproxDP(0.5, 0.01)])
    ApproxDP(epsilon=1.0, delta=0.01)
    """
    parts = [checked(claim) for claim in claims]
    if not parts:
        raise UsageError("claims must be at least one, got none.")
    if all(part == parts[0] for part in parts):
        return parts[0]
    if all(isinstance(part, PureDP) for part in parts):
        return PureDP(max(part.value for part in parts))
    if all(isinstance(part, ApproxDP) for part in parts):
        return ApproxDP(max(part.value for part in parts), max(part.delta for part in parts))
    if all(isinstance(part, PureDP | MetricDP) for part in parts):
        return MetricDP(PairwiseMetric(tuple(parts), "max"))
    if all(isinstance(part, ProfileClaim) for part in parts):
        return ProfileClaim(_Profile(tuple(parts)), name=f"max of {', '.join(map(str, parts))}")
    is_one_kind = len({type(part) for part in parts}) == 1
    is_one_order = len({part.order for part in parts if isinstance(part, RenyiDP)}) <= 1
    if is_one_kind and is_one_order and isinstance(parts[0], ZeroConcentratedDP | GaussianDP | RenyiDP):
        return max(parts, key=lambda part: part.value)
    kinds = " and ".join(sorted({str(part) for part in parts}))
    raise UsageError(f"claims must be of one family (and one Renyi order), got {kinds}. State all in one.")


def composed_claim(claims: Sequence[Claim]) -> Claim:
    """`dpaudit.privacy.compose`; metric claims beside pure ones, or on inputs beside records, add up pair by pair.

    Examples
    --------
    >>> from dpaudit.privacy.metrics import AbsoluteMetric
    >>> composed_claim([PureDP(0.5), MetricDP(AbsoluteMetric(1.0))]).for_pair(0.0, 2.0)
    PureDP(epsilon=2.5, delta=0.0)
    """
    parts = [checked(claim) for claim in claims]
    metrics = [part for part in parts if isinstance(part, MetricDP)]
    is_pairwise = len(metrics) < len(parts) or len({part.on for part in metrics}) > 1
    if metrics and is_pairwise and all(isinstance(part, PureDP | MetricDP) for part in parts):
        return MetricDP(PairwiseMetric(tuple(parts), "sum"))
    return compose(parts)


def average_claim(claims: Sequence[Claim], weights: Sequence[float]) -> Claim:
    """Claim of a mixture with these weights: by joint convexity, sharper than `weakest_claim` where that is possible.

    Pure, metric: the largest epsilon (the log of a ratio is quasi-convex and no better). Approximate: the largest
    epsilon and the *average* delta, as P(S) <= sum of w (e^epsilon_i Q_i(S) + delta_i). Profiles and Gaussian claims:
    the average profile (hockey-stick divergences are jointly convex). Renyi of one order r: log of the average of
    e^((r-1) epsilon_i), over r - 1, as that f-divergence is jointly convex. zCDP: equal claims stay; different ones are
    refused, since no average of the rhos holds for large orders (the largest does: `weakest_claim`).

    Examples
    --------
    >>> average_claim([ApproxDP(1.0, 0.01), ApproxDP(1.0, 0.03)], [0.5, 0.5])
    ApproxDP(epsilon=1.0, delta=0.02)
    """
    parts = [checked(claim) for claim in claims]
    share = normalised(weights, len(parts))
    if all(part == parts[0] for part in parts):
        return parts[0]
    if all(isinstance(part, PureDP | MetricDP) for part in parts):
        return weakest_claim(parts)
    if all(isinstance(part, ApproxDP) for part in parts):
        delta = math.fsum(w * part.delta for w, part in zip(share, parts, strict=True))
        return ApproxDP(max(part.value for part in parts), min(1.0, delta))
    if all(isinstance(part, ZeroConcentratedDP) for part in parts):
        advice = " A mixture keeps the largest rho: use mixture."
        raise refuse(max(parts, key=lambda part: part.value), "can be averaged", advice)
    orders = {part.order for part in parts if isinstance(part, RenyiDP)}
    if all(isinstance(part, RenyiDP) for part in parts) and len(orders) == 1:
        order = orders.pop()
        exponents = np.log(share) + (order - 1.0) * np.array([part.value for part in parts])
        return RenyiDP(order, float(np.logaddexp.reduce(exponents)) / (order - 1.0))
    if all(part.family == "hockey-stick" and not isinstance(part, MetricDP) for part in parts):
        return ProfileClaim(_Profile(tuple(parts), tuple(share)), name=f"average of {', '.join(map(str, parts))}")
    kinds = " and ".join(sorted({str(part) for part in parts}))
    raise UsageError(f"claims must be of one family (and one Renyi order), got {kinds}. State all in one.")


def conditioned_claim(claim: Claim, mass: float | None = None) -> Claim:
    """Claim that M keeps under the condition that its output is in C, where P(C), Q(C) >= `mass` for every pair.

    P(S|C) = P(S and C) / P(C), so what is known of P(C) and Q(C) = R P(C) is what is paid:

    * pure, metric: epsilon + log R, with R <= min(e^epsilon, e^-epsilon + (1 - e^-epsilon) / c): twice epsilon at most,
      and no more is needed without a `mass`. Both factors are attained together, in the limit of small events S;
    * approximate: delta / c, and epsilon + log R with R <= min(e^epsilon + delta / c,
      e^-epsilon + (1 - e^-epsilon (1 - delta)) / c, 1 / c). Without a mass bound nothing follows: an event of
      probability below delta may have any law;
    * Gaussian, profile: delta(epsilon - log R) / c, a `ProfileClaim`; R as above at the best epsilon of the profile;
    * Renyi of order r: epsilon + r / (r - 1) log(1/c), as the sum over C of P^r Q^(1-r) only lacks terms;
    * zCDP: (sqrt(rho) + sqrt(log(1/c)))^2, the least bound of D_r / r from those Renyi bounds at all larger orders.

    Raises
    ------
    UsageError
        If the mass is not in (0, 1], or is missing where it is needed.

    Examples
    --------
    >>> conditioned_claim(PureDP(1.0))
    PureDP(epsilon=2.0, delta=0.0)
    >>> round(conditioned_claim(PureDP(1.0), mass=0.5).value, 4)
    1.4899
    """
    c = None if mass is None else number("mass", mass, "in (0, 1]", lambda value: 0.0 < value <= 1.0)
    if isinstance(claim, MetricDP):
        return MetricDP(PairwiseMetric((claim,), "conditioned", c))
    if isinstance(claim, PureDP):
        if c is None or math.isinf(claim.value):
            return PureDP(2.0 * claim.value)
        return PureDP(claim.value + _log_ratio(claim.value, 0.0, c))
    if c is None:
        raise refuse(claim, "needs no mass of the event", " Give mass, a lower bound of its probability on all inputs.")
    if isinstance(claim, ApproxDP):
        if math.isinf(claim.value) or claim.delta >= c:
            return ApproxDP(claim.value, min(1.0, claim.delta / c))
        return ApproxDP(claim.value + _log_ratio(claim.value, claim.delta, c), claim.delta / c)
    log_inverse = -math.log(c)
    if isinstance(claim, RenyiDP):
        return RenyiDP(claim.order, claim.value + claim.order / (claim.order - 1.0) * log_inverse)
    if isinstance(claim, ZeroConcentratedDP):
        return ZeroConcentratedDP((math.sqrt(claim.value) + math.sqrt(log_inverse)) ** 2)
    if isinstance(claim, GaussianDP | ProfileClaim):
        # Validity: the bound on R holds at every epsilon, so the least over any grid holds.
        log_ratio = min(_log_ratio(epsilon, claim.profile(epsilon), c) for epsilon in _GRID)
        return ProfileClaim(_ConditionedProfile(claim, c, log_ratio), name=f"{claim} given mass {number_text(c)}")
    raise refuse(claim, "has a rule for conditioning")


def group_claim(claim: Claim, k: int) -> Claim:
    """`dpaudit.privacy.group`, and for profiles the best equal split of epsilon over the k steps.

    P_0(S) <= e^e1 P_1(S) + delta(e1) <= e^(e1 + e2) P_2(S) + e^e1 delta(e2) + delta(e1), and so on.
    """
    if isinstance(claim, ProfileClaim):
        group(PureDP(1.0), k)  # the same check of k
        return claim if k == 1 else ProfileClaim(_GroupProfile(claim, k), name=f"{claim} over {k} steps")
    return group(claim, k)


def normalised(weights: Sequence[float], parts: int) -> list[float]:
    """Weights as probabilities, all positive, one a part."""
    try:
        values = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.shape != (parts,) or not np.all(values > 0.0) or abs(float(values.sum()) - 1.0) > 1e-12:
        raise UsageError(f"weights must be {parts} positive numbers that sum to 1, got {weights!r:.80}.")
    return cast("list[float]", (values / values.sum()).tolist())


def largest_log_ratio(epsilon: ArrayLike, delta: ArrayLike, mass: ArrayLike) -> FloatArray:
    """The largest log(Q(C) / P(C)) of (epsilon, delta)-close P and Q with P(C), Q(C) >= mass in (0, 1]; broadcasts."""
    epsilon, delta, mass = np.asarray(epsilon, float), np.asarray(delta, float), np.asarray(mass, float)
    shrink = np.exp(-epsilon)
    inside = epsilon + np.log1p(delta * shrink / mass)  # Q(C) <= e^epsilon P(C) + delta
    outside = np.log(shrink + (1.0 - shrink * (1.0 - delta)) / mass)  # 1 - P(C) <= e^epsilon (1 - Q(C)) + delta
    return np.asarray(np.maximum(0.0, np.minimum(np.minimum(inside, outside), -np.log(mass))))


def _log_ratio(epsilon: float, delta: float, mass: float) -> float:
    return float(largest_log_ratio(epsilon, delta, mass))
