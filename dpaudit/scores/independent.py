"""The bound of one run if canaries are answered independently: exact, at any number of canaries.

Assumed: each canary's coin and score, as a pair, is independent of all other canaries' pairs. The laws may differ from
canary to canary. Each law keeps the claim, whose trade-off function f is symmetric.

Setting. Canaries are put in an order of confidence that depends on the scores alone (and on draws for equal scores),
and an attack guesses the coins of the first r in this order. W is the number of right guesses. Let (Q0, Q1) be a pair
of laws with trade-off function f, Z ~ Q_b with a fair coin b, and a(Z) >= 0 the absolute log-likelihood ratio of Z.
Then sigmoid(a) is the probability that the better guess on b is right.

Theorem. P(W >= v) is at most P(W* >= v), where n independent canaries draw Z and W* is the number of right guesses
among the r canaries whose a is largest, each guessed the better way.

Proof. By Blackwell's theorem each canary's score is a randomised function of a Z_i with law Q_(b_i): f is at most the
trade-off function of its pair of laws. By assumption the Z_i are independent, and coins are independent given all Z_i
and all scores, with P(b_i = 1 | ...) that of Z_i alone. So given these, right guesses are independent, and the guess
in place j is right with probability at most s_j = sigmoid(a) of the canary in that place. Let two neighbours in the
order have s_1 < s_2. Exchanging them moves probability s_2 (1 - s_1) - s_1 (1 - s_2) > 0 from "only the second is
right" to "only the first is right", and leaves all else. So no prefix count falls: W gets stochastically larger until
the order is that of a, and that is W*. (The same shows it for every increasing function of all prefix counts at once.)

The law of W*. Write a = G(U) with G decreasing and U uniform. The r-th smallest U is Beta(r, n - r + 1). Given that it
is u, the other r - 1 guesses are right with the mean A(u) of sigmoid(G) on (0, u), independently, and the last one no
more often: W* is at most Binomial(r, A(u)). A decreases, so that on each cell of a partition of u its value at the
lower end gives an upper bound: a finite sum, rounded outwards (`tail`).

What is tested. A Gaussian claim is tested by the weighted sum of all right guesses (`dpaudit.scores.sums`), whose
weights are those of one mu, never of scores. It has most of the error rate; some short lists of the most confident
guesses have the rest, for attacks that know few canaries well. For other claims four numbers of guesses share it
evenly, as in the bound without the assumption. For a fixed r a larger claim has a larger W* (the theorem again), so
rejected values form an interval; so do those of the sum.

All bounds of one r hold together, since their rejection regions {W >= v} are nested. Epsilon at delta uses the numbers
of guesses whose level is theirs at every tested value.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import ApproxDP, Claim, FloatArray, GaussianDP
from dpaudit.scores.bands import lower_hull
from dpaudit.scores.guesses import SIMULTANEOUS, RankedLabels, Record, Rule
from dpaudit.scores.profile_bounds import GRID, RENYI_DELTAS, largest_value
from dpaudit.scores.result import IndependentBound
from dpaudit.scores.sums import SIZES, RankSum, most_right, steps_of

Accuracy = Callable[[FloatArray], FloatArray]  # from shares u of all canaries to (an upper bound on) A(u)

SUM_PART = 0.95  # of the error rate, for the sum; short lists have the rest. It costs less than 1% of mu
CELLS = 64  # of the law of the r-th order statistic; with 1,024 bounds on mu grow by 0.1 to 0.2%
ROUNDING = 1e-9  # relative, of sums of incomplete beta functions


def tail(record: Record, accuracy: Accuracy) -> float:
    """An upper bound on the probability of so many right guesses, by the mean accuracy of the top share."""
    if record.correct <= 0:
        return 1.0
    shares, masses = order_cells(record.rule.guesses, record.canaries, record.level)
    means = np.clip(accuracy(shares), 0.5, 1.0)
    tails = scipy.special.betainc(record.correct, record.rule.guesses - record.correct + 1.0, means)
    return float(masses[1:] @ tails + masses[0]) * (1.0 + ROUNDING)


@functools.lru_cache(maxsize=64)
def order_cells(guesses: int, canaries: int, level: float) -> tuple[FloatArray, FloatArray]:
    """Lower ends of cells of the r-th of n uniforms; the probability below them all, then that of each cell."""
    if guesses == canaries:
        return np.ones(1), np.array([0.0, 1.0])  # all are guessed on: A(1) is their accuracy
    edge = -float(scipy.special.ndtri(1e-4 * level))
    below = scipy.special.ndtr(np.linspace(-edge, edge, CELLS))
    shares = scipy.special.betaincinv(guesses, canaries - guesses + 1.0, below)
    return shares, np.diff(np.concatenate([[0.0], below, [1.0]]))


def gaussian_accuracy(mu: float) -> Accuracy:
    """A(u) of mu-Gaussian DP, from above.

    Examples
    --------
    >>> float(gaussian_accuracy(1.0)(np.ones(1))[0].round(6)) == round(float(scipy.special.ndtr(0.5)), 6)
    True
    """
    return lambda u: np.asarray(most_right(mu, u) / u)


def lines_accuracy(epsilons: FloatArray, deltas: FloatArray) -> Accuracy:
    """A(u) of a mechanism that keeps lines (epsilon, delta), each in both directions.

    As a function of x = e^epsilon, delta is convex and does not increase, so that the lower hull of the lines' points
    bounds it. Where the hull's slope changes by m at x, the extremal pair has log-likelihood ratio epsilon with
    probability m under one law and m x under the other, in each direction; it tells the coin for sure with probability
    the last delta.

    Examples
    --------
    >>> lines_accuracy(np.array([0.0]), np.array([0.1]))(np.array([0.1, 0.2, 1.0])).round(3).tolist()
    [1.0, 0.75, 0.55]
    """
    x, y = np.exp(np.minimum(epsilons, 700.0)), np.minimum(deltas, 1.0)
    # The total variation that each line allows: the two trade-off lines of (epsilon, delta) meet on the diagonal.
    corners = lower_hull(np.append(x, 1.0), np.append(y, np.min((x - 1.0 + 2.0 * y) / (x + 1.0))))
    slopes = np.append(-np.diff(corners[:, 1]) / np.diff(corners[:, 0]), 0.0)
    changes = np.append([0.0], slopes[:-1] - slopes[1:])  # the rest, at x = 1, tells nothing
    masses = (1.0 + corners[:, 0]) * changes
    shares = np.concatenate([[0.0], np.cumsum(np.concatenate([[corners[-1, 1]], masses[:0:-1]]))])
    sure = np.concatenate([[1.0], (corners[:, 0] / (1.0 + corners[:, 0]))[:0:-1]])
    right = np.concatenate([[0.0], np.cumsum(np.diff(shares) * sure)])
    if shares[-1] < 1.0:
        shares, right = np.append(shares, 1.0), np.append(right, right[-1] + 0.5 * (1.0 - shares[-1]))
    return lambda u: np.asarray(np.interp(u, shares, right) / u)


def claimed_accuracy(claim: Claim, value: float) -> Accuracy:
    """A(u) of the claim with another value of its parameter, from above."""
    if isinstance(claim, GaussianDP):
        return gaussian_accuracy(value)
    if claim.family == "hockey-stick":
        lines = [claim.lines(np.array([value]), at) for at in (GRID.tolist() if claim.anchored else [0.0])]
        return lines_accuracy(*(np.array([float(line[side][0]) for line in lines]) for side in (0, 1)))
    epsilons = np.array([claim.with_value(value).epsilon_at(delta) for delta in RENYI_DELTAS.tolist()])
    return lines_accuracy(epsilons, RENYI_DELTAS)


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Tests of one run: levels of all parts sum to that of the bound."""

    lists: tuple[Record, ...]
    sum: RankSum | None = None

    def rejects(self, claim: Claim, value: float) -> bool:
        """Tell whether a value of the claim's parameter is rejected."""
        accuracy = claimed_accuracy(claim, value)
        in_lists = any(tail(one, accuracy) <= one.level for one in self.lists)
        return in_lists or (self.sum is not None and self.sum.rejects(value))

    def are_rejected(self, claim: Claim, values: FloatArray) -> NDArray[np.bool_]:
        """Tell whether increasing values are rejected: true up to some value, false above; a few of them are asked."""
        first = bisect.bisect_left(values.tolist(), True, key=lambda value: not self.rejects(claim, value))
        return np.arange(len(values)) < first


