"""Tell whether a finite mechanism keeps a claim, exactly, and the mechanism nearest to a given one that does.

`tempered` moves every row towards one common row, by the same share t. Every divergence of two rows is then a convex
function of t that is 0 at t = 1, so it does not grow with t: the least share that keeps a claim is found by bisection,
and at that share the claim is used up.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dpaudit.errors import UsageError
from dpaudit.exact.finite import (
    FloatArray,
    privacy_loss,
    privacy_losses,
    privacy_profile,
    renyi_divergence,
    zcdp_rho,
)
from dpaudit.privacy.claims import (
    LARGEST_EPSILON,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpaudit.privacy.pair_budgets import check_promise
from dpaudit.privacy.trade_off import FDP, ROUNDING, TradeOffProfile

HALVINGS = 60  # of the share t: to 2**-60, below the rounding of a row


def keeps(mechanism: ArrayLike, claim: Claim, pairs: Iterable[tuple[int, int]] | None = None) -> bool:
    """Say whether a finite mechanism keeps a claim on pairs of its inputs, in both orders, exactly up to rounding.

    What is 1e-12 of its budget above it counts as kept, as doubles hardly tell. A rho is rounded up by up to 1e-6.

    Parameters
    ----------
    mechanism : array_like of float, shape (inputs, outcomes)
        Row-stochastic; an input is its row number (which a metric on inputs is asked about).
    claim : Claim
        Pure, approximate, metric on inputs, zCDP, Renyi, Gaussian or f-DP at scale 1. Of a one-directional claim each
        order is held to its own promise.
    pairs : iterable of (int, int), optional
        Row numbers; every two inputs by default.

    Raises
    ------
    UsageError
        If the claim is another profile (an arbitrary function cannot be compared at every epsilon), or its class
        promises something of its own, or a row does not exist.

    Examples
    --------
    >>> keeps([[0.75, 0.25], [0.25, 0.75]], PureDP(1.1)), keeps([[0.75, 0.25], [0.25, 0.75]], PureDP(1.0))
    (True, False)
    """
    return _keeps(mechanism, claim, pairs, ROUNDING)


def _keeps(mechanism: ArrayLike, claim: Claim, pairs: Iterable[tuple[int, int]] | None, slack: float = 0.0) -> bool:
    rows = np.asarray(mechanism, dtype=float)
    privacy_losses(rows)  # the same check of the matrix, with the same messages
    asked = [(i, j, claim.for_pair(i, j)) for i, j in _row_pairs(len(rows), pairs)]
    for i, j, own in asked:
        check_promise(own, f"rows {i} and {j}")
    return all(_pair_keeps(rows[i], rows[j], own, slack) for i, j, own in asked)


def tempered(mechanism: ArrayLike, claim: Claim, pairs: Iterable[tuple[int, int]] | None = None) -> FloatArray:
    """The mechanism, moved towards its average row just as far as the claim needs, shape (inputs, outcomes).

    A mechanism that keeps the claim already is returned as it is; any other sits on the claim afterwards: some pair
    uses it up, to about 1e-12 of the divergence (zCDP within the 1e-6 of `zcdp_rho`).

    Parameters
    ----------
    mechanism, claim, pairs
        As in `keeps`.

    Examples
    --------
    >>> tempered([[1.0, 0.0], [0.0, 1.0]], PureDP(np.log(3.0))).round(6).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    rows = np.array(mechanism, dtype=float)
    asked = list(_row_pairs(len(rows), pairs))
    if _keeps(rows, claim, asked):
        return rows
    common = rows.mean(axis=0)
    common /= common.sum()

    def moved(share: float) -> FloatArray:
        result = (1.0 - share) * rows + share * common
        return np.asarray(result / result.sum(axis=1, keepdims=True))

    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _keeps(moved(middle), claim, asked) else (middle, high)
    return moved(high) if high < 1.0 else np.tile(common, (len(rows), 1))


def _row_pairs(inputs: int, pairs: Iterable[tuple[int, int]] | None) -> Iterable[tuple[int, int]]:
    if pairs is None:
        return [(i, j) for i in range(inputs) for j in range(i + 1, inputs)]
    asked = list(pairs)
    for i, j in asked:
        if not (0 <= i < inputs and 0 <= j < inputs):
            raise UsageError(f"pairs must be row numbers in [0, {inputs}), got {(i, j)}.")
    return asked


