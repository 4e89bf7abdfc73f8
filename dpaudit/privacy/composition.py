"""Composition arithmetic: the claim that several mechanisms keep together, or that one keeps for a group.

Conventions
-----------
* `compose` is sequential composition: the mechanisms run on the same input with independent randomness, and all
  outputs are seen. Each family has its own rule; families are never mixed silently.
* `group` is group privacy: the claim for two inputs that a chain of k pairs joins, each of which keeps the claim.
* Sums are taken in double precision, exactly rounded (`math.fsum`) where they are sums of budgets.

Source: DX-F1.2, DX-F1.3 of `dpaudit_mechanisms/papers/dx-linear-queries.toml` (metric claims); Dwork and Roth (2014),
theorem 3.16 (basic composition); Bun and Steinke (2016), arXiv:1605.02065, propositions 1.7 and 1.9 (zCDP);
Mironov (2017), arXiv:1702.07476, propositions 1 and 2 (RDP); Dong, Roth and Su (2019), arXiv:1905.02383, section 2.5
and corollary 3.3 (Gaussian DP).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import (
    ApproxDP,
    Claim,
    GaussianDP,
    MetricDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
    number_text,
    whole_number,
)
from dpaudit.privacy.metrics import SumMetric, scaled


def compose(claims: Iterable[Claim]) -> Claim:
    """The claim that mechanisms keep together when they run on the same input, one claim a mechanism.

    Pure: epsilons add. Approximate, or pure and approximate: epsilons and deltas add (basic composition; valid, not
    tight). zCDP: rhos add. Renyi of one order: epsilons add. Gaussian: mu is the root of the sum of squares (tight).
    Metric, all on inputs or all on records: the metrics add, pair by pair.

    Parameters
    ----------
    claims : iterable of Claim
        At least one.

    Returns
    -------
    Claim
        Of the family of its parts; a single claim is returned as it is.

    Raises
    ------
    UsageError
        If there is no claim, or no rule for the families together.

    Examples
    --------
    >>> str(compose([PureDP(0.5), ApproxDP(1.0, 0.01)]))
    'eps=1.5,delta=0.01'
    >>> compose([GaussianDP(3.0), GaussianDP(4.0)])
    GaussianDP(mu=5.0)
    """
    if not isinstance(claims, Iterable):
        raise UsageError(f"claims must be a list of claims, got {claims!r}.")
    parts = list(claims)
    for position, claim in enumerate(parts):
        if not isinstance(claim, Claim):
            raise UsageError(f"claims must be claims, got {claim!r} at position {position}.")
    if not parts:
        raise UsageError("claims must be at least one, got none.")
    if len(parts) == 1:
        return parts[0]
    for family, composed in _RULES.items():
        if all(isinstance(claim, family) for claim in parts):
            return composed(parts)
    kinds = sorted({type(claim).__name__ for claim in parts})
    raise UsageError(
        f"claims must be of families with one composition rule, got {' and '.join(kinds)}. "
        "State all in one family: a PureDP of eps is zCDP of eps**2 / 2, or a MetricDP with a DiscreteMetric; a "
        "GaussianDP of mu is zCDP of mu**2 / 2."
    )


def group(claim: Claim, k: int) -> Claim:
    """The claim for two inputs that are k steps apart, where each step keeps `claim`.

    Pure: k epsilon (tight). Approximate: k epsilon and delta (e^(k epsilon) - 1) / (e^epsilon - 1), the sum of
    delta e^(i epsilon) over i < k. zCDP: k^2 rho (proposition 1.9). Gaussian: k mu (tight). Renyi, for k = 2^c with
    order >= 2^(c+1): order / k and 3^c epsilon (Mironov's proposition 2). Metric on inputs: k times the metric, for
    steps that each have the metric's budget (DX-F1.3). Metric on records: the claim itself, as it adds up the records
    that differ already.

    Parameters
    ----------
    claim : Claim
        Of one of these families.
    k : int
        Number of steps, at least 1.

    Examples
    --------
    >>> group(ZeroConcentratedDP(0.5), 3)
    ZeroConcentratedDP(rho=4.5)
    >>> group(ApproxDP(0.0, 0.001), 4)
    ApproxDP(epsilon=0.0, delta=0.004)
    """
    steps = float(whole_number("k", k, "a whole number of at least 1", 1))
    if steps == 1:
        return claim
    if isinstance(claim, PureDP):
        return PureDP(steps * claim.epsilon)
    if isinstance(claim, ApproxDP):
        return ApproxDP(steps * claim.epsilon, _group_delta(claim, steps))
    if isinstance(claim, ZeroConcentratedDP):
        return ZeroConcentratedDP(steps * (steps * claim.rho))
    if isinstance(claim, GaussianDP):
        return GaussianDP(steps * claim.mu)
    if isinstance(claim, MetricDP):
        return claim if claim.on == "records" else MetricDP(scaled(claim.metric, steps), on="inputs")
    if isinstance(claim, RenyiDP):
        doublings = math.frexp(steps)[1] - 1
        if steps != 2.0**doublings or claim.order < 2 * steps:
            largest = number_text(claim.order)
            raise UsageError(f"k must be a power of 2, at most half the Renyi order {largest}, got {k}.")
        return RenyiDP(claim.order / steps, 3.0**doublings * claim.epsilon)
    raise UsageError(f"claim must be of a family with a rule for groups, got {claim} ({type(claim).__name__}).")


def _composed_renyi(claims: Sequence[RenyiDP]) -> RenyiDP:
    orders = sorted({claim.order for claim in claims})
    if len(orders) > 1:
        shown = " and ".join(map(number_text, orders))
        smallest = number_text(orders[0])
        raise UsageError(f"claims must be of one Renyi order, got {shown}. Each holds at order {smallest} too.")
    return RenyiDP(orders[0], math.fsum(claim.epsilon for claim in claims))


def _composed_metrics(claims: Sequence[MetricDP]) -> MetricDP:
    if len({claim.on for claim in claims}) > 1:
        raise UsageError("claims must have their metrics all on inputs or all on records, got both.")
    return MetricDP(SumMetric(tuple(claim.metric for claim in claims)), on=claims[0].on)


def _sum(claims: Sequence[Claim]) -> float:
    return math.fsum(claim.value for claim in claims)


_RULES: dict[type[Claim], Callable[[Sequence[Any]], Claim]] = {  # the first one that all claims are of
    PureDP: lambda claims: PureDP(_sum(claims)),
    ApproxDP: lambda claims: ApproxDP(_sum(claims), min(1.0, math.fsum(claim.delta for claim in claims))),
    ZeroConcentratedDP: lambda claims: ZeroConcentratedDP(_sum(claims)),
    GaussianDP: lambda claims: GaussianDP(math.hypot(*(claim.value for claim in claims))),
    RenyiDP: _composed_renyi,
    MetricDP: _composed_metrics,
}


def _group_delta(claim: ApproxDP, k: float) -> float:
    if claim.delta == 0.0 or claim.epsilon == 0.0:
        return min(1.0, k * claim.delta)
    if math.isinf(claim.epsilon):
        return 1.0
    # The geometric sum in logarithms: (k-1) epsilon + log(1 - e^(-k epsilon)) - log(1 - e^(-epsilon)) never overflows.
    exponent = (k - 1) * claim.epsilon + math.log(-math.expm1(-k * claim.epsilon) / -math.expm1(-claim.epsilon))
    return math.exp(min(0.0, math.log(claim.delta) + exponent))