def independent_bound(
    found: RankedLabels, claim: Claim, level: float, p_value: float | None, stated: int | None = None, seed: int = 0
) -> IndependentBound:
    """The bounds of one run, or of pairs, if canaries are answered independently; `level` is for all of them together.

    `p_value` is of the assumption, `stated` a number of guesses that was stated beforehand, `seed` of the sum's draws.
    """
    evidence = evidence_of(found, claim, level, stated, seed)
    perfect = [dataclasses.replace(one, correct=one.rule.guesses) for one in evidence.lists]
    if evidence.sum is not None:  # all right: the sum is at its largest, as the number of right guesses is
        perfect.append(Record(Rule(len(found)), len(found), len(found), evidence.sum.level))
    return IndependentBound(*bounds_of(claim, evidence), *bounds_of(claim, Evidence(tuple(perfect))), p_value)


def evidence_of(found: RankedLabels, claim: Claim, level: float, stated: int | None = None, seed: int = 0) -> Evidence:
    """The guesses that a run is tested by; a Gaussian claim has their weighted sum too, unless a number was stated."""
    if stated is not None:
        return Evidence(tuple(found.records([Rule(stated, found.in_pairs)], level)))
    if not isinstance(claim, GaussianDP) or level < SIZES.least_level:
        return Evidence(tuple(found.records(found.rules(), level)))
    right = np.array([found.correct(Rule(end, found.in_pairs)) for end in steps_of(len(found)).tolist()])
    summed = RankSum(right, len(found), SUM_PART * level, seed)
    return Evidence(tuple(found.records(found.rules(SIMULTANEOUS[1:]), (1.0 - SUM_PART) * level)), summed)


def bounds_of(claim: Claim, evidence: Evidence) -> tuple[float, float]:
    """The bounds on epsilon at the claim's delta, and on its parameter."""
    parameter = largest_value(lambda values: evidence.are_rejected(claim, values), claim.value)
    if isinstance(claim, ApproxDP):
        return parameter, parameter
    at, lists = ApproxDP(1.0, claim.report_delta), Evidence(evidence.lists)
    return largest_value(lambda values: lists.are_rejected(at, values), at.value), parameter
