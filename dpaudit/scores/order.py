"""Tell whether scores can be in the order of independent runs: exact tests of how a column is arranged.

Independent runs make scores whose arrangements are all equally likely, given the scores. Two statistics of the
arrangement are looked at, each in both directions.

* Sorted. Of n! arrangements of scores of which m_1, m_2, ... are equal, m_1! m_2! ... do not decrease, so a column is
  sorted with probability m_1! m_2! ... / n! exactly, ties and all.
* Descents, places where a score is above the next one (equal scores ordered at random). A random permutation has at
  most d of them with the probability that the sum S of n independent uniforms is below d + 1 (Stanley 1977, in
  "Eulerian partitions of a unit hypercube"), and Chernoff's bound on that is used:
  P(S < d + 1) <= min over t > 0 of e^(t (d + 1)) ((1 - e^-t) / t)^n. It finds blocks of sorted scores, one after the
  other.

`order_p_value` is four times the least of the four, at most 1: a p-value for one column by the union bound. It is no
part of an audit's error rate, since a column that fails is refused, not judged: a refusal says nothing of the claim.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from dpaudit.privacy.claims import FloatArray

SLOPES = np.geomspace(1e-3, 1e4, 400)  # t of Chernoff's bound
LOG_SLOPES = np.log(-np.expm1(-SLOPES) / SLOPES)


def order_p_value(scores: FloatArray, rng: np.random.Generator) -> float:
    """A p-value for independent runs in this order; NaN counts as below everything, and equal scores are in any order.

    Examples
    --------
    >>> round(order_p_value(np.arange(4.0), np.random.default_rng(0)), 12)  # 4 of 24
    0.166666666667
    """
    kept = below_all(scores)
    found = sorted_probability(kept) if is_sorted(kept) else 1.0
    ranks = np.empty(len(kept), dtype=np.int64)
    ranks[np.lexsort((rng.permutation(len(kept)), kept))] = np.arange(len(kept))
    descents = int(np.sum(ranks[1:] < ranks[:-1]))
    few, many = (_few_descents(len(kept), d) for d in (descents, len(kept) - 1 - descents))
    return min(1.0, 4.0 * min(found, few, many))


def below_all(scores: FloatArray) -> FloatArray:
    """The scores, with NaN as below every number."""
    return np.where(np.isnan(scores), -np.inf, scores)


def is_sorted(scores: FloatArray) -> bool:
    """Tell whether a column without NaN never falls, or never rises."""
    return bool(np.all(scores[1:] >= scores[:-1]) or np.all(scores[1:] <= scores[:-1]))


def sorted_probability(scores: FloatArray) -> float:
    """The probability that independent runs which gave these scores gave them in increasing order.

    Examples
    --------
    >>> round(sorted_probability(np.array([0.0, 0.0, 1.0])), 12)  # 2 of 6
    0.333333333333
    """
    counts = np.unique(scores, return_counts=True)[1]
    gammaln = scipy.special.gammaln
    return math.exp(min(0.0, float(gammaln(counts + 1.0).sum() - gammaln(len(scores) + 1.0))))


def _few_descents(size: int, descents: int) -> float:
    """An upper bound on the probability that a random permutation has so few."""
    if size < 2:
        return 1.0
    return math.exp(min(0.0, float(np.min(SLOPES * (descents + 1.0) + size * LOG_SLOPES))))