def measured(p: FloatArray, q: FloatArray, claim: Claim) -> tuple[str, float, float] | None:
    """Name of what a claim bounds, its value for two laws of a finite mechanism in both orders, and the bound.

    None where that is no number: a Gaussian claim and a trade-off function bound a curve.

    Examples
    --------
    >>> measured(np.array([0.5, 0.5]), np.array([0.5, 0.5]), PureDP(1.0))
    ('a privacy loss', 0.0, 1.0)
    """
    if isinstance(claim, PureDP):
        return "a privacy loss", privacy_loss(p, q), claim.value
    if isinstance(claim, ApproxDP):
        if claim.value > LARGEST_EPSILON:  # e^epsilon q exceeds 1 wherever q is above the smallest double
            found = max(float(p[q == 0.0].sum()), float(q[p == 0.0].sum()))
        else:
            found = privacy_profile(p, q, claim.value)
        return f"a delta at epsilon = {claim.value:g}", found, claim.delta
    if isinstance(claim, RenyiDP):
        found = max(renyi_divergence(p, q, claim.order), renyi_divergence(q, p, claim.order))
        return f"a Renyi divergence of order {claim.order:g}", found, claim.value
    return ("a rho", zcdp_rho(p, q), claim.value) if isinstance(claim, ZeroConcentratedDP) else None


def trade_off_corners(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The corners of the trade-off of p against q: type I and type II errors of the likelihood-ratio tests.

    It is linear between them (Neyman and Pearson), so they decide whether it lies above a convex function.

    Examples
    --------
    >>> [found.tolist() for found in trade_off_corners(np.array([0.75, 0.25]), np.array([0.25, 0.75]))]
    [[0.0, 0.25, 1.0], [1.0, 0.25, 0.0]]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.where(p + q > 0.0, q / p, 0.0), kind="stable")[::-1]
    # Both errors are sums of the small end, so that neither is a difference from 1.
    kept = np.concatenate([np.cumsum(q[order][::-1])[::-1], [0.0]])
    kept = kept / kept[0]  # a row that sums to 1 but for rounding is no loss at a type I error of 0
    rejected = np.concatenate([[0.0], np.cumsum(p[order])])
    return rejected / rejected[-1], kept


def _pair_keeps(p: FloatArray, q: FloatArray, claim: Claim, slack: float) -> bool:
    if claim.is_vacuous:
        return True
    if (found := measured(p, q, claim)) is not None:
        return found[1] <= found[2] + slack * (found[2] + 1e-3)  # 1e-15 at a budget of 0: a few roundings
    if isinstance(claim, GaussianDP):
        return all(_is_harder_than_normal(*way, claim.mu, slack) for way in ((p, q), (q, p)))
    if isinstance(claim, FDP) and claim.scale == 1.0:
        there, back = claim.curves
        return (there is None or _is_harder(p, q, there)) and (back is None or _is_harder(q, p, back))
    raise UsageError(f"claim must be of a family that finite mechanisms can be held against, got {claim}.")


def _is_harder_than_normal(p: FloatArray, q: FloatArray, mu: float, slack: float) -> bool:
    """Say whether the trade-off of p against q lies above that of N(0, 1) against N(mu, 1)."""
    rejected, kept = trade_off_corners(p, q)
    with np.errstate(divide="ignore"):
        least = scipy.special.log_ndtr(-scipy.special.ndtri(np.clip(rejected, 0.0, 1.0)) - mu)
        size = np.where(np.isfinite(least), np.abs(least), 0.0)
        return bool(np.all(np.log(kept) >= least - 1e-15 * size - slack * (1.0 + size)))


def _is_harder(p: FloatArray, q: FloatArray, curve: TradeOffProfile) -> bool:
    """Say whether the trade-off of p against q lies above a convex function."""
    rejected, kept = trade_off_corners(p, q)
    return bool(np.all(kept >= curve.at(rejected) - ROUNDING))
